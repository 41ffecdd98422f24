"""The paper's experiments: their settings, and what a run leaves behind."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import keyhole as kh
from keyhole.lab.simulation import run as simulation
from keyhole.lab.simulation.replication import replicate
from keyhole.lab.studies import STUDIES, Cell, Job, Outcome, Settings, report, run, running
from keyhole.lab.studies.study import Study

# -- each study -----------------------------------------------------------------------------------


# All tables that are not on every machine.
ABSENT = frozenset(table.name for study in STUDIES.values() for table in study.data)


def resolved(**settings: Any) -> Settings:
    """Tiny sizes, and stand-ins for all data."""
    usual: dict[str, Any] = {"quick": True, "horizon": 200, "replications": 3, "absent": ABSENT}
    return Settings(**{**usual, **settings})


def job(name: str, **settings: Any) -> Job:
    chosen = resolved(**settings)
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
    for verdict in made["verdicts"]:
        assert verdict["outcome"] in set(Outcome)
        assert verdict["evidence"]
    assert made["rule"] == STUDIES[name].rule
    assert [one["what"] for one in made["choices"]] == [o.what for o in STUDIES[name].choices]
    for kind, start in {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}.items():
        assert (folder / f"figure.{kind}").read_bytes().startswith(start)
    table = xr.load_dataset(folder / "data.nc")
    assert {"cell", "policy", "replication", "time"} <= set(table.dims)
    columns = (folder / "data.csv").read_text().splitlines()[0].split(",")
    assert {"cell", "time", "mean", "low", "high", "standard_error"} <= set(columns)
    # Of rates of correct decisions the largest is not the worst.
    assert ("worst" in columns) == (name not in ("fig4", "fig5", "warfarin", "trial", "evaluation"))


def test_the_papers_settings() -> None:
    full = {name: study.cells(Settings(absent=ABSENT)) for name, study in STUDIES.items()}
    pairs = {(c.where["dim"], c.where["context_dim"]) for c in full["fig1"]}
    assert pairs == {(a, b) for a in (10, 20, 40, 80) for b in (10, 20, 40, 80)}
    assert {c.world.n_arms for c in full["fig1"] + full["fig2"]} == {5}
    assert [c.world.n_arms for c in full["fig3"]] == [10, 20, 30] * 2
    assert [c.world.shared_context for c in full["fig3"]] == [False] * 3 + [True] * 3  # type: ignore[union-attr]
    for name, replications in {"fig1": 50, "fig2": 200, "fig3": 200}.items():
        assert {(c.horizon, c.replications) for c in full[name]} == {(10_000, replications)}
    for name in ("fig4", "fig5", "fig6"):
        assert {c.replications for c in full[name]} == {100}
    assert {c.where["rewards"] for c in full["fig4"]} == {"logistic"}
    assert {c.where["rewards"] for c in full["fig6"]} == {"linear", "logistic"}
    # fig2 keeps one instance, so that an arm is the same in every replication.
    assert all(isinstance(c.world, kh.LinearWorld) for c in full["fig2"])
    assert all(isinstance(c.world, kh.RandomLinearWorld) for c in full["fig1"] + full["fig3"])


@pytest.mark.parametrize("name", ["fig4", "fig5", "fig6", "variants"])
def test_stand_ins_are_named_wherever_the_study_is(name: str, finished: Path) -> None:
    """On the figure, in the manifest and on the page; the paper's sizes are not claimed of them."""
    folder = finished / name
    made = json.loads((folder / "manifest.json").read_text())
    assert made["stand_ins"] == {"Eye movements": "Digits", "EEG eye state": "Breast cancer"}
    assert "Breast cancer: 30 features seen as 15 numbers, 2 arms." in made["setting"]
    assert "Eye movements" not in made["setting"]
    assert {cell["data"] for cell in made["cells"]} == {"digits", "breast_cancer"}
    first = made["verdicts"][0]
    assert "Digits (stand-in), logistic rewards" in first["claim"] + first["evidence"]
    figure = (folder / "figure.svg").read_text()
    for title in ("(stand-in for Eye movements)", "(stand-in for EEG eye state)"):
        assert title in figure
    page = (finished / "index.html").read_text()
    section = page.split(f'<section id="{name}">')[1].split("</section>")[0]
    assert "Digits stands in for Eye movements" in section
    assert page.split("<section")[0].count("on stand-ins</span>") == 7


@pytest.mark.parametrize(
    ("name", "title", "used"),
    [
        ("warfarin", "Warfarin doses", "Simulated doses"),
        ("trial", "ACTG175", "Simulated trial"),
    ],
)
def test_simulated_patients_are_named_wherever_the_study_is(
    name: str, title: str, used: str, finished: Path
) -> None:
    made = json.loads((finished / name / "manifest.json").read_text())
    assert made["stand_ins"] == {title: used}
    assert made["setting"].startswith(f"{used}: ")
    assert title not in made["setting"]
    assert {cell["data"] for cell in made["cells"]} == {used.lower()}
    assert all(v["claim"].startswith(f"{used} (stand-in): ") for v in made["verdicts"])
    assert f"{used} (stand-in for {title})" in (finished / name / "figure.svg").read_text()
    page = (finished / "index.html").read_text()
    section = page.split(f'<section id="{name}">')[1].split("</section>")[0]
    assert f"{used} stands in for {title}" in section


def test_a_simulated_shop_is_named_where_its_logs_are(finished: Path) -> None:
    """The other parts of the study have no data, and no stand-in."""
    made = json.loads((finished / "evaluation" / "manifest.json").read_text())
    assert made["stand_ins"] == {"Open Bandit": "Simulated shop"}
    assert made["setting"].startswith("Simulated shop: ")
    assert "Open Bandit" not in made["setting"]
    named = [v["claim"].startswith("Simulated shop (stand-in): ") for v in made["verdicts"]]
    assert named == [False] * 9 + [True]
    figure = (finished / "evaluation" / "figure.svg").read_text()
    assert "Simulated shop (stand-in for Open Bandit)" in figure


def test_a_study_with_all_its_data_has_no_stand_ins() -> None:
    one = STUDIES["fig4"]
    assert one.stand_ins(Settings()) == {}
    assert one.described(Settings()).startswith("Eye movements: 26 features seen as 13")
    half = Settings(absent=frozenset({"eeg-eye-state"}))
    assert one.stand_ins(half) == {"EEG eye state": "Breast cancer"}


def test_gaps_are_scaled_and_nothing_else() -> None:
    """In the sweep over the gap R stays, in that over v the world does."""
    cells = STUDIES["scaling"].cells(Settings(absent=ABSENT))
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
        growth = made["verdicts"][0 if name == "fig1" else 1]
        assert growth["outcome"] == "does not hold"
        assert "holds for 0 of" in growth["evidence"]


# -- not twice ------------------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The replications that are really simulated from here on."""
    done: list[int] = []

    def watched(plan: Any, number: int, *others: Any) -> Any:
        done.append(number)
        return replicate(plan, number, *others)

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
    assert 0 < len(done) < 18
    assert again["verdicts"] == whole["verdicts"]
    same = xr.load_dataset(tmp_path / "whole" / "fig3" / "data.nc")
    assert xr.load_dataset(tmp_path / "part" / "fig3" / "data.nc").equals(same)


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "fig2").touch()
    with pytest.raises(kh.FileError, match="must be a folder for the study"):
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


def test_the_page_has_every_rule_outcome_and_choice(finished: Path) -> None:
    page = (finished / "index.html").read_text()
    table = page.split('<section id="choices">')[1]
    for study in STUDIES.values():
        section = page.split(f'<section id="{study.name}">')[1].split("</section>")[0]
        made = running.manifest(finished / study.name)
        assert made is not None
        for verdict in made["verdicts"]:
            assert f">{verdict['outcome']}</span>" in section
        assert str(report.formulas(study.rule)) in section
        for choice in study.choices:
            for text in (choice.what, choice.paper, choice.ours):
                assert str(report.formulas(text)) in table
    # Readers of the docs see the same list.
    docs = (Path(__file__).parents[2] / "docs" / "how-to" / "choices.md").read_text()
    for choice in {choice for study in STUDIES.values() for choice in study.choices}:
        assert f"| {choice.what} | {choice.paper} | {choice.ours} |" in docs


def test_rows_of_the_pages_table_have_all_their_columns(tmp_path: Path) -> None:
    """Those of studies that were left out too, whose reason is below the table."""
    run(job("fig2"), tmp_path)
    reason = "a long reason " * 30
    page = report.write(tmp_path, list(STUDIES.values()), {"fig4": reason, "fig5": reason})
    table, below = page.read_text().split("</table>", 1)
    rows = re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
    assert len(rows) == 4
    assert {len(re.findall("<t[dh]", row)) for row in rows} == {5}
    assert "colspan" not in table
    assert reason.strip() not in table
    assert below.count(f"was left out: {reason.strip()}") == 2


@pytest.mark.parametrize("damage", ["{}", '{"format": 1}', '{"format": 2}'])
def test_a_foreign_manifest_is_made_anew(damage: str, tmp_path: Path) -> None:
    first = run(job("fig2"), tmp_path)
    (tmp_path / "fig2" / "manifest.json").write_text(damage)
    assert report.write(tmp_path, list(STUDIES.values())).exists()
    assert run(job("fig2"), tmp_path)["verdicts"] == first["verdicts"]


def test_data_csv_is_what_the_docs_say(finished: Path) -> None:
    """A row for each point of each curve of the figure; every replication is in data.nc."""
    told = pd.read_csv(finished / "fig1" / "data.csv")
    table = xr.load_dataset(finished / "fig1" / "data.nc")
    curves = STUDIES["fig1"].curves(table)
    assert len(told) == curves.isel(replication=0).size
    mean = curves.mean("replication").stack(row=("cell", "policy", "time"))
    keyed = told.set_index(["cell", "policy", "time"])["mean"]
    np.testing.assert_allclose(keyed.loc[list(mean.row.values)], mean, rtol=1e-5)
    docs = (Path(__file__).parents[2] / "docs" / "how-to" / "report.md").read_text()
    assert "`report/fig3/data.nc` | every curve of every replication" in docs
    assert "`report/fig3/data.csv` | the mean, its band and the worst of every curve" in docs


def test_panels_that_are_compared_have_one_range(finished: Path) -> None:
    for name in ("fig1", "fig2", "fig3", "shared", "scaling", "missing", "sensors"):
        table = xr.load_dataset(finished / name / "data.nc")
        figure = STUDIES[name].figure(table)
        assert len({axes.get_ylim() for axes in figure.axes}) == 1, name
        assert all(axes.get_xlabel() for axes in figure.axes[-2:]), name
    for name in ("fig4", "fig5"):  # rates of one data set are compared with each other
        figure = STUDIES[name].figure(xr.load_dataset(finished / name / "data.nc"))
        assert len({axes.get_ylim() for axes in figure.axes[::2]}) == 1


def test_data_sets_share_a_range_where_all_their_curves_can_be_read(finished: Path) -> None:
    """Regret of the stand-ins differs a hundredfold; that of the paper's data does not."""
    for name in ("fig6", "variants"):
        table = xr.load_dataset(finished / name / "data.nc")
        for like in (False, True):
            if like:
                table["regret"] = table["regret"] * 0 + np.log(table.time) ** 2
            ranges = {axes.get_ylim() for axes in STUDIES[name].figure(table).axes}
            assert (len(ranges) == 1) == like


def test_a_curve_is_inside_its_panel(finished: Path) -> None:
    for name in STUDIES:
        figure = STUDIES[name].figure(xr.load_dataset(finished / name / "data.nc"))
        for axes in figure.axes:
            drawn = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]
            assert max(y.max() for y in drawn if y.size) <= axes.get_ylim()[1], name


def test_figure_2_begins_when_errors_are_no_longer_the_priors() -> None:
    cell = STUDIES["fig2"].cells(Settings())[0]
    runs = kh.simulate(
        cell.world, cell.policies, horizon=10_000, replications=3, seed=1, progress=False
    )
    table = running.tabled([cell] * 3, [runs] * 3).assign_coords(cell=["a", "b", "c"])
    figure = STUDIES["fig2"].figure(table)
    first = np.asarray(figure.axes[0].lines[0].get_xdata())[0]
    assert 500 <= first < 600
    assert r"\|" in figure.get_supylabel()


def test_formulas() -> None:
    assert report.formulas("(log t)^2 < d_x") == "(log t)<sup>2</sup> &lt; <i>d</i><sub>x</sub>"
    assert report.formulas("lambda_m t^-1/2 beta") == "<i>λ</i><sub>m</sub> t<sup>-1/2</sup> beta"
    assert report.formulas("(log t)^5.5") == "(log t)<sup>5.5</sup>"


def test_every_study_says_what_it_is() -> None:
    assert list(STUDIES) == [f"fig{i}" for i in range(1, 7)] + [
        "variants",
        "shared",
        "scaling",
        "missing",
        "sensors",
        "non-normal",
        "warfarin",
        "trial",
        "evaluation",
        "park2021",
    ]
    for study in STUDIES.values():
        assert isinstance(study, Study)
        assert study.claim.endswith(".")
        assert study.setting.endswith(".")
        assert study.rule.endswith(".")
        assert study.choices
