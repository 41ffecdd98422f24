"""The answer to a request, from the row of its decision: the same row gives the same answer."""

from __future__ import annotations

from keyhole.core import Arm, kernels
from keyhole.online import rows
from keyhole.service.requests import DecideAnswer

# Workspaces for the probabilities of n candidates, by n. Only one thread uses them.
_chances: dict[int, kernels.Chances] = {}


def decide_answer(row: rows.Decision | rows.Served) -> DecideAnswer:
    """Return the answer of the row of a decision."""
    if isinstance(row, rows.Served):
        return DecideAnswer(
            event_id=row.event,
            action=str(row.arm),
            probability=1.0,
            probabilities=_certain(row.arms, row.arm),
            score=None,
            version=row.seq - 1,
            mode="off",
        )
    names, served = row.arms or [], row.served
    chance = row.probability if served is None else 1.0
    assert chance is not None  # settings refuse policies whose probabilities are unknown
    return DecideAnswer(
        event_id=row.event,
        action=str(row.arm if served is None else served),
        probability=chance,
        probabilities=_certain(names, served) if served is not None else probabilities(row, names),
        score=row.score,
        version=row.version,
        mode="online" if served is None else "shadow",
        proposed=None if served is None else str(row.arm),
    )


def probabilities(row: rows.Decision, names: list[Arm]) -> dict[str, float]:
    """Return the exact probability of every candidate of a decision.

    Parameters
    ----------
    row : Decision
        Its row.
    names : list of arms
        The candidates.
    """
    # Only rows of custom learners have no scores, and a loop has a linear one.
    assert row.mean is not None
    assert row.width is not None
    assert row.optimism is not None
    assert row.dispersion is not None
    n = len(row.mean)
    chances = _chances.get(n)
    if chances is None:
        chances = _chances[n] = kernels.Chances(n)
    # The numbers were checked when they were made.
    listed = chances.of(row.mean, row.width, row.optimism, row.dispersion, row.epsilon)
    found = dict(zip(map(str, names), listed, strict=True))
    if row.probability is not None:
        found[str(row.arm)] = row.probability  # the same number, to the last digit
    return found


def _certain(names: list[Arm], served: Arm) -> dict[str, float]:
    return {str(name): float(name == served) for name in names}
