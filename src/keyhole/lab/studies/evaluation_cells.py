"""The cells of the study `evaluation` that measure intervals on each simulated log."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from keyhole.core import Floats, Ints, child_seed, seed_sequence
from keyhole.evaluation import evaluate, value_sequence
from keyhole.lab.studies import thompson_logs as logs
from keyhole.lab.studies.click_logs import clicks, normal_bounds, running_value
from keyhole.lab.studies.study import Cell

ESTIMATORS = {"minvar": "MinVar", "dr": "plain DR"}
METHODS = ("confidence sequence", "normal interval")
# Looks of a confidence sequence, evenly spaced in log t, and the first of them.
N_LOOKS, FIRST_LOOK = 40, 50

Measured = dict[str, Floats]


@dataclass(frozen=True, kw_only=True)
class LogsCell(Cell):
    """A cell that measures something on every simulated log; a replication is a log.

    Parameters
    ----------
    world : ThompsonLogs
        The recipe of the logs.
    policies : dict of str to str
        The targets by name, in words.
    """

    world: logs.ThompsonLogs  # type: ignore[assignment] # it draws whole logs, and no rounds
    policies: dict[str, str]  # type: ignore[assignment] # targets of an evaluation play nothing

    def identity(self) -> dict[str, Any]:
        """Return the properties that identify the result; see `Cell.identity`."""
        return {
            "kind": type(self).__name__,
            "logs": self.world.describe(),
            "policies": self.policies,
            "horizon": self.horizon,
            "seed": self.seed,
        }

    @property
    @abstractmethod
    def dims(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each variable of a log."""

    @property
    @abstractmethod
    def coords(self) -> dict[str, Any]:
        """The coordinates of these dimensions."""

    @abstractmethod
    def measure(self, rng: np.random.Generator) -> Measured:
        """Draw a log, and return the variables measured on it."""

    def generator(self, number: int) -> np.random.Generator:
        """Return the source of a log's random numbers, by its number.

        Cells have numbers of their own: their logs are counted together as independent ones.
        """
        root = child_seed(seed_sequence(self.seed), number)
        key = zlib.crc32(f"{self.world!r}, {self.horizon} rounds".encode())
        return np.random.default_rng(child_seed(root, key))

    def results(
        self,
        kept: Path,
        *,
        executor: Executor | None,
        workers: int | None,
        progress: Callable[[int], None],
    ) -> xr.Dataset:
        """Measure every log; see `Cell.results`. Nothing is kept.

        Parameters
        ----------
        kept : Path
            Not used.
        executor : Executor, optional
            What runs the logs; by default this thread.
        workers : int, optional
            Not used.
        progress : callable
            Receives the number of rounds of finished logs.

        Returns
        -------
        Dataset
            The variables of the cell, over `replication` and their own dimensions.
        """
        del kept, workers
        run = map if executor is None else executor.map
        found = []
        for one in run(partial(_one_log, self), range(self.replications)):
            found.append(one)
            progress(self.horizon)
        variables = {
            name: (("replication", *dims), np.array([one[name] for one in found]))
            for name, dims in self.dims.items()
        }
        return xr.Dataset(variables, {"replication": np.arange(self.replications), **self.coords})


def _one_log(cell: LogsCell, number: int) -> Measured:
    return cell.measure(cell.generator(number))


@dataclass(frozen=True, kw_only=True)
class IntervalsCell(LogsCell):
    """Estimates and nominal 95% intervals of each target by each estimator, beside the truth."""

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each variable of a log."""
        each = ("estimator", "policy", "time")
        return {"value": each, "low": each, "high": each, "truth": each[1:]}

    @property
    def coords(self) -> dict[str, Any]:
        """The coordinates of these dimensions."""
        names = list(ESTIMATORS.values())
        return {"estimator": names, "policy": list(self.policies), "time": [self.horizon]}

    def measure(self, rng: np.random.Generator) -> Measured:
        """Draw a log, and return the variables measured on it."""
        made = self.world.draw(rng, self.horizon)
        chosen = {name: logs.targets(made)[name] for name in self.policies}
        # No estimate is refused: the intervals of few effective rounds count, too.
        rows = evaluate(made.log, chosen, estimator=ESTIMATORS, min_size=0.0, check=False).rows
        found = np.array([(row.value, row.low, row.high) for row in rows])
        found = found.reshape(len(self.policies), len(ESTIMATORS), 3).transpose(2, 1, 0)
        truth = np.array([logs.truth(made, name) for name in self.policies])
        value, low, high = found[..., None]
        return {"value": value, "low": low, "high": high, "truth": truth[:, None]}


@dataclass(frozen=True, kw_only=True)
class WatchedCell(LogsCell):
    """Bounds of a confidence sequence and of normal intervals at many looks, beside the truth."""

    @property
    def looks(self) -> Ints:
        """The numbers of rounds at which bounds are looked at."""
        first = min(FIRST_LOOK, self.horizon)
        looks: Ints = np.unique(np.geomspace(first, self.horizon, N_LOOKS).astype(np.int64))
        return looks

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each variable of a log."""
        each = ("bounds", "watched", "look")
        return {"watched_low": each, "watched_high": each, "watched_truth": each[1:]}

    @property
    def coords(self) -> dict[str, Any]:
        """The coordinates of these dimensions."""
        return {"bounds": list(METHODS), "watched": list(self.policies), "look": self.looks}

    def measure(self, rng: np.random.Generator) -> Measured:
        """Draw a log, and return the variables measured on it."""
        made = clicks(self.world.draw(rng, self.horizon), rng)
        bounds, truth = [], []
        for name in self.policies:
            target = logs.targets(made.source)[name]
            sequence = value_sequence(made.log, target, looks=self.looks, check=False)
            normal = normal_bounds(made, name, self.looks)
            bounds.append([(sequence.low, sequence.high), normal])
            truth.append(running_value(made, name)[self.looks - 1])
        low, high = np.array(bounds).transpose(2, 1, 0, 3)
        return {"watched_low": low, "watched_high": high, "watched_truth": np.array(truth)}
