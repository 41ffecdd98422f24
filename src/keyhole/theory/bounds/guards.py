"""The arguments that bounds take: what each may be, checked in one place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import NamedTuple, ParamSpec

import numpy as np

from keyhole import checks
from keyhole.errors import InvalidValue, shown
from keyhole.theory.bounds.parts import Floats

Given = ParamSpec("Given")


class Range(NamedTuple):
    """What an argument may be, and in which words a message says so."""

    low: float
    high: float = np.inf
    open_ends: bool = False
    whole: bool = False
    many: bool = False

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        kind += " or an array of them," if self.many else ""
        if self.open_ends:
            return f"{kind} above {self.low:g} and below {self.high:g}"
        limit = f" and at most {self.high:g}" if np.isfinite(self.high) else ""
        return f"{kind} of at least {self.low:g}{limit}"

    def allows(self, values: Floats) -> bool:
        """Whether all values are in the range; NaN never is."""
        if self.open_ends:
            inside = (values > self.low) & (values < self.high)
        else:
            inside = (values >= self.low) & (values <= self.high)
        return bool(inside.all()) and (not self.whole or bool((values == np.floor(values)).all()))


# Infinite constants are allowed where the theory has them: their bounds promise nothing.
RANGES = {
    "horizon": Range(1.0, high=float(np.finfo(np.float64).max), many=True),
    "t": Range(1.0, many=True),
    "n": Range(0.0, many=True),
    "p": Range(0.0, high=1.0, many=True),
    "length": Range(0.0, many=True),
    "n_arms": Range(1.0, high=1e15, whole=True),
    "dim": Range(1.0, high=1e15, whole=True),
    "delta": Range(0.0, high=1.0, open_ends=True),
    "p_min": Range(0.0, high=1.0),
    **dict.fromkeys(
        ("c_eta", "c_y", "kappa", "lambda_m", "largest", "margin", "r", "v"), Range(0.0)
    ),
}


def guarded(bound: Callable[Given, Floats]) -> Callable[Given, Floats]:
    """Return the bound with its arguments checked, and infinity in place of NaN.

    NaN comes of 0 times an infinite constant: the bound then promises nothing.
    """
    signature = inspect.signature(bound)

    @functools.wraps(bound)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> Floats:
        given = signature.bind(*args, **kwargs)
        numbers = {
            name: _checked(bound.__name__, name, value) for name, value in given.arguments.items()
        }
        shapes = [number.shape for number in numbers.values()]
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise InvalidValue(
                f"{bound.__name__}: arrays must have shapes that broadcast, got "
                f"{', '.join(str(shape) for shape in shapes if shape)}"
            ) from None
        given.arguments.update({name: number[()] for name, number in numbers.items()})
        with np.errstate(all="ignore"):
            value = bound(*given.args, **given.kwargs)
        found: Floats = np.where(np.isnan(value), np.inf, value)[()]
        return found

    return checked


def _checked(bound: str, name: str, value: object) -> Floats:
    """Return one argument as an array, if it is allowed."""
    allowed = RANGES[name]
    try:
        array = checks.floats(name, value, max_value=np.inf)  # type: ignore[arg-type]
    except InvalidValue:
        raise InvalidValue(f"{bound}: {name} must be {allowed}, got {shown(value)}") from None
    is_truth = isinstance(value, bool) or np.asarray(value).dtype.kind == "b"
    if is_truth or (array.ndim and not allowed.many) or not allowed.allows(array):
        raise InvalidValue(f"{bound}: {name} must be {allowed}, got {shown(value)}")
    return array
