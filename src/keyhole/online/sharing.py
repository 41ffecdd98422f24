"""Bandits shared between threads, and with the children of a fork.

A forked child gets a copy of everything: of a lock that another thread holds, of sums that it is
changing, of a random stream. So a fork waits until no bandit is at work, and in the child every
bandit gets a lock, a run and a random stream of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any
from weakref import WeakSet


class Shared:
    """An object with a lock, which comes through a fork whole."""

    def _share(self) -> None:
        """Get a lock, and a number: locks are taken in the order of these."""
        self._lock = threading.RLock()
        self._lock_number = next(_numbers)
        with _forking:
            _alive.add(self)

    def _begin_anew(self) -> None:
        """Begin a run with a random stream of its own."""
        raise NotImplementedError


_numbers = count()
# Held while a thread forks, and while the set of those alive changes.
_forking = threading.Lock()
_alive: WeakSet[Shared] = WeakSet()
_held: list[Any] = []


def _in_order(shared: Iterable[Shared]) -> list[Shared]:
    return sorted(set(shared), key=lambda one: one._lock_number)


@contextmanager
def all_locked(*shared: Shared) -> Iterator[None]:
    """Hold the locks of several, taken in order: no two threads wait for each other in a circle."""
    with ExitStack() as stack:
        for one in _in_order(shared):
            stack.enter_context(one._lock)
        yield


def _hold_all() -> None:
    _forking.acquire()
    _held[:] = [one._lock for one in _in_order(list(_alive))]
    for lock in _held:
        lock.acquire()


def _release_all() -> None:
    for lock in reversed(_held):
        lock.release()
    _held.clear()
    _forking.release()


def _begin_anew() -> None:
    global _forking
    _forking = threading.Lock()
    _held.clear()
    for one in list(_alive):
        one._lock = threading.RLock()
        one._begin_anew()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_begin_anew)
