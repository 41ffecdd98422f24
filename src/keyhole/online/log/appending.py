"""A file of lines that one process appends to: locked, repaired after a crash, never rewritten.

A line is written by one call of the system, so that it survives the end of the process, however
that comes. With `sync` it survives a loss of power, too. A crash in the middle leaves a last line
without its end: that one was never acknowledged, and the next writer cuts it off.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator

from keyhole.errors import FileError, FileUnusable, InvalidValue, KeyholeWarning, shown
from keyhole.files import Path, checked_path, naming

if sys.platform != "win32":
    import fcntl

# Read at a time. A line may be longer.
PIECE = 1 << 20
# The same for a single line: that of a decision among five arms of dim 10 has 700 bytes.
LINE = 2048


def lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield place and content of every whole line; one without an end is being written, or torn.

    Parameters
    ----------
    path : path-like
        The file.
    start : int, default 0
        The place of the first line to read.
    """
    given = checked_path("path", path)
    with naming("read", given), open(given, "rb") as file:
        file.seek(start)
        place, rest = start, b""
        while piece := file.read(PIECE):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield place, line
                place += len(line) + 1


def _read_at(file: int, size: int, place: int) -> bytes:
    """Return some bytes of a file that is appended to; Windows has no `os.pread`."""
    os.lseek(file, place, os.SEEK_SET)  # rows are appended at the end, wherever this is
    return os.read(file, size)


def line_at(path: Path, place: int) -> bytes:
    """Return the line at a place.

    Parameters
    ----------
    path : path-like
        The file.
    place : int
        The place of its first byte.
    """
    given = checked_path("path", path)
    with naming("read", given), open(given, "rb") as file:
        file.seek(place)
        line = file.readline()
    if not line.endswith(b"\n"):
        raise FileError(f"{given} has become shorter: there is no line at byte {place}")
    return line


class Appender:
    """The one writer of a file.

    Parameters
    ----------
    path : path-like
        The file, which is made if it does not exist.
    sync : bool
        Have the disk confirm each write.

    Raises
    ------
    FileUnusable
        If another process writes to it, or it cannot be written.
    """

    def __init__(self, path: Path, *, sync: bool) -> None:
        self.path, self.sync = checked_path("path", path), sync
        self.broken = ""  # why nothing can be written any more
        flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
        with naming("write", self.path):
            self._file: int | None = os.open(self.path, flags, 0o666)
        self._owner = os.getpid()
        try:
            self._lock()
            self._cut_torn_line()
        except BaseException:
            self.close()
            raise
        self.size = os.fstat(self._file).st_size

    def _lock(self) -> None:
        if sys.platform == "win32" or self._file is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileUnusable(
                f"{self.path} is written by another bandit: each needs a log of its own"
            ) from None

    def _cut_torn_line(self) -> None:
        """Cut off a last line without an end, and say so."""
        assert self._file is not None
        size = os.fstat(self._file).st_size
        end = size
        while end:
            start = max(0, end - PIECE)
            found = _read_at(self._file, end - start, start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        self.cut(end)

    def cut(self, end: int) -> None:
        """Cut off what follows a place, which a crash has left incomplete, and say so."""
        assert self._file is not None
        size = os.fstat(self._file).st_size
        if end == size:
            return
        torn = _read_at(self._file, min(size - end, 60), end)
        os.ftruncate(self._file, end)
        os.fsync(self._file)
        self.size = end
        warnings.warn(
            f"{self.path} ended in an incomplete row, probably after a crash: its last "
            f"{size - end} bytes were removed, {shown(torn)}; all rows before them are whole",
            KeyholeWarning,
            stacklevel=2,
        )

    @property
    def is_own(self) -> bool:
        """Whether this process opened the file, and not one from which it was forked."""
        return os.getpid() == self._owner

    def check(self) -> None:
        """Raise unless lines can be written."""
        if self.broken or self._file is None:
            raise FileUnusable(f"{self.path} cannot be written: {self.broken or 'it was closed'}")
        if not self.is_own:
            raise InvalidValue(
                f"{self.path} is the log of another process, from which this one was forked: give "
                "this process a bandit with a log of its own"
            )

    def write(self, block: bytes) -> int:
        """Append whole lines, and return their place; after a failure nothing is written again.

        Parameters
        ----------
        block : bytes
            The lines.
        """
        if self._file is None or self.broken or not self.is_own:
            self.check()
        assert self._file is not None
        place = self.size
        try:
            written = os.write(self._file, block)
            while written < len(block):  # a full disk, or a signal: the rest, or an error
                written += os.write(self._file, block[written:])
            if self.sync:
                os.fsync(self._file)
        except BaseException as reason:
            self._undo(place, reason)
            raise FileUnusable(f"{self.path} cannot be written: {reason}") from reason
        self.size += len(block)
        return place

    def line_at(self, place: int) -> bytes:
        """Return the line at a place, which was written before."""
        self.check()
        assert self._file is not None
        line, size = b"", LINE
        while not line.endswith(b"\n"):
            piece = _read_at(self._file, size, place + len(line))
            if not piece:
                raise FileError(f"{self.path} has become shorter: no line at byte {place}")
            line += piece[: piece.find(b"\n") + 1] or piece
            size *= 4
        return line

    def _undo(self, place: int, reason: BaseException) -> None:
        """Take back a part that was written, and write nothing more."""
        self.broken = (
            f"an earlier write failed ({reason}), and the bandit is ahead of its log; "
            "Bandit.from_log goes on from what was written"
        )
        assert self._file is not None
        try:
            os.ftruncate(self._file, place)
        except OSError as again:
            # The torn line stays, and the next writer cuts it off.
            self.broken += f"; its last line is torn ({again})"

    def close(self) -> None:
        """Close the file, which another bandit may then write to."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)
