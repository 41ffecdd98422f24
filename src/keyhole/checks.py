"""What a value must be before anything is done with it. A check returns the value, ready to use."""

import numbers

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.errors import InvalidValue

# Sums of squares of numbers up to this, and their products with a covariance, do not overflow.
LARGEST = 1e50


def floats(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """A fresh float64 array of numbers, none of them NaN, infinite or beyond `LARGEST`."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise InvalidValue(
            f"{name} must be of a regular shape, but its rows differ in length"
        ) from None
    if given.dtype.kind not in "biuf":
        raise InvalidValue(f"{name} must be real numbers, got an array of {given.dtype}")
    if np.ma.is_masked(value):
        raise InvalidValue(f"{name} has masked entries; every entry must be a number")
    array = np.array(given, dtype=np.float64, order="C")
    usable = np.abs(array) <= LARGEST
    if not usable.all():
        place = tuple(int(i) for i in np.argwhere(~usable)[0])
        at = f" at {place if len(place) > 1 else place[0]}" if place else ""
        raise InvalidValue(f"{name} must be finite and at most {LARGEST:g}, got {array[place]}{at}")
    return array


def number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float = -LARGEST,
    most: float = LARGEST,
) -> float:
    """A plain float: above `above`, at least `least`, at most `most`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise InvalidValue(f"{name} must be a number, got {value!r}")
    result = float(value)
    if above is not None and not result > above:
        raise InvalidValue(f"{name} must be above {above:g}, got {value!r}")
    if not least <= result <= most:
        raise InvalidValue(f"{name} must be from {least:g} to {most:g}, got {value!r}")
    return result


def whole(name: str, value: object, *, least: int = 1) -> int:
    """A plain int of at least `least`."""
    if (
        isinstance(value, bool | np.bool_)
        or not isinstance(value, numbers.Integral)
        or value < least
    ):
        raise InvalidValue(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)
