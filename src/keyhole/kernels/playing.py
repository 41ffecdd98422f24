"""Playing a block of rounds: choose, see the reward of the chosen arm, learn, again and again."""

from typing import NamedTuple

import numpy as np

from keyhole.kernels.choosing import is_diverse, select
from keyhole.kernels.deferring import LARGE, Late, absorb_late, catch_up, nothing_late
from keyhole.kernels.jit import kernel, loop
from keyhole.kernels.learning import absorb
from keyhole.kernels.types import Floats, Ints, Rule, State


class Block(NamedTuple):
    """T rounds and the numbers that a policy draws in them."""

    observations: Floats  # (T, n_arms, d), or (T, 1, d) for a context that the arms share
    rewards: Floats  # (T, n_arms)
    z: Floats  # (T, n_arms)  standard normals
    uniforms: Floats  # (T, 2)  a coin and a tie-breaker


class Scratch(NamedTuple):
    """What playing needs room for."""

    law: Floats  # (4, n_arms)  how scores are distributed
    w: Floats  # (2, d)  two arms' P y
    late: Late


class Record(NamedTuple):
    """A policy's standing after the rounds of each checkpoint, and what it adds up as it goes."""

    checkpoints: Ints  # (C,)  numbers of rounds, rising
    regret: Floats  # (C,)
    latent_regret: Floats  # (C,)
    optimal: Floats  # (C,)  how many of the rounds' choices were optimal
    correct: Floats  # (C,)  how many were the right answer, where rounds have one
    best_correct: Floats  # (C,)  how many of the best observer's were
    pulls: Floats  # (C, n_arms)
    error: Floats  # (C, n_arms)  |mean - eta|
    sums: Floats  # (5,)  of the five above, so far
    counts: Floats  # (n_arms,)  pulls so far


@loop
def play_rounds(
    state: State,
    rule: Rule,
    owner: Ints,
    block: Block,
    prune: bool,
    chosen: Ints,
    scratch: Scratch,
) -> None:
    """Play every round of a block; what matrices have yet to be told stays in `scratch.late`."""
    law, w, late = scratch.law, scratch.w, scratch.late
    for t in range(chosen.size):
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
    return Scratch(np.empty((4, owner.size)), np.empty((2, dim)), late)


@kernel
def play(state: State, rule: Rule, owner: Ints, block: Block, prune: bool, chosen: Ints) -> None:
    """Play every round of a block, moving `state` along and writing the arms into `chosen`."""
    scratch = scratch_for(state, rule, owner)
    play_rounds(state, rule, owner, block, prune, chosen, scratch)
    for i in range(scratch.late.n.size):
        catch_up(state, scratch.late, i)


@loop
def judge(
    state: State,
    owner: Ints,
    values: Floats,
    latent: Floats,
    labels: Ints,
    chosen: Ints,
    eta: Floats,
    start: int,
    record: Record,
) -> None:
    """Add up what the choices of rounds start + 1, start + 2, ... cost, and note a checkpoint.

    values and latent: (T, n_arms), what each arm was worth to the best observer and to one who
    sees the context. labels: (T,), the arm that is the right answer, or -1. The last of these
    rounds may be a checkpoint; none before it is.
    """
    n_arms = owner.size
    for t in range(chosen.size):
        k = chosen[t]
        best, best_latent, first = -np.inf, -np.inf, 0
        for i in range(n_arms):
            if values[t, i] > best:
                best, first = values[t, i], i
            best_latent = max(best_latent, latent[t, i])
        # A choice that costs nothing adds nothing: no rounding, so that regret never falls.
        if values[t, k] < best:
            record.sums[0] += best - values[t, k]
        else:
            record.sums[2] += 1.0
        if latent[t, k] != best_latent:
            record.sums[1] += best_latent - latent[t, k]
        if k == labels[t]:
            record.sums[3] += 1.0
        if first == labels[t]:
            record.sums[4] += 1.0
        record.counts[k] += 1.0

    c = np.searchsorted(record.checkpoints, start + chosen.size)
    if c < record.checkpoints.size and record.checkpoints[c] == start + chosen.size:
        record.regret[c], record.latent_regret[c] = record.sums[0], record.sums[1]
        record.optimal[c] = record.sums[2]
        record.correct[c], record.best_correct[c] = record.sums[3], record.sums[4]
        for k in range(n_arms):
            record.pulls[c, k] = record.counts[k]
            squared = 0.0
            for j in range(eta.shape[1]):
                squared += (state.mean[owner[k], j] - eta[k, j]) ** 2
            record.error[c, k] = np.sqrt(squared)


@kernel
def trial(
    state: State,
    rule: Rule,
    owner: Ints,
    block: Block,
    values: Floats,
    latent: Floats,
    labels: Ints,
    eta: Floats,
    start: int,
    record: Record,
) -> None:
    """Play a block whose first round comes after `start` others, and keep the record."""
    n = block.rewards.shape[0]
    chosen = np.empty(n, np.int64)
    scratch = scratch_for(state, rule, owner)
    low = 0
    while low < n:
        c = np.searchsorted(record.checkpoints, start + low, side="right")
        high = n
        if c < record.checkpoints.size:
            high = min(n, record.checkpoints[c] - start)
        piece = Block(
            block.observations[low:high],
            block.rewards[low:high],
            block.z[low:high],
            block.uniforms[low:high],
        )
        play_rounds(state, rule, owner, piece, True, chosen[low:high], scratch)
        judge(
            state,
            owner,
            values[low:high],
            latent[low:high],
            labels[low:high],
            chosen[low:high],
            eta,
            start + low,
            record,
        )
        low = high
    for i in range(scratch.late.n.size):
        catch_up(state, scratch.late, i)
