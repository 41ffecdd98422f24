"""`Attempts`: when a request is sent again, and for how long."""

from __future__ import annotations

import random
import time

from keyhole.service.client.answers import ServiceError

# A program's own random stream stays as it is, and equal seeds do not give equal pauses.
_SYSTEM = random.SystemRandom()


class Attempts:
    """The attempts of one request. All requests may be repeated: they have ids, or only read.

    Parameters
    ----------
    patience : float
        Seconds after which no further one begins. Unless it is 0, the second one always does: the
        first may have used all of them to wait for its answer.
    """

    def __init__(self, patience: float) -> None:
        self._began, self._patience, self._count = time.monotonic(), patience, 0

    def pause(self) -> float | None:
        """Return the seconds before the next attempt, or None if there is none.

        They double up to a second, and are random, so that clients do not retry all at once.
        """
        seconds = min(0.05 * 2.0**self._count, 1.0) * _SYSTEM.uniform(0.5, 1.5)
        self._count += 1
        left = self._began + self._patience - time.monotonic()
        if left > 0.0:
            return min(seconds, left)
        return seconds if self._count == 1 and self._patience > 0.0 else None

    def error(self, reason: Exception) -> ServiceError:
        """Return the exception of a request that got no answer."""
        seconds = time.monotonic() - self._began
        times = f"{self._count} times in {seconds:.1f} s"
        return ServiceError(f"no answer, sent {times}: {type(reason).__name__}: {reason}")
