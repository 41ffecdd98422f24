"""What a simulated round must cost at least on this machine, from rates measured in this run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import keyhole as kh
from benchmarks.timing import best

Floats = NDArray[np.float64]


class Machine(NamedTuple):
    """Rates of one core."""

    normal: float  # seconds for a standard normal of ours
    numpy_normal: float  # and of NumPy's fastest generator
    multiply_add: float  # seconds, at the speed of a matrix product that stays in cache
    byte: float  # seconds to read a byte from memory
    shared_byte: float  # from the cache that cores share
    cached_byte: float  # from a core's own second-level cache


def machine() -> Machine:
    """Measure, on one thread."""
    room, a = np.empty(2**18), np.random.default_rng(1).random((256, 256))
    ours, numpys = kh.Streams(1)["x"], np.random.Generator(np.random.SFC64(1))
    product = np.empty_like(a)
    with threadpool_limits(limits=1):
        return Machine(
            normal=best(lambda: ours.standard_normal(out=room)) / room.size,
            numpy_normal=best(lambda: numpys.standard_normal(out=room)) / room.size,
            multiply_add=best(lambda: np.matmul(a, a, out=product)) / 256**3,
            byte=seconds_per_byte(2**28, 5),
            shared_byte=seconds_per_byte(2**23, 50),
            cached_byte=seconds_per_byte(2**18, 500),
        )


def seconds_per_byte(size: int, repeats: int) -> float:
    """How long a byte takes of an array of so many that is read over and over.

    It is read by BLAS's dot product with itself, which is faster than NumPy's own sums. The time of
    a call that reads next to nothing is taken off.
    """
    values, few = np.ones(size // 8), np.ones(8)
    call = best(lambda: np.dot(few, few), 500)
    return (best(lambda: np.dot(values, values), repeats) - call) / size


def many_arms(n_arms: int = 100_000, dim: int = 20) -> dict[str, float]:
    """Seconds of an exact choice among very many arms, and of reading their means once."""
    policy, rng = kh.ThompsonSampling(v=1.0), np.random.default_rng(1)
    bandit = kh.Bandit(policy, arms=n_arms, dim=dim, seed=1, probabilities=False)
    for y in rng.standard_normal((500, dim)):
        bandit.learn(bandit.choose(y), float(rng.standard_normal()))
    means, y = bandit.posterior.mean, rng.standard_normal(dim)
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

    Counted in NumPy. An arm is ruled out if it cannot reach the best score even at the width
    |y| sqrt(bound), where the bound on the eigenvalues of P is its trace or largest row sum.
    """
    made, n, d = world.sample(rounds, 1), world.n_arms, world.dim
    normals = np.random.default_rng(2).standard_normal((rounds, n))
    P, mean, bound = np.tile(np.eye(d), (n, 1, 1)), np.zeros((n, d)), np.ones(n)
    pulls, total = np.zeros(n, np.int64), 0
    for y, rewards, z in zip(made.observations[:, 0], made.rewards, normals, strict=True):
        location, products = mean @ y, P @ y
        widths = products @ y
        scores = location + np.sqrt(widths) * z
        upper = location + np.maximum(z, 0.0) * np.sqrt(y @ y * bound)
        arm = int(scores.argmax())
        # Every arm that might beat the best, of which the leader is one.
        total += int((upper >= scores[arm]).sum())
        share, w = 1.0 / (1.0 + widths[arm]), products[arm]
        mean[arm] += share * (rewards[arm] - location[arm]) * w
        P[arm] -= share * np.outer(w, w)
        pulls[arm] += 1
        # P shrinks, so that an old bound holds: once in d steps it costs a dot product each.
        if pulls[arm] % d == 0:
            bound[arm] = min(np.trace(P[arm]), np.abs(P[arm]).sum(axis=1).max())
    return total / rounds


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
    """Return the least time of one simulated round of Thompson sampling with a shared context."""
    n, d = world.n_arms, world.dim
    normals = d + min(n, d) + 2 * n  # the context, what is not seen of it, rewards, the policy's
    # y from normals, values, what is not seen; the means; P y of the winner, and forms of others,
    # by half a matrix each; two triangles that are updated.
    seen = np.count_nonzero(world.normal_model.observation)
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
