"""The study of off-policy evaluation: simulated logs, what is measured, and what is accepted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import keyhole as kh
from keyhole.lab.evidence import Share
from keyhole.lab.studies import STUDIES, Cell, Settings, campaigns
from keyhole.lab.studies import click_logs as clicks
from keyhole.lab.studies import thompson_logs as logs
from keyhole.lab.studies.evaluation_cells import IntervalsCell, LogsCell, WatchedCell
from keyhole.lab.studies.evaluation_controls import ControlsCell, logged_as
from keyhole.lab.studies.evaluation_parts import HARD, covered, intervals, missed
from keyhole.lab.studies.evaluation_verdicts import log_ratio
from keyhole.lab.studies.running import tabled

STUDY = STUDIES["evaluation"]
ABSENT = frozenset(table.name for table in STUDY.data)
RECIPE = logs.ThompsonLogs(n_arms=3, signal=0.5, epsilon=0.1)
HOLDS, FAILS, CANNOT = "holds", "does not hold", "cannot tell"


def results(cell: Cell) -> xr.Dataset:
    return cell.results(Path(), executor=None, workers=None, progress=lambda _: None)


def cells(**sizes: Any) -> list[Cell]:
    return STUDY.cells(Settings(absent=ABSENT, **sizes))


# -- simulated logs -------------------------------------------------------------------------------


def test_propensities_of_simulated_logs_are_exact() -> None:
    made = RECIPE.draw(np.random.default_rng(1), 2_000)
    found = kh.evaluation.audit_log(made.log)
    assert found.is_sound
    assert found.difference < 1e-9
    assert min(found.counts) > 0
    assert max(map(abs, found.z)) < 4.0
    assert made.log.probability.min() >= 0.1 / 3


def test_truths_by_hand() -> None:
    made = RECIPE.draw(np.random.default_rng(2), 50)
    constants = made.eta[:, 0]
    assert logs.truth(made, "fixed arm") == constants[0]
    assert logs.truth(made, "best arm") == constants.max()
    assert logs.truth(made, "uniform") == pytest.approx(constants.mean())
    # Half of v is nearer to the better arm, and twice v to uniform choices.
    assert logs.truth(made, "v/2") > logs.truth(made, "2v")


def test_chances_at_a_new_context_are_those_of_many_contexts() -> None:
    rng = np.random.default_rng(3)
    made = clicks.clicks(RECIPE.draw(rng, 40_000), rng)
    error = made.chance.std(axis=0) / np.sqrt(40_000)
    assert (np.abs(made.chance.mean(axis=0) - made.means) < 4 * error).all()
    clicked = made.chance[np.arange(40_000), made.log.chosen]
    assert abs(made.log.reward.mean() - clicked.mean()) < 4 * 0.5 / np.sqrt(40_000)


def test_running_values_and_gains() -> None:
    rng = np.random.default_rng(4)
    made = clicks.clicks(RECIPE.draw(rng, 300), rng)
    assert (clicks.running_value(made, "uniform") == made.means.mean()).all()
    half = clicks.running_value(made, "v/2")
    rows = clicks.target_propensity(made, "v/2") * made.chance
    assert half[199] == pytest.approx(rows[:200].sum() / 200)
    assert made.log.propensity is not None
    logged = (made.log.propensity * made.chance).sum(axis=1).mean()
    assert clicks.running_gain(made, "v/2")[-1] == pytest.approx(half[-1] - logged)


@pytest.mark.parametrize("target", ["fixed arm", "uniform", "2v"])
def test_the_normal_interval_is_that_of_ips(target: str) -> None:
    rng = np.random.default_rng(5)
    made = clicks.clicks(RECIPE.draw(rng, 400), rng)
    low, high = clicks.normal_bounds(made, target, np.array([400]))
    one = logs.targets(made.source)[target]
    row = kh.evaluate(made.log, {target: one}, estimator="ips", min_size=0.0).rows[0]
    assert (low[0] + high[0]) / 2 == pytest.approx(row.value)
    assert (high[0] - low[0]) / 2 == pytest.approx(1.96 * row.error)


def test_propensities_as_others_log_them() -> None:
    rng, exact = np.random.default_rng(6), np.array([0.001, 0.5, 0.9])
    assert logged_as("exact", exact, 4, rng) is exact
    assert logged_as("1", exact, 4, rng).tolist() == [1.0] * 3
    assert logged_as("1/K", exact, 4, rng).tolist() == [0.25] * 3
    drawn = np.array([logged_as("100 draws", exact, 4, rng) for _ in range(400)])
    # A weight must be finite: a count of 0 becomes 1.
    assert drawn.min() == 0.01
    np.testing.assert_allclose(100 * drawn, np.round(100 * drawn))
    assert abs(drawn[:, 1].mean() - 0.5) < 4 * 0.05 / np.sqrt(400)


# -- cells ----------------------------------------------------------------------------------------


def test_intervals_are_those_of_evaluate() -> None:
    cell = cells(horizon=80, replications=2)[1]
    assert isinstance(cell, IntervalsCell)
    found = results(cell)
    assert found["value"].dims == ("replication", "estimator", "policy", "time")
    made = cell.world.draw(cell.generator(1), 80)
    for target in ("best arm", "v/2"):
        for name, estimator in (("MinVar", "minvar"), ("plain DR", "dr")):
            [row] = kh.evaluate(
                made.log, {"one": logs.targets(made)[target]}, estimator=estimator, min_size=0.0
            ).rows
            one = found.sel(estimator=name, policy=target).isel(replication=1, time=0)
            ends = [float(one[name]) for name in ("value", "low", "high")]
            assert ends == [row.value, row.low, row.high]
            assert one["truth"] == logs.truth(made, target)


def test_watched_bounds_are_those_of_the_sequence() -> None:
    cell = next(one for one in cells(horizon=200, replications=1) if isinstance(one, WatchedCell))
    found = results(cell).isel(replication=0)
    rng = cell.generator(0)
    made = clicks.clicks(cell.world.draw(rng, 200), rng)
    sequence = kh.evaluation.value_sequence(made.log, "uniform", looks=cell.looks)
    one = found.sel(bounds="confidence sequence", watched="uniform")
    assert one["watched_low"].values.tolist() == sequence.low.tolist()
    assert one["watched_high"].values.tolist() == sequence.high.tolist()
    assert (one["watched_truth"] == made.means.mean()).all()
    assert (cell.looks[0], cell.looks[-1]) == (50, 200)


def test_logs_depend_on_the_seed_alone() -> None:
    for cell in cells(horizon=60, replications=2):
        assert results(cell).equals(results(cell))
        if isinstance(cell, LogsCell):
            other = type(cell)(**{**vars(cell), "seed": 2})
            assert other.identity() != cell.identity()
            assert isinstance(cell, ControlsCell) or not results(other).equals(results(cell))


def test_logs_of_different_worlds_are_independent() -> None:
    """Shares over all worlds have binomial intervals: no two worlds may have the same numbers."""
    made = [one for one in cells() if isinstance(one, LogsCell)]
    first = {cell.generator(number).random() for cell in made for number in range(3)}
    assert len(first) == 3 * len(made) == 27


# -- the shop -------------------------------------------------------------------------------------


def test_one_absent_table_is_enough_for_the_stand_in() -> None:
    [one] = campaigns.campaigns(Settings(absent=frozenset({"open-bandit-men-bts"})))
    assert one.name == "simulated shop"
    settings = Settings(absent=ABSENT)
    assert STUDY.stand_ins(settings) == {"Open Bandit": "Simulated shop"}
    assert STUDY.described(settings).startswith("Simulated shop: two simulated logs of 10,000")
    assert STUDY.described(Settings()).count("Open Bandit: ") == 1


def test_the_log_of_a_campaign_is_that_of_the_reader() -> None:
    [one] = campaigns.campaigns(Settings(absent=ABSENT))
    read = kh.evaluation.Logged.of(one.frames["bts"], format="open-bandit")
    [row] = kh.evaluate(read, {"random": "uniform"}, estimator="snips").rows
    found = one.from_other_log("random")
    assert found.value == pytest.approx(row.value, rel=1e-12)
    assert found.error == pytest.approx(row.error, rel=1e-12)
    wide = one.from_other_log("random", 0.99)
    assert wide.high - wide.low > 1.2 * (found.high - found.low)


def test_values_from_the_other_log_of_the_stand_in() -> None:
    found = results(cells()[-1])
    apart = np.abs(found["other"] - found["own"])
    # `other_reach` is 2.58 standard errors or more.
    assert (apart < 4 * np.hypot(found["own_error"], found["other_reach"] / 2.58)).all()
    # The second policy is nearer to the better items.
    assert float(found["own"][1]) > float(found["own"][0])


# -- verdicts -------------------------------------------------------------------------------------

LOGS = 400
# Lower ends of intervals of width 2 that miss 0, in turns above it and below.
BEYOND = np.where(np.arange(LOGS) % 2 == 0, 1.0, -3.0)


def hits(share: float) -> Any:
    """0 or 1 for each log, with this share of 1."""
    return (np.arange(LOGS) < round(share * LOGS)).astype(float)


def made_table(
    *,
    minvar: float = 0.95,
    plain: float = 0.75,
    ratio: float = 0.2,
    sequence: float = 0.0,
    normal: float = 0.6,
    wrong: float = 0.5,
    objected: float = 1.0,
    apart: float = 0.1,
) -> xr.Dataset:
    """A table in which everything that is measured has a known size."""
    rng = np.random.default_rng(7)
    made = cells()
    for place, cell in enumerate(made):
        if isinstance(cell, LogsCell):
            made[place] = type(cell)(**{**vars(cell), "replications": LOGS})
    return tabled(
        made,
        [
            _interval_results(cell, rng, {"MinVar": minvar, "plain DR": plain}, ratio)
            if isinstance(cell, IntervalsCell)
            else _other_results(cell, (sequence, normal), (wrong, objected), apart)
            for cell in made
        ],
    )


def _interval_results(
    cell: IntervalsCell, rng: np.random.Generator, inside: dict[str, float], ratio: float
) -> xr.Dataset:
    shape = (LOGS, 2, len(cell.policies), 1)
    value = rng.standard_normal(shape) * np.array([ratio, 1.0])[:, None, None]
    low = np.empty(shape)
    for place, one in enumerate(inside.values()):
        low[:, place] = np.where(hits(one) == 1.0, -1.0, BEYOND)[:, None, None]
    values = {"value": value, "low": low, "high": low + 2.0, "truth": np.zeros(shape)[:, 0]}
    return _dataset(cell, values)


def _other_results(
    cell: Cell, misses: tuple[float, float], control: tuple[float, float], apart: float
) -> xr.Dataset:
    if isinstance(cell, WatchedCell):
        shape = (LOGS, 2, len(cell.policies), len(cell.looks))
        low = np.full(shape, -1.0)
        for place, one in enumerate(misses):
            wrong = hits(one) == 1.0
            low[wrong, place, :, 7] = BEYOND[wrong, None]  # at one look only
        bounds = {"watched_low": low, "watched_high": low + 2.0}
        return _dataset(cell, {**bounds, "watched_truth": np.zeros(shape)[:, 0]})
    if isinstance(cell, ControlsCell):
        shares = {"covered": (0.95, control[0]), "objected": (0.0, control[1])}
        shares["objected_bare"] = shares["objected"]
        return _dataset(
            cell,
            {
                name: np.column_stack([hits(right), *[hits(wrong)] * 3])
                for name, (right, wrong) in shares.items()
            },
        )
    numbers = {"own": 1.0, "own_error": 0.01, "other": 1.0 + apart, "other_reach": 0.1}
    numbers |= {"other_low": 0.9, "other_high": 1.3, "other_size": 100.0}
    columns = {name: ("shop_policy", [number] * 2) for name, number in numbers.items()}
    return xr.Dataset(columns, {"shop_policy": list(cell.policies)})


def _dataset(cell: LogsCell, values: dict[str, Any]) -> xr.Dataset:
    columns = {name: (("replication", *cell.dims[name]), one) for name, one in values.items()}
    return xr.Dataset(columns, {"replication": np.arange(LOGS), **cell.coords})


def test_a_table_of_known_sizes() -> None:
    """Worlds of 500 and of 5,000 rounds are at different times, of which one is missing in each."""
    table = made_table()
    assert table.time.values.tolist() == [500, 5_000]
    inside = covered(table)
    assert float(inside.sel(estimator="MinVar").mean()) == 0.95
    assert float(inside.sel(estimator="plain DR").mean()) == 0.75
    assert not bool(intervals(table).isnull().to_array().any())
    assert float(missed(table).sel(bounds="normal interval").any("look").mean()) == 0.6
    curves = STUDY.curves(table)
    assert {"cell", "replication", "time"} <= set(curves.dims)
    longer = curves.sel(cell=HARD[1])
    assert bool(longer.sel(time=500).isnull().all())
    assert not bool(longer.sel(time=5_000).isnull().any())


TRUE: dict[str, float] = {}
AT_THE_LIMITS = {"minvar": 0.935, "plain": 0.9, "ratio": 0.25, "sequence": 0.04, "normal": 0.2}
AT_THE_LIMITS |= {"wrong": 0.85, "objected": 0.95, "apart": 0.5}
FALSE = {"minvar": 0.8, "plain": 0.95, "ratio": 0.35, "sequence": 0.1, "normal": 0.1}
FALSE |= {"wrong": 0.95, "objected": 0.5, "apart": 0.7}


@pytest.mark.parametrize(
    ("given", "outcomes"),
    [
        (TRUE, [HOLDS] * 10),
        # An RMSE of a quarter, or of a third, is less than 1.25 times.
        (AT_THE_LIMITS, [CANNOT] * 4 + [HOLDS] + [CANNOT] * 5),
        (FALSE, [FAILS] * 4 + [HOLDS] + [FAILS] * 5),
        # Intervals that are too wide do not cover what they say either.
        ({"minvar": 0.985, "ratio": 1.6}, [FAILS, HOLDS, HOLDS, FAILS, FAILS] + [HOLDS] * 5),
        ({"ratio": 1.2}, [HOLDS] * 3 + [FAILS, CANNOT] + [HOLDS] * 5),
    ],
)
def test_what_the_study_accepts_and_refuses(given: dict[str, float], outcomes: list[str]) -> None:
    found = STUDY.verdicts(made_table(**given))
    assert [verdict.outcome for verdict in found] == outcomes
    assert found[-1].claim.startswith("Simulated shop (stand-in): ")


def test_a_ratio_that_one_log_decides_is_not_known() -> None:
    """Errors alike, but for one log a hundred times as large: no number of others makes up for it.

    For errors alike in all logs the interval is that of two independent standard deviations.
    """
    rng = np.random.default_rng(8)
    mine, theirs = rng.standard_normal((2, LOGS)) ** 2
    alike = log_ratio(mine, theirs)
    # Each logarithm of a standard deviation has the variance 1 / (2 n).
    assert alike.margin / 2.58 == pytest.approx(np.sqrt(1.0 / LOGS), rel=0.25)
    assert abs(alike.value) < 4 * np.sqrt(1.0 / LOGS)
    assert log_ratio(mine, mine) == (0.0, 0.0)
    assert log_ratio(mine[:1], theirs[:1]).margin == np.inf
    theirs[0] = 1e4
    found = log_ratio(mine, theirs)
    assert found.value < np.log(0.25)
    assert found.low < np.log(0.25) < found.high


def test_a_refused_value_is_no_evidence() -> None:
    table = made_table()
    for name in ("other", "other_low", "other_high", "other_reach"):
        table[name].loc[{"shop_policy": "random"}] = np.nan
    last = STUDY.verdicts(table)[-1]
    assert "holds for 1 of 1" in last.evidence
    assert "simulated shop, random: refused, effective size 100" in last.evidence


def test_ten_logs_decide_nothing_about_a_share_of_5_percent() -> None:
    """No miss in ten logs: Student's interval would have no width. The exact one reaches 41%."""
    found = Share(0, 10).estimate
    assert found.low == pytest.approx(0.0, abs=1e-12)
    assert found.high == pytest.approx(1.0 - 0.005**0.1)
    assert Share(10, 10).estimate.low == pytest.approx(0.005**0.1)
