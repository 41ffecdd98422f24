"""`Dataset`: a table of features with a label for each row."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole import checks
from keyhole.errors import InvalidValue, shown

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Dataset:
    """A table of numbers with a label of any kind for each row; classes are the sorted labels.

    Parameters
    ----------
    features : array_like of shape (rows, context_dim)
        The numbers.
    labels : array_like of shape (rows,)
        The label of each row. The attribute holds the index of each row's class in `classes`.
    name : str, default ""
        The name of the data set.
    feature_names : tuple of str, default ()
        The names of the columns.

    Raises
    ------
    InvalidValue
        If the arguments do not form such a table.

    Examples
    --------
    >>> import keyhole as kh
    >>> data = kh.Dataset(features=[[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]], labels=["b", "a", "b"])
    >>> data.classes, data.labels.tolist(), data.counts
    (('a', 'b'), [1, 0, 1], {'a': 1, 'b': 2})
    >>> data.prepared(clip=0.0).features.mean(axis=0).round(12).tolist()
    [0.0, 0.0]
    """

    features: Floats  # (rows, context_dim)
    labels: Ints  # (rows,)  the index of each row's class in `classes`
    classes: tuple[Any, ...]
    name: str = ""
    feature_names: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        features: ArrayLike,
        labels: ArrayLike,
        name: str = "",
        feature_names: tuple[str, ...] = (),
    ) -> None:
        x = checks.floats("features", features)
        if x.ndim != 2 or 0 in x.shape:
            raise InvalidValue(f"features must be a table (rows, columns), got shape {x.shape}")
        places, classes = _classes(labels, len(x))
        if feature_names and len(feature_names) != x.shape[1]:
            raise InvalidValue(
                f"feature_names must be {x.shape[1]} names, got {len(feature_names)}"
            )
        x.flags.writeable = places.flags.writeable = False
        for key, value in {
            "features": x,
            "labels": places,
            "classes": classes,
            "name": name,
            "feature_names": tuple(feature_names),
        }.items():
            object.__setattr__(self, key, value)

    @property
    def counts(self) -> dict[Any, int]:
        """The number of rows of each class."""
        return dict(zip(self.classes, np.bincount(self.labels).tolist(), strict=True))

    @cached_property
    def sha256(self) -> str:
        """A checksum of the content, the same for every file with this content.

        Numbers are rounded to nine significant digits: further digits depend on the way a file was
        written, not on the measurement.
        """
        text = hashlib.sha256()
        names = [str(name) for name in self.classes]
        for row, label in zip(self.features.tolist(), self.labels.tolist(), strict=True):
            # Adding zero turns minus zero into zero.
            text.update(",".join(f"{value + 0.0:.9g}" for value in row).encode())
            text.update(f";{names[label]}\n".encode())
        return text.hexdigest()

    def prepared(self, *, clip: float = 0.005) -> Dataset:
        """Return the data with each feature clipped and standardised.

        Features are clipped at their `clip` and 1 - `clip` quantiles, then standardised. Without
        clipping, a few sensor glitches would flatten all other values. A feature with a single
        value becomes zero.
        """
        clip = checks.real("clip", clip, min_value=0.0, max_value=0.49)
        x = np.clip(self.features, *np.quantile(self.features, [clip, 1.0 - clip], axis=0))
        spread = x.std(axis=0)
        spread[spread <= 1e-12 * np.abs(x).max(axis=0)] = np.inf
        return Dataset(
            features=(x - x.mean(axis=0)) / spread,
            labels=np.array(self.classes)[self.labels],
            name=self.name,
            feature_names=self.feature_names,
        )

    def __repr__(self) -> str:
        rows, columns = self.features.shape
        name = f"{self.name!r}, " if self.name else ""
        return f"Dataset({name}{rows:,} rows x {columns} features, {len(self.classes)} classes)"


def _classes(labels: ArrayLike, rows: int) -> tuple[Ints, tuple[Any, ...]]:
    """Return the index of each row's class, and the sorted classes."""
    try:
        given = np.asarray(labels)
    except Exception as reason:  # a user-defined object may raise anything
        raise InvalidValue(f"labels cannot be read as an array: {shown(reason)}") from reason
    if given.shape != (rows,):
        raise InvalidValue(f"labels must have shape ({rows},), got {given.shape}")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise InvalidValue("labels must have no missing entries")
    if given.dtype.kind == "f" and (given != np.floor(given)).any():
        raise InvalidValue(
            "labels must be classes: text or whole numbers. If these are measurements, name the "
            "column that has the labels"
        )
    try:
        classes, places = np.unique(given, return_inverse=True)
    except TypeError:
        raise InvalidValue("labels must be all numbers or all text, and none missing") from None
    if len(classes) < 2:
        raise InvalidValue(f"labels must be of two classes or more, got only {classes.tolist()}")
    return places.astype(np.int64), tuple(classes.tolist())
