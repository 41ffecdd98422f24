"""What a study is: cells to simulate, a table that comes out, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from keyhole.plots import settled
from keyhole.policies import Policy
from keyhole.simulation import WorldRecipe
from keyhole.summary import over_log_squared
from keyhole.worlds import World

THOMPSON = "Thompson sampling"
SYMBOLS = {"observation_dim": "d_y", "context_dim": "d_x", "n_arms": "N"}


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
        return ", ".join(f"{SYMBOLS.get(k, k)} = {value}" for k, value in self.where.items())


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in the table, and the numbers that say so."""

    claim: str
    holds: bool
    evidence: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """A figure of the paper, or one of our own.

    `curves` are what its figure shows, over at least (cell, replication, time).
    """

    name: str
    title: str
    claim: str
    setting: str
    cells: Callable[[Settings], list[Cell]]
    curves: Callable[[xr.Dataset], xr.DataArray]
    figure: Callable[[xr.Dataset], Figure]
    verdicts: Callable[[xr.Dataset], list[Verdict]]
    data: tuple[str, ...] = ()
    notes: str = ""
    worst: bool = True  # whether the largest curve is the worst one


def sized(settings: Settings, replications: int = 50) -> dict[str, Any]:
    """The sizes and the seed of a cell: the paper's, a tenth of that for a quick look, or given."""
    horizon, replications = (1_000, 10) if settings.quick else (10_000, replications)
    return {
        "horizon": horizon if settings.horizon is None else settings.horizon,
        "replications": replications if settings.replications is None else settings.replications,
        "seed": settings.seed,
    }


def regret(table: xr.Dataset) -> xr.DataArray:
    """Cumulative regret."""
    return table["regret"]


def normalized_regret(table: xr.Dataset) -> xr.DataArray:
    """Regret over (log t)^2, from where that says something."""
    return settled(over_log_squared(table["regret"]))
