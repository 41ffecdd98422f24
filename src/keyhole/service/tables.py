"""Checks of the database beside the bodies of rows: columns, loops, copies of archived rows.

All of it follows from the log, and the service uses it without reading the bodies.
"""

from __future__ import annotations

import msgspec

from keyhole.errors import FileError, KeyholeError
from keyhole.online import rows
from keyhole.service.journal import KINDS
from keyhole.service.settings import LoopSettings
from keyhole.service.store import Store

_ROWS = "SELECT seq, kind, event, at, body FROM log WHERE loop = ? ORDER BY seq"
_REWARD = "SELECT seq FROM reward WHERE loop = ? AND event = ? AND reward_id = ?"
# Open events that wait for their end need the rows that their reward follows from.
_LACKING = """
SELECT event, seq, last FROM event WHERE loop = ?1 AND state < 2 AND due IS NOT NULL AND (
    NOT EXISTS (SELECT 1 FROM log WHERE loop = ?1 AND log.seq = event.seq)
    OR last IS NOT NULL AND NOT EXISTS (SELECT 1 FROM log WHERE loop = ?1 AND log.seq = last))
LIMIT 1
"""


class Log:
    """The table `log` of a loop, compared with its rows. It may have copies of archived rows.

    Parameters
    ----------
    store : Store
        The database.
    number : int
        The number of the loop.
    """

    def __init__(self, store: Store, number: int) -> None:
        self._rows = store.each(_ROWS, (number,))
        self._next = next(self._rows, None)

    def check(self, row: rows.AnyRow, body: bytes) -> None:
        """Raise `FileError` if the table has the next row of the log, but not as it is.

        Parameters
        ----------
        row : AnyRow
            The row.
        body : bytes
            The row, from the archive if it is there.
        """
        if self._next is None or self._next[0] != row.seq:
            return  # archived, or missing, which the fold reports
        _, *columns, kept = self._next
        wanted = [KINDS[type(row)], getattr(row, "event", None), row.at]
        if columns != wanted:
            raise FileError(f"row {row.seq} has the columns {columns} in place of {wanted}")
        if kept != body:
            raise FileError(f"row {row.seq} differs between archive and database")
        self._next = next(self._rows, None)

    def check_end(self) -> None:
        """Raise `FileError` if the table has rows that do not belong to the log."""
        if self._next is not None:
            raise FileError(f"row {self._next[0]} of the database does not belong to the log")


def check_reward(store: Store, number: int, row: rows.AnyRow) -> None:
    """Raise `FileError` unless the reward that came with a row has the number of the row.

    Parameters
    ----------
    store : Store
        The database.
    number : int
        The number of the loop.
    row : AnyRow
        The row.
    """
    if not isinstance(row, rows.Reward | rows.Amend | rows.Outcome) or row.id is None:
        return
    found = store.query(_REWARD, (number, row.event, row.id))
    if found != [(row.seq,)]:
        raise FileError(
            f"the table of rewards has rows {[seq for (seq,) in found]} for the reward "
            f"{row.id!r} of event {row.event!r}, which came with row {row.seq}"
        )


def check_open_events(store: Store, number: int) -> None:
    """Raise `FileError` if the database lacks a row of an event that waits for rewards.

    Parameters
    ----------
    store : Store
        The database.
    number : int
        The number of the loop.
    """
    for event, seq, last in store.query(_LACKING, (number,)):
        raise FileError(f"the database lacks row {seq} or {last} of event {event!r}, which is open")


def check_loop(store: Store, number: int, run: str, settings: LoopSettings) -> None:
    """Raise `FileError` unless a loop has the run and the settings that its log says.

    Parameters
    ----------
    store : Store
        The database.
    number : int
        The number of the loop.
    run : str
        The name of its run.
    settings : LoopSettings
        Its last settings.
    """
    [(kept_run, kept)] = store.query("SELECT run, settings FROM loop WHERE id = ?", (number,))
    try:
        is_same = LoopSettings.of(msgspec.json.decode(kept)) == settings
    except (msgspec.MsgspecError, KeyholeError, TypeError, UnicodeDecodeError) as reason:
        raise FileError(f"its settings are damaged: {reason}") from None
    if not is_same or kept_run != run:
        raise FileError("the table of loops has other settings, or another run, than its log")


def check_loops(store: Store) -> None:
    """Raise `FileError` if rows belong to no loop."""
    for table in ("log", "event", "reward", "snapshot"):
        # Trials of a service that recovers are snapshots of the number 0.
        missing = "loop != 0 AND loop NOT IN (SELECT id FROM loop)"
        found = store.query(f"SELECT loop FROM {table} WHERE {missing} LIMIT 1")
        if found:
            raise FileError(f"the table {table} has rows of a loop {found[0][0]}, which is missing")


def model(store: Store, number: int, seq: int) -> bytes:
    """Return the content of the snapshot at a row.

    Parameters
    ----------
    store : Store
        The database.
    number : int
        The number of the loop.
    seq : int
        The number of the row.
    """
    statement = "SELECT model FROM snapshot WHERE loop = ? AND seq = ?"
    [(content,)] = store.query(statement, (number, seq))
    found: bytes = content
    return found
