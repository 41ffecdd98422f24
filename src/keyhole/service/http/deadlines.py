"""`Deadlines`: ends requests of slow clients, by one timer for all of them.

A timer for every request would cost more than reading it: most bodies come at once.
"""

from __future__ import annotations

import asyncio
from typing import Any

from keyhole.service.http.problems import Problem


class Deadlines:
    """The tasks that wait for a client, each with its deadline."""

    def __init__(self) -> None:
        self._until: dict[asyncio.Task[Any], float] = {}
        self._expired: set[asyncio.Task[Any]] = set()

    def within(self, seconds: float) -> _Within:
        """Return a context in which the present task may wait for a client.

        Parameters
        ----------
        seconds : float
            How long; after that a `Problem` of status 408 is raised.
        """
        return _Within(self, seconds)

    def expire(self) -> None:
        """Cancel the tasks whose deadline has passed. A timer calls it."""
        now = asyncio.get_running_loop().time()
        for task in [task for task, until in self._until.items() if until < now]:
            del self._until[task]
            self._expired.add(task)
            task.cancel()


class _Within:
    __slots__ = ("_deadlines", "_seconds", "_task")

    def __init__(self, deadlines: Deadlines, seconds: float) -> None:
        self._deadlines, self._seconds = deadlines, seconds

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._deadlines._until[task] = task.get_loop().time() + self._seconds

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        deadlines, task = self._deadlines, self._task
        deadlines._until.pop(task, None)
        if task in deadlines._expired:
            deadlines._expired.discard(task)
            if isinstance(error, asyncio.CancelledError):
                task.uncancel()
                raise Problem(
                    408,
                    f"the request did not come within {self._seconds:g} seconds",
                    ((b"connection", b"close"),),
                ) from None
