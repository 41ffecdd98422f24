"""Files that are there whole or not at all."""

import contextlib
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole.errors import FileError

Path: TypeAlias = str | os.PathLike[str]

# What reading a damaged zip file has been seen to raise, a flipped bit at a time.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OSError,
    KeyError,
)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a new file beside `path`; it takes its place at the end, in one step.

    After a crash in the middle the old file is still there, untouched.
    """
    target = os.path.realpath(path)
    part = f"{target}.{secrets.token_hex(8)}.part"
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an npz file of plain arrays: all of it, or what was there stays."""
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file, every checksum looked at and no pickle ever opened."""
    with open(path, "rb") as handle:
        try:
            with zipfile.ZipFile(handle) as archive:
                damaged = archive.testzip()
            handle.seek(0)
            with np.load(handle, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except DAMAGE as reason:
            raise FileError(f"{path} is not a whole npz file of plain arrays: {reason}") from None
    if damaged is not None:
        raise FileError(f"{path}: {damaged} is damaged")
    return arrays
