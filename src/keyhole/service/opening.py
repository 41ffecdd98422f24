"""Connections to a database: opened to read only, its tables checked, errors with its name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from urllib.parse import quote

import apsw

from keyhole.errors import FileError, FileUnusable, KeyholeWarning
from keyhole.service.schema import APPLICATION, SCHEMA, VERSION


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


def check_tables(connection: apsw.Connection, path: str) -> None:
    """Raise `FileError` unless a database has the tables of this version.

    Parameters
    ----------
    connection : Connection
        The database.
    path : str
        Its file.
    """
    version = connection.pragma("user_version")
    if connection.pragma("application_id") != APPLICATION:
        raise FileError(f"{path} is a database, but not one of a decision service")
    if version != VERSION:
        raise FileError(
            f"{path} has version {version}, and this Keyhole reads version {VERSION}: "
            "install the Keyhole that wrote it, or a newer one"
        )
    if _tables(connection) != _own_tables():
        raise FileError(
            f"{path} has other tables, indexes or triggers than this service has made: "
            "restore it from a backup"
        )


Tables = frozenset[tuple[str, str, str | None]]  # type, name and statement of each


def _tables(connection: apsw.Connection) -> Tables:
    """Return the tables, indexes and triggers of a database, without SQLite's own."""
    listed = connection.execute("SELECT type, name, sql FROM sqlite_schema")
    return frozenset(one for one in listed if not one[1].startswith("sqlite_"))


@cache
def _own_tables() -> Tables:
    """Return those of a new database."""
    with closing(apsw.Connection(":memory:")) as made:
        made.execute(SCHEMA)
        return _tables(made)
