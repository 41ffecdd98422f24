"""Names of arms, as users give them."""

from __future__ import annotations

from keyhole import checks
from keyhole.core import Arm, arm_name
from keyhole.errors import InvalidValue, shown


def arm_names(arms: object) -> tuple[Arm, ...]:
    """Return different names of arms, one or more, or raise `InvalidValue`."""
    if not checks.is_listing(arms) or isinstance(arms, str):
        raise InvalidValue(f"arms must be the names of the arms, got {shown(arms)}")
    names = tuple(arm_name(arm) for arm in arms)
    if not names or len(set(names)) < len(names):
        raise InvalidValue(f"arms must be one or more different names, got {shown(names)}")
    return names
