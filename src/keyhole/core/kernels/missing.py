"""Sums over pairs of entries that are seen together, and predictions of missing entries.

A prediction is linear in the entries that are seen: which ones, and with which weights, depends on
the pattern of missing entries alone. The weights of a pattern are solved for once and kept.
"""

from __future__ import annotations

import cython
import numpy as np
from cython.cimports.libc.math import isnan, sqrt

from keyhole.core.kernels.types import Floats

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.pointers import row_of, start_of
    from cython.cimports.keyhole.core.kernels.triangles import Numbers
else:
    from keyhole.core.kernels.pointers import row_of, start_of
    from keyhole.core.kernels.types import Floats as Numbers

INFINITY = cython.declare(cython.double, float("inf"))
NAN = cython.declare(cython.double, float("nan"))
# An eigenvalue of correlations of this size is rounding.
ROUNDING = cython.declare(cython.double, 2.0**-40)
# No eigenvalue of correlations is this far below 0: some are not finite.
BEYOND = cython.declare(cython.double, 2.0**40)
# Rows that are added to the sums in one pass.
TOGETHER = cython.declare(cython.int, 4)
# Patterns whose weights are kept, at most, and the numbers that these weights may take.
PATTERNS, NUMBERS = 256, 2**20
# The hash of a pattern is FNV-1a's, of 64 bits, over one number per entry.
FNV_START = cython.declare(cython.ulonglong, 0xCBF29CE484222325)
FNV_PRIME = cython.declare(cython.ulonglong, 0x100000001B3)
BITS = cython.declare(cython.ulonglong, 2**64 - 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def alike(
    rows: cython.double[:, ::1], t: cython.Py_ssize_t, other: cython.Py_ssize_t
) -> cython.bint:
    """Return whether two rows have the same missing entries."""
    j: cython.Py_ssize_t
    for j in range(rows.shape[1]):  # noqa: SIM110 - there are no generators without the GIL
        if isnan(rows[t, j]) != isnan(rows[other, j]):
            return False
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_row(
    pairs: Numbers,
    total: Numbers,
    product: Numbers,
    present: Numbers,
    shift: Numbers,
    j: cython.Py_ssize_t,
    count: cython.double,
    dim: cython.Py_ssize_t,
) -> cython.void:
    """Add four rows to the sums of entry j with every other, which do not overlap in memory.

    Parameters
    ----------
    pairs, total, product : pointer to double
        Row j of the sums.
    present : pointer to double
        1 where an entry is seen, else 0.
    shift : pointer to double
        The four rows, one after the other, from their origins; 0 where there is none.
    j : int
        The entry.
    count : float
        How many of the four rows there are.
    dim : int
        Length of a row.
    """
    k: cython.Py_ssize_t
    a: cython.double = shift[j]
    b: cython.double = shift[dim + j]
    c: cython.double = shift[2 * dim + j]
    d: cython.double = shift[3 * dim + j]
    own: cython.double = a + b + c + d
    for k in range(dim):
        pairs[k] += count * present[k]
        total[k] += own * present[k]
        product[k] += (
            a * shift[k] + b * shift[dim + k] + c * shift[2 * dim + k] + d * shift[3 * dim + k]
        )


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

    def __init__(self, pairs: Floats, total: Floats, product: Floats, origin: Floats) -> None:
        self.dim = len(origin)
        self.pairs, self.total, self.product, self.origin = pairs, total, product, origin
        self.present, shift = np.empty(self.dim), np.empty((TOGETHER, self.dim))
        self.shift, self.flat = shift, shift.reshape(-1)
        self.has_new = False

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add(
        self, rows: cython.double[:, ::1], first: cython.Py_ssize_t, n: cython.Py_ssize_t
    ) -> cython.void:
        """Add n rows from `first` on."""
        t: cython.Py_ssize_t = first
        m: cython.Py_ssize_t
        while t < first + n:
            m = 1
            while m < TOGETHER and t + m < first + n and alike(rows, t, t + m):
                m += 1
            self.add_alike(rows, t, m)
            t += m

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add_alike(
        self, rows: cython.double[:, ::1], first: cython.Py_ssize_t, n: cython.Py_ssize_t
    ) -> cython.void:
        """Add up to four rows from `first` on, which have the same missing entries.

        Four at a time halve what one at a time take, as each sum is read and written once.
        """
        j: cython.Py_ssize_t
        s: cython.Py_ssize_t
        count: cython.double = n
        for j in range(self.dim):
            self.present[j] = 0.0 if isnan(rows[first, j]) else 1.0
            if self.present[j] > 0.0 and self.pairs[j, j] == 0.0:
                self.origin[j] = rows[first, j]
                self.has_new = True
        for s in range(TOGETHER):
            for j in range(self.dim):
                self.shift[s, j] = 0.0
                if s < n and self.present[j] > 0.0:
                    self.shift[s, j] = rows[first + s, j] - self.origin[j]
        for j in range(self.dim):
            if self.present[j] > 0.0:
                add_row(
                    row_of(self.pairs, j),
                    row_of(self.total, j),
                    row_of(self.product, j),
                    start_of(self.present),
                    start_of(self.flat),
                    j,
                    count,
                    self.dim,
                )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def covariance(self, j: cython.Py_ssize_t, k: cython.Py_ssize_t) -> cython.double:
        """Return the covariance of two entries over the rows with both; 0 if fewer than two."""
        n = self.pairs[j, k]
        if n < 2.0:
            return 0.0
        return (self.product[j, k] - self.total[j, k] * self.total[k, j] / n) / n

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def mean(self, j: cython.Py_ssize_t) -> cython.double:
        """Return the mean of an entry over the rows that have it; NaN if none has."""
        if self.pairs[j, j] == 0.0:
            return NAN
        return self.origin[j] + self.total[j, j] / self.pairs[j, j]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def most(self) -> cython.double:
        """Return how often the entry was seen that was seen most often."""
        j: cython.Py_ssize_t
        found: cython.double = 0.0
        for j in range(self.dim):
            found = max(found, self.pairs[j, j])
        return found

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def copy_from(self, other: Sums) -> cython.void:
        """Take over the sums of another."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        for j in range(self.dim):
            self.origin[j] = other.origin[j]
            for k in range(self.dim):
                self.pairs[j, k] = other.pairs[j, k]
                self.total[j, k] = other.total[j, k]
                self.product[j, k] = other.product[j, k]


@cython.final
@cython.cclass
class Weights:
    """Weights of predictions for one pattern of missing entries, and workspace for them.

    A prediction is mean_m + C_ms (C_ss + ridge I)^-1 z_s in standard units, with the means,
    standard deviations and correlations C of the sums. One that would explain more than all of an
    entry's variance is scaled down to that. An entry that never varied is not used.

    Parameters
    ----------
    sums : Sums
        Sums from which predictions are computed.
    """

    def __init__(self, sums: Sums) -> None:
        dim = sums.dim
        self.sums, self.n_seen = sums, 0
        self.seen = np.empty(dim, np.int64)
        self.scale, self.gain = np.empty((2, dim))
        self.correlation, self.root = np.empty((2, dim, dim))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def take(self, rows: cython.double[:, ::1], t: cython.Py_ssize_t) -> cython.void:
        """Factorize the correlations of the entries that are seen in row t."""
        j: cython.Py_ssize_t
        variance: cython.double
        self.n_seen = 0
        for j in range(self.sums.dim):
            if isnan(rows[t, j]):
                continue
            variance = self.sums.covariance(j, j)
            if variance > 0.0:
                self.seen[self.n_seen], self.scale[self.n_seen] = j, sqrt(variance)
                self.n_seen += 1
        self.correlate()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def correlate(self) -> cython.void:
        """Factorize the correlations of the seen entries, with their ridge.

        For n complete rows the ridge is 1/n: a prior of uncorrelated entries with the weight of one
        row. Correlations of pairs that were seen in different rows need not be consistent: C may
        then have negative eigenvalues, and all are raised by twice what makes them positive, as
        they may be wrong by that much. All eigenvalues are noise up to about
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
        if not self.factorize(0.0):
            ridge += 2.0 * self.lack()
        if not self.factorize(ridge):
            self.n_seen = 0  # not even numbers: predictions are means

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def lack(self) -> cython.double:
        """Return a power of two by which all eigenvalues must be raised to become positive.

        It is the smallest one, or that of rounding where C is singular: between the size of the
        lowest eigenvalue and twice that. Found by factorizations, each at a tenth of the cost of
        the eigenvalues.
        """
        shift: cython.double = ROUNDING
        while shift < BEYOND and not self.factorize(shift):
            shift *= 16.0
        while shift > ROUNDING and self.factorize(0.5 * shift):
            shift *= 0.5
        return shift

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
        explained: cython.double = self.solve()
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


@cython.final
@cython.cclass
class Predictor:
    """Predictions of missing entries from sums, with the weights of recent patterns kept.

    Parameters
    ----------
    sums : Sums
        Sums from which predictions are computed. When they change, `clear` must be called.
    """

    def __init__(self, sums: Sums) -> None:
        dim = max(sums.dim, 1)
        self.sums, self.weights = sums, Weights(sums)
        self.size = min(max(NUMBERS // dim**2, 4), PATTERNS)
        self.n_kept = self.next = 0
        self.hashes = np.zeros(self.size, np.uint64)
        self.masks = np.zeros((self.size, dim), np.uint8)
        # Memory that is not written to is not taken.
        self.gains = np.empty((self.size, dim, dim))
        self.row, self.means = np.zeros((2, dim))
        self.clear()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def clear(self) -> cython.void:
        """Drop all weights, since the sums have changed."""
        j: cython.Py_ssize_t
        self.n_kept = self.next = 0
        for j in range(self.sums.dim):
            self.means[j] = self.sums.mean(j)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def fill(
        self, rows: cython.double[:, ::1], first: cython.Py_ssize_t, n: cython.Py_ssize_t
    ) -> cython.void:
        """Replace NaN in n rows from `first` on; an entry that was never seen stays NaN."""
        t: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        guess: cython.double
        for t in range(first, first + n):
            slot = self.pattern(rows, t)
            if slot < 0:
                continue
            for i in range(self.sums.dim):
                # An entry that is seen for the first time has no mean yet, and no weight.
                away: cython.double = rows[t, i] - self.means[i]
                self.row[i] = 0.0 if isnan(away) else away
            for j in range(self.sums.dim):
                if self.masks[slot, j]:
                    guess = self.means[j]
                    for i in range(self.sums.dim):
                        guess += self.gains[slot, j, i] * self.row[i]
                    rows[t, j] = guess

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def pattern(self, rows: cython.double[:, ::1], t: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return the slot of the weights for row t, which are solved for if need be; or -1."""
        j: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        n_missing: cython.Py_ssize_t = 0
        code: cython.ulonglong = FNV_START
        for j in range(self.sums.dim):
            if isnan(rows[t, j]):
                n_missing += 1
                code = ((code ^ cython.cast(cython.ulonglong, j + 1)) * FNV_PRIME) & BITS
        if n_missing == 0:
            return -1
        for slot in range(self.n_kept):
            if self.hashes[slot] == code and self.fits(rows, t, slot):
                return slot
        slot = self.next
        self.next = (self.next + 1) % self.size
        self.n_kept = max(self.n_kept, slot + 1)
        self.hashes[slot] = code
        self.solve_pattern(rows, t, slot)
        return slot

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def fits(
        self, rows: cython.double[:, ::1], t: cython.Py_ssize_t, slot: cython.Py_ssize_t
    ) -> cython.bint:
        """Return whether the pattern of a slot is that of row t."""
        j: cython.Py_ssize_t
        for j in range(self.sums.dim):  # noqa: SIM110
            if isnan(rows[t, j]) != (self.masks[slot, j] != 0):
                return False
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def solve_pattern(
        self, rows: cython.double[:, ::1], t: cython.Py_ssize_t, slot: cython.Py_ssize_t
    ) -> cython.void:
        """Put the weights for the pattern of row t into a slot."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        a: cython.Py_ssize_t
        self.weights.take(rows, t)
        for j in range(self.sums.dim):
            self.masks[slot, j] = isnan(rows[t, j])
            if not self.masks[slot, j]:
                continue
            for i in range(self.sums.dim):
                self.gains[slot, j, i] = 0.0
            self.weights.predict(j)
            for a in range(self.weights.n_seen):
                self.gains[slot, j, self.weights.seen[a]] = self.weights.gain[a]


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
    with cython.nogil:
        sums.add(view, 0, view.shape[0])


def fill_rows(pairs: Floats, total: Floats, product: Floats, origin: Floats, rows: Floats) -> None:
    """Replace NaN by the best linear predictions from the seen entries of each row.

    Parameters
    ----------
    pairs, total, product, origin : array
        The sums; see `Sums`.
    rows : array of shape (n, d)
        Rows to fill, in place.
    """
    predictor: Predictor = Predictor(Sums(pairs, total, product, origin))
    view: cython.double[:, ::1] = rows
    with cython.nogil:
        predictor.fill(view, 0, view.shape[0])
