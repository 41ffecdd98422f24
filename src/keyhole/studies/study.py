"""What a study is: cells to simulate, a table that comes out, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import xarray as xr
from matplotlib.figure import Figure

from keyhole.policies import Policy
from keyhole.simulation import WorldRecipe
from keyhole.worlds import World


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run is asked for; None is the study's own choice."""

    horizon: int | None = None
    replications: int | None = None
    seed: int = 1
    quick: bool = False
    data_dir: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One simulation of a study. `where` says which: the coordinates of its place in the table."""

    where: Mapping[str, str | int | float]
    world: World | WorldRecipe
    policies: Mapping[str, Policy]
    horizon: int
    replications: int
    seed: int
    checkpoints: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.where.items())


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in the table, and the numbers that say so."""

    claim: str
    holds: bool
    evidence: str


Cells: TypeAlias = Callable[[Settings], list[Cell]]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A figure of the paper, or one of our own.

    `curves` are what its figure shows, over at least (cell, replication, time).
    """

    name: str
    title: str
    claim: str
    setting: str
    cells: Cells
    curves: Callable[[xr.Dataset], xr.DataArray]
    figure: Callable[[xr.Dataset], Figure]
    verdicts: Callable[[xr.Dataset], list[Verdict]]
    data: tuple[str, ...] = ()
    notes: str = ""


def sized(settings: Settings, horizon: int, replications: int) -> dict[str, Any]:
    """The sizes and the seed of a cell: the paper's, a tenth of that for a quick look, or given."""
    if settings.quick:
        horizon, replications = horizon // 10, 10
    return {
        "horizon": settings.horizon or horizon,
        "replications": settings.replications or replications,
        "seed": settings.seed,
    }
