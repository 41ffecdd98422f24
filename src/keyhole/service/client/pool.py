"""`Pool`: the HTTP client of this process, so that a child does not use its parent's sockets."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

from keyhole.service.client.answers import ServiceError

Http = TypeVar("Http")


class Pool(Generic[Http]):
    """One HTTP client per process, made when it is first needed.

    After a fork, parent and child would read each other's answers from the sockets they share.
    The child gets a client of its own; that of the parent is neither used nor closed there.

    Parameters
    ----------
    make : callable
        Makes an HTTP client, with no connections yet.
    """

    def __init__(self, make: Callable[[], Http]) -> None:
        self._make = make
        self._by_process: dict[int, Http] = {}
        self.is_closed = False

    def get(self) -> Http:
        """Return the HTTP client of this process, or raise `ServiceError` if it was closed."""
        self.check_open()
        process = os.getpid()
        found = self._by_process.get(process)
        if found is None:
            # Of several threads, all use the one that setdefault keeps. It is atomic; a lock could
            # be held by another thread of the parent at the fork, and the child would wait forever.
            found = self._by_process.setdefault(process, self._make())
            self.check_open()  # another thread may have closed it meanwhile
        return found

    def check_open(self, reason: Exception | None = None) -> None:
        """Raise `ServiceError` if it was closed.

        Parameters
        ----------
        reason : Exception, optional
            The exception of a request during which another thread or task closed it.
        """
        if self.is_closed:
            raise ServiceError(
                "the client was closed, and sends nothing: make another one"
            ) from reason

    def peek(self) -> Http | None:
        """Return the HTTP client of this process if it was made."""
        return self._by_process.get(os.getpid())

    def drop(self, http: Http) -> None:
        """Make another HTTP client for the next request; other threads may still use this one.

        Parameters
        ----------
        http : object
            The HTTP client whose connections may be unusable. It is left to the garbage collector.
        """
        if self.peek() is http:
            self._by_process.pop(os.getpid(), None)

    def end(self) -> Http | None:
        """Refuse all further requests, and return the HTTP client to close, if there is one."""
        self.is_closed = True
        return self._by_process.pop(os.getpid(), None)
