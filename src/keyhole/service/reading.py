"""A folder that is read and not written to, and the fold of a loop from its first row on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from keyhole.errors import FileError, FileMissing, InvalidValue
from keyhole.files import Path, checked_path
from keyhole.online import rows
from keyhole.service import archived, given
from keyhole.service.eventfile import EventFile
from keyhole.service.fold import MALFORMED, LoopReplay, malformed
from keyhole.service.folder import DATABASE
from keyhole.service.index import Index
from keyhole.service.journal import LoopJournal, decoded_row
from keyhole.service.reader import LoopRow, Reader, opened_reader


@contextmanager
def reading(folder: Path) -> Iterator[Reader]:
    """Open the database of a folder, which may be in use, to read; or raise `FileMissing`."""
    path = os.path.join(checked_path("folder", folder), DATABASE)
    if not os.path.exists(path):
        raise FileMissing(f"there is no service in {folder}: {DATABASE} is missing")
    with opened_reader(path) as store:
        archived.check(store)
        yield store


def loop_of(store: Reader, name: str | None) -> LoopRow:
    """Return a loop: the only one, if no name is given.

    Parameters
    ----------
    store : Reader
        The database.
    name : str, optional
        The name.
    """
    listed = store.loops()
    found = [one for one in listed if name in (None, one.name)]
    if len(found) != 1:
        if not listed:
            raise InvalidValue(f"there is no loop in {store.folder}")
        names = ", ".join(one.name for one in listed)
        if name is None:
            raise InvalidValue(f"loop must be given: one of {names}")
        raise InvalidValue(f"loop must be one of {names}, got {name}")
    return found[0]


def last_row(store: Reader, loop: LoopRow) -> int:
    """Return the number of the last row of a loop, which may be archived.

    Parameters
    ----------
    store : Reader
        The database.
    loop : LoopRow
        The loop.
    """
    return max(store.last_seq(loop.number), archived.Archive(store.folder, loop.name).last())


def all_rows(store: Reader, loop: LoopRow) -> Iterator[tuple[int, str, bytes]]:
    """Yield number, kind and body of every row of a loop, archived ones first.

    Parameters
    ----------
    store : Reader
        The database.
    loop : LoopRow
        The loop.
    """
    last = 0
    for seq, kind, body in archived.Archive(store.folder, loop.name).rows():
        last = seq
        yield seq, kind, body
    yield from store.rows(loop.number, last)


class WholeFold:
    """The fold of a loop from its first row on: its bandit and its events.

    Parameters
    ----------
    store : Reader
        The database.
    loop : LoopRow
        The loop.
    verifies : bool, default True
        Make every decision again, and compare it with its row.
    """

    def __init__(self, store: Reader, loop: LoopRow, *, verifies: bool = True) -> None:
        # Decisions are found by the events of the log itself, and not by the tables.
        self.events = EventFile(archived.Archive(store.folder, loop.name).last())
        self.index = Index(self.events, loop.name)
        self.journal = LoopJournal(loop.number, loop.name, store, self.events, lambda: 0.0)
        self.replay = LoopReplay(self.journal, loop.draw_key, verifies=verifies)
        self.decisions = 0

    def step(self, seq: int, kind: str, body: bytes) -> rows.AnyRow:
        """Take in one row and return it; raise `FileError` if it does not follow from those before.

        Parameters
        ----------
        seq : int
            Its number.
        kind : str
            Its kind.
        body : bytes
            The row.
        """
        self.replay.step(seq, kind, body)
        row = decoded_row(self.journal.name, seq, body)
        try:
            self.index.take(row)
            if self.replay.verify and isinstance(row, rows.Decision | rows.Served):
                given.check(row, self.replay.bandit, self.index.settings)
        except FileError:
            raise
        except MALFORMED as reason:
            raise malformed(self.journal.name, seq, reason) from reason
        if isinstance(row, rows.Reward | rows.Amend | rows.Counted) and row.event is not None:
            self.events.present(row.event).last_row = row
        if isinstance(row, rows.Decision | rows.Served):
            self.events.present(row.event).row = row
            self.decisions += isinstance(row, rows.Decision)
        self.events.took(len(body))
        return row
