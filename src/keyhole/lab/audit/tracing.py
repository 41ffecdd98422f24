"""Playing round by round, and looking at the posterior after every pull."""

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
    """What was seen of each parameter in each replication, over all rounds."""

    largest: Floats  # (replications,)  the largest entry of any observation
    longest: Floats  # (replications,)  the length of the longest observation
    reach: Floats  # (replications, parameters)  the most of |mean - eta|_B over its radius
    sampled: Floats  # (replications, parameters)  the most of |sample - eta| over its bound
    late: Floats  # (replications, parameters)  the last n with an eigenvalue above its bound
    pulls: Floats  # (replications, parameters)  n at the end


def trace(
    world: LinearWorld, policy: Policy, promises: Promises, *, replications: int, seed: int
) -> Trace:
    """Play, and hold every pull against lem:subg, lem:eta1 and lem:eig, for the promises' T."""
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
        # Of a symmetric matrix only one triangle is kept.
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
