"""Columns of Arrow as arrays of NumPy, without an object for each value."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole.core import Floats, Ints
from keyhole.online.arrow import arrow

Bools: TypeAlias = NDArray[np.bool_]


def numbers(column: Any) -> tuple[Floats, Bools | None]:
    """Return a column as floats, NaN for null, and where it is null; None if it is nowhere."""
    pa = arrow()
    lacking = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    values: Floats = column.to_numpy(zero_copy_only=False)
    return values, lacking


def levels(column: Any) -> tuple[Ints, list[Any]]:
    """Return the index of each row's value, -1 for null, and the values."""
    pa = arrow()
    if pa.types.is_null(column.type):
        return np.full(len(column), -1), []
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(-1)
    names = column.dictionary.to_pylist()
    found: Ints = indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    if None in names:  # null as a value of the dictionary
        found = np.where(found == names.index(None), -1, found)
    return found, names


def lengths_of(column: Any) -> Ints:
    """Return the length of each list of a column, -1 for null."""
    pa = arrow()
    lacking = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if pa.types.is_fixed_size_list(column.type):
        lengths = np.full(len(column), column.type.list_size, np.int64)
    else:
        lengths = np.diff(column.offsets.to_numpy())
    return lengths if lacking is None else np.where(lacking, -1, lengths)
