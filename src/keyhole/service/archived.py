"""Archived rows: those that `compact` has moved from the database into files.

`archive/LOOP/FIRST-LAST.jsonl.gz` has the rows from one number to another, each as the database had
it.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator

import msgspec

from keyhole.errors import FileError

FILE = re.compile(r"(\d+)-(\d+)\.jsonl\.gz")


class _Kind(msgspec.Struct):
    """The fields of a row that its place in the log needs."""

    kind: str
    seq: int


def files(folder: str, loop: str) -> list[tuple[int, int, str]]:
    """Return first row, last row and path of the archived files of a loop, in order.

    Parameters
    ----------
    folder : str
        The folder of the service.
    loop : str
        The name of the loop.
    """
    place = os.path.join(folder, "archive", loop)
    found = []
    for name in os.listdir(place) if os.path.isdir(place) else ():
        match = FILE.fullmatch(name)
        if match:
            found.append((int(match[1]), int(match[2]), os.path.join(place, name)))
    return sorted(found)


def last(folder: str, loop: str) -> int:
    """Return the number of the last archived row of a loop, or 0.

    Parameters
    ----------
    folder : str
        The folder of the service.
    loop : str
        The name of the loop.
    """
    found = files(folder, loop)
    return found[-1][1] if found else 0


def rows(folder: str, loop: str) -> Iterator[tuple[int, str, bytes]]:
    """Yield number, kind and body of the archived rows of a loop.

    Parameters
    ----------
    folder : str
        The folder of the service.
    loop : str
        The name of the loop.
    """
    expected = 1
    for first, _, path in files(folder, loop):
        if first != expected:
            raise FileError(f"row {expected} of loop {loop!r} is in no archived file")
        for seq, kind, line in _lines(path):
            yield seq, kind, line
            expected = seq + 1


def _lines(path: str) -> Iterator[tuple[int, str, bytes]]:
    """Yield number, kind and body of the rows of a file."""
    seq = 0
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                row = msgspec.json.decode(line, type=_Kind)
                seq = row.seq
                yield seq, row.kind, line
    except (OSError, EOFError, msgspec.MsgspecError) as reason:
        raise FileError(f"{path} is damaged after row {seq}: {reason}") from None


def row(folder: str, loop: str, seq: int) -> bytes:
    """Return an archived row, or raise `FileError`; this reads up to a whole file.

    Parameters
    ----------
    folder : str
        The folder of the service.
    loop : str
        The name of the loop.
    seq : int
        The number of the row.
    """
    for first, last, path in files(folder, loop):
        if first <= seq <= last:
            for number, _, body in _lines(path):
                if number == seq:
                    return body
    raise FileError(f"row {seq} of loop {loop!r} is neither in the database nor archived")
