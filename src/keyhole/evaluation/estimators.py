"""Estimators of a target's value, each with its standard error in closed form.

With e the logged probability and pi the target's, w = pi / e at the chosen arm, q the reward model
and G = sum_a pi(a) q(a) + w (r - q), an estimate is a mean of terms, and its influence is what each
round contributes to its deviation: the standard error is the root of the sum of squared influences.
The difference of two estimates has the difference of their influences.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from keyhole.core import Floats
from keyhole.errors import InvalidValue
from keyhole.evaluation import likelihood


class Pieces(NamedTuple):
    """Inputs of the estimators, (n,) each.

    `q_chosen` and `q_target` are the reward model at the chosen arm and its mean under the target,
    or None without a model; `q_logged` is its mean under the logged policy. `variance` is v_t of
    each round, for adaptive estimates. `moves` is True for a target that learns. `threshold` and
    `shrinkage` are the parameters of `switch` and `dros`. `mean_square` is the mean of w^2 given
    the context of each round; adaptive estimates without it use w^2 itself. `bounds` are the
    smallest and largest possible reward, for `cressie-read`.
    """

    weight: Floats
    reward: Floats
    q_chosen: Floats | None = None
    q_target: Floats | None = None
    variance: Floats | None = None
    threshold: float = 10.0
    shrinkage: float = 100.0
    q_logged: Floats | None = None
    moves: bool = False
    mean_square: Floats | None = None
    bounds: tuple[float, float] | None = None

    @property
    def model(self) -> tuple[Floats, Floats]:
        """The reward model at the chosen arm, and its mean under the target."""
        if self.q_chosen is None or self.q_target is None:
            raise InvalidValue(
                "log must have the column 'mean', the reward model, for this estimator: give one, "
                "or estimator='snips'"
            )
        return self.q_chosen, self.q_target

    def centres(self, value: float) -> Floats | float:
        """Return the expectations of G around which its deviations are counted.

        A target that does not learn has one value, that of a new context: G deviates from it by
        chance and by the context. The value of a target that learns is that over these rounds,
        V_t = sum_a pi_t(a) mu_a(x_t) on average. G deviates from V_t by chance alone, and the model
        stands for V_t: (w (r - q))^2 exceeds the variance of G by (V_t - q_target)^2 on average.
        """
        return self.model[1] if self.moves else value

    def outcomes(self, weight: Floats | None = None) -> Floats:
        """Return sum_a pi(a) q(a) + w (r - q) for the weights, or others in their place."""
        q_chosen, q_target = self.model
        w = self.weight if weight is None else weight
        outcomes: Floats = q_target + w * (self.reward - q_chosen)
        return outcomes


class Estimate(NamedTuple):
    """A value, and what each round contributes to its deviation, (n,).

    `weight` has the importance weights that were used, for the sample size. `spread` is a standard
    error in place of that of the influences, and `ends` returns the interval of a level.
    """

    value: float
    influence: Floats
    weight: Floats | None = None
    spread: float | None = None
    ends: Callable[[float], tuple[float, float]] | None = None

    @property
    def error(self) -> float:
        """The standard error."""
        if self.spread is not None:
            return self.spread
        return float(np.sqrt(self.influence @ self.influence))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the error, (sum s)^2 / sum s^2 of the squared influences s.

        Where a few rounds dominate, the error is itself uncertain, and Student's quantiles with
        these degrees of freedom take the place of the normal ones.
        """
        squares = self.influence * self.influence
        fourth = float(squares @ squares)
        return max(float(squares.sum()) ** 2 / fourth, 1.0) if fourth > 0.0 else np.inf

    def interval(self, level: float) -> tuple[float, float]:
        """Return the confidence interval of a level."""
        if self.ends is not None:
            return self.ends(level)
        tail = 0.5 + level / 2.0
        # A spread is computed from probabilities, and is not dominated by a few rounds.
        quantile = stdtrit(self.freedom, tail) if self.spread is None else ndtri(tail)
        reach = float(quantile) * self.error
        return self.value - reach, self.value + reach

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference to an estimate from the same rounds."""
        return Estimate(self.value - other.value, self.influence - other.influence, self.weight)


def ips(given: Pieces) -> Estimate:
    """Return mean(w r)."""
    return _mean(given.weight * given.reward, given.weight)


def snips(given: Pieces) -> Estimate:
    """Return sum w r / sum w."""
    w, total = given.weight, _positive(given.weight.sum())
    value = float(w @ given.reward / total)
    return Estimate(value, w * (given.reward - value) / total, w)


def dm(given: Pieces) -> Estimate:
    """Return the mean of the reward model under the target; an error of the model is not seen."""
    return _mean(given.model[1], None)


def dr(given: Pieces) -> Estimate:
    """Return mean(G)."""
    outcomes = given.outcomes()
    value = float(outcomes.mean())
    return Estimate(value, (outcomes - given.centres(value)) / len(outcomes), given.weight)


def sndr(given: Pieces) -> Estimate:
    """Return mean(q_target) + sum w (r - q) / sum w."""
    q_chosen, q_target = given.model
    n, total = len(q_target), _positive(given.weight.sum())
    left = given.reward - q_chosen
    correction = float(given.weight @ left / total)
    modelled = float(q_target.mean())
    influence = (q_target - modelled) / n + given.weight * (left - correction) / total
    return Estimate(modelled + correction, influence, given.weight)


def switch(given: Pieces) -> Estimate:
    """Return mean(G) with weights above the threshold set to 0."""
    kept = np.where(given.weight <= given.threshold, given.weight, 0.0)
    return _mean(given.outcomes(kept), kept)


def dros(given: Pieces) -> Estimate:
    """Return mean(G) with weights l w / (w^2 + l), l the shrinkage."""
    w, most = given.weight, given.shrinkage
    # With l = 0 weights of 0 would be 0 / 0.
    shrunk = most * w / np.where(w > 0.0, w * w + most, 1.0)
    return _mean(given.outcomes(shrunk), shrunk)


def cressie_read(given: Pieces) -> Estimate:
    """Return the value of the largest Euclidean likelihood, with the mean weight 1.

    Its error is that of the regression of w r on w, to which it is equal in the limit.
    """
    w, r = given.weight, given.reward
    bounds = given.bounds or (float(r.min()), float(r.max()))
    value, terms, off = likelihood.value(w, r), w * r, w - w.mean()
    square = float(off @ off)
    slope = float(off @ terms) / square if square > 0.0 else 0.0
    influence = (terms - terms.mean() - slope * off) / len(w)
    return Estimate(value, influence, w, ends=partial(likelihood.interval, w, r, bounds))


def minvar(given: Pieces) -> Estimate:
    """Return sum h G / sum h with shares h = 1 / v_t."""
    return _weighted(given, -1.0)


def stablevar(given: Pieces) -> Estimate:
    """Return sum h G / sum h with shares h = v_t^-1/2."""
    return _weighted(given, -0.5)


def _weighted(given: Pieces, power: float) -> Estimate:
    if given.variance is None:
        raise InvalidValue("variance must be given for an adaptive estimator, got None")
    # Of shares only ratios count. A variance may be infinite, but for that of the first round.
    h = (given.variance / given.variance.min()) ** power
    outcomes = given.outcomes()
    total = _positive(h.sum())
    value = float(h @ outcomes / total)
    influence = h * (outcomes - given.centres(value)) / total
    return Estimate(value, influence, h * given.weight, _spread(given, h / total))


def _spread(given: Pieces, share: Floats) -> float | None:
    """Return the standard error of sum g G, with the mean of w^2 in place of w^2.

    It is for targets that do not learn, and None for others: their weights stay moderate.

    Given the context, the variance of g w (r - q) is about s2 g^2 E[w^2], with s2 the mean of
    (r - q)^2 under the target. Exact probabilities give E[w^2] = sum_a pi(a)^2 / e(a), also in
    rounds whose large weight did not come about; the sum of squares (g w (r - q))^2 is too small
    until it does. s2 is estimated with weights g w, which vary least, and with (g w)^2, which is
    right if the variance of rewards depends on context or arm; the larger one counts. The variance
    between contexts is added.

    Parameters
    ----------
    given : Pieces
        What the estimate is made of.
    share : ndarray of shape (n,)
        g of each round, with the sum 1.
    """
    if given.mean_square is None or given.moves:
        return None
    q_chosen, q_target = given.model
    residual = (given.reward - q_chosen) ** 2
    weight = share * given.weight
    scale = float(residual.mean())
    if weight.any():
        square = weight * weight
        scale = float(max(weight @ residual / weight.sum(), square @ residual / square.sum()))
    contexts = share * (q_target - share @ q_target)
    variance = scale * float(share * share @ given.mean_square) + float(contexts @ contexts)
    return float(np.sqrt(variance))


# Every estimator by its name.
ESTIMATORS: dict[str, Callable[[Pieces], Estimate]] = {
    "ips": ips,
    "snips": snips,
    "dm": dm,
    "dr": dr,
    "sndr": sndr,
    "switch": switch,
    "dros": dros,
    "cressie-read": cressie_read,
    "minvar": minvar,
    "stablevar": stablevar,
}


# Estimators whose deviations are counted from the model, if the target learns: see
# `Pieces.centres`.
CENTRED = frozenset({"dr", "minvar", "stablevar"})


def effective_size(weight: Floats) -> float:
    """Return (sum w)^2 / sum w^2, the number of equal weights that would be as precise."""
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares if squares > 0.0 else 0.0


def _mean(terms: Floats, weight: Floats | None) -> Estimate:
    value = float(terms.mean())
    return Estimate(value, (terms - value) / len(terms), weight)


def _positive(total: float) -> float:
    if not total > 0.0:
        raise InvalidValue(
            "the target must have a positive probability at some chosen arm, got weights of 0 only"
        )
    return float(total)
