"""Finding and reading data sets: from a folder of CSV files, the cache, or scikit-learn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from sklearn import datasets as bundled

from keyhole.datasets.catalogue import CATALOGUE, Source
from keyhole.errors import FileError, InvalidValue
from keyhole.tables import Dataset

Folder: TypeAlias = str | os.PathLike[str] | None

FOLDER_VARIABLE = "KEYHOLE_DATA"


def names() -> list[str]:
    """The data sets that are known by name."""
    return list(CATALOGUE)


def load(name: str, *, data_dir: Folder = None, label: str | None = None) -> Dataset:
    """A data set by name, or a CSV file of your own by its path.

    A known one is read from data_dir (or the folder that the environment variable KEYHOLE_DATA
    names), from the cache, or from scikit-learn, and otherwise downloaded; it is verified wherever
    it comes from. label: the column of labels in a file of your own; by default the last.

    >>> import keyhole as kh
    >>> kh.datasets.load("wine")
    Dataset('wine', 178 rows x 13 features, 3 classes)
    """
    from keyhole.datasets.download import fetch

    if not isinstance(name, str | os.PathLike):
        raise InvalidValue(f"a data set is asked for by name or path, got {name!r}")
    if str(name) not in CATALOGUE:
        if Path(name).suffix.lower() == ".csv":
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
        return fetch(source.name)
    return source.verified(read_csv(found, label=source.label, source=source), found)


def find(source: Source, data_dir: Folder = None) -> Path | None:
    """The file of a data set, in the given folder or in the cache."""
    named = data_dir if data_dir is not None else os.environ.get(FOLDER_VARIABLE) or None
    if named is not None and not Path(named).is_dir():
        origin = "data_dir" if data_dir is not None else FOLDER_VARIABLE
        raise FileError(f"{origin} must be a folder of CSV files, but {named} is not a folder")
    folders = [cache_folder()] if named is None else [Path(named), cache_folder()]
    return next(
        (folder / source.file for folder in folders if (folder / source.file).exists()), None
    )


def cache_folder() -> Path:
    """Where downloaded data sets are kept: a folder in that of scikit-learn's own."""
    return Path(os.environ.get("SCIKIT_LEARN_DATA", Path.home() / "scikit_learn_data")) / "keyhole"


def read_csv(
    path: str | os.PathLike[str], *, label: str | None = None, source: Source | None = None
) -> Dataset:
    """A table with a header, of numbers but for the column of labels (by default the last)."""
    try:
        frame = pd.read_csv(path, skipinitialspace=True)
    except FileNotFoundError:
        raise FileError(f"there is no file {path}") from None
    except (ValueError, OSError) as reason:  # pandas' own errors are ValueErrors
        raise FileError(f"{path} cannot be read as CSV: {reason}") from None
    name = Path(path).stem if source is None else source.name
    return from_frame(frame, label, name, path, drop=() if source is None else source.drop)


def from_frame(
    frame: pd.DataFrame,
    label: str | None,
    name: str,
    origin: object,
    *,
    drop: tuple[str, ...] = (),
) -> Dataset:
    """A data frame as a data set."""
    label = str(frame.columns[-1]) if label is None and len(frame.columns) else label
    if label not in frame.columns or len(frame.columns) < 2:
        raise FileError(
            f"{origin} has no column of labels {label!r} beside features; "
            f"its columns are {', '.join(map(str, frame.columns))}"
        )
    if frame.empty:
        raise FileError(f"{origin} has no rows")
    features = frame.drop(columns=[label, *(c for c in drop if c in frame.columns)])
    for column in features.columns:
        if not pd.api.types.is_numeric_dtype(features[column]):
            raise FileError(f"{origin}: column {column!r} must be numbers; drop or encode it first")
    for column in frame.columns:
        if missing := int(frame[column].isna().sum()):
            raise FileError(
                f"{origin}: column {column!r} lacks {missing} values; fill or drop them"
            )
    return Dataset(
        features=features.to_numpy(dtype=np.float64),
        labels=frame[label].to_numpy(),
        name=name,
        feature_names=tuple(map(str, features.columns)),
    )


def _bundled(source: Source) -> Dataset:
    table = getattr(bundled, f"load_{source.name}")()
    return Dataset(
        features=table.data,
        labels=table.target,
        name=source.name,
        feature_names=tuple(map(str, table.feature_names)),
    )
