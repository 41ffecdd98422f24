"""The decision that a row of a log tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keyhole.online.decision import Decision
from keyhole.online.log import rows

if TYPE_CHECKING:
    from keyhole.core import Arm


def decision_of(
    row: rows.Decision | rows.Given,
    arms: list[Arm] | None,
    grown: tuple[tuple[str, str], ...] | None,
    recipe: str | None,
) -> Decision:
    """Return the decision of a row: with the arm that was served, if it was another.

    Parameters
    ----------
    row : Decision or Given
        The row.
    arms : list of arms, optional
        All arms when it was made, if rows of y are theirs.
    grown : tuple of pairs, optional
        All levels of growing categories that have columns.
    recipe : str, optional
        What tells the features from others.
    """
    if isinstance(row, rows.Given):
        return Decision.from_dict(row.decision)
    taken = row.arm if row.served is None else row.served
    own = 0
    if len(row.y) > 1:
        names = row.arms if row.arms is not None else arms
        assert names is not None
        own = names.index(taken)
    is_own = taken == row.arm
    # What was predicted is known of the chosen arm's row alone; null is a missing entry.
    filled = row.filled is not None and (is_own or len(row.y) == 1)
    seen: Any = row.filled if filled else row.y[own]
    return Decision(
        arm=taken,
        observation=seen,
        probability=row.probability if is_own else None,
        score=row.score if is_own else None,
        id=row.event,
        predicted=(row.predicted or ()) if filled else (),
        levels=None if grown is None else grown[: row.levels],
        recipe=recipe,
    )
