"""Decisions out of the rows of a log, whatever keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from keyhole.core import Arm
from keyhole.online.decision import Decision
from keyhole.online.log import rows

# Digits of the number of a decision in compiled code. Ids of callers may have more after a dash.
LONGEST = 18


class Columns(NamedTuple):
    """What the numbers of an observation are: rows do not repeat it."""

    grown: tuple[tuple[str, str], ...] | None = None  # all levels of growing categories
    recipe: str | None = None  # what tells the features from others
    sensors: tuple[tuple[Arm, str], ...] = ()  # the name of each sensor, and what tells it


def decision_of(row: rows.Decision | rows.Given, columns: Columns) -> Decision:
    """Return the decision that a row tells of: of the arm that was served, if it was another.

    Parameters
    ----------
    row : Decision or Given
        The row.
    columns : Columns
        What its numbers are.
    """
    if isinstance(row, rows.Given):
        return Decision.from_dict(row.decision)
    if row.served is not None and row.served != row.arm:
        return _served(row, row.served, columns)
    if row.sensor is not None:
        return _measured(row, *columns.sensors[row.sensor])
    given = row.y[row.place or 0] if row.filled is None else row.filled
    seen = np.array(given, dtype=np.float64)  # null, a missing entry, is NaN
    # By the numbers of a row, which a bandit wrote, and not as one that is made by hand: every
    # reward by id takes this way.
    decision = Decision.made(
        row.arm,
        row.score,
        seen,
        None,
        row.event,
        False,
        tuple(row.predicted or ()),
        bool(np.isnan(seen).any()),
    )
    decision._probability, decision._recipe = row.probability, columns.recipe
    if columns.grown is not None:
        is_present = row.levels in (None, len(columns.grown))
        decision._grown = columns.grown if is_present else columns.grown[: row.levels]
    run, dash, number = row.event.partition("-")
    if dash and number.isdecimal() and len(number) <= LONGEST:  # as compiled code takes it
        decision._run, decision._number = run, int(number)
    return decision


def _measured(row: rows.Decision, sensor: Arm, recipe: str) -> Decision:
    """Return the decision of a row by a measurement of a sensor."""
    seen: Any = row.y[row.place or 0]
    return Decision(
        arm=row.arm,
        observation=seen,
        probability=row.probability,
        score=row.score,
        id=row.event,
        recipe=recipe,
        sensor=sensor,
    )


def _served(row: rows.Decision, served: Arm, columns: Columns) -> Decision:
    """Return the decision for an arm that was served in place of the chosen one."""
    own, filled = 0, row.filled
    if len(row.y) > 1:
        assert row.arms is not None
        own, filled = row.arms.index(served), None  # predictions are those of the chosen arm's row
    seen: Any = row.y[own] if filled is None else filled
    return Decision(
        arm=served,
        observation=seen,
        id=row.event,
        predicted=() if filled is None else row.predicted or (),
        levels=None if columns.grown is None else columns.grown[: row.levels],
        recipe=columns.recipe,
    )


def tells_of(row: rows.Decision | rows.Given, decision: Decision) -> bool:
    """Tell whether a row is that of a decision, and not of one with its id and another arm.

    Parameters
    ----------
    row : Decision or Given
        The row.
    decision : Decision
        A decision with the id of the row.
    """
    if isinstance(row, rows.Given):
        return bool(row.decision == decision.to_dict())
    if row.served is not None:
        return row.served == decision.arm
    if row.arm != decision.arm or row.predicted != (list(decision.predicted) or None):
        return False
    noted = row.y[row.place or 0] if row.filled is None else row.filled
    # A row that was just made has NaN where one that was read has null.
    return _nulls(decision._observation.tolist()) == _nulls(noted)


def _nulls(numbers: Iterable[float | None]) -> list[float | None]:
    return [None if x != x else x for x in numbers]


def last_decision(found: Iterable[rows.AnyRow]) -> rows.Decision | rows.Given | None:
    """Return the row of a decision among the rows of its event, the last if there are several."""
    made = [row for row in found if isinstance(row, rows.Decision | rows.Given)]
    return made[-1] if made else None
