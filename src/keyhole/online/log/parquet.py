"""A log as Parquet: the same rows, a column for each field of decisions and rewards.

Rows of other kinds are few, and are kept as they are in JSON lines, in the column `other`. Arms are
texts, or whole numbers if all names are. The schema's version is in the metadata of the file.

Three columns serve those who fit a model to a log: every row with a reward in `learned` has an arm
in `arm` and what was seen of it in `observation`. A decision has its first reward there, however
late that came, and a further one is in a row of its own. Rewards that were forgotten, or went with
an arm, are not there. Where a baseline was served, `arm` is the baseline, and `chosen` the arm that
was chosen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from keyhole.errors import FileError, InvalidValue
from keyhole.files import Path, naming, replacing
from keyhole.online.arrow import arrow as _arrow
from keyhole.online.log import rows
from keyhole.online.log.learned import Learned, Summary

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"PAR1"
# Rows of a row group: a few megabytes at dim 10.
GROUP = 50_000
# Columns whose values repeat.
TEXTS = ["kind", "arm", "arms.list.element"]
KINDS = {"decision": rows.Decision, "reward": rows.Reward}
VERSION, SUMMARY = b"keyhole.log", b"keyhole.log.summary"
# The columns of what was learned.
ARM, OBSERVATION, LEARNED = "arm", "observation", "learned"
# The chosen arm of a decision, where `arm` is the one that was served in its place.
CHOSEN = "chosen"


def schema(summary: Summary, *, names_are_numbers: bool) -> pa.Schema:
    """Return the columns of a file.

    Parameters
    ----------
    summary : Summary
        What is kept in the metadata.
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
        ARM: arm,
        OBSERVATION: numbers,
        LEARNED: number,
        "probability": number,
        "score": number,
        "y": arrow.list_(numbers),
        "mean": numbers,
        "width": numbers,
        "optimism": numbers,
        "dispersion": numbers,
        "epsilon": number,
        "centred": numbers,
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
        "request": text,
        "due": number,
        "deferred": arrow.bool_(),
        "served": arm,
        CHOSEN: arm,
        "id": text,
        "outcome": number,
        "ends": arrow.bool_(),
        "clipped": numbers,
        "taken": arm,
        "seen": arrow.binary(),
        "other": text,
    }
    known = json.dumps(summary._asdict()).encode()
    metadata = {VERSION: str(rows.SCHEMA).encode(), SUMMARY: known}
    return arrow.schema(list(columns.items()), metadata=metadata)


def write(given: Iterable[rows.AnyRow], path: Path) -> int:
    """Write rows to a file, which is replaced in one step, and return their number.

    Parameters
    ----------
    given : iterable of rows
        The rows, which are read twice.
    path : path-like
        The file.
    """
    arrow, learned, made = _arrow(), Learned(given), None
    with replacing(path) as file:
        group: list[dict[str, Any]] = []
        records = Records(learned)
        for row in islice(given, learned.n_rows):  # a bandit may have written more since
            if made is None:
                made = schema(learned.summary, names_are_numbers=_has_numbers(row))
                # Numbers hardly repeat: as they are they take less space, and half the time.
                writer = arrow.parquet.ParquetWriter(
                    file, made, use_dictionary=TEXTS, write_page_checksum=True
                )
            group.append(records.record(row))
            if len(group) == GROUP:
                writer.write_table(_table(group, made))
                group.clear()
        if made is None:
            raise FileError("there are no rows to write")
        if group:
            writer.write_table(_table(group, made))
        writer.close()
    return learned.n_rows


class Records:
    """The rows of a log as those of a table.

    Parameters
    ----------
    learned : Learned
        Which rewards count.
    """

    def __init__(self, learned: Learned) -> None:
        self._learned = learned
        self._arms: list[Any] = []
        # Arms and observations of decisions that have further rewards, by their row.
        self._seen: dict[int, tuple[Any, Any]] = {}
        self._wanted = set(learned.sources.values())

    def record(self, row: rows.AnyRow) -> dict[str, Any]:
        """Return the columns of the next row."""
        kind = type(row).__name__.lower()
        if isinstance(row, rows.Start):
            self._arms = list(row.arms)
        elif isinstance(row, rows.Arms):
            self._arms = row.applied_to(self._arms)
        record: dict[str, Any] = {"kind": kind}
        if kind in KINDS:
            record |= rows.as_dict(row)
        else:
            line = rows.encoded(row).decode().rstrip("\n")
            event = getattr(row, "event", None)
            record |= {"seq": row.seq, "at": row.at, "event": event, "other": line}
        arm, seen = self._of(row)
        if arm is not None:
            record |= {ARM: arm, OBSERVATION: seen, LEARNED: self._learned.value(row.seq)}
        if isinstance(row, rows.Decision):
            record[CHOSEN] = None if row.served is None else row.arm
            if len(row.y) == 1:
                record["y"] = None  # it is the observation
        return record

    def _of(self, row: rows.AnyRow) -> tuple[Any, Any]:
        """Return the arm that a row is about and what was seen of it; None if it is about none."""
        if isinstance(row, rows.Decision):
            found: tuple[Any, Any] = row.taken, row.own_row(self._arms)
        elif isinstance(row, rows.Given):
            found = row.decision["arm"], row.own_row()
        elif row.seq in self._learned.sources:
            return self._seen[self._learned.sources[row.seq]]
        else:
            return None, None
        if row.seq in self._wanted:
            self._seen[row.seq] = found
        return found


def _has_numbers(row: rows.AnyRow) -> bool:
    if not isinstance(row, rows.Start):
        raise FileError("a log begins with a row of kind 'start'")
    return bool(row.arms) and all(isinstance(name, int) for name in row.arms)


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
            file = arrow.parquet.ParquetFile(path, page_checksum_verification=True)
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
        if kind is rows.Decision and "y" not in fields:
            fields["y"] = [record[OBSERVATION]]
        if record[CHOSEN] is not None:
            fields["arm"] = record[CHOSEN]
        return rows.converted({**_with_nulls(kind, record), **fields}, kind)
    except (rows.DamagedRow, AttributeError, KeyError) as reason:
        raise FileError(f"row {seq} of {path} is no row of a log: {reason}") from None


def _with_nulls(kind: Any, record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that have to be there, though they are null."""
    always = ("probability", "score") if kind is rows.Decision else ("event",)
    return {name: record[name] for name in always}
