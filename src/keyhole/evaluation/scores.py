"""`Scores`: mean, width, optimism and dispersion of arms, and the probabilities they imply."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole.core import Floats, Rule, kernels

# Location of an arm that is no candidate: it exceeds another one with probability 0.
NEVER = -1e290


class Scores(NamedTuple):
    """Parameters of the scores mean + width (optimism + dispersion z) of n rounds, (n, K) each."""

    mean: Floats
    width: Floats
    optimism: Floats
    dispersion: Floats

    def under(self, rule: Rule) -> Scores:
        """Return the scores of the same posterior under the fixed numbers of another rule."""
        optimism, dispersion = np.array(rule.optimism), np.array(rule.dispersion)
        return self._replace(optimism=optimism, dispersion=dispersion)


def propensity_of(scores: Scores, epsilon: Floats | float, candidates: NDArray[np.bool_]) -> Floats:
    """Return the probability that each arm is chosen, (n, K).

    Parameters
    ----------
    scores : Scores
        Scores of the arms.
    epsilon : float or ndarray of shape (n,)
        Probability of a uniform choice among the candidates.
    candidates : ndarray of bool of shape (n, K)
        Whether each arm can be chosen.

    Returns
    -------
    ndarray of shape (n, K)
        The probabilities, exact to 1e-12.
    """
    location = np.where(candidates, scores.mean + scores.width * scores.optimism, NEVER)
    scale = np.where(candidates, scores.width * scores.dispersion, 0.0)
    exact = kernels.winning_rows(location, scale)
    # Integrals are exact to rounding, which may end a little above 1.
    np.clip(exact, 0.0, 1.0, out=exact)
    mixed = np.asarray(epsilon)[..., None]
    if not mixed.any():
        return exact
    propensity: Floats = (1.0 - mixed) * exact + mixed * uniform_propensity(candidates)
    return propensity


def uniform_propensity(candidates: NDArray[np.bool_]) -> Floats:
    """Return the same probability for every candidate of a round, (n, K)."""
    propensity: Floats = candidates / candidates.sum(axis=1, keepdims=True)
    return propensity
