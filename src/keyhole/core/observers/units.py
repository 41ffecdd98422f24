"""Units of features, from quartiles of a sample, so that a single value cannot distort them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from keyhole.core import kernels
from keyhole.core.kernels import Floats, Ints

# A feature has a unit once it was seen this many times: its scale is then known to about a fifth.
MIN_SEEN = 32
# This many values of each feature are kept, and units are computed from them.
SAMPLE = 64
# The interquartile range of a normal feature, in standard deviations.
NORMAL_RANGE = 1.349
# A feature that varies by less than this share of its size is constant up to rounding.
NEGLIGIBLE = 1e-12
# A smaller unit counts as unknown: numbers up to `checks.LARGEST` would overflow in it.
SMALLEST = 1e-50
# Units are replaced where those of a later sample differ by more than this factor.
FACTOR = 3.0


class Units(NamedTuple):
    """Middle of each feature and length of its unit, which is 0 while it is not known."""

    middle: Floats  # (d,)
    scale: Floats  # (d,)

    @classmethod
    def unknown(cls, dim: int) -> Units:
        """Return units that are all unknown."""
        return cls(np.zeros(dim), np.zeros(dim))

    @property
    def known(self) -> Any:
        """Mask of the features that have a unit."""
        return self.scale > 0.0

    def scale_for(self, *, centred: bool, limit: float) -> Scale:
        """Return the `Scale` that converts features to these units.

        Parameters
        ----------
        centred : bool
            Count from the middle rather than from 0.
        limit : float
            Values more than this many units from the middle are moved to that limit.
        """
        known = self.known
        reach = np.where(known, limit * self.scale, np.inf)
        inverse = np.divide(1.0, self.scale, out=np.zeros(len(self.scale)), where=known)
        origin = self.middle if centred else np.zeros(len(self.scale))
        return Scale(
            self.middle - reach, self.middle + reach, origin, inverse, is_complete=bool(known.all())
        )

    def due(self, seen: Floats) -> Any:
        """Return a mask of the features that get a unit now, by how often they were seen.

        Together with the first unit, all features that were seen half as often get theirs, so that
        rewards that were pending until then are not learned without these features.
        """
        enough = seen >= MIN_SEEN
        if enough.any() and not self.known.any():
            enough = seen >= MIN_SEEN / 2
        return enough & ~self.known

    def replaced(self, other: Units, where: Any) -> Units:
        """Return these units, with the units of another for some features.

        Parameters
        ----------
        other : Units
            The replacements.
        where : ndarray of bool of shape (d,)
            Mask of the features whose units are replaced.
        """
        return Units(*(np.where(where, new, old) for new, old in zip(other, self, strict=True)))

    def differ(self, other: Units) -> Any:
        """Return a mask of the features whose units here and in `other` are far apart."""
        both = self.known & other.known
        ratio = np.divide(other.scale, self.scale, out=np.ones(len(self.scale)), where=both)
        moved = np.abs(other.middle - self.middle) > FACTOR * np.maximum(self.scale, other.scale)
        return both & ((ratio > FACTOR) | (ratio < 1.0 / FACTOR) | moved)


class Scale(NamedTuple):
    """Conversion to units: values are clipped to `low` and `high`, then shifted and scaled."""

    low: Floats
    high: Floats
    origin: Floats
    inverse: Floats  # 0 for a feature without a unit, which the posterior then does not see
    is_complete: bool  # whether every feature has a unit

    def apply(self, rows: Floats, *, out: Floats) -> None:
        """Write rows in these units into `out`; NaN stays NaN.

        Parameters
        ----------
        rows : ndarray of shape (..., d)
            Rows in the original units.
        out : ndarray of shape (..., d)
            Array for the result.
        """
        np.maximum(rows, self.low, out=out)
        np.minimum(out, self.high, out=out)
        np.subtract(out, self.origin, out=out)
        np.multiply(out, self.inverse, out=out)


class Sample(NamedTuple):
    """Sample of the values of each feature, spread evenly over all of them."""

    values: Floats  # (SAMPLE, d)
    seen: Ints  # (d,)  number of values so far
    stride: Ints  # (d,)  every stride-th value is kept

    @classmethod
    def empty(cls, dim: int) -> Sample:
        """Return a sample without values."""
        shape = (SAMPLE, dim)
        return cls(np.zeros(shape), np.zeros(dim, dtype=np.int64), np.ones(dim, dtype=np.int64))

    def add(self, rows: Floats) -> None:
        """Add rows, (n, d), with NaN where an entry is missing."""
        kernels.sample_rows(*self, rows)

    def kept(self, j: int) -> Floats:
        """Return the sampled values of a feature, the oldest first."""
        return self.values[: -(-self.seen[j] // self.stride[j]), j]

    def units(self, wanted: Any) -> Units:
        """Return the units of the wanted features from their sample; the others are unknown."""
        units = Units.unknown(len(self.seen))
        for j in np.flatnonzero(wanted & self.values.any(axis=0)).tolist():
            units.middle[j], units.scale[j] = robust_unit(self.kept(j))
        return units

    def merge(self, other: Sample) -> None:
        """Add the sample of another; each value stands for as many values as it does there."""
        for j in range(len(self.seen)):
            stride = int(max(self.stride[j], other.stride[j]))
            both = [one.kept(j)[:: stride // int(one.stride[j])] for one in (self, other)]
            kept = np.concatenate(both)
            while len(kept) > SAMPLE:
                kept, stride = kept[::2], 2 * stride
            self.values[: len(kept), j] = kept
            self.seen[j], self.stride[j] = len(kept) * stride, stride

    def spread(self, places: Ints, siblings: Ints) -> Sample:
        """Return the sample of the same rows with more features, which were 0 in all of them.

        Parameters
        ----------
        places : ndarray of int of shape (d,)
            The new place of each feature.
        siblings : ndarray of int of shape (new d,)
            For each new place, an old feature that was seen in the same rows; -1 if none was.
        """
        wider = Sample.empty(len(siblings))
        known = np.flatnonzero(siblings >= 0)
        wider.values[:, places] = self.values
        wider.seen[known], wider.stride[known] = (
            self.seen[siblings[known]],
            self.stride[siblings[known]],
        )
        return wider

    def copy(self) -> Sample:
        """Return an independent copy."""
        return Sample(self.values.copy(), self.seen.copy(), self.stride.copy())


def robust_unit(values: Floats) -> tuple[float, float]:
    """Return the median and a unit from the interquartile range; a unit of 0 if there is none.

    Where half of the values are equal, as in an indicator, the unit is the median distance of the
    other values from them. The unit of a constant feature is its absolute value.

    Examples
    --------
    >>> robust_unit(np.array([0.0, 1.0, 2.0, 3.0, 1e9]))
    (2.0, 1.4825796886582654)
    >>> robust_unit(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 5.0]))
    (0.0, 5.0)
    """
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    scale = (high - low) / NORMAL_RANGE
    smallest = NEGLIGIBLE * abs(middle)
    if scale <= smallest:
        apart = np.abs(values - middle)
        apart = apart[apart > smallest]
        scale = np.median(apart) if apart.size else abs(middle)
    return float(middle), float(scale) if scale >= SMALLEST else 0.0
