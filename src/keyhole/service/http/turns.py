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
        """Take note of a unit of the service's present writer; as `check`."""
        self.check()
        self.unit = max(self.unit, unit)

    async def begin_step(self) -> None:
        """Begin a step: in another turn, if this one has taken long enough."""
        if self._steps >= STEPS or time.perf_counter() - self._began > SECONDS:
            await self.end()
        self._steps += 1

    async def end(self) -> None:
        """End a turn: what was submitted is written, and other requests are served.

        An answer is made after the last turn, and without another one: the rows of others, which it
        would also tell of, are not among the units of this request.
        """
        await asyncio.sleep(0)
        self._steps, self._began = 0, time.perf_counter()
