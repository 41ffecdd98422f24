"""Curves of known growth with the scatter of real replications, for verdicts to decide."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import xarray as xr

import keyhole as kh
from keyhole.lab.evidence import expected_worst
from keyhole.lab.studies import STUDIES, Cell, Settings
from keyhole.lab.studies.running import tabled

Growth = Callable[[np.ndarray], np.ndarray]


@cache
def full_size(name: str, place: int, absent: frozenset[str]) -> tuple[Cell, xr.Dataset]:
    """One cell of a study, simulated at full size."""
    cell = STUDIES[name].cells(Settings(absent=absent))[place]
    runs = kh.simulate(
        cell.world,
        cell.policies,
        horizon=cell.horizon,
        replications=cell.replications,
        seed=cell.seed,
        checkpoints=cell.checkpoints,
        progress=False,
    )
    return cell, runs


def real(name: str, places: Sequence[int], absent: frozenset[str] = frozenset()) -> xr.Dataset:
    """A table of some cells of a study at full size, for a test to change."""
    cells, runs = zip(*(full_size(name, place, absent) for place in places), strict=True)
    return tabled(list(cells), list(runs)).copy(deep=True)


def with_mean(values: xr.DataArray, growth: Growth) -> xr.DataArray:
    """The same relative scatter about another mean curve."""
    mean = values.mean("replication")
    grown = xr.DataArray(growth(values.time.values.astype(float)), dims="time")
    # At the first rounds a mean may be 0; verdicts begin later.
    return (values / mean.where(mean != 0.0, 1.0) * grown).transpose(*values.dims)


def with_worst(values: xr.DataArray, growth: Growth, size: int) -> xr.DataArray:
    """The same relative scatter about another expected worst curve, in each cell."""
    made = values.copy(deep=True)
    for cell in values.cell.values:
        curves = values.sel(cell=cell).transpose("replication", "time").values
        worst = expected_worst(curves, size)
        ratio = growth(values.time.values.astype(float)) / np.where(worst == 0.0, 1.0, worst)
        made.loc[{"cell": cell}] = xr.DataArray(curves * ratio, dims=("replication", "time"))
    return made
