"""A root of the covariance of observations, whatever their units."""

from __future__ import annotations

import numpy as np

from keyhole.theory.ranges import Floats


def root_of(covariance: Floats) -> Floats:
    """Return H of full column rank with H H' = covariance.

    Scales are removed first, so that features in small units are not taken for rounding.
    """
    scale = np.sqrt(np.diag(covariance))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > len(values) * np.finfo(np.float64).eps * values.max(initial=0.0)
    root: Floats = scale[:, None] * vectors[:, kept] * np.sqrt(values[kept])
    return root
