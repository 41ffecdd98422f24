"""The clock of the benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(call: Callable[[], object], repeats: int = 15) -> float:
    """Return the shortest time of a few calls, in seconds: the one least disturbed by others."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
