"""The best observer of a linear world, E[x | y], where contexts and noise are mixtures of normals.

An entry of such a distribution is mode times a random sign, plus a normal: mode 0 is the normal, 1
is Rademacher. Given all signs, x and y are jointly normal; the signs have a posterior given y.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from keyhole.core import Floats
from keyhole.lab.worlds.distributions import MODE

if TYPE_CHECKING:
    from keyhole.lab.worlds.linear import LinearWorld

# The place of the two modes, as a share of the standard deviation.
MODES = {"normal": 0.0, "rademacher": 1.0, "mixture": MODE}
# Signs are enumerated: at most this many entries can have one.
MOST_SIGNS = 12
# Where y is discrete, atoms are told apart by a normal of this share of its scale.
SHARPNESS = 1e-6
# Rows of y whose posteriors are in memory at a time.
ROWS = 2_000


def expected_values(world: LinearWorld, y: Floats) -> Floats | None:
    """Return E[x | y]'mu for the observation of each arm, or None if it has no formula here.

    Parameters
    ----------
    world : LinearWorld
        The world.
    y : ndarray of shape (n, n_arms, dim)
        The observations.
    """
    kinds = (world.context_distribution, world.sensing_distribution)
    if any(kind not in MODES for kind in kinds):
        return None
    modes = [MODES[kind] for kind in kinds]
    sizes = [world.context_dim, world.dim]
    if sum(size for mode, size in zip(modes, sizes, strict=True) if mode) > MOST_SIGNS:
        return None
    roots = world.roots
    centres = [
        mode * (_signs(size if mode else 0, size) @ each.T)
        for mode, size, each in zip(modes, sizes, roots, strict=True)
    ]
    x, noise = (
        np.repeat(centres[0], len(centres[1]), axis=0),
        np.tile(centres[1], (len(centres[0]), 1)),
    )
    means = x @ world.sensing.T + noise  # (signs, dim)  of y, given the signs
    left = [1.0 - mode**2 for mode in modes]
    cross = left[0] * world.context_covariance @ world.sensing.T
    spread = world.sensing @ cross + left[1] * world.sensing_covariance
    scale = np.trace(world.observation_covariance) / world.dim
    whiten = np.linalg.inv(np.linalg.cholesky(spread + SHARPNESS**2 * scale * np.eye(world.dim)))
    gain = cross @ whiten.T @ whiten
    values = np.empty(y.shape[:2])
    for k, mu in enumerate(world.coefficients):
        for low in range(0, len(y), ROWS):
            rows = y[low : low + ROWS, k]
            values[low : low + ROWS, k] = _expected(rows, means, whiten, x @ mu, gain.T @ mu)
    return values


def _signs(drawn: int, size: int) -> Floats:
    """Return all signs of `drawn` entries, (2^drawn, size); one row of zeros if there are none."""
    if drawn == 0:
        return np.zeros((1, size))
    return np.array(list(product([-1.0, 1.0], repeat=drawn)))


def _expected(rows: Floats, means: Floats, whiten: Floats, centre: Floats, slope: Floats) -> Floats:
    """Return the expectation of centre + (y - mean)'slope over the posterior of the signs.

    Parameters
    ----------
    rows : ndarray of shape (n, dim)
        Observations.
    means : ndarray of shape (m, dim)
        The mean of y given each of m equally likely vectors of signs.
    whiten : ndarray of shape (dim, dim)
        Makes the covariance of y given the signs the identity.
    centre : ndarray of shape (m,)
        The mean of x'mu given the signs.
    slope : ndarray of shape (dim,)
        The regression of x'mu on y given the signs.
    """
    off = rows @ whiten.T, means @ whiten.T
    distance = (
        (off[0] ** 2).sum(axis=1)[:, None] - 2.0 * off[0] @ off[1].T + (off[1] ** 2).sum(axis=1)
    )
    weights = np.exp(-0.5 * (distance - distance.min(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    found: Floats = weights @ (centre - means @ slope) + rows @ slope
    return found
