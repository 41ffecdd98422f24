"""What a value must be before anything is done with it. A check returns the value, ready to use."""

import difflib
import numbers
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.errors import InvalidValue

# Sums of squares of numbers up to this, and their products with a covariance, do not overflow.
LARGEST = 1e50


def floats(name: str, value: ArrayLike, *, most: float = LARGEST) -> NDArray[np.float64]:
    """A fresh float64 array of numbers, none of them NaN, infinite or beyond `most`."""
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
    usable = np.abs(array) <= most
    if not usable.all():
        place = tuple(int(i) for i in np.argwhere(~usable)[0])
        at = f" at {place if len(place) > 1 else place[0]}" if place else ""
        raise InvalidValue(f"{name} must be finite and at most {most:g}, got {array[place]}{at}")
    return array


def gappy(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """As `floats`, but NaN, None and masked entries are gaps, and become NaN."""
    try:
        masked = np.ma.isMaskedArray(value)
        given = np.asarray(value.astype(np.float64).filled(np.nan) if masked else value)  # type: ignore[union-attr]
        if given.dtype.kind not in "biufO":  # with None it is an array of objects
            return floats(name, value)
        given = given.astype(np.float64)
    except (TypeError, ValueError):
        return floats(name, value)  # says what is wrong with it
    except OverflowError:
        raise InvalidValue(f"{name} must be at most {LARGEST:g}, got a far larger number") from None
    gaps = np.isnan(given)
    numbers = floats(name, np.where(gaps, 0.0, given))
    numbers[gaps] = np.nan
    return numbers


def number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float = -LARGEST,
    most: float = LARGEST,
) -> float:
    """A plain float: above `above`, at least `least`, at most `most`."""
    odd = isinstance(value, bool | np.bool_ | np.timedelta64)
    if odd or not isinstance(value, numbers.Real):
        raise InvalidValue(f"{name} must be a number, got {value!r}")
    try:
        result = float(value)
    except OverflowError:
        raise InvalidValue(f"{name} must be at most {most:g}, got a far larger number") from None
    if result != result:
        raise InvalidValue(f"{name} must be a number, got nan")
    low = above is None or result > above
    if not low or not least <= result <= most:
        rules = [f"above {above:g}"] if above is not None else []
        small = above is None and (least > -LARGEST or result < least)
        rules += [f"at least {least:g}"] if small else []
        rules += [f"at most {most:g}"] if result > most or most < LARGEST else []
        raise InvalidValue(f"{name} must be {' and '.join(rules)}, got {value!r}")
    return result


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidValue(f"{name} must be True or False, got {value!r}")
    return bool(value)


def positive(name: str, value: object) -> float:
    """A plain float above 0, and not so small that its inverse could overflow."""
    return number(name, value, above=0.0, least=1.0 / LARGEST)


def whole(name: str, value: object, *, least: int = 1, most: int = 10**15) -> int:
    """A plain int from `least` to `most`."""
    if (
        isinstance(value, bool | np.bool_)
        or not isinstance(value, numbers.Integral)
        or value < least
    ):
        raise InvalidValue(f"{name} must be a whole number of at least {least}, got {value!r}")
    if int(value) > most:
        raise InvalidValue(f"{name} must be at most {most:,}, got {value!r}")
    return int(value)


def unknown(kind: str, given: object, known: Iterable[str]) -> InvalidValue:
    """Return the error for a name that does not exist, with the nearest that does.

    Parameters
    ----------
    kind : str
        What is named, such as "policy".
    given : object
        The name that was given.
    known : iterable of str
        The names that there are.

    Returns
    -------
    InvalidValue
        To be raised by the caller.
    """
    names = list(known)
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return InvalidValue(f"there is no {kind} {given!r}; there is {', '.join(names)}.{hint}")
