"""`Range`: the usual range of the entries of a vector, to which glitches are clipped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole.core.kernels import Floats


class Range(NamedTuple):
    """Mean, standard deviations and correlations of a vector with a known covariance."""

    mean: Floats  # (d,)
    scale: Floats  # (d,)
    correlation: Floats  # (d, d)
    smallest: float  # the smallest eigenvalue of the correlations

    @classmethod
    def of(cls, mean: Floats, covariance: Floats) -> Range:
        """Return the range of a vector.

        Parameters
        ----------
        mean : ndarray of shape (d,)
            Its mean.
        covariance : ndarray of shape (d, d)
            Its covariance, positive definite.
        """
        scale = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(scale, scale)
        return cls(mean, scale, correlation, float(np.linalg.eigvalsh(correlation).min()))

    def clipped(self, row: Floats, limit: float) -> Floats:
        """Return a vector whose entries are at most `limit` standard deviations from their mean.

        Entries that do not fit each other are far, too: the Mahalanobis distance from the mean is
        at most that of independent entries at the limit. If nothing is far, the vector itself is
        returned.

        Parameters
        ----------
        row : ndarray of shape (d,)
            The vector, with NaN for missing entries.
        limit : float
            The number of standard deviations.
        """
        standard = (row - self.mean) / self.scale
        # Nearly all rows end here. The sum is NaN, and compares as larger, if an entry is missing.
        if standard @ standard <= limit * limit * min(len(row) * self.smallest, 1.0):
            return row
        seen = ~np.isnan(row)
        standard = standard[seen]
        near = standard.clip(-limit, limit)
        farthest, squared = limit * limit * len(near), float(near @ near)
        # The smallest eigenvalue of a part of a matrix is at least that of the whole.
        if squared > farthest * self.smallest:
            solved = np.linalg.solve(self.correlation[np.ix_(seen, seen)], near)
            squared = float(near @ solved)
            # With some slack: rounding is no reason to clip.
            if squared > farthest * (1.0 + 1e-9):
                near = near * np.sqrt(farthest / squared)
        if np.array_equal(near, standard):
            return row
        clipped = row.copy()
        clipped[seen] = self.mean[seen] + near * self.scale[seen]
        return clipped
