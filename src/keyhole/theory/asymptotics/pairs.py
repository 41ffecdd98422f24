"""The constant of the regret by pairs of arms, where every arm has a context of its own.

Everything is an integral over one number, the value at which two arms tie.
"""

from __future__ import annotations

import numpy as np

from keyhole.theory.asymptotics.grids import Grid, graded, others
from keyhole.theory.asymptotics.models import Model
from keyhole.theory.ranges import Floats


def wins(model: Model) -> tuple[Floats, Floats]:
    """Return P(k best) and E[Z_k^2 1(k best)], with Z_k = y_k'eta_k over its scale.

    E[y_k y_k' 1(k best)] follows from both: in whitened coordinates it is the first number in
    every direction but that of eta_k, and the second there, since being best depends on Z_k alone.
    """
    grid, density, below = _values(model)
    z = grid.x / model.scales[:, None]
    best = density * others(below) * grid.weights
    return best.sum(axis=1), (z**2 * best).sum(axis=1)


def terms(model: Model) -> Floats:
    """Return the constant's parts, (n_arms, n_arms): entry (i, j) is that of the pair i and j.

    `wins` determines M_k^-1, and with it t times the variance of arm k's score given its value.
    """
    across, along = wins(model)
    if model.shared_parameter:  # every pull tells of the one parameter
        across, along = (np.full(model.n_arms, total.sum()) for total in (across, along))
    noise, dispersion = model.common
    flat = (model.noise + model.dispersion) * (model.rank - 1) / across
    return first_order(model, flat, (noise + dispersion) / along)


def first_order(model: Model, flat: Floats, bent: Floats) -> Floats:
    """Return the regret of a round by pairs of arms, where scores err little.

    With the variance s_k^2(x) of arm k's score about its value x it is 1/2 of the integral of f_i
    f_j prod_{k != i, j} F_k (s_i^2 + s_j^2): near a tie at x the gap D has the density f_i f_j, and
    the integral of |D| P(the scores' order is wrong) over D is half of the variance.

    Parameters
    ----------
    model : Model
        The model.
    flat, bent : ndarray of shape (n_arms,)
        s_k^2 = flat + bent z^2, at the value x = z times its scale.
    """
    grid, density, below = _values(model)
    z = grid.x / model.scales[:, None]
    squares = flat[:, None] + bent[:, None] * z**2
    result = np.zeros((model.n_arms, model.n_arms))
    for i in range(model.n_arms - 1):
        later = slice(i + 1, None)
        # The product over all k but i and j, for every j after i.
        rest = others(np.delete(below, i, axis=0))[i:]
        ties = density[i] * density[later] * rest * (squares[i] + squares[later])
        result[i, later] = 0.5 * (ties * grid.weights).sum(axis=1)
    return result + result.T


def _values(model: Model) -> tuple[Grid, Floats, Floats]:
    """Return a grid, and the density and distribution function of each arm's value on it."""
    from scipy.special import ndtr  # here, since importing it takes long

    scales = model.scales[:, None]
    grid = graded(scales.min(), scales.max())
    z = grid.x / scales
    return grid, np.exp(-0.5 * z**2) / (scales * np.sqrt(2.0 * np.pi)), ndtr(z)
