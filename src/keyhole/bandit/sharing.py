"""Bandits shared between threads, and with the children of a fork.

A forked child gets a copy of everything: of a lock that another thread holds, of sums that it is
changing, of a random stream. So a fork waits until no bandit is at work, and in the child every
bandit gets a lock, a run and a random stream of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, Protocol
from weakref import WeakSet


class Shared(Protocol):
    """A bandit, as far as sharing it goes."""

    _lock: Lock

    def _begin_anew(self) -> None:
        """Begin a run with a random stream of its own."""


class Lock:
    """A lock that the same thread may take again, with a number: locks are taken in its order."""

    _numbers = count()

    def __init__(self) -> None:
        self.number = next(self._numbers)
        self._lock = threading.RLock()
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *reason: object) -> None:
        self.release()


@contextmanager
def all_of(*locks: Lock) -> Iterator[None]:
    """Hold several locks, taken in the order of their numbers: no two threads wait in a circle."""
    with ExitStack() as stack:
        for lock in sorted(set(locks), key=lambda one: one.number):
            stack.enter_context(lock)
        yield


_alive: WeakSet[Any] = WeakSet()
_held: list[Lock] = []


def register(bandit: Shared) -> None:
    """Have the bandit come through a fork whole."""
    _alive.add(bandit)


def _hold_all() -> None:
    _held[:] = sorted((bandit._lock for bandit in list(_alive)), key=lambda one: one.number)
    for lock in _held:
        lock.acquire()


def _release_all() -> None:
    for lock in reversed(_held):
        lock.release()
    _held.clear()


def _begin_anew() -> None:
    _held.clear()
    for bandit in list(_alive):
        bandit._lock = Lock()
        bandit._begin_anew()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_begin_anew)
