"""The log: how fast a bandit writes, and how fast its rows are read, replayed and looked up.

    python -m benchmarks.log [--decisions 100000] [--events 1000000]

prints a table. Files are in memory where there is such a place: a disk's speed is not ours.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import keyhole as kh
from benchmarks.timing import best
from keyhole.online.log.events import Events
from keyhole.online.log.replaying import Own, Replay, quietly

N_ARMS, DIM = 5, 10
UNITS = kh.Learner(kh.ThompsonSampling(v=1.0), intercept=True, standardize=True, missing="predict")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        for name, learner in (("plain", kh.ThompsonSampling(v=1.0)), ("units", UNITS)):
            writing(Path(folder), name, learner)
        reading(Path(folder), options.decisions)
    index(options.events)


def show(what: str, value: float, unit: str) -> None:
    """Print a line of the table."""
    print(f"{what:<58} {value:>12,.0f} {unit}", flush=True)


def writing(folder: Path, name: str, learner: Any) -> None:
    """Measure decisions, with their probability, and rewards."""
    ys = np.random.default_rng(1).standard_normal((2000, DIM))
    bandit: Any = kh.Bandit(learner, arms=N_ARMS, dim=DIM, seed=1, log=folder / f"{name}.jsonl")
    for y in ys:
        bandit.learn(bandit.choose(y), 1.0)

    def choose() -> None:
        for y in ys:
            bandit.choose(y)

    def both() -> None:
        for y in ys:
            bandit.learn(bandit.choose(y), 1.0)

    def by_id() -> None:
        for y in ys:
            bandit.learn(bandit.choose(y).id, 1.0)

    def in_batches() -> None:
        bandit.choose_many(ys)

    for what, call in (
        ("decisions", choose),
        ("decisions in one batch", in_batches),
        ("decisions and their rewards", both),
        ("decisions and rewards by id", by_id),
    ):
        show(f"{name}, {N_ARMS} x {DIM}: {what}", len(ys) / best(call), "/s")
    events = [bandit.choose(y).id for y in ys[:500]]
    for event in events:
        bandit.learn(event, 1.0)
    for what, change in (
        ("amended", lambda event: bandit.amend(event, 2.0)),
        ("forgotten", bandit.forget),
    ):
        show(f"{name}, {N_ARMS} x {DIM}: events {what}", _each(events, change), "/s")
    bandit.log.close()


def _each(events: list[str], change: Callable[[str], object]) -> float:
    start = time.perf_counter()
    for event in events:
        change(event)
    return len(events) / (time.perf_counter() - start)


def reading(folder: Path, n: int) -> None:
    """Measure what is done with a log of n decisions, whose rewards come 100 rounds late."""
    ys, path, late = np.random.default_rng(1).standard_normal((n, DIM)), folder / "long.jsonl", []
    bandit: Any = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=N_ARMS, dim=DIM, seed=1, log=path)
    for y in ys:
        late.append(bandit.choose(y))
        if len(late) > 100:
            bandit.learn(late.pop(0), 1.0)
    for decision in late:
        bandit.learn(decision, 1.0)
    bandit.log.close()
    show("bytes of a decision and its reward", path.stat().st_size / n, "bytes")

    def believed() -> None:
        replay = Replay("log", Own(), verify=False)
        with quietly():
            for row in kh.Log(path):
                replay.take(row)

    def rows() -> None:
        for _ in kh.Log(path):
            pass

    for what, call in (
        ("rows read, of a decision and its reward", rows),
        ("decisions replayed and compared", lambda: kh.Log(path).replay()),
        ("decisions replayed and believed", believed),
        ("decisions as columns, with checkpoints", lambda: kh.Log(path).columns()),
    ):
        show(what, n / best(call, repeats=2), "/s")


def index(n: int) -> None:
    """Measure the memory that the index takes of n events, each with a reward."""
    run = "0123456789abcdef"
    kinds = {
        "decisions of a run": (f"{run}-{k}" for k in range(n)),
        "of batches of 100": (f"{run}-{k // 100}.{k % 100}" for k in range(n)),
        "with ids of one's own": (f"order {k:08d}" for k in range(n)),
    }
    for what, ids in kinds.items():
        events = Events()
        tracemalloc.start()
        for place, event in enumerate(ids):
            events.add(event, place)
            events.learn(event, place)
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        print(f"{f'index of {n:,} events, {what}':<58} {used / n:>12,.1f} bytes/event", flush=True)


if __name__ == "__main__":
    main()
