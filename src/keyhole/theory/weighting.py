"""The regret per round of Thompson sampling with propensity weights, the cost of the cure.

Given y, arm i is chosen with probability p_i(y) and its reward has the weight w = c_s / p_i, where
c_s = epsilon_s / N. Whatever the rule, E[w y y' 1(a = i)] = c_s E[y y'] and E[w y r 1(a = i)] =
c_s E[y r]: the estimate tends to eta, with B = C_t E[y y'] for C_t = sum over s <= t of c_s. Its
covariance is B^-1 M B^-1 with M = sum of c_s^2 E[e^2 y y' / p_i(y)], e = r - y'eta. In the limit
p_i is 1 - epsilon_s + c_s where arm i is best and c_s elsewhere. To that Thompson sampling adds
v^2 B^-1. Scores are then normal about y'eta, and the probability of each mistake is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole import checks
from keyhole.core import Seed, Streams, choice_probabilities
from keyhole.theory.quantities import Quantity, Source
from keyhole.theory.ranges import Floats

# How many rounds are drawn at a time.
BLOCK = 2_000


class WeightedCost(NamedTuple):
    """The regret of a round of Thompson sampling with propensity weights, in two parts.

    Parameters
    ----------
    exploration : Quantity
        That of uniform choices: epsilon_t E[max_k y_k'eta_k - mean_k y_k'eta_k].
    estimation : Quantity
        That of all other choices, by estimates that are not eta yet.
    errors : ndarray of shape (n_arms,)
        The root mean square of the length of estimate - eta.
    """

    exploration: Quantity
    estimation: Quantity
    errors: Floats

    @property
    def total(self) -> float:
        """The sum of both."""
        return self.exploration.value + self.estimation.value


def weighted_cost(
    world: Source,
    *,
    time: int,
    epsilon: float = 1.0,
    decay: float = 0.5,
    v: float | None = None,
    trials: int = 20_000,
    seed: Seed = 0,
) -> WeightedCost:
    """Predict the regret of a round of `WeightedThompsonSampling` with a parameter for each arm.

    To first order in the error of the estimates, for large `time`. Near a tie of two arms the true
    propensities are larger than their limits, so that weighted estimates are somewhat better, and
    the regret a little lower, than predicted. With `selected_regression` it
    says whether the cure is worth its price: compare it with the floor that it removes.

    Parameters
    ----------
    world : World
        The world.
    time : int
        The number of rounds before this one.
    epsilon, decay : float
        As in `WeightedThompsonSampling`.
    v : float, optional
        The dispersion. By default the world's `noise_scale`, as with v="oracle".
    trials : int, default 20,000
        The number of rounds that expectations are taken over, at least 2000.
    seed : int, numpy.random.SeedSequence or None, default 0
        Their seed.

    Returns
    -------
    WeightedCost
        Regret per round, with standard errors over rounds.

    Examples
    --------
    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
    >>> cost = kh.theory.weighted_cost(world, time=10_000)
    >>> cost.estimation.value > cost.exploration.value
    True
    """
    time = checks.integer("time", time, min_value=1)
    epsilon = checks.real("epsilon", epsilon, above=0.0, max_value=1.0)
    decay = checks.real("decay", decay, min_value=0.0, max_value=1.0)
    trials = checks.integer("trials", trials, min_value=BLOCK)
    v = float(world.noise_scale) if v is None else checks.real("v", v, min_value=0.0)
    rates = epsilon * np.arange(1.0, time + 2.0) ** -decay
    now = float(rates[-1])
    spread, sampling = _covariances(world, rates[:-1], seed, trials)
    covariances = spread + v**2 * sampling
    state, costs = world.start(Streams(seed)), []
    for _ in range(trials // BLOCK):
        rounds = world.rounds(state, BLOCK)
        y = np.broadcast_to(rounds.observations, (BLOCK, *world.eta.shape))
        scale = np.sqrt(np.einsum("tnd,nde,tne->tn", y, covariances, y))
        gaps = rounds.values.max(axis=1, keepdims=True) - rounds.values
        mistakes = (choice_probabilities(rounds.values, scale) * gaps).sum(axis=1)
        costs.append([now * gaps.mean(axis=1), (1.0 - now) * mistakes])
    each = np.concatenate(costs, axis=1)  # (2, trials)
    means, errors = each.mean(axis=1), each.std(axis=1) / np.sqrt(each.shape[1])
    words = ("regret per round of uniform choices", "regret per round of estimates that err")
    exploration, estimation = (
        Quantity(float(mean), float(error), "Regret(T)", meaning)
        for mean, error, meaning in zip(means, errors, words, strict=True)
    )
    lengths = np.sqrt(np.trace(spread, axis1=1, axis2=2))
    return WeightedCost(exploration, estimation, lengths)


def _covariances(world: Source, rates: Floats, seed: Seed, trials: int) -> tuple[Floats, Floats]:
    """Return the covariance of each arm's estimate, and B^-1, (n_arms, dim, dim) each.

    Parameters
    ----------
    world : World
        The world.
    rates : ndarray
        epsilon_s of each round so far.
    seed : int, numpy.random.SeedSequence or None
        The seed of the rounds for moments.
    trials : int
        Their number.
    """
    n_arms, dim = world.eta.shape
    state = world.start(Streams(seed))
    gram, best, rest = np.zeros((3, n_arms, dim, dim))
    for _ in range(trials // BLOCK):
        rounds = world.rounds(state, BLOCK)
        y = np.broadcast_to(rounds.observations, (BLOCK, n_arms, dim))
        squares = (rounds.rewards - rounds.values) ** 2
        is_best = rounds.values == rounds.values.max(axis=1, keepdims=True)
        gram += np.einsum("tnd,tne->nde", y, y)
        best += np.einsum("tn,tnd,tne->nde", squares * is_best, y, y)
        rest += np.einsum("tn,tnd,tne->nde", squares * ~is_best, y, y)
    n = trials // BLOCK * BLOCK
    shares = rates / n_arms
    total, chosen = shares.sum(), (shares**2 / (1.0 - rates + shares)).sum()
    inverse = np.linalg.inv(np.eye(dim) + total * gram / n)  # a prior precision of 1
    meat = (chosen * best + total * rest) / n
    return inverse @ meat @ inverse, inverse
