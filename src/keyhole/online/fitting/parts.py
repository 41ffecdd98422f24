"""Parts of files that are read at a time, the same ones whoever reads them.

A part is some row groups of a file, or some rows of a table. It is read in batches of at most
16,384 rows, each within one row group: sums then do not depend on how many parts are read at once,
nor on the version of pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from keyhole.errors import FileError
from keyhole.files import naming
from keyhole.online.arrow import arrow
from keyhole.online.fitting.sources import Source

# Rows of a part: a tenth of a second at dim 20. With very many arms it has 16 for each, since their
# sums take more time than the rows otherwise.
ROWS, PER_ARM = 2**18, 16
# Rows of a batch: 3 MB at dim 20. Four times as many are no faster where memory is at hand, and
# slower where the system has to find it.
BATCH = 2**14
# Rows at either end of a table by which it is told from others.
ENDS = 20


class Part(NamedTuple):
    """Rows of a source that are added up together."""

    source: Source
    groups: tuple[int, ...]  # row groups of a file
    first: int  # number of its first row in the source
    n_rows: int


def footer(source: Source) -> Any:
    """Return the metadata of a Parquet file, or raise `FileError`."""
    assert source.path is not None
    with naming("read", source.path):
        state = os.stat(source.path)
    return _footer(source.path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=1024)
def _footer(path: str, size: int, time: int) -> Any:  # noqa: ARG001 - a changed file is read again
    # Metadata of many columns and row groups take longer to read than a part.
    pa = arrow()
    with naming("read", path):
        try:
            with pa.OSFile(path) as file:
                return pa.parquet.ParquetFile(file).metadata
        except pa.ArrowInvalid as reason:
            raise FileError(f"{path} is no whole Parquet file: {reason}") from None


def mark_of(source: Source) -> bytes:
    """Return what a copy of a source has, too, and hardly any other one.

    The end of a Parquet file says how large each column is in each row group, with its least and
    largest value. Of a table these are its first and last rows.
    """
    if source.path is None:
        ends = [source.table.slice(0, ENDS), source.table.slice(max(len(source.table) - ENDS, 0))]
        return repr([len(source.table), *(one.to_pydict() for one in ends)]).encode()
    with naming("read", source.path), open(source.path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        size = int.from_bytes(file.read(4), "little")
        file.seek(-8 - size, os.SEEK_END)
        return file.read(size)


def schema_of(source: Source) -> Any:
    """Return the names and types of a source's columns."""
    return source.table.schema if source.path is None else footer(source).schema.to_arrow_schema()


def parts_of(source: Source, n_arms: int, *, is_remote: bool) -> list[Part]:
    """Return the parts of a source, in order.

    Parameters
    ----------
    source : Source
        The source.
    n_arms : int
        Number of arms.
    is_remote : bool
        Whether parts are sent to other processes.
    """
    limit = max(ROWS, PER_ARM * n_arms)
    if source.path is None:
        return _slices(source, limit, is_remote=is_remote)
    metadata = footer(source)
    parts: list[Part] = []
    groups: list[int] = []
    first = n = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if groups and n + rows > limit:
            parts.append(Part(source, tuple(groups), first, n))
            first, groups, n = first + n, [], 0
        groups.append(group)
        n += rows
    return [*parts, Part(source, tuple(groups), first, n)] if n else parts


def _slices(source: Source, limit: int, *, is_remote: bool) -> list[Part]:
    parts = []
    for first in range(0, len(source.table), limit):
        table = source.table.slice(first, limit)
        if is_remote:  # a slice would bring the whole table along
            table = table.take(arrow().array(range(len(table))))
        parts.append(Part(source._replace(table=table), (), first, len(table)))
    return parts


def batches(
    part: Part, names: tuple[str, ...], texts: tuple[str, ...]
) -> Iterator[tuple[int, Any]]:
    """Yield the number of the first row, and the rows, of each batch of a part.

    Parameters
    ----------
    part : Part
        The part.
    names : tuple of str
        The columns to read.
    texts : tuple of str
        Those of them that are to come as dictionaries.

    Raises
    ------
    FileError
        If the file is damaged, or has changed.
    """
    if part.source.path is None:
        table = part.source.table.select(list(names))
        for start in range(0, part.n_rows, BATCH):
            for batch in table.slice(start, BATCH).combine_chunks().to_batches():
                yield part.first + start, batch
        return
    yield from _of_file(part, names, texts)


def _of_file(
    part: Part, names: tuple[str, ...], texts: tuple[str, ...]
) -> Iterator[tuple[int, Any]]:
    pa, metadata, first = arrow(), footer(part.source), part.first
    path = part.source.path
    n_groups = metadata.num_row_groups
    there = [metadata.row_group(g).num_rows for g in part.groups if g < n_groups]
    if sum(there) != part.n_rows:
        raise FileError(f"{path} has changed while it was read")
    with naming("read", str(path)), pa.OSFile(path) as opened:
        try:
            file = pa.parquet.ParquetFile(
                opened,
                metadata=metadata,
                read_dictionary=list(texts),
                page_checksum_verification=True,
            )
            for group in part.groups:
                for batch in file.iter_batches(
                    BATCH, row_groups=[group], columns=list(names), use_threads=False
                ):
                    yield first, batch
                    first += len(batch)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as reason:
            raise FileError(f"{path} is damaged after row {first}: {reason}") from None
