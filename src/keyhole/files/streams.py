"""Sources and targets that users give: a path, an open binary file, or bytes.

A path is replaced in one step. An open file is written from where it stands and stays open; it is
the caller's, who also decides when it is closed and synced.
"""

import contextlib
import io
import os
from collections.abc import Iterator
from typing import IO, Any, TypeAlias

from keyhole.errors import FileMissing, InvalidValue, shown
from keyhole.files.paths import Path, checked_path, file_mode, naming
from keyhole.files.whole import replacing

Source: TypeAlias = Path | IO[bytes] | bytes | bytearray | memoryview
Target: TypeAlias = Path | IO[bytes]


def given_name(given: object) -> str:
    """Return the name of a source or target in error messages."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    if isinstance(given, bytes | bytearray | memoryview):
        return "the given bytes"
    name = getattr(given, "name", None)  # that of a temporary file without a name is a number
    return name if isinstance(name, str) and name else f"the given {type(given).__name__}"


@contextlib.contextmanager
def opened_target(target: Target) -> Iterator[IO[bytes]]:
    """Open the target that a user gave.

    Parameters
    ----------
    target : str, os.PathLike or binary file
        A path is replaced when everything was written, see `replacing`. A file is flushed.

    Yields
    ------
    IO[bytes]
        The file to write to.

    Raises
    ------
    InvalidValue
        If it is neither a path nor a binary file that can be written.
    FileError
        If writing fails. The message names the path, or the file if it has a name.
    """
    if isinstance(target, str | os.PathLike):
        with replacing(target) as file:
            yield file
        return
    file = _checked_file("target", target, "a path or a binary file", "write")
    with naming("write", given_name(file)):
        yield file
        if hasattr(file, "flush"):
            file.flush()


@contextlib.contextmanager
def opened_source(source: Source) -> Iterator[IO[bytes]]:
    """Open the source that a user gave.

    Parameters
    ----------
    source : str, os.PathLike, binary file or bytes
        A file must be able to seek, and is read as a whole.

    Yields
    ------
    IO[bytes]
        The file to read.

    Raises
    ------
    InvalidValue
        If it is neither a path, nor a binary file that can be read, nor bytes. A number is not
        taken as a file descriptor.
    FileError
        If there is no file, or it cannot be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        yield io.BytesIO(source)
        return
    if not isinstance(source, str | os.PathLike):
        file = _checked_file("source", source, "a path, a binary file or bytes", "read")
        with naming("read", given_name(file)):
            yield file
        return
    path = checked_path("path", source)
    with naming("read", path):
        if file_mode(path) is None:
            raise FileMissing(f"cannot read {path}: there is no such file")
        with open(path, "rb") as file:
            yield file


def _checked_file(name: str, file: Any, allowed: str, action: str) -> IO[bytes]:
    """Return an open binary file; raise if it is none, or not open for the action."""
    if not callable(getattr(file, action, None)):
        raise InvalidValue(f"{name} must be {allowed}, got {shown(file)}")
    if hasattr(file, "encoding"):
        raise InvalidValue(f"{name} is a text file: open {given_name(file)} in binary mode")
    if getattr(file, "closed", False):
        raise InvalidValue(f"{name} is a closed file: open {given_name(file)} again")
    can = getattr(file, {"read": "readable", "write": "writable"}[action], None)
    if callable(can) and not can():
        raise InvalidValue(f"{name} is not open to {action}: {given_name(file)}")
    if action == "read" and not (hasattr(file, "seekable") and file.seekable()):
        raise InvalidValue(f"{name} cannot seek: give its bytes, read() of {given_name(file)}")
    opened: IO[bytes] = file
    return opened
