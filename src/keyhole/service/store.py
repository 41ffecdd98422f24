"""The database of a service: one SQLite file, one connection that writes; see `schema`.

With `synchronous=FULL` a transaction is on the disk when its COMMIT returns. Other connections read
only: two that checkpoint a write-ahead log could damage it in SQLite before 3.51.3.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from typing import Any, NamedTuple, Self

import apsw

from keyhole.errors import FileError, FileUnusable
from keyhole.service.events import Event, State
from keyhole.service.opening import naming_errors, opened_to_read
from keyhole.service.schema import APPLICATION, EVENT, LOG, REWARD, SCHEMA, VERSION
from keyhole.service.texts import damaged_text

# Rows of the log that are read at a time.
PAGE = 1_000
# Milliseconds to wait while another program locks the file.
BUSY = 5_000
# Pages of 4 kB in the write-ahead log from which on a commit moves them into the database. With
# SQLite's 1,000 the same rows are written per second, and the slowest commits take twice as long.
CHECKPOINT = 250

LogRow = tuple[int, int, float, str, str | None, bytes]  # as the columns of `log`
EventRow = tuple[int, str, int, bytes, int, float | None, float | None, int, int | None, str]
RewardRow = tuple[int, str, str, int, float, int]  # and of `reward`
Statement = tuple[str, tuple[Any, ...]]  # a statement and its values


class LoopRow(NamedTuple):
    """A row of the table `loop`, but for what follows from the log: settings and run.

    Attributes
    ----------
    number : int
        The number of the loop.
    name : str
        Its name.
    draw_key : bytes
        The key of its draws.
    """

    number: int
    name: str
    draw_key: bytes


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


Tables = frozenset[tuple[str, str, str | None]]  # type, name and statement of each


def _tables(connection: apsw.Connection) -> Tables:
    """Return the tables, indexes and triggers of a database, without SQLite's own."""
    listed = connection.execute("SELECT type, name, sql FROM sqlite_schema")
    return frozenset(one for one in listed if not one[1].startswith("sqlite_"))


@cache
def _own_tables() -> Tables:
    """Return those of a new database."""
    with closing(apsw.Connection(":memory:")) as made:
        made.execute(SCHEMA)
        return _tables(made)


class Store:
    """An open database.

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
        self.path = path
        self.confirmed_in = 0.0  # seconds that the disk took to confirm the last commit
        with naming_errors(path):
            self._writer = apsw.Connection(path, vfs=vfs)
            try:
                self._prepare(synchronous)
                self._reader = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
            except BaseException:
                with suppress(apsw.Error):
                    self._writer.close(force=True)
                raise
        self._numbers = os.stat(path).st_ino, self._log_number()

    @classmethod
    def reading(cls, path: str) -> Store:
        """Open a database that another process may write to, and write nothing.

        All reads see the database as it is now, whatever is written meanwhile.
        """
        store = object.__new__(cls)
        store.path = path
        with naming_errors(path):
            connection = opened_to_read(path)
            store._writer = store._reader = connection
            try:
                connection.execute("BEGIN")
                store._check_version()
            except BaseException:
                connection.close(force=True)
                raise
        return store

    def _check_version(self) -> None:
        version = self._writer.pragma("user_version")
        if self._writer.pragma("application_id") != APPLICATION:
            raise FileError(f"{self.path} is a database, but not one of a decision service")
        if version != VERSION:
            raise FileError(
                f"{self.path} has version {version}, and this Keyhole reads version {VERSION}: "
                "install the Keyhole that wrote it, or a newer one"
            )
        if _tables(self._writer) != _own_tables():
            raise FileError(
                f"{self.path} has other tables, indexes or triggers than this service has made: "
                "restore it from a backup"
            )

    def _prepare(self, synchronous: str) -> None:
        writer = self._writer
        writer.set_busy_timeout(BUSY)
        is_new = writer.execute("SELECT count(*) FROM sqlite_schema").get == 0
        if not is_new:
            self._check_version()
        if writer.pragma("journal_mode", "WAL") != "wal":
            raise FileUnusable(f"{self.path} is on a file system without write-ahead logs")
        writer.pragma("synchronous", synchronous)
        writer.pragma("wal_autocheckpoint", CHECKPOINT)
        if is_new:
            with writer:
                writer.execute(SCHEMA)
                writer.pragma("application_id", APPLICATION)
                writer.pragma("user_version", VERSION)
        # The first read makes the write-ahead log of a database that was restored from a backup.
        writer.pragma("user_version")

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

    @property
    def folder(self) -> str:
        """The folder of the file."""
        return os.path.dirname(self.path)

    def close(self) -> None:
        """Close the file; what was committed stays.

        Closing may move the write-ahead log into the database. If that fails, nothing is lost: the
        next one to open the file does it.
        """
        for connection in (self._reader, self._writer):
            with suppress(apsw.Error):  # of a file system layer in Python, even by force
                connection.close(force=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

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

    # -- writing ----------------------------------------------------------------------------------

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

    # -- reading ----------------------------------------------------------------------------------

    def loops(self) -> list[LoopRow]:
        """Return all loops, in the order of their numbers."""
        listed = self.query("SELECT id, name, draw_key FROM loop ORDER BY id")
        return [LoopRow(*one) for one in listed]

    def settings_and_run(self, loop: int) -> tuple[bytes, str]:
        """Return the settings of a loop, as JSON, and the name of its run.

        They are not read with those of all other loops, one of which may be damaged.
        """
        statement = "SELECT settings, run FROM loop WHERE id = ?"
        [(settings, run)] = self.query(statement, (loop,))
        return settings, run

    def event(self, loop: int, name: str) -> Event | None:
        """Return an event of a loop, or None.

        Parameters
        ----------
        loop : int
            The number of the loop.
        name : str
            The id of the event.
        """
        found = self.query(
            "SELECT seq, request, state, due, learned, learns, last, arm FROM event "
            "WHERE loop = ? AND event = ?",
            (loop, name),
        )
        if not found:
            return None
        seq, request, state, due, learned, learns, last, arm = found[0]
        event = Event(name, seq, request, State(state), due, learned, bool(learns), last, arm=arm)
        rewards = self.query(
            "SELECT reward_id, value, counts FROM reward WHERE loop = ? AND event = ? ORDER BY seq",
            (loop, name),
        )
        for reward_id, value, counts in rewards:
            (event.rewards if counts else event.uncounted)[reward_id] = value
        return event

    def row(self, loop: int, seq: int) -> bytes | None:
        """Return the body of a row, or None.

        Parameters
        ----------
        loop, seq : int
            The number of the loop, and of the row.
        """
        found = self.query("SELECT body FROM log WHERE loop = ? AND seq = ?", (loop, seq))
        return found[0][0] if found else None

    def count(self, loop: int, after: int, last: int) -> int:
        """Return how many rows of a loop the database has, of those after a row up to another.

        Parameters
        ----------
        loop : int
            The number of the loop.
        after, last : int
            The number of the row before the first, and of the last.
        """
        statement = "SELECT count(*) FROM log WHERE loop = ? AND seq > ? AND seq <= ?"
        [(found,)] = self.query(statement, (loop, after, last))
        return int(found)

    def rows(self, loop: int, after: int = 0, limit: int = -1) -> Iterator[tuple[int, str, bytes]]:
        """Yield number, kind and body of the rows of a loop, in order.

        They are read a page at a time: while a query is unfinished, all others of this connection
        would read the database as it was when that query began.

        Parameters
        ----------
        loop : int
            The number of the loop.
        after : int, default 0
            The number of the row before the first.
        limit : int, default -1
            How many at most; all by default.
        """
        while limit:
            size = min(PAGE, limit) if limit > 0 else PAGE
            page = self.query(
                "SELECT seq, kind, body FROM log WHERE loop = ? AND seq > ? ORDER BY seq LIMIT ?",
                (loop, after, size),
            )
            yield from page
            if len(page) < size:
                return
            after, limit = page[-1][0], limit - size

    def last_seq(self, loop: int) -> int:
        """Return the number of the last row of a loop."""
        [(found,)] = self.query("SELECT max(seq) FROM log WHERE loop = ?", (loop,))
        return 0 if found is None else int(found)

    def ids(self, loop: int, after: str, limit: int) -> list[str]:
        """Return ids of events in their order.

        Parameters
        ----------
        loop : int
            The number of the loop.
        after : str
            The id before the first.
        limit : int
            How many at most.
        """
        found = self.query(
            "SELECT event FROM event WHERE loop = ? AND event > ? ORDER BY event LIMIT ?",
            (loop, after, limit),
        )
        return [name for (name,) in found]

    def due(
        self, loop: int, until: float, limit: int, after: tuple[float, str] = (-math.inf, "")
    ) -> list[tuple[float, str]]:
        """Return when events are due, and their ids, the earliest first.

        Parameters
        ----------
        loop : int
            The number of the loop.
        until : float
            The time up to which they are due.
        limit : int
            How many at most.
        after : tuple of float and str, optional
            The last one of the page before.
        """
        return self.query(
            "SELECT due, event FROM event WHERE loop = ? AND due <= ? AND (due, event) > (?, ?) "
            "ORDER BY due, event LIMIT ?",
            (loop, until, *after, limit),
        )

    def snapshot(self, loop: int, before: int) -> tuple[int, str, bytes, bytes] | None:
        """Return number of the row, fingerprint, checksum and content of a snapshot, or None.

        Parameters
        ----------
        loop : int
            The number of the loop.
        before : int
            The snapshot is the last one of a row before this.
        """
        found = self.query(
            "SELECT seq, fingerprint, sha256, model FROM snapshot WHERE loop = ? AND seq < ? "
            "ORDER BY seq DESC LIMIT 1",
            (loop, before),
        )
        return found[0] if found else None

    def snapshots(self, loop: int) -> list[tuple[int, str, bytes]]:
        """Return number of the row, fingerprint and checksum of every snapshot of a loop."""
        return self.query("SELECT seq, fingerprint, sha256 FROM snapshot WHERE loop = ?", (loop,))

    def each_event(self, loop: int) -> Iterator[EventRow]:
        """Yield all rows of the table of events of a loop, in the order of the ids' bytes."""
        return self.each("SELECT * FROM event WHERE loop = ? ORDER BY event", (loop,))

    def each_reward(self, loop: int) -> Iterator[tuple[str, str, float, int]]:
        """Yield event, id and value of every reward, and whether it counts, by the ids' bytes."""
        statement = "SELECT event, reward_id, value, counts FROM reward WHERE loop = ? "
        return self.each(statement + "ORDER BY event, reward_id", (loop,))

    def each(self, statement: str, values: tuple[Any, ...]) -> Iterator[Any]:
        """Yield the rows of a query, of a database that is only read.

        Parameters
        ----------
        statement : str
            The query, a constant of the program.
        values : tuple
            Its values.
        """
        try:
            with naming_errors(self.path):
                yield from self._reader.execute(statement, values)
        except UnicodeDecodeError:
            raise damaged_text(self._reader, self.path) from None

    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query.

        Parameters
        ----------
        statement : str
            The query, a constant of the program.
        values : tuple
            Its values.
        """
        try:
            with naming_errors(self.path):
                return list(self._reader.execute(statement, values))
        except UnicodeDecodeError:
            raise damaged_text(self._reader, self.path) from None
