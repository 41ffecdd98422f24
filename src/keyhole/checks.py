"""Checks of values before they are used. A check returns the value, ready to use."""

import difflib
import numbers
import os
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.errors import InvalidValue, shown

# Sums of squares of numbers up to this bound, and their products with a covariance, do not
# overflow.
LARGEST = 1e50


def floats(name: str, value: ArrayLike, *, max_value: float = LARGEST) -> NDArray[np.float64]:
    """Return a fresh float64 array of numbers, none of them NaN, infinite or beyond `max_value`.

    Parameters
    ----------
    name : str
        Name of the value in error messages.
    value : array_like
        Real numbers of any shape.
    max_value : float, default LARGEST
        Largest magnitude that is allowed.

    Returns
    -------
    ndarray of float64
        A copy of the numbers, in C order.

    Raises
    ------
    InvalidValue
        If `value` has masked entries, entries that are not real numbers, or entries that are NaN,
        infinite or beyond `max_value`.
    """
    given = _regular(name, value)
    if _is_masked(value):
        raise InvalidValue(f"{name} must have a number in every entry, got masked entries")
    if given.dtype.kind not in "biuf" and not _holds_numbers(given):
        raise InvalidValue(f"{name} must be real numbers, got {_strangest(value, given)}")
    array = _as_float64(name, given, max_value)
    usable = np.abs(array) <= max_value
    if not usable.all():
        place = tuple(int(i) for i in np.argwhere(~usable)[0])
        at = f" at {place if len(place) > 1 else place[0]}" if place else ""
        raise InvalidValue(
            f"{name} must be finite and at most {max_value:g}, got {array[place]}{at}"
        )
    return array


def with_missing(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return an array as `floats` does; NaN, None and masked entries are missing and become NaN.

    Parameters
    ----------
    name : str
        Name of the value in error messages.
    value : array_like
        Real numbers of any shape, with missing entries.

    Returns
    -------
    ndarray of float64
        A copy of the numbers, NaN where an entry is missing.
    """
    if type(value) is np.ndarray and value.dtype == np.float64 and are_usable(value):
        return value.copy()
    if isinstance(value, np.ma.MaskedArray):
        masked: Any = value
        hidden = np.ma.getmaskarray(masked)
        given = _regular(name, masked.data)
    else:
        given = _regular(name, value)
        hidden = np.zeros(given.shape, dtype=bool)
    if given.dtype.kind == "O":
        hidden = hidden | np.array([_is_missing(x) for x in given.flat], bool).reshape(given.shape)
        given = np.where(hidden, 0.0, given)
    elif given.dtype.kind == "f":
        hidden = hidden | np.isnan(given)
    elif given.dtype.kind not in "biu":
        return floats(name, value)  # raises the error that names the wrong entry
    numbers = floats(name, np.where(hidden, 0, given))
    numbers[hidden] = np.nan
    return numbers


def are_usable(array: NDArray[np.float64]) -> bool:
    """Return whether no number is NaN, infinite or beyond `LARGEST`."""
    return bool((np.abs(array) <= LARGEST).all())


def _regular(name: str, value: Any) -> NDArray[Any]:
    """Return a value as an array; masked entries of a list become None."""
    try:
        return np.asarray(_without_masked(value) if _has_masked_entry(value) else value)
    except OverflowError:
        raise InvalidValue(f"{name} must be real numbers, got one too large for a float") from None
    except (ValueError, TypeError):
        raise InvalidValue(
            f"{name} must have rows of equal length, got rows of different lengths"
        ) from None
    except RecursionError:
        raise InvalidValue(f"{name} must be numbers, got a list that contains itself") from None
    except Exception as reason:  # a user-defined object may raise anything
        raise InvalidValue(f"{name} cannot be read as an array: {shown(reason)}") from reason


def _is_masked(value: object) -> bool:
    is_array = isinstance(value, np.ma.MaskedArray)
    return bool(np.ma.is_masked(value)) if is_array else _has_masked_entry(value)


def _has_masked_entry(value: object) -> bool:
    """Return whether a list holds a masked entry, which NumPy would convert to NaN."""
    return isinstance(value, list | tuple) and any(
        entry is np.ma.masked or _has_masked_entry(entry) for entry in value
    )


def _without_masked(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_masked(entry) for entry in value]
    return None if value is np.ma.masked else value


def _is_missing(value: object) -> bool:
    """Return whether an entry of a list stands for a missing number."""
    return value is None or (isinstance(value, float | np.floating) and bool(value != value))


def _holds_numbers(given: NDArray[Any]) -> bool:
    """Return whether every object of an array is a real number; a string never is."""
    return given.dtype.kind == "O" and not any(map(_is_strange, given.flat))


def _is_strange(value: object) -> bool:
    return not isinstance(value, numbers.Real) or isinstance(value, np.timedelta64)


def _strangest(value: object, given: NDArray[Any]) -> str:
    """Return a description of the first entry that is not a number, or of the array's type."""
    if isinstance(value, list | tuple):
        given = np.asarray(value, dtype=object)  # NumPy converts numbers beside a string to strings
    if given.dtype.kind != "O":
        return f"an array of {given.dtype}"
    place = next(k for k, entry in enumerate(given.flat) if _is_strange(entry))
    entry = given.flat[place]
    return f"{shown(entry):.80} ({type(entry).__name__}) at {place}"


def _as_float64(name: str, given: NDArray[Any], max_value: float) -> NDArray[np.float64]:
    try:
        with np.errstate(over="ignore"):  # a longdouble beyond float64 becomes infinite
            return np.array(given, dtype=np.float64, order="C")
    except OverflowError:
        raise InvalidValue(
            f"{name} must be at most {max_value:g}, got one too large for a float"
        ) from None


def real(
    name: str,
    value: object,
    *,
    above: float | None = None,
    min_value: float = -LARGEST,
    max_value: float = LARGEST,
) -> float:
    """Return a plain float above `above`, at least `min_value` and at most `max_value`.

    Parameters
    ----------
    name : str
        Name of the value in error messages.
    value : object
        A real number. A bool is refused.
    above : float, optional
        Exclusive lower bound.
    min_value : float, default -LARGEST
        Inclusive lower bound.
    max_value : float, default LARGEST
        Inclusive upper bound.

    Returns
    -------
    float
        The number.

    Raises
    ------
    InvalidValue
        If `value` is not a real number, is NaN or is outside the bounds.
    """
    odd = isinstance(value, bool | np.bool_ | np.timedelta64)
    if odd or not isinstance(value, numbers.Real):
        raise InvalidValue(f"{name} must be a number, got {shown(value)}")
    try:
        result = float(value)
    except OverflowError:
        raise InvalidValue(
            f"{name} must be at most {max_value:g}, got one too large for a float"
        ) from None
    if result != result:
        raise InvalidValue(f"{name} must be a number, got nan")
    low = above is None or result > above
    if not low or not min_value <= result <= max_value:
        rules = [f"above {above:g}"] if above is not None else []
        small = (above is None or result > above) and (min_value > -LARGEST or result < min_value)
        rules += [f"at least {min_value:g}"] if small else []
        rules += [f"at most {max_value:g}"] if result > max_value or max_value < LARGEST else []
        raise InvalidValue(f"{name} must be {' and '.join(rules)}, got {shown(value)}")
    return result


def flag(name: str, value: object) -> bool:
    """Return a plain bool.

    Parameters
    ----------
    name : str
        Name of the value in error messages.
    value : object
        A bool of Python or NumPy.

    Returns
    -------
    bool
        True or False.

    Raises
    ------
    InvalidValue
        If `value` is anything else.
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidValue(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def positive(name: str, value: object) -> float:
    """Return a plain float above 0 and large enough that its inverse cannot overflow.

    Parameters
    ----------
    name : str
        Name of the value in error messages.
    value : object
        A real number of at least 1 / LARGEST.

    Returns
    -------
    float
        The number.
    """
    return real(name, value, above=0.0, min_value=1.0 / LARGEST)


def integer(name: str, value: object, *, min_value: int = 1, max_value: int = 10**15) -> int:
    """Return a plain int from `min_value` to `max_value`.

    Parameters
    ----------
    name : str
        Name of the value in error messages.
    value : object
        An integer. A bool is refused.
    min_value : int, default 1
        Inclusive lower bound.
    max_value : int, default 10**15
        Inclusive upper bound.

    Returns
    -------
    int
        The number.

    Raises
    ------
    InvalidValue
        If `value` is not an integer or is outside the bounds.
    """
    odd = isinstance(value, bool | np.bool_ | np.timedelta64)
    if odd or not isinstance(value, numbers.Integral) or value < min_value:
        raise InvalidValue(
            f"{name} must be a whole number of at least {min_value}, got {shown(value)}"
        )
    if int(value) > max_value:
        raise InvalidValue(f"{name} must be at most {max_value:,}, got {shown(value)}")
    return int(value)


def workers(executor: object, given: object) -> int:
    """Return the number of threads to use; an executor has its own number.

    Parameters
    ----------
    executor : concurrent.futures.Executor or None
        The executor that was given, if any.
    given : int or None
        The number that was given; None is one thread for each core.

    Returns
    -------
    int
        The number of threads.

    Raises
    ------
    InvalidValue
        If the executor is none, or both are given.
    """
    # Imported here: it takes milliseconds, which every first decision would wait for.
    from concurrent.futures import Executor

    if executor is not None and not isinstance(executor, Executor):
        raise InvalidValue(
            "executor must be a concurrent.futures.Executor (of a Dask client: "
            f"client.get_executor()), got {shown(executor)}"
        )
    if executor is not None and given is not None:
        raise InvalidValue(
            f"workers must be None with an executor, which has its own number, got {shown(given)}"
        )
    return integer("workers", (os.cpu_count() or 1) if given is None else given)


def is_listing(value: object) -> TypeGuard[Iterable[Any]]:
    """Return whether a value can be iterated over; a zero-dimensional array cannot."""
    return isinstance(value, Iterable) and getattr(value, "shape", None) != ()


def unknown(kind: str, given: object, known: Iterable[str]) -> InvalidValue:
    """Return the error for an unknown name, with the nearest known name as a hint.

    Parameters
    ----------
    kind : str
        Kind of the named object, such as "policy".
    given : object
        The name that was given.
    known : iterable of str
        The known names.

    Returns
    -------
    InvalidValue
        The error, to be raised by the caller.
    """
    names = list(known)
    text = given if isinstance(given, str) else shown(given)
    # Of a short name, one letter in another case is far by the other measure.
    near = [name for name in names if name.casefold() == text.casefold()]
    near = near or difflib.get_close_matches(text, names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return InvalidValue(f"{kind} must be one of {', '.join(names)}, got {shown(given)}.{hint}")
