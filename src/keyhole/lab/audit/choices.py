"""The choices of Thompson sampling where one arm is clearly best, as appendix E counts them.

An arm i is clearly best (A_i^kappa, eq:kappa) where it leads every other by more than kappa |y|.
Given the past, scores are independent normals, so that probabilities of choices are integrals of
one dimension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from keyhole.lab.audit.paths import Floats, Ints, Replay, paths, replay
from keyhole.theory import bounds

if TYPE_CHECKING:
    from keyhole.lab.audit.scope import Scope

# Points of the midpoint rule, at even steps of probability.
NODES = (np.arange(32) + 0.5) / 32
# Odds beyond this are as good as infinite, and their sums stay finite.
LARGEST_ODDS = 1e100
# First rounds that are drawn to compute odds before any pull, and the fewest for an arm.
FIRST_ROUNDS, FEWEST_ROUNDS = 10_000, 500


class Choices(NamedTuple):
    """Sums over rounds in which one arm is clearly best, in every replication.

    Parameters
    ----------
    shortfall : ndarray of shape (replications, arms)
        The expected number of pulls of an arm, less its pulls, over Azuma's limit (lem:azu).
    odds : ndarray of shape (replications, arms, arms)
        The sum of odds against i's sample over their bounds, over Markov's limit (eq:phiinv2).
    terms : ndarray of shape (replications, 3, arms, arms)
        The three sums of eq:decomp at the end, for i clearly best and j pulled.
    growing : ndarray of shape (replications, times, 4)
        The three sums over all pairs, and their total, up to each checkpoint.
    """

    shortfall: Floats
    odds: Floats
    terms: Floats
    growing: Floats


class States(NamedTuple):
    """The rounds in which an arm is clearly best, with the posterior before each."""

    rounds: Ints  # (C,)
    best: Ints  # (C,)
    values: Floats  # (C, n_arms), y'eta
    means: Floats  # (C, n_arms), of scores
    scales: Floats  # (C, n_arms), standard deviations of scores
    n: Floats  # (C,), pulls of the best arm before

    @property
    def leads(self) -> Floats:
        """The lead of the best arm over each arm, (C, n_arms)."""
        lead: Floats = np.take_along_axis(self.values, self.best[:, None], axis=1) - self.values
        return lead


def choices(scope: Scope) -> Choices:
    """Sum the probabilities of choices of every replication of a scope, of arms of their own."""
    p = np.array([one.value for one in scope.promises.instance.p])
    seen = []
    for k, arms in enumerate(scope.arms):
        one = replay(scope.world, arms, seed=scope.seed, replication=k)
        seen.append(_sums(states(one, scope), arms, scope, p))
    return Choices(*(np.array(column) for column in zip(*seen, strict=True)))


def states(one: Replay, scope: Scope) -> States:
    """Return the rounds of a replication in which an arm is clearly best.

    Parameters
    ----------
    one : Replay
        The replication.
    scope : Scope
        The scope with kappa and eta.
    """
    values = np.einsum("tnd,nd->tn", one.y, scope.stated.eta)
    size = np.sqrt((one.y**2).sum(axis=(1, 2)))
    ordered = np.sort(values, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > scope.constants.kappa * size
    rounds, n_arms = np.flatnonzero(clear), values.shape[1]
    means, scales, n = np.empty((3, len(rounds), n_arms))
    for stretch, made in paths(one, one.arms, n_arms, scope.learner.prior_precision):
        rows = np.flatnonzero((rounds >= stretch[0]) & (rounds <= stretch[-1]))
        for i, path in enumerate(made):
            y, place = one.y[rounds[rows], i], path.before(rounds[rows])
            means[rows, i] = np.einsum("tj,tj->t", y, path.means[place])
            widths = np.einsum("ti,tij,tj->t", y, path.covariances[place], y)
            # Samples without dispersion are means, up to rounding.
            scales[rows, i] = np.maximum(scope.v * np.sqrt(widths), max(scope.rounding, 1e-300))
            n[rows, i] = path.n[place]
    best = values[rounds].argmax(axis=1)
    return States(rounds, best, values[rounds], means, scales, n[np.arange(len(rounds)), best])


def _sums(at: States, arms: Ints, scope: Scope, p: Floats) -> tuple[Floats, ...]:
    """Return the fields of `Choices` for one replication."""
    n_arms, horizon, delta = len(p), scope.horizon, scope.delta
    below, above = wrong_choices(at)
    # lem:term2 and lem:term3 use a quarter of the lead, where E^2 is defined with half of it.
    near = at.means <= at.values + 0.25 * at.leads
    terms = np.stack([below * near, above * near, (below + above) * ~near], axis=1)  # (C, 3, N)
    short = 1.0 - (below + above).sum(axis=1) - (arms[at.rounds] == at.best)
    bound = _allowed(scope, at.n)
    odds = _odds(at) / bound[:, None]
    by_arm = np.eye(n_arms)[at.best]  # (C, N), 1 for the best arm
    pairs = n_arms * (n_arms - 1)
    # The expectation of a sum of odds over their bounds is at most the number of such rounds.
    markov = np.maximum(horizon * p, 1e-300)[:, None] * pairs / delta
    azuma = np.sqrt(2.0 * horizon * np.log(n_arms / delta))
    per_round = terms.sum(axis=2)  # (C, 3)
    four = np.concatenate([per_round, per_round.sum(axis=1, keepdims=True)], axis=1)
    upto = np.searchsorted(at.rounds, scope.times)  # rounds before each checkpoint
    growing = np.concatenate([np.zeros((1, 4)), four.cumsum(axis=0)])[upto]
    return (
        by_arm.T @ short / azuma,
        by_arm.T @ odds / markov,
        np.einsum("ci,ckj->kij", by_arm, terms),
        growing,
    )


def _allowed(scope: Scope, n: Floats) -> Floats:
    """Return the bound on odds after n pulls, which is infinite without noise."""
    if scope.is_noiseless:
        return np.full(n.shape, np.inf)
    return bounds.missed_odds(scope.constants, horizon=scope.horizon, n=n)


def first_odds(scope: Scope) -> float:
    """Return a lower bound on E[(1 - p_ijt) / p_ijt] over its bound in the first round.

    Before any pull all means are 0, so that the odds are a function of y alone, drawn here apart
    from all replications. The largest 1% of them are cut off: an expectation is not below that,
    however heavy the tail of the odds is.

    Parameters
    ----------
    scope : Scope
        The scope with kappa, eta and v.

    Returns
    -------
    float
        The largest ratio over pairs of arms. Above 1 eq:phiinv2 is false at t = 1.
    """
    none = np.zeros(FIRST_ROUNDS, dtype=np.intp)
    one = replay(scope.stated, none, seed=scope.seed, replication=scope.replications)
    values = np.einsum("tnd,nd->tn", one.y, scope.stated.eta)
    ordered = np.sort(values, axis=1)
    size = np.sqrt((one.y**2).sum(axis=(1, 2)))
    rounds = np.flatnonzero(ordered[:, -1] - ordered[:, -2] > scope.constants.kappa * size)
    best, seen = values[rounds].argmax(axis=1), values[rounds]
    scales = scope.constants.v * np.linalg.norm(one.y[rounds], axis=2)
    at = States(rounds, best, seen, np.zeros_like(seen), scales, np.zeros(len(rounds)))
    odds, largest = _odds(at) / _allowed(scope, at.n)[:, None], 0.0
    for i in range(seen.shape[1]):
        own = odds[best == i]
        if len(own) >= FEWEST_ROUNDS:
            cut = np.minimum(own, np.quantile(own, 0.99, axis=0))
            largest = max(largest, float(cut.mean(axis=0).max()))
    return largest


def _odds(at: States) -> Floats:
    """Return (1 - p_ijt) / p_ijt, for i the best arm and every j (lem:inq); 0 for j = i."""
    row = np.arange(len(at.best))
    mean, scale = at.means[row, at.best], at.scales[row, at.best]
    middle = at.values + 0.5 * at.leads
    z = (mean[:, None] - middle) / scale[:, None]
    odds: Floats = np.exp(np.minimum(log_ndtr(-z) - log_ndtr(z), np.log(LARGEST_ODDS)))
    odds[row, at.best] = 0.0
    return odds


def wrong_choices(at: States) -> tuple[Floats, Floats]:
    """Return the probability to choose each arm that is not best, split by its sample's score.

    Parameters
    ----------
    at : States
        The rounds.

    Returns
    -------
    below, above : ndarray of shape (C, n_arms)
        The probability that arm j is chosen with a score below (E^1) or above the middle of its
        value and the best arm's. 0 for the best arm.
    """
    below, above = np.zeros((2, *at.means.shape))
    middle = at.values + 0.5 * at.leads
    for j in range(at.means.shape[1]):
        rows = at.best != j
        mean, scale = at.means[rows], at.scales[rows]
        reach = ndtr((middle[rows, j] - mean[:, j]) / scale[:, j])
        rest = ndtr((mean[:, j] - middle[rows, j]) / scale[:, j])
        for found, mass, sign in ((below, reach, 1.0), (above, rest, -1.0)):
            # Quantiles of j's score within that side, from the side's outer end.
            z = sign * ndtri(np.maximum(NODES * mass[:, None], 1e-300))
            score = mean[:, [j]] + scale[:, [j]] * z
            wins = np.ones_like(score)
            for k in range(mean.shape[1]):
                if k != j:
                    wins *= ndtr((score - mean[:, [k]]) / scale[:, [k]])
            found[rows, j] = mass * wins.mean(axis=1)
    return below, above
