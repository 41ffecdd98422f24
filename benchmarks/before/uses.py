"""What else a bandit is used for, besides one choice and one reward a round.

    python -m benchmarks.before.uses NAME ARMS DIM SECONDS

prints a line of JSON. Each use is a function that makes all it needs and returns what is timed;
it calls nothing that a version of Keyhole before this one would not have.
"""

from __future__ import annotations

import atexit
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import keyhole as kh

ROUNDS = 1000
Call = Callable[[], object]


def learned(n_arms: int, dim: int, **settings: Any) -> tuple[kh.Bandit, Any]:
    """Return a bandit that has learned from some rounds, and observations for as many more."""
    rng = np.random.default_rng(1)
    learner: Any = kh.ThompsonSampling(v=1.0)
    if hasattr(kh, "Learner"):  # before there were learners, a bandit had these settings
        learner, settings = kh.Learner(learner, **settings), {}
    bandit = kh.Bandit(learner, arms=n_arms, dim=dim, seed=1, **settings)
    ys = rng.standard_normal((ROUNDS, dim))
    bandit.learn_many(bandit.choose_many(ys), rng.standard_normal(ROUNDS))
    return bandit, ys


def one_by_one(bandit: kh.Bandit, ys: Any, **options: Any) -> Call:
    """Choose and learn, a round at a time."""

    def call() -> None:
        for y in ys:
            bandit.learn(bandit.choose(y, **options), 1.0)

    return call


def among(n_arms: int, dim: int) -> tuple[Call, int]:
    """Choices among a third of the arms, the same ones each time."""
    bandit, ys = learned(n_arms, dim)
    return one_by_one(bandit, ys[:100], among=bandit.arms[::3]), 100


def missing(n_arms: int, dim: int) -> tuple[Call, int]:
    """Observations with a tenth of their entries missing, in units of their own."""
    bandit, ys = learned(n_arms, dim, missing="predict", standardize=True, intercept=True)
    ys[np.random.default_rng(2).random(ys.shape) < 0.1] = np.nan
    return one_by_one(bandit, ys[:100]), 100


def choose_many(n_arms: int, dim: int) -> tuple[Call, int]:
    """1000 rounds in one call."""
    bandit, ys = learned(n_arms, dim)
    return lambda: bandit.choose_many(ys), ROUNDS


def learn_many(n_arms: int, dim: int) -> tuple[Call, int]:
    """1000 rewards in one call; `again`, since each call brings the same decisions."""
    bandit, ys = learned(n_arms, dim)
    decisions, rewards = bandit.choose_many(ys), np.ones(ROUNDS)
    return lambda: bandit.learn_many(decisions, rewards, again=True), ROUNDS


def probabilities_of_many(n_arms: int, dim: int) -> tuple[Call, int]:
    """1000 rounds in one call, and the probability of each choice."""
    bandit, ys = learned(n_arms, dim)
    return lambda: bandit.choose_many(ys).probabilities, ROUNDS


def choice_probabilities(n_arms: int, dim: int) -> tuple[Call, int]:
    """Compute the probability of every arm at one observation."""
    bandit, ys = learned(n_arms, dim)
    return lambda: bandit.choice_probabilities(ys[0]), 1


def save(n_arms: int, dim: int) -> tuple[Call, int]:
    """Save to a file."""
    (bandit, _), path = learned(n_arms, dim), _file()
    return lambda: bandit.save(path), 1


def load(n_arms: int, dim: int) -> tuple[Call, int]:
    """Load from a file."""
    (bandit, _), path = learned(n_arms, dim), _file()
    bandit.save(path)
    return lambda: kh.Bandit.load(path), 1


def _file() -> Path:
    # In memory where there is such a place: a disk's speed is not ours.
    shared = Path("/dev/shm")
    folder = tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None)
    atexit.register(folder.cleanup)
    return Path(folder.name) / "bandit.npz"


USES: dict[str, Callable[[int, int], tuple[Call, int]]] = {
    use.__name__: use
    for use in (
        among,
        missing,
        choose_many,
        learn_many,
        probabilities_of_many,
        choice_probabilities,
        save,
        load,
    )
}


def rate(call: Call, count: int, seconds: float) -> float:
    """Return the uses per second of the fastest call; each call has `count` uses."""
    call()  # whatever is loaded or compiled on first use
    times: list[float] = []
    start = time.perf_counter()
    while not times or time.perf_counter() - start < seconds:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return count / min(times)


if __name__ == "__main__":
    made, per_call = USES[sys.argv[1]](*map(int, sys.argv[2:4]))
    print(json.dumps({"rate": rate(made, per_call, float(sys.argv[4]))}))
