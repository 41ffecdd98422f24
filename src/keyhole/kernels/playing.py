"""Playing a block of rounds: choose, see the reward of the chosen arm, learn, again and again."""

from typing import NamedTuple

import numpy as np

from keyhole.kernels.algebra import most
from keyhole.kernels.choosing import select
from keyhole.kernels.deferring import LARGE, Late, absorb_late, catch_up, nothing_late
from keyhole.kernels.exploring import is_diverse
from keyhole.kernels.jit import kernel, loop, part
from keyhole.kernels.learning import absorb, forget
from keyhole.kernels.types import Floats, Ints, Rule, State


class Block(NamedTuple):
    """T rounds and the numbers that a policy draws in them."""

    observations: Floats  # (T, n_arms, d), or (T, 1, d) for a context that the arms share
    rewards: Floats  # (T, n_arms)
    z: Floats  # (T, n_arms)  standard normals
    uniforms: Floats  # (T, 2)  a coin and a tie-breaker


class Scratch(NamedTuple):
    """What playing needs room for."""

    law: Floats  # (3, n_arms)  how scores are distributed
    w: Floats  # (2, d)  two arms' P y
    late: Late


class Truth(NamedTuple):
    """What T rounds are judged by."""

    values: Floats  # (T, n_arms)  what each arm was worth to the best observer
    latent: Floats  # (T, n_arms)  and to one who sees the context
    labels: Ints  # (T,)  the arm that is the right answer, or (0,) where there is none
    eta: Floats  # (n_arms, d)


# The first of a record's sums, which are noted as they are, and not as shares of the rounds.
REGRETS = 2


class Record(NamedTuple):
    """A policy's standing: so far, and as it was after the rounds of each checkpoint.

    Sums are of regret and of latent regret; how many choices were optimal, how many were the right
    answer, and how many of the best observer's were.
    """

    checkpoints: Ints  # (C,)  numbers of rounds, rising
    noted: Floats  # (C, 5 + 2 n_arms)  sums, pulls, and |mean - eta| of each arm
    sums: Floats  # (5,)
    pulls: Floats  # (n_arms,)


@loop
def play_rounds(
    state: State,
    rule: Rule,
    owner: Ints,
    block: Block,
    low: int,
    high: int,
    prune: bool,
    chosen: Ints,
    scratch: Scratch,
) -> None:
    """Play some rounds of a block; what matrices have yet to be told stays in `scratch.late`."""
    law, w, late = scratch.law, scratch.w, scratch.late
    for t in range(low, high):
        y, z = block.observations[t], block.z[t]
        coin, tie = block.uniforms[t, 0], block.uniforms[t, 1]
        greedy = rule.diversity > 0.0 and is_diverse(state, rule)
        k, kept = select(state, rule, owner, y, z, coin, tie, greedy, prune, law, w, late)
        row, known = min(k, y.shape[0] - 1), kept >= 0
        i, reward, own = owner[k], block.rewards[t, k], w[max(kept, 0)]
        if late.n.size > 0:
            absorb_late(state, late, i, y[row], reward, own, known)
        else:
            absorb(state, i, y[row], reward, own, known)
        chosen[t] = k


@kernel
def scratch_for(state: State, rule: Rule, owner: Ints) -> Scratch:
    """Room to play in. Matrices may be late if they are large, and the rule asks for P y alone."""
    dim = state.mean.shape[1]
    defers = rule.diversity == 0.0 and rule.radius == 0.0 and dim >= LARGE
    late = nothing_late(state.n.size if defers else 0, dim)
    return Scratch(np.empty((3, owner.size)), np.empty((2, dim)), late)


@kernel
def play(state: State, rule: Rule, owner: Ints, block: Block, prune: bool, chosen: Ints) -> None:
    """Play every round of a block, moving `state` along and writing the arms into `chosen`."""
    scratch = scratch_for(state, rule, owner)
    play_rounds(state, rule, owner, block, 0, chosen.size, prune, chosen, scratch)
    for i in range(scratch.late.n.size):
        catch_up(state, scratch.late, i)


@part
def cost(best: float, value: float) -> float:
    """best - value, which is never below zero.

    It says so because sums may be reordered: (sum + best) - value would round, and regret fall.
    """
    missed = best - value
    return 0.0 if missed < 0.0 else missed


@loop
def judge(chosen: Ints, truth: Truth, low: int, high: int, record: Record) -> None:
    """Add up what the choices of some rounds of a block cost."""
    values, latent, labels = truth.values, truth.latent, truth.labels
    regret, latent_regret, optimal = record.sums[0], record.sums[1], record.sums[2]
    for t in range(low, high):
        k, best, best_latent = chosen[t], most(values[t]), most(latent[t])
        unknown = 0
        for i in range(values.shape[1]):
            unknown += latent[t, i] != latent[t, i]
        best_latent = best_latent if unknown == 0 else np.nan
        regret += cost(best, values[t, k])
        latent_regret += cost(best_latent, latent[t, k])
        optimal += values[t, k] == best
        record.pulls[k] += 1.0
    record.sums[0], record.sums[1], record.sums[2] = regret, latent_regret, optimal
    for t in range(low, high if labels.size > 0 else low):
        record.sums[3] += chosen[t] == labels[t]
        record.sums[4] += np.argmax(values[t]) == labels[t]


@loop
def note(state: State, owner: Ints, eta: Floats, record: Record, c: int) -> None:
    """Write down how a policy stands at checkpoint c."""
    noted, sums = record.noted[c], record.sums
    for s in range(sums.size):
        noted[s] = sums[s] / (1.0 if s < REGRETS else record.checkpoints[c])
    for k in range(owner.size):
        noted[sums.size + k] = record.pulls[k]
        squared = 0.0
        for j in range(eta.shape[1]):
            squared += (state.mean[owner[k], j] - eta[k, j]) ** 2
        noted[sums.size + owner.size + k] = np.sqrt(squared)


@kernel
def trial(
    state: State, rule: Rule, owner: Ints, block: Block, truth: Truth, start: int, record: Record
) -> None:
    """Play a block whose first round comes after `start` others, and keep the record.

    Whoever begins knows nothing, whatever was learned and noted before.
    """
    if start == 0:
        forget(state)
        record.sums[:] = 0.0
        record.pulls[:] = 0.0
    n = block.rewards.shape[0]
    chosen = np.empty(n, np.int64)
    scratch = scratch_for(state, rule, owner)
    low, c = 0, int(np.searchsorted(record.checkpoints, start, side="right"))
    while low < n:
        noted = c < record.checkpoints.size and record.checkpoints[c] <= start + n
        high = record.checkpoints[c] - start if noted else n
        play_rounds(state, rule, owner, block, low, high, True, chosen, scratch)
        judge(chosen, truth, low, high, record)
        if noted:
            note(state, owner, truth.eta, record, c)
            c += 1
        low = high
    for i in range(scratch.late.n.size):
        catch_up(state, scratch.late, i)
