"""Terms: the part of the sums that one reward is, which can be taken out or amended exactly.

A reward r at a design x adds x x' to the precision and r x to the moment. Sums in other units, or
in more columns, are sums of converted terms, so that a term can be found again however the sums
were changed since. A reward that waits, or is provisional, has no fixed term yet: it is found by
its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keyhole.core.kernels import Floats
from keyhole.core.learners.arms import Arm

if TYPE_CHECKING:
    from keyhole.core.learners.state import LearnerState


class Term(NamedTuple):
    """A reward as the sums have it."""

    arm: Arm
    design: Floats  # (n_columns,)  what the posterior saw, in its present columns
    reward: float  # as it counted, before the zero of rewards is subtracted
    key: str = ""  # what tells it from all others, if it waits or is provisional
    weight: float = 1.0


def forget_terms(state: LearnerState, terms: Sequence[Term]) -> None:
    """Take rewards out of what was learned: all of them, or, if one cannot be, none.

    Parameters
    ----------
    state : LearnerState
        What was learned.
    terms : sequence of Term
        The rewards.
    """
    keys = {one.key for one in terms if one.key}
    with _Changes(state, terms) as found:
        for term in found:
            parameter = state.arms.parameter(term.arm)
            row, reward = state.of_arm(term), term.reward - state.observer.offset
            state.posterior.forget(parameter, row, reward, term.weight)
    state.waiting = [one for one in state.waiting if one.key not in keys]
    state.provisional = [one for one in state.provisional if one.key not in keys]


def amend_term(state: LearnerState, term: Term, reward: float) -> None:
    """Replace a reward that was learned, or waits, by another.

    Parameters
    ----------
    state : LearnerState
        What was learned.
    term : Term
        The reward.
    reward : float
        The one that replaces it.
    """
    with _Changes(state, [term]) as found:
        for one in found:
            parameter, zero = state.arms.parameter(one.arm), state.observer.offset
            rewards = (one.reward - zero, reward - zero)
            state.posterior.amend(parameter, state.of_arm(one), *rewards, one.weight)
    if term.key:
        state.waiting = [
            one._replace(reward=reward) if one.key == term.key else one for one in state.waiting
        ]
        state.provisional = [
            one._replace(reward=reward) if one.key == term.key else one for one in state.provisional
        ]


def terms_in_sums(state: LearnerState, terms: Sequence[Term]) -> list[Term]:
    """Return the terms that the sums have, as they have them now.

    Parameters
    ----------
    state : LearnerState
        What was learned.
    terms : sequence of Term
        Terms, some of which may wait.
    """
    provisional = {one.key: one for one in state.provisional if one.key}
    waiting = {one.key for one in state.waiting}
    found = []
    for term in terms:
        known = provisional.get(term.key)
        if known is not None:  # by the latest prediction
            term = term._replace(design=known.design, reward=known.reward)
        if term.key not in waiting:
            found.append(term)
    return found


class _Changes:
    """Changes of the sums by terms, which are taken back if one of them fails."""

    def __init__(self, state: LearnerState, terms: Sequence[Term]) -> None:
        self.state, self.terms = state, terms_in_sums(state, terms)
        indices = {state.arms.parameter(term.arm) for term in self.terms}
        self.indices = np.array(sorted(indices), dtype=np.int64)

    def __enter__(self) -> list[Term]:
        self.before = self.state.posterior.rows(self.indices)
        return self.terms

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        if kind is not None:
            self.state.posterior.put_back(self.indices, self.before)
