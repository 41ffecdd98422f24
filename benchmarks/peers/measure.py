"""One measurement of one library, in that library's own environment: prints a line of JSON.

python -m benchmarks.peers.measure NAME MODULE speed|regret|exact INPUT.npz [SECONDS]
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.peers.adapters import ADAPTERS
from benchmarks.peers.memory import resident, settle_memory


def play(bandit: Any, ys: Any, rewards: Any, arms: Any) -> float:
    """One choice and one reward a round, whose arms are written down; the seconds of it.

    A bandit that can `prepare` the observations does so before the clock starts.
    """
    if hasattr(bandit, "prepare"):
        bandit.prepare(ys)
    start = time.perf_counter()
    for t, y in enumerate(ys):
        arms[t] = arm = bandit.choose(y)
        bandit.learn(y, arm, float(rewards[t, arm]))
    return time.perf_counter() - start


def speed(make: Any, given: Any, seconds: float) -> dict[str, float]:
    """Return the rounds per second, and the memory beyond that of a first small run."""
    ys, rewards = given["y"], given["rewards"]
    arms = np.full(max(len(ys), 30), -1)  # there before memory is counted: the faster, the more
    # Whatever is loaded or compiled on first use: many arms, few that are seen again, and numbers
    # so large that what is kept has to be computed anew.
    play(make(70, 3), np.eye(3), np.ones((3, 70)), arms)
    play(make(5, 3), 1e4 * np.tile(np.eye(3), (10, 1)), np.ones((30, 5)), arms)
    before = settle_memory()
    rates: list[float] = []
    piece, played, t, bandit = 1, 0, len(ys), None
    start = time.perf_counter()
    while not rates or time.perf_counter() - start < seconds:
        if t + piece > len(ys):
            # At the end a new bandit begins again: the fast play the same rounds as the slow.
            del bandit
            bandit = make(rewards.shape[1], ys.shape[1])
            play(bandit, ys[:2], rewards[:2], arms)
            t = 2
        took = play(bandit, ys[t : t + piece], rewards[t : t + piece], arms)
        rates.append(piece / took)
        t, played = t + piece, played + piece
        # Pieces of a tenth of a second or so: the best of them is least disturbed by others.
        piece = max(1, min(int(0.1 * rates[-1]), 2 * piece, len(ys) // 4))
    # Short pieces are noise; the last ones are as long as they get.
    late = rates[len(rates) // 2 :]
    return {"rate": max(late), "rounds": played, "memory": resident("VmHWM") - before}


def regret(make: Any, given: Any, _: float) -> dict[str, Any]:
    """Regret a round in each replication, and the seconds of all of them."""
    found, seconds = [], 0.0
    for ys, rewards, values in zip(given["y"], given["rewards"], given["values"], strict=True):
        arms = np.empty(len(ys), np.int64)
        seconds += play(make(rewards.shape[1], ys.shape[1]), ys, rewards, arms)
        found.append(float((values.max(axis=1) - values[np.arange(len(arms)), arms]).mean()))
    return {"regret": found, "seconds": seconds, "rounds": given["y"].shape[1]}


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
    importlib.import_module(module)
    tasks = {"speed": speed, "regret": regret, "exact": exact}
    try:
        found = tasks[task](ADAPTERS[name], given, float(rest[0]) if rest else 2.0)
    except MemoryError as error:
        found = {"failed": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
