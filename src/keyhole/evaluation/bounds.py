"""Bounds of rewards, as estimates and sequences are given them."""

from __future__ import annotations

from keyhole import checks
from keyhole.core import Floats
from keyhole.errors import InvalidValue, shown


def check_bounds(reward: Floats, bounds: tuple[float, float]) -> None:
    """Raise if bounds are not two increasing numbers, or a reward is outside of them.

    Parameters
    ----------
    reward : ndarray of shape (n,)
        The rewards.
    bounds : tuple of float
        Smallest and largest possible reward.

    Raises
    ------
    InvalidValue
        With the first row that is outside.
    """
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidValue(f"bounds must be two numbers or None, got {shown(bounds)}")
    worst, best = (checks.real("bounds", one) for one in bounds)
    if not worst < best:
        raise InvalidValue(f"bounds must be increasing, got {shown(bounds)}")
    outside = (reward < worst) | (reward > best)
    if outside.any():
        t = int(outside.argmax())
        raise InvalidValue(
            f"reward[{t}] must be from {worst:g} to {best:g}, got {reward[t]:g}: give the bounds "
            "of all possible rewards, or bounds=None"
        )
