"""Finding and reading data sets: from a folder of CSV files, the cache, or scikit-learn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from sklearn import datasets as bundled

from keyhole.datasets.catalogue import CATALOGUE, Source
from keyhole.datasets.download import fetch
from keyhole.datasets.reading import cache_folder, read_csv
from keyhole.errors import DataUnavailable, FileError, InvalidValue
from keyhole.tables import Dataset

Folder: TypeAlias = str | os.PathLike[str] | None

FOLDER_VARIABLE = "KEYHOLE_DATA"


def load(
    name: str | os.PathLike[str],
    *,
    data_dir: Folder = None,
    label: str | None = None,
    patience: float | None = None,
) -> Dataset:
    """Load a data set by name, or a CSV file of your own by its path.

    A known one is read from a folder, from the cache or from scikit-learn, and otherwise
    downloaded; it is verified wherever it comes from.

    Parameters
    ----------
    name : str or path
        A name of the catalogue, or the path of a CSV file on this machine.
    data_dir : str or path, optional
        A folder of CSV files; by default the one that the environment variable KEYHOLE_DATA names.
    label : str, optional
        The column of labels in a file of your own; by default the last.
    patience : float, optional
        Seconds to wait for an answer of OpenML, by default 30.

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidValue
        If there is no such data set.
    FileError
        If a file is not what it must be.
    DataUnavailable
        If the data set is not here and cannot be downloaded.

    Examples
    --------
    >>> import keyhole as kh
    >>> kh.datasets.load("wine")
    Dataset('wine', 178 rows x 13 features, 3 classes)
    """
    if not isinstance(name, str | os.PathLike):
        raise InvalidValue(f"a data set is asked for by name or path, got {name!r}")
    if str(name) not in CATALOGUE:
        if Path(name).suffix.lower() == ".csv" or "://" in str(name):
            return read_csv(name, label=label)
        raise InvalidValue(
            f"there is no data set {str(name)!r}; there is {', '.join(CATALOGUE)}, or the path of "
            "a CSV file of yours"
        )
    source = CATALOGUE[str(name)]
    if label is not None:
        raise InvalidValue(f"label is for files of your own: that of {name} is {source.label}")
    if source.openml is None:
        return source.verified(_bundled(source), f"scikit-learn's {source.name}")
    found = find(source, data_dir)
    if found is None:
        try:
            return fetch(source.name, patience=patience)
        except DataUnavailable as reason:
            places = " or ".join(str(path) for path in candidates(source, data_dir))
            raise DataUnavailable(f"there is no {places}, and {reason}") from None
    return source.verified(read_csv(found, label=source.label, source=source), found)


def find(source: Source, data_dir: Folder = None) -> Path | None:
    """The file of a data set, in the given folder or in the cache."""
    return next((path for path in candidates(source, data_dir) if path.exists()), None)


def candidates(source: Source, data_dir: Folder = None) -> list[Path]:
    """Return the paths at which the file of a data set is looked for, in this order."""
    named = data_dir if data_dir is not None else os.environ.get(FOLDER_VARIABLE) or None
    if named is not None and not Path(named).is_dir():
        origin = "data_dir" if data_dir is not None else FOLDER_VARIABLE
        raise FileError(f"{origin} must be a folder of CSV files, but {named} is not a folder")
    folders = [cache_folder()] if named is None else [Path(named), cache_folder()]
    return [folder / source.file for folder in folders]


def _bundled(source: Source) -> Dataset:
    table = getattr(bundled, f"load_{source.name}")()
    return Dataset(
        features=table.data,
        labels=table.target,
        name=source.name,
        feature_names=tuple(map(str, table.feature_names)),
    )
