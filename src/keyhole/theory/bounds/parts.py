"""What several bounds have in common."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]


def spread(
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    delta: float,
) -> Floats:
    """v sqrt(2 d_y log(2 T N / delta)) + the radius after T pulls: the bracket of lem:eta1."""
    drawn = v * np.sqrt(2.0 * dim * np.log(2.0 * floats(horizon) * n_arms / delta))
    return floats(drawn + radius(horizon, dim, r, c_eta, length, delta))


def radius(
    n: ArrayLike, dim: int, r: float, c_eta: float, length: ArrayLike, delta: float
) -> Floats:
    """R sqrt(d_y log((1 + L^2 n) / delta)) + c_eta, with log(1 / delta) twice if d_y = 1."""
    grown = dim * np.log(1.0 + floats(length) ** 2 * floats(n))
    return floats(r * np.sqrt(grown + max(dim, 2) * np.log(1.0 / delta)) + c_eta)


def root(above: float, below: float) -> float:
    """sqrt(above / below), infinite where sensing without noise leaves nothing below."""
    return float(np.sqrt(above / below)) if below > 0.0 else np.inf


def floats(value: ArrayLike) -> Floats:
    """A value or values as float64."""
    return np.asarray(value, dtype=np.float64)
