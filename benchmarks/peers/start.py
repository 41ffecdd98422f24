"""What a fresh process pays before it has decided once, or simulated once: a line of JSON.

    python -m benchmarks.peers.start decision ADAPTER MODULE
    python -m benchmarks.peers.start simulation

Nothing large is imported before the clock starts.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable


def decision(name: str, module: str) -> dict[str, float]:
    """Import, make a bandit of 5 arms and dim 10, choose and learn; then look at the memory."""
    start = time.perf_counter()
    importlib.import_module(module)
    import numpy as np

    from benchmarks.peers.adapters import ADAPTERS

    bandit, y = ADAPTERS[name](5, 10), np.ones(10)
    if hasattr(bandit, "prepare"):
        bandit.prepare(y[None])
    bandit.learn(y, bandit.choose(y), 1.0)
    took = time.perf_counter() - start
    from benchmarks.peers.memory import resident

    return {"seconds": took, "memory": resident("VmRSS"), "peak": resident("VmHWM")}


def simulation() -> dict[str, float]:
    """Import, and simulate 2 replications of 100 rounds; the call alone is `call`."""
    start = time.perf_counter()
    import keyhole as kh

    # Versions before had another word for the length of an observation.
    length = {"dim" if hasattr(kh, "Learner") else "observation_dim": 10}
    world = kh.LinearWorld.random(n_arms=5, context_dim=10, seed=1, **length)
    kh.simulate  # noqa: B018 - a name of the package is imported when it is first used
    policy, called = kh.ThompsonSampling(), time.perf_counter()
    kh.simulate(world, policy, horizon=100, replications=2, seed=1, workers=1, progress=False)
    end = time.perf_counter()
    return {"seconds": end - start, "call": end - called}


if __name__ == "__main__":
    tasks: dict[str, Callable[..., dict[str, float]]]
    tasks = {"decision": decision, "simulation": simulation}
    print(json.dumps(tasks[sys.argv[1]](*sys.argv[2:])))
