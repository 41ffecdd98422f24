"""Checks of the database beside the bodies of rows: columns, loops, copies of archived rows.

All of it follows from the log, and the service uses it without reading the bodies.
"""

from __future__ import annotations

from typing import Any

import msgspec

from keyhole.errors import FileError, KeyholeError
from keyhole.online import rows
from keyhole.service import archived
from keyhole.service.journal import KINDS
from keyhole.service.reader import Reader
from keyhole.service.settings import LoopSettings

_ROWS = "SELECT seq, kind, event, at, body FROM log WHERE loop = ? ORDER BY seq"
_REWARD = "SELECT seq FROM reward WHERE loop = ? AND event = ? AND reward_id = ?"
# An event that is open, and whether its decision is in the database.
_OPEN = """
SELECT due, EXISTS (SELECT 1 FROM log WHERE log.loop = event.loop AND log.seq = event.seq)
FROM event WHERE loop = ? AND event = ? AND state < 2
"""


class Log:
    """The table `log` of a loop, compared with its rows. It may have copies of archived rows.

    Parameters
    ----------
    store : Reader
        The database.
    number : int
        The number of the loop.
    """

    def __init__(self, store: Reader, number: int) -> None:
        self._store, self._number = store, number
        self._note = archived.note(store, number)
        self._rows = store.each(_ROWS, (number,))
        self._next: Any = None
        self._advance()

    def _advance(self) -> None:
        """Go to the next row of the table, whose number may be a text in a changed database."""
        self._next = next(self._rows, None)
        if self._next is not None and not isinstance(self._next[0], int):
            self.check_end()

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
            if self._next is not None and self._next[0] < row.seq:
                self.check_end()
            self._check_archived(row, is_here=False)
            return
        _, *columns, kept = self._next
        wanted = [KINDS[type(row)], getattr(row, "event", None), row.at]
        if columns != wanted:
            raise FileError(f"row {row.seq} has the columns {columns} in place of {wanted}")
        if kept != body:
            raise FileError(f"row {row.seq} differs between archive and database")
        if row.seq <= self._note.last:
            self._check_archived(row, is_here=True)
        self._advance()

    def _check_archived(self, row: rows.AnyRow, *, is_here: bool) -> None:
        """Raise `FileError` unless an archived row of an open event has a copy where it must.

        Rewards of an event whose decision is only in the archive are late, and those of any other
        event follow from the last row of its term. An event that is open now was always so.
        """
        needed = rows.Decision | rows.Served | rows.Reward | rows.Amend | rows.Counted
        if not isinstance(row, needed):
            return
        is_decision = isinstance(row, rows.Decision | rows.Served)
        for due, has_decision in self._store.query(_OPEN, (self._number, row.event)):
            must = has_decision
            if is_decision:
                must = True if due is not None else self._note.has_copy(row.seq, row.at)
            if is_here != must:
                has, did = ("has", "has deleted it") if is_here else ("lacks", "keeps it")
                raise FileError(
                    f"the database {has} row {row.seq} of event {row.event!r}, which is open: "
                    f"`compact` {did}"
                )

    def check_end(self) -> None:
        """Raise `FileError` if the table has rows that do not belong to the log."""
        if self._next is not None:
            raise FileError(f"row {self._next[0]} of the database does not belong to the log")


def check_reward(store: Reader, number: int, row: rows.AnyRow) -> None:
    """Raise `FileError` unless the reward that came with a row has the number of the row.

    Parameters
    ----------
    store : Reader
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


def check_loop(store: Reader, number: int, run: str, settings: LoopSettings) -> None:
    """Raise `FileError` unless a loop has the run and the settings that its log says.

    Parameters
    ----------
    store : Reader
        The database.
    number : int
        The number of the loop.
    run : str
        The name of its run.
    settings : LoopSettings
        Its last settings.
    """
    kept, kept_run = store.settings_and_run(number)
    try:
        is_same = LoopSettings.of(msgspec.json.decode(kept)) == settings
    except (msgspec.MsgspecError, KeyholeError, TypeError, UnicodeDecodeError) as reason:
        raise FileError(f"its settings are damaged: {reason}") from None
    if not is_same or kept_run != run:
        raise FileError("the table of loops has other settings, or another run, than its log")


def check_loops(store: Reader) -> None:
    """Raise `FileError` if rows belong to no loop."""
    for table in ("log", "event", "reward", "snapshot"):
        # Trials of a service that recovers are snapshots of the number 0.
        missing = "loop != 0 AND loop NOT IN (SELECT id FROM loop)"
        found = store.query(f"SELECT loop FROM {table} WHERE {missing} LIMIT 1")
        if found:
            raise FileError(f"the table {table} has rows of a loop {found[0][0]}, which is missing")


def model(store: Reader, number: int, seq: int) -> bytes:
    """Return the content of the snapshot at a row.

    Parameters
    ----------
    store : Reader
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
