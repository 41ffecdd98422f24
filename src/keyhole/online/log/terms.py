"""The terms of an event: what the sums have of its rewards, as its rows tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from keyhole.core import Arm
from keyhole.online.log import rows


class Learned(NamedTuple):
    """A reward of an event that was learned and not forgotten."""

    decision: rows.Decision | rows.Given
    term: rows.Term
    seq: int  # the row at which the term was so
    dropped: bool = False  # whether it was left out, since an entry was missing


def learned(found: Iterable[rows.AnyRow]) -> list[Learned]:
    """Return the rewards of an event that were learned, as the last row of each has them.

    Parameters
    ----------
    found : iterable of rows
        The rows of the event, in order, as `Store.rows_of` returns them.
    """
    decision: rows.Decision | rows.Given | None = None
    known: list[Learned] = []
    for row in found:
        if isinstance(row, rows.Decision | rows.Given):
            decision = row
        elif decision is None:
            continue
        elif isinstance(row, rows.Reward):
            known = [*_at_context(known, row), _of_reward(decision, row)]
        elif isinstance(row, rows.Counted):
            others = [one for one in known if one.term.key != row.term.key]
            known = [*others, Learned(decision, rows.replaced(row.term, key=None), row.seq)]
        elif isinstance(row, rows.Amend):
            known = _amended(decision, known, row)
        elif isinstance(row, rows.Context):
            known = _at_context(known, row)
        elif isinstance(row, rows.Forget):
            known = []
    return known


def arm_of(row: rows.Decision | rows.Given) -> Arm:
    """Return the arm of a decision's row."""
    if isinstance(row, rows.Given):
        arm: Arm = row.decision["arm"]
        return arm
    return row.taken


def _of_reward(decision: rows.Decision | rows.Given, row: rows.Reward) -> Learned:
    x = row.x
    if x is None and isinstance(decision, rows.Decision) and decision.sensor is None:
        x = None if decision.x is None else [*decision.x]
    term = rows.Term(
        arm=arm_of(decision),
        value=row.value if row.counted is None else row.counted,
        x=x,
        weight=1.0 if row.weight is None else row.weight,
        key=row.key,
        sensor=decision.sensor if isinstance(decision, rows.Decision) else None,
        context=row.clipped or row.context,
    )
    return Learned(decision, term, row.seq, row.dropped)


def _at_context(known: list[Learned], row: rows.Reward | rows.Context) -> list[Learned]:
    """Return rewards after their context became known, with another reward or alone."""
    context = row.clipped or row.context
    if context is None:
        return known
    return [
        one
        if one.term.context is not None
        else one._replace(term=rows.replaced(one.term, context=context), seq=row.seq)
        for one in known
    ]


def _amended(
    decision: rows.Decision | rows.Given, known: list[Learned], row: rows.Amend
) -> list[Learned]:
    """Return the one reward of an event after it was amended."""
    if row.term is None:  # the sums had nothing of it, and have not now
        return [one._replace(term=rows.replaced(one.term, value=row.value)) for one in known] or [
            Learned(decision, rows.Term(arm=arm_of(decision), value=row.value), row.seq, True)
        ]
    return [Learned(decision, rows.replaced(row.term, value=row.value), row.seq)]
