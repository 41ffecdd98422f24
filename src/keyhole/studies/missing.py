"""`missing`: what gaps in observations cost, by their share and by what is put in their place."""

from __future__ import annotations

from typing import get_args

import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from keyhole import plots
from keyhole.policies import ThompsonSampling
from keyhole.studies import panels
from keyhole.studies.evidence import SURE, estimate
from keyhole.studies.study import THOMPSON, Cell, Settings, Study, Verdict, regret, sized
from keyhole.summary import summarize
from keyhole.worlds import LinearWorld, MissingWorld
from keyhole.worlds.missing import Fill

SHARES = (0.0, 0.1, 0.2, 0.3, 0.5)
FILLS: tuple[Fill, ...] = get_args(Fill)
WORDS = {
    "predict": "linear prediction",
    "mean": "running mean",
    "zero": "zero",
    "drop": "observation dropped",
}


def cells(settings: Settings) -> list[Cell]:
    """Each share with each filling, in one world."""
    sizes = sized(settings, replications=20)
    if settings.horizon is None:
        sizes["horizon"] = min(sizes["horizon"], 2000)
    world = LinearWorld.random(n_arms=5, context_dim=4, observation_dim=12, seed=sizes["seed"])
    return [
        Cell(
            where={"fill": fill, "share": share},
            world=MissingWorld(world, share=share, fill=fill),
            policies={THOMPSON: ThompsonSampling()},
            **sizes,
        )
        for fill in FILLS
        for share in SHARES
    ]


def _final(table: xr.Dataset, fill: str) -> xr.DataArray:
    """Final regrets (cell, replication), a cell for each share."""
    chosen = table["regret"].isel(cell=(table["fill"] == fill).values, policy=0, time=-1)
    return chosen.transpose("cell", "replication")


def figure(table: xr.Dataset) -> Figure:
    """Final regret against the share of gaps, a line for each filling."""
    drawing, axes = panels.panels(1, 1, same_x=False)
    for colour, fill in zip(plots.COLOURS, FILLS, strict=False):
        last = _final(table, fill)
        summary = summarize(last.expand_dims("time"))
        means = summary["mean"].values.reshape(-1)
        low, high = summary.low.values.reshape(-1), summary.high.values.reshape(-1)
        plots.dressed(axes[0], "", "")
        axes[0].errorbar(
            last.share.values,
            means,
            yerr=[means - low, high - means],
            fmt="o-",
            markersize=3.5,
            color=colour,
            label=WORDS[fill],
        )
    axes[0].set_yscale("log")
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes[0].yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")
    axes[0].minorticks_off()
    axes[0].set_xticks(SHARES, [f"{share:.0%}" for share in SHARES])
    axes[0].margins(x=0.03)
    levels = table["regret"].isel(policy=0, time=-1).mean("replication")
    axes[0].set_ylim(float(levels.min()) / 1.3, float(levels.max()) * 1.3)
    rounds = int(table.time[-1])
    return panels.finished(
        drawing,
        axes,
        ylabel=f"regret after {rounds:,} rounds",
        xlabel="share of entries that are missing",
    )


def verdicts(table: xr.Dataset) -> list[Verdict]:
    """Prediction beats every other filling wherever anything is missing."""
    predicted = _final(table, "predict")
    found = []
    for fill in FILLS[1:]:
        other = _final(table, fill)
        wins, said = [], []
        for place, share in enumerate(SHARES):
            if share == 0.0:
                continue
            mine, theirs = (one.isel(cell=place, drop=True) for one in (predicted, other))
            saved = estimate(1.0 - mine / theirs)
            wins.append(saved.mean > SURE * saved.error)
            said.append(f"{saved} at {share:.0%}")
        found.append(
            Verdict(
                f"prediction has less regret than {WORDS[fill]}",
                all(wins),
                f"Regret saved, of gaps in so many entries: {'; '.join(said)}.",
            )
        )
    return found


MISSING = Study(
    name="missing",
    title="What missing entries cost",
    claim="Filling gaps with the best linear prediction from what is seen costs less than dropping "
    "the observation, and than filling with zeros or with means.",
    setting="5 arms, 12 entries seen of 4 hidden ones, so that they tell of each other; each entry "
    "is missing by itself. Regret is against an observer of the whole.",
    cells=cells,
    curves=regret,
    figure=figure,
    verdicts=verdicts,
    notes="The running mean and covariance are of all observations, pulled or not, and begin with "
    "none. v is learned: gaps add noise.",
)
