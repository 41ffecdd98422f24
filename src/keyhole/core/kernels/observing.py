"""Conversion of observations before the posterior sees them, row by row.

Missing entries are filled in, features are converted to their units, a constant goes before them;
and what was seen is added to the sums and samples that predictions and units follow from.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython.cimports.libc.math import isnan

from keyhole.core.kernels.types import Floats, Ints

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.missing import Predictor, Sums
else:
    from keyhole.core.kernels.missing import Predictor, Sums

# What becomes of missing entries.
KEEP = cython.declare(cython.int, 0)
PREDICT = cython.declare(cython.int, 1)
MEAN = cython.declare(cython.int, 2)
ZERO = cython.declare(cython.int, 3)
FILLS = {None: 0, "drop": 0, "predict": 1, "mean": 2, "zero": 3}
# Predictions follow from a snapshot of the sums, which is taken when rows have become more by this
# share: the weights of a pattern then serve many rounds. Estimates of n rows differ from those of
# n / (1 + GROWTH) rows by a quarter of their standard error (the root of GROWTH).
GROWTH = cython.declare(cython.double, 1.0 / 16.0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sample(
    values: cython.double[:, ::1],
    seen: cython.longlong[::1],
    stride: cython.longlong[::1],
    rows: cython.double[:, ::1],
    first: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
) -> cython.void:
    """Keep every stride-th value of each entry of n rows from `first` on; see `sample_rows`."""
    size: cython.Py_ssize_t = values.shape[0]
    place: cython.Py_ssize_t
    t: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for t in range(first, first + n):
        for j in range(rows.shape[1]):
            if isnan(rows[t, j]):
                continue
            # The stride is a power of two: this is the remainder, without a division.
            if seen[j] & (stride[j] - 1) == 0:
                place = seen[j] // stride[j]
                if place >= size:
                    for k in range(size // 2):
                        values[k, j] = values[2 * k, j]
                    stride[j] *= 2
                    place = size // 2
                values[place, j] = rows[t, j]
            seen[j] += 1


def sample_rows(values: Floats, seen: Ints, stride: Ints, rows: Floats) -> None:
    """Keep every stride-th value of each entry, skipping NaN.

    When the sample is full, every second value is dropped and the stride doubles: the sample is
    spread evenly over all values.

    Parameters
    ----------
    values : array of shape (size, d)
        The sample; size is even.
    seen, stride : array of shape (d,)
        Number of values of each entry so far, and the stride of each, a power of two.
    rows : array of shape (n, d)
        Rows to add, NaN where an entry is missing.
    """
    given: cython.double[:, ::1] = np.array(rows, order="C")  # a read-only array has no such view
    sample(values, seen, stride, given, 0, given.shape[0])


@cython.final
@cython.cclass
class RowObserver:
    """The conversion of rows, and the arrays that determine it. Not thread-safe.

    Parameters
    ----------
    dim : int
        Length of a row.
    intercept : bool
        Put a constant of 1 before the features.
    fill : int
        What becomes of missing entries, one of `FILLS`.
    moments : tuple of arrays or None
        The sums of `Sums`, to which rows are added; None if they are not needed.
    snapshot : tuple of arrays or None
        The sums that predictions follow from, replaced by `moments` from time to time.
    scale : tuple of arrays or None
        Lower and upper limit, origin and inverse unit of each feature; None if features are taken
        as they are.
    sampled : tuple of arrays or None
        Values, counts and strides of a sample, to which rows are added.
    crosses : array of int of shape (m, 2)
        Pairs of features whose product, in their units, is one more column each.
    """

    def __init__(
        self,
        dim: int,
        intercept: bool,
        fill: int,
        moments: Any,
        snapshot: Any,
        scale: Any,
        sampled: Any,
        crosses: Ints,
    ) -> None:
        if crosses.size and not (crosses.min() >= 0 and crosses.max() < dim):
            raise IndexError(f"crosses are of features from 0 to {dim - 1}")
        self.dim, self.intercept = dim, intercept
        self.crosses = np.array(crosses, np.int64)  # a read-only array has no such view
        self.n_crosses = len(crosses)
        self.n_columns = dim + intercept + self.n_crosses
        self.fill, self.watches, self.seen = fill, moments is not None, 0.0
        self.samples, self.scales = sampled is not None, scale is not None
        if moments is not None:
            self.sums = Sums(*moments)
            self.seen = self.sums.most()
        if fill == PREDICT:
            self.snapshot = Sums(*snapshot)
            self.predictor = Predictor(self.snapshot)
        if scale is not None:
            self.low, self.high, self.origin, self.inverse = scale
        if sampled is not None:
            self.sample_values, self.sample_seen, self.sample_stride = sampled

    # -- from Python ------------------------------------------------------------------------------

    def filled(self, rows: Floats) -> Floats:
        """Return a copy of rows, (n, dim), with missing entries filled in."""
        out = np.array(rows, order="C")
        view: cython.double[:, ::1] = out
        with cython.nogil:
            self.fill_in(view, 0, view.shape[0])
        return out

    def converted(self, rows: Floats) -> Floats:
        """Return filled rows, (n, dim), as the posterior sees them, (n, n_columns)."""
        out = np.empty((len(rows), self.n_columns))
        view: cython.double[:, ::1] = np.array(rows, order="C")
        result: cython.double[:, ::1] = out
        with cython.nogil:
            self.convert(view, 0, result, 0, view.shape[0])
        return out

    def see_rows(self, rows: Floats) -> None:
        """Add rows, (n, dim), to sums and sample."""
        view: cython.double[:, ::1] = np.array(rows, order="C")
        with cython.nogil:
            self.see(view, 0, view.shape[0])

    def see_rounds(self, rounds: Floats) -> Floats:
        """Add rounds one after another, (T, n, dim); return them as the posterior sees them.

        Each is filled in from the rounds before it.
        """
        n_rounds: cython.Py_ssize_t = rounds.shape[0]
        n: cython.Py_ssize_t = rounds.shape[1]
        out = np.empty((rounds.shape[0] * rounds.shape[1], self.n_columns))
        flat = np.array(rounds, order="C").reshape(n_rounds * n, self.dim)
        rows: cython.double[:, ::1] = flat
        given: cython.double[:, ::1] = flat.copy() if self.fill != KEEP else flat
        result: cython.double[:, ::1] = out
        t: cython.Py_ssize_t
        with cython.nogil:
            for t in range(n_rounds):
                self.fill_in(rows, t * n, n)
                self.see(given, t * n, n)
            self.convert(rows, 0, result, 0, n_rounds * n)
        return out.reshape(rounds.shape[0], rounds.shape[1], self.n_columns)

    # -- rows -------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def fill_in(
        self, rows: cython.double[:, ::1], first: cython.Py_ssize_t, n: cython.Py_ssize_t
    ) -> cython.void:
        """Replace NaN in n rows from `first` on; an entry that was never seen stays NaN."""
        t: cython.Py_ssize_t
        j: cython.Py_ssize_t
        if self.fill == KEEP:
            return
        if self.fill == PREDICT:
            self.predictor.fill(rows, first, n)
            return
        for t in range(first, first + n):
            for j in range(self.dim):
                if isnan(rows[t, j]):
                    rows[t, j] = self.sums.mean(j) if self.fill == MEAN else 0.0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def convert(
        self,
        rows: cython.double[:, ::1],
        first: cython.Py_ssize_t,
        out: cython.double[:, ::1],
        start: cython.Py_ssize_t,
        n: cython.Py_ssize_t,
    ) -> cython.void:
        """Write n filled rows from `first` on into rows of `out` from `start` on.

        Values beyond the limits are moved to them. An entry that is still missing becomes 0.
        """
        t: cython.Py_ssize_t
        j: cython.Py_ssize_t
        value: cython.double
        shift: cython.Py_ssize_t = self.intercept
        for t in range(n):
            if self.intercept:
                out[start + t, 0] = 1.0
            for j in range(self.dim):
                value = rows[first + t, j]
                if self.scales:
                    value = self.low[j] if value < self.low[j] else value
                    value = self.high[j] if value > self.high[j] else value
                    value = (value - self.origin[j]) * self.inverse[j]
                out[start + t, shift + j] = 0.0 if isnan(value) else value
            for j in range(self.n_crosses):
                out[start + t, shift + self.dim + j] = (
                    out[start + t, shift + self.crosses[j, 0]]
                    * out[start + t, shift + self.crosses[j, 1]]
                )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def is_far(
        self, rows: cython.double[:, ::1], first: cython.Py_ssize_t, n: cython.Py_ssize_t
    ) -> cython.bint:
        """Return whether a value of n rows from `first` on is beyond its limits."""
        t: cython.Py_ssize_t
        j: cython.Py_ssize_t
        far: cython.bint = False
        if self.scales:
            for t in range(first, first + n):
                for j in range(self.dim):
                    far = far or rows[t, j] < self.low[j] or rows[t, j] > self.high[j]
        return far

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def see(
        self, rows: cython.double[:, ::1], first: cython.Py_ssize_t, n: cython.Py_ssize_t
    ) -> cython.void:
        """Add n rows from `first` on, with NaN where an entry is missing."""
        if self.samples:
            sample(self.sample_values, self.sample_seen, self.sample_stride, rows, first, n)
        if not self.watches:
            return
        self.sums.add(rows, first, n)
        self.seen = self.sums.most()
        if self.fill == PREDICT and (
            self.sums.has_new or self.seen >= (1.0 + GROWTH) * self.snapshot.most()
        ):
            self.snapshot.copy_from(self.sums)
            self.sums.has_new = False
            self.predictor.clear()
