"""Audit of a log before any estimate: do choices and propensities agree, and did chance decide.

If arm a is chosen with probability e_t(a), its count less the sum of e_t(a) is a martingale, with
the variance sum of e_t(a) (1 - e_t(a)). Counted, rounded or invented propensities show here.

A round in which another arm was taken in place of the chosen one is left out: its reward is not one
of the logged probability. What is left is a sample of the logged policy only if vetoes depend on
the context alone. Among vetoed rounds the chosen arms then still follow e_t, which is tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.core import Floats
from keyhole.errors import InvalidValue
from keyhole.evaluation import extras
from keyhole.evaluation.logged import Logged
from keyhole.evaluation.tables import table

# A sound log exceeds this many standard deviations with a probability of 6e-7 per arm.
LIMIT = 5.0
# Vetoes that do not depend on the chosen arm are refused with at most this probability per arm. It
# is larger than that of `LIMIT`: those who veto look at the chosen arm as a rule.
VETO_ALPHA = 1e-4
# Exponents of the test: one of them is close to the best one, whatever the excess.
EXPONENTS = np.array([-4.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0, 4.0])
# Logged probabilities may differ from computed ones by rounding in a file.
ABSOLUTE, RELATIVE = 1e-9, 1e-4


@dataclass(frozen=True)
class LogAudit:
    """Result of `audit_log`.

    Parameters
    ----------
    n_rounds, n_rewarded : int
        Number of rounds, and of rounds before the first missing reward.
    arms : tuple
        Names of the arms.
    counts : tuple of int
        How often each arm was chosen.
    expected : tuple of float
        Sum of its probabilities, NaN if the log has the chosen arm's probability only.
    z : tuple of float
        Deviation of the count in standard deviations.
    min_probability : float
        Smallest logged probability of a chosen arm.
    effective_size : float
        Effective sample size of uniform choices evaluated from this log.
    left_out : tuple of (str, int)
        How many rounds of the log are not used, by reason: "vetoed", "forgotten", "made elsewhere".
    vetoed : tuple of float
        Of each arm, how many vetoed rounds had chosen it, less the sum of its probabilities there.
    difference : float
        Largest difference of a logged probability to the one computed from the scores; NaN without
        scores.
    problems : tuple of str
        Problems that were found, empty for a sound log.
    """

    n_rounds: int
    n_rewarded: int
    arms: tuple[Any, ...]
    counts: tuple[int, ...]
    expected: tuple[float, ...]
    z: tuple[float, ...]
    min_probability: float
    effective_size: float
    left_out: tuple[tuple[str, int], ...]
    vetoed: tuple[float, ...]
    difference: float
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """True if no problem was found."""
        return not self.problems

    def plot(self) -> Any:
        """Draw counts beside summed propensities, and z of each arm; needs matplotlib."""
        return extras.load("keyhole.evaluation.plots", "LogAudit.plot").audit(self)

    def __str__(self) -> str:
        rows = [
            (str(arm), f"{count:,}", f"{expected:,.1f}", f"{z:+.2f}")
            for arm, count, expected, z in zip(
                self.arms, self.counts, self.expected, self.z, strict=True
            )
        ]
        lines = [
            f"{self.n_rounds:,} rounds, {self.n_rewarded:,} before the first missing reward",
            table(("arm", "chosen", "expected", "z"), rows),
            f"smallest probability {self.min_probability:.3g}, effective size of uniform choices "
            f"{self.effective_size:,.0f}",
            *([f"left out: {self._left_out}"] if self.left_out else []),
            *(self.problems or ("no problem found",)),
        ]
        return "\n".join(lines)

    @property
    def _left_out(self) -> str:
        counts = ", ".join(f"{n:,} {reason}" for reason, n in self.left_out)
        if "vetoed" not in dict(self.left_out):
            return counts
        return f"{counts}; estimates hold if vetoes depend on the context alone"


def audit_log(log: object) -> LogAudit:
    """Check the propensities of a log against its choices.

    Parameters
    ----------
    log : Logged, mapping or object with `columns()`
        The log.

    Returns
    -------
    LogAudit
        Counts, deviations and problems.
    """
    given = Logged.of(log)
    e, propensity = given.probability, given.propensity
    counts = np.bincount(given.chosen, minlength=given.n_arms)
    if propensity is not None:
        # The logged probability counts where the arm was chosen: it is what estimates divide by.
        used = propensity.copy()
        used[np.arange(given.n_rounds), given.chosen] = e
        expected = used.sum(axis=0)
        spread = np.sqrt((used * (1.0 - used)).sum(axis=0))
        z = _ratio(counts - expected, spread)
    else:
        expected = np.full(given.n_arms, np.nan)
        inverse = np.bincount(given.chosen, 1.0 / e, given.n_arms)
        spread = np.sqrt(np.bincount(given.chosen, (1.0 / e - 1.0) / e, given.n_arms))
        # An arm that was seldom chosen has a sum that is most often too small: only an excess
        # contradicts the probabilities.
        z = np.where(counts > 0, np.maximum(_ratio(inverse - given.n_rounds, spread), 0.0), 0.0)
    w = 1.0 / (e * given.candidates.sum(axis=1))
    difference, row = _difference(given)
    beyond, vetoes = _vetoes(given)
    return LogAudit(
        n_rounds=given.n_rounds,
        n_rewarded=given.n_rewarded,
        arms=given.arms,
        counts=tuple(counts.tolist()),
        expected=tuple(expected.tolist()),
        z=tuple(z.tolist()),
        min_probability=float(e.min()),
        effective_size=float(w.sum() ** 2 / (w @ w)),
        left_out=counts_left_out(given),
        vetoed=tuple(beyond.tolist()),
        difference=difference,
        problems=(*_problems(given, counts, z, row), *vetoes),
    )


def _problems(log: Logged, counts: Any, z: Floats, row: int | None) -> list[str]:
    found = []
    if log.n_rewarded < 2:
        found.append(
            f"rewards: {log.n_rewarded} rounds come before the first missing reward, 2 are needed: "
            f"{log.missing or 'there are no more'}"
        )
    if (log.probability == 1.0).all() and (counts > 0).sum() > 1:
        found.append(
            "probability: every choice has probability 1, though several arms were chosen: either "
            "chance had no part, and no other policy can be evaluated, or propensities are wrong"
        )
    if row is not None and log.computed is not None:
        computed = log.computed[row, log.chosen[row]]
        found.append(
            f"probability[{row}]: logged {log.probability[row]:.6g}, but the logged scores give "
            f"{computed:.6g}"
        )
    for arm, count, one in zip(log.arms, counts, z, strict=True):
        if abs(one) > LIMIT:
            found.append(
                f"arm {arm!r}: chosen {count:,} times, {abs(one):.1f} standard deviations "
                f"{'more' if one > 0 else 'less'} often than its propensities say"
            )
    return found


def counts_left_out(log: Logged) -> tuple[tuple[str, int], ...]:
    """Return how many decisions of a log are not among its rounds, by reason."""
    vetoed = () if log.vetoed is None else (("vetoed", log.vetoed.n_rounds),)
    return tuple((reason, n) for reason, n in (*vetoed, *log.left_out) if n)


def _vetoes(log: Logged) -> tuple[Floats, list[str]]:
    """Return how often each arm was vetoed beyond its probabilities, and what is wrong with it.

    If vetoes do not depend on the chosen arm, the product over vetoed rounds of
    exp(l 1{a}) / (1 - e + e exp(l)) has mean 1 for every l, so that it exceeds 1 / alpha with a
    probability of at most alpha. A normal limit would refuse a single veto of a rare arm.
    """
    vetoed = log.vetoed
    if vetoed is None or vetoed.propensity is None:
        return np.zeros(log.n_arms), []
    used = vetoed.propensity.copy()
    used[np.arange(vetoed.n_rounds), vetoed.chosen] = vetoed.probability
    counts, expected = np.bincount(vetoed.chosen, minlength=log.n_arms), used.sum(axis=0)
    beyond = counts - expected
    exponents = EXPONENTS[:, None, None]
    mean = np.log1p(used * np.expm1(exponents)).sum(axis=1)  # (exponents, K)
    logs = EXPONENTS[:, None] * counts - mean
    sure = logs.max(axis=0) > np.log(len(EXPONENTS) / VETO_ALPHA)
    found = [
        f"vetoes: {counts[i]:,} of {vetoed.n_rounds:,} vetoed choices were of arm {log.arms[i]!r}, "
        f"and {expected[i]:,.1f} are expected: vetoes depend on the chosen arm, and the other "
        "rounds are no sample of the logged probabilities. Leave out arms that cannot be taken "
        "when choosing, choose(..., among=[...])"
        for i in np.flatnonzero(sure).tolist()
    ]
    return beyond, found


def _difference(log: Logged) -> tuple[float, int | None]:
    """Return the largest difference to computed probabilities, and the first row that is off."""
    if log.computed is None:
        return float("nan"), None
    computed = log.computed[np.arange(log.n_rounds), log.chosen]
    off = np.abs(computed - log.probability)
    wrong = off > ABSOLUTE + RELATIVE * computed
    return float(off.max()), int(wrong.argmax()) if wrong.any() else None


def _ratio(deviation: Any, spread: Floats) -> Floats:
    """Return deviation / spread: rounding of a certain count is 0, more is infinite."""
    certain = spread == 0.0
    ratio: Floats = deviation / np.where(certain, 1.0, spread)
    ratio[certain] = np.where(np.abs(deviation[certain]) < 1e-6, 0.0, np.inf)
    return ratio


def require_sound(log: Logged) -> None:
    """Raise if the audit of a log finds a problem."""
    problems = audit_log(log).problems
    if problems:
        raise InvalidValue(
            "the log is not sound: " + "; ".join(problems) + ". check=False evaluates it anyway"
        )
