"""The answer to a request, from the row of its decision: the same row gives the same answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from keyhole.core import Arm, kernels
from keyhole.online import rows
from keyhole.service.requests import DecideAnswer


def decide_answer(
    row: rows.Decision | rows.Served, explanation: dict[str, Any] | None
) -> DecideAnswer:
    """Return the answer of a decision.

    Parameters
    ----------
    row : Decision or Served
        Its row.
    explanation : dict, optional
        What each feature adds.
    """
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
    return DecideAnswer(
        event_id=row.event,
        action=str(row.arm if served is None else served),
        probability=row.probability if served is None and row.probability is not None else 1.0,
        probabilities=_certain(names, served) if served is not None else probabilities(row, names),
        score=row.score,
        version=row.version,
        mode="online" if served is None else "shadow",
        proposed=None if served is None else str(row.arm),
        explanation=explanation,
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
    # Rows of learners of one's own have no scores; a loop has a linear one.
    assert row.mean is not None
    assert row.width is not None
    assert row.optimism is not None
    assert row.dispersion is not None
    n = len(row.mean)
    optimism = row.optimism if len(row.optimism) == n else row.optimism * n
    dispersion = row.dispersion if len(row.dispersion) == n else row.dispersion * n
    parts = zip(row.mean, row.width, optimism, dispersion, strict=True)
    scores = np.array([(mean + width * a, width * v) for mean, width, a, v in parts])
    # The numbers were checked when they were made: 25 us less than `choice_probabilities`.
    exact = kernels.winning_rows(scores[None, :, 0].copy(), scores[None, :, 1].copy())[0]
    kept, share = 1.0 - row.epsilon, row.epsilon / n
    chances = [kept * min(max(chance, 0.0), 1.0) + share for chance in exact.tolist()]
    found = dict(zip(map(str, names), chances, strict=True))
    if row.probability is not None:
        found[str(row.arm)] = row.probability  # the same number, to the last digit
    return found


def _certain(names: list[Arm], served: Arm) -> dict[str, float]:
    return {str(name): float(name == served) for name in names}
