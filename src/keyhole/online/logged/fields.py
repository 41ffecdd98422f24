"""Fields of rows, out of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keyhole.core import Floats, kernels
from keyhole.online.decision import Decision


def nulls(row: Floats) -> list[float | None]:
    """Return numbers as a row has them: NaN is null, a missing entry."""
    return [None if x != x else x for x in row.tolist()]


def decision_fields(
    decision: Decision, seen: Iterable[Floats], version: int, offset: float
) -> dict[str, Any]:
    """Return the fields of a decision's row that follow from the decision.

    Parameters
    ----------
    decision : Decision
        The decision.
    seen : iterable of arrays
        The observation, a row for all arms or one for each.
    version : int
        The last row that the state had taken in.
    offset : float
        The zero of rewards then.
    """
    predicted, grown, design = decision._predicted, decision._grown, decision._design
    probability, score = decision.probability, decision._score
    # Kernels that are not compiled give NumPy's numbers, which a row cannot hold.
    fields = {
        "event": decision._name(),
        "version": version,
        "arm": decision._arm,
        "probability": None if probability is None else float(probability),
        "score": None if score is None else float(score),
        "y": [row.tolist() for row in seen],
        **score_fields(decision._description, offset),
        "epsilon": float(decision._epsilon),
    }
    # Fields that most rows do not have: each takes time though it is null.
    if design is not None:
        fields["x"] = design.tolist()
    if predicted:
        fields["predicted"] = list(predicted)
        fields["filled"] = nulls(decision._observation)
    if grown is not None:
        fields["levels"] = len(grown)
    return fields


def score_fields(description: Floats, offset: float) -> dict[str, Any]:
    """Return the parts of every arm's score.

    Parameters
    ----------
    description : ndarray of shape (4, n_arms)
        Mean, width, optimism and dispersion.
    offset : float
        The zero that rewards are counted from.
    """
    mean, width, optimism, dispersion = kernels.score_lists(description, offset)
    fields = {"mean": mean, "width": width, "optimism": optimism, "dispersion": dispersion}
    if offset != 0.0 and not any(dispersion):  # which arm is best hangs on the last digit
        fields["centred"] = description[0].tolist()
    return fields
