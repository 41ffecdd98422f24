"""What a study is: cells to simulate, a table that comes out, and the claims decided from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from keyhole.lab.plots import drop_burn_in
from keyhole.lab.simulation import Playable, WorldRecipe
from keyhole.lab.summary import over_log_squared
from keyhole.lab.worlds import World

THOMPSON = "Thompson sampling"
SYMBOLS = {"observation_dim": "d_y", "context_dim": "d_x", "n_arms": "N"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Sizes, seed and data of a run; None is the study's own choice.

    Parameters
    ----------
    horizon, replications : int, optional
        The sizes of every cell. By default the study's.
    seed : int
        The root of all randomness.
    quick : bool
        A tenth of the study's horizon, and ten replications.
    data_dir : Path, optional
        A folder of CSV files that is searched before the cache and OpenML.
    absent : frozenset of str
        The names of data sets that cannot be had. Studies run on their stand-ins instead.
    """

    horizon: int | None = None
    replications: int | None = None
    seed: int = 1
    quick: bool = False
    data_dir: Path | None = None
    absent: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Table:
    """A data set of a study, and the one that is used where it cannot be had.

    Parameters
    ----------
    name : str
        Its name in the catalogue of `keyhole.lab.datasets`.
    title : str
        Its name on figures and pages.
    observation_dim : int
        How many numbers are seen of each row.
    sizes : str
        Features, numbers seen and arms, for readers.
    stand_in : Table, optional
        A table that is always there.
    """

    name: str
    title: str
    observation_dim: int
    sizes: str
    stand_in: Table | None = None

    def used(self, settings: Settings) -> Table:
        """Return this table, or its stand-in where this one is absent."""
        if self.stand_in is not None and self.name in settings.absent:
            return self.stand_in
        return self


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One simulation of a study. `where` says which: the coordinates of its place in the table."""

    where: Mapping[str, str | int | float]
    world: World | WorldRecipe
    policies: Mapping[str, Playable]
    horizon: int
    replications: int
    seed: int
    checkpoints: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return ", ".join(f"{SYMBOLS.get(k, k)} = {value}" for k, value in self.where.items())


class Outcome(StrEnum):
    """What a run says of a claim. The burden of proof is on the claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "cannot tell"


@dataclass(frozen=True)
class Verdict:
    """A claim, what the table says of it, and the numbers that say so."""

    claim: str
    outcome: Outcome
    evidence: str


@dataclass(frozen=True)
class Choice:
    """Something that a study needs and the paper leaves open.

    Parameters
    ----------
    what : str
        What had to be chosen.
    paper : str
        What the paper says of it.
    ours : str
        What the study takes.
    """

    what: str
    paper: str
    ours: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """A figure of the paper, or one of our own.

    `curves` are what its figure shows, over at least (cell, replication, time). `setting` says how
    it is simulated; what is said of its data comes from the tables that are used. `rule` says how
    its claims are decided, with every margin and its reason. `choices` are what the paper leaves
    open.
    """

    name: str
    title: str
    claim: str
    setting: str
    rule: str
    choices: tuple[Choice, ...]
    cells: Callable[[Settings], list[Cell]]
    curves: Callable[[xr.Dataset], xr.DataArray]
    figure: Callable[[xr.Dataset], Figure]
    verdicts: Callable[[xr.Dataset], list[Verdict]]
    data: tuple[Table, ...] = ()
    notes: str = ""
    worst: bool = True  # whether the largest curve is the worst one

    def described(self, settings: Settings) -> str:
        """Return the data that are used and the setting, as sentences."""
        tables = [table.used(settings) for table in self.data]
        return " ".join([*(f"{one.title}: {one.sizes}." for one in tables), self.setting])

    def stand_ins(self, settings: Settings) -> dict[str, str]:
        """Return the title of each absent table with the title of its stand-in."""
        pairs = [(table, table.used(settings)) for table in self.data]
        return {table.title: used.title for table, used in pairs if used is not table}


def sized(settings: Settings, replications: int = 50) -> dict[str, Any]:
    """The sizes and the seed of a cell: the study's, a tenth of that for a quick look, or given."""
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
    return drop_burn_in(over_log_squared(table["regret"]))
