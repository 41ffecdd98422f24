"""Bandits on disk: one npz file of plain arrays and a JSON header, written whole or not at all."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole import __version__
from keyhole.core import kernels
from keyhole.errors import FileError, shown
from keyhole.files import Path, read_arrays, write_arrays

FORMAT = "keyhole.bandit"
VERSION = 5


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write all of it, or leave what was there."""
    written_by = {"keyhole": __version__, "build": kernels.BUILD}
    text = json.dumps({"format": FORMAT, "version": VERSION, "written_by": written_by, **header})
    write_arrays(path, {"header": np.array(text), **arrays})


def read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a file that `write` made."""
    arrays = read_arrays(path)
    header = _header(path, arrays.pop("header", None))
    if header.get("format") != FORMAT:
        raise FileError(f"{path} is an npz file, but not a saved bandit")
    if header.get("version") != VERSION:
        raise FileError(
            f"{path} has format version {header.get('version')!r}, and this Keyhole reads version "
            f"{VERSION} only: load a newer file with a newer Keyhole"
        )
    _check_writer(path, header.get("written_by"))
    return header, arrays


def _check_writer(path: Path, given: Any) -> None:
    """Check who wrote a file; any version and any build of the kernels will do."""
    names = ("keyhole", "build")
    if not isinstance(given, dict) or not all(isinstance(given.get(name), str) for name in names):
        raise FileError(f"{path} must say in written_by what wrote it, got {shown(given)}")


def _header(path: Path, text: NDArray[Any] | None) -> dict[str, Any]:
    if text is None or text.dtype.kind != "U" or text.shape != ():
        raise FileError(f"{path} is an npz file, but not a saved bandit")
    try:
        header = json.loads(str(text))
    except (ValueError, RecursionError) as reason:
        raise FileError(f"{path} has a damaged header: {reason}") from None
    if not isinstance(header, dict):
        raise FileError(f"{path} is an npz file, but not a saved bandit")
    return header
