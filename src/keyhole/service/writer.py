"""`Writer`: commits all waiting units in one transaction, again and again.

While the disk confirms one transaction, the units of the next gather, so that all of them share the
time of one commit (group commit). Units are committed in the order of submission: the database
always holds a prefix of the submitted units.

The writer's thread commits, or the event loop at the end of a turn. A thread lets requests be
served while the disk works, but handing over the interpreter lock costs more than a fast disk:
15,000 decisions/s in place of 19,000, and 100 of the 270 us of a single decision. So the event loop
commits to a fast disk, the thread to a slow one.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

from keyhole.errors import FileUnusable
from keyhole.service.store import Store, Unit

# Units of one transaction. More would make the first of them wait.
MAX_UNITS = 2_000
# Above this usual confirmation time (s) a disk is slow, and the thread commits.
SLOW = 0.002
# The writers of this process. Asking for its number takes 0.2 us for each request.
_writers: WeakSet[Writer] = WeakSet()


def _disown() -> None:
    """Mark the writers of the process that this one was forked from."""
    for one in _writers:
        one.is_own = False


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_disown)


class Writer:
    """Commit units in the order in which they are submitted.

    After a failure it commits nothing more: units that were not committed are lost, and memory is
    ahead of the database. The service then loads its loops again.

    Parameters
    ----------
    store : Store
        The database.
    notify : callable
        Called after each commit with the number of the last unit that is committed, and None or
        the failure; by the thread that committed.
    last : int, default 0
        The number of the last unit of the writer before this one: numbers are never used again.
    """

    def __init__(
        self,
        store: Store,
        notify: Callable[[int, BaseException | None], None] | None = None,
        last: int = 0,
    ) -> None:
        self._store, self._notify = store, notify
        self.is_own = True  # False in a process that was forked: it has no thread
        _writers.add(self)
        self._waiting: list[Unit] = []
        self._later: Callable[[Callable[[], None]], object] | None = None
        # The thread waits for work, and others wait for commits. With one condition for both, every
        # commit of the event loop would wake the thread, which then asks for Python's lock.
        self._lock = threading.RLock()
        self._work, self._done = threading.Condition(self._lock), threading.Condition(self._lock)
        self._is_planned = False  # whether `flush` is to be called
        self._must_commit = False  # whether the thread has to commit what waits
        self._is_busy = False  # whether some thread commits
        self._holds = False  # whether units are to be joined first
        self._ends = False
        self.submitted = last  # the number of the last unit that was submitted
        self.committed = last  # and of the last that is on the disk
        self.written: dict[int, int] = {}  # the last row of each loop that is on the disk
        self.failure: BaseException | None = None
        self.seconds = 0.0  # that commits took in all, and how many there were
        self.commits = 0
        self.usual = 0.0  # the usual seconds of a confirmation, by the last dozen
        self._thread = threading.Thread(target=self._run, name="keyhole-writer", daemon=True)
        self._thread.start()

    def submit(self, unit: Unit) -> int:
        """Submit a unit, and return its number."""
        if not self.is_own:
            self.check_process()
        with self._lock:
            if self.failure is not None or self._ends:
                raise self.error()
            try:
                self._waiting.append(unit)
                self.submitted += 1
                if self._later is None:
                    self._ask()
                elif not self._is_planned:
                    self._is_planned = True
                    self._later(self.flush)
            except BaseException as reason:  # of a signal: units may have other numbers by now
                self._stop(reason)
                raise
            return self.submitted

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all units of a block in one transaction; only this thread may submit meanwhile."""
        self.check_process()
        with self._lock:
            before, self._holds = self.submitted, True  # no thread takes units meanwhile
        try:
            yield
        finally:
            with self._lock:
                self._holds = False
                n = self.submitted - before
                if 1 < n <= len(self._waiting):  # after a failure none is left
                    units = self._waiting[-n:]
                    empty = Unit.joined([])
                    self._waiting[-n:] = [Unit.joined(units), *[empty] * (n - 1)]
                if self._has_work():
                    self._work.notify()

    def gather(self, later: Callable[[Callable[[], None]], object] | None) -> None:
        """Write all units of a turn of an event loop in one transaction.

        Parameters
        ----------
        later : callable or None
            Calls a function at the end of the turn, such as `call_soon`; None if there is no loop.
        """
        with self._lock:
            # A loop that has ended does not call what was planned.
            self._later, self._is_planned = later, False
            if self._waiting:
                self._ask()

    def _ask(self) -> None:
        """Wake the thread to commit all waiting units."""
        self._must_commit = bool(self._waiting)
        self._work.notify()

    def flush(self) -> None:
        """Have all waiting units committed: by this thread, unless the disk is slow or busy."""
        if not self.is_own:
            self.check_process()
        with self._lock:
            self._is_planned = False
            # Statements beside rows, as snapshots and removed arms have them, may take long.
            is_long = self.usual > SLOW or any(unit.others for unit in self._waiting)
            if self._is_busy or is_long or self.failure is not None:
                self._ask()
                return
            units = self._taken()
        if units:
            self._commit(units)

    def _taken(self) -> list[Unit]:
        """Return the units of the next transaction, which the caller commits."""
        units, self._waiting = self._waiting[:MAX_UNITS], self._waiting[MAX_UNITS:]
        self._is_busy = bool(units)
        self._must_commit = bool(self._waiting)
        return units

    def wait(self, number: int, timeout: float | None = None) -> None:
        """Return when a unit is on the disk; raise `FileUnusable` if it will not be.

        Parameters
        ----------
        number : int
            The number of the unit.
        timeout : float, optional
            How many seconds to wait at most.
        """
        self.check_process()
        with self._lock:
            self._ask()  # a thread that waits here cannot end the turn, which would write
            self._done.wait_for(
                lambda: self.committed >= number or self.failure is not None or self._is_over(),
                timeout,
            )
            if self.committed < number:
                raise self.error()

    def fail(self, reason: BaseException) -> None:
        """Stop writing, and fail all waiting requests."""
        with self._lock:
            self._stop(reason)
        if self._notify is not None:
            self._notify(self.committed, self.failure)

    def _stop(self, reason: BaseException) -> None:
        """Record a failure; the first one counts."""
        self.failure = self.failure or reason
        self._waiting.clear()
        self._work.notify()
        self._done.notify_all()

    def error(self) -> FileUnusable:
        """Return the exception for a unit that was not committed."""
        reason = self.failure or "it was closed"
        return FileUnusable(f"{self._store.path} cannot be written: {reason}")

    @property
    def is_usable(self) -> bool:
        """False after a failure, after it was closed, and in a process that was forked."""
        return self.failure is None and not self._ends and self.is_own

    def check_process(self) -> None:
        """Raise `FileUnusable` in a process that was forked: two would write to one database."""
        if not self.is_own:
            raise FileUnusable(
                f"{self._store.path} was opened by the process that this one was forked from, and "
                "two processes must not write to it: make the service after the fork, in one of "
                "them"
            )

    def _is_over(self) -> bool:
        return self._ends and not self._waiting and not self._thread.is_alive()

    def close(self) -> None:
        """Commit all waiting units, and end the thread."""
        with self._lock:
            self._ends = True
            self._work.notify()
        self._thread.join()
        with self._lock:
            self._done.notify_all()  # nothing more comes

    def _run(self) -> None:
        """Commit when woken, and the rest at the end; after a failure, nothing."""
        while True:
            with self._lock:
                self._work.wait_for(self._has_work)
                units = [] if self.failure is not None else self._taken()
            if not units:
                return
            self._commit(units)

    def _has_work(self) -> bool:
        """Whether the thread has units to commit, or nothing to do any more."""
        if self._is_busy:
            return False
        if self._ends or self.failure is not None:
            return True
        return bool(self._must_commit and self._waiting) and not self._holds

    def _commit(self, units: list[Unit]) -> None:
        started = time.perf_counter()
        failure: BaseException | None = None
        try:
            self._store.commit(units)
        except BaseException as reason:
            failure = reason
        with self._lock:
            self._is_busy = False
            if failure is None:
                self.committed += len(units)
                for unit in units:
                    if unit.rows:
                        self.written[unit.rows[-1][0]] = unit.rows[-1][1]
                self.commits += 1
                self.seconds += time.perf_counter() - started
                self.usual += (self._store.confirmed_in - self.usual) / 12
                self._done.notify_all()
            else:
                self._stop(failure)
            if self._has_work():
                self._work.notify()
        self._tell()

    def _tell(self) -> None:
        """Notify of a commit or a failure; if that fails, stop: later ones would fail, too."""
        try:
            if self._notify is not None:
                self._notify(self.committed, self.failure)
        except BaseException as reason:
            with self._lock:
                self._stop(reason)
