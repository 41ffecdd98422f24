"""`Recovery`: after a failure of the disk, load what was written, and go on."""

from __future__ import annotations

import time

from keyhole.errors import KeyholeError
from keyhole.service.http import logs
from keyhole.service.http.problems import Problem
from keyhole.service.service import Service

# Seconds between two attempts: each opens the database, while nothing else is served.
PAUSE = 0.5


class Recovery:
    """Reopen the database after a failed write.

    Parameters
    ----------
    service : Service
        The service.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._next = 0.0
        self.failures = 0  # how often the disk failed
        self.reason: str | None = None  # why the service is not ready

    def attempt(self) -> None:
        """Load all loops again; raise a `Problem` of status 503 if that is not possible."""
        now = time.monotonic()
        if self.reason is None:
            failure = self._service.writer.error()
            self.failures += 1
            self.reason = str(failure)
            logs.event("the disk failed", failure)
        if now < self._next:  # also after a success: a disk may take one row, and not the next
            raise self._problem()
        self._next = now + PAUSE
        try:
            self._service.recover()
        except (KeyholeError, OSError) as error:
            self.reason = str(error)
            raise self._problem() from None
        self.reason = None
        logs.event("recovered")

    def _problem(self) -> Problem:
        return Problem(
            503,
            f"the disk cannot be written ({self.reason}): this request changed nothing, send it "
            "again later",
            ((b"retry-after", b"1"),),
        )
