"""Quadrature over scores that are centred at 0 and may have very different scales."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole.theory.ranges import Floats

# Nodes of a grid. With 401 in place of 257 curves change by less than 2e-6 of themselves.
NODES = 257
# Normal tails beyond this many standard deviations are below 1e-22.
REACH = 10.0


class Grid(NamedTuple):
    """Points x = width sinh(u) for evenly spaced u.

    Close to 0 their distance suits the narrowest arm, and far from 0 it grows like |x|. The
    trapezoidal rule in u is then accurate for smooth densities of all scales between.

    Parameters
    ----------
    u, x, weights : ndarray of shape (nodes,)
        The parameter, the points, and the weights of an integral over x.
    """

    u: Floats
    x: Floats
    weights: Floats


def graded(narrowest: float, widest: float, nodes: int | None = None) -> Grid:
    """Return a grid for densities whose standard deviations lie between two numbers.

    Parameters
    ----------
    narrowest, widest : float
        These numbers.
    nodes : int, optional
        The number of points, by default `NODES`.
    """
    end = np.arcsinh(REACH * widest / narrowest)
    u = np.linspace(-end, end, NODES if nodes is None else nodes)
    return Grid(u, narrowest * np.sinh(u), narrowest * np.cosh(u) * (u[1] - u[0]))


def others(factors: Floats) -> Floats:
    """Return, for each row, the product of all other rows.

    Examples
    --------
    >>> others(np.array([[2.0], [3.0], [5.0]])).ravel().tolist()
    [15.0, 10.0, 6.0]
    """
    one = np.ones_like(factors[:1])
    before = np.cumprod(np.concatenate([one, factors[:-1]]), axis=0)
    after = np.cumprod(np.concatenate([one, factors[:0:-1]]), axis=0)[::-1]
    product: Floats = before * after
    return product
