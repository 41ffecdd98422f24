"""`Reader`: the queries of a database, which another connection or program may write to."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple, Self

import apsw

from keyhole.errors import FileError, shown
from keyhole.service.events import Event, State
from keyhole.service.opening import check_tables, naming_errors, opened_to_read
from keyhole.service.texts import damaged_text

# Rows of the log that are read at a time.
PAGE = 1_000

# As the columns of `event`.
EventRow = tuple[int, str, int, bytes, int, float | None, float | None, int, int | None, str]


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


class Reader:
    """A database that is read.

    Parameters
    ----------
    path : str
        The file.
    connection : Connection
        The connection that reads; it is closed with this.
    """

    def __init__(self, path: str, connection: apsw.Connection) -> None:
        self.path, self._reader = path, connection

    @property
    def folder(self) -> str:
        """The folder of the file."""
        return os.path.dirname(self.path)

    def close(self) -> None:
        """Close the connection."""
        with suppress(apsw.Error):  # of a file system layer in Python, even by force
            self._reader.close(force=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def loops(self) -> list[LoopRow]:
        """Return all loops, in the order of their numbers.

        Raises
        ------
        FileError
            If a row has values that no service has written, as after a disk has lost parts of it.
        """
        listed = self.query("SELECT id, name, draw_key FROM loop ORDER BY id")
        for number, name, key in listed:
            if not isinstance(name, str) or not isinstance(key, bytes):
                raise FileError(
                    f"{self.path} is damaged: loop {number} has the name {shown(name)}, and a key "
                    f"of the type {type(key).__name__}. Restore a backup"
                )
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


def opened_reader(path: str) -> Reader:
    """Open a database that another process may write to, and write nothing.

    All reads see the database as it is now, whatever is written meanwhile.
    """
    with naming_errors(path):
        connection = opened_to_read(path)
        try:
            connection.execute("BEGIN")
            check_tables(connection, path)
        except BaseException:
            connection.close(force=True)
            raise
    return Reader(path, connection)
