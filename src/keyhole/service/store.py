"""The database of a service: one SQLite file, one connection that writes; see `schema`, `Reader`.

With `synchronous=FULL` a transaction is on the disk when its COMMIT returns. Other connections read
only: two that checkpoint a write-ahead log could damage it in SQLite before 3.51.3.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import apsw

from keyhole.errors import FileUnusable
from keyhole.service.events import Event
from keyhole.service.opening import check_tables, naming_errors
from keyhole.service.reader import EventRow, Reader
from keyhole.service.schema import APPLICATION, EVENT, LOG, REWARD, SCHEMA, VERSION

# Milliseconds to wait while another program locks the file.
BUSY = 5_000
# Pages of 4 kB in the write-ahead log from which on a commit moves them into the database. With
# SQLite's 1,000 the same rows are written per second, and the slowest commits take twice as long.
CHECKPOINT = 250

LogRow = tuple[int, int, float, str, str | None, bytes]  # as the columns of `log`
RewardRow = tuple[int, str, str, int, float, int]  # as those of `reward`
Statement = tuple[str, tuple[Any, ...]]  # a statement and its values


class Unit(NamedTuple):
    """Rows and statements that are committed as a whole, or not at all."""

    rows: list[LogRow]
    events: list[EventRow]
    rewards: list[RewardRow]
    others: list[Statement]

    @classmethod
    def of_statements(cls, *statements: Statement) -> Unit:
        """Return a unit that has statements alone."""
        return cls([], [], [], list(statements))

    @classmethod
    def joined(cls, units: Sequence[Unit]) -> Unit:
        """Return all of some units, in order, as one."""
        return cls(
            [row for unit in units for row in unit.rows],
            [row for unit in units for row in unit.events],
            [row for unit in units for row in unit.rewards],
            [one for unit in units for one in unit.others],
        )


def event_row(loop: int, event: Event) -> EventRow:
    """Return an event as a row of its table.

    Parameters
    ----------
    loop : int
        The number of its loop.
    event : Event
        The event.
    """
    return (
        loop,
        event.name,
        event.seq,
        event.request,
        int(event.state),
        event.due,
        event.learned,
        int(event.learns),
        event.last,
        event.arm,
    )


class Store(Reader):
    """A database that is written to.

    Parameters
    ----------
    path : str
        The file, which is made if it does not exist.
    synchronous : {"FULL", "OFF"}, default "FULL"
        Whether the disk confirms each commit. "OFF" is for measurements and for the control of
        fault tests.
    vfs : str, optional
        The file system layer of SQLite, for fault tests.

    Raises
    ------
    FileUnusable
        If the file cannot be opened or written.
    FileError
        If it is not a database of this service, or one of a newer version.
    """

    def __init__(self, path: str, *, synchronous: str = "FULL", vfs: str | None = None) -> None:
        self.confirmed_in = 0.0  # seconds that the disk took to confirm the last commit
        with naming_errors(path):
            self._writer = apsw.Connection(path, vfs=vfs)
            try:
                _prepare(self._writer, path, synchronous)
                reader = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
            except BaseException:
                with suppress(apsw.Error):
                    self._writer.close(force=True)
                raise
        super().__init__(path, reader)
        self._numbers = os.stat(path).st_ino, self._log_number()

    @property
    def is_there(self) -> bool:
        """False if a file was removed or replaced: further writes would be lost."""
        try:
            return (os.stat(self.path).st_ino, self._log_number()) == self._numbers
        except FileNotFoundError:
            return False

    def _log_number(self) -> int:
        """Return the number of the write-ahead log's file, which is there while this is open."""
        return os.stat(f"{self.path}-wal").st_ino

    def close(self) -> None:
        """Close the file; what was committed stays.

        Closing may move the write-ahead log into the database. If that fails, nothing is lost: the
        next one to open the file does it.
        """
        super().close()
        with suppress(apsw.Error):  # as of the other connection
            self._writer.close(force=True)

    def restart_log(self) -> bool:
        """Move the write-ahead log into the database; False if a reader holds on to it.

        After a failed fsync the page cache may hold pages that are not on the disk, and a later
        fsync reports success. Rows behind them would be lost with them: a log is read up to its
        first damage.
        """
        self._writer.set_busy_timeout(0)
        try:
            with naming_errors(self.path), suppress(apsw.BusyError):
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                return True
        finally:
            self._writer.set_busy_timeout(BUSY)
        return False

    def commit(self, units: Sequence[Unit]) -> None:
        """Write units in one transaction, and return when they are on the disk.

        Only one thread may write at a time.
        """
        writer = self._writer
        writer.execute("BEGIN IMMEDIATE")
        try:
            writer.executemany(LOG, [row for unit in units for row in unit.rows])
            events = {(row[0], row[1]): row for unit in units for row in unit.events}
            writer.executemany(EVENT, events.values())
            writer.executemany(REWARD, [row for unit in units for row in unit.rewards])
            for unit in units:
                for statement, values in unit.others:
                    writer.execute(statement, values)
            started = time.perf_counter()
            writer.execute("COMMIT")
        except BaseException:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            raise
        self.confirmed_in = time.perf_counter() - started


def _prepare(writer: apsw.Connection, path: str, synchronous: str) -> None:
    """Make the tables of a new database, or check those of another; and set what to sync.

    Parameters
    ----------
    writer : Connection
        The connection that writes.
    path : str
        The file.
    synchronous : str
        As in `Store`.
    """
    writer.set_busy_timeout(BUSY)
    is_new = writer.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if not is_new:
        check_tables(writer, path)
    if writer.pragma("journal_mode", "WAL") != "wal":
        raise FileUnusable(f"{path} is on a file system without write-ahead logs")
    writer.pragma("synchronous", synchronous)
    writer.pragma("wal_autocheckpoint", CHECKPOINT)
    if is_new:
        with writer:
            writer.execute(SCHEMA)
            writer.pragma("application_id", APPLICATION)
            writer.pragma("user_version", VERSION)
    # The first read makes the write-ahead log of a database that was restored from a backup.
    writer.pragma("user_version")
