"""Functions that read a table from a CSV file."""

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
    """Return the folder of downloaded data sets, inside scikit-learn's own data folder."""
    return Path(os.environ.get("SCIKIT_LEARN_DATA", Path.home() / "scikit_learn_data")) / "keyhole"


def candidates(file: str, data_dir: Folder = None) -> list[Path]:
    """Return the possible paths of a file: in a named folder, then in the cache.

    Parameters
    ----------
    file : str
        The name of the file.
    data_dir : str or path, optional
        A folder of data files; by default the value of the environment variable KEYHOLE_DATA.

    Returns
    -------
    list of Path
        The paths, in the order in which they are searched.

    Raises
    ------
    FileError
        If the named folder is not a folder.
    """
    named = data_dir if data_dir is not None else os.environ.get(FOLDER_VARIABLE) or None
    if named is not None and not Path(named).is_dir():
        origin = "data_dir" if data_dir is not None else FOLDER_VARIABLE
        raise FileError(f"{origin} must be a folder of data files, but {named} is not a folder")
    folders = [cache_folder()] if named is None else [Path(named), cache_folder()]
    return [folder / file for folder in folders]


def read_csv(
    path: str | os.PathLike[str], *, label: str | None = None, source: Source | None = None
) -> Dataset:
    """Read a CSV file on this machine, with a header, as a data set.

    Parameters
    ----------
    path : str or path
        The file, with numbers in all columns but that of the labels.
    label : str, optional
        The column of labels, by default the last.
    source : Source, optional
        The expected data set, which gives its name and the columns that are not features.

    Returns
    -------
    Dataset
        The data set.

    Raises
    ------
    InvalidValue
        If `path` is an address or not a path.
    FileError
        If there is no such file, or it is not such a table.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidValue(f"name must be the name or the path of a data set, got {shown(path)}")
    if "://" in str(path):
        raise InvalidValue(f"path must be a file on this machine, got {path}: download it first")
    try:
        # The file is opened here because pandas would also accept an address.
        with open(path, "rb") as file, warnings.catch_warnings():
            # If rows have one field too many, pandas takes the first field as the row's name and
            # shifts the others, or, without row names, drops the last field and warns.
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
    """Return a data frame as a data set.

    Parameters
    ----------
    frame : pandas.DataFrame
        The data frame.
    label : str or None
        The column of labels. None is the last column.
    name : str
        The name of the data set.
    origin : object
        The origin of the data frame, for error messages.
    drop : tuple of str, default ()
        The columns that are not features.

    Returns
    -------
    Dataset
        The data set.

    Raises
    ------
    FileError
        If the data frame is not such a table.
    """
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
