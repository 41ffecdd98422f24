"""The paper's experiments: what decides a claim, and what a run leaves behind."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import keyhole as kh
from keyhole.simulation import run as simulation
from keyhole.simulation.replication import replicate
from keyhole.studies import STUDIES, Cell, Job, Settings, evidence, report, run, running
from keyhole.studies.study import Study

TIME = np.arange(10, 10_001, 10)


def curves(mean: Any, noise: float = 0.0, replications: int = 20) -> xr.DataArray:
    """Curves around a mean, each replication's scaled by a factor of its own."""
    factors = 1.0 + noise * np.random.default_rng(1).standard_normal(replications)
    return xr.DataArray(
        np.outer(factors, mean),
        dims=("replication", "time"),
        coords={"time": TIME, "replication": range(replications)},
    )


# -- what decides ---------------------------------------------------------------------------------


def test_doublings_by_hand() -> None:
    """t itself: from T/2 to T it rises by half of its end, and before that by a quarter."""
    rise = evidence.doublings(curves(TIME))
    assert rise.last.mean == pytest.approx(0.5)
    assert rise.before.mean == pytest.approx(0.25)
    assert rise.excess.mean == pytest.approx(0.5 - 0.9 * 0.25)
    assert not rise.flatten


@pytest.mark.parametrize(
    ("growth", "flattens"),
    [
        (lambda t: np.log(t) ** 2, True),
        (lambda t: np.log(t), True),
        (lambda t: np.log(t) ** 2 * (1 - 5 / np.log(t)), True),  # from below: still rising, slower
        (lambda t: np.log(t) ** 2.5, False),
        (lambda t: np.log(t) ** 3, False),
        (lambda t: np.sqrt(t), False),
        (lambda t: t, False),
        (lambda t: np.log(t) ** 2 * t**0.1, False),
    ],
)
def test_flattening_tells_rates_apart(growth: Any, flattens: bool) -> None:
    normalised = curves(growth(TIME) / np.log(TIME) ** 2, noise=0.05)
    assert evidence.doublings(normalised).flatten == flattens


def test_few_replications_decide_nothing() -> None:
    """A rise that is not told from 0 is not held against a curve; one replication tells nothing."""
    rng = np.random.default_rng(2)
    noisy = curves(np.ones(TIME.size)) + rng.standard_normal((20, TIME.size))
    assert evidence.doublings(noisy).flatten
    assert evidence.estimate(xr.DataArray([1.0], dims="replication")).error == np.inf


def test_too_few_checkpoints_tell_nothing_and_say_so() -> None:
    short = curves(TIME).isel(time=[-2, -1])
    with pytest.raises(kh.InvalidValue, match="too few to tell how curves grow"):
        evidence.doublings(short)
    with pytest.raises(kh.InvalidValue, match="too few to tell a line"):
        evidence.line_over_log(short[0])
    assert evidence.doublings(curves(np.zeros(TIME.size))).flatten


def test_a_line_and_a_logarithm() -> None:
    assert evidence.line_over_log(curves(TIME)[0]) < 1e-6
    assert evidence.line_over_log(curves(np.log(TIME))[0]) > 1e6


def test_powers() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    factors = np.random.default_rng(3).lognormal(sigma=0.1, size=(4, 200))
    last = xr.DataArray((3.0 * x**1.5)[:, None] * factors, dims=("cell", "replication"))
    fit = evidence.exponent(x, last)
    assert abs(fit.mean - 1.5) < 4 * fit.error
    # Of four points at log 1, 2, 4, 8 with errors 0.1 / sqrt(200) each.
    spread = np.log(x) - np.log(x).mean()
    assert fit.error == pytest.approx(0.1 / np.sqrt(200) / np.sqrt(spread @ spread), rel=0.2)


# -- each study -----------------------------------------------------------------------------------


PAPERS = frozenset(table.name for table in STUDIES["fig4"].data)


def settled(**settings: Any) -> Settings:
    """Tiny sizes, and stand-ins for the paper's data."""
    usual: dict[str, Any] = {"quick": True, "horizon": 200, "replications": 3, "absent": PAPERS}
    return Settings(**{**usual, **settings})


def job(name: str, **settings: Any) -> Job:
    chosen = settled(**settings)
    return Job(STUDIES[name], chosen, STUDIES[name].cells(chosen))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all studies, tiny."""
    out = tmp_path_factory.mktemp("report")
    for name in STUDIES:
        run(job(name), out)
    report.write(out, list(STUDIES.values()), {})
    return out


@pytest.mark.parametrize("name", STUDIES)
def test_what_a_study_leaves_behind(name: str, finished: Path) -> None:
    folder = finished / name
    made = json.loads((folder / "manifest.json").read_text())
    assert made["study"] == name
    assert made["horizon"] == 200
    assert made["replications"] == 3
    assert {"keyhole", "numpy", "python"} <= set(made["versions"])
    assert made["verdicts"]
    assert all(verdict["evidence"] for verdict in made["verdicts"])
    for kind, start in {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}.items():
        assert (folder / f"figure.{kind}").read_bytes().startswith(start)
    table = xr.load_dataset(folder / "data.nc")
    assert {"cell", "policy", "replication", "time"} <= set(table.dims)
    columns = (folder / "data.csv").read_text().splitlines()[0].split(",")
    assert {"cell", "time", "mean", "low", "high", "standard_error"} <= set(columns)
    # Of rates of correct decisions the largest is not the worst.
    assert ("worst" in columns) == (name not in ("fig4", "fig5"))


def test_the_papers_settings() -> None:
    full = {name: study.cells(Settings(absent=PAPERS)) for name, study in STUDIES.items()}
    pairs = {(c.where["observation_dim"], c.where["context_dim"]) for c in full["fig1"]}
    assert pairs == {(a, b) for a in (10, 20, 40, 80) for b in (10, 20, 40, 80)}
    assert {c.world.n_arms for c in full["fig1"] + full["fig2"]} == {5}
    assert [c.world.n_arms for c in full["fig3"]] == [10, 20, 30]
    for name in ("fig1", "fig2", "fig3"):
        assert {(c.horizon, c.replications) for c in full[name]} == {(10_000, 50)}
    for name in ("fig4", "fig5", "fig6"):
        assert {c.replications for c in full[name]} == {100}
    assert {c.where["rewards"] for c in full["fig4"]} == {"logistic"}
    assert {c.where["rewards"] for c in full["fig6"]} == {"linear", "logistic"}
    # fig2 keeps one instance, so that an arm is the same in every replication.
    assert all(isinstance(c.world, kh.LinearWorld) for c in full["fig2"])
    assert all(isinstance(c.world, kh.RandomLinearWorld) for c in full["fig1"] + full["fig3"])


@pytest.mark.parametrize("name", ["fig4", "fig5", "fig6"])
def test_stand_ins_are_named_wherever_the_study_is(name: str, finished: Path) -> None:
    """On the figure, in the manifest and on the page; the paper's sizes are not claimed of them."""
    folder = finished / name
    made = json.loads((folder / "manifest.json").read_text())
    assert made["stand_ins"] == {"Eye movements": "Digits", "EEG eye state": "Breast cancer"}
    assert "Breast cancer: 30 features seen as 15 numbers, 2 arms." in made["setting"]
    assert "Eye movements" not in made["setting"]
    assert {cell["data"] for cell in made["cells"]} == {"digits", "breast_cancer"}
    assert "Digits (stand-in), logistic rewards" in made["verdicts"][0]["evidence"]
    figure = (folder / "figure.svg").read_text()
    for title in ("(stand-in for Eye movements)", "(stand-in for EEG eye state)"):
        assert title in figure
    page = (finished / "index.html").read_text()
    section = page.split(f'<section id="{name}">')[1].split("</section>")[0]
    assert "Digits stands in for the paper's Eye movements" in section
    assert page.split("<section")[0].count("on stand-ins</span>") == 3


def test_a_study_with_all_its_data_has_no_stand_ins() -> None:
    one = STUDIES["fig4"]
    assert one.stand_ins(Settings()) == {}
    assert one.described(Settings()).startswith("Eye movements: 26 features seen as 13")
    half = Settings(absent=frozenset({"eeg-eye-state"}))
    assert one.stand_ins(half) == {"EEG eye state": "Breast cancer"}


def test_gaps_are_scaled_and_nothing_else() -> None:
    """In the sweep over the gap R stays, in that over v the world does."""
    cells = STUDIES["scaling"].cells(Settings(absent=PAPERS))
    worlds = [c.world for c in cells if c.where["factor"] == "gap"]
    assert all(isinstance(world, kh.LinearWorld) for world in worlds)
    scales = [world.noise_scale for world in worlds]  # type: ignore[union-attr]
    np.testing.assert_allclose(scales, scales[0])
    np.testing.assert_allclose(worlds[1].eta * 2, worlds[2].eta)  # type: ignore[union-attr]
    assert len({id(c.world) for c in cells if c.where["factor"] == "v"}) == 1


def test_a_claim_that_fails_says_so(tmp_path: Path) -> None:
    """fig1 and fig3 with policies that do not learn: regret is linear, and the verdict false."""
    for name in ("fig1", "fig3"):
        study = STUDIES[name]
        base = study.cells(Settings(quick=True, horizon=400, replications=10))
        names = list(base[0].policies)
        cells = [
            Cell(**{**vars(cell), "policies": dict.fromkeys(names, kh.Uniform())}) for cell in base
        ]
        made = run(Job(study, Settings(quick=True), cells), tmp_path / name)
        flattening = made["verdicts"][0 if name == "fig1" else 1]
        assert not flattening["holds"]
        assert "holds for 0 of" in flattening["evidence"]


def table(values: dict[str, Any], **coords: Any) -> xr.Dataset:
    """Curves over (cell, policy, replication, time) as a study's table."""
    return xr.Dataset(
        {
            name: (("cell", "policy", "replication", "time"), np.asarray(value))
            for name, value in values.items()
        },
        coords={"time": TIME, **coords},
    )


def scaled(*means: Any) -> np.ndarray:
    """(policy, replication, time): ten replications of each mean, 2% apart."""
    factors = 1 + 0.02 * np.random.default_rng(4).standard_normal(10)
    return np.array([np.outer(factors, mean) for mean in means])


def test_verdicts_on_tables_whose_answer_is_known() -> None:
    """Each verdict of each study once true and once false, on made-up curves."""
    line, log, root = TIME / 10.0, np.log(TIME) ** 2, np.sqrt(TIME)

    def held(name: str, made: xr.Dataset) -> list[bool]:
        return [verdict.holds for verdict in STUDIES[name].verdicts(made)]

    thompson = ["Thompson sampling"]
    for growth, holds in ((log, True), (line, False)):
        one = table({"regret": [scaled(growth)]}, cell=["a"], policy=thompson)
        assert held("fig1", one) == [holds]
        both = [scaled(growth)] * 2
        six = table({"regret": both}, cell=["a", "b"], policy=thompson)
        six = six.assign_coords(
            data=("cell", ["eye_movements", "eeg-eye-state"]),
            rewards=("cell", ["logistic", "linear"]),
        )
        assert held("fig6", six) == [holds, not holds]

    for power, holds in ((-0.5, True), (-0.4, False)):
        errors = xr.Dataset(
            {
                "error": (
                    ("cell", "policy", "replication", "time", "arm"),
                    scaled(TIME**power)[None, ..., None],
                )
            },
            coords={"time": TIME, "cell": ["a"], "policy": thompson, "arm": [0]},
        )
        assert held("fig2", errors) == [holds]

    names = ["Thompson sampling", "Greedy"]
    good = table({"regret": [scaled(log, line)]}, cell=["a"], policy=names, n_arms=("cell", [9]))
    bad = table({"regret": [scaled(line, log)]}, cell=["a"], policy=names, n_arms=("cell", [9]))
    assert held("fig3", good) == [True, True, True]
    assert held("fig3", bad) == [False, False, False]
    shared = table({"regret": [scaled(log, log / 2)]}, cell=["a"], policy=names)
    assert held("shared", shared) == [True, True]
    shared = table({"regret": [scaled(root, root * 2)]}, cell=["a"], policy=names)
    assert held("shared", shared) == [False, False]

    for behind, holds in ((0.0, True), (0.05, False)):
        level = np.full(TIME.size, 0.6)
        rates = table({"correct": [scaled(level - behind)]}, cell=["a"], policy=thompson)
        rates["best_correct"] = (("cell", "replication", "time"), scaled(level))
        rates = rates.assign_coords(data=("cell", ["eye_movements"]), rewards=("cell", ["linear"]))
        for name in ("fig4", "fig5"):
            assert held(name, rates) == [holds]

    x = np.array([1.0, 2.0, 4.0])
    for powers, holds in (((2.5, 3.5, 0.5, -4.5), True), ((3.5, 4.5, 1.5, -5.5), False)):
        factors = ("n_arms", "observation_dim", "v", "gap")
        regrets = [scaled(np.full(TIME.size, a**power)) for power in powers for a in x]
        made = table({"regret": regrets}, cell=range(12), policy=thompson)
        made = made.assign_coords(
            factor=("cell", np.repeat(factors, 3)), value=("cell", np.tile(x, 4))
        )
        assert held("scaling", made) == [holds] * 4


# -- not twice ------------------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The replications that are really simulated from here on."""
    done: list[int] = []

    def watched(plan: Any, number: int, tick: Any = None) -> Any:
        done.append(number)
        return replicate(plan, number, tick)

    monkeypatch.setattr(simulation, "replicate", watched)
    return done


def test_finished_work_is_not_done_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, told = counted(monkeypatch), list[int]()
    first = run(job("fig5"), tmp_path, progress=told.append)
    assert len(done) == 4 * 3
    assert sum(told) == 4 * 3 * 200
    drawn = (tmp_path / "fig5" / "figure.png").stat().st_mtime_ns
    assert run(job("fig5"), tmp_path, progress=told.append) == first
    assert (tmp_path / "fig5" / "figure.png").stat().st_mtime_ns == drawn
    # fig6 is another figure of the same simulations, and fig4 of half of them.
    run(job("fig6"), tmp_path)
    run(job("fig4"), tmp_path)
    assert len(done) == 4 * 3
    assert sum(told) == 2 * 4 * 3 * 200
    # More replications: only those that are missing. Another seed: all.
    run(job("fig4", replications=5), tmp_path)
    assert len(done) == 4 * 3 + 2 * 2
    run(job("fig4", seed=2), tmp_path)
    assert len(done) == 4 * 3 + 2 * 2 + 2 * 3


def test_a_lost_or_damaged_file_is_made_again(tmp_path: Path) -> None:
    first = run(job("fig2"), tmp_path)
    folder = tmp_path / "fig2"
    (folder / "figure.svg").unlink()
    run(job("fig2"), tmp_path)
    assert (folder / "figure.svg").exists()
    (folder / "data.nc").write_bytes(b"")
    run(job("fig2"), tmp_path)
    assert xr.load_dataset(folder / "data.nc").sizes["cell"] == 3
    for damaged in tmp_path.glob("cells/*/replication-000001.npz"):
        damaged.write_bytes(b"")
    for text in ("", "{", "[]"):
        (folder / "manifest.json").write_text(text)
        assert run(job("fig2"), tmp_path)["verdicts"] == first["verdicts"]


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(job("fig3"), tmp_path / "whole")

    def stop_after(limit: int) -> Any:
        left = limit

        def tick(rounds: int) -> None:
            nonlocal left
            left -= rounds
            if left < 0:
                raise KeyboardInterrupt

        return tick

    with pytest.raises(KeyboardInterrupt):
        run(job("fig3"), tmp_path / "part", workers=1, progress=stop_after(900))
    assert not (tmp_path / "part" / "fig3").exists()
    done = counted(monkeypatch)
    again = run(job("fig3"), tmp_path / "part")
    assert 0 < len(done) < 9
    assert again["verdicts"] == whole["verdicts"]
    same = xr.load_dataset(tmp_path / "whole" / "fig3" / "data.nc")
    assert xr.load_dataset(tmp_path / "part" / "fig3" / "data.nc").equals(same)


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "fig2").touch()
    with pytest.raises(kh.FileError, match="needs a folder"):
        run(job("fig2"), tmp_path)


def test_an_interruption_over_an_earlier_result_does_not_mix_the_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(job("fig2"), tmp_path)
    with monkeypatch.context() as patch:

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(running, "_draw", stop)
        with pytest.raises(KeyboardInterrupt):
            run(job("fig2", horizon=300), tmp_path)
    assert run(job("fig2"), tmp_path)["verdicts"] == first["verdicts"]
    assert xr.load_dataset(tmp_path / "fig2" / "data.nc").time[-1] == 200


def test_figures_are_the_same_files_every_time(tmp_path: Path) -> None:
    for place in ("one", "two"):
        run(job("fig2"), tmp_path / place)
    for kind in ("png", "svg", "pdf"):
        one, two = (tmp_path / place / "fig2" / f"figure.{kind}" for place in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


# -- the page -------------------------------------------------------------------------------------


def test_the_page_needs_nothing_beside_it(finished: Path) -> None:
    page = (finished / "index.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == len(STUDIES)
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert "<script" not in page
    for link in re.findall(r"href=\"([^\"#]+)\"", page):
        assert (finished / link).exists()
    for study in STUDIES.values():
        assert study.title in page
        assert f"keyhole reproduce {study.name} --quick" in page


def test_the_page_says_what_was_left_out(finished: Path, tmp_path: Path) -> None:
    report.write(tmp_path, list(STUDIES.values()), {"fig4": "no <data> & no network"})
    page = report.write(tmp_path, list(STUDIES.values()))  # again: still said
    text = page.read_text()
    assert "left out" in text
    assert "no &lt;data&gt; &amp; no network" in text
    # What was made before is shown, whatever the last run left out.
    whole = report.write(finished, list(STUDIES.values()), {"fig4": "no data"}).read_text()
    assert "left out</span>" not in whole


def test_formulas() -> None:
    assert report.formulas("(log t)^2 < d_x") == "(log t)<sup>2</sup> &lt; <i>d</i><sub>x</sub>"
    assert report.formulas("lambda_m t^-1/2 beta") == "<i>λ</i><sub>m</sub> t<sup>-1/2</sup> beta"
    assert report.formulas("(log t)^5.5") == "(log t)<sup>5.5</sup>"


def test_every_study_says_what_it_is() -> None:
    assert list(STUDIES) == [f"fig{i}" for i in range(1, 7)] + ["shared", "scaling", "missing"]
    for study in STUDIES.values():
        assert isinstance(study, Study)
        assert study.claim.endswith(".")
        assert study.setting.endswith(".")
