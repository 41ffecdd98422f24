"""A log as Parquet: the same rows, a column for each field of decisions and rewards.

Rows of other kinds are few, and are kept as they are in JSON lines, in the column `other`. Arms are
texts, or whole numbers if all names are. The schema's version is in the metadata of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keyhole.errors import FileError, InvalidValue, MissingExtra, install_line
from keyhole.files import Path, naming, replacing
from keyhole.online.log import rows

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"PAR1"
# Rows of a row group: a few megabytes at dim 10.
GROUP = 50_000
KINDS = {"decision": rows.Decision, "reward": rows.Reward}
VERSION = b"keyhole.log"


def _arrow() -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(f"Parquet needs pyarrow: {install_line('logs')}") from None
    return pa


def schema(*, names_are_numbers: bool) -> pa.Schema:
    """Return the columns of a file.

    Parameters
    ----------
    names_are_numbers : bool
        Whether arms are named by whole numbers.
    """
    arrow = _arrow()
    number, whole, text = arrow.float64(), arrow.int64(), arrow.string()
    arm, numbers = whole if names_are_numbers else text, arrow.list_(arrow.float64())
    columns = {
        "kind": text,
        "seq": whole,
        "at": number,
        "event": text,
        "round": whole,
        "version": whole,
        "arm": arm,
        "probability": number,
        "score": number,
        "y": arrow.list_(numbers),
        "mean": numbers,
        "width": numbers,
        "optimism": numbers,
        "dispersion": numbers,
        "epsilon": number,
        "arms": arrow.list_(arm),
        "x": numbers,
        "predicted": arrow.list_(whole),
        "filled": numbers,
        "levels": whole,
        "value": number,
        "again": arrow.bool_(),
        "batch": arrow.list_(whole),
        "place": whole,
        "sensor": whole,
        "counted": number,
        "weight": number,
        "key": text,
        "dropped": arrow.bool_(),
        "context": numbers,
        "clipped": numbers,
        "other": text,
    }
    return arrow.schema(list(columns.items()), metadata={VERSION: str(rows.SCHEMA).encode()})


def write(given: Iterator[rows.AnyRow], path: Path) -> int:
    """Write rows to a file, which is replaced in one step, and return their number.

    Parameters
    ----------
    given : iterator of rows
        The rows.
    path : path-like
        The file.
    """
    arrow, n, made = _arrow(), 0, None
    with replacing(path) as file:
        group: list[dict[str, Any]] = []
        for row in given:
            if made is None:
                made = schema(names_are_numbers=_has_numbers(row))
                writer = arrow.parquet.ParquetWriter(file, made)
            group.append(_record(row))
            n += 1
            if len(group) == GROUP:
                writer.write_table(_table(group, made))
                group.clear()
        if made is None:
            raise FileError("there are no rows to write")
        if group:
            writer.write_table(_table(group, made))
        writer.close()
    return n


def _has_numbers(row: rows.AnyRow) -> bool:
    if not isinstance(row, rows.Start):
        raise FileError("a log begins with a row of kind 'start'")
    return bool(row.arms) and all(isinstance(name, int) for name in row.arms)


def _record(row: rows.AnyRow) -> dict[str, Any]:
    kind = type(row).__name__.lower()
    if kind not in KINDS:
        line = rows.encoded(row).decode().rstrip("\n")
        return {"kind": kind, "seq": row.seq, "at": row.at, "other": line}
    return {"kind": kind, **rows.as_dict(row)}


def _table(group: list[dict[str, Any]], made: pa.Schema) -> pa.Table:
    arrow = _arrow()
    try:
        return arrow.Table.from_pylist(group, schema=made)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as reason:
        raise InvalidValue(
            f"Parquet needs names of arms that are all texts or all whole numbers: {reason}"
        ) from None


def read(path: Path) -> Iterator[rows.AnyRow]:
    """Yield the rows of a file that `write` made, or raise `FileError`.

    Parameters
    ----------
    path : path-like
        The file.
    """
    arrow, seq = _arrow(), 0
    with naming("read", str(path)):
        try:
            file = arrow.parquet.ParquetFile(path)
        except arrow.ArrowInvalid as reason:
            raise FileError(f"{path} is no whole Parquet file: {reason}") from None
    with file:
        version = (file.schema_arrow.metadata or {}).get(VERSION)
        if version != str(rows.SCHEMA).encode():
            raise FileError(
                f"{path} is not a log, or one of another schema: {version!r}, and this Keyhole "
                f"reads {rows.SCHEMA}"
            )
        try:
            for batch in file.iter_batches(GROUP):
                for record in batch.to_pylist():
                    seq += 1
                    yield _row(path, seq, record)
        except (arrow.ArrowInvalid, OSError) as reason:
            raise FileError(f"{path} is damaged after row {seq}: {reason}") from None


def _row(path: Path, seq: int, record: dict[str, Any]) -> rows.AnyRow:
    kind = KINDS.get(record.pop("kind"))
    try:
        if kind is None:
            return rows.decoded(record["other"].encode())
        wanted = rows.field_names(kind)
        fields = {name: record[name] for name in wanted if record[name] is not None}
        return rows.converted({**_with_nulls(kind, record), **fields}, kind)
    except (rows.DamagedRow, AttributeError) as reason:
        raise FileError(f"row {seq} of {path} is no row of a log: {reason}") from None


def _with_nulls(kind: Any, record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that have to be there, though they are null."""
    always = ("probability", "score") if kind is rows.Decision else ("event",)
    return {name: record[name] for name in always}
