"""Garbage collection of the server's process: full collections between requests.

Python searches all objects for cycles again and again while their number grows. With 20,000 events
in memory that takes 100 ms, several times a minute, in the middle of requests. The service makes
hardly any cycles: everything else is freed by its reference count. So only the youngest objects are
searched as usual, in 0.1 ms, and all of them when there are no requests, or after a while in any
case.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Objects that are made before the youngest generation is searched. To search the middle one would
# take 3 to 5 ms, in which 1% of all requests wait.
THRESHOLDS = (2_000, 1_000_000, 1_000_000)
# Seconds between two checks for a pause; bounds of the seconds between full collections.
STEP, MIN_SECONDS, MAX_SECONDS = 1.0, 60.0, 900.0


@contextmanager
def kept_thresholds() -> Iterator[None]:
    """Set the thresholds of the server, and restore the earlier ones at the end."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # modules and their functions: they are never garbage
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def collect_in_pauses(served: Callable[[], int]) -> None:
    """Collect all garbage when no request came for a second.

    Parameters
    ----------
    served : callable
        Returns how many requests there were.
    """
    loop = asyncio.get_running_loop()
    last, before = loop.time(), served()
    while True:
        await asyncio.sleep(STEP)
        since, now = loop.time() - last, served()
        if since > MAX_SECONDS or (since > MIN_SECONDS and now == before):
            gc.collect()
            last = loop.time()
        before = now
