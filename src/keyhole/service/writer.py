"""`Writer`: one thread that commits all waiting units in one transaction, again and again.

While the disk confirms one transaction, the units of the next gather. So the time of a commit is
shared by all who wait (group commit), and a unit is committed after all that were submitted before
it: what is in the database is always a beginning of what was submitted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from keyhole.errors import FileUnusable
from keyhole.service.store import Store, Unit

# Units of one transaction. More would make the first of them wait.
MOST = 2_000


class Writer:
    """The thread that writes.

    After a failure it commits nothing more: what was submitted and not committed is lost, and what
    is in memory is ahead of the database. The service then loads its loops again.

    Parameters
    ----------
    store : Store
        The database.
    notify : callable
        Called by this thread after each commit with the number of the last unit that is committed,
        and None or the failure.
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
        self._waiting: list[Unit] = []
        # Called with `wake`, if set, in place of waking the thread for every unit: units of many
        # requests that an event loop serves in one turn go into one transaction.
        self.later: Callable[[Callable[[], None]], object] | None = None
        self._wakes = False  # whether `wake` is to be called
        self._changed = threading.Condition()
        self._ends = self._is_idle = False
        self.submitted = last  # the number of the last unit that was submitted
        self.committed = last  # and of the last that is on the disk
        self.failure: BaseException | None = None
        self.seconds = 0.0  # that commits took in all, and how many there were
        self.commits = 0
        self._thread = threading.Thread(target=self._run, name="keyhole-writer", daemon=True)
        self._thread.start()

    def submit(self, unit: Unit) -> int:
        """Have a unit written, and return its number."""
        with self._changed:
            if self.failure is not None or self._ends:
                raise self.error()
            self._waiting.append(unit)
            self.submitted += 1
            if self._is_idle:  # a writer at work looks for more by itself
                self._wake()
            return self.submitted

    def _wake(self) -> None:
        """Wake the thread, now or at the end of the turn of an event loop."""
        if self.later is None:
            self._is_idle = False
            self._changed.notify_all()
        elif not self._wakes:
            self._wakes = True
            self.later(self.wake)

    def wake(self) -> None:
        """Have all that waits written now."""
        with self._changed:
            self._wakes = self._is_idle = False
            self._changed.notify_all()

    def wait(self, number: int, timeout: float | None = None) -> None:
        """Return when a unit is on the disk; raise `FileUnusable` if it is not to be.

        Parameters
        ----------
        number : int
            The number of the unit.
        timeout : float, optional
            How many seconds to wait at most.
        """
        with self._changed:
            # Who waits here ends no turn of an event loop, after which the thread would be woken.
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self.committed >= number or self.failure is not None or self._is_over(),
                timeout,
            )
            if self.committed < number:
                raise self.error()

    def fail(self, reason: BaseException) -> None:
        """Write nothing any more, and tell all who wait."""
        with self._changed:
            self.failure = self.failure or reason
            self._waiting.clear()
            self._changed.notify_all()
        if self._notify is not None:
            self._notify(self.committed, self.failure)

    def error(self) -> FileUnusable:
        """Return the exception for a unit that was not committed."""
        reason = self.failure or "it was closed"
        return FileUnusable(f"{self._store.path} cannot be written: {reason}")

    @property
    def is_usable(self) -> bool:
        """False after a failure, or after it was closed."""
        return self.failure is None and not self._ends

    def _is_over(self) -> bool:
        return self._ends and not self._waiting and not self._thread.is_alive()

    def close(self) -> None:
        """Commit what waits, and end the thread."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ends:
                    self._is_idle = True
                    self._changed.wait()
                self._is_idle = False
                if not self._waiting:
                    return
                units, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            started = time.perf_counter()
            failure: BaseException | None = None
            try:
                self._store.commit(units)
            except BaseException as reason:
                failure = reason
            with self._changed:
                if failure is None:
                    self.committed += len(units)
                    self.commits += 1
                    self.seconds += time.perf_counter() - started
                else:
                    self.failure = failure
                    self._waiting.clear()
                self._changed.notify_all()
            failure = self._tell(failure)
            if failure is not None:
                return

    def _tell(self, failure: BaseException | None) -> BaseException | None:
        """Notify, and return the failure; also that of notifying, after which nobody would hear."""
        try:
            if self._notify is not None:
                self._notify(self.committed, failure)
        except BaseException as reason:
            failure = failure or reason
            with self._changed:
                self.failure = failure
                self._waiting.clear()
                self._changed.notify_all()
        return failure
