"""The exact probability that each arm is chosen, or is optimal.

Scores of arms are independent normals in both of the paper's algorithms, so the probability that
one of them is the largest is a one-dimensional integral. It is the propensity of a decision and,
in a Gaussian world, p_i, the probability that arm i is optimal (def:astar).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole import checks
from keyhole.core import kernels
from keyhole.errors import InvalidValue, shown

# Scores are products of numbers that may each be as large as `checks.LARGEST`.
EXTREME = 1e300


def choice_probabilities(
    location: ArrayLike, scale: ArrayLike, *, epsilon: float = 0.0
) -> NDArray[np.float64]:
    """Return the probability that each of several independent normal scores is the largest.

    Certain scores that tie share their probability.

    Parameters
    ----------
    location : array_like of shape (..., n_arms)
        Mean of the score of each arm.
    scale : array_like of shape (..., n_arms)
        Standard deviation of each score, 0 for a score that is certain.
    epsilon : float, default 0.0
        Probability with which an arm is chosen uniformly instead.

    Returns
    -------
    ndarray of shape (..., n_arms)
        The probabilities.

    Raises
    ------
    InvalidValue
        If the shapes differ or have no arms, or if a scale is negative.

    Examples
    --------
    >>> import keyhole as kh
    >>> kh.choice_probabilities([0.0, 1.0], [1.0, 1.0]).round(6).tolist()
    [0.23975, 0.76025]
    >>> kh.choice_probabilities([2.0, 2.0, 1.0], [0.0, 0.0, 0.0], epsilon=0.3).round(6).tolist()
    [0.45, 0.45, 0.1]
    """
    location = checks.floats("location", location, max_value=EXTREME)
    scale = checks.floats("scale", scale, max_value=EXTREME)
    epsilon = checks.real("epsilon", epsilon, min_value=0.0, max_value=1.0)
    if location.shape != scale.shape or location.ndim == 0 or location.shape[-1] == 0:
        raise InvalidValue(
            "location and scale must have a number for each arm and the same shape, "
            f"got {location.shape} and {scale.shape}"
        )
    if (scale < 0).any():
        raise InvalidValue(f"scale must be at least 0, got {scale.min()}")
    n_arms = location.shape[-1]
    rows = kernels.winning_rows(location.reshape(-1, n_arms), scale.reshape(-1, n_arms))
    # The integrals are exact to rounding, which may end a little above 1.
    exact = rows.reshape(location.shape).clip(0.0, 1.0)
    mixed: NDArray[np.float64] = (1.0 - epsilon) * exact + epsilon / n_arms
    return mixed


def expected_largest(location: ArrayLike, scale: ArrayLike) -> float:
    """Return the expectation of the largest of several independent normal scores.

    With F the distribution function of the largest score, E max = m + integral over x > m of
    1 - F(x) - integral over x < m of F(x), for any m; here m is the largest location.

    Parameters
    ----------
    location : array_like of shape (n_arms,)
        Mean of the score of each arm.
    scale : array_like of shape (n_arms,)
        Standard deviation of each score, 0 for a score that is certain.

    Returns
    -------
    float
        The expectation.

    Raises
    ------
    InvalidValue
        If the shapes differ or are not one-dimensional, or if a scale is negative.

    Examples
    --------
    >>> from math import pi, sqrt
    >>> round(expected_largest([0.0, 0.0], [1.0, 1.0]) * sqrt(pi), 9)
    1.0
    """
    # Imported in this rarely used function: it would double the time that importing keyhole takes.
    from scipy.integrate import quad
    from scipy.special import ndtr

    location, scale = checks.floats("location", location), checks.floats("scale", scale)
    if (scale < 0).any() or location.shape != scale.shape or location.ndim != 1:
        raise InvalidValue(
            "location and scale must have a number for each arm, with scale at least 0, "
            f"got {shown(location)} and {shown(scale)}"
        )
    centre, drawn = location.max(), scale > 0
    certain = location[~drawn].max(initial=-np.inf)
    location, scale = location[drawn], scale[drawn]

    def below(x: float) -> float:
        return float(np.prod(ndtr((x - location) / scale)))

    reach = 10.0 * scale.max(initial=0.0)
    exact: dict[str, Any] = {"limit": 500, "epsabs": 1e-12, "epsrel": 1e-12}
    gain, _ = quad(lambda x: 1.0 - below(x), centre, centre + reach, **exact)
    loss, _ = quad(below, max(centre - reach, certain), centre, **exact)
    return float(centre + gain - loss)
