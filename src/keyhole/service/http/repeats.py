"""`Repeats`: which of equal lines are written, and how many were left out."""

from __future__ import annotations

import time
from collections.abc import Callable

# Lines of a kind that are written at most, and within how many seconds.
MAX_LINES, SECONDS = 5, 10.0
# Kinds that are counted at a time: lines may have texts of clients, which are unlimited.
MAX_KINDS = 1_000
MAX_KIND_LENGTH = 300


class Repeats:
    """Counts of equal lines.

    Parameters
    ----------
    now : callable, optional
        The clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # Of each kind: when its counting ends, and how many lines came.
        self._counts: dict[str, tuple[float, int]] = {}

    def allows(self, kind: str) -> bool:
        """Count a line, and tell whether it is written."""
        kind = kind[:MAX_KIND_LENGTH]
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = "others"
        until, count = self._counts.get(kind, (self._now() + SECONDS, 0))
        self._counts[kind] = (until, count + 1)
        return count < MAX_LINES

    def over(self, now: float | None = None) -> list[tuple[str, int]]:
        """End counts whose time is over, and return kinds and numbers of lines left out.

        Parameters
        ----------
        now : float, optional
            The time.
        """
        now = self._now() if now is None else now
        ended = [(kind, count) for kind, (until, count) in self._counts.items() if until <= now]
        for kind, _ in ended:
            del self._counts[kind]
        return [(kind, count - MAX_LINES) for kind, count in ended if count > MAX_LINES]
