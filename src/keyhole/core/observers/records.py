"""Records and frames: their types, and checks of their values.

A record is a mapping from names of fields to values: a dict or another Mapping, a pandas Series, a
named tuple, or a scalar of a NumPy structured array. A frame is many records as named columns: a
pandas or polars DataFrame, a pyarrow Table or RecordBatch, a NumPy structured array, or a list of
records. A dict of columns is not a frame: it could not be distinguished from a record.

None of pandas, polars and pyarrow is imported: their objects are recognized by their methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.core.kernels import Floats, Ints
from keyhole.errors import InvalidValue, shown

# Every column of a frame is read as one of these before its values are checked.
Columns = dict[str, NDArray[Any]]

# -- values ----------------------------------------------------------------------------------------


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, pandas.NA, NaT or masked."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")  # of pandas


def number(field: str, value: object) -> float:
    """Return a number as a float, NaN if it is missing.

    Parameters
    ----------
    field : str
        Name of the field in error messages.
    value : object
        An int, a float, a number of NumPy or a Decimal. A bool or text is refused.
    """
    if is_missing(value):
        return np.nan
    return checks.real(field, float(value) if isinstance(value, Decimal) else value)


def boolean(field: str, value: object) -> float:
    """Return a truth value as 1.0 or 0.0, NaN if it is missing.

    Parameters
    ----------
    field : str
        Name of the field in error messages.
    value : object
        A bool of Python or NumPy, or one of the numbers 0 and 1.
    """
    if isinstance(value, bool | np.bool_):
        return float(value)
    if is_missing(value):
        return np.nan
    is_number = isinstance(value, int | float | np.integer | np.floating | Decimal)
    if is_number and not isinstance(value, np.timedelta64) and value in (0, 1):
        return float(value)
    raise InvalidValue(f"{field} must be True, False, 0 or 1, got {shown(value)}")


def category(field: str, value: object) -> str | None:
    """Return a level of a category, None if it is missing. Empty text is missing.

    Parameters
    ----------
    field : str
        Name of the field in error messages.
    value : object
        Text. A number is refused: 3, 3.0 and "3" would be different levels.
    """
    if isinstance(value, str):
        return str(value) or None
    if is_missing(value):
        return None
    # str() of bytes is their representation, with a b and quotation marks.
    way = "decode it, .decode()" if isinstance(value, bytes) else "convert it with str()"
    raise InvalidValue(
        f"{field} is a category and must be text, got {shown(value)} ({type(value).__name__}); "
        f"{way}"
    )


# -- columns of values -----------------------------------------------------------------------------


def number_column(field: str, column: NDArray[Any]) -> Floats:
    """Return a column of numbers as floats, NaN where one is missing.

    Parameters
    ----------
    field : str
        Name of the field in error messages.
    column : ndarray of shape (n,)
        The values.
    """
    if column.dtype.kind not in "iuf":
        return np.array([number(*at) for at in _places(field, column)], dtype=np.float64)
    with np.errstate(over="ignore"):  # a longdouble beyond float64 becomes infinite
        values = column.astype(np.float64)
    usable = (np.abs(values) <= checks.LARGEST) | np.isnan(values)
    if not usable.all():
        row = int(np.argmin(usable))
        number(f"{field} in row {row}", column[row])  # raises the error of a single value
    return values


def boolean_column(field: str, column: NDArray[Any]) -> Floats:
    """Return a column of truth values as 1.0 and 0.0, NaN where one is missing.

    Parameters
    ----------
    field : str
        Name of the field in error messages.
    column : ndarray of shape (n,)
        The values.
    """
    if column.dtype.kind in "biuf":
        values = column.astype(np.float64)
        if ((values == 0.0) | (values == 1.0) | np.isnan(values)).all():
            return values
    return np.array([boolean(*at) for at in _places(field, column)], dtype=np.float64)


def category_column(field: str, column: NDArray[Any]) -> tuple[Ints, list[str], list[int]]:
    """Return the levels of a column, in the order of their first rows.

    Parameters
    ----------
    field : str
        Name of the field in error messages.
    column : ndarray of shape (n,)
        The values.

    Returns
    -------
    codes : ndarray of shape (n,)
        Index of each row's level, -1 where it is missing.
    levels : list of str
        The levels.
    rows : list of int
        The first row of each level.
    """
    values = column.tolist() if column.dtype.kind in "OU" else list(column)
    code: dict[Any, int] = {}
    levels: dict[str, int] = {}  # level -> first row
    codes = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        try:
            codes[row] = code[value]
        except KeyError:
            level = category(f"{field} in row {row}", value)
            codes[row] = code[value] = -1 if level is None else len(levels)
            if level is not None:
                levels[level] = row
        except TypeError:  # not hashable: the masked entry of a list, or an error
            category(f"{field} in row {row}", value)
            codes[row] = -1
    return codes, list(levels), list(levels.values())


def _places(field: str, column: NDArray[Any]) -> Iterable[tuple[str, Any]]:
    """Yield the name of each entry in error messages, and its value."""
    values = column.tolist() if column.dtype.kind == "O" else column
    return ((f"{field} in row {row}", value) for row, value in enumerate(values))


# -- records ---------------------------------------------------------------------------------------


def record_mapping(record: object) -> Mapping[str, Any]:
    """Return a record as a mapping from fields to values.

    Raises
    ------
    InvalidValue
        If it is not a record, or has a field twice.
    """
    if isinstance(record, Mapping):
        return record
    if _is_named_tuple(record):
        named: Mapping[str, Any] = record._asdict()  # type: ignore[attr-defined]
        return named
    if isinstance(record, np.void | np.ndarray) and record.dtype.names and record.shape == ():
        row = record[()] if type(record) is np.ndarray else record  # its fields would be arrays
        return {name: row[name] for name in record.dtype.names}
    if hasattr(record, "index") and hasattr(record, "to_dict") and getattr(record, "ndim", 0) == 1:
        _check_distinct(list(record.index))
        series: Mapping[str, Any] = record.to_dict()
        return series
    hint = "; of a frame, give one row" if is_frame(record) else ""
    raise InvalidValue(
        "a record must be a dict from fields to values, a pandas Series, a named tuple or a "
        f"row of a structured array, got {type(record).__name__}{hint}"
    )


def _is_named_tuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_asdict")


def record_list(what: str, records: object) -> Sequence[Any]:
    """Return several records, or the rows of a frame, as a sequence of records.

    Parameters
    ----------
    what : str
        Their name in messages.
    records : list of records, or frame
        The records.

    Raises
    ------
    InvalidValue
        If they are neither.
    """
    if isinstance(records, list) or (type(records) is tuple):
        return records
    if not is_frame(records):
        raise InvalidValue(
            f"{what} must be a list of records, one for each, got {type(records).__name__}"
        )
    columns = frame_columns(records)
    values = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


# -- frames ----------------------------------------------------------------------------------------


def is_frame(value: object) -> bool:
    """Return whether a value is a frame; of a list, whether its first entry is a record."""
    if isinstance(value, np.ndarray):
        return value.dtype.names is not None and value.ndim == 1
    if isinstance(value, list):
        return bool(value) and (isinstance(value[0], Mapping) or _is_named_tuple(value[0]))
    return any(hasattr(value, name) for name in ("iloc", "get_column", "column_names")) and (
        len(getattr(value, "shape", ())) == 2
    )


def frame_columns(frame: Any, fields: Sequence[str] = ()) -> Columns:
    """Return the columns of a frame by name.

    Parameters
    ----------
    frame : frame
        What `is_frame` accepts.
    fields : sequence of str, optional
        The fields of a list of records; those that no record has are missing in all.

    Raises
    ------
    InvalidValue
        If it is not a frame, or has a column twice.
    """
    if isinstance(frame, list) and all(
        isinstance(record, Mapping) or _is_named_tuple(record) for record in frame
    ):
        return _listed_columns([record_mapping(record) for record in frame], fields)
    if isinstance(frame, list) or not is_frame(frame):
        hint = "; collect() it first" if hasattr(frame, "collect") else ""
        if is_frame(frame):  # a list that begins with a record
            row = next(k for k, one in enumerate(frame) if not is_frame([one]))
            hint = f" with {shown(frame[row])} in row {row}"
        raise InvalidValue(
            "a frame must be a pandas or polars DataFrame, a pyarrow Table, a structured array "
            f"or a list of records, got {type(frame).__name__}{hint}"
        )
    if isinstance(frame, np.ndarray):
        return {name: _plain(frame[name]) for name in frame.dtype.names or ()}
    names = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    _check_distinct(names)
    if hasattr(frame, "column_names"):
        return {name: _arrow_array(frame.column(k)) for k, name in enumerate(names)}
    return {name: _plain(frame[name].to_numpy()) for name in names}


def check_columns(columns: Mapping[str, object], fields: Sequence[str], select: str) -> None:
    """Raise unless the columns of a frame are the given fields.

    Parameters
    ----------
    columns : mapping
        The columns by name.
    fields : sequence of str
        The fields that a recipe needs.
    select : str
        The expression that selects these columns of a frame.
    """
    absent = [field for field in fields if field not in columns]
    if absent:
        raise InvalidValue(
            f"the frame has no column {shown(absent[0])}; its columns are "
            f"{', '.join(map(str, columns)) or 'none'}"
        )
    extra = [name for name in columns if name not in fields]
    if extra:
        reason = checks.unknown("a column of the frame", extra[0], fields)
        raise InvalidValue(f"{reason} To leave others out: {select}")


def check_fields(what: str, record: Mapping[str, Any], fields: Sequence[str]) -> None:
    """Raise if a record has a field that a recipe does not know.

    Parameters
    ----------
    what : str
        Kind of the record in error messages.
    record : mapping
        The record.
    fields : sequence of str
        The fields that are known.
    """
    for name in record:
        if name not in fields:
            raise checks.unknown(f"a field of {what}", name, fields)


def _listed_columns(records: list[Mapping[str, Any]], fields: Sequence[str]) -> Columns:
    names = list(dict.fromkeys([*fields, *(name for record in records for name in record)]))
    return {
        name: np.fromiter((record.get(name) for record in records), object, len(records))
        for name in names
    }


def _arrow_array(column: Any) -> NDArray[Any]:
    # Chunk by chunk: pyarrow's conversion of a whole chunked array of a dictionary type gives
    # missing entries the first level.
    chunks = getattr(column, "chunks", [column])
    arrays = [chunk.to_numpy(zero_copy_only=False) for chunk in chunks]
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=object)


def _plain(column: Any) -> NDArray[Any]:
    """Return a column as an array of one dimension, with None in place of masked entries."""
    if column.ndim != 1:
        raise InvalidValue(
            f"a column of the frame must hold single values, got shape {column.shape}"
        )
    if not isinstance(column, np.ma.MaskedArray):
        plain: NDArray[Any] = column
        return plain
    values = column.data.astype(object)
    values[np.ma.getmaskarray(column)] = None
    return values


def _check_distinct(names: list[Any]) -> None:
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise InvalidValue(f"every field must be there once, got {shown(name)} twice")
        seen.add(name)
