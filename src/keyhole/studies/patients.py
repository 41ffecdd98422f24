"""fig4, fig5 and fig6: real data, each class an arm and one patient a round."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keyhole import datasets, plots
from keyhole.policies import ThompsonSampling
from keyhole.studies import panels
from keyhole.studies.evidence import SURE, Estimate, counted, doublings, estimate, surely_below
from keyhole.studies.study import (
    THOMPSON,
    Cell,
    Settings,
    Study,
    Table,
    Verdict,
    normalized_regret,
    sized,
)
from keyhole.summary import rate_between, summarize
from keyhole.tables import Dataset
from keyhole.worlds import RandomDatasetWorld

# The paper's data with the numbers that are seen (section 5), each with a table that comes with
# scikit-learn and serves where neither a folder nor OpenML has the paper's.
EYE_MOVEMENTS = Table(
    name="eye_movements",
    title="Eye movements",
    observation_dim=13,
    sizes="26 features seen as 13 numbers, 3 arms",
    # The table with the most rows (1,797) of those that have three classes or more.
    stand_in=Table(
        name="digits",
        title="Digits",
        observation_dim=32,
        sizes="64 pixels of handwritten digits seen as 32 numbers, 10 arms",
    ),
)
EEG = Table(
    name="eeg-eye-state",
    title="EEG eye state",
    observation_dim=10,
    sizes="14 features seen as 10 numbers, 2 arms",
    stand_in=Table(
        name="breast_cancer",
        title="Breast cancer",
        observation_dim=15,
        sizes="30 features seen as 15 numbers, 2 arms",
    ),
)
TABLES = (EYE_MOVEMENTS, EEG)
# The title of each table, and the title of the one that it stands in for.
TITLES = {one.name: (one.title, "") for one in TABLES} | {
    one.stand_in.name: (one.stand_in.title, one.title) for one in TABLES if one.stand_in is not None
}
ORACLE = "regression oracle"
# Rates are means over this many patients; rates this close at the end are called the same.
WINDOW, MARGIN = 100, 0.02


def _cells(settings: Settings, rewards: tuple[str, ...]) -> list[Cell]:
    sizes = sized(settings, 100)
    window = min(WINDOW, max(1, sizes["horizon"] // 20))
    times = sorted({*range(window, sizes["horizon"] + 1, window), sizes["horizon"]})
    cells = []
    for table in (paper.used(settings) for paper in TABLES):
        data = _prepared(table.name, settings.data_dir)
        cells += [
            Cell(
                where={"data": table.name, "rewards": kind},
                world=RandomDatasetWorld(
                    data,
                    table.observation_dim,
                    rewards=kind,  # type: ignore[arg-type]
                ),
                policies={THOMPSON: ThompsonSampling(v="told")},
                checkpoints=tuple(times),
                **sizes,
            )
            for kind in rewards
        ]
    return cells


@lru_cache(maxsize=4)
def _prepared(name: str, data_dir: Path | None) -> Dataset:
    return datasets.load(name, data_dir=data_dir).prepared()


def logistic_cells(settings: Settings) -> list[Cell]:
    """Both data sets, with rewards x'mu."""
    return _cells(settings, ("logistic",))


def both_cells(settings: Settings) -> list[Cell]:
    """Both data sets, with 0/1 rewards and with rewards x'mu."""
    return _cells(settings, ("linear", "logistic"))


def rate_curves(table: xr.Dataset) -> xr.DataArray:
    """The share of right answers among every 100 patients, of the policy and of the oracle."""
    oracle = table.best_correct.expand_dims(policy=[ORACLE])
    return rate_between(xr.concat([table.correct, oracle], "policy"))


def rate_figure(table: xr.Dataset) -> Figure:
    """A panel for each data set and reward: every 100 patients a dot."""
    figure, axes = _panels(table)
    rates = rate_curves(table)
    for one, cell in zip(axes, _by_reward(table), strict=True):
        _dots(one, rates.sel(cell=cell, policy=ORACLE), plots.COLOURS[1], ORACLE, hollow=True)
        _dots(one, rates.sel(cell=cell, policy=THOMPSON), plots.COLOURS[0], THOMPSON)
        one.fill_between([], [], [], color="0.4", alpha=0.3, linewidth=0, label="95% band")
        _dressed(one, table, cell)
    return panels.finished(figure, axes, ylabel="rate of correct decisions", xlabel=_rounds(table))


def rate_verdicts(table: xr.Dataset) -> list[Verdict]:
    """At the end the rate is the oracle's, up to a margin."""
    ends = table.isel(time=[int(0.9 * table.sizes["time"]) - 1, -1])
    last = rate_curves(ends).isel(time=-1)
    behind: dict[str, Estimate] = {
        _title(table, cell): estimate(
            (last.sel(policy=ORACLE) - last.sel(policy=THOMPSON)).sel(cell=cell)
        )
        for cell in table.cell.values
    }
    return [
        counted(
            "the rate of correct decisions comes to the oracle's",
            {name: surely_below(gap, MARGIN) for name, gap in behind.items()},
            f"The oracle's less Thompson sampling's over the last tenth, with {SURE:g} standard "
            f"errors added at most {MARGIN:.0%}: "
            + ", ".join(f"{gap} for {name}" for name, gap in behind.items())
            + ".",
        )
    ]


def regret_figure(table: xr.Dataset) -> Figure:
    """A panel for each data set and reward."""
    figure, axes = _panels(table)
    curves = normalized_regret(table)
    for one, cell in zip(axes, _by_reward(table), strict=True):
        plots.curves(curves.sel(cell=cell), "", title=_heading(table, cell), axes=one)
    return panels.finished(figure, axes, ylabel="regret / (log t)$^2$", xlabel=_rounds(table))


def regret_verdicts(table: xr.Dataset) -> list[Verdict]:
    """Logistic: at most (log t)^2. Linear, which is misspecified: a little faster."""
    curves = normalized_regret(table).isel(policy=0)
    rises = {cell: doublings(curves.sel(cell=cell)) for cell in table.cell.values}

    def verdict(kind: str, claim: str, wanted: bool) -> Verdict:
        cells = [cell for cell in rises if table.rewards.sel(cell=cell) == kind]
        return counted(
            claim,
            {_title(table, cell): rises[cell].flatten == wanted for cell in cells},
            "Rise of regret / (log t)^2 as the rounds double for the last time: "
            + ", ".join(f"{rises[cell]} for {_title(table, cell)}" for cell in cells)
            + ".",
        )

    return [
        verdict("logistic", "logistic rewards: regret grows at most like (log t)^2", True),
        verdict("linear", "0/1 rewards: regret grows faster than (log t)^2", False),
    ]


def _panels(table: xr.Dataset) -> tuple[Figure, list[Axes]]:
    return panels.panels(table.sizes["cell"] // 2, 2)


def _by_reward(table: xr.Dataset) -> list[str]:
    """Cells in the paper's order: a row of panels for each kind of reward."""
    kinds, cells = table.rewards.values, table.cell.values
    return [cell for kind in ("linear", "logistic") for cell in cells[kinds == kind]]


def _title(table: xr.Dataset, cell: str) -> str:
    one = table.sel(cell=cell)
    kind = "0/1" if one.rewards == "linear" else "logistic"
    title, paper = TITLES[str(one.data.values)]
    return f"{title}{' (stand-in)' if paper else ''}, {kind} rewards"


def _heading(table: xr.Dataset, cell: str) -> str:
    """The title of a panel; that of a stand-in says for what it stands in."""
    _, paper = TITLES[str(table.data.sel(cell=cell).values)]
    title = _title(table, cell)
    return title.replace(" (stand-in)", "") + f"\n(stand-in for {paper})" if paper else title


def _rounds(table: xr.Dataset) -> str:
    """What a round is: the rows of a stand-in need not be patients."""
    return "rounds" if any(TITLES[name][1] for name in table.data.values) else "patients"


def _dots(axes: Axes, rates: xr.DataArray, colour: str, name: str, *, hollow: bool = False) -> None:
    summary = summarize(rates)
    fill = "white" if hollow else colour
    axes.plot(
        summary.time,
        summary["mean"],
        "o",
        color=colour,
        linestyle="",
        label=name,
        markersize=3.2 if hollow else 2.4,
        markerfacecolor=fill,
        markeredgewidth=0.7,
    )
    axes.fill_between(
        summary.time, summary.low, summary.high, color=colour, alpha=0.18, linewidth=0
    )


def _dressed(axes: Axes, table: xr.Dataset, cell: str) -> None:
    plots.dressed(axes, "", _heading(table, cell))
    axes.autoscale(axis="y")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")


SETTING = (
    "Rows drawn with replacement, a new 0/1 sensing matrix in each replication, Thompson "
    "sampling with v = R."
)

NOTES = (
    "Contexts of real patients are not normal. The best linear prediction from y is then not the "
    "expectation given y, and what a policy fits to the rounds that it chose an arm in need not be "
    "what the oracle fits to all: part of the regret can be linear, whatever the rewards."
)

FIG4 = Study(
    name="fig4",
    title="Correct decisions on real data",
    claim="Learning from the rewards of its own decisions alone, Thompson sampling comes to decide "
    "as well as a regression on the whole data.",
    setting=SETTING + " Logistic rewards.",
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
    claim="The same with rewards of 1 for a correct decision and 0 for a wrong one.",
    setting=SETTING + " 0/1 and logistic rewards.",
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
    "rewards, and a little faster with 0/1 rewards, which are not linear in what is seen.",
    setting=SETTING + " 0/1 and logistic rewards.",
    cells=both_cells,
    curves=normalized_regret,
    figure=regret_figure,
    verdicts=regret_verdicts,
    data=TABLES,
    notes=NOTES,
)
