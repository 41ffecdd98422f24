"""`Moments`: mean and covariance of observations with missing entries, as sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole.core import kernels
from keyhole.core.kernels import Floats, Ints
from keyhole.errors import InvalidValue


class Moments(NamedTuple):
    """Sums over all observations so far; for each pair of entries, over the rows that have both.

    The sums are additive: the order of rows does not matter, and two sets of sums are merged by
    adding them.

    Examples
    --------
    >>> moments = Moments.empty(2)
    >>> moments.add(np.array([[1.0, 10.0], [3.0, 30.0], [2.0, np.nan]]))
    >>> moments.mean.tolist()
    [2.0, 20.0]
    """

    pairs: Floats  # (d, d)  number of rows that have both entries
    total: Floats  # (d, d)  of these rows, the sum of the first entry, from its origin
    product: Floats  # (d, d)  and the sum of both entries' products, from their origins
    origin: Floats  # (d,)  the first value seen of each entry

    @classmethod
    def empty(cls, dim: int) -> Moments:
        """Return the sums of no observations."""
        pairs, total, product = np.zeros((3, dim, dim))
        return cls(pairs, total, product, np.zeros(dim))

    @property
    def mean(self) -> Floats:
        """Mean of each entry over the rows that have it; 0 if none has."""
        return self.origin + np.diag(self.total) / np.maximum(self.seen, 1.0)

    @property
    def covariance(self) -> Floats:
        """Covariance of each pair of entries over the rows that have both; 0 if fewer than two."""
        n = np.maximum(self.pairs, 1.0)
        spread: Floats = (self.product - self.total * self.total.T / n) / n
        return np.where(self.pairs < 2.0, 0.0, spread)

    @property
    def seen(self) -> Floats:
        """Number of times that each entry was seen."""
        return np.diag(self.pairs)

    def add(self, rows: Floats) -> None:
        """Add rows, (n, d), with NaN where an entry is missing."""
        kernels.add_rows(*self, rows)

    def remove(self, row: Floats) -> None:
        """Take out a row, (d,), without missing entries, that was added."""
        apart = row - self.origin
        self.pairs[:] -= 1.0
        self.total[:] -= apart[:, None]
        self.product[:] -= np.outer(apart, apart)
        for array in self[1:3]:  # of nothing the sums are 0, and not what rounding left
            array[self.pairs == 0.0] = 0.0

    def fill(self, rows: Floats) -> None:
        """Replace NaN by predictions from the other entries of the row; nothing is added."""
        kernels.fill_rows(*self, rows)

    def merge(self, other: Moments, base: Moments) -> None:
        """Add the observations that another has seen since `base`, which both contain.

        Parameters
        ----------
        other : Moments
            The sums to add.
        base : Moments
            The sums that both started from.

        Raises
        ------
        InvalidValue
            If one of the two has seen less than `base`.
        """
        if (other.pairs < base.pairs).any() or (self.pairs < base.pairs).any():
            raise InvalidValue("both must have seen all that their base has")
        new = (self.seen == 0.0) & (other.seen > 0.0)
        self.origin[new] = other.origin[new]
        theirs, known = other._from(self.origin), base._from(self.origin)
        for mine, their, shared in zip(self[:3], theirs[:3], known[:3], strict=True):
            mine += their - shared

    def _from(self, origin: Floats) -> Moments:
        """Return the same sums, counted from another origin."""
        shift = (self.origin - origin)[:, None]
        product = (
            self.product
            + shift * self.total.T
            + shift.T * self.total
            + shift * shift.T * self.pairs
        )
        return Moments(self.pairs, self.total + shift * self.pairs, product, origin)

    def spread(self, places: Ints, siblings: Ints) -> Moments:
        """Return the sums of the same rows with more entries, which were 0 in all of them.

        Parameters
        ----------
        places : ndarray of int of shape (d,)
            The new place of each entry.
        siblings : ndarray of int of shape (new d,)
            For each new place, an old entry that was seen in the same rows; -1 if no row had it.
        """
        dim = len(siblings)
        wider = Moments.empty(dim)
        known = np.flatnonzero(siblings >= 0)
        old = siblings[known]
        wider.pairs[np.ix_(known, known)] = self.pairs[np.ix_(old, old)]
        # The sum of an old entry over the rows that have a new one; that of a new one is 0.
        wider.total[np.ix_(places, known)] = self.total[:, old]
        wider.product[np.ix_(places, places)] = self.product
        wider.origin[places] = self.origin
        return wider

    def copy(self) -> Moments:
        """Return an independent copy."""
        return Moments(*(array.copy() for array in self))
