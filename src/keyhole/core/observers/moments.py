"""`Moments`: mean and covariance of observations with gaps, as sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole.core import kernels
from keyhole.core.kernels import Floats
from keyhole.errors import InvalidValue


class Moments(NamedTuple):
    """Sums over all observations so far, for each pair of entries over those that have both.

    They add up: the order does not matter, and those of two places are merged by adding.

    >>> moments = Moments.empty(2)
    >>> moments.add(np.array([[1.0, 10.0], [3.0, 30.0], [2.0, np.nan]]))
    >>> moments.mean.tolist()
    [2.0, 20.0]
    """

    pairs: Floats  # (d, d)  how many rows have both entries
    total: Floats  # (d, d)  of these rows, the sum of the first entry, from its origin
    product: Floats  # (d, d)  and of both entries' products, from their origins
    origin: Floats  # (d,)  the first value seen of each entry

    @classmethod
    def empty(cls, dim: int) -> Moments:
        """Nothing was seen yet."""
        pairs, total, product = np.zeros((3, dim, dim))
        return cls(pairs, total, product, np.zeros(dim))

    @property
    def mean(self) -> Floats:
        """Of each entry where it was seen; 0 where it never was."""
        return self.origin + np.diag(self.total) / np.maximum(self.seen, 1.0)

    @property
    def covariance(self) -> Floats:
        """Of each pair of entries over the rows that have both; 0 before there are two."""
        n = np.maximum(self.pairs, 1.0)
        spread: Floats = (self.product - self.total * self.total.T / n) / n
        return np.where(self.pairs < 2.0, 0.0, spread)

    @property
    def seen(self) -> Floats:
        """How often each entry was seen."""
        return np.diag(self.pairs)

    def add(self, rows: Floats) -> None:
        """Add rows, (n, d), NaN where an entry is not seen."""
        kernels.add_rows(*self, rows)

    def fill(self, rows: Floats) -> None:
        """Put predictions from what each row has in place of its NaN; nothing is added."""
        kernels.fill_rows(*self, rows)

    def fill_rounds(self, rounds: Floats) -> None:
        """Fill (T, n, d) round by round, each from the rounds before it, which are added."""
        kernels.fill_rounds(*self, rounds)

    def merge(self, other: Moments, base: Moments) -> None:
        """Add what another has seen since `base`, which both have."""
        if (other.pairs < base.pairs).any() or (self.pairs < base.pairs).any():
            raise InvalidValue("both must have seen all that their base has")
        new = (self.seen == 0.0) & (other.seen > 0.0)
        self.origin[new] = other.origin[new]
        theirs, known = other._from(self.origin), base._from(self.origin)
        for mine, their, shared in zip(self[:3], theirs[:3], known[:3], strict=True):
            mine += their - shared

    def _from(self, origin: Floats) -> Moments:
        """The same sums, counted from another origin."""
        shift = (self.origin - origin)[:, None]
        product = (
            self.product
            + shift * self.total.T
            + shift.T * self.total
            + shift * shift.T * self.pairs
        )
        return Moments(self.pairs, self.total + shift * self.pairs, product, origin)

    def copy(self) -> Moments:
        """An independent copy."""
        return Moments(*(array.copy() for array in self))
