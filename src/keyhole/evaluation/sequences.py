"""Confidence sequences: intervals that hold at all looks at once, and the stop rule.

An ordinary 95% interval that is looked at again and again misses at some look far more often than
in 5% of logs. A confidence sequence may be looked at after every round, and stopped at any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from keyhole import checks
from keyhole.core import Floats, Ints
from keyhole.errors import InvalidValue, shown
from keyhole.evaluation import extras
from keyhole.evaluation.audit import require_sound
from keyhole.evaluation.boundary import lower_bounds
from keyhole.evaluation.bounds import check_bounds
from keyhole.evaluation.evaluating import pieces_of
from keyhole.evaluation.logged import Logged
from keyhole.evaluation.targets import Propensities, Target, Tracks, name_of

# Looks by default: more of them would not show in a picture.
N_LOOKS = 500
# The asymptotic sequence begins here, and is tightest at the second number.
ASYMPTOTIC_START, TIGHTEST = 50, 1000.0

Advice = Literal["deploy", "drop", "not yet"]


@dataclass(frozen=True)
class ConfidenceSequence:
    """Lower and upper bounds at several looks that hold at all of them at once.

    Parameters
    ----------
    policy : str
        Name of the policy.
    quantity : {"value", "gain"}
        The mean reward of the policy over the rounds so far, or its gain over the logged policy.
    level : float
        Confidence level.
    looks : ndarray of int
        Numbers of rounds.
    estimate, low, high : ndarray
        Estimate and bounds at each look.
    """

    policy: str
    quantity: Literal["value", "gain"]
    level: float
    looks: Ints
    estimate: Floats
    low: Floats
    high: Floats

    def advice(self, margin: float = 0.0) -> Advice:
        """Return "deploy", "drop" or "not yet" at the last look.

        Parameters
        ----------
        margin : float, default 0.0
            Deploy if the lower bound of the gain is above it; drop if the upper bound is below.
        """
        margin = self._margin(margin)
        if self.low[-1] > margin:
            return "deploy"
        return "drop" if self.high[-1] < margin else "not yet"

    def decided_at(self, margin: float = 0.0) -> int | None:
        """Return the number of rounds at the first look that decided, or None.

        Parameters
        ----------
        margin : float, default 0.0
            As in `advice`.
        """
        margin = self._margin(margin)
        decided = (self.low > margin) | (self.high < margin)
        return int(self.looks[decided.argmax()]) if decided.any() else None

    def plot(self, margin: float = 0.0) -> Any:
        """Draw estimate and bounds over the rounds; needs matplotlib.

        Parameters
        ----------
        margin : float, default 0.0
            Line at which the stop rule decides, drawn for a gain.
        """
        return extras.load("keyhole.evaluation.plots", "ConfidenceSequence.plot").over_time(
            self, margin
        )

    def __str__(self) -> str:
        end = f": {self.advice()}" if self.quantity == "gain" else ""
        return (
            f"{self.quantity} of {self.policy} after {self.looks[-1]:,} rounds: "
            f"{self.estimate[-1]:.4f} [{self.low[-1]:.4f}, {self.high[-1]:.4f}]{end}"
        )

    def _margin(self, margin: float) -> float:
        if self.quantity != "gain":
            raise InvalidValue("the stop rule needs a gain, got a value: use gain_sequence")
        return checks.real("margin", margin)


def value_sequence(
    log: object,
    policy: Target,
    *,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    level: float = 0.95,
    cap: float = 0.0,
    looks: Any = None,
    check: bool = True,
) -> ConfidenceSequence:
    """Return a confidence sequence for the value of a policy.

    The value at a look is the mean over the rounds up to it. For a target that does not learn it is
    a constant, and bounds of earlier looks stay valid.

    Parameters
    ----------
    log : Logged, mapping or object with `columns()`
        The log.
    policy : target
        A target, as in `evaluate`.
    bounds : tuple of float or None, default (0.0, 1.0)
        Smallest and largest possible reward. None allows any reward; the sequence is then valid
        asymptotically, and begins at round 50.
    level : float, default 0.95
        Confidence level.
    cap : float, default 0.0
        k of the doubly robust terms: the reward model counts up to k / w. 0 uses no model.
    looks : array_like of int, optional
        Numbers of rounds at which bounds are computed. By default up to 500, the last included.
    check : bool, default True
        Raise if `audit_log` finds a problem.

    Returns
    -------
    ConfidenceSequence
        The bounds.

    Raises
    ------
    InvalidValue
        If a reward is outside of `bounds`, the log is not sound, or an argument is not valid.
    """
    used, propensities, times = _prepare(log, policy, bounds, level, looks, check)
    pieces = pieces_of(used, propensities)
    alpha = 1.0 - level
    if bounds is None:
        estimate, low, high = _asymptotic(pieces.outcomes(), times, alpha)
        return ConfidenceSequence(name_of(policy), "value", level, times, estimate, low, high)
    worst, best = bounds
    span = best - worst
    reward = (pieces.reward - worst) / span
    cap = checks.real("cap", cap, min_value=0.0)
    below = _terms(used, propensities, pieces.weight, reward, (worst, span), cap, is_mirrored=False)
    above = _terms(
        used, propensities, pieces.weight, 1.0 - reward, (worst, span), cap, is_mirrored=True
    )
    scale = 1.0 + cap
    low = scale * lower_bounds(below, 0.5 / scale, times, alpha / 2.0, scale)
    high = 1.0 - scale * lower_bounds(above, 0.5 / scale, times, alpha / 2.0, scale)
    # The two sides estimate the value and 1 less it; their mean varies less than either.
    estimate = 0.5 + 0.5 * scale * np.cumsum(below - above)[times - 1] / times
    if not propensities.moves:
        low, high = np.maximum.accumulate(low), np.minimum.accumulate(high)
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    parts = [worst + span * one for one in (estimate, low, high)]
    return ConfidenceSequence(name_of(policy), "value", level, times, *parts)


def gain_sequence(
    log: object,
    policy: Target,
    *,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    level: float = 0.95,
    looks: Any = None,
    check: bool = True,
) -> ConfidenceSequence:
    """Return a confidence sequence for the gain of a policy over the logged policy.

    The gain at a look is the mean over the rounds up to it: a logged policy that learns becomes
    better, so a gain may shrink. `ConfidenceSequence.advice` is the stop rule.

    Parameters
    ----------
    log : Logged, mapping or object with `columns()`
        The log.
    policy : target
        A target, as in `evaluate`.
    bounds : tuple of float or None, default (0.0, 1.0)
        As in `value_sequence`.
    level : float, default 0.95
        Confidence level.
    looks : array_like of int, optional
        As in `value_sequence`.
    check : bool, default True
        Raise if `audit_log` finds a problem.

    Returns
    -------
    ConfidenceSequence
        The bounds.

    Raises
    ------
    InvalidValue
        As in `value_sequence`.
    """
    used, propensities, times = _prepare(log, policy, bounds, level, looks, check)
    pieces = pieces_of(used, propensities)
    alpha = 1.0 - level
    if bounds is None:
        estimate, low, high = _asymptotic(pieces.outcomes() - pieces.reward, times, alpha)
        return ConfidenceSequence(name_of(policy), "gain", level, times, estimate, low, high)
    worst, best = bounds
    span = best - worst
    reward = (pieces.reward - worst) / span
    # E[(w - 1) r] is the gain, E[(w - 1) (1 - r)] minus the gain, and both terms are at least -1.
    below = 1.0 + (pieces.weight - 1.0) * reward
    above = 1.0 + (pieces.weight - 1.0) * (1.0 - reward)
    low = lower_bounds(below, 1.0, times, alpha / 2.0) - 1.0
    high = 1.0 - lower_bounds(above, 1.0, times, alpha / 2.0)
    estimate = 0.5 * np.cumsum(below - above)[times - 1] / times
    low, high = np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)
    parts = [span * one for one in (estimate, low, high)]
    return ConfidenceSequence(name_of(policy), "gain", level, times, *parts)


def _terms(
    log: Logged,
    propensities: Propensities,
    weight: Floats,
    reward: Floats,
    units: tuple[float, float],
    cap: float,
    *,
    is_mirrored: bool,
) -> Floats:
    """Return the terms phi / (1 + k) whose mean is bounded from below.

    phi = w (r - min(q, k / w)) + sum_a pi(a) min(q(a), k / w(a)) is at least -k, for any k >= 0
    and model q, and its expectation is the value (Waudby-Smith et al. 2022).

    Parameters
    ----------
    log : Logged
        The log.
    propensities : Propensities
        Probabilities of the target.
    weight, reward : ndarray of shape (n,)
        Weights, and rewards from 0 to 1.
    units : tuple of float
        Smallest reward, and the range of rewards.
    cap : float
        k.
    is_mirrored : bool
        Whether rewards are counted down from the largest.
    """
    if cap == 0.0:
        terms: Floats = weight * reward
        return terms
    if log.propensity is None or log.mean is None:
        raise InvalidValue(
            "log must have 'mean' and the probability of every arm for a cap above 0: give them, "
            "or cap=0"
        )
    worst, span = units
    q = np.clip((np.where(log.candidates, log.mean, worst) - worst) / span, 0.0, 1.0)
    q = 1.0 - q if is_mirrored else q
    row, propensity = np.arange(log.n_rounds), log.propensity.copy()
    # Weights divide by the logged probability, of which a table may have fewer digits.
    propensity[row, log.chosen] = log.probability
    most = np.full(propensity.shape, np.inf)
    np.divide(cap * propensity, propensities.rows, out=most, where=propensities.rows > 0.0)
    capped = np.minimum(q, most)
    phi = weight * (reward - capped[row, log.chosen]) + (propensities.rows * capped).sum(axis=1)
    scaled: Floats = phi / (1.0 + cap)
    return scaled


def _asymptotic(terms: Floats, looks: Ints, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Return mean and bounds of an asymptotic confidence sequence (Waudby-Smith et al. 2024).

    Parameters
    ----------
    terms : ndarray of shape (n,)
        Terms whose running mean is bounded.
    looks : ndarray of int
        Numbers of rounds.
    alpha : float
        Probability that a bound is ever wrong, in the limit.
    """
    rho2 = (-2.0 * math.log(alpha) + math.log(1.0 - 2.0 * math.log(alpha))) / TIGHTEST
    mean = np.cumsum(terms)[looks - 1] / looks
    square = np.cumsum(terms * terms)[looks - 1] / looks
    inner = looks * np.maximum(square - mean * mean, 0.0) * rho2 + 1.0
    width = np.sqrt(2.0 * inner / (looks**2 * rho2) * np.log(np.sqrt(inner) / alpha))
    return mean, mean - width, mean + width


def _prepare(
    log: object,
    policy: Target,
    bounds: tuple[float, float] | None,
    level: float,
    looks: Any,
    check: bool,
) -> tuple[Logged, Propensities, Ints]:
    """Return the rounds with rewards, the target's propensities and the looks, all checked."""
    given = Logged.of(log)
    checks.real("level", level, above=0.0, max_value=1.0 - 1e-12)
    if checks.flag("check", check):
        require_sound(given)
    used = given.head(given.n_rewarded)
    if bounds is not None:
        check_bounds(used.reward, bounds)
    first = ASYMPTOTIC_START if bounds is None else 1
    if used.n_rounds < first:
        raise InvalidValue(
            f"log must have {first} rounds before its first missing reward, got {used.n_rounds}"
        )
    return used, Tracks(used).propensities(policy), _looks(looks, first, used.n_rounds)


def _looks(looks: Any, first: int, n: int) -> Ints:
    if looks is None:
        return np.unique(np.linspace(first, n, min(N_LOOKS, n - first + 1)).astype(np.int64))
    times = checks.floats("looks", looks)
    right = times.ndim == 1 and times.size > 0 and bool((times == times.round()).all())
    if not right or times.min() < first or times.max() > n or (np.diff(times) <= 0).any():
        raise InvalidValue(
            f"looks must be increasing whole numbers from {first} to {n}, got {shown(looks)}"
        )
    return times.astype(np.int64)
