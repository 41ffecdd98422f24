"""fig1 and fig2: regret and estimation for observations shorter and longer than the context."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from keyhole.core import ThompsonSampling
from keyhole.lab import plots
from keyhole.lab.evidence import Verdict, at_most, counted, power_of_log, rate_of_decay
from keyhole.lab.studies import choices, panels
from keyhole.lab.studies.study import (
    THOMPSON,
    Cell,
    Settings,
    Study,
    normalized_regret,
    sized,
)
from keyhole.lab.summary import times_root
from keyhole.lab.worlds import LinearWorld, RandomLinearWorld

DIMENSIONS = (10, 20, 40, 80)
POLICY = {THOMPSON: ThompsonSampling(v="oracle")}
# Halfway between (log t)^2, the claim, and (log t)^2.5, which must be refused.
POWER, POWER_MARGIN = 2.0, 0.25
# Halfway between t^-0.5, the claim, and t^-0.4, which must be refused.
RATE, RATE_MARGIN = -0.5, 0.05
# Errors are plotted from this round on (a twentieth of a shorter horizon). Earlier errors are those
# of the prior, and their scale hides the rest.
FIRST_ROUND = 500


def regret_cells(settings: Settings) -> list[Cell]:
    """Return a cell for each pair of dimensions, with a new instance in each replication."""
    dimensions = (10, 40) if settings.quick else DIMENSIONS
    return [
        Cell(
            where={"dim": dy, "context_dim": dx},
            world=RandomLinearWorld(n_arms=5, context_dim=dx, dim=dy),
            policies=POLICY,
            **sized(settings),
        )
        for dy in dimensions
        for dx in dimensions
    ]


def regret_figure(table: xr.Dataset) -> Figure:
    """Draw a panel for each dim, and a line for each context_dim."""
    dimensions = np.unique(table.dim)
    figure, axes = panels.panels(len(dimensions) // 2, 2, same_y=True)
    curves = normalized_regret(table).isel(policy=0)
    for one, dy in zip(axes, dimensions, strict=True):
        chosen = curves.isel(cell=(table.dim == dy).values)
        lines = chosen.assign_coords(cell=[f"$d_x = {dx}$" for dx in chosen.context_dim.values])
        plots.curves(lines, "", by="cell", title=f"$d_y = {dy}$", axes=one)
    return panels.finished(figure, axes, ylabel=plots.NORMALIZED)


def regret_verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide whether mean regret grows no faster than (log t)^2 for every pair."""
    regrets = table["regret"].isel(policy=0)
    powers = {str(cell): power_of_log(regrets.sel(cell=cell)) for cell in table.cell.values}
    highest = max(powers, key=lambda name: powers[name].high)
    return [
        counted(
            "mean regret grows no faster than (log t)^2 for every pair of dimensions",
            {name: at_most(power, POWER + POWER_MARGIN) for name, power in powers.items()},
            f"Power of log t in the last nine tenths of the rounds: the highest is "
            f"{powers[highest]} for {highest}; the limit is {POWER + POWER_MARGIN:g}.",
        )
    ]


def error_cells(settings: Settings) -> list[Cell]:
    """Return a cell for each pair of dimensions, with one instance for all replications.

    An arm is then the same in every replication.
    """
    sizes = sized(settings, 200)
    return [
        Cell(
            where={"context_dim": dx, "dim": 20},
            world=LinearWorld.random(n_arms=5, context_dim=dx, dim=20, seed=sizes["seed"]),
            policies=POLICY,
            **sizes,
        )
        for dx in (10, 20, 40)
    ]


def error_curves(table: xr.Dataset) -> xr.DataArray:
    """Return sqrt(t) ||mean - eta|| of each arm."""
    return times_root(table.error)


def error_figure(table: xr.Dataset) -> Figure:
    """Draw a panel for each pair of dimensions, and a line for each arm."""
    figure, axes = panels.panels(1, 3, same_y=True)
    curves = error_curves(table).isel(policy=0).assign_coords(arm=table.arm.values + 1)
    curves = curves.sel(time=curves.time >= min(FIRST_ROUND, int(curves.time[-1]) // 20))
    for one, cell in zip(axes, table.cell.values, strict=True):
        dx = int(table.context_dim.sel(cell=cell))
        title = f"$d_x = {dx},\\ d_y = 20$"
        plots.curves(curves.sel(cell=cell), "", by="arm", worst=None, title=title, axes=one)
    axes[0].set_ylim(0, 1.1 * float(curves.mean("replication").max()))
    return panels.finished(figure, axes, ylabel=plots.ERROR)


def error_verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide whether the mean error of every arm falls at least as fast as 1 / sqrt(t)."""
    errors = table["error"].isel(policy=0)
    rates = {
        f"{cell}, arm {arm + 1}": rate_of_decay(errors.sel(cell=cell, arm=arm))
        for cell in table.cell.values
        for arm in table.arm.values
    }
    slowest = max(rates, key=lambda name: rates[name].high)
    return [
        counted(
            "the error of every arm falls at least as fast as t^-1/2, with d_y above and below d_x",
            {name: at_most(rate, RATE + RATE_MARGIN) for name, rate in rates.items()},
            f"Power of t in the last nine tenths of the rounds: the slowest is {rates[slowest]} "
            f"for {slowest}; the limit is {RATE + RATE_MARGIN:g}.",
        )
    ]


FIG1 = Study(
    name="fig1",
    title="Regret for pairs of dimensions",
    claim="Regret grows no faster than (log t)^2, whatever the dimensions of context and "
    "observation.",
    setting="5 arms; d_x and d_y in 10, 20, 40, 80 (in a quick look 10 and 40); a new instance in "
    "each replication; Thompson sampling with v = R.",
    rule=f"The power of log t with which mean regret grows must be at most "
    f"{POWER + POWER_MARGIN:g}: halfway between the claim, 2, and 2.5, which must be refused.",
    choices=choices.FIGURE_1,
    cells=regret_cells,
    curves=normalized_regret,
    figure=regret_figure,
    verdicts=regret_verdicts,
    notes="The power is that of the gain per unit of log t, so that the regret of the first rounds "
    "does not count. They last longest with d_x = 80 and d_y = 10: most of the reward is noise "
    "given the observation.",
)

FIG2 = Study(
    name="fig2",
    title="Estimation errors of five arms",
    claim="Each arm's parameter is learned at the rate 1 / sqrt(t), in all rounds and not only in "
    "those in which the arm is pulled.",
    setting="5 arms, d_y = 20, d_x in 10, 20, 40; one instance for each; Thompson sampling with "
    "v = R.",
    rule=f"The power of t with which an arm's mean error falls must be at most "
    f"{RATE + RATE_MARGIN:g}: halfway between the claim, -0.5, and -0.4, which must be refused.",
    choices=choices.FIGURE_2,
    cells=error_cells,
    curves=error_curves,
    figure=error_figure,
    verdicts=error_verdicts,
)
