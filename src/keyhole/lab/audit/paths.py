"""The posterior of every parameter after every pull, in stretches of rounds that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole.core import Streams, child_seed, seed_sequence
from keyhole.lab.worlds import LinearWorld, Rounds

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Numbers in the matrices that are inverted at a time: two megabytes of them.
BLOCK_FLOATS = 2**18


class Replay(NamedTuple):
    """One replication again: its rounds, and the arms that were pulled."""

    rounds: Rounds
    arms: Ints  # (T,)
    source: Streams

    @property
    def y(self) -> Floats:
        """The observation of every arm, (T, n_arms, dim)."""
        y, n_arms = self.rounds.observations, self.rounds.rewards.shape[1]
        return np.broadcast_to(y, (len(y), n_arms, y.shape[2]))


def replay(world: LinearWorld, arms: Ints, *, seed: int, replication: int) -> Replay:
    """Draw the rounds of a replication of `simulate` again.

    Parameters
    ----------
    world : LinearWorld
        The world that was simulated.
    arms : ndarray of shape (T,)
        The arms that were pulled.
    seed : int
        The seed of the simulation.
    replication : int
        The number of the replication.
    """
    source = Streams(child_seed(seed_sequence(seed), replication))
    return Replay(world.sample(len(arms), source), arms, source)


class Path(NamedTuple):
    """The posterior of a parameter before and after each of its pulls in a stretch."""

    rounds: Ints  # (b,), the rounds of its pulls
    n: Floats  # (b + 1,), the number of pulls
    precisions: Floats  # (b + 1, dim, dim)
    covariances: Floats  # (b + 1, dim, dim)
    means: Floats  # (b + 1, dim)

    def before(self, rounds: Ints) -> Ints:
        """Return the place in this path of the posterior before each of some rounds."""
        return np.searchsorted(self.rounds, rounds)


def paths(
    one: Replay, of: Ints, parameters: int, prior: float
) -> Iterator[tuple[Ints, list[Path]]]:
    """Yield the rounds of each stretch, and the path of every parameter in it.

    Parameters
    ----------
    one : Replay
        The replication.
    of : ndarray of shape (T,)
        The parameter of each pull.
    parameters : int
        The number of parameters.
    prior : float
        The precision of the prior.
    """
    horizon, dim = len(one.arms), one.rounds.observations.shape[2]
    pulled = one.y[np.arange(horizon), one.arms]  # (T, dim)
    rewards = one.rounds.rewards[np.arange(horizon), one.arms]
    precisions = [prior * np.eye(dim) for _ in range(parameters)]
    moments, counts = [np.zeros(dim) for _ in range(parameters)], [0] * parameters
    size = max(1, BLOCK_FLOATS // dim**2)
    for start in range(0, horizon, size):
        rounds = np.arange(start, min(start + size, horizon))
        made = []
        for i in range(parameters):
            own = rounds[of[rounds] == i]
            y = pulled[own]
            stack = np.concatenate([precisions[i][None], y[:, :, None] * y[:, None, :]]).cumsum(0)
            sums = np.concatenate([moments[i][None], rewards[own, None] * y]).cumsum(0)
            covariances = np.linalg.inv(stack)
            means = np.einsum("nij,nj->ni", covariances, sums)
            n = counts[i] + np.arange(len(own) + 1.0)
            made.append(Path(own, n, stack, covariances, means))
            precisions[i], moments[i], counts[i] = stack[-1], sums[-1], counts[i] + len(own)
        yield rounds, made
