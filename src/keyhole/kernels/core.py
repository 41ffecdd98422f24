"""`Core`: the arrays of a posterior, and learning one reward at a time (eq:Bi, eq:etahat).

The sums grow, and the caches follow by a rank-one step. Of a symmetric matrix one triangle is read
or written: that is half the memory to hold and to move, and symmetric to the bit whatever rounding
does. Loops are written out rather than handed to BLAS: at these sizes a call costs more than the
work, and the result does not depend on how many threads BLAS has.

With large matrices a rank-one step waits for memory, which it reads and writes for one
multiply-add an entry. There steps wait, and are taken together in one pass. Until then P is what
the matrix says, less the vectors that wait.
"""

from __future__ import annotations

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt

from keyhole.kernels.types import Bools, Floats, Ints, State

EPSILON = cython.declare(cython.double, 2.0**-52)
# A rank-one step with q = y'Py loses about log10(1 + q) digits of the covariance in the direction
# of y, and every step rounds once more. The caches are computed anew from the sums after this many
# steps, or as soon as the q's since the last time add up to this (9 of 16 digits are then left).
REFRESH_STEPS = cython.declare(cython.double, 4096.0)
REFRESH_LOSS = cython.declare(cython.double, 1e7)
# Where the terms of y'Py cancel so far that rounding may change 1 + q by this part of it, as with
# collinear features of a large scale, a step cannot be trusted, and the sums are asked at once.
CANCELLATION = cython.declare(cython.double, 1e-6)
NAN = cython.declare(cython.double, float("nan"))
# Steps that are taken in one pass, and the dimension from which on that is faster.
TOGETHER, LARGE = 16, 40


@cython.final
@cython.cclass
class Core:
    """What is known of k parameters of dimension d, and the room that is needed to learn more.

    An observation is d numbers of a flat array, from a place `at` on. Two products P y can be kept,
    in a `slot` each. It is for one thread at a time.

    Parameters
    ----------
    state : State
        The arrays, which are read and written in place.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.size, self.dim = state.mean.shape
        self.prior, self.matrices, self.moment = state.prior, state.matrices, state.moment
        self.n, self.squares, self.mean = state.n, state.squares, state.mean
        self.residual, self.penalty = state.residual, state.penalty
        self.trace, self.bound, self.staleness = state.trace, state.bound, state.staleness
        # Counts what is done: a product that is kept is worth nothing when more has been done.
        self.stamp = 0
        self.products = np.empty((2, self.dim))
        self.root = np.empty((self.dim, self.dim))
        self.defers = self.dim >= LARGE
        self.late = np.zeros(self.size)
        shape = (self.size if self.defers else 0, TOGETHER, self.dim)
        self.late_y, self.late_w = np.empty(shape), np.empty(shape)

    # -- from Python ------------------------------------------------------------------------------

    def forget(self) -> None:
        """Know nothing but the prior."""
        dim: cython.Py_ssize_t = self.dim
        with cython.nogil:
            self.stamp += 1
            for i in range(self.size):
                prior: cython.double = self.prior[i]
                for r in range(dim + 1):
                    for j in range(dim):
                        self.matrices[i, r, j] = 0.0
                for j in range(dim):
                    self.matrices[i, j, j] = prior
                    self.matrices[i, j + 1, j] = 1.0 / prior
                    self.moment[i, j] = 0.0
                    self.mean[i, j] = 0.0
                self.n[i] = self.squares[i] = self.residual[i] = self.penalty[i] = 0.0
                self.trace[i], self.bound[i] = dim / prior, 1.0 / prior
                self.staleness[i] = self.late[i] = 0.0

    def learn(self, owner: Ints, y: Floats, rewards: Floats, often: Bools) -> None:
        """Learn rewards; row t of y, (n, d), goes to parameter owner[t].

        Parameters that come `often`, (k,), more than d times, say, have their sums added up and
        their caches computed anew, which is cheaper then than a step each.
        """
        owners: cython.longlong[::1] = owner
        rows: cython.double[::1] = y.reshape(-1)
        given: cython.double[::1] = rewards
        summed: cython.uchar[::1] = often.view(np.uint8)
        with cython.nogil:
            for t in range(owners.shape[0]):
                i: cython.Py_ssize_t = owners[t]
                if summed[i]:
                    self.add(i, rows, t * self.dim, given[t])
                else:
                    self.absorb(i, rows, t * self.dim, given[t], 0, False)
            for i in range(self.size):
                if summed[i]:
                    self.settle(i)

    def predict(self, owner: Ints, y: Floats, mean: Floats, width: Floats) -> None:
        """Fill in mean and width of each arm at each row of y, (n, 1 or n_arms, d)."""
        owners: cython.longlong[::1] = owner
        rows: cython.double[::1] = y.reshape(-1)
        means: cython.double[:, ::1] = mean
        widths: cython.double[:, ::1] = width
        per_round: cython.Py_ssize_t = y.shape[1]
        n: cython.Py_ssize_t = y.shape[0]
        with cython.nogil:
            self.stamp += 1
            for k in range(owners.shape[0]):
                for t in range(n):
                    at: cython.Py_ssize_t = t * per_round
                    if per_round > 1:
                        at += k
                    at *= self.dim
                    value: cython.double = 0.0
                    for j in range(self.dim):
                        value += rows[at + j] * self.mean[owners[k], j]
                    means[t, k] = value
                    widths[t, k] = sqrt(self.weigh(owners[k], rows, at, 0))

    def tell(self) -> None:
        """Tell the matrices all that waits; whoever asks for it may change them."""
        with cython.nogil:
            self.stamp += 1
            for i in range(self.size):
                self.catch_up(i)

    def refresh(self, parameter: int) -> None:
        """Compute the covariance of a parameter, and what follows from it, anew from the sums."""
        i: cython.Py_ssize_t = parameter
        with cython.nogil:
            self.catch_up(i)
            self.renew(i)

    def settle_sums(self, parameter: int) -> None:
        """`refresh`, and the residual sum of squares, after sums were changed from outside."""
        i: cython.Py_ssize_t = parameter
        with cython.nogil:
            self.settle(i)

    def product(self, parameter: int, y: Floats) -> tuple[float, Floats]:
        """Return y'Py and P y of a parameter."""
        i: cython.Py_ssize_t = parameter
        row: cython.double[::1] = y
        squared = self.weigh(i, row, 0, 0)
        self.stamp += 1
        return squared, np.array(self.products[0])

    # -- products ---------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def weigh(
        self,
        i: cython.Py_ssize_t,
        y: cython.double[::1],
        at: cython.Py_ssize_t,
        slot: cython.Py_ssize_t,
    ) -> cython.double:
        """Put P y of parameter i into a slot, and return y'Py, which is never below zero."""
        dim: cython.Py_ssize_t = self.dim
        total: cython.double = 0.0
        share: cython.double
        if self.n[i] == self.late[i]:
            # Its matrix has been told nothing, and need not be read.
            share = 1.0 / self.prior[i]
            for j in range(dim):
                self.products[slot, j] = share * y[at + j]
        else:
            self.multiply(i, y, at, slot)
        for m in range(cython.cast(cython.Py_ssize_t, self.late[i])):
            share = 0.0
            for j in range(dim):
                share += self.late_w[i, m, j] * y[at + j]
            for j in range(dim):
                self.products[slot, j] -= share * self.late_w[i, m, j]
        for j in range(dim):
            total += y[at + j] * self.products[slot, j]
        return 0.0 if total < 0.0 else total

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def multiply(
        self,
        i: cython.Py_ssize_t,
        y: cython.double[::1],
        at: cython.Py_ssize_t,
        slot: cython.Py_ssize_t,
    ) -> cython.void:
        """Multiply y by the lower triangle of P, four rows at a time.

        What is loaded once serves all four, and an entry serves its mirror image too.
        """
        dim: cython.Py_ssize_t = self.dim
        whole: cython.Py_ssize_t = dim - dim % 4
        a: cython.double
        b: cython.double
        c: cython.double
        d: cython.double
        now: cython.double
        for r in range(0, whole, 4):
            y0: cython.double = y[at + r]
            y1: cython.double = y[at + r + 1]
            y2: cython.double = y[at + r + 2]
            y3: cython.double = y[at + r + 3]
            a = b = c = d = 0.0
            for j in range(r):
                now = y[at + j]
                a += self.matrices[i, r + 1, j] * now
                b += self.matrices[i, r + 2, j] * now
                c += self.matrices[i, r + 3, j] * now
                d += self.matrices[i, r + 4, j] * now
                self.products[slot, j] += (
                    self.matrices[i, r + 1, j] * y0
                    + self.matrices[i, r + 2, j] * y1
                    + self.matrices[i, r + 3, j] * y2
                    + self.matrices[i, r + 4, j] * y3
                )
            # On the diagonal, an entry below it serves its mirror image, and one on it does not.
            p10: cython.double = self.matrices[i, r + 2, r]
            p20: cython.double = self.matrices[i, r + 3, r]
            p21: cython.double = self.matrices[i, r + 3, r + 1]
            p30: cython.double = self.matrices[i, r + 4, r]
            p31: cython.double = self.matrices[i, r + 4, r + 1]
            p32: cython.double = self.matrices[i, r + 4, r + 2]
            a += self.matrices[i, r + 1, r] * y0 + p10 * y1 + p20 * y2 + p30 * y3
            b += p10 * y0 + self.matrices[i, r + 2, r + 1] * y1 + p21 * y2 + p31 * y3
            c += p20 * y0 + p21 * y1 + self.matrices[i, r + 3, r + 2] * y2 + p32 * y3
            d += p30 * y0 + p31 * y1 + p32 * y2 + self.matrices[i, r + 4, r + 3] * y3
            self.products[slot, r] = a
            self.products[slot, r + 1] = b
            self.products[slot, r + 2] = c
            self.products[slot, r + 3] = d
        for r in range(whole, dim):
            now = y[at + r]
            a = self.matrices[i, r + 1, r] * now
            for j in range(r):
                a += self.matrices[i, r + 1, j] * y[at + j]
            for j in range(r):
                self.products[slot, j] += self.matrices[i, r + 1, j] * now
            self.products[slot, r] = a

    # -- learning ---------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def absorb(
        self,
        i: cython.Py_ssize_t,
        y: cython.double[::1],
        at: cython.Py_ssize_t,
        reward: cython.double,
        slot: cython.Py_ssize_t,
        known: cython.bint,
    ) -> cython.void:
        """Learn that parameter i gave `reward` at y. If `known`, P y is in the slot already."""
        self.stamp += 1
        if not known:
            self.weigh(i, y, at, slot)
        share: cython.double = self.step(i, y, at, reward, slot)
        if self.defers:
            self.wait(i, y, at, slot, share)
        else:
            self.move_squares(i, y, at, slot, share)
        if share == 0.0:
            self.settle(i)
        elif self.staleness[i] >= 1.0:
            self.catch_up(i)
            self.renew(i)
        elif self.late[i] == self.late_y.shape[1] or (
            not self.defers and cython.cast(cython.Py_ssize_t, self.n[i]) % self.dim == 0
        ):
            # Once in so many steps the bound costs no more than a dot product each.
            self.catch_up(i)
            self.lower_bound(i)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def step(
        self,
        i: cython.Py_ssize_t,
        y: cython.double[::1],
        at: cython.Py_ssize_t,
        reward: cython.double,
        slot: cython.Py_ssize_t,
    ) -> cython.double:
        """Move all but the matrices of parameter i along, where the slot has w = P y.

        With q = y'w: P loses w w' / (1 + q), the mean gains w (r - y'mean) / (1 + q), and the
        residual sum of squares gains (r - y'mean)^2 / (1 + q). What comes back is 1 / (1 + q), or
        zero where rounding or overflow is too much for a step, and the sums must be asked.
        """
        dim: cython.Py_ssize_t = self.dim
        q: cython.double = 0.0
        value: cython.double = 0.0
        length: cython.double = 0.0
        lost: cython.double = 0.0
        for j in range(dim):
            q += y[at + j] * self.products[slot, j]
            value += y[at + j] * self.mean[i, j]
            length += y[at + j] * y[at + j]
            lost += self.products[slot, j] * self.products[slot, j]
        for j in range(dim):
            self.moment[i, j] += reward * y[at + j]
        self.n[i] += 1.0
        self.squares[i] += reward * reward
        if not q > 0.0:
            q = 0.0
        if self.cancels(i, y, at, length * self.bound[i], q):
            return 0.0

        share: cython.double = 1.0 / (1.0 + q)
        surprise: cython.double = (reward - value) * share
        squared: cython.double = 0.0
        for j in range(dim):
            moved: cython.double = self.mean[i, j] + surprise * self.products[slot, j]
            self.mean[i, j] = moved
            squared += moved * moved
        self.residual[i] += surprise * (reward - value)
        self.penalty[i] = self.prior[i] * squared
        self.trace[i] -= share * lost
        self.staleness[i] += 1.0 / REFRESH_STEPS + q * (1.0 / REFRESH_LOSS)
        return share

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def cancels(
        self,
        i: cython.Py_ssize_t,
        y: cython.double[::1],
        at: cython.Py_ssize_t,
        most: cython.double,
        q: cython.double,
    ) -> cython.bint:
        """Whether rounding may change 1 + y'Py too much; its terms add up to `most`, or to less.

        The diagonal of P, which tells, is far apart in memory, and seldom needed.
        """
        limit: cython.double = (CANCELLATION / EPSILON) * (1.0 + q)
        if most <= limit:
            return False
        self.catch_up(i)
        terms: cython.double = 0.0
        for j in range(self.dim):
            terms += y[at + j] * y[at + j] * self.matrices[i, j + 1, j]
        return terms > limit

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def move_squares(
        self,
        i: cython.Py_ssize_t,
        y: cython.double[::1],
        at: cython.Py_ssize_t,
        slot: cython.Py_ssize_t,
        share: cython.double,
    ) -> cython.void:
        """B += y y' and P -= share w w', of which each row of the matrices has a part."""
        dim: cython.Py_ssize_t = self.dim
        factor: cython.double
        for r in range(dim):
            factor = y[at + r]
            for j in range(r, dim):
                self.matrices[i, r, j] += factor * y[at + j]
            factor = -share * self.products[slot, r]
            for j in range(r + 1):
                self.matrices[i, r + 1, j] += factor * self.products[slot, j]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add(
        self,
        i: cython.Py_ssize_t,
        y: cython.double[::1],
        at: cython.Py_ssize_t,
        reward: cython.double,
    ) -> cython.void:
        """Add a reward to the sums of parameter i alone; `settle` is to follow."""
        for r in range(self.dim):
            factor: cython.double = y[at + r]
            self.moment[i, r] += reward * factor
            for j in range(r, self.dim):
                self.matrices[i, r, j] += factor * y[at + j]
        self.n[i] += 1.0
        self.squares[i] += reward * reward

    # -- steps that wait --------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def wait(
        self,
        i: cython.Py_ssize_t,
        y: cython.double[::1],
        at: cython.Py_ssize_t,
        slot: cython.Py_ssize_t,
        share: cython.double,
    ) -> cython.void:
        """Keep a step of the matrices for later: B gains the square of y, P loses that of w."""
        m: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.late[i])
        root: cython.double = sqrt(share)
        for j in range(self.dim):
            self.late_y[i, m, j] = y[at + j]
        for j in range(self.dim):
            self.late_w[i, m, j] = root * self.products[slot, j]
        self.late[i] += 1.0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def catch_up(self, i: cython.Py_ssize_t) -> cython.void:
        """Tell the matrices of parameter i what waits, if anything does: four steps in one pass."""
        n: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.late[i])
        dim: cython.Py_ssize_t = self.dim
        a: cython.double
        b: cython.double
        c: cython.double
        d: cython.double
        if n == 0:
            return
        self.stamp += 1
        self.late[i] = 0.0
        for m in range(n, (n + 3) // 4 * 4):  # a pass takes four
            for j in range(dim):
                self.late_y[i, m, j] = self.late_w[i, m, j] = 0.0
        for r in range(dim):
            for m in range(0, n, 4):
                a, b = self.late_y[i, m, r], self.late_y[i, m + 1, r]
                c, d = self.late_y[i, m + 2, r], self.late_y[i, m + 3, r]
                for j in range(r, dim):
                    self.matrices[i, r, j] += (
                        a * self.late_y[i, m, j]
                        + b * self.late_y[i, m + 1, j]
                        + c * self.late_y[i, m + 2, j]
                        + d * self.late_y[i, m + 3, j]
                    )
                a, b = self.late_w[i, m, r], self.late_w[i, m + 1, r]
                c, d = self.late_w[i, m + 2, r], self.late_w[i, m + 3, r]
                for j in range(r + 1):
                    self.matrices[i, r + 1, j] -= (
                        a * self.late_w[i, m, j]
                        + b * self.late_w[i, m + 1, j]
                        + c * self.late_w[i, m + 2, j]
                        + d * self.late_w[i, m + 3, j]
                    )

    # -- from the sums ----------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def settle(self, i: cython.Py_ssize_t) -> cython.void:
        """`renew`, and the residual sum of squares as well, after sums were added from outside.

        The difference loses digits where rewards are much larger than their noise, which the
        running sum of `step` does not: a scheduled renewal leaves that as it is.
        """
        self.catch_up(i)
        self.renew(i)
        difference: cython.double = self.squares[i]
        for j in range(self.dim):
            difference -= self.moment[i, j] * self.mean[i, j]
        self.residual[i] = max(difference, self.penalty[i])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def renew(self, i: cython.Py_ssize_t) -> cython.void:
        """Compute the covariance of parameter i, and what follows from it, anew from the sums."""
        dim: cython.Py_ssize_t = self.dim
        squared: cython.double = 0.0
        trace: cython.double = 0.0
        self.stamp += 1
        self.invert(i)
        for r in range(dim):
            self.mean[i, r] = self.matrices[i, r + 1, r] * self.moment[i, r]
            for j in range(r):
                self.mean[i, r] += self.matrices[i, r + 1, j] * self.moment[i, j]
            for j in range(r):
                self.mean[i, j] += self.matrices[i, r + 1, j] * self.moment[i, r]
            trace += self.matrices[i, r + 1, r]
        for j in range(dim):
            squared += self.mean[i, j] * self.mean[i, j]
        self.penalty[i], self.trace[i] = self.prior[i] * squared, trace
        self.bound[i] = trace
        self.lower_bound(i)
        self.staleness[i] = 0.0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def lower_bound(self, i: cython.Py_ssize_t) -> cython.void:
        """Take the trace or the largest absolute row sum of P, if less, for the bound.

        Both are at least the largest eigenvalue.
        """
        dim: cython.Py_ssize_t = self.dim
        largest: cython.double = 0.0
        for r in range(dim):
            total: cython.double = self.matrices[i, r + 1, r]
            for j in range(r):
                total += fabs(self.matrices[i, r + 1, j])
            for j in range(r):
                self.root[0, j] += fabs(self.matrices[i, r + 1, j])
            self.root[0, r] = total
        for r in range(dim):
            largest = max(largest, self.root[0, r])
        self.bound[i] = min(self.bound[i], min(self.trace[i], largest))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def invert(self, i: cython.Py_ssize_t) -> cython.void:
        """P = B^-1, or NaN if B is far from positive definite."""
        dim: cython.Py_ssize_t = self.dim
        factor: cython.double
        fill: cython.double = 0.0
        ridge: cython.double = 0.0
        while not self.factorize(i, ridge):
            # B is singular in float64. With d (d + 1) eps on the diagonal the factorisation
            # succeeds if B is a rounded positive matrix (Demmel; Higham, Accuracy and Stability,
            # 10.7). B is a sum of many such, each rounded again: a few times more may be needed,
            # and d is enough.
            ridge = max(4.0 * ridge, dim * (dim + 1.0) * EPSILON)
            if ridge > 4.0 * dim:
                fill = NAN
                break
        for r in range(dim):
            for j in range(r + 1):
                self.matrices[i, r + 1, j] = fill
        if fill != fill:
            return
        # The root is replaced by its inverse. Row r of that gathers -L_rm times row m; its own
        # entry m is still L_rm here.
        for r in range(dim):
            for m in range(r):
                factor = self.root[r, m]
                self.root[r, m] = 0.0
                for j in range(m + 1):
                    self.root[r, j] -= factor * self.root[m, j]
            factor = 1.0 / self.root[r, r]
            for j in range(r):
                self.root[r, j] *= factor
            self.root[r, r] = factor
        for m in range(dim):
            for r in range(m + 1):
                factor = self.root[m, r]
                for j in range(r + 1):
                    self.matrices[i, r + 1, j] += factor * self.root[m, j]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def factorize(self, i: cython.Py_ssize_t, ridge: cython.double) -> cython.bint:
        """Cholesky: root root' = B with its diagonal times 1 + ridge. False if it is not positive.

        Rounding in Cholesky follows the scale of each row, so features of very different units cost
        no digits: only the condition of the correlation-like matrix B_ij / sqrt(B_ii B_jj) does.
        """
        for r in range(self.dim):
            for j in range(r + 1):
                entry: cython.double = self.matrices[i, j, r]
                if j == r:
                    entry *= 1.0 + ridge
                for m in range(j):
                    entry -= self.root[r, m] * self.root[j, m]
                if j < r:
                    self.root[r, j] = entry / self.root[j, j]
                elif entry > 0.0:
                    self.root[r, r] = sqrt(entry)
                else:
                    return False
        return True
