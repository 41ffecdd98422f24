"""Files as blocks of whole lines: decompressed, checked to be UTF-8, and counted."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from keyhole.errors import FileError, InvalidValue, shown
from keyhole.evaluation.formats.format import Head, Progress
from keyhole.files import checked_path, is_part, opened_source

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
NEWLINE = b"\n"
# Bytes that are read at a time: larger blocks are no faster.
BLOCK = 1 << 22
# Bytes by which a format is recognised. Lines with 50 actions and their features have 20,000.
HEAD = 1 << 16
# A longer line is not one: the file is of another kind.
MAX_LINE = 1 << 26


class Block(NamedTuple):
    """Whole lines of a file."""

    path: str
    first: int  # the number of its first line, from 1
    data: bytes

    def place(self, line: int) -> str:
        """Return the name of a line in error messages; `line` counts from 0 in this block."""
        return f"line {self.first + line:,} of {self.path}"


def paths_of(source: object) -> list[str] | None:
    """Return the files that a source stands for, or None if it is no path nor a list of them.

    Raises
    ------
    FileError
        If a folder has no files.
    """
    if isinstance(source, str | os.PathLike):
        return _files(checked_path("log", source))
    if not isinstance(source, list | tuple) or not source:
        return None
    if not all(isinstance(one, str | os.PathLike) for one in source):
        return None
    found = [file for one in source for file in _files(checked_path("log", one))]
    seen: set[str] = set()
    for file in found:
        if os.path.realpath(file) in seen:
            raise InvalidValue(f"log must name every file once, got {file} twice")
        seen.add(os.path.realpath(file))
    return found


def given_paths(source: object) -> list[str]:
    """Return the files of a source that must be one or more paths."""
    found = paths_of(source)
    if found is None:
        raise InvalidValue(f"log must be a path, or a list of paths, got {shown(source)}")
    return found


def _files(path: str) -> list[str]:
    """Return a file itself, and of a folder all its files, by their paths."""
    if not os.path.isdir(path):
        return [path]
    # Hidden files, and those that are being written, are not part of a log.
    found = sorted(
        str(file)
        for file in Path(path).rglob("*")
        if file.is_file() and not file.name.startswith((".", "_")) and not is_part(file)
    )
    if not found:
        raise FileError(f"{path} is a folder without files")
    return found


def head_of(path: str) -> Head:
    """Return the beginning of a file.

    Raises
    ------
    FileError
        If there is no file, or it cannot be read or is empty.
    """
    with opened_source(path) as file:
        raw = file.read(len(GZIP))
        file.seek(0)
        start = _read(path, gzip.GzipFile(fileobj=file) if raw == GZIP else file, HEAD)
    if not start.strip():
        raise FileError(f"{path} is empty")
    return Head(path, start)


def blocks(paths: list[str], progress: Progress | None = None) -> Iterator[Block]:
    """Yield the lines of files, in blocks.

    Parameters
    ----------
    paths : list of str
        The files.
    progress : callable, optional
        Called with the bytes that were read and those of all files.

    Raises
    ------
    FileError
        If a file cannot be read, is damaged, is not UTF-8 or has a line of more than 64 MB.
    """
    sizes = [os.path.getsize(path) if os.path.exists(path) else 0 for path in paths]
    total, before = sum(sizes), 0
    for path, size in zip(paths, sizes, strict=True):
        with opened_source(path) as file:
            is_packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            for block in _blocks(path, gzip.GzipFile(fileobj=file) if is_packed else file):
                yield block
                if progress is not None:
                    progress(before + file.tell(), total)
        before += size


def _blocks(path: str, file: IO[bytes] | gzip.GzipFile) -> Iterator[Block]:
    first, rest = 1, b""
    while True:
        read = _read(path, file, BLOCK)
        data = rest + read
        if first == 1 and data.startswith(BOM):
            data = data[len(BOM) :]
        end = data.rfind(b"\n") + 1 if read else len(data)
        data, rest = data[:end], data[end:]
        if len(rest) > MAX_LINE:
            raise FileError(
                f"line {first + data.count(NEWLINE):,} of {path} is longer than "
                f"{MAX_LINE >> 20} MB: this is no file of lines"
            )
        if data:
            _check_utf8(path, first, data)
            yield Block(path, first, data)
            first += data.count(NEWLINE)
        if not read:
            return


def _check_utf8(path: str, first: int, data: bytes) -> None:
    try:
        str(data, "utf-8")
    except UnicodeDecodeError as reason:
        line = first + data.count(NEWLINE, 0, reason.start)
        raise FileError(
            f"line {line:,} of {path} is not UTF-8: byte 0x{data[reason.start]:02x} "
            f"({reason.reason})"
        ) from None


def _read(path: str, file: IO[bytes] | gzip.GzipFile, size: int) -> bytes:
    try:
        return file.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as reason:
        raise FileError(f"{path} is no whole gzip file: {reason}") from None
