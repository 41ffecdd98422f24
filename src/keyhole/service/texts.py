"""The place of a text in a database that is not UTF-8, after a read of it has failed.

SQLite keeps any bytes as a text, such as those with a flipped bit; Python reads UTF-8 only.
"""

from __future__ import annotations

import apsw

from keyhole.errors import FileError, shown

# The columns of tables with texts. A body is a text only if somebody has changed it.
_TEXTS = {
    "log": ("kind", "event", "body"),
    "event": ("event", "arm"),
    "reward": ("event", "reward_id"),
    "snapshot": ("fingerprint",),
}
_LOOPS = "SELECT id, CAST(name AS BLOB), CAST(run AS BLOB) FROM loop ORDER BY id"


def damaged_text(connection: apsw.Connection, path: str) -> FileError:
    """Return the error that names the first text that is not UTF-8 by its loop, row and column.

    Parameters
    ----------
    connection : Connection
        The database, which is read as a whole.
    path : str
        Its file.
    """
    names = {}
    for number, name, run in connection.execute(_LOOPS):
        names[number] = (name or b"").decode(errors="backslashreplace")
        if not (_is_text(name) and _is_text(run)):
            return FileError(f"loop {names[number]!r}: its name or run in {path} is not UTF-8")
    for table, columns in _TEXTS.items():
        listed = ", ".join(f"CAST({column} AS BLOB)" for column in columns)
        for loop, seq, *texts in connection.execute(f"SELECT loop, seq, {listed} FROM {table}"):
            for column, text in zip(columns, texts, strict=True):
                if not _is_text(text):
                    return FileError(
                        f"row {seq} of loop {names.get(loop, str(loop))!r} is damaged: column "
                        f"{column} of the table {table} in {path} is not UTF-8, got {shown(text)}"
                    )
    return FileError(f"{path} is damaged: a text in it is not UTF-8")


def _is_text(content: bytes | None) -> bool:
    """Tell whether bytes are UTF-8, as those of a text that is there."""
    try:
        (content or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
