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

from keyhole.core import Stream
from keyhole.errors import InvalidValue, shown

Name: TypeAlias = Literal[
    "normal", "uniform", "rademacher", "truncated-normal", "mixture", "student-t"
]
Floats: TypeAlias = NDArray[np.float64]
# Fills the array that it is given, and hands it back.
Draw: TypeAlias = Callable[[Stream, Floats], Floats]

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


def normal(rng: Stream, out: Floats) -> Floats:
    """Standard normal."""
    rng.standard_normal(out=out)
    return out


def uniform(rng: Stream, out: Floats) -> Floats:
    """Uniform from -sqrt(3) to sqrt(3)."""
    rng.random(out=out)
    out -= 0.5
    out *= math.sqrt(12.0)
    return out


def rademacher(rng: Stream, out: Floats) -> Floats:
    """-1 or 1, with probability 1/2 each."""
    out[...] = np.where(rng.random(out=out) < 0.5, -1.0, 1.0)
    return out


def truncated_normal(rng: Stream, out: Floats) -> Floats:
    """A normal within two of its standard deviations, scaled to variance 1, by its quantiles."""
    quantiles = _quantiles(CUT_BELOW + (1.0 - 2.0 * CUT_BELOW) * rng.random(out=out))
    return np.divide(quantiles, math.sqrt(CUT_VARIANCE), out=out)


def mixture(rng: Stream, out: Floats) -> Floats:
    """Two normals of equal weight at -0.9 and 0.9.

    One uniform number tells both the half and the place in it: no second one has to be drawn in
    step with the first, and a block can be drawn in any pieces.
    """
    u = rng.random(out=out)
    side = np.where(u < 0.5, -1.0, 1.0)
    within = np.clip(np.where(u < 0.5, 2.0 * u, 2.0 * u - 1.0), 2.0**-53, 1.0 - 2.0**-53)
    return np.add(MODE * side, math.sqrt(1.0 - MODE**2) * _quantiles(within), out=out)


def student_t(rng: Stream, out: Floats) -> Floats:
    """Student's t with 5 degrees of freedom, scaled to variance 1. Not sub-Gaussian."""
    scale = math.sqrt((FREEDOM - 2.0) / FREEDOM)
    out[...] = rng.standard_t(FREEDOM, out.shape)
    out *= scale
    return out


def _quantiles(shares: Floats) -> Floats:
    # Imported here: worlds of other distributions need not wait for SciPy.
    from scipy.special import ndtri

    result: Floats = ndtri(shares)
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
    """Find the distribution of a name.

    Parameters
    ----------
    setting : str
        What the name was given for, for the error.
    name : str
        One of `Name`.

    Raises
    ------
    InvalidValue
        If there is no such distribution; it lists them.

    """
    if not isinstance(name, str) or name not in DRAWS:
        raise InvalidValue(
            f"{setting} must be one of {', '.join(get_args(Name))}, got {shown(name)}"
        )
    return DRAWS[name]


def is_subgaussian(name: str) -> bool:
    """Whether E exp(s X) <= exp(s^2 / 2) for all s."""
    return name != "student-t"
