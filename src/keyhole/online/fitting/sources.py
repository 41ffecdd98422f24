"""The files and tables that a bandit is fitted from, in a fixed order."""

from __future__ import annotations

import glob
import os
from typing import Any, NamedTuple

from keyhole import checks
from keyhole.errors import FileMissing, InvalidValue, shown
from keyhole.files import checked_path, naming
from keyhole.online.arrow import arrow

PARQUET = b"PAR1"
# Names of files that other programs leave beside the data.
HIDDEN = (".", "_")


class Source(NamedTuple):
    """A Parquet file, or a table in memory."""

    name: str  # in messages
    path: str | None = None
    table: Any = None


def sources_of(files: object) -> list[Source]:
    """Return the sources that a user named; those of a folder or a pattern sorted by name.

    Parameters
    ----------
    files : path-like, table, or list of them
        What was given.

    Raises
    ------
    InvalidValue
        If there are none, one is of another kind, or a file is there twice.
    FileError
        If there is no such file, or it is none of Parquet.
    """
    arrow()  # or say what to install, before anything else
    listed = [files] if _is_single(files) else files
    if not checks.is_listing(listed):
        raise InvalidValue(
            "files must be paths of Parquet files, tables that Arrow can read, or a list of them, "
            f"got {shown(files)}"
        )
    found: list[Source] = []
    for one in listed:
        found += _tables(one, len(found)) if _is_table(one) else _paths(one)
    if not found:
        raise InvalidValue("files must be one or more, got none")
    _check_once(found)
    return found


def _is_table(given: object) -> bool:
    return hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")


def _is_single(given: object) -> bool:
    is_log = hasattr(given, "to_parquet") and hasattr(given, "path")
    return isinstance(given, str | os.PathLike) or is_log or _is_table(given)


def _tables(given: Any, number: int) -> list[Source]:
    pa = arrow()
    try:
        table = pa.table(given) if hasattr(given, "__arrow_c_stream__") else pa.record_batch(given)
        if not isinstance(table, pa.Table):
            table = pa.Table.from_batches([table])
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError) as reason:
        raise InvalidValue(f"table {number} cannot be read as an Arrow table: {reason}") from None
    return [Source(f"table {number}", table=table)]


def _paths(given: Any) -> list[Source]:
    path = checked_path("files", getattr(given, "path", given))
    if os.path.isdir(path):
        inside = sorted(_inside(path))
        if not inside:
            raise FileMissing(f"there is no file *.parquet in the folder {path}")
    elif glob.has_magic(path) and not os.path.exists(path):
        inside = sorted(glob.glob(path, recursive=True))
        if not inside:
            raise FileMissing(f"there is no file {path}")
    else:
        inside = [path]
    for one in inside:
        _check_parquet(one)
    # Workers of a cluster may run in other folders.
    return [Source(one, path=os.path.abspath(one)) for one in inside]


def _inside(folder: str) -> list[str]:
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(HIDDEN)]
        found += [
            os.path.join(parent, name)
            for name in names
            if name.endswith(".parquet") and not name.startswith(HIDDEN)
        ]
    return found


def _check_parquet(path: str) -> None:
    with naming("read", path), open(path, "rb") as file:
        begin = file.read(len(PARQUET))
    if begin[:1] == b"{":
        raise InvalidValue(
            f"{path} is a log of JSON lines: write it as Parquet first, "
            f"Log({path!r}).to_parquet(...)"
        )
    if begin != PARQUET:
        raise InvalidValue(f"{path} is no Parquet file: it begins with {begin!r}")


def _check_once(found: list[Source]) -> None:
    seen: dict[str, str] = {}
    for one in found:
        if one.path is not None:
            real = os.path.realpath(one.path)
            if real in seen:
                raise InvalidValue(f"{one.path} is given twice: its rows would count twice")
            seen[real] = one.path
