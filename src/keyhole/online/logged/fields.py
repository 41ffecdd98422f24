"""Fields of rows, out of arrays."""

from __future__ import annotations

from typing import Any

from keyhole.core import Floats


def nulls(row: Floats) -> list[float | None]:
    """Return numbers as a row has them: NaN is null, a missing entry."""
    return [None if x != x else x for x in row.tolist()]


def score_fields(description: Floats, offset: float) -> dict[str, Any]:
    """Return the parts of every arm's score.

    Parameters
    ----------
    description : ndarray of shape (4, n_arms)
        Mean, width, optimism and dispersion.
    offset : float
        The zero that rewards are counted from.
    """
    mean, width, optimism, dispersion = description.tolist()
    return {
        "mean": [value + offset for value in mean] if offset else mean,
        "width": width,
        "optimism": _once(optimism),
        "dispersion": _once(dispersion),
    }


def _once(values: list[float]) -> list[float]:
    """Return one number in place of equal ones."""
    return values[:1] if values.count(values[0]) == len(values) else values
