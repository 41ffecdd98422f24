"""How fast a loop comes into memory at a start, beside `Bandit.learn` of the same in process.

A log of decisions of 5 arms in dim 10, each with a reward, is folded from its first row on. Beside
it, a bandit in process learns as many rewards of decisions that it has made. And what users wait
for: the time until a service with a snapshot has answered a decision, in the worst case, in which
the snapshot is as old as it gets, and nothing was written at the end.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw
import numpy as np

import keyhole as kh
from benchmarks.serving import LOOP
from keyhole.service import DecideRequest, Service
from keyhole.service.service import SNAPSHOT_EVERY

# Decisions between a decision and its reward.
DELAY = 100


def filled(folder: str, n: int) -> None:
    """Write a log of n decisions and rewards, and a snapshot `SNAPSHOT_EVERY` rows before its end.

    Parameters
    ----------
    folder : str
        The folder.
    n : int
        The number of events.
    """
    random = np.random.default_rng(1)
    with Service(folder, synchronous="OFF") as service:
        loop = service.create("home", LOOP)
        last = max(0, n - SNAPSHOT_EVERY // 2)
        for k in range(n + DELAY):
            if k < n:
                context = random.standard_normal(10).tolist()
                service.decide("home", DecideRequest(context=context, event_id=f"event-{k}"))
            if k >= DELAY:
                loop.reward(f"event-{k - DELAY}", float(random.standard_normal()))
            if k == last:
                service.keep(loop)
                kept = loop.version
            if k % 1000 == 0:
                service.wait(loop.unit)  # what waits for the disk is kept in memory
    edit(folder, "DELETE FROM snapshot WHERE seq > ?", kept)


def edit(folder: str, statement: str, *values: Any) -> None:
    """Change the database of a folder behind the service's back."""
    connection = apsw.Connection(str(Path(folder) / "keyhole.db"))
    connection.execute(statement, values)
    connection.close()


def seconds_to_answer(folder: str) -> float:
    """Return the seconds from opening a folder to a decision that is on the disk."""
    start = time.perf_counter()
    with Service(folder) as service:
        service.wait(service.decide("home", DecideRequest(context=[1.0] * 10)).unit)
        seconds = time.perf_counter() - start
        service._loops.clear()  # so that closing writes no snapshot
    return seconds


def seconds_to_replay(folder: str) -> float:
    """Return the seconds in which a loop without a snapshot comes into memory."""
    with Service(folder, synchronous="OFF") as service:
        start = time.perf_counter()
        service.loop("home")
        seconds = time.perf_counter() - start
        service._loops.clear()
    return seconds


def seconds_to_learn(n: int) -> float:
    """Return the seconds in which a bandit in process learns n rewards."""
    random = np.random.default_rng(1)
    bandit = kh.Bandit(kh.ThompsonSampling(), arms=LOOP["arms"], dim=LOOP["dim"], seed=1)
    decisions = [bandit.choose(y) for y in random.standard_normal((n, 10))]
    rewards = random.standard_normal(n).tolist()
    start = time.perf_counter()
    for decision, reward in zip(decisions, rewards, strict=True):
        bandit.learn(decision, reward)
    return time.perf_counter() - start


def measure(n: int, rounds: int) -> dict[str, float]:
    """Return events per second of a replay and of learning, and the seconds to an answer.

    Parameters
    ----------
    n : int
        The number of events of the log.
    rounds : int
        Rounds in which both take turns; medians are returned.
    """
    learned = min(n, 100_000)  # decisions in memory take about a kilobyte each
    with tempfile.TemporaryDirectory() as folder:
        filled(folder, n)
        answers = [seconds_to_answer(folder) for _ in range(rounds)]
        edit(folder, "DELETE FROM snapshot")
        found = [
            (n / seconds_to_replay(folder), learned / seconds_to_learn(learned))
            for _ in range(rounds)
        ]
    replay, learn = (statistics.median(one) for one in zip(*found, strict=True))
    ratio = statistics.median(one / other for one, other in found)
    return {
        "replay": replay,
        "learn": learn,
        "ratio": ratio,
        "answer": statistics.median(answers),
    }
