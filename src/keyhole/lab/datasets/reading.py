"""Reading a table from a CSV file."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from keyhole.errors import FileError, InvalidValue, shown
from keyhole.lab.datasets.catalogue import Source
from keyhole.lab.tables import Dataset

Folder: TypeAlias = str | os.PathLike[str] | None

FOLDER_VARIABLE = "KEYHOLE_DATA"


def cache_folder() -> Path:
    """Where downloaded data sets are kept: a folder in that of scikit-learn's own."""
    return Path(os.environ.get("SCIKIT_LEARN_DATA", Path.home() / "scikit_learn_data")) / "keyhole"


def candidates(file: str, data_dir: Folder = None) -> list[Path]:
    """Return the paths at which a file is looked for: in a named folder, then in the cache."""
    named = data_dir if data_dir is not None else os.environ.get(FOLDER_VARIABLE) or None
    if named is not None and not Path(named).is_dir():
        origin = "data_dir" if data_dir is not None else FOLDER_VARIABLE
        raise FileError(f"{origin} must be a folder of data files, but {named} is not a folder")
    folders = [cache_folder()] if named is None else [Path(named), cache_folder()]
    return [folder / file for folder in folders]


def read_csv(
    path: str | os.PathLike[str], *, label: str | None = None, source: Source | None = None
) -> Dataset:
    """Read a CSV file of this machine, with a header, as a data set.

    Parameters
    ----------
    path : str or path
        The file: numbers in all columns but that of the labels.
    label : str, optional
        The column of labels, by default the last.
    source : Source, optional
        The data set that the file should be: its name, and the columns that are no features.

    Raises
    ------
    InvalidValue
        If `path` is an address, or no path at all.
    FileError
        If there is no such file, or it is not such a table.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidValue(f"a data set is asked for by name or path, got {shown(path)}")
    if "://" in str(path):
        raise InvalidValue(f"only files of this machine are read: {path} is an address; "
                           "download it first")  # fmt: skip
    try:
        # pandas itself would also take an address.
        with open(path, "rb") as file, warnings.catch_warnings():
            # Of rows with a field too many pandas makes the first field the name of the row and
            # moves the others along, or without names of rows drops the last and warns.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(file, skipinitialspace=True, index_col=False, low_memory=False)
    except pd.errors.ParserWarning:
        raise FileError(
            f"{path}: its rows have more fields than its header has names; name every column"
        ) from None
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
    try:
        return Dataset(
            features=features.to_numpy(dtype=np.float64),
            labels=frame[label].to_numpy(),
            name=name,
            feature_names=tuple(map(str, features.columns)),
        )
    except InvalidValue as reason:
        raise FileError(f"{origin} ({len(frame):,} rows): {reason}") from None
