"""Distributions with mean 0 and variance 1, by name.

All but Student's t are strictly sub-Gaussian: E exp(s X) <= exp(s^2 / 2), and their variance is the
smallest constant with this property. Student's t has no such constant, since none of its
exponential moments is finite. It is included to test violated assumptions.
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
# Fills the given array and returns it.
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
    """Fill an array with standard normals.

    Parameters
    ----------
    rng : Stream
        The source of random numbers.
    out : ndarray
        The array to fill.

    Returns
    -------
    ndarray
        The array `out`.
    """
    rng.standard_normal(out=out)
    return out


def uniform(rng: Stream, out: Floats) -> Floats:
    """Fill an array with uniform numbers from -sqrt(3) to sqrt(3).

    Parameters
    ----------
    rng : Stream
        The source of random numbers.
    out : ndarray
        The array to fill.

    Returns
    -------
    ndarray
        The array `out`.
    """
    rng.random(out=out)
    out -= 0.5
    out *= math.sqrt(12.0)
    return out


def rademacher(rng: Stream, out: Floats) -> Floats:
    """Fill an array with -1 and 1, with probability 1/2 each.

    Parameters
    ----------
    rng : Stream
        The source of random numbers.
    out : ndarray
        The array to fill.

    Returns
    -------
    ndarray
        The array `out`.
    """
    out[...] = np.where(rng.random(out=out) < 0.5, -1.0, 1.0)
    return out


def truncated_normal(rng: Stream, out: Floats) -> Floats:
    """Fill an array with normals truncated at two standard deviations, scaled to variance 1.

    The numbers are quantiles of uniform numbers.

    Parameters
    ----------
    rng : Stream
        The source of random numbers.
    out : ndarray
        The array to fill.

    Returns
    -------
    ndarray
        The array `out`.
    """
    quantiles = _quantiles(CUT_BELOW + (1.0 - 2.0 * CUT_BELOW) * rng.random(out=out))
    return np.divide(quantiles, math.sqrt(CUT_VARIANCE), out=out)


def mixture(rng: Stream, out: Floats) -> Floats:
    """Fill an array from a mixture of two normals of equal weight at -0.9 and 0.9.

    One uniform number gives both the component and the quantile in it. No second number has to be
    drawn in step with the first, and a block can be drawn in any pieces.

    Parameters
    ----------
    rng : Stream
        The source of random numbers.
    out : ndarray
        The array to fill.

    Returns
    -------
    ndarray
        The array `out`.
    """
    u = rng.random(out=out)
    side = np.where(u < 0.5, -1.0, 1.0)
    within = np.clip(np.where(u < 0.5, 2.0 * u, 2.0 * u - 1.0), 2.0**-53, 1.0 - 2.0**-53)
    return np.add(MODE * side, math.sqrt(1.0 - MODE**2) * _quantiles(within), out=out)


def student_t(rng: Stream, out: Floats) -> Floats:
    """Fill an array with Student's t of 5 degrees of freedom, scaled to variance 1.

    The distribution is not sub-Gaussian.

    Parameters
    ----------
    rng : Stream
        The source of random numbers.
    out : ndarray
        The array to fill.

    Returns
    -------
    ndarray
        The array `out`.
    """
    scale = math.sqrt((FREEDOM - 2.0) / FREEDOM)
    out[...] = rng.standard_t(FREEDOM, out.shape)
    out *= scale
    return out


def _quantiles(shares: Floats) -> Floats:
    # Imported here, so that worlds of other distributions do not wait for SciPy.
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
    """Return the draw function of a named distribution.

    Parameters
    ----------
    setting : str
        The name of the setting, for the error message.
    name : str
        One of `Name`.

    Raises
    ------
    InvalidValue
        If there is no such distribution. The message lists them.
    """
    if not isinstance(name, str) or name not in DRAWS:
        raise InvalidValue(
            f"{setting} must be one of {', '.join(get_args(Name))}, got {shown(name)}"
        )
    return DRAWS[name]


def is_subgaussian(name: str) -> bool:
    """Return whether E exp(s X) <= exp(s^2 / 2) for all s."""
    return name != "student-t"
