"""Reported estimates of mu and of the constant, without the shrinkage of the prior.

The posterior that choices are made by shrinks mu towards 0. Reported estimates are least squares in
x and in the constant, as `Posterior.least_squares` gives them for features. The prior of an
estimated sensor's corrections stays: it is the information of the calibration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole.core.kernels import Floats
from keyhole.core.learners.sensor_sums import Weighted
from keyhole.core.posterior import UNSEEN


class Shrunk(NamedTuple):
    """The posterior of one parameter in all columns, (c,), as choices use it."""

    mean: Floats  # (c,)
    prior: float  # the precision of every column before any reward
    variance: float  # of a reward of weight 1


def unshrunk(total: Weighted, n: float, kept: Floats, before: Shrunk) -> tuple[Floats, Floats]:
    """Return mean and covariance of a parameter without the prior of some columns.

    Directions that no reward has determined keep the posterior's mean and the prior's variance.

    Parameters
    ----------
    total : Weighted
        The weighted sums over all rewards.
    n : float
        The number of rewards.
    kept : ndarray of shape (c,)
        The precision of the prior that stays in each column; 0 where it is taken away.
    before : Shrunk
        The posterior with the prior in all columns.
    """
    # In units of each column's own size, so that large ones do not hide small ones.
    size = np.sqrt(np.diag(total.gram) + before.prior)
    scaled = total.gram / size / size[:, None]
    values, vectors = np.linalg.eigh(scaled + np.diag(kept / size**2))
    seen = values > UNSEEN
    inside, beside = vectors[:, seen], vectors[:, ~seen]
    inverse = inside / values[seen] @ inside.T
    left = total.moment - total.gram @ before.mean - kept * before.mean
    mean = before.mean + inverse @ (left / size) / size
    misfit = total.squares - 2.0 * mean @ total.moment + mean @ total.gram @ mean
    freedom = n - float(np.trace(inverse @ scaled))
    # Without a residual to spare the rewards do not tell their noise.
    variance = max(misfit, 0.0) / freedom if freedom >= 0.5 else before.variance
    unknown = beside @ (beside.T * (size**2 / before.prior)) @ beside @ beside.T
    covariance = variance * inverse + before.variance * unknown
    return mean, covariance / size / size[:, None]
