"""Tables through Arrow: from files and frames, and their columns as arrays of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from keyhole.core import Arm, Floats, Ints
from keyhole.errors import FileError, InvalidValue, shown
from keyhole.evaluation import extras
from keyhole.evaluation.formats.format import Progress
from keyhole.evaluation.formats.sources import blocks, head_of, paths_of
from keyhole.files import naming

PARQUET, FILE, STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"


def arrow(module: str = "") -> Any:
    """Return pyarrow, or one of its modules; raise `MissingExtra` if it is not installed."""
    return extras.load(f"pyarrow{module and '.'}{module}", "a table", "logs")


class Table(NamedTuple):
    """A table, and where it is from."""

    data: Any  # pyarrow.Table
    origin: str

    def error(self, message: str) -> InvalidValue | FileError:
        """Return the error that says what is wrong with the table, to be raised by the caller."""
        is_frame = self.origin == "the frame"
        return InvalidValue(message) if is_frame else FileError(f"{self.origin}: {message}")

    def wrong(self, name: str, rule: str, values: Any, wrong: Any) -> None:
        """Raise if an entry of a column is wrong, and name the first: rows count from 0.

        Parameters
        ----------
        name : str
            The column.
        rule : str
            What its entries must be.
        values, wrong : ndarray of shape (n,)
            The entries, and which are wrong.
        """
        if wrong.any():
            row = int(wrong.argmax())
            one = values[row]
            got = f"{one:g}" if isinstance(one, float | int | np.number) else shown(one)
            raise self.error(f"column {name!r}, row {row:,} must be {rule}, got {got}")

    def column(self, name: str) -> Any:
        """Return a column, or raise an error that names those that there are."""
        if name not in self.data.column_names:
            known = ", ".join(map(repr, self.data.column_names[:20]))
            raise self.error(f"there must be a column {name!r}, got {known}")
        return self.data.column(name).combine_chunks()

    def numbers(self, name: str) -> Floats:
        """Return a column as numbers, NaN where it is null."""
        return _numbers(self, name, self.column(name))

    def wholes(self, name: str) -> Ints:
        """Return a column as whole numbers."""
        found = self.numbers(name)
        self.wrong(name, "a whole number", found, ~(found == np.floor(found)))
        return found.astype(np.int64)

    def lists(self, name: str) -> Floats:
        """Return a column as an array, with an axis for each level of its lists."""
        column, shape = self.column(name), [self.data.num_rows]
        types, compute = arrow("types"), arrow("compute")
        while types.is_nested(column.type) and not types.is_struct(column.type):
            if column.null_count:
                row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                raise self.error(f"column {name!r}, row {row:,} must be a list, got null")
            size = compute.list_value_length(column).to_numpy(zero_copy_only=False)
            differ = size != size[0]
            self.wrong(name, f"{size[0]} entries long, as row 0 is", size, differ)
            shape.append(int(size[0]))
            column = column.flatten()
        return _numbers(self, name, column).reshape(shape)

    def names(self, name: str) -> tuple[Ints, list[Arm]]:
        """Return a column of names as indices, and the names, sorted."""
        types, column = arrow("types"), self.column(name)
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise self.error(f"column {name!r}, row {row:,} must be the name of an arm, got null")
        if types.is_integer(column.type):
            values, index = np.unique(column.to_numpy(zero_copy_only=False), return_inverse=True)
            return index.astype(np.int64), [int(one) for one in values]
        pa = arrow()
        if types.is_floating(column.type):
            whole = self.wholes(name)
            values, index = np.unique(whole, return_inverse=True)
            return index.astype(np.int64), [int(one) for one in values]
        try:
            coded = column.cast(pa.large_string()).dictionary_encode()
        except pa.ArrowException:
            raise self.error(
                f"column {name!r} must be texts or whole numbers, got {column.type}"
            ) from None
        texts = coded.dictionary.to_pylist()
        order = sorted(range(len(texts)), key=texts.__getitem__)
        place = np.empty(len(texts), np.int64)
        place[order] = np.arange(len(texts))
        return place[coded.indices.to_numpy()], [texts[i] for i in order]


def _numbers(table: Table, name: str, column: Any) -> Floats:
    pa, types = arrow(), arrow("types")
    kind = column.type
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        text = "" if types.is_nested(kind) else _first_text(column.to_pylist())
        raise table.error(f"column {name!r}{text} must be numbers, got {kind}")
    cast = column.cast(pa.float64(), safe=False)
    return np.array(cast.to_numpy(zero_copy_only=False), np.float64)


def _first_text(values: Iterable[Any]) -> str:
    """Return the row of the first value that is no number, for an error message."""
    for row, one in enumerate(values):
        try:
            float(one)
        except (TypeError, ValueError):
            return f", row {row:,} with {shown(one)}"
    return ""


def table_of(source: Any, progress: Progress | None = None) -> Table:
    """Return the table of files (Parquet, Arrow or CSV), or of a frame.

    Parameters
    ----------
    source : path, list of paths, or frame
        A frame is anything that Arrow reads: of pandas, polars or pyarrow, a stream of batches, or
        a mapping from names to columns.
    progress : callable, optional
        Called with the bytes that were read and those of all files.

    Raises
    ------
    FileError
        If a file is not whole, or files have different columns.
    InvalidValue
        If the source is no table.
    """
    paths = paths_of(source)
    if paths is None:
        return Table(_of_frame(source), "the frame")
    tables = [_of_file(path, progress) for path in paths]
    for path, one in zip(paths, tables, strict=True):
        if one.schema.names != tables[0].schema.names:
            raise FileError(
                f"files must have the same columns: {paths[0]} has "
                f"{shown(tables[0].schema.names)}, {path} has {shown(one.schema.names)}"
            )
    origin = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    try:
        joined = arrow().concat_tables(tables, promote_options="permissive")
    except arrow().ArrowException as reason:
        raise FileError(f"{origin}: columns must have one type in all files: {reason}") from None
    if joined.num_rows == 0:
        raise FileError(f"{origin} has no rows")
    return Table(joined, origin)


def _of_frame(source: Any) -> Any:
    pa = arrow()
    try:
        if isinstance(source, Mapping):
            found = pa.table(dict(source))
        elif hasattr(source, "__arrow_c_stream__"):
            found = pa.RecordBatchReader.from_stream(source).read_all()
        else:
            found = pa.Table.from_pandas(source)
    except Exception as reason:  # a frame of another library may raise anything
        raise InvalidValue(f"log cannot be read as a table: {shown(reason)}") from reason
    if found.num_rows == 0:
        raise InvalidValue("log must have one or more rows, got none")
    return found


def _of_file(path: str, progress: Progress | None) -> Any:
    start, pa = head_of(path).start, arrow()
    with naming("read", path):
        try:
            if start.startswith((PARQUET, FILE, STREAM)):
                found = _of_binary(path, start)
                found.validate(full=True)
                return found.select(found.column_names)  # raises if a name is not UTF-8
        except (pa.ArrowException, OSError, ValueError) as reason:
            raise FileError(f"{path} is no whole Parquet or Arrow file: {reason}") from None
    for _ in blocks([path], progress):
        pass  # says which line is not UTF-8, or too long, where Arrow does not
    try:
        return arrow("csv").read_csv(path)
    except pa.ArrowException:
        return _of_csv_by_rows(path)


def _of_binary(path: str, start: bytes) -> Any:
    if start.startswith(PARQUET):
        return arrow("parquet").read_table(path)
    opened = arrow("ipc").open_file if start.startswith(FILE) else arrow("ipc").open_stream
    with arrow().memory_map(path) as file:
        return opened(file).read_all()


def _of_csv_by_rows(path: str) -> Any:
    """Raise the error of a CSV file: only a single thread knows the row."""
    pa, csv = arrow(), arrow("csv")
    try:
        return csv.read_csv(path, read_options=csv.ReadOptions(use_threads=False))
    except pa.ArrowException as reason:
        raise FileError(f"{path} cannot be read as CSV: {reason}") from None
