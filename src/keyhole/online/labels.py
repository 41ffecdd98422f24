"""The names of features, where observations come with names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keyhole.errors import InvalidValue


def labels_of(y: Any) -> tuple[str, ...] | None:
    """Return the column names of a data frame, or of a row of one; None for plain numbers."""
    names = getattr(y, "columns", None)
    if names is None:
        names = getattr(y, "index", None)  # of a pandas Series; that of a list is a method
    if not isinstance(names, Iterable):
        return None
    listed = list(names)
    # Positions are no names: a frame made of an array has those.
    return None if all(isinstance(name, int) for name in listed) else tuple(map(str, listed))


def checked(names: tuple[str, ...], known: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the names of columns, if they are those that came first, in the same order.

    Parameters
    ----------
    names : tuple of str
        The names that came now.
    known : tuple of str or None
        Those that came first; None if none came yet.
    """
    if known is None or names == known:
        return names
    same = sorted(names) == sorted(known)
    raise InvalidValue(
        f"columns are {', '.join(names)}, but this bandit has learned {', '.join(known)}"
        + (f": give frame[{list(known)}]" if same else "")
    )
