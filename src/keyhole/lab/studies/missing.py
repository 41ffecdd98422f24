"""`missing`: the cost of missing entries, by their share and by the way they are filled."""

from __future__ import annotations

from typing import get_args

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from keyhole.core import Fill, Learner, ThompsonSampling
from keyhole.lab import plots
from keyhole.lab.evidence import Verdict, all_of, at_least, estimate
from keyhole.lab.studies import choices, panels
from keyhole.lab.studies.study import THOMPSON, Cell, Settings, Study, regret, sized
from keyhole.lab.summary import summarize
from keyhole.lab.worlds import LinearWorld, MissingWorld

SHARES = (0.1, 0.3, 0.5)
FILLS: tuple[Fill, ...] = get_args(Fill)
WORDS = {
    "predict": "linear prediction",
    "mean": "running mean",
    "zero": "zero",
    "drop": "observation dropped",
}
# The means of entries; their standard deviations are about 2.
CENTRES = {0.0: "entries about zero", 10.0: "entries about 10"}


def cells(settings: Settings) -> list[Cell]:
    """Return a cell for each centre, filling and share, and for no missing entries.

    All cells have the same world.
    """
    sizes = sized(settings, replications=20)
    if settings.horizon is None:
        sizes["horizon"] = min(sizes["horizon"], 1000)
    world = LinearWorld.random(n_arms=5, context_dim=4, dim=12, seed=sizes["seed"])
    gaps = [("predict", 0.0), *((fill, share) for fill in FILLS for share in SHARES)]
    return [
        Cell(
            where={"centre": centre, "fill": fill, "share": share},
            world=MissingWorld(world, share=share, centre=centre),
            policies={THOMPSON: Learner(ThompsonSampling(), intercept=centre != 0.0, missing=fill)},
            **sizes,
        )
        for centre in CENTRES
        for fill, share in gaps
    ]


def _final(table: xr.Dataset, centre: float, fill: str, share: float) -> xr.DataArray:
    """Return the final regrets of one cell; with no missing entries all fillings are the same."""
    chosen = (table["centre"] == centre) & (table["share"] == share)
    if share > 0.0:
        chosen &= table["fill"] == fill
    cell = int(np.flatnonzero(chosen.values).item())
    return table["regret"].isel(cell=cell, policy=0, time=-1, drop=True)


def figure(table: xr.Dataset) -> Figure:
    """Draw final regret against the share of missing entries, with a line for each filling."""
    drawing, axes = panels.panels(1, 2, same_x=True)
    shares = (0.0, *SHARES)
    levels = table["regret"].isel(policy=0, time=-1).mean("replication")
    for ax, (centre, title) in zip(axes, CENTRES.items(), strict=True):
        plots.dressed(ax, "", "")
        ax.set_title(title, fontsize="medium")
        for colour, fill in zip(plots.COLOURS, FILLS, strict=False):
            last = xr.concat([_final(table, centre, fill, share) for share in shares], "share")
            summary = summarize(last.expand_dims("time"))
            means = summary["mean"].values.reshape(-1)
            low, high = summary.low.values.reshape(-1), summary.high.values.reshape(-1)
            ax.errorbar(
                shares,
                means,
                yerr=[means - low, high - means],
                fmt="o-",
                markersize=3.5,
                color=colour,
                label=WORDS[fill],
            )
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")
        ax.minorticks_off()
        ax.set_xticks(shares, [f"{share:.0%}" for share in shares])
        ax.margins(x=0.03)
        ax.set_ylim(float(levels.min()) / 1.3, float(levels.max()) * 1.3)
    rounds = int(table.time[-1])
    return panels.finished(
        drawing,
        axes,
        ylabel=f"regret after {rounds:,} rounds",
        xlabel="share of entries that are missing",
    )


def verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide whether prediction beats every other filling at every share of missing entries."""
    found = []
    for centre, where in CENTRES.items():
        for fill in FILLS[1:]:
            outcomes, said = [], []
            for share in SHARES:
                mine, theirs = (_final(table, centre, one, share) for one in ("predict", fill))
                saved = estimate(1.0 - mine / theirs)
                outcomes.append(at_least(saved, 0.0))
                said.append(f"{saved.percent} at {share:.0%}")
            found.append(
                Verdict(
                    f"with {where}, prediction has less regret than {WORDS[fill]}",
                    all_of(outcomes),
                    f"Regret saved, by the share of missing entries: {'; '.join(said)}.",
                )
            )
    return found


MISSING = Study(
    name="missing",
    title="The cost of missing entries",
    claim="Filling missing entries with their best linear prediction from the others costs less "
    "than dropping the observation, and than filling with zeros or with means.",
    setting="5 arms; 12 observed entries of a context of 4, so that entries predict each other; "
    "each entry is missing independently. Regret is against an observer of all entries. On the "
    "right 10 is added to every entry, and each arm has a constant.",
    rule="Prediction must save more than 0 at every share of missing entries.",
    choices=choices.OURS,
    cells=cells,
    curves=regret,
    figure=figure,
    verdicts=verdicts,
    notes="The running mean and covariance are over all observations of all arms. v is learned, "
    "because missing entries add noise.",
)
