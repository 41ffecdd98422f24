"""Paths as users give them: checked, and named in errors."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import TypeAlias

from keyhole.errors import FileError, FileMissing, FileUnusable, InvalidValue, shown

Path: TypeAlias = str | os.PathLike[str]

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def checked_path(name: str, path: object) -> str:
    """Check a path that a user gave.

    Numbers are refused: to `open` they are file descriptors, which it would read and then close.

    Parameters
    ----------
    name : str
        What the argument is called, for the error.
    path : object
        A string, or an object such as `pathlib.Path`.

    Returns
    -------
    str
        The path, as it was given.

    Raises
    ------
    InvalidValue
        If it is no path.

    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidValue(f"{name} must be a path, as a str or a pathlib.Path, got {shown(path)}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidValue(f"{name} has letters that no file name has: {shown(path)}") from None
    return text


@contextlib.contextmanager
def naming(action: str, path: str) -> Iterator[None]:
    """Turn an error of the system into a `FileError` that names the path that was given.

    Parameters
    ----------
    action : str
        What was tried, "read" or "write".
    path : str
        The path that was given.

    """
    try:
        yield
    except FileError:
        raise
    except OSError as reason:
        raise failure(action, path, reason) from None


def failure(action: str, path: str, reason: OSError) -> FileError:
    """Say in our own words why the system could not read or write a file."""
    why = (reason.strerror or str(reason)).lower()
    if isinstance(reason, FileNotFoundError) and action == "write":
        why = "its folder does not exist: create it first"
    kind = FileMissing if isinstance(reason, FileNotFoundError) else FileUnusable
    error = kind(f"cannot {action} {path}: {why}")
    error.errno = reason.errno
    return error


def file_mode(path: str) -> int | None:
    """Find the permissions of a plain file, or None where there is nothing.

    Raises
    ------
    FileUnusable
        If something else is there: a folder, a named pipe, a device.

    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if not path.endswith(os.sep):
            return None
        mode = stat.S_IFDIR
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "not a plain file")
        error = FileUnusable(f"{path} is {kind}: give the path of a file")
        error.errno = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise error
    return stat.S_IMODE(mode)
