"""`evaluate`: what other policies would have earned, from a log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.core import Floats
from keyhole.errors import InvalidValue, shown
from keyhole.evaluation.adaptive import mean_squares, min_support, variances
from keyhole.evaluation.audit import LIMIT, counts_left_out, require_sound
from keyhole.evaluation.bounds import check_bounds
from keyhole.evaluation.estimators import CENTRED, ESTIMATORS, Estimate, Pieces, effective_size
from keyhole.evaluation.formats import Format
from keyhole.evaluation.logged import Logged
from keyhole.evaluation.result import Evaluation, PolicyValue
from keyhole.evaluation.targets import Propensities, Tracks, named_targets

# Estimators that need the variance of each round.
ADAPTIVE = ("minvar", "stablevar")


def evaluate(
    log: object,
    policies: Any,
    *,
    format: str | Format | None = None,  # noqa: A002 - the word of the command line, too
    estimator: str | Iterable[str] | None = None,
    level: float = 0.95,
    threshold: float = 10.0,
    shrinkage: float = 100.0,
    bounds: tuple[float, float] | None = None,
    min_size: float = 30.0,
    check: bool = True,
) -> Evaluation:
    """Estimate the value of policies from the log of another one.

    The value is the mean reward of choosing so in the logged rounds, given the data that were
    collected: at a new context for a target that does not learn, and over these rounds for one that
    does. Rounds from the first missing reward on are not used. Intervals have closed forms, with
    Student's quantiles where a few rounds dominate.

    Parameters
    ----------
    log : Logged, Log, path, list of paths, mapping, frame or Arrow table
        The log, as in `Logged.of`; also of Vowpal Wabbit, Personalizer, Open Bandit or obp.
    policies : target, list of targets, or mapping from names to targets
        A target is a `Policy`, `FixedArm`, `OnFeatures`, `WithFloor`, the name of an arm,
        "uniform", "as logged", or an array (n, K) of probabilities. A policy with the log's sharing
        and prior precision is scored by the logged means and widths. Another prior or sharing, a
        learned v, or a log without means replays the posterior from the logged observations.
    format : str or Format, optional
        Format of the log, as in `Logged.of`. By default that of its content.
    estimator : str or iterable of str, optional
        One or more of "ips", "snips", "dm", "dr", "sndr", "switch", "dros", "cressie-read",
        "minvar", "stablevar". By default "minvar", or "snips" for a log without means.
    level : float, default 0.95
        Confidence level.
    threshold : float, default 10.0
        Weights above it are set to 0 by "switch".
    shrinkage : float, default 100.0
        l of the weights l w / (w^2 + l) of "dros".
    bounds : tuple of float, optional
        Smallest and largest possible reward, for the interval of "cressie-read". By default the
        smallest and the largest that the log has.
    min_size : float, default 30.0
        Smallest effective sample size for which an estimate is given.
    check : bool, default True
        Raise if `audit_log` finds a problem.

    Returns
    -------
    Evaluation
        A row for each policy and estimator.

    Raises
    ------
    InvalidValue
        If the log is not sound, lacks what a target or an estimator needs, or an argument is not
        valid.

    Examples
    --------
    >>> import keyhole as kh
    >>> log = dict(arms=["A", "B"], chosen=[0, 1] * 50, probability=[0.5] * 100,
    ...            reward=[1.0, 3.0] * 50)
    >>> found = kh.evaluate(log, {"always B": "B"}, estimator="snips")
    >>> found["always B"].value
    3.0
    """
    given = Logged.of(log, format=format)
    level = checks.real("level", level, above=0.0, max_value=1.0 - 1e-12)
    threshold = checks.real("threshold", threshold, min_value=0.0)
    shrinkage = checks.real("shrinkage", shrinkage, min_value=0.0)
    min_size = checks.real("min_size", min_size, min_value=0.0)
    usual = "snips" if given.mean is None else "minvar"
    names = _estimators(usual if estimator is None else estimator)
    if checks.flag("check", check):
        require_sound(given)
    used = given.head(given.n_rewarded)
    if used.n_rounds < 2:
        raise InvalidValue(
            f"log must have 2 rounds before its first missing reward, got {used.n_rounds}: "
            f"{given.missing or 'there are no more'}"
        )
    if bounds is not None:
        check_bounds(used.reward, bounds)
        bounds = (float(bounds[0]), float(bounds[1]))
    options: dict[str, Any] = {"threshold": threshold, "shrinkage": shrinkage, "bounds": bounds}
    tracks = Tracks(used)
    rows: list[PolicyValue] = []
    for policy, target in named_targets(policies).items():
        propensities = tracks.propensities(target)
        pieces = pieces_of(used, propensities)._replace(**options)
        if any(name in ADAPTIVE for name in names):
            pieces = pieces._replace(
                variance=variances(propensities, tracks.logged, tracks.checkpoints),
                mean_square=mean_squares(propensities, tracks.logged),
            )
        unsupported, limits = _unsupported(used, propensities), (level, min_size)
        rows += [_row(policy, name, pieces, unsupported, limits, given.missing) for name in names]
    return Evaluation(
        rows=tuple(rows),
        level=level,
        n_used=used.n_rounds,
        n_rounds=given.n_rounds,
        logged=float(used.reward.mean()),
        left_out=counts_left_out(given),
        missing=given.missing,
    )


def pieces_of(log: Logged, propensities: Propensities) -> Pieces:
    """Return the inputs of the estimators.

    Parameters
    ----------
    log : Logged
        A log in which every round has a reward.
    propensities : Propensities
        Probabilities of the target.
    """
    row = np.arange(log.n_rounds)
    weight = propensities.rows[row, log.chosen] / log.probability
    if log.mean is None:
        return Pieces(weight, log.reward)
    # An arm that is no candidate has no mean, and the target's probability 0.
    model = log.mean if log.candidates.all() else np.where(log.candidates, log.mean, 0.0)
    target = np.einsum("nk,nk->n", propensities.rows, model)
    logged = None
    if log.propensity is not None:
        logged = np.einsum("nk,nk->n", log.propensity, model)
    return Pieces(
        weight,
        log.reward,
        model[row, log.chosen],
        target,
        q_logged=logged,
        moves=propensities.moves,
    )


def _row(
    policy: str,
    name: str,
    pieces: Pieces,
    unsupported: float,
    limits: tuple[float, float],
    missing: str,
) -> PolicyValue:
    level, min_size = limits
    found = ESTIMATORS[name](pieces)
    reward = pieces.reward
    gain = found.minus(_earned(pieces, name))
    size = float(len(reward)) if found.weight is None else effective_size(found.weight)
    note = _doubt(pieces.weight) or _sameness(found)
    low, high = found.interval(level)
    gain_low, gain_high = gain.interval(level)
    numbers = (found.value, found.error, low, high, gain.value, gain_low, gain_high)
    if size < min_size:
        note = (
            f"refused: the effective sample size is {size:.1f}, below {min_size:g}: "
            f"{_cause(len(reward), min_size, missing)}"
        )
        nan = float("nan")
        numbers = (nan, nan, nan, nan, nan, nan, nan)
    return PolicyValue(
        policy,
        name,
        *numbers,
        mean_weight=float(pieces.weight.mean()),
        effective_size=size,
        max_weight=float(pieces.weight.max()),
        unsupported=unsupported,
        note=note,
    )


def _cause(n_used: int, min_size: float, missing: str) -> str:
    """Return why an effective sample size is too small.

    Parameters
    ----------
    n_used : int
        Number of rounds that are used, which it is at most.
    min_size : float
        The smallest that is not refused.
    missing : str
        What is said of rounds without a reward.
    """
    if n_used < min_size:
        return missing or f"the log has {n_used:,} rounds"
    seldom = "the logged policy chose such arms too seldom"
    return f"{seldom}; {missing}" if missing else seldom


def _earned(pieces: Pieces, name: str) -> Estimate:
    """Return what the logged policy earned, its deviations counted as those of the estimator.

    Parameters
    ----------
    pieces : Pieces
        What estimates are made of.
    name : str
        The estimator.
    """
    reward = pieces.reward
    centre: Floats | float = float(reward.mean())
    if pieces.moves and name in CENTRED and pieces.q_logged is not None:
        centre = pieces.q_logged
    return Estimate(float(reward.mean()), (reward - centre) / len(reward))


def _sameness(found: Estimate) -> str:
    """Return a note if rewards do not vary, so that an interval has no width."""
    if found.error > 0.0:
        return ""
    return (
        "all rewards that count are equal: the interval has no width, and says nothing of rewards "
        "that are rare"
    )


def _doubt(weight: Floats) -> str:
    """Return a note if the mean weight is far from 1, which it is in expectation."""
    off = float(weight.mean()) - 1.0
    error = float(weight.std()) / np.sqrt(len(weight))
    if abs(off) <= max(LIMIT * error, 1e-6):
        return ""
    return (
        f"the mean weight is {1.0 + off:.3f}, and 1 is expected: propensities are wrong, or the "
        "logged policy hardly ever chose such arms"
    )


def _unsupported(log: Logged, propensities: Propensities) -> float:
    if log.propensity is None:
        return float("nan")
    rare = log.propensity < min_support(log.n_rounds)
    return float(propensities.rows[rare].sum() / log.n_rounds)


def _estimators(given: str | Iterable[str]) -> list[str]:
    if not isinstance(given, str) and not checks.is_listing(given):
        raise checks.unknown("estimator", given, ESTIMATORS)
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        if not isinstance(name, str) or name not in ESTIMATORS:
            raise checks.unknown("estimator", name, ESTIMATORS)
    if not names:
        raise InvalidValue(f"estimator must be one or more names, got {shown(given)}")
    return names
