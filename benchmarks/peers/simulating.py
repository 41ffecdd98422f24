"""Rounds per second of Keyhole's simulation, in a process of its own: prints a line of JSON.

python -m benchmarks.peers.simulating ARMS DIM WORKERS SECONDS
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import keyhole as kh
from benchmarks.peers import work
from benchmarks.timing import best


def simulate(world: kh.World, horizon: int, replications: int, workers: int = 1) -> None:
    """Whole replications of Thompson sampling, the making of rounds included."""
    kh.simulate(
        world,
        kh.ThompsonSampling(v=1.0),
        horizon=horizon,
        replications=replications,
        seed=1,
        workers=workers,
        progress=False,
    )


def rate(world: kh.World, workers: int, seconds: float) -> float:
    """Return the rounds per second of the fastest call of 50 replications, or of 0.2 seconds."""

    def call(replications: int) -> Callable[[], None]:
        return lambda: simulate(world, work.HORIZON, replications, workers)

    call(2)()  # whatever is loaded or compiled on first use
    took = best(call(work.REPLICATIONS), 3)
    replications = max(1, round(0.2 / took)) * work.REPLICATIONS
    calls = max(3, round(seconds / max(0.2, took)))
    return replications * work.HORIZON / best(call(replications), calls)


if __name__ == "__main__":
    n_arms, dim, workers = map(int, sys.argv[1:4])
    print(json.dumps({"rate": rate(work.world(n_arms, dim), workers, float(sys.argv[4]))}))
