"""Checks of the paths that users give, and errors that name them."""

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

    Numbers are refused: `open` takes them as file descriptors, which it would read and then close.

    Parameters
    ----------
    name : str
        Name of the argument in error messages.
    path : object
        A string, or an object such as `pathlib.Path`.

    Returns
    -------
    str
        The path, as it was given.

    Raises
    ------
    InvalidValue
        If it is not a path.
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidValue(f"{name} must be a path, as a str or a pathlib.Path, got {shown(path)}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidValue(
            f"{name} has characters that file names cannot have, got {shown(path)}"
        ) from None
    return text


@contextlib.contextmanager
def naming(action: str, path: str) -> Iterator[None]:
    """Convert an error of the operating system to a `FileError` that names the given path.

    Parameters
    ----------
    action : str
        The action that may fail, "read" or "write".
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
    """Return the error that says why the operating system could not read or write a file.

    Parameters
    ----------
    action : str
        The action that failed, "read" or "write".
    path : str
        The path that was given.
    reason : OSError
        The error of the operating system.

    Returns
    -------
    FileError
        `FileMissing` if a file was not found, otherwise `FileUnusable`; to be raised by the caller.
    """
    why = (reason.strerror or str(reason)).lower()
    if isinstance(reason, FileNotFoundError) and action == "write":
        why = "its folder does not exist: create it first"
    kind = FileMissing if isinstance(reason, FileNotFoundError) else FileUnusable
    error = kind(f"cannot {action} {path}: {why}")
    error.errno = reason.errno
    return error


def file_mode(path: str) -> int | None:
    """Return the permissions of a plain file, or None if the path does not exist.

    Raises
    ------
    FileUnusable
        If the path is something else: a folder, a named pipe, a device.
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
