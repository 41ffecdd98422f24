"""`Commits`: requests wait here until what they wrote is on the disk.

After each commit, the writer's thread or the event loop, whichever has committed, tells the number
of the last committed unit, and all requests that waited for it go on together. A service that
recovers has a new writer; requests that wait for the one before are kept apart.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from keyhole.errors import FileUnusable
from keyhole.service.http import logs

if TYPE_CHECKING:
    from keyhole.service.service import Service
    from keyhole.service.writer import Writer

Then: TypeAlias = Callable[[FileUnusable | None], None]


class Commits:
    """The requests that wait for the disk."""

    service: Service

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None  # the thread of the loop
        # By writer and number of the unit: what is called when the unit is on the disk.
        self._waiting: dict[Writer, dict[int, list[Then]]] = {}

    def begin(self, service: Service) -> None:
        """Begin to serve the requests of a service, on the event loop of the calling task."""
        self.service, self._loop = service, asyncio.get_running_loop()
        self._thread = threading.get_ident()
        service.gather(self._loop.call_soon)

    def notify(self, committed: int, failure: BaseException | None) -> None:
        """Tell of a commit. The thread that has committed calls it.

        Parameters
        ----------
        committed : int
            The number of the last unit that is on the disk.
        failure : BaseException, optional
            Why there will be no further commits.
        """
        # A service changes its writer only after the thread of the last one has ended.
        writer = self.service.writer
        if self._thread == threading.get_ident():
            self._resolve(writer, committed, failure)
        elif self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._resolve, writer, committed, failure)

    def _resolve(self, writer: Writer, committed: int, failure: BaseException | None) -> None:
        waiting = self._waiting.get(writer)
        if not waiting:
            return
        ready = [
            then
            for number in [one for one in waiting if one <= committed]
            for then in waiting.pop(number)
        ]
        failed = [] if failure is None else [then for many in waiting.values() for then in many]
        if failure is not None or not waiting:
            del self._waiting[writer]
        for then in ready:
            _call(then, None)
        for then in failed:
            _call(then, writer.error())

    def when(self, unit: int, then: Then) -> None:
        """Call a function when a unit of the service's present writer is on the disk.

        Parameters
        ----------
        unit : int
            The number of the unit.
        then : callable
            Called with None; or with the failure, if the unit will not be committed.
        """
        writer = self.service.writer
        if writer.committed >= unit:
            _call(then, None)
        else:
            self._add(writer, unit, then)

    def _add(self, writer: Writer, unit: int, then: Then) -> None:
        self._waiting.setdefault(writer, {}).setdefault(unit, []).append(then)
        # A commit or a failure before this entry was added has not called it.
        if writer.committed >= unit or writer.failure is not None:
            self._resolve(writer, writer.committed, writer.failure)

    async def wait(self, unit: int) -> None:
        """Return when a unit of the service's present writer is on the disk.

        Raises
        ------
        FileUnusable
            If it will not be.
        """
        writer = self.service.writer
        if writer.committed < unit:
            await self.future(writer, unit)

    def future(self, writer: Writer, unit: int) -> asyncio.Future[None]:
        """Return a future that is done when a unit is on the disk.

        Parameters
        ----------
        writer : Writer
            Its writer.
        unit : int
            Its number.
        """
        assert self._loop is not None
        # Each request has a future of its own: one that is cancelled cancels its future.
        future = self._loop.create_future()

        def finish(error: FileUnusable | None) -> None:
            if future.done():  # its request was cancelled
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self._add(writer, unit, finish)
        return future


def _call(then: Then, error: FileUnusable | None) -> None:
    """Call one function; if it fails, the others are called all the same."""
    try:
        then(error)
    except Exception as reason:  # of the connection; it is logged
        logs.event("an answer could not be sent", reason)
