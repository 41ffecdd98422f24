"""`Transformed`: a fitted transformer, such as one of scikit-learn, in the place of a recipe."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.core.kernels import Floats, Ints
from keyhole.core.observers import records
from keyhole.core.observers.encoder import digest_of
from keyhole.core.observers.fits import fit_digest
from keyhole.core.observers.observer import CLIP, Fill, Observer
from keyhole.errors import InvalidValue, MissingExtra, install_line, shown


@dataclass(frozen=True, eq=False)
class Transformed:
    """A fitted object with `transform`, which turns records into columns.

    A transformer that was fitted with names (`feature_names_in_`) takes records and frames, and is
    given a pandas DataFrame. Any other takes rows of numbers.

    Parameters
    ----------
    transformer : object
        A fitted transformer or pipeline, of which a copy is kept: one that is fitted again later
        changes nothing here.
    intercept : bool, default True
        Fit a constant per arm.
    standardize : bool, default False
        Convert columns to units of their own spread.
    missing : {"predict", "mean", "zero", "drop"}, optional
        Replacement of missing entries of the transformer's output, as for `Learner`.
    clip : float or None, default 10.0
        With `standardize`, the limit of columns in their units, as for `Learner`.
    clip_rewards : bool, default True
        Whether the first 32 rewards have a limit, too, as for `Learner`.
    """

    transformer: Any
    _: KW_ONLY
    intercept: bool = True
    standardize: bool = False
    missing: Fill | None = None
    clip: float | None = CLIP
    clip_rewards: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.transformer, type) or not callable(
            getattr(self.transformer, "transform", None)
        ):
            raise InvalidValue(
                f"transformer must be a fitted object with transform, got {shown(self.transformer)}"
            )
        try:
            own = copy.deepcopy(self.transformer)
        except Exception as reason:  # a transformer may raise anything
            raise InvalidValue(
                "transformer must be an object that can be copied, since one that is fitted again "
                f"would change its columns, got {shown(reason)}"
            ) from reason
        object.__setattr__(self, "transformer", own)
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "transformer"}
        for name, value in Observer(0, **options).options.items():  # checked, and plain
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_names", _output_names(self))  # or raise: it was not fitted

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Transformed) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        options = (getattr(self, one.name) for one in fields(self) if one.name != "transformer")
        return (fit_digest(self.transformer), *options)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields of a record; none for a transformer that was fitted without names."""
        return tuple(map(str, getattr(self.transformer, "feature_names_in_", ())))

    def start(self) -> TransformedEncoder:
        """Return the encoder."""
        return TransformedEncoder(self, self._names)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class TransformedEncoder:
    """The columns of a transformer, with the attributes and methods of an `Encoder`.

    Parameters
    ----------
    features : Transformed
        The recipe.
    names : tuple of str
        Names of the columns.
    """

    features: Transformed
    names: tuple[str, ...]
    grown: tuple[tuple[str, str], ...] = field(default=(), init=False, repr=False)
    cross_names: tuple[str, ...] = field(default=(), init=False, repr=False)

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.names)

    @property
    def is_indicator(self) -> NDArray[np.bool_]:
        """Columns whose unit is 1: none."""
        return np.zeros(self.dim, dtype=bool)

    @property
    def group(self) -> Ints:
        """A number of its own for every column."""
        return np.arange(self.dim)

    @property
    def crosses(self) -> Ints:
        """Crossed columns: none."""
        return np.zeros((0, 2), dtype=np.int64)

    @property
    def column_fields(self) -> tuple[str, ...]:
        """The columns themselves: a transformer does not tell which field a column is of."""
        return self.names

    @property
    def digest(self) -> str:
        """A digest that identifies these columns, by their names and the fit."""
        return digest_of([list(self.names), fit_digest(self.features.transformer)])

    @property
    def can_grow(self) -> bool:
        """True if columns may be added: never here."""
        return False

    @property
    def takes_rows(self) -> bool:
        """True if arrays are input of the transformer, and not its columns: always here."""
        return True

    def merged(self, _: TransformedEncoder) -> TransformedEncoder:
        """Return this encoder, which has all columns of another one."""
        return self

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """Levels of growing categories: none."""
        return MappingProxyType({})

    def reference(self, field: str) -> None:
        """Return None: columns of a transformer are not known to be levels of a category."""

    def encode(
        self, record: Any, arms: Sequence[Any] | None = None
    ) -> tuple[Floats, TransformedEncoder]:
        """Return the columns of a record, and this encoder.

        Parameters
        ----------
        record : record, or array_like of numbers
            Values by field; or a row, if the transformer was fitted without names.
        arms : None
            A transformer has no features of arms.
        """
        if arms is not None:
            raise InvalidValue("arms must be None: a transformer has no features of arms")
        if self.features.fields:
            mapping = records.record_mapping(record)
            records.check_fields("the record", mapping, self.features.fields)
            return self.encode_frame([mapping])[0][0], self
        return self.encode_frame(checks.with_missing("the record", record)[None])[0][0], self

    def encode_frame(self, frame: Any) -> tuple[Floats, TransformedEncoder]:
        """Return the columns of the rows of a frame, and this encoder.

        Parameters
        ----------
        frame : frame, or array_like of shape (n, number of inputs)
            A column for each field; or rows, if the transformer was fitted without names.
        """
        names = self.features.fields
        if names:
            columns = records.frame_columns(frame, names)
            records.check_columns(columns, names, f"frame[{list(names)}]")
            given = _data_frame({name: columns[name] for name in names})
        else:
            given = checks.with_missing("the rows", frame)
            if given.ndim != 2:
                raise InvalidValue(f"rows must be of two dimensions, got shape {given.shape}")
        rows = _transform(self.features.transformer, given)
        if rows.shape != (len(given), self.dim):
            raise InvalidValue(
                f"the transformer must give shape {(len(given), self.dim)}, got {rows.shape}"
            )
        return rows, self


def _output_names(recipe: Transformed) -> tuple[str, ...]:
    """Return the names of a transformer's columns, or numbers in their place."""
    transformer = recipe.transformer
    if callable(getattr(transformer, "get_feature_names_out", None)):
        try:
            return tuple(map(str, transformer.get_feature_names_out()))
        except Exception as reason:  # a transformer may raise anything
            raise InvalidValue(
                f"the transformer does not name its columns; was it fitted? {shown(reason)}"
            ) from reason
    n_inputs = getattr(transformer, "n_features_in_", None)
    if n_inputs is None or recipe.fields:
        raise InvalidValue(
            "the transformer must be fitted, and have get_feature_names_out(), or n_features_in_ "
            f"and inputs without names, got {shown(transformer)}"
        )
    rows = _transform(transformer, np.zeros((1, int(n_inputs))))
    return tuple(f"column {k}" for k in range(rows.shape[1]))


def _transform(transformer: Any, given: Any) -> Floats:
    try:
        output = transformer.transform(given)
    except Exception as reason:  # a transformer may raise anything
        raise InvalidValue(f"the transformer failed: {shown(reason)}") from reason
    if hasattr(output, "toarray"):  # a sparse matrix
        output = output.toarray()
    rows = checks.with_missing("the transformer's output", output)
    if rows.ndim != 2:
        raise InvalidValue(
            f"the transformer's output must be of two dimensions, got shape {rows.shape}"
        )
    return rows


def _data_frame(columns: records.Columns) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra(
            f"a transformer that was fitted with names needs pandas: {install_line('lab')}"
        ) from None
    frame = pd.DataFrame(columns)
    # Values of single records come as objects.
    return frame.infer_objects()
