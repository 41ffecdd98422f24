"""`Moments`: mean and covariance of observations with gaps, as sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole import kernels
from keyhole.errors import InvalidValue
from keyhole.kernels import Floats


class Moments(NamedTuple):
    """Sums over all observations so far, for each pair of entries over those that have both.

    They add up: the order does not matter, and those of two places are merged by adding.

    >>> moments = Moments.empty(2)
    >>> moments.add(np.array([[1.0, 10.0], [3.0, 30.0], [2.0, np.nan]]))
    >>> moments.mean.tolist()
    [2.0, 20.0]
    """

    pairs: Floats  # (d, d)  how many rows have both entries
    total: Floats  # (d, d)  of these rows, the sum of the first entry
    product: Floats  # (d, d)  and of both entries' products

    @classmethod
    def empty(cls, dim: int) -> Moments:
        """Nothing was seen yet."""
        return cls(*np.zeros((3, dim, dim)))

    @property
    def mean(self) -> Floats:
        """Of each entry where it was seen; 0 where it never was."""
        n = np.diag(self.pairs)
        return np.diag(self.total) / np.maximum(n, 1.0)

    @property
    def covariance(self) -> Floats:
        """Of each pair of entries over the rows that have both; 0 before there are two."""
        n = np.maximum(self.pairs, 1.0)
        spread: Floats = (self.product - self.total * self.total.T / n) / n
        return np.where(self.pairs < 2.0, 0.0, spread)

    @property
    def rows(self) -> float:
        """How many rows the most often seen entry was seen in."""
        return float(np.diag(self.pairs).max())

    def add(self, rows: Floats) -> None:
        """Add rows, (n, d), NaN where an entry is not seen."""
        kernels.add_rows(*self, rows)

    def fill(self, rows: Floats) -> None:
        """Put predictions from what each row has in place of its NaN; nothing is added."""
        for row in rows:
            kernels.fill_row(*self, row)

    def fill_rounds(self, rounds: Floats) -> None:
        """Fill (T, n, d) round by round, each from the rounds before it, which are added."""
        kernels.fill_rounds(*self, rounds)

    def merge(self, other: Moments, base: Moments) -> None:
        """Add what another has seen since `base`, which both have."""
        if (other.pairs < base.pairs).any() or (self.pairs < base.pairs).any():
            raise InvalidValue("both must have seen all that their base has")
        for mine, theirs, known in zip(self, other, base, strict=True):
            mine += theirs - known

    def copy(self) -> Moments:
        """An independent copy."""
        return Moments(*(array.copy() for array in self))
