"""Archived rows: those that `compact` has moved from the database into files.

`archive/LOOP/FIRST-LAST.jsonl.gz` has the rows from FIRST to LAST, each as the database had it.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Annotated

import msgspec

from keyhole.errors import FileError, shown
from keyhole.service.reader import Reader

FOLDER = "archive"  # of all loops, in that of the service
FILE = re.compile(r"(\d+)-(\d+)\.jsonl\.gz")
# Exceptions of reading a damaged file.
DAMAGE = (OSError, EOFError, zlib.error, msgspec.MsgspecError, UnicodeDecodeError)


class _Kind(msgspec.Struct):
    """The fields of a row that are needed to place it in the log."""

    kind: str
    seq: int


RowNumber = Annotated[int, msgspec.Meta(ge=0)]


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the database notes of the archive of a loop.

    Parameters
    ----------
    last : int, default 0
        The number of the last archived row.
    cutoffs : list of (int, float)
        Of each compaction the last row and a time: decisions of open events that have no end were
        deleted up to both. Those that a later one includes are left out.
    """

    last: RowNumber = 0
    cutoffs: list[tuple[int, float]] = []

    def after(self, last: int, cutoff: float) -> Note:
        """Return the note after one more compaction.

        Parameters
        ----------
        last : int
            The last row.
        cutoff : float
            The time up to which it deletes decisions of open events that have no end.
        """
        kept = [one for one in self.cutoffs if one[1] > cutoff]
        return Note(last, [*kept, (last, cutoff)])

    def has_copy(self, seq: int, at: float) -> bool:
        """Tell whether the decision of an open event that has no end is still in the database.

        Parameters
        ----------
        seq : int
            The number of its row.
        at : float
            The time of its row.
        """
        return not any(seq <= last and at <= cutoff for last, cutoff in self.cutoffs)


class Archive:
    """The archived rows of a loop.

    Parameters
    ----------
    folder : str
        The folder of the service.
    loop : str
        The name of the loop.
    """

    def __init__(self, folder: str, loop: str) -> None:
        self.place = os.path.join(folder, FOLDER, loop)
        self._loop = loop

    def files(self) -> list[tuple[int, int, str]]:
        """Return first row, last row and path of the files, in order."""
        found = []
        for name in os.listdir(self.place) if os.path.isdir(self.place) else ():
            match = FILE.fullmatch(name)
            if match:
                found.append((int(match[1]), int(match[2]), os.path.join(self.place, name)))
        return sorted(found)

    def last(self) -> int:
        """Return the number of the last row, or 0."""
        found = self.files()
        return found[-1][1] if found else 0

    def checked_last(self) -> int:
        """Return the number of the last row; raise `FileError` if a file is missing."""
        end = 0
        for first, last, _ in self.files():
            if first != end + 1:
                raise FileError(
                    f"{self.place} has no file with row {end + 1} of loop {self._loop!r}: "
                    "restore it"
                )
            end = last
        return end

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield number, kind and body of the rows."""
        self.checked_last()
        for first, _, path in self.files():
            expected = first
            for seq, kind, line in _lines(path):
                if seq != expected:
                    raise FileError(f"{path} has row {seq} in place of {expected}")
                yield seq, kind, line
                expected = seq + 1

    def row(self, seq: int) -> bytes:
        """Return a row, or raise `FileError`; this reads a file up to the row."""
        for first, last, path in self.files():
            if first <= seq <= last:
                try:
                    with gzip.open(path, "rb") as file:
                        body = next(islice(file, seq - first, None), b"")
                    is_found = msgspec.json.decode(body, type=_Kind).seq == seq
                except DAMAGE as reason:
                    raise FileError(f"{path} is damaged before or at row {seq}: {reason}") from None
                if not is_found:
                    raise FileError(f"{path} does not have row {seq} in its place")
                return body
        raise FileError(f"row {seq} of loop {self._loop!r} is neither in the database nor archived")


def _lines(path: str) -> Iterator[tuple[int, str, bytes]]:
    """Yield number, kind and body of the rows of a file."""
    seq = 0
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                row = msgspec.json.decode(line, type=_Kind)
                seq = row.seq
                yield seq, row.kind, line
    except DAMAGE as reason:
        raise FileError(f"{path} is damaged after row {seq}: {reason}") from None


def noted(store: Reader, number: int) -> int:
    """Return the number of the last archived row according to the database, or 0.

    Parameters
    ----------
    store : Reader
        The database.
    number : int
        The number of the loop.
    """
    return note(store, number).last


def note(store: Reader, number: int) -> Note:
    """Return what the database notes of the archive of a loop, or raise `FileError`.

    Parameters
    ----------
    store : Reader
        The database.
    number : int
        The number of the loop.
    """
    name = note_name(number)
    found = store.query("SELECT value FROM note WHERE name = ?", (name,))
    if not found:
        return Note()
    try:
        return msgspec.json.decode(found[0][0], type=Note)
    except (msgspec.MsgspecError, UnicodeDecodeError) as reason:
        raise FileError(
            f"the note {name!r} in {store.path}, on rows of the loop with this number, is "
            f"{shown(found[0][0])} ({reason}): restore the database from a backup"
        ) from None


def note_name(number: int) -> str:
    """Return the name under which the database notes the last archived row of a loop."""
    return f"archived {number}"


def check(store: Reader) -> None:
    """Raise `FileError` unless archive and database belong together.

    A restored database beside a newer archive would reuse the numbers of archived rows; without its
    archive it would lack rows.

    Parameters
    ----------
    store : Reader
        The database; the archive is beside it.
    """
    folder = store.folder
    loops = store.loops()
    names = {loop.name for loop in loops}
    place = os.path.join(folder, FOLDER)
    for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
        if name not in names and Archive(folder, name).files():
            raise FileError(
                f"{place} has rows of loop {name!r}, which {store.path} does not have: restore the "
                "database that belongs to the archive, or move the archive to another place"
            )
    for number, name, _ in loops:
        archive = Archive(folder, name)
        found, wanted = archive.checked_last(), noted(store, number)
        if found < wanted:
            raise FileError(
                f"the rows of loop {name!r} up to {wanted} were archived, and "
                f"{archive.place} ends at {found}: restore the archive"
            )
        # An interrupted `compact` has written files, and deleted nothing.
        if found > wanted and store.row(number, found) != archive.row(found):
            raise FileError(
                f"{archive.place} reaches to row {found}, which is not that of "
                f"{store.path}: the two are of different times. Restore both from one backup"
            )
        if found > wanted and store.count(number, wanted, found) < found - wanted:
            raise FileError(
                f"{store.path} lacks rows of loop {name!r} from {wanted + 1} to {found}, and does "
                "not note that they were archived: restore it from a backup"
            )
