"""Measurements of estimates and regret in every replication, each over the limit that is claimed.

A ratio above 1 breaks the claim in that replication.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keyhole.lab.audit.paths import Floats, Path, Replay, paths, replay
from keyhole.theory import Constants, bounds

if TYPE_CHECKING:
    from keyhole.lab.audit.scope import Scope


class Trace(NamedTuple):
    """Measurements of every replication, over all rounds.

    Parameters
    ----------
    entries, lengths : ndarray of shape (replications,)
        The largest entry of any observation over v_T, and the greatest length over L (lem:tr).
    tails : ndarray of shape (replications,)
        The largest |reward - y'eta| over its limit (lem:subg).
    reach : ndarray of shape (replications, parameters)
        The maximum of |mean - eta|_B over its radius (lem:subg).
    martingale : ndarray of shape (replications, parameters)
        The maximum of log M over log(1 / delta) (lem:dti).
    eigenvalues : ndarray of shape (replications, parameters)
        The largest eigenvalue of B^-1 at the end over 2 / (lambda_m n) (lem:eig).
    estimated, sampled : ndarray of shape (replications, parameters)
        The maxima of |mean - eta| and of |sample - eta| over their bounds (lem:eta0, lem:eta1),
        from `Scope.enough` pulls on.
    errors : ndarray of shape (replications, times, parameters)
        |mean - eta| at the checkpoints.
    pulls : ndarray of shape (replications, parameters)
        n at the end.
    regret, suboptimal : ndarray of shape (replications, times)
        Regret, and the number of suboptimal pulls, up to each checkpoint.
    last : ndarray of shape (replications,)
        1 if the last pull was suboptimal, and 0 if not.
    """

    entries: Floats
    lengths: Floats
    tails: Floats
    reach: Floats
    martingale: Floats
    eigenvalues: Floats
    estimated: Floats
    sampled: Floats
    errors: Floats
    pulls: Floats
    regret: Floats
    suboptimal: Floats
    last: Floats


class Limits(NamedTuple):
    """The limits that are claimed, those of estimates after n = 0, 1, ... pulls."""

    entry: float
    length: float
    tail: float
    log_m: float
    radii: Floats
    estimates: Floats
    samples: Floats
    eigenvalues: Floats


def limits_of(c: Constants, *, horizon: int, parameters: int) -> Limits:
    """Return the limits of the claims for all parameters and rounds at once.

    Parameters
    ----------
    c : Constants
        The constants of the world that is assumed.
    horizon : int
        The number of rounds.
    parameters : int
        The number of parameters, which share delta.
    """
    n = np.arange(horizon + 1.0)
    length = float(bounds.length(c, horizon=horizon))
    each = replace(c, delta=c.delta / parameters, longest=length)
    return Limits(
        entry=float(bounds.truncation(c, horizon=horizon)),
        length=length,
        # P(|w| > z) <= 2 exp(-z^2 / (2 R^2)), for T N errors at once.
        tail=c.r * float(np.sqrt(2.0 * np.log(2.0 * horizon * c.n_arms / c.delta))),
        log_m=float(np.log(1.0 / each.delta)),
        radii=bounds.confidence_radius(each, horizon=horizon, n=n),
        estimates=bounds.estimation_error(c, horizon=horizon, n=n),
        samples=bounds.sampling_error(c, horizon=horizon, n=n),
        eigenvalues=bounds.covariance_bound(c, n=n),
    )


def trace(scope: Scope) -> Trace:
    """Measure every replication of a scope."""
    limits = limits_of(scope.constants, horizon=scope.horizon, parameters=scope.parameters)
    # Without noise the limit is 0, and errors are those of rounding.
    limits = limits._replace(tail=max(limits.tail, scope.rounding, 1e-300))
    seen = []
    for k, arms in enumerate(scope.arms):
        one = replay(scope.world, arms, seed=scope.seed, replication=k)
        seen.append((*_of_rounds(one, scope, limits), *_of_parameters(one, scope, limits),
                     *_of_regret(one, scope)))  # fmt: skip
    return Trace(*(np.array(column) for column in zip(*seen, strict=True)))


def _of_rounds(one: Replay, scope: Scope, limits: Limits) -> tuple[float, float, float]:
    """Return entries, lengths and tails: what depends on no choice."""
    y = one.rounds.observations
    noise = one.rounds.rewards - np.einsum("tnd,nd->tn", one.y, scope.stated.eta)
    longest = float(np.linalg.norm(y, axis=2).max())
    return (
        float(np.abs(y).max()) / limits.entry,
        longest / limits.length,
        float(np.abs(noise).max()) / limits.tail,
    )


def _of_parameters(one: Replay, scope: Scope, limits: Limits) -> tuple[Floats, ...]:
    """Return reach, martingale, eigenvalues, estimated, sampled, errors and pulls."""
    c, eta = scope.constants, scope.stated.eta[: scope.parameters]
    of = np.zeros_like(one.arms) if scope.shared else one.arms
    normals = scope.v * one.source["audit"].standard_normal((scope.horizon, scope.world.dim))
    reach, estimated, sampled, highest, log_m, eigenvalues, n = np.zeros((7, scope.parameters))
    errors = np.empty((len(scope.times), scope.parameters))
    for rounds, made in paths(one, of, scope.parameters, scope.learner.prior_precision):
        at = scope.times[(scope.times > rounds[0]) & (scope.times <= rounds[-1] + 1)]
        for i, path in enumerate(made):
            miss = path.means - eta[i]
            error = np.linalg.norm(miss, axis=1)
            # The checkpoint t is after round t, whose place is t - 1 from 0.
            errors[np.searchsorted(scope.times, at), i] = error[path.before(at)]
            if len(path.rounds):
                ratios = _ratios(path, miss, error, normals[path.rounds], limits, scope.enough)
                reach[i], estimated[i], sampled[i] = np.maximum(
                    (reach[i], estimated[i], sampled[i]), ratios
                )
                r = max(c.r, scope.rounding, 1e-300)  # where R is 0, nothing is claimed
                steps = log_m[i] + np.cumsum(_log_d(one, path, eta[i], r))
                highest[i], log_m[i] = max(highest[i], steps.max()), steps[-1]
            n[i] = path.n[-1]
            if rounds[-1] + 1 == scope.horizon and n[i] >= scope.enough:
                smallest = np.linalg.eigvalsh(path.precisions[-1])[0]
                eigenvalues[i] = 1.0 / smallest / limits.eigenvalues[int(n[i])]
    return reach, highest / limits.log_m, eigenvalues, estimated, sampled, errors, n


def _ratios(
    path: Path, miss: Floats, error: Floats, normals: Floats, limits: Limits, enough: float
) -> Floats:
    """Return the largest ratios of reach, estimates and samples to their limits in a path."""
    n = path.n[1:].astype(int)
    squared = np.einsum("ni,nij,nj->n", miss[1:], path.precisions[1:], miss[1:])
    roots = np.linalg.cholesky(path.covariances[1:])
    drawn = np.linalg.norm(miss[1:] + np.einsum("nij,nj->ni", roots, normals), axis=1)
    # Before lem:eig can hold, the prior's precision of 1 is all that some directions have: in large
    # units, where lambda_m is large, a sample is then farther off than lem:eta1 allows.
    late = n >= enough
    return np.array(
        [
            (np.sqrt(np.maximum(squared, 0.0)) / limits.radii[n]).max(),
            (error[1:] / limits.estimates[n]).max(where=late, initial=0.0),
            (drawn / limits.samples[n]).max(where=late, initial=0.0),
        ]
    )


def _log_d(one: Replay, path: Path, eta: Floats, r: float) -> Floats:
    """Return log D of each pull: w y'eta / R - (y'eta)^2 / 2 (lem:dti)."""
    arms = one.arms[path.rounds]
    value = one.y[path.rounds, arms] @ eta
    logs: Floats = (one.rounds.rewards[path.rounds, arms] - value) * value / r - 0.5 * value**2
    return logs


def _of_regret(one: Replay, scope: Scope) -> tuple[Floats, Floats, float]:
    """Return regret, the number of suboptimal pulls, and whether the last one was."""
    values = one.rounds.values
    gap = values.max(axis=1) - values[np.arange(len(values)), one.arms]
    at = scope.times - 1
    wrong = (gap > 0.0).astype(float)
    return gap.cumsum()[at], wrong.cumsum()[at], float(wrong[-1])
