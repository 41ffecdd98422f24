"""The catalogue of data sets: their origin, and the content that they must have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from keyhole.errors import FileError
from keyhole.lab.tables import Dataset

Tidy: TypeAlias = Callable[[pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A data set of the catalogue: its origin, and its expected shape, class counts and checksum.

    The shape, the counts and the checksum are those of the data set once prepared as a table.

    Parameters
    ----------
    name : str
        The name of the data set.
    title : str
        A description of the data set.
    counts : dict
        The number of rows of each class.
    n_features : int
        The number of features.
    sha256 : str
        The checksum of the content.
    label : str, default "target"
        The column of labels.
    drop : tuple of str, default ()
        The columns that are not features.
    openml : int, optional
        The number of the data set at OpenML. None if it is bundled with scikit-learn.
    tidy : callable, optional
        Converts OpenML's columns to those of the file. By default they stay the same.
    """

    name: str
    title: str
    counts: dict[Any, int]
    n_features: int
    sha256: str
    label: str = "target"
    drop: tuple[str, ...] = ()
    openml: int | None = None
    tidy: Tidy = lambda frame: frame

    @property
    def file(self) -> str:
        """The name of the file in a folder of CSV files."""
        return f"{self.name}.csv"

    @property
    def n_rows(self) -> int:
        """The expected number of rows."""
        return sum(self.counts.values())

    def verified(self, data: Dataset, origin: object) -> Dataset:
        """Return the data if its shape, class counts and checksum are those of the source.

        Parameters
        ----------
        data : Dataset
            The data to verify.
        origin : object
            The origin of the data, for the error message.

        Returns
        -------
        Dataset
            The same data.

        Raises
        ------
        FileError
            If the data differ from those of the source.
        """
        rows, columns = data.features.shape
        if (rows, columns) != (self.n_rows, self.n_features):
            size = f"{rows:,} rows x {columns} features"
            problem = f"{size}, not {self.n_rows:,} x {self.n_features}"
        elif data.counts != self.counts:
            problem = f"class counts {data.counts}, not {self.counts}"
        elif data.sha256 != self.sha256:
            problem = "numbers that differ from the published ones (checksum of the content)"
        else:
            return data
        raise FileError(f"{origin} is not {self.name}: it has {problem}")


def fetal_states(frame: pd.DataFrame) -> pd.DataFrame:
    """Return UCI's 21 features from OpenML's 35 raw columns.

    The raw columns have the start and end of each recording, counts of events instead of rates, and
    the expert's other classification as numbers, which reveal the label.
    """
    raw = {
        name: frame[f"V{place}"].astype(float)
        for place, name in enumerate(
            (
                *("begin", "end", "LBE", "LB", "AC", "FM", "UC", "ASTV", "MSTV", "ALTV", "MLTV"),
                *("DL", "DS", "DP", "DR", "Width", "Min", "Max", "Nmax", "Nzeros", "Mode"),
                *("Mean", "Median", "Variance", "Tendency"),
            ),
            start=1,
        )
    }
    for event in ("AC", "FM", "UC", "DL", "DS", "DP"):
        raw[event] = raw[event] / (raw["end"] - raw["begin"])
    order = (
        *("LB", "AC", "FM", "UC", "DL", "DS", "DP", "ASTV", "MSTV", "ALTV", "MLTV", "Width"),
        *("Min", "Max", "Nmax", "Nzeros", "Mode", "Mean", "Median", "Variance", "Tendency"),
    )
    return pd.DataFrame({**{name: raw[name] for name in order}, "NSP": frame["Class"]})


CATALOGUE: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            name="eye_movements",
            title="words read while eyes were tracked: irrelevant, relevant or the answer",
            openml=1044,
            label="label",
            drop=("lineNo",),  # the number of the row
            n_features=26,
            counts={0: 3804, 1: 4262, 2: 2870},
            sha256="1db5dc834059f42d37861b7496d653f6ab220ba4fb5151b6f691b76463e71364",
        ),
        Source(
            name="eeg-eye-state",
            title="14 channels of an EEG, with eyes open or closed",
            openml=1471,
            label="Class",
            n_features=14,
            counts={1: 8257, 2: 6723},
            sha256="b1e214e680da988942d0f5f1a4cb41fc3953403ac21510e4378067d3cbc593c0",
        ),
        Source(
            name="cardiotocography",
            title="heart rates of unborn children: normal, suspect or pathologic",
            openml=1560,
            label="NSP",
            n_features=21,
            counts={1: 1655, 2: 295, 3: 176},
            sha256="68780e5b5c38e367ae1dabd295795db20bd772b1827772a18a1a4030bc2b9a9c",
            tidy=fetal_states,
        ),
        Source(
            name="breast_cancer",
            title="cells from breast tumours: malignant or benign",
            n_features=30,
            counts={0: 212, 1: 357},
            sha256="7260cc3338c72a4fadba8ccd777f624b486a2a6684e3983fc2a1da99e4bdc24e",
        ),
        Source(
            name="wine",
            title="chemistry of wines of three growers",
            n_features=13,
            counts={0: 59, 1: 71, 2: 48},
            sha256="3732098d3f5112545b2dfaa24fffb1cef3f787c955fa8caacf0bdb03d32a1272",
        ),
        Source(
            name="digits",
            title="8 x 8 pixels of handwritten digits",
            n_features=64,
            counts={0: 178, 1: 182, 2: 177, 3: 183, 4: 181, 5: 182, 6: 181, 7: 179, 8: 174, 9: 180},
            sha256="dec7fa55ebe3698c2eb6eb7df897cf430977cd66be20f9542ad89c102cbe4eaf",
        ),
    )
}
