"""Playing a block of rounds: choose, see the reward of the chosen arm, learn, again and again."""

from __future__ import annotations

from typing import NamedTuple

import cython
import numpy as np

from keyhole.kernels.types import Floats, Ints

if cython.compiled:
    from cython.cimports.keyhole.kernels.choosing import Chooser
else:
    from keyhole.kernels.choosing import Chooser


class Block(NamedTuple):
    """T rounds and the numbers that a policy draws in them."""

    observations: Floats  # (T, n_arms, d), or (T, 1, d) for a context that the arms share
    rewards: Floats  # (T, n_arms)
    z: Floats  # (T, n_arms)  standard normals
    uniforms: Floats  # (T, 2)  a coin and a tie-breaker


class Truth(NamedTuple):
    """What T rounds are judged by."""

    values: Floats  # (T, n_arms)  what each arm was worth to the best observer
    latent: Floats  # (T, n_arms)  and to one who sees the context
    labels: Ints  # (T,)  the arm that is the right answer, or (0,) where there is none
    eta: Floats  # (n_arms, d)


# The first of a record's sums, which are noted as they are, and not as shares of the rounds.
REGRETS = 2
NAN = cython.declare(cython.double, float("nan"))


class Record(NamedTuple):
    """A policy's standing: so far, and as it was after the rounds of each checkpoint.

    Sums are of regret and of latent regret; how many choices were optimal, how many were the right
    answer, and how many of the best observer's were.
    """

    checkpoints: Ints  # (C,)  numbers of rounds, rising
    noted: Floats  # (C, 5 + 2 n_arms)  sums, pulls, and |mean - eta| of each arm
    sums: Floats  # (5,)
    pulls: Floats  # (n_arms,)


def play(chooser: Chooser, block: Block, chosen: Ints) -> None:
    """Play every round of a block, moving what is known along and writing down the arms."""
    play_rounds(chooser, block, 0, chosen.size, chosen)


def play_rounds(
    chooser: Chooser, block: Block, low: cython.Py_ssize_t, high: cython.Py_ssize_t, chosen: Ints
) -> None:
    """Play some rounds of a block."""
    y: cython.double[::1] = block.observations.reshape(-1)
    rewards: cython.double[:, ::1] = block.rewards
    z: cython.double[::1] = block.z.reshape(-1)
    uniforms: cython.double[:, ::1] = block.uniforms
    places: cython.longlong[::1] = chosen
    n_arms: cython.Py_ssize_t = chooser.n_arms
    dim: cython.Py_ssize_t = chooser.core.dim
    stride: cython.Py_ssize_t = dim if block.observations.shape[1] > 1 else 0
    size: cython.Py_ssize_t = block.observations.shape[1] * dim
    with cython.nogil:
        for t in range(low, high):
            k: cython.Py_ssize_t = chooser.choose(
                y, t * size, stride, z, t * n_arms, uniforms[t, 0], uniforms[t, 1]
            )
            places[t] = k
            chooser.core.absorb(
                chooser.owner[k],
                y,
                t * size + k * stride,
                rewards[t, k],
                max(chooser.slot, 0),
                chooser.slot >= 0,
            )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def cost(best: cython.double, value: cython.double) -> cython.double:
    """best - value, which is never below zero.

    It says so because sums may be reordered: (sum + best) - value would round, and regret fall.
    """
    missed: cython.double = best - value
    return 0.0 if missed < 0.0 else missed


def judge(
    chosen: Ints, truth: Truth, low: cython.Py_ssize_t, high: cython.Py_ssize_t, record: Record
) -> None:
    """Add up what the choices of some rounds of a block cost."""
    places: cython.longlong[::1] = chosen
    values: cython.double[:, ::1] = truth.values
    latent: cython.double[:, ::1] = truth.latent
    labels: cython.longlong[::1] = truth.labels
    sums: cython.double[::1] = record.sums
    pulls: cython.double[::1] = record.pulls
    regret: cython.double = sums[0]
    latent_regret: cython.double = sums[1]
    optimal: cython.double = sums[2]
    n_arms: cython.Py_ssize_t = values.shape[1]
    with cython.nogil:
        for t in range(low, high):
            k: cython.Py_ssize_t = places[t]
            best: cython.double = values[t, 0]
            best_latent: cython.double = latent[t, 0]
            unknown: cython.Py_ssize_t = latent[t, 0] != latent[t, 0]
            for i in range(1, n_arms):
                best = values[t, i] if values[t, i] > best else best
                best_latent = latent[t, i] if latent[t, i] > best_latent else best_latent
                unknown += latent[t, i] != latent[t, i]
            regret += cost(best, values[t, k])
            latent_regret += cost(best_latent, latent[t, k]) if unknown == 0 else NAN
            optimal += values[t, k] == best
            pulls[k] += 1.0
            if labels.shape[0] > 0:
                right: cython.Py_ssize_t = 0
                while values[t, right] < best:
                    right += 1
                sums[3] += k == labels[t]
                sums[4] += right == labels[t]
    sums[0], sums[1], sums[2] = regret, latent_regret, optimal


def note(chooser: Chooser, owner: Ints, eta: Floats, record: Record, c: int) -> None:
    """Write down how a policy stands at checkpoint c."""
    noted, sums, n_arms = record.noted[c], record.sums, owner.size
    noted[:REGRETS] = sums[:REGRETS]
    noted[REGRETS : sums.size] = sums[REGRETS:] / record.checkpoints[c]
    noted[sums.size : sums.size + n_arms] = record.pulls
    off = chooser.core.state.mean[owner] - eta
    noted[sums.size + n_arms :] = np.sqrt((off * off).sum(axis=1))


def trial(
    chooser: Chooser, owner: Ints, block: Block, truth: Truth, start: int, record: Record
) -> None:
    """Play a block whose first round comes after `start` others, and keep the record.

    Whoever begins knows nothing, whatever was learned and noted before.
    """
    if start == 0:
        chooser.core.forget()
        record.sums[:] = 0.0
        record.pulls[:] = 0.0
    n = block.rewards.shape[0]
    chosen = np.empty(n, np.int64)
    low, c = 0, int(np.searchsorted(record.checkpoints, start, side="right"))
    while low < n:
        noted = c < record.checkpoints.size and record.checkpoints[c] <= start + n
        high = int(record.checkpoints[c]) - start if noted else n
        play_rounds(chooser, block, low, high, chosen)
        judge(chosen, truth, low, high, record)
        if noted:
            note(chooser, owner, truth.eta, record, c)
            c += 1
        low = high
