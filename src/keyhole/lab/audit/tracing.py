"""Simulation, and measurements of the posterior after every pull."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole.core import Policy, Streams, child_seed, seed_sequence
from keyhole.lab.simulation import simulate
from keyhole.lab.worlds import LinearWorld, Rounds
from keyhole.theory import Promises, bounds

Floats = NDArray[np.float64]

# Numbers in the matrices that are inverted at a time: two megabytes of them.
BLOCK_FLOATS = 2**18


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

    The bounds are for the horizon of `promises`, which is also the number of rounds. `simulate`
    tells the arms that were pulled; the rounds are drawn again, and posteriors are their sums.

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
    horizon, shared = promises.horizon, policy.sharing == "shared"
    runs = simulate(
        world,
        {"traced": policy},
        horizon=horizon,
        replications=replications,
        seed=seed,
        checkpoints=range(1, horizon + 1),
        progress=False,
    )
    limits = _limits(promises, 1 if shared else world.n_arms)
    seen = []
    for k, pulls in enumerate(runs.pulls.sel(policy="traced").values):  # (time, arm)
        arms = np.diff(pulls, axis=0, prepend=0.0).argmax(axis=1)
        source = Streams(child_seed(seed_sequence(seed), k))
        rounds = world.sample(horizon, source)
        normals = promises.constants.v * source["audit"].standard_normal((horizon, world.dim))
        pulled = _pulled(rounds, arms, world.eta, normals)
        of = np.zeros_like(arms) if shared else arms  # the parameter of each pull
        measured = [
            _measured(Pulls(*(one[of == i] for one in pulled)), policy.prior_precision, limits)
            for i in range(1 if shared else world.n_arms)
        ]
        largest = np.abs(rounds.observations).max()
        longest = np.linalg.norm(rounds.observations, axis=2).max()
        seen.append((largest, longest, *np.transpose(measured)))
    return Trace(*(np.array(column) for column in zip(*seen, strict=True)))


class Limits(NamedTuple):
    """The bounds after n pulls, for n = 0, 1, ..., up to the horizon."""

    radii: Floats
    samples: Floats
    eigenvalues: Floats


def _limits(promises: Promises, parameters: int) -> Limits:
    c, horizon = promises.constants, promises.horizon
    n = np.arange(horizon + 1)
    # The ellipsoids share delta; the length of observations is bounded for all of them at once.
    each = replace(c, delta=c.delta / parameters, longest=promises.length)
    return Limits(
        bounds.confidence_radius(each, horizon=horizon, n=n),
        bounds.sampling_error(c, horizon=horizon, n=n),
        bounds.covariance_bound(c, n=n),
    )


class Pulls(NamedTuple):
    """The pulls of a parameter in order, a row for each."""

    y: Floats  # (n, dim)
    rewards: Floats  # (n,)
    eta: Floats  # (n, dim)
    normals: Floats  # (n, dim), with standard deviation v


def _pulled(rounds: Rounds, arms: NDArray[np.intp], eta: Floats, normals: Floats) -> Pulls:
    """Return the pulls of all parameters in order."""
    t = np.arange(len(arms))
    row = arms if rounds.observations.shape[1] > 1 else 0  # with a shared context there is one
    return Pulls(rounds.observations[t, row], rounds.rewards[t, arms], eta[arms], normals)


def _measured(pulls: Pulls, prior: float, limits: Limits) -> tuple[float, float, float, float]:
    """Return reach, sampled, late and pulls of one parameter, as in `Trace`."""
    total, dim = pulls.y.shape
    precision, moment = prior * np.eye(dim), np.zeros(dim)
    reach, sampled, late = 0.0, 0.0, 0
    size = max(1, BLOCK_FLOATS // dim**2)
    for start in range(0, total, size):
        y, rewards, eta, normals = (one[start : start + size] for one in pulls)
        n = start + 1 + np.arange(len(y))
        precisions = precision + np.cumsum(y[:, :, None] * y[:, None, :], axis=0)
        moments = moment + np.cumsum(rewards[:, None] * y, axis=0)
        precision, moment = precisions[-1], moments[-1]
        covariances = np.linalg.inv(precisions)
        miss = np.einsum("nij,nj->ni", covariances, moments) - eta
        squared = np.einsum("ni,nij,nj->n", miss, precisions, miss)
        reach = max(reach, float((np.sqrt(np.maximum(squared, 0.0)) / limits.radii[n]).max()))
        drawn = miss + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances), normals)
        sampled = max(sampled, float((np.linalg.norm(drawn, axis=1) / limits.samples[n]).max()))
        above = 1.0 / np.linalg.eigvalsh(precisions)[:, 0] > limits.eigenvalues[n]
        late = int(n[above].max(initial=late))
    return reach, sampled, late, total
