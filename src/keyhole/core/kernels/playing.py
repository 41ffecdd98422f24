"""Play of a block of rounds: choose an arm, observe its reward, learn, and repeat."""

from __future__ import annotations

from typing import NamedTuple

import cython
import numpy as np
from cython.cimports.libc.math import sqrt

from keyhole.core.kernels.types import Floats, Ints

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.choosing import Chooser
    from cython.cimports.keyhole.core.kernels.pointers import after, start_of
    from cython.cimports.keyhole.core.kernels.probability import propensity_weight
else:
    from keyhole.core.kernels.choosing import Chooser
    from keyhole.core.kernels.pointers import after, start_of
    from keyhole.core.kernels.probability import propensity_weight


class Block(NamedTuple):
    """Data of T rounds and the random numbers of a policy in them."""

    observations: Floats  # (T, n_arms, d), or (T, 1, d) for a context that the arms share
    rewards: Floats  # (T, n_arms)
    z: Floats  # (T, n_arms)  standard normals
    uniforms: Floats  # (T, 2)  a coin and a tie-breaker


class Oracle(NamedTuple):
    """Oracle values of T rounds."""

    values: Floats  # (T, n_arms)  value of each arm to the best observer
    latent: Floats  # (T, n_arms)  value of each arm given the context
    labels: Ints  # (T,)  the correct arm, or (0,) where there is none
    eta: Floats  # (n_arms, d)


# This many first sums of a record are stored as they are, and not as shares of the rounds.
REGRETS = cython.declare(cython.int, 2)
NAN = cython.declare(cython.double, float("nan"))


class Record(NamedTuple):
    """Results of a policy: so far, and after the rounds of each checkpoint.

    The sums are regret, latent regret, the number of optimal choices, the number of correct
    choices, and the number of correct choices of the best observer.
    """

    checkpoints: Ints  # (C,)  numbers of rounds, increasing
    results: Floats  # (C, 5 + 2 n_arms)  sums, pulls, and |mean - eta| of each arm
    sums: Floats  # (5,)
    pulls: Floats  # (n_arms,)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def cost(best: cython.double, value: cython.double) -> cython.double:
    """Return best - value, at least 0.

    The bound is explicit because sums may be reordered: (sum + best) - value would be rounded, and
    regret could fall.

    Parameters
    ----------
    best, value : float
        The best value of a round, and that of the chosen arm.
    """
    missed: cython.double = best - value
    return 0.0 if missed < 0.0 else missed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def row_max(rows: cython.double[:, ::1], t: cython.Py_ssize_t) -> cython.double:
    """Return the largest number of a row without NaN. Four are compared at a time.

    Parameters
    ----------
    rows : array of shape (T, n)
        The rows.
    t : int
        Index of the row.
    """
    n: cython.Py_ssize_t = rows.shape[1]
    whole: cython.Py_ssize_t = n - n % 4
    a: cython.double = rows[t, 0]
    b: cython.double = a
    c: cython.double = a
    d: cython.double = a
    for k in range(0, whole, 4):
        a = rows[t, k] if rows[t, k] > a else a
        b = rows[t, k + 1] if rows[t, k + 1] > b else b
        c = rows[t, k + 2] if rows[t, k + 2] > c else c
        d = rows[t, k + 3] if rows[t, k + 3] > d else d
    for k in range(whole, n):
        a = rows[t, k] if rows[t, k] > a else a
    a = b if b > a else a
    c = d if d > c else c
    return c if c > a else a


@cython.final
@cython.cclass
class Table:
    """A block of rounds, the chosen arms, and the record of their regret.

    Parameters
    ----------
    block : Block
        The rounds.
    chosen : ndarray of int of shape (T,)
        Array for the indices of the chosen arms.
    oracle : Oracle, optional
        Oracle values, from which regret is computed.
    record : Record, optional
        Record that regret is added to.
    """

    y: cython.double[::1]
    rewards: cython.double[:, ::1]
    z: cython.double[::1]
    uniforms: cython.double[:, ::1]
    places: cython.longlong[::1]
    values: cython.double[:, ::1]
    latent: cython.double[:, ::1]
    labels: cython.longlong[::1]
    eta: cython.double[:, ::1]
    checkpoints: cython.longlong[::1]
    results: cython.double[:, ::1]
    sums: cython.double[::1]
    pulls: cython.double[::1]
    size: cython.Py_ssize_t  # of the observations of a round
    stride: cython.Py_ssize_t  # from one arm's observation to the next, or 0

    def __init__(
        self, block: Block, chosen: Ints, oracle: Oracle | None = None, record: Record | None = None
    ) -> None:
        rows, dim = block.observations.shape[1:]
        self.size, self.stride = rows * dim, dim if rows > 1 else 0
        self.y, self.z = block.observations.reshape(-1), block.z.reshape(-1)
        self.rewards, self.uniforms, self.places = block.rewards, block.uniforms, chosen
        if oracle is not None and record is not None:
            self.values, self.latent, self.labels = oracle.values, oracle.latent, oracle.labels
            self.eta, self.checkpoints, self.results = (
                oracle.eta,
                record.checkpoints,
                record.results,
            )
            self.sums, self.pulls = record.sums, record.pulls

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def play(self, chooser: Chooser, low: cython.Py_ssize_t, high: cython.Py_ssize_t) -> cython.int:
        """Play the rounds from `low` to below `high`, updating the posterior.

        Parameters
        ----------
        chooser : Chooser
            The policy and its posterior.
        low, high : int
            First round, and the one after the last.
        """
        y: cython.p_double = start_of(self.y)
        z: cython.p_double = start_of(self.z)
        for t in range(low, high):
            now: cython.p_double = after(y, t * self.size)
            k: cython.Py_ssize_t = chooser.choose(
                now,
                self.stride,
                after(z, t * chooser.n_arms),
                self.uniforms[t, 0],
                self.uniforms[t, 1],
            )
            self.places[t] = k
            if chooser.explorer.weighted:
                chooser.core.update_weighted(
                    chooser.parameter_of[k],
                    after(now, k * self.stride),
                    self.rewards[t, k],
                    propensity_weight(chooser.explorer.rate, chooser.n_arms, chooser.chance()),
                )
                continue
            chooser.core.update(
                chooser.parameter_of[k],
                after(now, k * self.stride),
                self.rewards[t, k],
                max(chooser.slot, 0),
                chooser.slot >= 0,
            )
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add_regret(self, low: cython.Py_ssize_t, high: cython.Py_ssize_t) -> cython.void:
        """Add the regret of the choices in the rounds from `low` to below `high` to the record.

        Parameters
        ----------
        low, high : int
            First round, and the one after the last.
        """
        regret: cython.double = self.sums[0]
        latent_regret: cython.double = self.sums[1]
        optimal: cython.double = self.sums[2]
        for t in range(low, high):
            k: cython.Py_ssize_t = self.places[t]
            best: cython.double = row_max(self.values, t)
            best_latent: cython.double = row_max(self.latent, t)
            unknown: cython.Py_ssize_t = 0
            for i in range(self.latent.shape[1]):
                unknown += self.latent[t, i] != self.latent[t, i]
            regret += cost(best, self.values[t, k])
            latent_regret += cost(best_latent, self.latent[t, k]) if unknown == 0 else NAN
            optimal += self.values[t, k] == best
            self.pulls[k] += 1.0
            if self.labels.shape[0] > 0:
                right: cython.Py_ssize_t = 0
                while self.values[t, right] < best:
                    right += 1
                self.sums[3] += k == self.labels[t]
                self.sums[4] += right == self.labels[t]
        self.sums[0], self.sums[1], self.sums[2] = regret, latent_regret, optimal

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def write_checkpoint(self, chooser: Chooser, c: cython.Py_ssize_t) -> cython.void:
        """Write the results of a policy at checkpoint c.

        Parameters
        ----------
        chooser : Chooser
            The policy and its posterior.
        c : int
            Index of the checkpoint.
        """
        n: cython.Py_ssize_t = self.sums.shape[0]
        for s in range(n):
            self.results[c, s] = self.sums[s] / (1.0 if s < REGRETS else self.checkpoints[c])
        for k in range(chooser.n_arms):
            self.results[c, n + k] = self.pulls[k]
            squared: cython.double = 0.0
            for j in range(chooser.core.dim):
                off: cython.double = chooser.core.mean[chooser.parameter_of[k], j] - self.eta[k, j]
                squared += off * off
            self.results[c, n + chooser.n_arms + k] = sqrt(squared)


def play(chooser: Chooser, block: Block, chosen: Ints) -> None:
    """Play every round of a block, updating the posterior and writing the chosen arms.

    Parameters
    ----------
    chooser : Chooser
        The policy and its posterior.
    block : Block
        The rounds.
    chosen : ndarray of int of shape (T,)
        Array for the indices of the chosen arms.
    """
    table: Table = Table(block, chosen)
    n: cython.Py_ssize_t = chosen.size
    with cython.nogil:
        table.play(chooser, 0, n)


def add_regret(chosen: Ints, oracle: Oracle, record: Record) -> None:
    """Add the regret of the choices in all rounds of a block to a record.

    Parameters
    ----------
    chosen : ndarray of int of shape (T,)
        Indices of the chosen arms.
    oracle : Oracle
        Oracle values of the rounds.
    record : Record
        Record that regret is added to.
    """
    unused: Floats = np.empty((0, 1))
    block: Block = Block(unused[:, :, None], unused, unused, unused)
    table: Table = Table(block, chosen, oracle, record)
    n: cython.Py_ssize_t = chosen.size
    with cython.nogil:
        table.add_regret(0, n)


def run_block(chooser: Chooser, block: Block, oracle: Oracle, start: int, record: Record) -> None:
    """Play a block of rounds and update the record.

    Parameters
    ----------
    chooser : Chooser
        The policy and its posterior.
    block : Block
        The rounds.
    oracle : Oracle
        Oracle values of the rounds.
    start : int
        Number of rounds before the block. With 0, posterior and record are reset first.
    record : Record
        Record that is updated.
    """
    if start == 0:
        chooser.core.forget()
        record.sums[:] = 0.0
        record.pulls[:] = 0.0
    n: cython.Py_ssize_t = block.rewards.shape[0]
    table: Table = Table(block, np.empty(n, np.int64), oracle, record)
    c: cython.Py_ssize_t = np.searchsorted(record.checkpoints, start, side="right")
    before: cython.Py_ssize_t = start
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t
    with cython.nogil:
        while low < n:
            high = n
            is_checkpoint: cython.bint = False
            if c < table.checkpoints.shape[0] and table.checkpoints[c] <= before + n:
                high, is_checkpoint = table.checkpoints[c] - before, True
            table.play(chooser, low, high)
            table.add_regret(low, high)
            if is_checkpoint:
                table.write_checkpoint(chooser, c)
                c += 1
            low = high
