"""Load at full rate for minutes, memory and files watched: only the database may grow."""

import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.service import DecideRequest, Service
from keyhole.service.loading import CACHED_EVENTS

SETTINGS: dict[str, Any] = {
    "arms": ["A", "B", "C", "D", "E"],
    "dim": 10,
    "reward": {"default": 0.0, "wait": 2.0, "late": "ignore"},
}
# Requests between two waits for the disk, as of that many connections.
AT_A_TIME = 64


@dataclass(frozen=True)
class Soaked:
    """What was seen.

    Parameters
    ----------
    rounds : int
        Decisions, each with a reward.
    rate : float
        Requests in a second.
    start, end : float
        Resident memory in MB when the events in memory have come to their number, and at the end,
        by a straight line.
    wal : float
        The largest write-ahead log, in MB.
    bytes_per_request : float
        The size of the database for each request.
    """

    rounds: int
    rate: float
    start: float
    end: float
    wal: float
    bytes_per_request: float


def resident() -> float:
    """Return the resident memory of this process, in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def soak(folder: str, seconds: float) -> Soaked:
    """Decide and reward for some time as fast as it goes.

    Parameters
    ----------
    folder : str
        The folder of the service.
    seconds : float
        How long.
    """
    rng, rounds, started = np.random.default_rng(1), 0, time.monotonic()
    seen: list[tuple[float, float, int]] = []
    wal, elapsed = 0.0, 0.0
    with Service(folder) as service:
        service.create("home", SETTINGS)
        path = os.path.join(folder, "keyhole.db")
        while elapsed < seconds:
            contexts = rng.normal(size=(AT_A_TIME, 10)).tolist()
            decided = [service.decide("home", DecideRequest(context=y)) for y in contexts]
            loop = service.loop("home")
            for one in decided[: AT_A_TIME // 2]:
                loop.reward(one.answer.event_id, 1.0)
            service.wait(loop.unit)
            service.tick()
            rounds += AT_A_TIME
            elapsed = time.monotonic() - started
            if not seen or elapsed - seen[-1][0] > seconds / 200:
                seen.append((elapsed, resident(), rounds))
                wal = max(wal, os.path.getsize(f"{path}-wal") / 1e6)
    size = os.path.getsize(path)
    steady = [one for one in seen if one[0] > seconds / 4 and one[2] > 2 * CACHED_EVENTS]
    assert len(steady) > 50, f"{seconds:g} seconds are too short for {CACHED_EVENTS} events"
    times, memory, _ = np.array(steady).T
    slope, first = np.polyfit(times, memory, 1)
    requests = rounds + rounds // 2
    return Soaked(
        rounds,
        requests / elapsed,
        float(first + slope * times[0]),
        float(first + slope * times[-1]),
        wal,
        size / requests,
    )
