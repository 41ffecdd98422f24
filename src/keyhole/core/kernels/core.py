"""`Core`: the arrays of a posterior, and learning one reward at a time (eq:Bi, eq:etahat).

A reward is added to the sums, and the caches follow by a rank-one step. Of a symmetric matrix only
one triangle is read or written. That halves the memory, and keeps the matrix exactly symmetric.
Loops are used rather than BLAS: at these sizes a call costs more than the arithmetic, and the
result does not depend on the number of BLAS threads.

For large d a rank-one update is memory-bound. Up to 16 updates are buffered and applied in one
pass; until then P is the stored matrix less the sum of w w' over the pending updates. For a
parameter with few rewards the stored matrix is still that of the prior and is not read: choices
among 10,000 arms of dimension 50, with probabilities, are eight times as fast. With few arms the
gain is small (1.04 at 5x80, 1.08 at 10x200).
"""

from __future__ import annotations

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt

from keyhole.core.kernels.types import Bools, Floats, Ints, State, aligned_zeros

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.pointers import after, row_of, start_of
    from cython.cimports.keyhole.core.kernels.triangles import (
        add_square,
        add_squares,
        lower_form,
        lower_times,
        project_out,
    )
else:
    from keyhole.core.kernels.pointers import after, row_of, start_of
    from keyhole.core.kernels.triangles import (
        add_square,
        add_squares,
        lower_form,
        lower_times,
        project_out,
    )

EPSILON = cython.declare(cython.double, 2.0**-52)
# A rank-one step with q = y'Py loses about log10(1 + q) digits of the covariance in the direction
# of y, and every step rounds once more. The caches are recomputed from the sums after this many
# steps, or when the sum of q over the steps exceeds this loss (9 of 16 digits are then left).
REFRESH_STEPS = cython.declare(cython.double, 4096.0)
REFRESH_LOSS = cython.declare(cython.double, 1e7)
# If rounding may change 1 + q by this share of itself, because the terms of y'Py cancel (collinear
# features of a large scale), P is recomputed from the sums instead of by a step.
CANCELLATION = cython.declare(cython.double, 1e-6)
NAN = cython.declare(cython.double, float("nan"))
# Updates that are applied in one pass, and the dimension from which on that is faster.
TOGETHER, LARGE = 16, 40


@cython.final
@cython.cclass
class Core:
    """The posterior of k parameters of dimension d, and workspace for updates.

    Two products P y can be kept, each in its own `slot`. Not thread-safe.

    Parameters
    ----------
    state : State
        The arrays, which are changed in place.
    defers : bool, default True
        Buffer updates of large matrices. A read flushes them, which changes last digits of what is
        learned later: without it the sums follow from the rewards alone, to the bit.
    """

    def __init__(self, state: State, defers: cython.bint = True) -> None:
        k, d = state.mean.shape
        shapes = {"matrices": (k, d + 1, d), "moment": (k, d), "mean": (k, d)}
        for name, array in zip(state._fields, state, strict=True):
            if array.shape != shapes.get(name, (k,)):
                raise ValueError(f"{name} has shape {array.shape}, not {shapes.get(name, (k,))}")
        self.state = state
        self.size, self.dim = k, d
        self.prior, self.matrices, self.moment = state.prior, state.matrices, state.moment
        self.n, self.weight = state.n, state.weight
        self.squares, self.mean = state.squares, state.mean
        self.residual, self.penalty = state.residual, state.penalty
        self.trace, self.bound, self.staleness = state.trace, state.bound, state.staleness
        # Grows with every change: a stored product P y is valid only for the stamp it was made at.
        self.stamp = 0
        self.products = aligned_zeros((2, self.dim))
        self.root = np.empty((self.dim, self.dim))
        self.scaled = np.empty(self.dim)
        self.defers = defers and self.dim >= LARGE
        self.pending = np.zeros(self.size)
        shape = (self.size if self.defers else 0, TOGETHER, self.dim)
        self.pending_y, self.pending_w = aligned_zeros(shape), aligned_zeros(shape)

    # -- from Python ------------------------------------------------------------------------------

    def forget(self) -> None:
        """Reset to the prior."""
        dim: cython.Py_ssize_t = self.dim
        with cython.nogil:
            self.stamp += 1
            for i in range(self.size):
                self.drop_pending(i)
                prior: cython.double = self.prior[i]
                for r in range(dim + 1):
                    for j in range(dim):
                        self.matrices[i, r, j] = 0.0
                for j in range(dim):
                    self.matrices[i, j, j] = prior
                    self.matrices[i, j + 1, j] = 1.0 / prior
                    self.moment[i, j] = 0.0
                    self.mean[i, j] = 0.0
                self.n[i] = self.weight[i] = self.squares[i] = 0.0
                self.residual[i] = self.penalty[i] = 0.0
                self.trace[i], self.bound[i] = dim / prior, 1.0 / prior
                self.staleness[i] = 0.0

    def learn(
        self,
        parameter_of: Ints,
        y: Floats,
        rewards: Floats,
        often: Bools,
        weights: Floats | None = None,
    ) -> None:
        """Learn n rewards, each of one parameter.

        Parameters
        ----------
        parameter_of : ndarray of int of shape (n,)
            Index of the parameter of each reward.
        y : ndarray of shape (n, d)
            Observations.
        rewards : ndarray of shape (n,)
            Rewards.
        often : ndarray of bool of shape (k,)
            Parameters whose sums are added up before their caches are recomputed once. For
            max(d, 2) or more rewards this is cheaper than an update for each.
        weights : ndarray of shape (n,), optional
            Weight of each reward, above 0. By default 1.
        """
        weights = np.ones(rewards.shape) if weights is None else weights
        parameters: cython.longlong[::1] = parameter_of
        rows: cython.double[::1] = y.reshape(-1)
        given: cython.double[::1] = rewards
        counted: cython.double[::1] = weights
        summed: cython.uchar[::1] = often.view(np.uint8)
        if (
            y.shape != (parameter_of.size, self.dim)
            or rewards.shape != parameter_of.shape
            or weights.shape != parameter_of.shape
            or often.shape != (self.size,)
        ):
            raise ValueError(
                f"shapes of parameter_of {parameter_of.shape}, y {y.shape}, rewards "
                f"{rewards.shape}, weights {weights.shape} and often {often.shape} must be (n,), "
                f"(n, {self.dim}), (n,), (n,) and ({self.size},)"
            )
        self.check(parameter_of)
        start: cython.p_double = start_of(rows)
        with cython.nogil:
            for t in range(parameters.shape[0]):
                i: cython.Py_ssize_t = parameters[t]
                if summed[i]:
                    self.add(i, after(start, t * self.dim), given[t], counted[t])
                else:
                    self.update_weighted(i, after(start, t * self.dim), given[t], counted[t])
            for i in range(self.size):
                if summed[i]:
                    self.recompute_all(i)

    def predict(self, parameter_of: Ints, y: Floats, mean: Floats, width: Floats) -> None:
        """Compute mean and width of y'eta for each arm in each round.

        Parameters
        ----------
        parameter_of : ndarray of int of shape (n_arms,)
            Index of the parameter of each arm.
        y : ndarray of shape (n, 1, d) or (n, n_arms, d)
            One observation for all arms of a round, or one for each.
        mean, width : ndarray of shape (n, n_arms)
            Arrays for the results.
        """
        parameters: cython.longlong[::1] = parameter_of
        rows: cython.double[::1] = y.reshape(-1)
        means: cython.double[:, ::1] = mean
        widths: cython.double[:, ::1] = width
        per_round: cython.Py_ssize_t = y.shape[1]
        n: cython.Py_ssize_t = y.shape[0]
        if y.shape[1:] not in ((1, self.dim), (parameter_of.size, self.dim)):
            raise ValueError(
                f"y must have shape (n, 1, {self.dim}) or (n, {parameter_of.size}, {self.dim}), "
                f"got {y.shape}"
            )
        self.check(parameter_of)
        start: cython.p_double = start_of(rows)
        # No workspace is used: several threads may read one posterior. Holding the GIL keeps
        # `flush_all` out; callers keep `learn` out by a lock.
        for k in range(parameters.shape[0]):
            for t in range(n):
                at: cython.Py_ssize_t = t * per_round
                if per_round > 1:
                    at += k
                row: cython.p_double = after(start, at * self.dim)
                value: cython.double = 0.0
                for j in range(self.dim):
                    value += row[j] * self.mean[parameters[k], j]
                means[t, k] = value
                widths[t, k] = sqrt(self.quadratic_form_alone(parameters[k], row))

    def flush_all(self) -> None:
        """Apply all pending updates to the matrices, before they are read or changed elsewhere."""
        self.stamp += 1
        for i in range(self.size):
            self.flush(i)

    def check(self, parameter_of: Ints) -> None:
        """Raise IndexError for an index out of range, which compiled code would not detect."""
        if parameter_of.size and not (parameter_of.min() >= 0 and parameter_of.max() < self.size):
            low, high = parameter_of.min(), parameter_of.max()
            raise IndexError(f"parameters must be from 0 to {self.size - 1}, got {low} to {high}")

    def refresh(self, parameter: int) -> None:
        """Recompute covariance, mean and bounds of a parameter from the sums."""
        i: cython.Py_ssize_t = parameter
        self.check(np.array([parameter]))
        with cython.nogil:
            self.flush(i)
            self.recompute(i)

    def recompute_caches(self, parameter: int) -> None:
        """Recompute as `refresh` does, and the residual sum of squares, after sums were changed."""
        i: cython.Py_ssize_t = parameter
        self.check(np.array([parameter]))
        with cython.nogil:
            self.recompute_all(i)

    def product(self, parameter: int, y: Floats) -> tuple[float, Floats]:
        """Return y'Py and P y of a parameter.

        Parameters
        ----------
        parameter : int
            Index of the parameter.
        y : ndarray of shape (d,)
            Observation.
        """
        i: cython.Py_ssize_t = parameter
        self.check(np.array([parameter]))
        if y.shape != (self.dim,):
            raise ValueError(f"y must have shape ({self.dim},), got {y.shape}")
        row: cython.double[::1] = y
        squared = self.quadratic_form(i, start_of(row), 0)
        self.stamp += 1
        return squared, np.array(self.products[0])

    # -- products ---------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def quadratic_form(
        self, i: cython.Py_ssize_t, y: cython.p_double, slot: cython.Py_ssize_t
    ) -> cython.double:
        """Return y'Py of parameter i, at least 0, and keep P y.

        Parameters
        ----------
        i : int
            Index of the parameter.
        y : pointer to double
            Observation.
        slot : int
            Row of `products` for P y, 0 or 1.
        """
        out: cython.p_double = row_of(self.products, slot)
        total: cython.double = 0.0
        j: cython.Py_ssize_t
        if self.n[i] == self.pending[i]:
            # The stored matrix is still the prior's, and need not be read.
            share: cython.double = 1.0 / self.prior[i]
            for j in range(self.dim):
                out[j] = share * y[j]
        else:
            lower_times(self.covariance(i), y, out, self.dim)
        if self.pending[i] > 0.0:
            n: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.pending[i])
            project_out(out, self.pending_part(self.pending_w, i), y, n, self.dim)
        for j in range(self.dim):
            total += y[j] * out[j]
        return 0.0 if total < 0.0 else total

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def quadratic_form_alone(self, i: cython.Py_ssize_t, y: cython.p_double) -> cython.double:
        """Return y'Py as `quadratic_form` does, up to rounding, in less time and without P y.

        Parameters
        ----------
        i : int
            Index of the parameter.
        y : pointer to double
            Observation.
        """
        total: cython.double = 0.0
        share: cython.double
        j: cython.Py_ssize_t
        if self.n[i] == self.pending[i]:
            share = 1.0 / self.prior[i]
            for j in range(self.dim):
                total += y[j] * (share * y[j])
        else:
            total = lower_form(self.covariance(i), y, self.dim)
        for m in range(cython.cast(cython.Py_ssize_t, self.pending[i])):
            share = 0.0
            for j in range(self.dim):
                share += self.pending_w[i, m, j] * y[j]
            total -= share * share
        return 0.0 if total < 0.0 else total

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def covariance(self, i: cython.Py_ssize_t) -> cython.p_double:
        """Return the stored P of parameter i; only its lower triangle is valid."""
        if cython.compiled:
            return cython.address(self.matrices[i, 1, 0])
        return self.matrices[i, 1:].reshape(-1)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def precision(self, i: cython.Py_ssize_t) -> cython.p_double:
        """Return the stored B of parameter i; only its upper triangle is valid, P follows."""
        if cython.compiled:
            return cython.address(self.matrices[i, 0, 0])
        return self.matrices[i].reshape(-1)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def pending_part(
        self, buffer: cython.double[:, :, ::1], i: cython.Py_ssize_t
    ) -> cython.p_double:
        """Return the vectors of parameter i in a buffer of pending updates.

        Parameters
        ----------
        buffer : array of shape (k, TOGETHER, d)
            `pending_y` or `pending_w`.
        i : int
            Index of the parameter.
        """
        if cython.compiled:
            return cython.address(buffer[i, 0, 0])
        return buffer[i].reshape(-1)

    # -- learning ---------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def update(
        self,
        i: cython.Py_ssize_t,
        y: cython.p_double,
        reward: cython.double,
        slot: cython.Py_ssize_t,
        known: cython.bint,
    ) -> cython.void:
        """Learn one reward of parameter i.

        Parameters
        ----------
        i : int
            Index of the parameter.
        y : pointer to double
            Observation.
        reward : float
            Reward.
        slot : int
            Row of `products` for P y.
        known : bool
            Whether the slot already holds P y.
        """
        self.stamp += 1
        if not known:
            self.quadratic_form(i, y, slot)
        share: cython.double = self.step(i, y, reward, slot)
        if self.defers:
            self.defer(i, y, slot, share)
        else:
            add_square(self.precision(i), y, row_of(self.products, slot), share, self.dim)
        if share == 0.0:
            self.recompute_all(i)
        elif self.staleness[i] >= 1.0:
            self.flush(i)
            self.recompute(i)
        elif self.pending[i] == self.pending_y.shape[1] or (
            not self.defers and cython.cast(cython.Py_ssize_t, self.n[i]) % self.dim == 0
        ):
            # Once in d updates, or 16, the bound costs no more than a dot product each.
            self.flush(i)
            self.lower_bound(i)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def update_weighted(
        self,
        i: cython.Py_ssize_t,
        y: cython.p_double,
        reward: cython.double,
        weight: cython.double,
    ) -> cython.void:
        """Learn one reward of parameter i that counts `weight` times.

        Parameters
        ----------
        i : int
            Index of the parameter.
        y : pointer to double
            Observation.
        reward : float
            Reward.
        weight : float
            Its weight.
        """
        if weight == 1.0:
            self.update(i, y, reward, 0, False)
            return
        root: cython.double = sqrt(weight)
        self.update(i, self.scale_row(y, root), root * reward, 0, False)
        self.weight[i] += weight - 1.0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def scale_row(self, y: cython.p_double, root: cython.double) -> cython.p_double:
        """Return root y, in a workspace that the next call writes over.

        Parameters
        ----------
        y : pointer to double
            Observation.
        root : float
            Factor.
        """
        for j in range(self.dim):
            self.scaled[j] = root * y[j]
        return start_of(self.scaled)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def step(
        self,
        i: cython.Py_ssize_t,
        y: cython.p_double,
        reward: cython.double,
        slot: cython.Py_ssize_t,
    ) -> cython.double:
        """Update everything but the matrices of parameter i by a rank-one step.

        With w = P y and q = y'w: P loses w w' / (1 + q), the mean gains w (r - y'mean) / (1 + q),
        and the residual sum of squares gains (r - y'mean)^2 / (1 + q).

        Parameters
        ----------
        i : int
            Index of the parameter.
        y : pointer to double
            Observation.
        reward : float
            Reward r.
        slot : int
            Row of `products` that holds w.

        Returns
        -------
        float
            1 / (1 + q), or 0 if a step would lose too many digits and P must be recomputed.
        """
        dim: cython.Py_ssize_t = self.dim
        q: cython.double = 0.0
        value: cython.double = 0.0
        length: cython.double = 0.0
        lost: cython.double = 0.0
        for j in range(dim):
            q += y[j] * self.products[slot, j]
            value += y[j] * self.mean[i, j]
            length += y[j] * y[j]
            lost += self.products[slot, j] * self.products[slot, j]
        for j in range(dim):
            self.moment[i, j] += reward * y[j]
        self.n[i] += 1.0
        self.weight[i] += 1.0
        self.squares[i] += reward * reward
        if not q > 0.0:
            q = 0.0
        if self.cancels(i, y, length * self.bound[i], q):
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
        y: cython.p_double,
        max_terms: cython.double,
        q: cython.double,
    ) -> cython.bint:
        """Return whether cancellation in y'Py may change 1 + y'Py too much.

        The exact test reads the diagonal of P, which is spread over memory. The bound decides most
        cases without it.

        Parameters
        ----------
        i : int
            Index of the parameter.
        y : pointer to double
            Observation.
        max_terms : float
            Upper bound on the sum of y_j^2 P_jj.
        q : float
            y'Py.
        """
        limit: cython.double = (CANCELLATION / EPSILON) * (1.0 + q)
        if max_terms <= limit:
            return False
        self.flush(i)
        terms: cython.double = 0.0
        for j in range(self.dim):
            terms += y[j] * y[j] * self.matrices[i, j + 1, j]
        return terms > limit

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add(
        self,
        i: cython.Py_ssize_t,
        y: cython.p_double,
        reward: cython.double,
        weight: cython.double,
    ) -> cython.void:
        """Add a reward to the sums of parameter i; the caller must call `recompute_all` later.

        Parameters
        ----------
        i : int
            Index of the parameter.
        y : pointer to double
            Observation.
        reward : float
            Reward.
        weight : float
            Its weight.
        """
        root: cython.double = 1.0 if weight == 1.0 else sqrt(weight)
        row: cython.p_double = self.scale_row(y, root)
        given: cython.double = root * reward
        for r in range(self.dim):
            factor: cython.double = row[r]
            self.moment[i, r] += given * factor
            for j in range(r, self.dim):
                self.matrices[i, r, j] += factor * row[j]
        self.n[i] += 1.0
        self.weight[i] += weight
        self.squares[i] += given * given

    # -- pending updates --------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def defer(
        self,
        i: cython.Py_ssize_t,
        y: cython.p_double,
        slot: cython.Py_ssize_t,
        share: cython.double,
    ) -> cython.void:
        """Buffer an update of the matrices: B + y y' and P - share w w'.

        Parameters
        ----------
        i : int
            Index of the parameter.
        y : pointer to double
            Observation.
        slot : int
            Row of `products` that holds w = P y.
        share : float
            1 / (1 + y'w).
        """
        m: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.pending[i])
        root: cython.double = sqrt(share)
        for j in range(self.dim):
            self.pending_y[i, m, j] = y[j]
        for j in range(self.dim):
            self.pending_w[i, m, j] = root * self.products[slot, j]
        self.pending[i] += 1.0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def flush(self, i: cython.Py_ssize_t) -> cython.void:
        """Apply the pending updates of parameter i."""
        n: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.pending[i])
        if n == 0:
            return
        self.stamp += 1
        y: cython.p_double = self.pending_part(self.pending_y, i)
        w: cython.p_double = self.pending_part(self.pending_w, i)
        add_squares(self.precision(i), y, 1.0, n, self.dim, False)
        add_squares(self.covariance(i), w, -1.0, n, self.dim, True)
        self.drop_pending(i)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def drop_pending(self, i: cython.Py_ssize_t) -> cython.void:
        """Clear the pending updates of parameter i: `project_out` reads unused rows as zeros."""
        for m in range(cython.cast(cython.Py_ssize_t, self.pending[i])):
            for j in range(self.dim):
                self.pending_w[i, m, j] = 0.0
        self.pending[i] = 0.0

    # -- from the sums ----------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def recompute_all(self, i: cython.Py_ssize_t) -> cython.void:
        """Recompute as `recompute` does, and the residual sum of squares, after sums were changed.

        The residual is a difference, which loses digits if rewards are much larger than their
        noise. The running sum of `step` does not, so a scheduled `recompute` keeps it.
        """
        self.flush(i)
        self.recompute(i)
        difference: cython.double = self.squares[i]
        for j in range(self.dim):
            difference -= self.moment[i, j] * self.mean[i, j]
        self.residual[i] = max(difference, self.penalty[i])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def recompute(self, i: cython.Py_ssize_t) -> cython.void:
        """Recompute covariance, mean and bounds of parameter i from the sums."""
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
        """Lower the bound to the trace or the largest absolute row sum of P, if one is less.

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
        """Set P to B^-1, or to NaN if B is far from positive definite."""
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
        # The root L is replaced by its inverse, row by row: row r gathers -L_rm times row m.
        # Entry m of row r still is L_rm when it is read.
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
        """Compute the Cholesky factor of B with its diagonal times 1 + ridge.

        Rounding in Cholesky follows the scale of each row, so features of very different units cost
        no digits: only the condition of the correlation-like matrix B_ij / sqrt(B_ii B_jj) does.

        Parameters
        ----------
        i : int
            Index of the parameter.
        ridge : float
            Relative increase of the diagonal.

        Returns
        -------
        bool
            False if the matrix is not positive definite.
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
