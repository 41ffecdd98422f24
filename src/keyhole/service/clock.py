"""`Clock`: the time of day, which does not jump while a process runs."""

from __future__ import annotations

import time


class Clock:
    """Seconds since 1970, from the system's clock at the start and a steady one since.

    A system clock that is set forward would end all waiting events at once, and one that is set
    back would make them wait longer.
    """

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()

    def __call__(self) -> float:
        """Return the time."""
        return self._start + time.monotonic()
