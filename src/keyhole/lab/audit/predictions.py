"""Predictions of the error of y'eta by functions of y, which ass:subg excludes."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from keyhole.lab.audit.paths import Floats, replay

if TYPE_CHECKING:
    from keyhole.lab.audit.scope import Scope

# Rounds of their own from which the function is fitted, apart from all replications.
TRAINING = 20_000
# Directions of y that enter the cubic terms: eta's first, then others.
DIRECTIONS = 5
# A variance below this share of the largest is 0 up to rounding.
TINY = 1e-12


def predictability(scope: Scope) -> Floats:
    """Return the sum of errors times a function of y over its limit, in every replication.

    The function is a cubic polynomial for each arm, fitted to rounds of their own. Given all y's
    the sum of w f(y) is sub-Gaussian with R^2 sum f(y)^2, whatever the function is: the sum exceeds
    R sqrt(2 sum f^2 log(N / delta)) for some arm with probability at most delta.

    Returns
    -------
    ndarray of shape (replications,)
        The largest ratio over arms.
    """
    world, n_arms = scope.world, scope.world.n_arms
    # No replication has this number, so that these rounds are independent of all replications.
    none = np.zeros(TRAINING, dtype=np.intp)
    apart = replay(world, none, seed=scope.seed, replication=scope.replications)
    frames = [_frame(scope, i) for i in range(n_arms)]
    fits = []
    for i in range(n_arms):
        terms = _terms(apart.y[:, i] @ frames[i])
        noise = apart.rounds.rewards[:, i] - apart.y[:, i] @ scope.stated.eta[i]
        fits.append(np.linalg.lstsq(terms, noise, rcond=None)[0])
    ratios = np.empty((scope.replications, n_arms))
    for k, arms in enumerate(scope.arms):
        one = replay(world, arms, seed=scope.seed, replication=k)
        for i in range(n_arms):
            f = _terms(one.y[:, i] @ frames[i]) @ fits[i]
            noise = one.rounds.rewards[:, i] - one.y[:, i] @ scope.stated.eta[i]
            size = np.sqrt(f @ f)
            limit = size * scope.constants.r * np.sqrt(2.0 * np.log(n_arms / scope.delta))
            # Without noise both are sums of errors of rounding.
            rounding = size * scope.rounding * np.sqrt(len(f))
            ratios[k, i] = noise @ f / max(limit, rounding, 1e-300)
    largest: Floats = ratios.max(axis=1).clip(min=0.0)
    return largest


def _frame(scope: Scope, arm: int) -> Floats:
    """Return directions of y, whitened, the first along eta, (dim, directions)."""
    values, vectors = np.linalg.eigh(scope.stated.observation_covariance)
    # Without sensing noise y may have directions that never vary.
    seen = values > TINY * values.max()
    scales, vectors = np.sqrt(values[seen]), vectors[:, seen]
    along = scales * (vectors.T @ scope.stated.eta[arm])
    axes = np.linalg.qr(np.column_stack([along, np.eye(len(along))]))[0]
    frame: Floats = vectors / scales @ axes[:, :DIRECTIONS]
    return frame


def _terms(u: Floats) -> Floats:
    """Return all monomials of degree 1 and 3 of whitened directions."""
    triples = combinations_with_replacement(range(u.shape[1]), 3)
    cubes = [u[:, a] * u[:, b] * u[:, c] for a, b, c in triples]
    return np.column_stack([u, *cubes])
