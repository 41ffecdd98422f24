"""fig4, fig5 and fig6: real data, with an arm for each class and one patient in each round."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keyhole.core import ThompsonSampling
from keyhole.lab import datasets, plots
from keyhole.lab.evidence import (
    Verdict,
    at_least,
    at_most,
    counted,
    estimate,
    listed,
    power_of_log,
    within,
)
from keyhole.lab.studies import choices, panels
from keyhole.lab.studies.study import (
    THOMPSON,
    Cell,
    Settings,
    Study,
    Table,
    normalized_regret,
    sized,
)
from keyhole.lab.summary import rate_between, summarize
from keyhole.lab.tables import Dataset
from keyhole.lab.worlds import RandomDatasetWorld, Rewards

# The paper's data with their observation dimensions (section 5). Each has a stand-in, a table that
# comes with scikit-learn, used if neither a folder nor OpenML has the paper's.
EYE_MOVEMENTS = Table(
    name="eye_movements",
    title="Eye movements",
    dim=13,
    sizes="26 features seen as 13 numbers, 3 arms",
    # The table with the most rows (1,797) among those with at least three classes.
    stand_in=Table(
        name="digits",
        title="Digits",
        dim=32,
        sizes="64 pixels of handwritten digits seen as 32 numbers, 10 arms",
    ),
)
EEG = Table(
    name="eeg-eye-state",
    title="EEG eye state",
    dim=10,
    sizes="14 features seen as 10 numbers, 2 arms",
    stand_in=Table(
        name="breast_cancer",
        title="Breast cancer",
        dim=15,
        sizes="30 features seen as 15 numbers, 2 arms",
    ),
)
TABLES = (EYE_MOVEMENTS, EEG)
# The title of each table, and for a stand-in the title of the table that it replaces.
TITLES = {one.name: (one.title, "") for one in TABLES} | {
    one.stand_in.name: (one.stand_in.title, one.title) for one in TABLES if one.stand_in is not None
}
ORACLE = "regression oracle"
# The number of patients in the mean of a rate; bands are of means over ten times this number.
WINDOW, WINDOWS_OF_BAND = 100, 10
# Final rates within this distance count as equal: two patients of a hundred.
RATE_MARGIN = 0.02
# Halfway between (log t)^2, the claim, and (log t)^2.5, which must be refused.
POWER, POWER_MARGIN = 2.0, 0.25


def _cells(settings: Settings, rewards: tuple[Rewards, ...]) -> list[Cell]:
    sizes = sized(settings, 100)
    cells = []
    for table in (paper.used(settings) for paper in TABLES):
        cells += [
            Cell(
                where={"data": table.name, "rewards": kind},
                world=recipe(table, kind, settings.data_dir),
                policies={THOMPSON: ThompsonSampling(v="oracle")},
                checkpoints=windows(sizes["horizon"]),
                **sizes,
            )
            for kind in rewards
        ]
    return cells


def windows(horizon: int) -> tuple[int, ...]:
    """Return the ends of windows of 100 rounds, or of horizon / 20 if that is less."""
    window = min(WINDOW, max(1, horizon // 20))
    return tuple(sorted({*range(window, horizon + 1, window), horizon}))


@lru_cache(maxsize=4)
def prepared(name: str, data_dir: Path | None) -> Dataset:
    """Return a table of the catalogue, clipped and standardised.

    Parameters
    ----------
    name : str
        The name of the table.
    data_dir : Path or None
        A folder of CSV files.
    """
    return datasets.load(name, data_dir=data_dir).prepared()


@lru_cache(maxsize=8)
def recipe(table: Table, rewards: Rewards, data_dir: Path | None) -> RandomDatasetWorld:
    """Return the recipe of a table's worlds; logistic rewards are fitted once for all studies.

    Parameters
    ----------
    table : Table
        The table.
    rewards : {"logistic", "linear"}
        The kind of rewards; see `RandomDatasetWorld`.
    data_dir : Path or None
        A folder of CSV files.
    """
    return RandomDatasetWorld(prepared(table.name, data_dir), table.dim, rewards=rewards)


def logistic_cells(settings: Settings) -> list[Cell]:
    """Return the cells of both data sets, with rewards x'mu."""
    return _cells(settings, ("logistic",))


def both_cells(settings: Settings) -> list[Cell]:
    """Return the cells of both data sets, with 0/1 rewards and with rewards x'mu."""
    return _cells(settings, ("linear", "logistic"))


def rate_curves(table: xr.Dataset) -> xr.DataArray:
    """Return the share of right answers in each window, for the policy and for the oracle."""
    oracle = table.best_correct.expand_dims(policy=[ORACLE])
    return rate_between(xr.concat([table.correct, oracle], "policy"))


def rate_figure(table: xr.Dataset) -> Figure:
    """Draw a panel for each data set and reward: dots of 100 patients each, and bands of 1,000."""
    figure, axes = _panels(table, same_y="col")
    rates, wide = rate_curves(table), rate_curves(_wide(table))
    for one, cell in zip(axes, by_reward(table), strict=True):
        for policy in (ORACLE, THOMPSON):
            where = {"cell": cell, "policy": policy}
            _dots(one, rates.sel(where), wide.sel(where), policy)
        one.fill_between([], [], [], color="0.4", alpha=0.3, linewidth=0, label="95% band")
        plots.dressed(one, "", heading(table, cell))
    for one in axes:  # after all are drawn, since the panels of a column share their range
        one.autoscale(axis="y")
        one.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        one.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    return panels.finished(figure, axes, ylabel="rate of correct decisions", xlabel=_rounds(table))


def _wide(table: xr.Dataset) -> xr.Dataset:
    """Return the table at the ends of wide windows."""
    last = table.sizes["time"] - 1
    ends = list(range(WINDOWS_OF_BAND - 1, last + 1, WINDOWS_OF_BAND))
    return table.isel(time=ends if ends and ends[-1] == last else [*ends, last])


def rate_verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide whether the final rate equals the oracle's up to a margin."""
    ends = table.isel(time=[int(0.9 * table.sizes["time"]) - 1, -1])
    last = rate_curves(ends).isel(time=-1)
    behind = {
        title(table, cell): estimate(
            (last.sel(policy=ORACLE) - last.sel(policy=THOMPSON)).sel(cell=cell)
        )
        for cell in table.cell.values
    }
    return [
        counted(
            "the final rate of correct decisions equals the oracle's",
            {name: within(gap, RATE_MARGIN) for name, gap in behind.items()},
            f"The oracle's less Thompson sampling's over the last tenth, at most {RATE_MARGIN:.0%} "
            "in size: "
            + ", ".join(f"{gap.percent} for {name}" for name, gap in behind.items())
            + ".",
        )
    ]


def regret_figure(table: xr.Dataset) -> Figure:
    """Draw a panel for each data set and reward."""
    curves = normalized_regret(table)
    highest = curves.max(("policy", "replication", "time")).values.tolist()
    figure, axes = _panels(table, same_y=panels.comparable(highest))
    for one, cell in zip(axes, by_reward(table), strict=True):
        plots.curves(curves.sel(cell=cell), "", title=heading(table, cell), axes=one)
    return panels.finished(figure, axes, ylabel=plots.NORMALIZED, xlabel=_rounds(table))


def regret_verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide whether regret grows at most like (log t)^2 for logistic rewards, and faster for 0/1.

    The linear model is misspecified for 0/1 rewards.
    """
    regrets, limit = table["regret"].isel(policy=0), POWER + POWER_MARGIN
    kinds = {
        kind: {
            title(table, cell): power_of_log(regrets.sel(cell=cell))
            for cell in table.cell.values[table.rewards.values == kind]
        }
        for kind in ("logistic", "linear")
    }
    logistic, linear = kinds["logistic"], kinds["linear"]
    return [
        counted(
            "logistic rewards: regret grows at most like (log t)^2",
            {name: at_most(power, limit) for name, power in logistic.items()},
            f"Power of log t: {listed(logistic)}; the limit is {limit:g}.",
        ),
        counted(
            "0/1 rewards: regret grows faster than (log t)^2",
            {name: at_least(power, limit) for name, power in linear.items()},
            f"Power of log t: {listed(linear)}; it must be at least {limit:g}.",
        ),
    ]


def _panels(table: xr.Dataset, *, same_y: bool | Literal["col"]) -> tuple[Figure, list[Axes]]:
    return panels.panels(table.sizes["cell"] // 2, 2, same_y=same_y)


def by_reward(table: xr.Dataset) -> list[str]:
    """Return the cells in the paper's order: a row of panels for each kind of reward."""
    kinds, cells = table.rewards.values, table.cell.values
    return [cell for kind in ("linear", "logistic") for cell in cells[kinds == kind]]


def title(table: xr.Dataset, cell: str) -> str:
    """Return the data set and the rewards of a cell, in words.

    Parameters
    ----------
    table : Dataset
        The table of the study.
    cell : str
        The name of the cell.
    """
    one = table.sel(cell=cell)
    kind = "0/1" if one.rewards == "linear" else "logistic"
    name, paper = TITLES[str(one.data.values)]
    return f"{name}{' (stand-in)' if paper else ''}, {kind} rewards"


def heading(table: xr.Dataset, cell: str) -> str:
    """Return the title of a panel; for a stand-in it names the table that is replaced.

    Parameters
    ----------
    table : Dataset
        The table of the study.
    cell : str
        The name of the cell.
    """
    _, paper = TITLES[str(table.data.sel(cell=cell).values)]
    name = title(table, cell)
    return name.replace(" (stand-in)", "") + f"\n(stand-in for {paper})" if paper else name


def _rounds(table: xr.Dataset) -> str:
    """Return the label of rounds: the rows of a stand-in need not be patients."""
    return "rounds" if any(TITLES[name][1] for name in table.data.values) else "patients"


def _dots(axes: Axes, rates: xr.DataArray, wide: xr.DataArray, name: str) -> None:
    """Draw a pale dot for every window, and the mean of wide windows with its band."""
    summary, colour = summarize(wide), plots.colour(name)
    axes.plot(_middles(rates), rates.mean("replication"), "o", color=colour, ms=1.6, alpha=0.3)
    axes.plot(_middles(wide), summary["mean"], color=colour, linewidth=1.2, label=name)
    axes.fill_between(_middles(wide), summary.low, summary.high, color=colour, alpha=0.2, lw=0)


def _middles(rates: xr.DataArray) -> xr.DataArray:
    """Return the middle of each window; the time of a window is its end."""
    middles: xr.DataArray = (rates.time + rates.time.shift(time=1, fill_value=0)) / 2
    return middles


SETTING = (
    "Rows drawn with replacement, a new 0/1 sensing matrix in each replication, Thompson "
    "sampling with v = R."
)

RATE_RULE = (
    f"The oracle's rate less Thompson sampling's over the last tenth of the rounds must be at most "
    f"{RATE_MARGIN:.0%} in size: two patients of a hundred."
)

NOTES = (
    "Contexts of real patients are not normal. The best linear prediction from y is then not the "
    "expectation given y, and the fit of a policy to the rounds in which it chose an arm may "
    "differ from the fit of the oracle to all rounds: part of the regret can be linear for any "
    "rewards. The study variants tests that."
)

FIG4 = Study(
    name="fig4",
    title="Correct decisions on real data",
    claim="Thompson sampling, which learns only from the rewards of its own decisions, finally "
    "decides as well as a regression on the whole data.",
    setting=SETTING + " Logistic rewards.",
    rule=RATE_RULE,
    choices=choices.REAL,
    cells=logistic_cells,
    curves=rate_curves,
    figure=rate_figure,
    verdicts=rate_verdicts,
    data=TABLES,
    worst=False,
)

FIG5 = Study(
    name="fig5",
    title="Correct decisions under both rewards",
    claim="The same holds with rewards of 1 for a correct decision and 0 for a wrong one.",
    setting=SETTING + " 0/1 and logistic rewards.",
    rule=RATE_RULE,
    choices=choices.REAL,
    cells=both_cells,
    curves=rate_curves,
    figure=rate_figure,
    verdicts=rate_verdicts,
    data=TABLES,
    worst=False,
)

FIG6 = Study(
    name="fig6",
    title="Regret on real data under both rewards",
    claim="Against the regression oracle, regret grows at most like (log t)^2 with logistic "
    "rewards, and a little faster with 0/1 rewards, which are not linear in the observation.",
    setting=SETTING + " 0/1 and logistic rewards.",
    rule=f"With logistic rewards the power of log t with which mean regret grows must be at most "
    f"{POWER + POWER_MARGIN:g}: halfway between the claim, 2, and 2.5, which must be refused. "
    "With 0/1 rewards it must be at least that.",
    choices=choices.REAL,
    cells=both_cells,
    curves=normalized_regret,
    figure=regret_figure,
    verdicts=regret_verdicts,
    data=TABLES,
    notes=NOTES,
)
