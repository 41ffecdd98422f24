"""Whole simulations against the textbook's loop, the making of rounds included, as ratios.

50 replications of 2,000 rounds with 5 arms. The textbook draws every round as the model is written
and plays Algorithm 1 as printed, in NumPy, one process, BLAS on one thread; since its rounds all
cost the same, a part of them is timed. Keyhole simulates all of them on one thread and on two.

    make bench
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import keyhole as kh
from benchmarks.replay import Replay
from benchmarks.timing import best

HORIZON, REPLICATIONS, N_ARMS = 2000, 50, 5
REPEATS, TURNS = 5, 12
POLICY = kh.ThompsonSampling(v="oracle")


def textbook(world: kh.LinearWorld, rounds: int) -> float:
    """Regret after some rounds of the model and of Algorithm 1, line by line."""
    rng = np.random.default_rng(2)
    n, dim, v = world.n_arms, world.dim, world.noise_scale
    B = np.tile(np.eye(dim), (n, 1, 1))
    b, mean = np.zeros((2, n, dim))
    regret = 0.0
    for _ in range(rounds):
        x = rng.multivariate_normal(np.zeros(world.context_dim), world.context_covariance, size=n)
        noise = rng.multivariate_normal(np.zeros(dim), world.sensing_covariance, size=n)
        y = x @ world.sensing.T + noise
        samples = [rng.multivariate_normal(mean[i], v**2 * np.linalg.inv(B[i])) for i in range(n)]
        arm = int(np.argmax([y[i] @ samples[i] for i in range(n)]))
        reward = x[arm] @ world.coefficients[arm] + world.reward_scale * rng.standard_normal()
        B[arm] += np.outer(y[arm], y[arm])
        b[arm] += reward * y[arm]
        mean[arm] = np.linalg.inv(B[arm]) @ b[arm]
        values = (y * world.eta).sum(axis=1)
        regret += float(values.max() - values[arm])
    return regret


def simulated(world: kh.World, workers: int) -> None:
    """All of it."""
    kh.simulate(
        world,
        POLICY,
        horizon=HORIZON,
        replications=REPLICATIONS,
        seed=2,
        workers=workers,
        progress=False,
    )


def limits(world: kh.LinearWorld) -> tuple[float, float]:
    """Seconds for the world's normals alone, and for all but the world, on one thread."""
    count = N_ARMS * (world.dim + 2)  # observations, x'mu given y, rewards
    stream, room = kh.Streams(1)["x"], np.empty((HORIZON, count))
    normals = best(lambda: stream.standard_normal(out=room), REPEATS)
    made = world.sample(HORIZON, 1)
    replay = Replay(made.observations, made.rewards, world.noise_scale)
    return normals * REPLICATIONS, best(lambda: simulated(replay, 1), REPEATS)


def bare_scaling() -> float:
    """How much faster two threads draw normals than one: what this machine's cores allow."""

    def draw(number: int) -> None:
        rng, out = kh.Streams(number)["x"], np.empty(2**16)
        for _ in range(60):
            rng.standard_normal(out=out)

    def on(workers: int) -> None:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(draw, range(8)))

    turns = [[best(lambda w=w: on(w), 1) for w in (1, 2)] for _ in range(TURNS)]  # type: ignore[misc]
    one, two = np.min(turns, axis=0)
    return float(one / two)


def main() -> None:
    """Print a row for each size."""
    print(f"{'dx=dy':>5} {'textbook s':>11} {'1 thread s':>11} {'2 threads s':>12} {'ratio':>7} "
          f"{'2 over 1':>9} {'normals s':>10} {'posterior s':>12} {'of limit':>9}")  # fmt: skip
    for dim in (20, 80):
        print_row(dim)
    print(f"\nbare normals, two threads over one: {bare_scaling():.2f}x")


def print_row(dim: int) -> None:
    """Measure one size."""
    world = kh.LinearWorld.random(n_arms=N_ARMS, context_dim=dim, dim=dim, seed=1)
    simulated(world, 1)  # first use
    part = 400 if dim == 20 else 100
    slow = best(lambda: textbook(world, part), 2) * HORIZON * REPLICATIONS / part
    # Taken in turns, so that a busy spell of a shared machine meets both alike.
    turns = [[best(lambda w=w: simulated(world, w), 1) for w in (1, 2)] for _ in range(TURNS)]  # type: ignore[misc]
    one, two = np.min(turns, axis=0)
    normals, posterior = limits(world)
    print(f"{dim:5d} {slow:11.1f} {one:11.3f} {two:12.3f} {slow / two:6,.0f}x "
          f"{one / two:8.2f}x {normals:10.3f} {posterior:12.3f} "
          f"{(normals + posterior) / one:8.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
