"""Sums over pairs of entries that are seen together, and predictions of missing entries."""

from __future__ import annotations

import cython
import numpy as np
from cython.cimports.libc.math import isnan, sqrt

from keyhole.core.kernels.types import Floats

INFINITY = cython.declare(cython.double, float("inf"))


@cython.final
@cython.cclass
class Sums:
    """Sums over pairs of entries, from which predictions are computed.

    Parameters
    ----------
    pairs : array of shape (d, d)
        Number of rows that have both entries.
    total : array of shape (d, d)
        Sum of entry j over the rows that have j and k.
    product : array of shape (d, d)
        Sum of the products of both entries.
    origin : array of shape (d,)
        First value that was seen of each entry. Sums are of differences from it, as sums of values
        far from zero would cancel.
    """

    dim: cython.Py_ssize_t
    pairs: cython.double[:, ::1]
    total: cython.double[:, ::1]
    product: cython.double[:, ::1]
    origin: cython.double[::1]
    # Of the row that is added: 1 where an entry is seen, else 0; and its values from their origins.
    present: cython.double[::1]
    shift: cython.double[::1]

    def __init__(self, pairs: Floats, total: Floats, product: Floats, origin: Floats) -> None:
        self.dim = len(origin)
        self.pairs, self.total, self.product, self.origin = pairs, total, product, origin
        self.present, self.shift = np.empty((2, self.dim))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add(self, rows: cython.double[:, ::1], t: cython.Py_ssize_t) -> cython.void:
        """Add row t to the sums."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        for j in range(self.dim):
            self.present[j] = self.shift[j] = 0.0
            if not isnan(rows[t, j]):
                if self.pairs[j, j] == 0.0:
                    self.origin[j] = rows[t, j]
                self.present[j], self.shift[j] = 1.0, rows[t, j] - self.origin[j]
        for j in range(self.dim):
            if self.present[j] > 0.0:
                for k in range(self.dim):
                    self.pairs[j, k] += self.present[k]
                    self.total[j, k] += self.present[k] * self.shift[j]
                    self.product[j, k] += self.shift[j] * self.shift[k]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def covariance(self, j: cython.Py_ssize_t, k: cython.Py_ssize_t) -> cython.double:
        """Return the covariance of two entries over the rows with both; 0 if fewer than two."""
        n = self.pairs[j, k]
        if n < 2.0:
            return 0.0
        return (self.product[j, k] - self.total[j, k] * self.total[k, j] / n) / n


@cython.final
@cython.cclass
class Filling:
    """Predictions of missing entries from sums, and their workspace.

    Parameters
    ----------
    sums : Sums
        Sums from which predictions are computed.
    n : int
        Largest number of rows that are filled at a time.
    """

    sums: Sums
    n_seen: cython.Py_ssize_t
    seen: cython.longlong[::1]  # (d,)  indices of the entries that are seen, and vary
    same: cython.longlong[::1]  # (n,)  rows with the same missing entries
    done: cython.longlong[::1]  # (n,)
    scale: cython.double[::1]  # (d,)  standard deviations of the seen entries
    gain: cython.double[::1]  # (d,)
    spare: cython.double[::1]  # (d,)
    correlation: cython.double[:, ::1]  # (d, d)  of the seen entries
    root: cython.double[:, ::1]  # (d, d)  its Cholesky factor, with a ridge, or eigenvectors
    weights: cython.double[::1]  # (d,)  eigenvalues, with eigenvectors in `root`
    is_positive: cython.bint  # whether `root` is the Cholesky factor

    def __init__(self, sums: Sums, n: int) -> None:
        dim = sums.dim
        self.sums, self.n_seen, self.is_positive = sums, 0, True
        self.seen, (self.same, self.done) = np.empty(dim, np.int64), np.empty((2, n), np.int64)
        self.scale, self.gain, self.spare, self.weights = np.empty((4, dim))
        self.correlation, self.root = np.empty((2, dim, dim))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def fill(
        self, rows: cython.double[:, ::1], first: cython.Py_ssize_t, n: cython.Py_ssize_t
    ) -> cython.int:
        """Fill n rows from `first` on, with one decomposition per pattern of missing entries."""
        t: cython.Py_ssize_t
        other: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for t in range(n):
            self.done[t] = False
        for t in range(n):
            if self.done[t]:
                continue
            n_same: cython.Py_ssize_t = 0
            for other in range(t, n):
                alike: cython.bint = not self.done[other]
                for j in range(self.sums.dim):
                    if isnan(rows[first + t, j]) != isnan(rows[first + other, j]):
                        alike = False
                if alike:
                    self.same[n_same] = first + other
                    n_same += 1
                    self.done[other] = True
            self.fill_pattern(rows, n_same)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def fill_pattern(self, rows: cython.double[:, ::1], n_same: cython.Py_ssize_t) -> cython.int:
        """Fill the first `n_same` rows of `same`, which have the same missing entries.

        Predictions are mean_m + C_ms (C_ss + ridge I)^-1 z_s in standard units, with the means,
        standard deviations and correlations C of the sums. A prediction that would explain more
        than all of an entry's variance is scaled down to that. An entry that was never seen stays
        NaN, and an entry that never varied is not used.
        """
        n_missing: cython.Py_ssize_t = 0
        j: cython.Py_ssize_t
        self.n_seen = 0
        for j in range(self.sums.dim):
            if isnan(rows[self.same[0], j]):
                n_missing += 1
            elif self.sums.covariance(j, j) > 0.0:
                self.seen[self.n_seen] = j
                self.scale[self.n_seen] = sqrt(self.sums.covariance(j, j))
                self.n_seen += 1
        if n_missing == 0:
            return 0
        self.correlate()
        for j in range(self.sums.dim):
            if isnan(rows[self.same[0], j]) and self.sums.pairs[j, j] > 0.0:
                self.predict(j)
                self.write(rows, n_same, j)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def correlate(self) -> cython.int:
        """Decompose the correlations of the seen entries, with their ridge.

        For n complete rows the ridge is 1/n: a prior of uncorrelated entries with the weight of one
        row. Correlations of pairs that were seen in different rows need not be consistent: C may
        then have negative eigenvalues, and all eigenvalues are noise up to about
        sqrt(seen entries / rows of a pair), which is added in proportion to the rows with missing
        entries.
        """
        n: cython.Py_ssize_t = self.n_seen
        a: cython.Py_ssize_t
        b: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        most: cython.double = 1.0
        fewest: cython.double = INFINITY
        for a in range(n):
            i = self.seen[a]
            for b in range(n):
                j = self.seen[b]
                self.correlation[a, b] = self.sums.covariance(i, j) / (
                    self.scale[a] * self.scale[b]
                )
                most, fewest = max(most, self.sums.pairs[i, j]), min(fewest, self.sums.pairs[i, j])
        fewest = max(fewest, 1.0)
        ridge: cython.double = 1.0 / most + (1.0 - fewest / most) * sqrt(n / fewest)
        # Most often no eigenvalue is negative; a factorization shows this at a tenth of the cost of
        # the eigenvalues.
        self.is_positive = self.factorize(0.0)
        if self.is_positive:
            self.factorize(ridge)
        else:
            with cython.gil:
                self.diagonalize(ridge)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def factorize(self, ridge: cython.double) -> cython.bint:
        """Put the Cholesky factor of C + ridge I into `root`; return False if there is none."""
        rest: cython.double
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        for i in range(self.n_seen):
            for j in range(i):
                rest = self.correlation[i, j]
                for k in range(j):
                    rest -= self.root[i, k] * self.root[j, k]
                self.root[i, j] = rest / self.root[j, j]
            rest = self.correlation[i, i] + ridge
            for k in range(i):
                rest -= self.root[i, k] * self.root[i, k]
            if not rest > 0.0:
                return False
            self.root[i, i] = sqrt(rest)
        return True

    def diagonalize(self, ridge: float) -> None:
        """Put the eigenvectors of C into `root`, and its eigenvalues with the ridge into `weights`.

        Negative eigenvalues are set to zero, and all are raised by twice the size of the lowest
        one: they may be wrong by that much.
        """
        n = self.n_seen
        values, vectors = np.linalg.eigh(np.asarray(self.correlation)[:n, :n])
        np.asarray(self.root)[:n, :n] = vectors
        np.asarray(self.weights)[:n] = (
            np.maximum(values, 0.0) + ridge + 2.0 * max(-float(values[0]), 0.0)
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def predict(self, j: cython.Py_ssize_t) -> cython.void:
        """Write the weight of each seen entry in the prediction of entry j into `gain`."""
        own: cython.double = sqrt(max(self.sums.covariance(j, j), 0.0))
        a: cython.Py_ssize_t
        for a in range(self.n_seen):
            self.gain[a] = 0.0
            if own > 0.0:
                self.gain[a] = self.sums.covariance(j, self.seen[a]) / (own * self.scale[a])
        explained: cython.double = self.solve() if self.is_positive else self.solve_by_vectors()
        # No entry can be explained by more than all of its variance.
        factor: cython.double = own / max(explained, 1.0)
        for a in range(self.n_seen):
            self.gain[a] *= factor / self.scale[a]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def solve(self) -> cython.double:
        """Replace the gain g by A^-1 g, where A = root root'; return g' A^-1 g."""
        size: cython.double = 0.0
        rest: cython.double
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for i in range(self.n_seen):
            rest = self.gain[i]
            for j in range(i):
                rest -= self.root[i, j] * self.gain[j]
            self.gain[i] = rest / self.root[i, i]
            size += self.gain[i] * self.gain[i]
        for i in range(self.n_seen - 1, -1, -1):
            self.gain[i] /= self.root[i, i]
            for j in range(i):
                self.gain[j] -= self.gain[i] * self.root[i, j]
        return size

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def solve_by_vectors(self) -> cython.double:
        """Replace the gain g by A^-1 g, where A = V diag(weights) V'; return g' A^-1 g."""
        size: cython.double = 0.0
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for j in range(self.n_seen):
            self.spare[j] = 0.0
        for i in range(self.n_seen):
            for j in range(self.n_seen):
                self.spare[j] += self.gain[i] * self.root[i, j]
        for j in range(self.n_seen):
            size += self.spare[j] * self.spare[j] / self.weights[j]
            self.spare[j] /= self.weights[j]
        for i in range(self.n_seen):
            self.gain[i] = 0.0
            for j in range(self.n_seen):
                self.gain[i] += self.root[i, j] * self.spare[j]
        return size

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def write(
        self, rows: cython.double[:, ::1], n_same: cython.Py_ssize_t, j: cython.Py_ssize_t
    ) -> cython.void:
        """Write the predictions of entry j."""
        s: cython.Py_ssize_t
        a: cython.Py_ssize_t
        t: cython.Py_ssize_t
        i: cython.Py_ssize_t
        for s in range(n_same):
            t = self.same[s]
            guess: cython.double = (
                self.sums.origin[j] + self.sums.total[j, j] / self.sums.pairs[j, j]
            )
            for a in range(self.n_seen):
                i = self.seen[a]
                mean: cython.double = (
                    self.sums.origin[i] + self.sums.total[i, i] / self.sums.pairs[i, i]
                )
                guess += self.gain[a] * (rows[t, i] - mean)
            rows[t, j] = guess


def add_rows(pairs: Floats, total: Floats, product: Floats, origin: Floats, rows: Floats) -> None:
    """Add rows to the sums.

    Parameters
    ----------
    pairs, total, product, origin : array
        The sums; see `Sums`.
    rows : array of shape (n, d)
        Rows to add, NaN where an entry is missing.
    """
    sums: Sums = Sums(pairs, total, product, origin)
    view: cython.double[:, ::1] = np.array(rows, order="C")  # a read-only array has no such view
    t: cython.Py_ssize_t
    with cython.nogil:
        for t in range(view.shape[0]):
            sums.add(view, t)


def fill_rows(pairs: Floats, total: Floats, product: Floats, origin: Floats, rows: Floats) -> None:
    """Replace NaN by the best linear predictions from the seen entries of each row.

    Parameters
    ----------
    pairs, total, product, origin : array
        The sums; see `Sums`.
    rows : array of shape (n, d)
        Rows to fill, in place.
    """
    filling: Filling = Filling(Sums(pairs, total, product, origin), len(rows))
    view: cython.double[:, ::1] = rows
    with cython.nogil:
        filling.fill(view, 0, view.shape[0])


def fill_rounds(
    pairs: Floats, total: Floats, product: Floats, origin: Floats, rounds: Floats
) -> None:
    """Fill rounds one by one, each from all rows of the rounds before it, and add them to the sums.

    Parameters
    ----------
    pairs, total, product, origin : array
        The sums; see `Sums`.
    rounds : array of shape (T, n, d)
        Rounds to fill, in place.
    """
    sums: Sums = Sums(pairs, total, product, origin)
    n: cython.Py_ssize_t = rounds.shape[1]
    filling: Filling = Filling(sums, n)
    rows: cython.double[:, ::1] = rounds.reshape(-1, rounds.shape[2])
    given: cython.double[:, ::1] = rounds.reshape(-1, rounds.shape[2]).copy()
    n_rounds: cython.Py_ssize_t = rounds.shape[0]
    r: cython.Py_ssize_t
    t: cython.Py_ssize_t
    with cython.nogil:
        for r in range(n_rounds):
            filling.fill(rows, r * n, n)
            for t in range(r * n, r * n + n):
                sums.add(given, t)


def sample_rows(
    values: cython.double[:, ::1],
    seen: cython.longlong[::1],
    stride: cython.longlong[::1],
    rows: Floats,
) -> None:
    """Keep every stride-th value of each entry, skipping NaN.

    When the sample is full, every second value is dropped and the stride doubles: the sample is
    spread evenly over all values.

    Parameters
    ----------
    values : array of shape (size, d)
        The sample; size is even.
    seen, stride : array of shape (d,)
        Number of values of each entry so far, and the stride of each.
    rows : array of shape (n, d)
        Rows to add, NaN where an entry is missing.
    """
    given: cython.double[:, ::1] = np.array(rows, order="C")
    size: cython.Py_ssize_t = values.shape[0]
    place: cython.Py_ssize_t
    t: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for t in range(given.shape[0]):
        for j in range(given.shape[1]):
            if isnan(given[t, j]):
                continue
            if seen[j] % stride[j] == 0:
                place = seen[j] // stride[j]
                if place == size:
                    for k in range(size // 2):
                        values[k, j] = values[2 * k, j]
                    stride[j] *= 2
                    place = size // 2
                values[place, j] = given[t, j]
            seen[j] += 1
