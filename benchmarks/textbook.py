"""Keyhole against the textbook: rounds per second of Thompson sampling, as ratios of one run.

The textbook is Algorithm 1 as printed: for every arm of every round an inverse and a multivariate
normal draw in NumPy. Keyhole plays the rounds in one call, a simulation of a world that replays
them, and, online, one `choose` and one `learn` at a time from Python. All on one thread, the
policy's normals drawn within the time.

    make bench
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import keyhole as kh
from benchmarks.replay import Replay

Array = NDArray[np.float64]
CELLS = [(5, 10), (5, 20), (5, 80), (30, 20), (100, 20), (1000, 20), (10, 200)]
REPEATS = 7
POLICY = kh.ThompsonSampling(v=1.0)


class Work(NamedTuple):
    """A stream of rounds that everybody plays."""

    observations: Array  # (rounds, n_arms, dim)
    rewards: Array  # (rounds, n_arms)


def make_work(n_arms: int, dim: int, rounds: int) -> Work:
    """Return standard normal observations, and rewards of unit signal and unit noise."""
    rng = np.random.default_rng(1)
    y = rng.standard_normal((rounds, n_arms, dim))
    eta = rng.standard_normal((n_arms, dim)) / np.sqrt(dim)
    return Work(y, np.einsum("tnd,nd->tn", y, eta) + rng.standard_normal((rounds, n_arms)))


def textbook(work: Work) -> None:
    """Algorithm 1, line by line."""
    _, n_arms, dim = work.observations.shape
    rng = np.random.default_rng(2)
    B = np.tile(np.eye(dim), (n_arms, 1, 1))
    b, mean = np.zeros((2, n_arms, dim))
    for y, reward in zip(*work, strict=True):
        samples = [rng.multivariate_normal(mean[i], np.linalg.inv(B[i])) for i in range(n_arms)]
        arm = np.argmax([y[i] @ samples[i] for i in range(n_arms)])
        B[arm] += np.outer(y[arm], y[arm])
        b[arm] += reward[arm] * y[arm]
        mean[arm] = np.linalg.inv(B[arm]) @ b[arm]


def in_one_call(work: Work) -> None:
    """All rounds in one call."""
    kh.simulate(
        Replay(*work),
        POLICY,
        horizon=len(work.rewards),
        replications=1,
        checkpoints=1,
        seed=2,
        workers=1,
        progress=False,
    )


def online(work: Work) -> None:
    """One decision and one reward at a time."""
    _, n_arms, dim = work.observations.shape
    bandit = kh.Bandit(POLICY, arms=n_arms, dim=dim, seed=2)
    for y, reward in zip(*work, strict=True):
        decision = bandit.choose(y)
        bandit.learn(decision, float(reward[int(decision.arm)]))


def rates(work: Work, rounds: dict[Callable[[Work], None], int]) -> list[float]:
    """Return the rounds per second of each function, the best of a few turns.

    They take turns, so that other load on the machine affects all of them alike.
    """
    best = dict.fromkeys(rounds, np.inf)
    for _ in range(REPEATS):
        for play, n in rounds.items():
            part = Work(*(array[:n] for array in work))
            start = time.perf_counter()
            play(part)
            best[play] = min(best[play], time.perf_counter() - start)
    return [n / best[play] for play, n in rounds.items()]


def seconds(code: str) -> float:
    """How long a fresh interpreter takes for `code`, by its own clock; best of a few."""
    timed = f"import time; start = time.perf_counter(); {code}; print(time.perf_counter() - start)"
    command = [sys.executable, "-c", timed]
    times = [float(subprocess.check_output(command, text=True)) for _ in range(REPEATS)]
    return min(times)


def main() -> None:
    """Print a row for each cell, and the time to the first decision."""
    for play in (in_one_call, online):
        play(make_work(2, 3, 10))  # first use
    print(f"{'arms':>5} {'dim':>4} {'textbook/s':>11} {'one call/s':>12} {'ratio':>7} "
          f"{'online/s':>9} {'ratio':>6}")  # fmt: skip
    for n_arms, dim in CELLS:
        rounds = min(20_000, 40_000_000 // (n_arms * dim))
        work = make_work(n_arms, dim, rounds)
        few = max(3, 20_000 // (n_arms * dim))
        slow, fast, single = rates(
            work, {textbook: few, in_one_call: rounds, online: min(rounds, 2000)}
        )
        print(f"{n_arms:5d} {dim:4d} {slow:11,.1f} {fast:12,.0f} {fast / slow:6,.0f}x "
              f"{single:9,.0f} {single / slow:5,.0f}x")  # fmt: skip
    first = "import keyhole as kh; kh.Bandit(kh.Greedy(), arms=2, dim=2).choose([0.0, 1.0])"
    print(f"\nimport keyhole: {seconds('import keyhole'):.2f} s")
    print(f"import and first decision: {seconds(first):.2f} s")


if __name__ == "__main__":
    main()
