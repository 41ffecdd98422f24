"""Atomic replacement of a file, and removal of the partial files of killed writers.

A file is written beside its target, as `target.0.part`, and renamed when it is complete. The
writing process holds a lock (flock) on its part; the system releases the lock when the process
ends, however it ends. A part that can be locked therefore has no writer, and the next write of the
same target deletes it. Names are numbered, so that leftovers are found without reading the folder.
"""

import contextlib
import errno
import itertools
import os
import re
import sys
from collections.abc import Iterator
from typing import IO

from keyhole.files.paths import Path, checked_path, failure, file_mode, naming

if sys.platform != "win32":
    import fcntl

# Leftovers are looked for under this many numbers. A part gets a higher number only where as many
# processes write one target at the same time.
NUMBERS = 16
# Errors of a write whose cause is the place of the file, not the caller's own code.
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
# Errors of a file system that has no locks, or cannot sync a folder.
UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


def is_part(path: Path) -> bool:
    """Return whether a path is the name of an unfinished file."""
    return re.search(r"\.\d+\.part$", os.fspath(path)) is not None


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a new file beside `path` and rename it to `path` at the end, in one step.

    After a crash in the middle the old file is unchanged. The new file has the permissions of the
    file that it replaces; without one, those that the umask leaves.

    Parameters
    ----------
    path : str or os.PathLike
        Path of the file. A link is followed.

    Yields
    ------
    IO[bytes]
        The file to write to.

    Raises
    ------
    InvalidValue
        If `path` is not a path.
    FileError
        If something other than a file is there, the folder does not exist or cannot be written to,
        or the disk is full. The message names `path`; the old file is unchanged.
    """
    given = checked_path("path", path)
    with naming("write", given):
        mode = file_mode(given)
        target = os.path.realpath(given)
        _clear_away(target)
        part, file = _new_part(target, private=mode is not None)
    with _held(part, file):
        try:
            yield file
        except OSError as reason:
            if reason.errno not in OF_THE_DISK:
                raise
            raise failure("write", given, reason) from None
        with naming("write", given):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            if mode is not None:
                os.chmod(part, mode)
            os.replace(part, target)
    with naming("write", given):
        sync_folder(os.path.dirname(target))


def _part(target: str, number: int) -> str:
    return f"{target}.{number}.part"


def _new_part(target: str, *, private: bool) -> tuple[str, IO[bytes]]:
    """Create a part that no other writer has, and lock it."""
    for number in itertools.count():
        part = _part(target, number)
        # A part that replaces a file is private until it gets the permissions of that file.
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
        try:
            handle = os.open(part, flags, 0o600 if private else 0o666)
        except FileExistsError:
            continue
        # Another process may have deleted it as a leftover before it was locked.
        if _locked(handle, wait=True) is False or os.fstat(handle).st_nlink > 0:
            return part, os.fdopen(handle, "wb")
        os.close(handle)
    raise AssertionError("numbers do not end")


def _clear_away(target: str) -> None:
    """Delete the parts of this target whose writers have ended."""
    for number in range(NUMBERS):
        part = _part(target, number)
        try:
            handle = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        except OSError:  # usually there is none; a file that cannot be opened is not ours
            continue
        try:
            if _locked(handle, wait=False):
                _delete(part, handle)
        finally:
            os.close(handle)


def _delete(part: str, handle: int | None) -> None:
    """Delete a locked part, unless it was renamed and another file has its name now."""
    with contextlib.suppress(FileNotFoundError):
        if handle is None or os.path.samestat(os.stat(part), os.fstat(handle)):
            os.unlink(part)


def _locked(handle: int, *, wait: bool) -> bool:
    """Lock a file and return whether that worked. Without locks, nothing is deleted."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as reason:
        if isinstance(reason, BlockingIOError) or reason.errno in UNSUPPORTED:
            return False
        raise
    return True


@contextlib.contextmanager
def _held(part: str, file: IO[bytes]) -> Iterator[None]:
    """Hold the lock of a part until its rename, also after it is closed; delete it on failure."""
    # Windows has no such lock, and renames no file that is open.
    keeper = None if sys.platform == "win32" else os.dup(file.fileno())
    try:
        yield
    except BaseException:
        # On a full disk flushing the buffer fails again; the first error is already being raised.
        with contextlib.suppress(OSError):
            file.close()
        _delete(part, keeper)
        raise
    finally:
        if keeper is not None:
            os.close(keeper)


def sync_folder(folder: str) -> None:
    """Sync a folder, so that what was made or renamed in it survives a power failure."""
    if sys.platform == "win32":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder may be writable and not readable
        return
    try:
        os.fsync(handle)
    except OSError as reason:
        if reason.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(handle)
