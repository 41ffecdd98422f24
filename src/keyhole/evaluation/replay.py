"""Replaying a posterior along a log: its scores before each round, and at checkpoints.

The posterior learns the logged rewards in the order of the log. With the logged prior it is the
posterior that made the decisions, if rewards came before the next decision; with another prior, or
on some of the coordinates, it is the one that these data would have led to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from keyhole.core import Floats, Ints, Policy, Posterior, Rule, Sharing, kernels
from keyhole.errors import InvalidValue
from keyhole.evaluation.logged import Logged
from keyhole.evaluation.scores import Scores


@dataclass(frozen=True)
class Model:
    """A posterior's recipe: how arms share parameters, the prior, and the coordinates it sees.

    Parameters
    ----------
    sharing : {"per-arm", "shared", "hybrid"}
        As in `Policy`.
    prior_precision : float
        As in `Policy`.
    columns : tuple of int, optional
        Coordinates of the observation; all by default.
    """

    sharing: Sharing
    prior_precision: float
    columns: tuple[int, ...] | None = None

    @classmethod
    def of_log(cls, log: Logged) -> Model:
        """Return the recipe of the logged posterior."""
        return cls(log.sharing, log.prior_precision)

    @classmethod
    def of_policy(cls, policy: Policy, columns: tuple[int, ...] | None = None) -> Model:
        """Return the recipe of a policy's posterior.

        Parameters
        ----------
        policy : Policy
            The policy.
        columns : tuple of int, optional
            Coordinates of the observation; all by default.
        """
        return cls(policy.sharing, policy.prior_precision, columns)


class Checkpoints(NamedTuple):
    """Rounds at which a posterior is looked at, and the earlier rounds whose contexts it sees."""

    starts: Ints  # (C,), increasing; block c has the rounds from starts[c] to the next start
    contexts: Ints  # (m,), rounds before the first start, then those before the second, ...
    counts: Ints  # (C,), how many of them each checkpoint has

    @classmethod
    def plan(cls, n: int, *, n_checkpoints: int = 50, n_contexts: int = 500) -> Checkpoints:
        """Return checkpoints that grow geometrically, with evenly spread earlier rounds.

        Parameters
        ----------
        n : int
            Number of rounds.
        n_checkpoints, n_contexts : int
            Largest number of checkpoints, and of contexts at each.
        """
        starts = np.unique(np.geomspace(1, max(n, 1), n_checkpoints + 1).astype(np.int64))
        starts = starts[starts < n]
        spread = [
            np.arange(start)
            if start <= n_contexts
            else np.linspace(0, start - 1, n_contexts).astype(np.int64)
            for start in starts.tolist()
        ]
        contexts = np.concatenate([np.empty(0, np.int64), *spread])
        return cls(starts, contexts, np.minimum(starts, n_contexts))

    @classmethod
    def of(cls, starts: Ints, contexts: Sequence[Ints]) -> Checkpoints:
        """Return checkpoints from a list of contexts for each.

        Parameters
        ----------
        starts : ndarray of int of shape (C,)
            The rounds.
        contexts : sequence of C arrays
            The earlier rounds of each.
        """
        joined = np.concatenate([np.empty(0, np.int64), *contexts])
        return cls(starts, joined, np.array([len(one) for one in contexts], dtype=np.int64))

    @property
    def firsts(self) -> Ints:
        """Place of each checkpoint's first context, (C,)."""
        return np.cumsum(self.counts) - self.counts


class Replayed(NamedTuple):
    """Scores before every round, and mean and width at the contexts of all checkpoints."""

    rows: Scores
    at: tuple[Floats, Floats]  # (m, K) each


def replay(
    log: Logged, model: Model, rule: Rule, checkpoints: Checkpoints | None = None
) -> Replayed:
    """Return the scores of a rule on a posterior that learns the log.

    Parameters
    ----------
    log : Logged
        A log with observations and all its rewards.
    model : Model
        Recipe of the posterior.
    rule : Rule
        The rule.
    checkpoints : Checkpoints, optional
        Where scores at other contexts are computed.

    Returns
    -------
    Replayed
        The scores.

    Raises
    ------
    InvalidValue
        If the log has no observations, or the model needs others.
    """
    y = _seen(log, model)
    n, k = log.n_rounds, log.n_arms
    parameter_of = np.arange(k) if model.sharing == "per-arm" else np.zeros(k, np.int64)
    posterior = Posterior(
        n_parameters=int(parameter_of[-1]) + 1,
        dim=y.shape[2],
        prior_precision=model.prior_precision,
    )
    explorer = kernels.Explorer(posterior.core, rule)
    out = np.empty((4, n, k))
    checkpoints = checkpoints or Checkpoints(*np.empty((3, 0), np.int64))
    mean, width = np.empty((2, len(checkpoints.contexts), k))
    seen, place = y[checkpoints.contexts], 0
    edges = [0, *checkpoints.starts.tolist(), n]
    for c, (low, high) in enumerate(pairwise(edges)):
        if c > 0:
            now = slice(place, place + int(checkpoints.counts[c - 1]))
            posterior.core.predict(parameter_of, seen[now], mean[now], width[now])
            place = now.stop
        block = np.empty((4, high - low, k))
        kernels.retrace(
            explorer,
            parameter_of,
            y[low:high],
            log.chosen[low:high].copy(),
            log.reward[low:high].copy(),
            block,
        )
        out[:, low:high] = block
    return Replayed(Scores(*out), (mean, width))


def _seen(log: Logged, model: Model) -> Floats:
    """Return the observations that a model sees, (n, 1 or K, d)."""
    if log.observation is None:
        raise InvalidValue(
            "log must have the column 'observation' for another prior, another sharing, other "
            "features or a learned v: log observations, or change only v, alpha or epsilon"
        )
    if model.sharing != log.sharing and "hybrid" in (model.sharing, log.sharing):
        raise InvalidValue(
            f"sharing must be that of the log, {log.sharing!r}, got {model.sharing!r}: hybrid "
            "observations have coordinates of their own"
        )
    dim = log.observation.shape[2]
    if model.columns is None:
        return np.array(log.observation)
    for column in model.columns:
        if not 0 <= column < dim:
            raise InvalidValue(f"columns must be from 0 to {dim - 1}, got {column}")
    return np.ascontiguousarray(log.observation[:, :, list(model.columns)])
