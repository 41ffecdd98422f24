"""`Commits`: requests wait here until what they wrote is on the disk.

The writing thread hands over the number of the last committed unit once per commit; all requests
that waited for it go on together. Units are numbered by their writer. A service that recovers
begins with another writer, and what waits for the one before stays apart.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from keyhole.errors import FileUnusable

if TYPE_CHECKING:
    from keyhole.service.service import Service
    from keyhole.service.writer import Writer


class Commits:
    """What waits for the disk."""

    service: Service

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        # Of each writer: the number of a unit, and what waits for it. Each request has a future of
        # its own: one that is cancelled cancels its future.
        self._waiting: dict[Writer, dict[int, list[asyncio.Future[None]]]] = {}

    def begin(self, service: Service) -> None:
        """Serve the waiting of a service, on the loop of the calling task."""
        self.service, self._loop = service, asyncio.get_running_loop()
        service.gather(self._loop.call_soon)

    def notify(self, committed: int, failure: BaseException | None) -> None:
        """Tell of a commit. The writing thread calls it.

        Parameters
        ----------
        committed : int
            The number of the last unit that is on the disk.
        failure : BaseException, optional
            Why there will be no further one.
        """
        # A service changes its writer only after the thread of the last one has ended.
        writer = self.service.writer
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._resolve, writer, committed, failure)

    def _resolve(self, writer: Writer, committed: int, failure: BaseException | None) -> None:
        waiting = self._waiting.get(writer)
        if not waiting:
            return
        for number in [one for one in waiting if one <= committed]:
            for future in waiting.pop(number):
                _finish(future, None)
        if failure is not None:
            for future in [one for many in waiting.values() for one in many]:
                _finish(future, writer.error())
            del self._waiting[writer]
        elif not waiting and writer is not self.service.writer:
            del self._waiting[writer]

    async def wait(self, unit: int) -> None:
        """Return when a unit of the service's present writer is on the disk.

        Raises
        ------
        FileUnusable
            If it is not to be.
        """
        writer = self.service.writer
        if writer.committed < unit:
            await self.future(writer, unit)

    def future(self, writer: Writer, unit: int) -> asyncio.Future[None]:
        """Return what is done when a unit is on the disk.

        Parameters
        ----------
        writer : Writer
            Its writer.
        unit : int
            Its number.
        """
        assert self._loop is not None
        future = self._loop.create_future()
        self._waiting.setdefault(writer, {}).setdefault(unit, []).append(future)
        # A commit or a failure before the entry was there has told nobody.
        if writer.committed >= unit or writer.failure is not None:
            self._resolve(writer, writer.committed, writer.failure)
        return future


def _finish(future: asyncio.Future[None], error: FileUnusable | None) -> None:
    if future.done():  # its request was cancelled
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
