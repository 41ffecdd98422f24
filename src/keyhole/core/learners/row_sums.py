"""`RowSums`: what a posterior needs of many rows, as sums by arm that can be added up.

With u = (x, r) of an observation as the posterior sees it and its reward, the sum of u u' has all
of it: sum x x', sum r x and sum r^2. Sums of parts of the rows add up to the sums of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
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

    Only groups that have rows take memory.

    Parameters
    ----------
    n_groups : int
        Number of groups.
    n_columns : int
        Length of a row as the posterior sees it.
    """

    def __init__(self, n_groups: int, n_columns: int) -> None:
        width = kernels.padded(n_columns + 1)
        self.counts = np.zeros(n_groups)
        self.squares = np.empty((0, width, width))  # in the order in which groups came
        self.n_dropped = 0
        self._place = np.full(n_groups, -1)
        self._n_seen = 0

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
        left_out = groups < 0
        used = groups[~left_out] if left_out.any() else groups
        here = np.bincount(used, minlength=len(self.counts))
        self._make_room(np.flatnonzero((here > 0) & (self._place < 0)))
        places = self._place[groups]
        if len(used) < len(groups):
            places[left_out] = -1
        kernels.sum_rows(places, rows, rewards, self.squares)
        self.counts += here

    def _make_room(self, new: Ints) -> None:
        """Give places to groups that had none."""
        self._place[new] = np.arange(self._n_seen, self._n_seen + len(new))
        self._n_seen += len(new)
        if self._n_seen > len(self.squares):
            room = min(max(self._n_seen, 2 * len(self.squares)), len(self.counts))
            larger = kernels.aligned_zeros((room, *self.squares.shape[1:]))
            larger[: len(self.squares)] = self.squares
            self.squares = larger

    def result(self) -> RowSums:
        """Return the sums of all rows so far, which must not be added to any more."""
        groups = np.flatnonzero(self.counts)
        places, squares = self._place[groups], self.squares
        if len(places) < len(squares) or (np.diff(places) < 0).any():
            squares = squares[places]
        return RowSums(groups, self.counts[groups], squares, self.n_dropped)


class PairwiseSums:
    """The sum of many sums in the order in which they come, added up in pairs.

    Which are added to which follows from their number alone, and rounding errors grow with the
    logarithm of that number.

    Parameters
    ----------
    n_columns : int
        Length of a row as the posterior sees it.
    depth : int, default 64
        Sums that are kept at a time, at most. There are as many as the logarithm of their number,
        to the base of 2; with 1 they are added up one after another.
    """

    def __init__(self, n_columns: int, depth: int = 64) -> None:
        self._n_columns, self._depth = n_columns, depth
        self._parts: list[tuple[int, RowSums]] = []  # of 2^level sums each, level descending

    def add(self, sums: RowSums) -> None:
        """Add the next sums."""
        level = 0
        while self._parts and (self._parts[-1][0] == level or len(self._parts) >= self._depth):
            before, own = self._parts.pop()
            sums, level = own.plus(sums), max(before, level) + 1
        self._parts.append((level, sums))

    def result(self) -> RowSums:
        """Return the sum of all."""
        parts: Iterator[RowSums] = (one for _, one in reversed(self._parts))
        total = next(parts, RowSums.empty(self._n_columns))
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
