"""How the time of a simulation grows: exponents in arms, dimension and rounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import keyhole as kh
from benchmarks.peers import work
from benchmarks.timing import best

# Of each sweep the sizes, beyond those at which fixed costs still count, and what is expected:
# every arm's mean is looked at once a round, a matrix has d^2 entries, rounds are all alike.
SWEEPS = {
    "arms": ([250, 500, 1000, 2000, 4000], 1.0),
    "dim": ([400, 800, 1600], 2.0),
    "rounds": ([40_000, 80_000, 160_000, 320_000, 640_000], 1.0),
}
# Sizes take turns so often: a slow minute of the machine then slows all of them down.
TURNS = 5


def replication(name: str, size: int) -> Callable[[], None]:
    """One replication on one thread, all but one size as in the middle of the table."""
    sizes = {"arms": 5, "dim": 20, "rounds": 1000, name: size}
    world, policy = work.world(sizes["arms"], sizes["dim"]), kh.ThompsonSampling(v=1.0)

    def run() -> None:
        kh.simulate(
            world,
            policy,
            horizon=sizes["rounds"],
            replications=1,
            seed=1,
            workers=1,
            checkpoints=[sizes["rounds"]],
            progress=False,
        )

    return run


def exponents() -> dict[str, dict[str, float]]:
    """Return the slope of log seconds over log size, and the expected one."""
    found = {}
    for name, (sizes, expected) in SWEEPS.items():
        runs = [replication(name, size) for size in sizes]
        times = np.min([[best(run, 1) for run in runs] for _ in range(TURNS)], axis=0)
        slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
        found[name] = {"measured": slope, "expected": expected, "from": sizes[0], "to": sizes[-1]}
    return found
