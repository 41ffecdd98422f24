"""Ranges of numbers, and the check that a value lies in one."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.errors import InvalidValue, shown

Floats: TypeAlias = NDArray[np.float64]


class Range(NamedTuple):
    """The numbers that an argument may be.

    Parameters
    ----------
    low, high : float
        The ends.
    open_ends : bool, default False
        Exclude the ends.
    whole : bool, default False
        Allow whole numbers only.
    many : bool, default False
        Allow arrays.
    """

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

    def checked(self, name: str, value: object) -> Floats:
        """Return a value as float64, or raise `InvalidValue` if it is not in the range.

        Parameters
        ----------
        name : str
            The name of the value in the error message.
        value : object
            The value. NaN is in no range.
        """
        refusal = InvalidValue(f"{name} must be {self}, got {shown(value)}")
        try:
            array = checks.floats(name, value, max_value=np.inf)  # type: ignore[arg-type]
        except InvalidValue:
            raise refusal from None
        is_truth = isinstance(value, bool) or np.asarray(value).dtype.kind == "b"
        if is_truth or (array.ndim and not self.many) or not self._allows(array):
            raise refusal
        # A zero-dimensional array becomes a scalar, which divides by zero as arrays do.
        number: Floats = array[()]
        return number

    def _allows(self, values: Floats) -> bool:
        if self.open_ends:
            inside = (values > self.low) & (values < self.high)
        else:
            inside = (values >= self.low) & (values <= self.high)
        return bool(inside.all()) and (not self.whole or bool((values == np.floor(values)).all()))
