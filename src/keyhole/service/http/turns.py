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

    def add(self, unit: int) -> None:
        """Take note of a unit of the service's present writer.

        Raises
        ------
        FileUnusable
            If the service has recovered, and an earlier unit is lost.
        """
        writer = self._app.service.writer
        if writer is not self._writer:  # the one before has ended: it commits nothing more
            if self._writer.committed < self.unit:
                raise self._writer.error()
            self._writer = writer
        self.unit = max(self.unit, unit)

    async def step(self) -> None:
        """End a step, and the turn if it has taken long enough."""
        self._steps += 1
        if self._steps >= STEPS or time.perf_counter() - self._began > SECONDS:
            await self.end()

    async def end(self) -> None:
        """End a turn: what was submitted is written, and other requests are served."""
        await asyncio.sleep(0)
        self._steps, self._began = 0, time.perf_counter()
