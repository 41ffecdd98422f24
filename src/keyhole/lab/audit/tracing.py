"""Simulation round by round, with measurements of the posterior after every pull."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole.core import Learner, Policy, Streams, child_seed, kernels, seed_sequence
from keyhole.lab.simulation import CompiledRun, checked_rounds
from keyhole.lab.worlds import LinearWorld
from keyhole.theory import Promises

Floats = NDArray[np.float64]


class Trace(NamedTuple):
    """Measurements for each parameter in each replication, over all rounds.

    Parameters
    ----------
    largest : ndarray of shape (replications,)
        The largest entry of any observation.
    longest : ndarray of shape (replications,)
        The length of the longest observation.
    reach : ndarray of shape (replications, parameters)
        The maximum of |mean - eta|_B over its radius.
    sampled : ndarray of shape (replications, parameters)
        The maximum of |sample - eta| over its bound.
    late : ndarray of shape (replications, parameters)
        The last n with an eigenvalue above its bound.
    pulls : ndarray of shape (replications, parameters)
        n at the end.
    """

    largest: Floats  # (replications,)
    longest: Floats  # (replications,)
    reach: Floats  # (replications, parameters)
    sampled: Floats  # (replications, parameters)
    late: Floats  # (replications, parameters)
    pulls: Floats  # (replications, parameters)


def trace(
    world: LinearWorld, policy: Policy, promises: Promises, *, replications: int, seed: int
) -> Trace:
    """Simulate a policy, and compare every pull with lem:subg, lem:eta1 and lem:eig.

    The bounds are for the horizon of `promises`, which is also the number of rounds.

    Parameters
    ----------
    world : LinearWorld
        The world to simulate.
    policy : Policy
        The policy to trace.
    promises : Promises
        The bounds of the world.
    replications : int
        The number of replications.
    seed : int
        The seed of the simulations.

    Returns
    -------
    Trace
        The measurements of all replications.
    """
    seen = [_one(world, policy, promises, seed, i) for i in range(replications)]
    return Trace(*(np.array(column) for column in zip(*seen, strict=True)))


def _one(
    world: LinearWorld, policy: Policy, promises: Promises, seed: int, number: int
) -> tuple[float, float, Floats, Floats, Floats, Floats]:
    horizon = promises.horizon
    source = Streams(child_seed(seed_sequence(seed), number))
    rounds = checked_rounds(world, world.rounds(world.start(source), horizon), horizon)
    z = source["policy"].standard_normal((horizon, world.n_arms))
    uniforms = source["coin"].random((horizon, 2))
    normals = source["audit"].standard_normal((horizon, world.dim))
    player = CompiledRun(Learner(policy), world, np.array([horizon]))
    chosen = np.empty(1, np.int64)
    parameters = player.posterior.n_parameters
    n = np.arange(horizon + 1)
    radii = promises.bound("confidence_radius", n=n, delta=promises.delta / parameters)
    eigenvalues, samples = (
        promises.bound(name, n=n) for name in ("covariance_bound", "sampling_error")
    )
    reach, sampled, late = np.zeros((3, parameters))
    for t in range(horizon):
        now = slice(t, t + 1)
        block = kernels.Block(rounds.observations[now], rounds.rewards[now], z[now], uniforms[now])
        kernels.play(player.chooser, block, chosen)
        state = player.posterior.state
        k = int(chosen[0])
        i = int(player.state.arms.parameter_of[k])
        miss, pulls = state.mean[i] - world.eta[k], int(state.n[i])
        # Only one triangle of a symmetric matrix is stored.
        upper = np.triu(state.precision[i])
        squared = 2.0 * miss @ (upper @ miss) - np.diag(upper) @ miss**2
        reach[i] = max(reach[i], np.sqrt(max(squared, 0.0)) / radii[pulls])
        miss += promises.v * np.linalg.cholesky(state.covariance[i]) @ normals[t]
        sampled[i] = max(sampled[i], np.sqrt(miss @ miss) / samples[pulls])
        if np.linalg.eigvalsh(state.covariance[i])[-1] > eigenvalues[pulls]:
            late[i] = pulls
    lengths = np.linalg.norm(rounds.observations, axis=2)
    largest = float(np.abs(rounds.observations).max())
    return largest, float(lengths.max()), reach, sampled, late, player.posterior.state.n.copy()
