"""Playing round by round, and looking at the posterior after every pull."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole import kernels, seeds
from keyhole.policies import Policy
from keyhole.simulation.blas import one_blas_thread
from keyhole.simulation.replication import Player
from keyhole.theory import bounds
from keyhole.worlds import LinearWorld

Floats = NDArray[np.float64]


class Trace(NamedTuple):
    """What was seen of each parameter in each replication, over all rounds."""

    largest: Floats  # (replications,)  the largest entry of any observation
    reach: Floats  # (replications, parameters)  the most of |mean - eta|_B over its radius
    late: Floats  # (replications, parameters)  the last n with an eigenvalue above its bound
    pulls: Floats  # (replications, parameters)  n at the end


def trace(
    world: LinearWorld,
    policy: Policy,
    *,
    horizon: int,
    replications: int,
    seed: int,
    length: float,
    delta: float,
) -> Trace:
    """Play, and hold every pull against the radius of lem:subg and the eigenvalue of lem:eig."""
    numbers = range(replications)
    with one_blas_thread():
        seen = [_one(world, policy, horizon, seed, i, length, delta) for i in numbers]
    return Trace(*(np.array(column) for column in zip(*seen, strict=True)))


def _one(
    world: LinearWorld,
    policy: Policy,
    horizon: int,
    seed: int,
    number: int,
    length: float,
    delta: float,
) -> tuple[float, Floats, Floats, Floats]:
    source = seeds.Streams(seeds.child(seeds.root(seed), number))
    rounds = world.rounds(horizon, source)
    z = source["policy"].standard_normal((horizon, world.n_arms))
    uniforms = source["coin"].random((horizon, 2))
    player = Player(policy, world, np.array([horizon]))
    state, chosen = player.posterior.state, np.empty(1, np.int64)
    lowest = np.linalg.eigvalsh(world.sensing_covariance).min()
    radii = bounds.confidence_radius(
        np.arange(horizon + 1),
        dim=world.dim,
        r=world.noise_scale,
        c_eta=float(np.linalg.norm(world.eta, axis=1).max()),
        length=length,
        delta=delta / player.posterior.n_parameters,
    )
    reach, late = np.zeros((2, player.posterior.n_parameters))
    for t in range(horizon):
        now = slice(t, t + 1)
        block = kernels.Block(rounds.observations[now], rounds.rewards[now], z[now], uniforms[now])
        kernels.play(state, player.rule, player.owner, block, True, chosen)
        k = int(chosen[0])
        i = int(player.owner[k])
        miss, n = state.mean[i] - world.eta[k], int(state.n[i])
        # Of B only the lower triangle is kept.
        lower = np.tril(state.precision[i])
        squared = 2.0 * miss @ (lower @ miss) - np.diag(lower) @ miss**2
        reach[i] = max(reach[i], np.sqrt(max(squared, 0.0)) / radii[n])
        if np.linalg.eigvalsh(state.covariance[i])[-1] * lowest * n > 2.0:
            late[i] = n
    return float(np.abs(rounds.observations).max()), reach, late, state.n.copy()
