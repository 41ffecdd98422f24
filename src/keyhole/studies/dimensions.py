"""fig1 and fig2: regret and estimation for observations shorter and longer than the context."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from keyhole import plots
from keyhole.policies import ThompsonSampling
from keyhole.studies import panels
from keyhole.studies.evidence import SURE, at_most, counted, doublings, flattening
from keyhole.studies.study import THOMPSON, Cell, Settings, Study, Verdict, normalized_regret, sized
from keyhole.summary import times_root
from keyhole.worlds import LinearWorld, RandomLinearWorld

DIMENSIONS = (10, 20, 40, 80)
POLICY = {THOMPSON: ThompsonSampling(v="told")}
# A rise of the normalised error by less than this as the rounds double is called flat.
FLAT = 0.05


def regret_cells(settings: Settings) -> list[Cell]:
    """All pairs of dimensions, a new instance in each replication."""
    dimensions = (10, 40) if settings.quick else DIMENSIONS
    return [
        Cell(
            where={"observation_dim": dy, "context_dim": dx},
            world=RandomLinearWorld(n_arms=5, context_dim=dx, observation_dim=dy),
            policies=POLICY,
            **sized(settings),
        )
        for dy in dimensions
        for dx in dimensions
    ]


def regret_figure(table: xr.Dataset) -> Figure:
    """A panel for each observation_dim, a line for each context_dim."""
    dimensions = np.unique(table.observation_dim)
    figure, axes = panels.panels(len(dimensions) // 2, 2)
    curves = normalized_regret(table).isel(policy=0)
    for one, dy in zip(axes, dimensions, strict=True):
        chosen = curves.isel(cell=(table.observation_dim == dy).values)
        lines = chosen.assign_coords(cell=[f"$d_x = {dx}$" for dx in chosen.context_dim.values])
        plots.curves(lines, "", by="cell", title=f"$d_y = {dy}$", axes=one)
    return panels.finished(figure, axes, ylabel="regret / (log t)$^2$")


def regret_verdicts(table: xr.Dataset) -> list[Verdict]:
    """Normalised regret flattens."""
    curves = normalized_regret(table).isel(policy=0)
    rises = {str(cell): doublings(curves.sel(cell=cell)) for cell in table.cell.values}
    return [flattening("regret / (log t)^2 flattens for every pair of dimensions", rises)]


def error_cells(settings: Settings) -> list[Cell]:
    """One instance for each pair, so that an arm is the same in every replication."""
    sizes = sized(settings)
    return [
        Cell(
            where={"context_dim": dx, "observation_dim": 20},
            world=LinearWorld.random(
                n_arms=5, context_dim=dx, observation_dim=20, seed=sizes["seed"]
            ),
            policies=POLICY,
            **sizes,
        )
        for dx in (10, 20, 40)
    ]


def error_curves(table: xr.Dataset) -> xr.DataArray:
    """sqrt(t) |mean - eta| of each arm."""
    return times_root(table.error)


def error_figure(table: xr.Dataset) -> Figure:
    """A panel for each pair of dimensions, a line for each arm."""
    figure, axes = panels.panels(1, 3, same_y=True)
    curves = error_curves(table).isel(policy=0).assign_coords(arm=table.arm.values + 1)
    for one, cell in zip(axes, table.cell.values, strict=True):
        dx = int(table.context_dim.sel(cell=cell))
        title = f"$d_x = {dx},\\ d_y = 20$"
        plots.curves(curves.sel(cell=cell), "", by="arm", worst=None, title=title, axes=one)
    axes[0].set_ylim(0, 1.05 * float(curves.mean("replication").max()))
    return panels.finished(figure, axes, ylabel=r"$\sqrt{t}\ |\hat\eta_i - \eta_i|$")


def error_verdicts(table: xr.Dataset) -> list[Verdict]:
    """Normalised errors are flat as the rounds double, for every arm."""
    curves = error_curves(table).isel(policy=0)
    rises = {
        f"{cell}, arm {arm + 1}": doublings(curves.sel(cell=cell, arm=arm)).last
        for cell in table.cell.values
        for arm in table.arm.values
    }
    highest = max(rises, key=lambda name: rises[name].mean)
    return [
        counted(
            "sqrt(t) |error| flattens for every arm, whether dy is above or below dx",
            {name: at_most(rise, FLAT) for name, rise in rises.items()},
            f"Rise as the rounds double for the last time, at most {FLAT:.0%} within {SURE:g} "
            f"standard errors: the highest is {rises[highest]} for {highest}.",
        )
    ]


FIG1 = Study(
    name="fig1",
    title="Regret for pairs of dimensions",
    claim="Regret grows no faster than (log t)^2, whatever the dimensions of context and "
    "observation.",
    setting="5 arms; d_x and d_y in 10, 20, 40, 80 (in a quick look 10 and 40); a new instance in "
    "each replication; Thompson sampling with v = R.",
    cells=regret_cells,
    curves=normalized_regret,
    figure=regret_figure,
    verdicts=regret_verdicts,
)

FIG2 = Study(
    name="fig2",
    title="Estimation errors of five arms",
    claim="Each arm's parameter is learned at the rate 1 / sqrt(t), in all rounds and not only in "
    "those in which the arm is pulled.",
    setting="5 arms, d_y = 20, d_x in 10, 20, 40; one instance for each; Thompson sampling with "
    "v = R.",
    cells=error_cells,
    curves=error_curves,
    figure=error_figure,
    verdicts=error_verdicts,
)
