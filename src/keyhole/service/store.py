"""The database of a service: one SQLite file, one connection that writes.

    loop(id, name, made, draw_key, settings, run)  a loop, and the secret of its draws
    log(loop, seq, at, kind, event, body)          the truth: rows as `keyhole.online` defines them
    event(loop, event, seq, request, state, ...)   an index of it, written in the same transaction
    reward(loop, event, reward_id, seq, value)     another
    snapshot(loop, seq, fingerprint, sha256, model)
    key(hash, name, role, loop, made, expires)     keys of clients, hashed

With `synchronous=FULL` a transaction is on the disk when its COMMIT returns. Other connections read
only: two that checkpoint a write-ahead log could damage it in SQLite before 3.51.3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Self

import apsw

from keyhole.errors import FileError, FileUnusable
from keyhole.service.events import Event, State

# "Keyh": what tells our files from those of others.
APPLICATION = 0x4B657968
VERSION = 1
# Rows of one INSERT. A statement is one call of SQLite, so that a batch hands over Python's lock a
# few times, and not once per row.
CHUNK = 40
# Rows of the log that are read at a time.
PAGE = 1_000

SCHEMA = """
CREATE TABLE loop(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, made REAL NOT NULL,
    draw_key BLOB NOT NULL, settings BLOB NOT NULL, run TEXT NOT NULL);
CREATE TABLE log(
    loop INTEGER NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, event TEXT,
    body BLOB NOT NULL, PRIMARY KEY(loop, seq)) WITHOUT ROWID;
CREATE TABLE event(
    loop INTEGER NOT NULL, event TEXT NOT NULL, seq INTEGER NOT NULL, request BLOB NOT NULL,
    state INTEGER NOT NULL, due REAL, learned REAL, learns INTEGER NOT NULL, last INTEGER,
    PRIMARY KEY(loop, event)) WITHOUT ROWID;
CREATE INDEX event_due ON event(loop, due) WHERE due IS NOT NULL;
CREATE TABLE reward(
    loop INTEGER NOT NULL, event TEXT NOT NULL, reward_id TEXT NOT NULL, seq INTEGER NOT NULL,
    value REAL NOT NULL, PRIMARY KEY(loop, event, reward_id)) WITHOUT ROWID;
CREATE TABLE snapshot(
    loop INTEGER NOT NULL, seq INTEGER NOT NULL, fingerprint TEXT NOT NULL, sha256 BLOB NOT NULL,
    model BLOB NOT NULL, PRIMARY KEY(loop, seq)) WITHOUT ROWID;
CREATE TABLE key(
    hash BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, loop TEXT,
    made REAL NOT NULL, expires REAL) WITHOUT ROWID;
"""

LogRow = tuple[int, int, float, str, str | None, bytes]  # as the columns of `log`
EventRow = tuple[int, str, int, bytes, int, float | None, float | None, int, int | None]
RewardRow = tuple[int, str, str, int, float]


class Unit(NamedTuple):
    """All that one request writes: it is committed whole, or not at all."""

    rows: list[LogRow]
    events: list[EventRow]
    rewards: list[RewardRow]
    others: list[tuple[str, tuple[Any, ...]]]  # statements and their values


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
    )


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
        with naming_errors(path):
            self._writer = apsw.Connection(path, vfs=vfs)
            try:
                self._prepare(synchronous)
                self._reader = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
            except BaseException:
                with suppress(apsw.Error):
                    self._writer.close(force=True)
                raise
        self._number = os.stat(path).st_ino

    @classmethod
    def reading(cls, path: str) -> Store:
        """Open a database that another process may write to, and write nothing."""
        store = object.__new__(cls)
        store.path = path
        with naming_errors(path):
            store._writer = store._reader = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
            store._check_version()
        return store

    def _check_version(self) -> None:
        version = self._writer.pragma("user_version")
        if self._writer.pragma("application_id") != APPLICATION:
            raise FileError(f"{self.path} is a database, but none of a decision service")
        if version != VERSION:
            raise FileError(
                f"{self.path} has version {version}, and this Keyhole reads version {VERSION}: "
                "install the Keyhole that wrote it, or a newer one"
            )

    def _prepare(self, synchronous: str) -> None:
        writer = self._writer
        writer.set_busy_timeout(5000)
        is_new = writer.execute("SELECT count(*) FROM sqlite_schema").get == 0
        if not is_new:
            self._check_version()
        if writer.pragma("journal_mode", "WAL") != "wal":
            raise FileUnusable(f"{self.path} is on a file system without write-ahead logs")
        writer.pragma("synchronous", synchronous)
        if is_new:
            with writer:
                writer.execute(SCHEMA)
                writer.pragma("application_id", APPLICATION)
                writer.pragma("user_version", VERSION)

    @property
    def is_there(self) -> bool:
        """False if the file was removed or replaced: what is written then goes to nowhere."""
        try:
            return os.stat(self.path).st_ino == self._number
        except FileNotFoundError:
            return False

    @property
    def folder(self) -> str:
        """The folder of the file."""
        return os.path.dirname(self.path)

    def close(self) -> None:
        """Close the file; what was committed stays.

        Closing may move the write-ahead log into the database. A failure of that loses nothing: it
        is done by the next one who opens the file.
        """
        for connection in (self._reader, self._writer):
            with suppress(apsw.Error):  # of a file system layer in Python, even by force
                connection.close(force=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # -- writing ----------------------------------------------------------------------------------

    def commit(self, units: Sequence[Unit]) -> None:
        """Write units in one transaction, and return when they are on the disk.

        Only one thread may write.
        """
        writer = self._writer
        writer.execute("BEGIN IMMEDIATE")
        try:
            self._insert("INSERT INTO log VALUES", 6, [row for unit in units for row in unit.rows])
            events = {(row[0], row[1]): row for unit in units for row in unit.events}
            self._insert("INSERT OR REPLACE INTO event VALUES", 9, list(events.values()))
            rewards = [row for unit in units for row in unit.rewards]
            self._insert("INSERT INTO reward VALUES", 5, rewards)
            for unit in units:
                for statement, values in unit.others:
                    writer.execute(statement, values)
            writer.execute("COMMIT")
        except BaseException:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            raise

    def _insert(self, begin: str, width: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, a few at a time."""
        one = f"({','.join('?' * width)})"
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            values = [value for row in part for value in row]
            self._writer.execute(f"{begin} {','.join([one] * len(part))}", values)

    # -- reading ----------------------------------------------------------------------------------

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
            "SELECT seq, request, state, due, learned, learns, last FROM event "
            "WHERE loop = ? AND event = ?",
            (loop, name),
        )
        if not found:
            return None
        seq, request, state, due, learned, learns, last = found[0]
        rewards = self.query(
            "SELECT reward_id, value FROM reward WHERE loop = ? AND event = ? ORDER BY seq",
            (loop, name),
        )
        return Event(
            name, seq, request, State(state), due, learned, bool(learns), last, dict(rewards)
        )

    def row(self, loop: int, seq: int) -> bytes | None:
        """Return the body of a row, or None.

        Parameters
        ----------
        loop, seq : int
            The number of the loop, and that of the row.
        """
        found = self.query("SELECT body FROM log WHERE loop = ? AND seq = ?", (loop, seq))
        return found[0][0] if found else None

    def rows(self, loop: int, after: int = 0, limit: int = -1) -> Iterator[tuple[int, str, bytes]]:
        """Yield number, kind and body of the rows of a loop, in order.

        They are read some at a time: a query that is not at its end would have all others of this
        connection read the database as it was when that one began.

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

    def due(self, loop: int, until: float, limit: int) -> list[str]:
        """Return the ids of events that are due, the earliest first.

        Parameters
        ----------
        loop : int
            The number of the loop.
        until : float
            The time up to which they are due.
        limit : int
            How many at most.
        """
        found = self.query(
            "SELECT event FROM event WHERE loop = ? AND due <= ? ORDER BY due LIMIT ?",
            (loop, until, limit),
        )
        return [name for (name,) in found]

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

    def all_events(self, loop: int) -> list[EventRow]:
        """Return all rows of the table of events of a loop."""
        return self.query("SELECT * FROM event WHERE loop = ?", (loop,))

    def all_rewards(self, loop: int) -> set[tuple[str, str, float]]:
        """Return event, id and value of every reward of a loop."""
        return set(self.query("SELECT event, reward_id, value FROM reward WHERE loop = ?", (loop,)))

    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query.

        Parameters
        ----------
        statement : str
            The query, a constant of the program.
        values : tuple
            Its values.
        """
        with naming_errors(self.path):
            return list(self._reader.execute(statement, values))


@contextmanager
def naming_errors(path: str) -> Iterator[None]:
    """Convert an error of SQLite to a `FileError` that names the file."""
    try:
        yield
    except apsw.NotADBError:
        raise FileError(f"{path} is not a database") from None
    except apsw.CorruptError as reason:
        raise FileError(
            f"{path} is damaged ({reason}): restore it from a backup, or recover what can be read "
            "with the command .recover of sqlite3"
        ) from reason
    except apsw.Error as reason:
        raise FileUnusable(f"{path} cannot be used: {reason}") from reason
