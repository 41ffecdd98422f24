"""Claims about choices where one arm is clearly best, and about pulls: lem:azu to lem:ni."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from keyhole.lab.audit import controls
from keyhole.lab.audit.choices import first_odds
from keyhole.lab.audit.claims.claim import EIGENVALUES, ELLIPSOID, Claim, from_rounds
from keyhole.lab.audit.controls import Control
from keyhole.lab.audit.measures import Measured, early, probability, rate
from keyhole.lab.audit.scope import Scope
from keyhole.theory import STATEMENTS

# The power of log T in l (lem:ni), the sum of the bounds of lem:term1 to lem:term3.
POWER = 5.0
TERMS = ("lem:term1", "lem:term2", "lem:term3", "lem:piineq")
BOUNDS = ("term_1", "term_2", "term_3", "ell")


def _odds(scope: Scope) -> Measured:
    if scope.is_noiseless:
        return early("R is 0, and so is v: the bound is infinite")
    return probability(scope.choices.odds.max(axis=(1, 2)), scope.delta)


def _odds_are_false(scope: Scope) -> str:
    times = first_odds(scope)
    # Twice, since the odds are averages of a simulation.
    return "" if times < 2.0 else (
        "the claim is false in this world, and its proof open: eq:cdfhat leaves out the prior. "
        f"Before any pull the expected odds are at least {times:.2g} times their bound"
    )  # fmt: skip


def _pulled(scope: Scope) -> Measured:
    p = np.array([one.value for one in scope.promises.instance.p])
    counts = np.stack([(scope.arms == i).sum(axis=1) for i in range(len(p))], axis=1)
    needed = p * scope.horizon / 4.0
    ratios = (needed / np.maximum(counts, 0.5)).max(axis=1)
    worst = int(np.argmax((needed / np.maximum(counts, 0.5)).max(axis=0)))
    fewest, due = counts[:, worst].min(), needed[worst]
    return probability(ratios, scope.delta, f"; arm {worst + 1} had at least {fewest} of {due:.0f}")


def _term(place: int) -> Callable[[Scope], Measured]:
    def measure(scope: Scope) -> Measured:
        found = scope.choices
        formula = STATEMENTS[BOUNDS[place]].at(scope.constants, horizon=scope.horizon)
        # Sums are over rounds with i clearly best. The claim is about all rounds given that it is,
        # which are at most 2 / p_i times as many.
        p = np.array([one.value for one in scope.promises.instance.p])
        chance = np.maximum(p, 1e-300)[:, None] / 2.0
        if place < 3:
            sums = (found.terms[:, place] / chance).max(axis=(1, 2))
        else:
            sums = (found.terms.sum(axis=(1, 3)) / chance[:, 0]).max(axis=1)
        below = probability(sums / formula, scope.delta)
        said = f"a sum of {sums.mean():.2g} at the end, where the formula gives {formula:.2g}"
        return rate(
            found.growing[:, :, place],
            scope,
            0.0,
            below._replace(evidence=said),
            too_early=scope.early_choices(1.0),
            log_power=POWER,
        )

    return measure


def _starts(place: int) -> Callable[[Scope], str]:
    def begins(scope: Scope) -> str:
        needed = STATEMENTS[BOUNDS[place]].at(scope.constants, horizon=scope.horizon)
        if scope.horizon >= needed:
            return ""
        if place < 3:
            return (
                f"the bound is {needed:.2g}, vacuous: a sum of probabilities over "
                f"{scope.horizon:,} rounds cannot exceed it"
            )
        return f"before t = l = {needed:.2g} the bound is below 0"

    return begins


def _claim(place: int, name: str, counted: str, control: Control) -> Claim:
    return Claim(
        name=name,
        label=TERMS[place],
        bound=BOUNDS[place],
        says=lambda _: (
            f"while another arm is clearly best, {counted} grow at most like "
            f"(log t)^{POWER:g}, the power of l"
        ),
        measure=_term(place),
        control=control,
        needs=EIGENVALUES,
        begins=_starts(place),
        kind="rate",
    )


CHOICES = Claim(
    name="choices",
    label="lem:azu",
    bound="",
    says=lambda s: (
        "where an arm is clearly best, its pulls fall short of the sum of their "
        f"probabilities by at most sqrt(2 T log(N / delta)), with probability {1 - s.delta:g}"
    ),
    measure=lambda s: probability(s.choices.shortfall.max(axis=1), s.delta),
    control=controls.RANDOM,
    needs=(),
)
ODDS = Claim(
    name="odds",
    label="eq:phiinv2",
    bound="missed_odds",
    says=lambda s: (
        "odds against a clearly best arm's sample, over their bound, sum to at most "
        f"T p_i N (N - 1) / delta, with probability {1 - s.delta:g}: Markov's inequality"
    ),
    measure=_odds,
    control=controls.TIMID,
    needs=ELLIPSOID,
    false=_odds_are_false,
)
FIRST = _claim(
    0, "wrong pulls, well known", "pulls by near estimates and samples", controls.REVERSED
)
SECOND = _claim(1, "wrong pulls by samples", "pulls by a far sample", controls.BOLD)
THIRD = _claim(2, "wrong pulls by estimates", "pulls by a far estimate", controls.REVERSED)
ALL = _claim(3, "wrong pulls", "all pulls of the others", controls.REVERSED)
PULLS = Claim(
    name="pulls",
    label="lem:ni",
    bound="tau",
    says=lambda s: (
        f"n_i(t) >= p_i t / 4 for every arm at the end, with probability {1 - s.delta:g}"
    ),
    measure=_pulled,
    control=controls.CROWD,
    needs=EIGENVALUES,
    begins=from_rounds,
    kind="within the run",
)
