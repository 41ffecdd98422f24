"""`bound`, the decorator that records the statement of a bound and checks its arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from keyhole.errors import InvalidValue, shown
from keyhole.theory.constants import AT_LEAST_0, Constants
from keyhole.theory.ranges import Floats, Range
from keyhole.theory.statements import STATEMENTS, Formula, Statement

# Where a bound is taken: the arguments besides the constants.
POINT = {
    "horizon": Range(1.0, high=float(np.finfo(np.float64).max), many=True),
    "t": Range(1.0, many=True),
    "n": Range(0.0, many=True),
    "p": Range(0.0, high=1.0, many=True),
    "largest": AT_LEAST_0,
}
MEANINGS = {
    "horizon": "T, the number of rounds",
    "t": "The round",
    "n": "The number of pulls of the arm",
    "p": "The probability that the arm is best",
    "largest": "The length that no observation exceeds",
}


def bound(
    label: str,
    meaning: str,
    *,
    starts: str = "",
    rests_on: tuple[str, ...] = (),
    gaps: tuple[str, ...] = (),
    repair: str = "",
    replaces: str = "",
    of_arm: bool = False,
) -> Callable[[Callable[..., Floats]], Formula]:
    """Return a decorator that turns a formula into a bound, and adds it to `STATEMENTS`.

    The bound checks its arguments, and is infinite where the formula is NaN. NaN comes of 0 times
    an infinite constant: the bound then promises nothing.

    Parameters
    ----------
    label, meaning, starts, rests_on, gaps, repair, replaces, of_arm
        See `Statement`.
    """

    def register(formula: Callable[..., Floats]) -> Formula:
        name = formula.__name__

        @functools.wraps(formula)
        def checked(c: Constants, **at: ArrayLike) -> Floats:
            if not isinstance(c, Constants):
                raise InvalidValue(
                    f"{name}: c must be Constants, such as theory.instance(world).constants(), "
                    f"got {shown(c)}"
                )
            point = _checked_point(name, at)
            with np.errstate(all="ignore"):
                value = formula(c, **point)
            found: Floats = np.where(np.isnan(value), np.inf, value)[()]
            return found

        takes = tuple(inspect.signature(formula).parameters)[1:]
        checked.__doc__ = _documented(formula, takes)
        STATEMENTS[name] = Statement(
            checked,
            takes,
            label,
            meaning,
            starts,
            rests_on,
            gaps,
            repair,
            replaces,
            of_arm,
        )
        return checked

    return register


def _documented(formula: Callable[..., Floats], takes: tuple[str, ...]) -> str:
    """Return the docstring of a formula with a section of its parameters."""
    lines = ["Parameters", "----------", "c : Constants", "    The constants of the instance."]
    for name in takes:
        kind = "float or array_like" if POINT[name].many else "float"
        lines += [f"{name} : {kind}", f"    {MEANINGS[name]}."]
    return "\n".join([inspect.cleandoc(formula.__doc__ or ""), "", *lines])


def _checked_point(bound: str, at: dict[str, ArrayLike]) -> dict[str, Floats]:
    """Return the numbers at which a bound is taken; unknown names are left to the formula."""
    point = {
        name: POINT[name].checked(f"{bound}: {name}", value) if name in POINT else value
        for name, value in at.items()
    }
    shapes = [np.shape(number) for number in point.values()]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise InvalidValue(
            f"{bound}: arrays must have shapes that broadcast, got "
            f"{', '.join(str(shape) for shape in shapes if shape)}"
        ) from None
    return point  # type: ignore[return-value]
