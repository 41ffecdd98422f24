"""What a simulated round must cost at least on this machine, from rates measured in this run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

import keyhole as kh
from keyhole import kernels

Floats = NDArray[np.float64]


class Machine(NamedTuple):
    """Rates of one core."""

    normal: float  # seconds for a standard normal of ours
    numpy_normal: float  # and of NumPy's fastest generator
    multiply_add: float  # seconds, at the speed of a matrix product that stays in cache
    byte: float  # seconds to read a byte from memory
    shared_byte: float  # from the cache that cores share
    cached_byte: float  # from a core's own second-level cache


def best(work: Callable[[], object], repeats: int = 15) -> float:
    """The shortest time of a few."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


@numba.njit(fastmath=True)
def _sum(values: Floats) -> float:
    total = 0.0
    for k in range(values.size):
        total += values[k]
    return total


def machine() -> Machine:
    """Measure."""
    room, a = np.empty(2**18), np.random.default_rng(1).random((256, 256))
    ours, numpys = kh.Streams(1)["x"], np.random.Generator(np.random.SFC64(1))
    product = np.empty_like(a)
    # 256 megabytes, 8 megabytes and 256 kilobytes.
    large, middle, small = np.ones(2**25), np.ones(2**20), np.ones(2**15)
    _sum(small)
    return Machine(
        normal=best(lambda: ours.standard_normal(out=room)) / room.size,
        numpy_normal=best(lambda: numpys.standard_normal(out=room)) / room.size,
        multiply_add=best(lambda: np.matmul(a, a, out=product)) / 256**3,
        byte=best(lambda: _sum(large), 5) / large.nbytes,
        shared_byte=best(lambda: _sum(middle), 50) / middle.nbytes,
        cached_byte=best(lambda: _sum(small), 200) / small.nbytes,
    )


def many_arms(n_arms: int = 100_000, dim: int = 20) -> dict[str, float]:
    """Seconds of an exact choice among very many arms, and of reading their means once."""
    policy, rng = kh.ThompsonSampling(v=1.0), np.random.default_rng(1)
    bandit = kh.Bandit(policy, arms=n_arms, dim=dim, seed=1, probabilities=False)
    for y in rng.standard_normal((500, dim)):
        bandit.learn(bandit.choose(y), float(rng.standard_normal()))
    means, y = bandit.posterior.state.mean, rng.standard_normal(dim)
    stream, z = kh.Streams(1)["x"], np.empty(n_arms)
    return {
        "n_arms": n_arms,
        "dim": dim,
        "choose": best(lambda: bandit.choose(y), 40),
        "read": best(lambda: means @ y, 40),
        "normals": best(lambda: stream.standard_normal(out=z), 40),
    }


def products_of(world: kh.LinearWorld, rounds: int) -> float:
    """How many quadratic forms a round takes, on average: one, and one for each arm not ruled out.

    Counted by playing with the kernel's own bounds, in Python.
    """
    made = world.rounds(rounds, 1)
    z = np.random.default_rng(2).standard_normal((rounds, world.n_arms))
    posterior = kh.Posterior(n_parameters=world.n_arms, dim=world.dim)
    rule, owner = kh.ThompsonSampling(v=1.0).rule.plain(), np.arange(world.n_arms)
    state, chosen, total = posterior.state, np.empty(1, np.int64), 0
    for t in range(rounds):
        y = made.observations[t, 0]
        means = state.mean @ y
        hopes = means + np.maximum(z[t], 0.0) * np.sqrt(y @ y * state.bound)
        widths = [y @ _symmetric(one) @ y for one in state.covariance]
        best = float((means + np.sqrt(widths) * z[t]).max())
        # Everybody who might beat the best, of whom the leader is one.
        total += int((hopes >= best).sum())
        now = slice(t, t + 1)
        block = kernels.Block(made.observations[now], made.rewards[now], z[now], np.zeros((1, 2)))
        kernels.play(state, rule, owner, block, True, chosen)
    return total / rounds


def _symmetric(lower: Floats) -> Floats:
    below = np.tril(lower)
    return below + np.tril(below, -1).T


class Floor(NamedTuple):
    """The least that a round can cost, in seconds, by what it is spent on."""

    normals: float
    arithmetic: float
    memory: float

    @property
    def total(self) -> float:
        """Arithmetic and memory overlap at best; normals do not."""
        return self.normals + max(self.arithmetic, self.memory)


def floor(world: kh.LinearWorld, rates: Machine, products: float) -> Floor:
    """The floor of one simulated round of Thompson sampling in a world of one shared context."""
    n, d = world.n_arms, world.dim
    normals = d + min(n, d) + 2 * n  # the context, what is not seen of it, rewards, the policy's
    # y from normals, values, what is not seen; the means; P y of the winner, and forms of others,
    # by half a matrix each; two triangles that are updated.
    seen = np.count_nonzero(world.law.observation)
    forms = d * d + (products - 1.0) * d * d / 2
    arithmetic = seen + n * d + n * min(n, d) + n * d + forms + d * d
    # Means once, and half a matrix for each form. Updates can wait and be made together: of so many
    # that what they read and write does not count.
    touched = 8.0 * (n * d + products * d * d / 2)
    held = 8.0 * n * (d * d + d)
    byte = rates.byte
    if held < 2**24:
        byte = rates.cached_byte if held < 2**19 else rates.shared_byte
    return Floor(normals * rates.normal, arithmetic * rates.multiply_add, touched * byte)
