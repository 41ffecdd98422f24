"""Connections to a database: opened to read only, and errors of SQLite that name the file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import apsw

from keyhole.errors import FileError, FileUnusable, KeyholeWarning


def opened_to_read(path: str) -> apsw.Connection:
    """Return a connection that only reads, also in a folder that nothing can be written to.

    To read beside a writer, SQLite needs a file of shared memory. Where it cannot be made, nobody
    writes, and the database is read as it stands; unless rows are in the write-ahead log alone,
    which would be left out.
    """
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.pragma("user_version")  # the first read opens what there is
        return connection
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close(force=True)
    ahead = f"{path}-wal"
    if os.path.exists(ahead) and os.path.getsize(ahead):
        raise FileUnusable(
            f"{path} cannot be read in a read-only folder: {ahead} has rows that are not in the "
            "database yet. Copy the folder to a writable place and read the copy"
        )
    warnings.warn(
        f"{os.path.dirname(path)} cannot be written, and {path} is read as it stands: its "
        "write-ahead log is empty, and nothing is left out",
        KeyholeWarning,
        stacklevel=2,
    )
    return apsw.Connection(
        f"file:{quote(os.path.abspath(path))}?immutable=1",
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
    )


@contextmanager
def naming_errors(path: str) -> Iterator[None]:
    """Convert an error of SQLite to a `FileError` that names the file."""
    try:
        yield
    except apsw.NotADBError:
        raise FileError(f"{path} is not a database") from None
    except apsw.CorruptError as reason:
        raise FileError(
            f"{path} is damaged ({reason}): restore it from a backup, or recover what can be read "
            "with the command .recover of sqlite3"
        ) from reason
    except apsw.Error as reason:
        raise FileUnusable(f"{path} cannot be used: {reason}") from reason
