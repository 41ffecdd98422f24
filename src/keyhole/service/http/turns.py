"""`Turns`: a long request in turns, between which others are served."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from keyhole.service.http.routing import NO_UNIT

if TYPE_CHECKING:
    from keyhole.service.http.app import Application

# Steps of a turn, 3 ms of usual lines of a batch, after which a commit is made; and seconds after
# which it ends earlier, as with decisions of 1,000 features.
STEPS, SECONDS = 100, 0.01


class Turns:
    """A long request in turns, between which others are served.

    Parameters
    ----------
    app : Application
        The application.

    Attributes
    ----------
    unit : int
        The last unit that the request follows from.
    """

    def __init__(self, app: Application) -> None:
        self._app, self._writer, self.unit = app, app.service.writer, NO_UNIT
        self._steps, self._began = 0, time.perf_counter()

    def check(self) -> None:
        """Raise `FileUnusable` if the service has recovered, and a unit before is lost."""
        writer = self._app.service.writer
        if writer is not self._writer:  # the one before has ended: it commits nothing more
            if self._writer.committed < self.unit:
                raise self._writer.error()
            self._writer = writer

    def add(self, unit: int) -> None:
        """Add a unit of the service's present writer, after `check`."""
        self.check()
        self.unit = max(self.unit, unit)

    async def begin_step(self) -> None:
        """Begin a step: in another turn, if this one has taken long enough."""
        if self._steps >= STEPS or time.perf_counter() - self._began > SECONDS:
            await self.end()
        self._steps += 1

    async def end(self) -> None:
        """End a turn: commit, and let other requests be served.

        A handler makes its answer after the last turn, without a further await: rows of other
        requests, which the answer would show, are not among the units that it waits for.
        """
        await asyncio.sleep(0)
        self._steps, self._began = 0, time.perf_counter()
