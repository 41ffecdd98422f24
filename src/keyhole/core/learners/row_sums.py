"""`RowSums`: what a posterior needs of many rows, as sums by arm that can be added up.

With u = (x, r) of an observation as the posterior sees it and its reward, the sum of u u' has all
of it: sum x x', sum r x and sum r^2. Sums of parts of the rows add up to the sums of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from keyhole.core import kernels
from keyhole.core.kernels import Floats, Ints
from keyhole.core.learners.state import LearnerState


class RowSums(NamedTuple):
    """Sums over rows, for each group of them that has any.

    Attributes
    ----------
    groups : ndarray of int of shape (m,)
        The groups that have rows, in ascending order.
    counts : ndarray of shape (m,)
        Number of rows of each.
    squares : ndarray of shape (m, w, w)
        Upper triangle of the sum of u u' of each; w is `kernels.padded(n_columns + 1)`.
    n_dropped : int
        Rows that were left out since an entry was missing.
    """

    groups: Ints
    counts: Floats
    squares: Floats
    n_dropped: int = 0

    @classmethod
    def empty(cls, n_columns: int) -> RowSums:
        """Return the sums of no rows."""
        width = kernels.padded(n_columns + 1)
        return cls(np.empty(0, np.int64), np.empty(0), np.empty((0, width, width)))

    def plus(self, other: RowSums) -> RowSums:
        """Return the sums of the rows of both."""
        n_dropped = self.n_dropped + other.n_dropped
        if np.array_equal(self.groups, other.groups):
            return RowSums(
                self.groups, self.counts + other.counts, self.squares + other.squares, n_dropped
            )
        groups = np.union1d(self.groups, other.groups)
        counts, squares = np.zeros(len(groups)), np.zeros((len(groups), *self.squares.shape[1:]))
        for one in (self, other):
            at = np.searchsorted(groups, one.groups)
            counts[at] += one.counts
            squares[at] += one.squares
        return RowSums(groups, counts, squares, n_dropped)


class Summing:
    """Sums of rows that come batch after batch.

    Parameters
    ----------
    n_groups : int
        Number of groups.
    n_columns : int
        Length of a row as the posterior sees it.
    """

    def __init__(self, n_groups: int, n_columns: int) -> None:
        width = kernels.padded(n_columns + 1)
        self.squares = kernels.aligned_zeros((n_groups, width, width))
        self.counts = np.zeros(n_groups)
        self.n_dropped = 0

    def add(self, groups: Ints, rows: Floats, rewards: Floats) -> None:
        """Add rows.

        Parameters
        ----------
        groups : ndarray of int of shape (n,)
            Group of each row; a row of a negative group is left out.
        rows : ndarray of shape (n, n_columns)
            The rows as the posterior sees them.
        rewards : ndarray of shape (n,)
            Their rewards.
        """
        kernels.sum_rows(groups, rows, rewards, self.squares)
        used = groups if groups.size and groups.min() >= 0 else groups[groups >= 0]
        self.counts += np.bincount(used, minlength=len(self.counts))

    def result(self) -> RowSums:
        """Return the sums of all rows so far, which must not be added to any more."""
        groups = np.flatnonzero(self.counts)
        if len(groups) == len(self.counts):
            return RowSums(groups, self.counts, self.squares, self.n_dropped)
        return RowSums(groups, self.counts[groups], self.squares[groups], self.n_dropped)


class PairwiseSums:
    """The sum of many sums in the order in which they come, added up in pairs.

    Which are added to which follows from their number alone, and rounding errors grow with the
    logarithm of that number.

    Parameters
    ----------
    n_columns : int
        Length of a row as the posterior sees it.
    """

    def __init__(self, n_columns: int) -> None:
        self._n_columns = n_columns
        self._parts: list[tuple[int, RowSums]] = []  # of 2^level sums each, level descending

    def add(self, sums: RowSums) -> None:
        """Add the next sums."""
        level = 0
        while self._parts and self._parts[-1][0] == level:
            sums = self._parts.pop()[1].plus(sums)
            level += 1
        self._parts.append((level, sums))

    def result(self) -> RowSums:
        """Return the sum of all."""
        parts: Iterable[RowSums] = (one for _, one in reversed(self._parts))
        total = next(iter(parts), None)
        if total is None:
            return RowSums.empty(self._n_columns)
        for one in parts:
            total = one.plus(total)
        return total


def add_sums(state: LearnerState, sums: RowSums) -> None:
    """Add sums of rows to what a learner knows.

    Parameters
    ----------
    state : LearnerState
        What was learned, which is changed. Its units and its rewards' zero are fixed.
    sums : RowSums
        Sums by parameter or, if arms have a shared part and one of their own, by arm.
    """
    n = state.observer.n_columns
    squares, moment = sums.squares[:, :n, :n], sums.squares[:, :n, n]
    of_rewards, count, groups = sums.squares[:, n, n], sums.counts, sums.groups
    if state.arms.is_hybrid:
        squares, moment = _in_blocks(squares, moment, groups, len(state.arms.names))
        of_rewards, count = of_rewards.sum(keepdims=True), count.sum(keepdims=True)
        groups = np.zeros(1, np.int64)
    state.posterior.add_sums(groups, squares, moment, count, of_rewards)
    state.n_dropped += sums.n_dropped


def _in_blocks(squares: Floats, moment: Floats, arms: Ints, n_arms: int) -> tuple[Floats, Floats]:
    """Return sums by arm as those of the joint parameter; see `blocks`.

    The row of arm i is (y, 0, ..., y, ..., 0): its square has y y' in the shared block, in the
    arm's own, and between the two.
    """
    n = squares.shape[1]
    whole = squares + np.triu(squares, 1).transpose(0, 2, 1)
    joint, moments = np.zeros((1 + n_arms, n, 1 + n_arms, n)), np.zeros((1 + n_arms, n))
    joint[0, :, 0], moments[0] = whole.sum(axis=0), moment.sum(axis=0)
    for arm, own, own_moment in zip(1 + arms, whole, moment, strict=True):
        joint[0, :, arm] = joint[arm, :, arm] = own
        moments[arm] = own_moment
    size = (1 + n_arms) * n
    return np.triu(joint.reshape(1, size, size)), moments.reshape(1, size)
