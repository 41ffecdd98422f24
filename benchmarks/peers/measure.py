"""One measurement of one library, in that library's own environment: prints a line of JSON.

python measure.py NAME MODULE speed|regret|exact INPUT.npz [SECONDS]
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import sys
import time
from typing import Any

import numpy as np


def resident(field: str) -> float:
    """Megabytes of this process: VmRSS now, or VmHWM at most since `settle_memory`."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field))
    return float(line.split()[1]) / 1024.0


def settle_memory() -> float:
    """Megabytes now, from which on the most that is resident is counted.

    What was freed goes back to the system first: work that found room there would seem free.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return resident("VmRSS")


def play(bandit: Any, ys: Any, rewards: Any, arms: Any) -> None:
    """One choice and one reward a round, whose arms are written down."""
    for t, y in enumerate(ys):
        arms[t] = arm = bandit.choose(y)
        bandit.learn(y, arm, float(rewards[t, arm]))


def speed(make: Any, given: Any, seconds: float) -> dict[str, float]:
    """Rounds per second, and the memory that the work takes beyond a first small one."""
    ys, rewards = given["y"], given["rewards"]
    arms = np.full(max(len(ys), 30), -1)  # there before memory is counted: the faster, the more
    # Whatever is loaded or compiled on first use: many arms, few that are seen again, and numbers
    # so large that what is kept has to be computed anew.
    play(make(70, 3), np.eye(3), np.ones((3, 70)), arms)
    play(make(5, 3), 1e4 * np.tile(np.eye(3), (10, 1)), np.ones((30, 5)), arms)
    before = settle_memory()
    bandit = make(rewards.shape[1], ys.shape[1])
    play(bandit, ys[:2], rewards[:2], arms)
    rates, piece, t, start = [], 1, 2, time.perf_counter()
    while t + piece <= len(ys) and time.perf_counter() - start < seconds:
        began = time.perf_counter()
        play(bandit, ys[t : t + piece], rewards[t : t + piece], arms)
        took = time.perf_counter() - began
        rates.append(piece / took)
        t += piece
        # Pieces of a tenth of a second or so: the best of them is least disturbed by others.
        piece = max(1, min(int(0.1 * rates[-1]), 2 * piece))
    # Short pieces are noise; the last ones are as long as they get.
    late = rates[len(rates) // 2 :]
    return {"rate": max(late), "rounds": t, "memory": resident("VmHWM") - before}


def regret(make: Any, given: Any, _: float) -> dict[str, Any]:
    """Regret a round in each replication, and the seconds of all of them."""
    found, start = [], time.perf_counter()
    for ys, rewards, values in zip(given["y"], given["rewards"], given["values"], strict=True):
        arms = np.empty(len(ys), np.int64)
        play(make(rewards.shape[1], ys.shape[1]), ys, rewards, arms)
        found.append(float((values.max(axis=1) - values[np.arange(len(arms)), arms]).mean()))
    return {"regret": found, "seconds": time.perf_counter() - start, "rounds": given["y"].shape[1]}


def exact(make: Any, given: Any, _: float) -> dict[str, Any]:
    """How often each arm is chosen, after each of a few histories."""
    counts = []
    for case in range(int(given["cases"])):
        ys, arms, rewards = (given[f"{name}{case}"] for name in ("y", "arms", "rewards"))
        n_arms, draws = int(given["n_arms"]), int(given["draws"])
        bandit = make(n_arms, ys.shape[1])
        if hasattr(bandit, "teach"):
            bandit.teach(ys, arms, rewards)
        else:
            for y, arm, reward in zip(ys, arms, rewards, strict=True):
                bandit.learn(y, int(arm), float(reward))
        chosen = [bandit.choose(given[f"now{case}"]) for _ in range(draws)]
        counts.append(np.bincount(chosen, minlength=n_arms).tolist())
    return {"counts": counts}


def main() -> None:
    """Import, measure, print."""
    name, module, task, source, *rest = sys.argv[1:]
    given = dict(np.load(source).items())
    start = time.perf_counter()
    importlib.import_module(module)
    took = time.perf_counter() - start
    from adapters import ADAPTERS  # type: ignore[import-not-found] # beside this file

    tasks = {"speed": speed, "regret": regret, "exact": exact}
    try:
        found = tasks[task](ADAPTERS[name], given, float(rest[0]) if rest else 2.0)
    except MemoryError as error:
        found = {"failed": str(error)}
    print(json.dumps({**found, "import": took}))


if __name__ == "__main__":
    main()
