"""The parts of a study: cells to simulate, the table of results, and the claims decided from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from keyhole.lab.evidence import Verdict
from keyhole.lab.plots import drop_burn_in
from keyhole.lab.simulation import Plan, Playable, WorldRecipe, simulate
from keyhole.lab.summary import over_log_squared
from keyhole.lab.worlds import World

THOMPSON = "Thompson sampling"
SYMBOLS = {"dim": "d_y", "context_dim": "d_x", "n_arms": "N"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The sizes, the seed and the data of a run; None is the study's own choice.

    Parameters
    ----------
    horizon, replications : int, optional
        The sizes of every cell. By default the study's.
    seed : int, default 1
        The root seed of all random numbers.
    quick : bool, default False
        Use a tenth of the study's horizon, and ten replications.
    data_dir : Path, optional
        A folder of CSV files that is searched before the cache and OpenML.
    absent : frozenset of str, default frozenset()
        The names of unavailable data sets. Studies run on their stand-ins instead.
    """

    horizon: int | None = None
    replications: int | None = None
    seed: int = 1
    quick: bool = False
    data_dir: Path | None = None
    absent: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Table:
    """A data set of a study, and its stand-in if it is unavailable.

    Parameters
    ----------
    name : str
        Its name in the catalogue of `keyhole.lab.datasets`.
    title : str
        Its name on figures and pages.
    dim : int
        The length of an observation of a row.
    sizes : str
        The numbers of features, observed numbers and arms, in words.
    stand_in : Table, optional
        A table that is always available.
    """

    name: str
    title: str
    dim: int
    sizes: str
    stand_in: Table | None = None

    def used(self, settings: Settings) -> Table:
        """Return this table, or its stand-in if this one is absent."""
        if self.stand_in is not None and self.name in settings.absent:
            return self.stand_in
        return self


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One simulation of a study.

    Parameters
    ----------
    where : mapping of str to str, int or float
        The coordinates of the cell in the table.
    world : World or WorldRecipe
        The world, or a recipe that draws one in each replication.
    policies : mapping of str to Playable
        The policies by name.
    horizon : int
        The number of rounds.
    replications : int
        The number of replications.
    seed : int
        The seed of the simulation.
    checkpoints : tuple of int, optional
        The rounds at which results are recorded. By default those of `simulate`.
    """

    where: Mapping[str, str | int | float]
    world: World | WorldRecipe
    policies: Mapping[str, Playable]
    horizon: int
    replications: int
    seed: int
    checkpoints: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return ", ".join(f"{SYMBOLS.get(k, k)} = {value}" for k, value in self.where.items())

    def identity(self) -> dict[str, Any]:
        """Return the properties that identify the cell's replications, for any number of them."""
        plan = Plan.of(self.world, self.policies, self.horizon, self.seed, self.checkpoints)
        return plan.described

    def results(
        self,
        kept: Path,
        *,
        executor: Executor | None,
        workers: int | None,
        progress: Callable[[int], None],
    ) -> xr.Dataset:
        """Simulate the cell, or go on from the replications that are finished.

        Parameters
        ----------
        kept : Path
            The folder of finished replications.
        executor : Executor, optional
            Passed to `simulate`.
        workers : int, optional
            Passed to `simulate`.
        progress : callable
            Receives the number of finished rounds.

        Returns
        -------
        Dataset
            The result of `simulate`.
        """
        return simulate(
            self.world,
            self.policies,
            horizon=self.horizon,
            replications=self.replications,
            seed=self.seed,
            checkpoints=self.checkpoints,
            executor=executor,
            workers=workers,
            resume=kept,
            progress=progress,
        )


@dataclass(frozen=True)
class Choice:
    """A setting that a study needs and the paper leaves open.

    Parameters
    ----------
    what : str
        The name of the setting.
    paper : str
        The paper's statement about it.
    ours : str
        The study's choice.
    """

    what: str
    paper: str
    ours: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """A figure of the paper, or one of our own.

    Parameters
    ----------
    name : str
        The name of the study.
    title : str
        The title of the study.
    claim : str
        The claim of the study.
    setting : str
        The setting of the simulation. Statements about the data come from the tables in use.
    rule : str
        The rule that decides the claims, with every margin and its reason.
    choices : tuple of Choice
        The settings that the paper leaves open.
    cells : callable
        Returns the cells for given `Settings`.
    curves : callable
        Returns the curves of the figure from the table, over at least (cell, replication, time).
    figure : callable
        Draws the figure from the table.
    verdicts : callable
        Decides the claims from the table.
    data : tuple of Table, default ()
        The data sets of the study.
    notes : str, default ""
        Remarks on the result.
    worst : bool, default True
        Whether the largest curve is the worst one.
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
    worst: bool = True

    def described(self, settings: Settings) -> str:
        """Return the data in use and the setting, as sentences."""
        tables = [table.used(settings) for table in self.data]
        # Tables of one data set may share a title, and are then described once.
        sizes = dict.fromkeys(f"{one.title}: {one.sizes}." for one in tables)
        return " ".join([*sizes, self.setting])

    def stand_ins(self, settings: Settings) -> dict[str, str]:
        """Return the title of each absent table with the title of its stand-in."""
        pairs = [(table, table.used(settings)) for table in self.data]
        return {table.title: used.title for table, used in pairs if used is not table}


def sized(settings: Settings, replications: int = 50) -> dict[str, Any]:
    """Return the horizon, the replications and the seed of a cell.

    They are those of the settings if given. Otherwise they are the study's, or for a quick look a
    tenth of its horizon and ten replications.

    Parameters
    ----------
    settings : Settings
        The settings of the run.
    replications : int, default 50
        The study's own number of replications.

    Returns
    -------
    dict
        The keys `horizon`, `replications` and `seed`.
    """
    horizon, replications = (1_000, 10) if settings.quick else (10_000, replications)
    return {
        "horizon": horizon if settings.horizon is None else settings.horizon,
        "replications": replications if settings.replications is None else settings.replications,
        "seed": settings.seed,
    }


def regret(table: xr.Dataset) -> xr.DataArray:
    """Return cumulative regret."""
    return table["regret"]


def normalized_regret(table: xr.Dataset) -> xr.DataArray:
    """Return regret over (log t)^2, without the burn-in."""
    return drop_burn_in(over_log_squared(table["regret"]))
