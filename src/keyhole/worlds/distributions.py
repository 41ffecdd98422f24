"""Distributions with mean 0 and variance 1, by name.

All but Student's t are strictly sub-Gaussian: E exp(s X) <= exp(s^2 / 2), with their variance as
the smallest constant that will do. Student's t has no such constant, since no
exponential moment of it is finite: it is there to see what breaks.
"""

import math
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from keyhole.errors import InvalidValue

Name: TypeAlias = Literal[
    "normal", "uniform", "rademacher", "truncated-normal", "mixture", "student-t"
]
Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]

# The truncated normal ends at two standard deviations, before it is scaled to variance 1.
CUT = 2.0
CUT_BELOW = 0.5 * math.erfc(CUT / math.sqrt(2.0))
CUT_VARIANCE = 1.0 - 2.0 * CUT * math.exp(-0.5 * CUT**2) / math.sqrt(2.0 * math.pi) / (
    1.0 - 2.0 * CUT_BELOW
)
# The mixture has its two halves at -0.9 and 0.9: far enough apart for two distinct modes.
MODE = 0.9
# Five degrees of freedom: the fourth moment is finite, no exponential moment is.
FREEDOM = 5.0


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Standard normal."""
    return rng.standard_normal(shape)


def uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Uniform from -sqrt(3) to sqrt(3)."""
    return math.sqrt(12.0) * (rng.random(shape) - 0.5)


def rademacher(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """-1 or 1, with probability 1/2 each."""
    return np.where(rng.random(shape) < 0.5, -1.0, 1.0)


def truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A normal within two of its standard deviations, scaled to variance 1, by its quantiles."""
    quantiles = _quantiles(CUT_BELOW + (1.0 - 2.0 * CUT_BELOW) * rng.random(shape))
    return quantiles / math.sqrt(CUT_VARIANCE)


def mixture(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Two normals of equal weight at -0.9 and 0.9.

    One uniform number tells both the half and the place in it: no second one has to be drawn in
    step with the first, and a block can be drawn in any pieces.
    """
    u = rng.random(shape)
    side = np.where(u < 0.5, -1.0, 1.0)
    within = np.clip(np.where(u < 0.5, 2.0 * u, 2.0 * u - 1.0), 2.0**-53, 1.0 - 2.0**-53)
    return MODE * side + math.sqrt(1.0 - MODE**2) * _quantiles(within)


def student_t(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Student's t with 5 degrees of freedom, scaled to variance 1. Not sub-Gaussian."""
    return rng.standard_t(FREEDOM, shape) * math.sqrt((FREEDOM - 2.0) / FREEDOM)


def _quantiles(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    # Imported here: worlds of other distributions need not wait for SciPy.
    from scipy.special import ndtri

    result: NDArray[np.float64] = ndtri(shares)
    return result


DRAWS: dict[str, Draw] = {
    "normal": normal,
    "uniform": uniform,
    "rademacher": rademacher,
    "truncated-normal": truncated_normal,
    "mixture": mixture,
    "student-t": student_t,
}


def draw_of(setting: str, name: str) -> Draw:
    """The distribution of this name, or an error that lists them."""
    if name not in DRAWS:
        raise InvalidValue(f"{setting} must be one of {', '.join(get_args(Name))}, got {name!r}")
    return DRAWS[name]


def is_subgaussian(name: str) -> bool:
    """Whether E exp(s X) <= exp(s^2 / 2) for all s."""
    return name != "student-t"
