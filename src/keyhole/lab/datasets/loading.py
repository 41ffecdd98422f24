"""Functions that find and read data sets: from a folder of CSV files, the cache or scikit-learn."""

from __future__ import annotations

import os
from pathlib import Path

from sklearn import datasets as bundled

from keyhole import checks
from keyhole.errors import DataUnavailable, InvalidValue, shown
from keyhole.lab.datasets.catalogue import CATALOGUE, Source
from keyhole.lab.datasets.download import fetch
from keyhole.lab.datasets.packaged import TABLES
from keyhole.lab.datasets.reading import Folder, candidates, read_csv
from keyhole.lab.tables import Dataset


def load(
    name: str | os.PathLike[str],
    *,
    data_dir: Folder = None,
    label: str | None = None,
    patience: float | None = None,
) -> Dataset:
    """Load a data set by name, or a CSV file of your own by its path.

    A data set of the catalogue is read from a folder, from the cache or from scikit-learn, and
    otherwise downloaded. It is always verified.

    Parameters
    ----------
    name : str or path
        A name of the catalogue, or the path of a CSV file on this machine.
    data_dir : str or path, optional
        A folder of CSV files; by default the value of the environment variable KEYHOLE_DATA.
    label : str, optional
        The column of labels in a file of your own; by default the last.
    patience : float, optional
        The seconds to wait for an answer of OpenML, by default 30.

    Returns
    -------
    Dataset
        The data set.

    Raises
    ------
    InvalidValue
        If there is no such data set.
    FileError
        If a file does not have the expected content.
    DataUnavailable
        If the data set is not on this machine and cannot be downloaded.

    Examples
    --------
    >>> import keyhole as kh
    >>> kh.datasets.load("wine")
    Dataset('wine', 178 rows x 13 features, 3 classes)
    """
    if not isinstance(name, str | os.PathLike):
        raise InvalidValue(f"name must be the name or the path of a data set, got {shown(name)}")
    if name in TABLES:
        raise InvalidValue(
            f"{name} has missing values and no single label: load it with "
            f"keyhole.lab.datasets.table({name!r})"
        )
    if str(name) not in CATALOGUE:
        if Path(name).suffix.lower() == ".csv" or "://" in str(name):
            return read_csv(name, label=label)
        raise checks.unknown("data set", str(name), [*CATALOGUE, "the path of a CSV file"])
    source = CATALOGUE[str(name)]
    if label is not None:
        raise InvalidValue(
            f"label must be None for {name}, whose label is {source.label}, got {shown(label)}"
        )
    if source.openml is None:
        return source.verified(_bundled(source), f"scikit-learn's {source.name}")
    found = find(source, data_dir)
    if found is None:
        try:
            return fetch(source.name, patience=patience)
        except DataUnavailable as reason:
            places = " or ".join(str(path) for path in candidates(source.file, data_dir))
            raise DataUnavailable(f"there is no {places}, and {reason}") from None
    return source.verified(read_csv(found, label=source.label, source=source), found)


def find(source: Source, data_dir: Folder = None) -> Path | None:
    """Return the file of a data set, in the given folder or in the cache.

    Parameters
    ----------
    source : Source
        The data set.
    data_dir : str or path, optional
        A folder of CSV files; by default the value of the environment variable KEYHOLE_DATA.

    Returns
    -------
    Path or None
        The path of the file, or None if there is no such file.
    """
    return next((path for path in candidates(source.file, data_dir) if path.exists()), None)


def _bundled(source: Source) -> Dataset:
    table = getattr(bundled, f"load_{source.name}")()
    return Dataset(
        features=table.data,
        labels=table.target,
        name=source.name,
        feature_names=tuple(map(str, table.feature_names)),
    )
