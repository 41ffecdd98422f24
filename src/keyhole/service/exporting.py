"""`export` and `replay`: the log of a loop as a file, and its bandit recomputed from the log."""

from __future__ import annotations

import os
from collections.abc import Iterator

from keyhole.errors import InvalidValue
from keyhole.files import Path, checked_path, replacing
from keyhole.online import Bandit, rows, write_parquet
from keyhole.service.journal import decoded_row
from keyhole.service.reader import LoopRow, Reader
from keyhole.service.reading import WholeFold, all_rows, last_row, loop_of, reading


class _Rows:
    """The rows of a loop, which can be read twice."""

    def __init__(self, store: Reader, loop: LoopRow) -> None:
        self._store, self._loop = store, loop

    def __iter__(self) -> Iterator[rows.AnyRow]:
        name, listed = f"loop {self._loop.name!r}", all_rows(self._store, self._loop)
        return (decoded_row(name, seq, body) for seq, _, body in listed)


def export(folder: Path, target: Path, *, loop: str | None = None) -> int:
    """Write the log of a loop to a file that `keyhole.Log` reads, and return its number of rows.

    Parameters
    ----------
    folder : path-like
        The folder of a service, which may be in use.
    target : path-like
        A file whose name ends in .parquet, or in .jsonl for JSON lines.
    loop : str, optional
        The name of the loop; not needed if there is one.
    """
    path = os.fspath(checked_path("target", target))
    if not path.endswith((".parquet", ".jsonl")):
        raise InvalidValue(f"target must end in .parquet or .jsonl, got {path}")
    with reading(folder) as store:
        found = loop_of(store, loop)
        if path.endswith(".jsonl"):
            n = 0
            with replacing(target) as file:
                for _, _, body in all_rows(store, found):
                    file.write(body)
                    n += 1
            return n
        return write_parquet(_Rows(store, found), target)


def replay(folder: Path, *, loop: str | None = None, until: int | None = None) -> Bandit:
    """Return the bandit that follows from the rows of a loop, each decision made again.

    Parameters
    ----------
    folder : path-like
        The folder of a service, which may be in use.
    loop : str, optional
        The name of the loop; not needed if there is one.
    until : int, optional
        The number of the last row; all by default.
    """
    with reading(folder) as store:
        found = loop_of(store, loop)
        last = last_row(store, found)
        if until is not None and not 1 <= until <= last:
            raise InvalidValue(
                f"until must be from 1 to {last}, the last row of loop {found.name!r}, got {until}"
            )
        whole = WholeFold(store, found)
        for seq, kind, body in all_rows(store, found):
            if until is not None and seq > until:
                break
            whole.step(seq, kind, body)
        bandit: Bandit = whole.replay.made().without_log()
        return bandit
