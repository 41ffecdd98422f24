"""`compact`: rows that a snapshot stands for, moved from the database into files.

`archive/LOOP/FIRST-LAST.jsonl.gz` has the rows from one number to another, each as the database had
it. They are written and synced before the rows are deleted: a crash in between leaves them twice,
and the next call deletes them. What `verify` and `export` read begins with the archive.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from keyhole.errors import FileError
from keyhole.files import Path, replacing
from keyhole.service.service import Service
from keyhole.service.store import Unit

FILE = re.compile(r"(\d+)-(\d+)\.jsonl\.gz")


class _Kind(msgspec.Struct):
    """The fields of a row that its place in the log needs."""

    kind: str
    seq: int


@dataclass(frozen=True)
class Compacted:
    """What was moved of a loop.

    Parameters
    ----------
    loop : str
        Its name.
    rows : int
        How many rows were moved.
    kept : int
        How many remain in the database.
    """

    loop: str
    rows: int
    kept: int


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
        try:
            with gzip.open(path, "rb") as file:
                for line in file:
                    row = msgspec.json.decode(line, type=_Kind)
                    yield row.seq, row.kind, line
                    expected = row.seq + 1
        except (OSError, EOFError, msgspec.MsgspecError) as reason:
            raise FileError(f"{path} is damaged after row {expected - 1}: {reason}") from None


def compact(folder: Path, *, keep: float = 30 * 86_400.0) -> list[Compacted]:
    """Keep every loop as a snapshot, and move the rows before it into files.

    Decisions of open events stay in the database, if they are due or young. A reward of an archived
    event is "late".

    Parameters
    ----------
    folder : path-like
        The folder of a service that is not running.
    keep : float, default 30 days
        For how many seconds decisions stay that rewards are waited for without end.
    """
    with Service(folder) as service:
        return [_compacted(service, name, keep) for name in service.names]


def _compacted(service: Service, name: str, keep: float) -> Compacted:
    loop = service.loop(name)
    service.keep(loop)
    service.wait(loop.unit)
    archived = files(service.path, name)
    after = archived[-1][1] if archived else 0
    listed = list(service.store.rows(loop.number, after))
    if listed:
        first, last = listed[0][0], listed[-1][0]
        place = os.path.join(service.path, "archive", name)
        os.makedirs(place, mode=0o700, exist_ok=True)
        with (
            replacing(os.path.join(place, f"{first}-{last}.jsonl.gz")) as target,
            gzip.GzipFile(fileobj=target, mode="wb", mtime=0) as file,
        ):
            for _, _, body in listed:
                file.write(body)
    # A reward of an open event needs its decision.
    delete = (
        "DELETE FROM log WHERE loop = ?1 AND seq <= ?2 AND NOT (kind IN ('decision', 'served') AND "
        "event IN (SELECT event FROM event WHERE loop = ?1 AND state < 2 "
        "AND (due IS NOT NULL OR at > ?3)))"
    )
    values = (loop.number, loop.version, service.now() - keep)
    unit = Unit([], [], [], [(delete, values)])
    loop.unit = service.writer.submit(unit)
    service.wait(loop.unit)
    [(kept,)] = service.store.query("SELECT count(*) FROM log WHERE loop = ?", (loop.number,))
    return Compacted(name, len(listed), kept)
