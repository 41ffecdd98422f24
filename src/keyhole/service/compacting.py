"""`compact`: move the rows that a snapshot replaces from the database into files.

The files, and the folders above them, are synced before the rows are deleted. After a crash in
between rows are in both places, and the next call deletes them from the database. `verify` and
`export` read the archive first.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass

import msgspec

from keyhole.errors import FileUnusable
from keyhole.files import Path, replacing, sync_folder
from keyhole.service import archived
from keyhole.service.folder import hand_to_owner
from keyhole.service.service import Service
from keyhole.service.store import Unit

# Rows of a file: to find one, a running service reads a file from its beginning (30 ms).
ROWS = 100_000
# Seconds; the note of a compaction is JSON, which has no infinity.
LONGEST = 1e300
# A reward of an open event needs its decision, and the last row of its term. The inner query is
# evaluated once, since it names nothing of the outer one.
DELETE = """
DELETE FROM log WHERE loop = ?1 AND seq <= ?2 AND NOT (
    kind IN ('decision', 'served', 'reward', 'amend', 'counted') AND event IN (
        SELECT event.event FROM event JOIN log AS decided USING (loop, seq)
        WHERE event.loop = ?1 AND event.state < 2 AND (event.due IS NOT NULL OR decided.at > ?3)))
"""


@dataclass(frozen=True)
class Compacted:
    """The result of `compact` for a loop.

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


def compact(folder: Path, *, keep: float = 30 * 86_400.0) -> list[Compacted]:
    """Keep every loop as a snapshot, and move the rows before it into files.

    Decisions of open events stay in the database, if they have an end or are young. A reward of an
    archived event is "late".

    Parameters
    ----------
    folder : path-like
        The folder of a service that is not running.
    keep : float, default 30 days
        Seconds for which open events without a due time stay in the database.
    """
    with Service(folder) as service:
        return [_compacted(service, name, keep) for name in service.names]


def _compacted(service: Service, name: str, keep: float) -> Compacted:
    loop = service.loop(name)
    service.keep(loop)
    service.wait(loop.unit)
    archive = archived.Archive(service.path, name)
    after, above = archive.last(), os.path.dirname(archive.place)
    for one in (above, archive.place):
        if os.path.islink(one):
            raise FileUnusable(f"{one} must be a folder, got a link: mount a disk there instead")
        os.makedirs(one, mode=0o700, exist_ok=True)
        hand_to_owner(one)
    for first in range(after + 1, loop.version + 1, ROWS):
        last = min(first + ROWS - 1, loop.version)
        path = os.path.join(archive.place, f"{first}-{last}.jsonl.gz")
        with (
            replacing(path) as target,
            gzip.GzipFile(fileobj=target, mode="wb", mtime=0) as file,
        ):
            for _, _, body in service.store.rows(loop.number, first - 1, last - first + 1):
                file.write(body)
        hand_to_owner(path)
    # Also if an earlier call made the folders and was interrupted.
    for one in (above, service.path):
        sync_folder(one)
    cutoff = min(LONGEST, max(-LONGEST, service.now() - keep))  # a number, also if keep is NaN
    note = archived.note(service.store, loop.number).after(loop.version, cutoff)
    statement = "INSERT OR REPLACE INTO note VALUES (?, ?)"
    noted = (archived.note_name(loop.number), msgspec.json.encode(note).decode())
    values = (loop.number, loop.version, cutoff)
    loop.submit(Unit.of_statements((DELETE, values), (statement, noted)))
    service.wait(loop.unit)
    [(kept,)] = service.store.query("SELECT count(*) FROM log WHERE loop = ?", (loop.number,))
    return Compacted(name, loop.version - after, kept)
