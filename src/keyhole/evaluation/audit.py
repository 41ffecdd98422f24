"""Audit of a log before any estimate: do choices and propensities agree, and did chance decide.

If arm a is chosen with probability e_t(a), its count less the sum of e_t(a) is a martingale, with
the variance sum of e_t(a) (1 - e_t(a)). Counted, rounded or invented propensities show here.
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
            *(self.problems or ("no problem found",)),
        ]
        return "\n".join(lines)


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
        z = np.maximum(_ratio(inverse - given.n_rounds, spread), 0.0)
    w = 1.0 / (e * given.candidates.sum(axis=1))
    difference, row = _difference(given)
    return LogAudit(
        n_rounds=given.n_rounds,
        n_rewarded=given.n_rewarded,
        arms=given.arms,
        counts=tuple(counts.tolist()),
        expected=tuple(expected.tolist()),
        z=tuple(z.tolist()),
        min_probability=float(e.min()),
        effective_size=float(w.sum() ** 2 / (w @ w)),
        difference=difference,
        problems=tuple(_problems(given, counts, z, row)),
    )


def _problems(log: Logged, counts: Any, z: Floats, row: int | None) -> list[str]:
    found = []
    if log.n_rewarded < 2:
        found.append(
            f"rewards: {log.n_rewarded} rounds come before the first missing reward, 2 are needed"
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
