"""The cells of the study `evaluation`: what is measured on each simulated or published log."""

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
from keyhole.evaluation import audit_log, evaluate, value_sequence
from keyhole.lab.studies import thompson_logs as logs
from keyhole.lab.studies.study import Cell

ESTIMATORS = {"minvar": "MinVar", "dr": "plain DR"}
METHODS = ("confidence sequence", "normal interval")
PROPENSITIES = ("exact", "100 draws", "1", "1/K")
# Looks of a confidence sequence, evenly spaced in log t, and the first of them.
N_LOOKS, FIRST_LOOK = 40, 50
# A doubly robust estimate with a good model would hide wrong weights, and so would IPS of rewards
# about 0: they are raised by this much.
RAISED = 2.0

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
        made = logs.clicks(self.world.draw(rng, self.horizon), rng)
        bounds, truth = [], []
        for name in self.policies:
            target = logs.targets(made.source)[name]
            sequence = value_sequence(made.log, target, looks=self.looks, check=False)
            normal = logs.normal_bounds(made, name, self.looks)
            bounds.append([(sequence.low, sequence.high), normal])
            truth.append(logs.running_value(made, name)[self.looks - 1])
        low, high = np.array(bounds).transpose(2, 1, 0, 3)
        return {"watched_low": low, "watched_high": high, "watched_truth": np.array(truth)}


@dataclass(frozen=True, kw_only=True)
class ControlsCell(LogsCell):
    """Intervals of IPS and the audit of each log, with its propensities and with wrong ones."""

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each variable of a log."""
        return dict.fromkeys(("covered", "objected", "objected_bare"), ("propensity",))

    @property
    def coords(self) -> dict[str, Any]:
        """The coordinates of these dimensions."""
        return {"propensity": list(PROPENSITIES)}

    def measure(self, rng: np.random.Generator) -> Measured:
        """Draw a log, and return the variables measured on it."""
        made = self.world.draw(rng, self.horizon)
        found = np.array([control(made, name, rng) for name in PROPENSITIES], dtype=float)
        return dict(zip(self.dims, found.T, strict=True))


def control(
    made: logs.SimulatedLog, propensity: str, rng: np.random.Generator
) -> tuple[bool, bool, bool]:
    """Return whether IPS covers uniform choices, and whether the audit objects to a log.

    The second audit is of the same log without means and widths.

    Parameters
    ----------
    made : SimulatedLog
        The log.
    propensity : str
        Which propensities the log is given, one of `PROPENSITIES`.
    rng : Generator
        Source of counted propensities.
    """
    log = made.log
    bare = {
        "arms": log.arms,
        "chosen": log.chosen,
        "probability": logged_as(propensity, log.probability, log.n_arms, rng),
        "reward": log.reward + RAISED,
    }
    scores = {"mean": log.mean, "width": log.width, "dispersion": 1.0, "epsilon": log.epsilon}
    scored = {**bare, **scores}
    [row] = evaluate(scored, "uniform", estimator="ips", min_size=0.0, check=False).rows
    truth = RAISED + logs.truth(made, "uniform")
    objected, bare_objected = (not audit_log(one).is_sound for one in (scored, bare))
    return row.low <= truth <= row.high, objected, bare_objected


def logged_as(propensity: str, exact: Floats, n_arms: int, rng: np.random.Generator) -> Floats:
    """Return propensities as other libraries log them.

    Parameters
    ----------
    propensity : str
        One of `PROPENSITIES`.
    exact : ndarray of shape (n,)
        The exact ones.
    n_arms : int
        Number of arms.
    rng : Generator
        Source of counted propensities.
    """
    if propensity == "exact":
        return exact
    if propensity == "100 draws":
        counted: Floats = np.maximum(rng.binomial(100, exact), 1) / 100.0
        return counted
    return np.full(len(exact), 1.0 if propensity == "1" else 1.0 / n_arms)
