"""Bandits on disk: one npz file of plain arrays and a JSON header, written whole or not at all."""

import contextlib
import json
import os
import secrets
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.errors import FileError

FORMAT = "keyhole.bandit"
VERSION = 1

Arrays = Mapping[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write to a new file beside `path` and put it in its place at the very end."""
    target = os.path.realpath(path)
    part = f"{target}.{secrets.token_hex(8)}.part"
    text = json.dumps({"format": FORMAT, "version": VERSION, **header})
    try:
        with open(part, "xb") as file:
            np.savez(file, allow_pickle=False, header=np.array(text), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a file that `write` made."""
    try:
        with zipfile.ZipFile(path) as archive, np.load(path, allow_pickle=False) as file:
            if (damaged := archive.testzip()) is not None:
                raise FileError(f"{path}: {damaged} is damaged")
            arrays = {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as reason:
        raise FileError(f"{path} is not a whole file of a saved bandit: {reason}") from None
    header = _header(path, arrays.pop("header", None))
    if header.get("format") != FORMAT:
        raise FileError(f"{path} is an npz file, but not a saved bandit")
    if not isinstance(header.get("version"), int) or not 1 <= header["version"] <= VERSION:
        raise FileError(
            f"{path} has format version {header.get('version')!r}, but this Keyhole reads "
            f"1 to {VERSION}: upgrade keyhole to load a newer file"
        )
    return header, arrays


def _header(path: str | os.PathLike[str], text: NDArray[Any] | None) -> dict[str, Any]:
    if text is None or text.dtype.kind != "U" or text.shape != ():
        raise FileError(f"{path} is an npz file, but not a saved bandit")
    try:
        header = json.loads(str(text))
    except json.JSONDecodeError as reason:
        raise FileError(f"{path} has a damaged header: {reason}") from None
    if not isinstance(header, dict):
        raise FileError(f"{path} is an npz file, but not a saved bandit")
    return header
