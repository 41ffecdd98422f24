"""Plain arrays in uncompressed npz files; each array is read once, directly into its memory.

`read_arrays` does not trust a file. Before any memory is allocated, the size that a header declares
is compared with the size of its data: a file cannot request more memory than its own length.
"""

import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole.errors import FileError
from keyhole.files.streams import Source, Target, given_name, opened_source, opened_target

# Returns a new array of a shape and a type, whose content does not matter.
Allocate: TypeAlias = Callable[[tuple[int, ...], np.dtype[Any]], NDArray[Any]]

# The exceptions that reading a damaged zip file was seen to raise, one flipped bit at a time.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    OSError,
    KeyError,
)
# No file of Keyhole has a tenth of this many members.
MAX_MEMBERS = 1000
# Bytes that are read at a time: larger chunks are no faster.
CHUNK = 2**18
# The beginning of an npy member as NumPy writes it, version 1.0 or 2.0, with the header's length.
MAGIC = re.compile(rb"\x93NUMPY(\x01\x00..|\x02\x00....)", re.DOTALL)
# The header as NumPy writes it, for numbers and strings. NumPy's own reader evaluates it as Python.
HEADER = re.compile(
    r"\{'descr': '([<>|][biufSU][1-9]\d{0,8})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
MAX_HEADER = 10_000
MAX_LETTER = 0x10FFFF


def write_arrays(target: Target, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an npz file of plain arrays; a path gets all of it or stays as it was.

    Parameters
    ----------
    target : str, os.PathLike or binary file
        Path of the file, or an open file.
    arrays : Mapping of str to numpy.ndarray
        Arrays of numbers or strings, by name.
    """
    with opened_target(target) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_arrays(source: Source, *, allocate: Allocate = np.empty) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz file that `write_arrays` made.

    Parameters
    ----------
    source : str, os.PathLike, binary file or bytes
        Path of the file, an open file that can seek, or the content of one.
    allocate : callable, default numpy.empty
        Called with shape and dtype of each array, for the memory into which it is read.

    Returns
    -------
    dict of str to numpy.ndarray
        The arrays by name.

    Raises
    ------
    InvalidValue
        If `source` is none of these. A number is not read as a file descriptor.
    FileError
        If there is no file, it cannot be read, does not fit into memory, or is not a whole npz
        file of plain arrays.
    """
    with opened_source(source) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                _check_members(members, file.seek(0, os.SEEK_END))
                return {
                    member.filename[:-4]: _array(archive, member, allocate) for member in members
                }
        except MemoryError:
            raise FileError(f"{given_name(source)} does not fit into memory") from None
        except DAMAGE as reason:
            raise FileError(
                f"{given_name(source)} is not a whole npz file of plain arrays: {reason}"
            ) from None


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Raise if the table of contents has an entry that `write_arrays` does not write."""
    if len(members) > MAX_MEMBERS:
        raise ValueError(f"it has {len(members):,} members, more than {MAX_MEMBERS:,}")
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two of its members have the same name")
    for member in members:
        if not member.filename.endswith(".npy"):
            raise ValueError(f"its member {member.filename!r} is not an array")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            raise ValueError(f"{member.filename} must not be compressed or encrypted")
    # Members that overlap could be many times as large as the file.
    if sum(member.file_size for member in members) > size:
        raise ValueError("its members are larger than the file")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, allocate: Allocate) -> NDArray[Any]:
    with archive.open(member) as file:
        dtype, shape, fortran, length = _header(file)
        if dtype.itemsize * math.prod(shape) != member.file_size - length:
            raise ValueError(f"the length of {member.filename} differs from its header")
        array = allocate(shape[::-1] if fortran else shape, dtype)
        # Reads to the end, where the checksum is compared.
        _fill(file, array)
    _check_content(member.filename, array)
    array = array.astype(dtype.newbyteorder("="), copy=False)
    return array.T if fortran else array


def _header(file: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """Read type, shape and order of an array; return also the number of bytes read."""
    magic = file.read(10)
    magic += file.read(2) if magic[6:7] == b"\x02" else b""
    if not MAGIC.fullmatch(magic):
        raise ValueError("a member is not an npy file of version 1.0 or 2.0")
    size = int.from_bytes(magic[8:], "little")
    if size > MAX_HEADER:
        raise ValueError(f"a header has {size:,} bytes, more than {MAX_HEADER:,}")
    found = HEADER.fullmatch(file.read(size).decode("latin1"))
    if found is None:
        raise ValueError("a header is not one of a plain array")
    kind, fortran, lengths = found.groups()
    try:
        dtype = np.dtype(kind)
    except TypeError:
        raise ValueError(f"a header has the unknown type {kind}") from None
    shape = tuple(int(length) for length in lengths.split(",") if length.strip())
    return dtype, shape, fortran == "True", len(magic) + size


def _fill(file: IO[bytes], array: NDArray[Any]) -> None:
    """Read an array in small pieces, so that memory never holds a second copy of it."""
    rest = array.reshape(-1).view(np.uint8).data
    while rest:
        piece = file.read(min(CHUNK, len(rest)))
        if not piece:
            raise EOFError("it ends too early")
        rest[: len(piece)] = piece
        rest = rest[len(piece) :]


def _check_content(name: str, array: NDArray[Any]) -> None:
    """Raise on bytes that are not a bool or not a character: their meaning is undefined."""
    if array.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
        raise ValueError(f"{name} has bools other than 0 and 1")
    if array.dtype.kind == "U" and array.size:
        letters = array.reshape(-1).view(array.dtype.byteorder.replace("|", "=") + "u4")
        if letters.max() > MAX_LETTER:
            raise ValueError(f"{name} has characters beyond U+10FFFF")
