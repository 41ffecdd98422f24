"""Replay of a randomised log: the value that a learner would have earned, by rejection.

A learner is offered the patients of the log one by one. If it chooses the arm that the patient was
given, the reward counts and is learned; otherwise the patient is passed over. Arms were given with
equal probability whatever the patient, so the rounds that count are distributed as if the learner
had decided (Li et al., 2011).

Values are means weighted by the patients' weights w, V = sum w r / sum w. The weight of a fixed arm
is 1 for the patients who were given it: inverse propensity, self-normalised. The weight of a
learner is the share of random orders in which the patient counts. Standard errors are over
patients, sqrt(sum (w (r - V))^2) / sum w; that of a learner also has the error of averaging over
finitely many orders.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from keyhole.core import Draws, Floats, Ints, Learner, Streams, child_seed, seed_sequence
from keyhole.lab.studies.study import Cell
from keyhole.lab.worlds import digest

Matches = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Log:
    """A log of patients whose arms were drawn uniformly.

    Parameters
    ----------
    name : str
        The name of the table.
    features : ndarray of shape (patients, dim)
        The features of each patient before treatment.
    arms : ndarray of int of shape (patients,)
        The arm that each patient was given.
    rewards : ndarray of shape (patients,)
        The outcome under that arm.
    n_arms : int
        The number of arms.
    before : ndarray of shape (patients,), optional
        The measurement before treatment, if rewards are its change.
    """

    name: str
    features: Floats
    arms: Ints
    rewards: Floats
    n_arms: int
    before: Floats | None = None

    @property
    def dim(self) -> int:
        """The number of features."""
        return int(self.features.shape[1])

    @property
    def repeats(self) -> dict[str, Floats]:
        """The measurement before treatment by its name, if there is one."""
        return {} if self.before is None else {"before": self.before}

    def describe(self) -> dict[str, Any]:
        """Return the sizes of the log, and a digest of its content."""
        return {
            "kind": type(self).__name__,
            "data": self.name,
            "patients": len(self.arms),
            "n_arms": self.n_arms,
            "dim": self.dim,
            "propensity": 1.0 / self.n_arms,
            "sha256": digest(self.features, self.arms, self.rewards, *self.repeats.values()),
        }


def replay(learner: Learner, log: Log, order: Ints, source: Streams) -> Matches:
    """Replay a log in one order, and return which of these patients count.

    Parameters
    ----------
    learner : Learner
        The learner, which begins anew.
    log : Log
        The log.
    order : ndarray of int
        The patients, in the order in which they are offered.
    source : Streams
        Random streams; all learners have the same numbers.

    Returns
    -------
    ndarray of bool
        For each patient of the order, whether the learner chose the arm that was given.
    """
    state = learner.start(log.n_arms, log.dim)
    normals = source["policy"].standard_normal((len(order), log.n_arms))
    uniforms = source["coin"].random((len(order), 2))
    counts = np.zeros(len(order), dtype=bool)
    for t, patient in enumerate(order.tolist()):
        y, given = log.features[patient], int(log.arms[patient])
        if learner.choose(state, y, Draws(normals[t], uniforms[t])).arm == given:
            learner.learn(state, given, y, float(log.rewards[patient]))
            counts[t] = True
    return counts


@dataclass(frozen=True, kw_only=True)
class ReplayCell(Cell):
    """A cell whose learners replay a log; a replication is a random order of its patients.

    Parameters
    ----------
    world : Log
        The log.
    policies : dict of str to Learner
        The learners by name.
    """

    world: Log  # type: ignore[assignment] # it is replayed, and nothing is drawn from it
    policies: dict[str, Learner]

    def identity(self) -> dict[str, Any]:
        """Return the properties that identify the result; see `Cell.identity`."""
        policies = {name: repr(policy) for name, policy in self.policies.items()}
        return {
            "log": self.world.describe(),
            "policies": policies,
            "horizon": self.horizon,
            "checkpoints": self.checkpoints,
            "seed": self.seed,
        }

    def results(
        self,
        kept: Path,
        *,
        executor: Executor | None,
        workers: int | None,
        progress: Callable[[int], None],
    ) -> xr.Dataset:
        """Replay the log in every order; see `Cell.results`. Nothing is kept.

        Parameters
        ----------
        kept : Path
            Not used.
        executor : Executor, optional
            What runs the orders; by default this thread.
        workers : int, optional
            Not used.
        progress : callable
            Receives the number of patients that were offered.

        Returns
        -------
        Dataset
            `value`, the mean reward of the patients that counted so far, and `learned`, their
            number, over (policy, replication, time); `weight` over (policy, patient); `arm_given`,
            `reward` and, if the log has it, `before` over patient.
        """
        del kept, workers
        numbers, run = range(self.replications), map if executor is None else executor.map
        orders, found = [], []
        for order, counts in run(partial(_one_order, self), numbers):
            orders.append(order)
            found.append(counts)
            progress(self.horizon)
        return self._dataset(np.array(orders), np.array(found))

    def _dataset(self, orders: Ints, counts: Matches) -> xr.Dataset:
        """Return the results of orders (replication, t) and counts (replication, policy, t)."""
        log, ends = self.world, np.array(self.checkpoints) - 1
        learned = counts.cumsum(axis=2)[:, :, ends]
        earned = (counts * log.rewards[orders][:, None]).cumsum(axis=2)[:, :, ends]
        with np.errstate(invalid="ignore"):  # no patient has counted yet: NaN
            value = earned / learned
        weight = np.zeros((len(self.policies), len(log.arms)))
        for order, one in zip(orders, counts, strict=True):
            weight[:, order] += one / len(orders)
        curve = ("replication", "policy", "time")
        return xr.Dataset(
            {
                "value": (curve, value),
                "learned": (curve, learned.astype(float)),
                "weight": (("policy", "patient"), weight),
                "arm_given": ("patient", log.arms),
                "reward": ("patient", log.rewards),
                **{name: ("patient", values) for name, values in log.repeats.items()},
            },
            coords={
                "policy": list(self.policies),
                "replication": np.arange(self.replications),
                "time": ends + 1,
            },
        )


def _one_order(cell: ReplayCell, number: int) -> tuple[Ints, Matches]:
    """Return the order of a replication, and which of its patients count for each learner."""
    seed = child_seed(seed_sequence(cell.seed), number)
    order = Streams(seed)["order"].permutation(len(cell.world.arms))[: cell.horizon]
    counts = [replay(one, cell.world, order, Streams(seed)) for one in cell.policies.values()]
    return order, np.array(counts)


class Value(NamedTuple):
    """The estimated value of a policy.

    Parameters
    ----------
    value : float
        The estimate.
    influence : ndarray of shape (patients,)
        The influence of each patient on it; the variance is the sum of squares.
    order_variance : float, default 0
        The variance of averaging over finitely many orders.
    """

    value: float
    influence: Floats
    order_variance: float = 0.0

    @property
    def error(self) -> float:
        """The standard error."""
        return float(np.sqrt((self.influence**2).sum() + self.order_variance))

    def less(self, other: Value) -> Value:
        """Return the difference to another value of the same patients."""
        variance = self.order_variance + other.order_variance
        return Value(self.value - other.value, self.influence - other.influence, variance)


def weighted(weights: Floats, rewards: Floats) -> Value:
    """Return the self-normalised mean of rewards (SNIPS, where weights are inverse propensities).

    Parameters
    ----------
    weights, rewards : ndarray of shape (patients,)
        The weight and the reward of each patient.
    """
    value = float(weights @ rewards / weights.sum())
    return Value(value, weights * (rewards - value) / weights.sum())


def inverse_propensity(weights: Floats, rewards: Floats) -> Value:
    """Return the plain mean of weighted rewards (IPS).

    Parameters
    ----------
    weights, rewards : ndarray of shape (patients,)
        The inverse propensity, 0 for the patients who were given another arm, and the reward.
    """
    terms = weights * rewards
    return Value(float(terms.mean()), (terms - terms.mean()) / len(terms))
