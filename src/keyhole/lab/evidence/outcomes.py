"""Decisions on claims from estimates.

The burden of proof is on the claim. It holds if the whole interval lies on its side of a limit,
does not hold if the whole interval lies on the other side, and is undecided otherwise. A limit is
the claim's own number plus a margin, which each study states with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from keyhole.lab.evidence.estimates import Estimate


class Outcome(StrEnum):
    """The outcome of a run for a claim. The burden of proof is on the claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "cannot tell"


@dataclass(frozen=True)
class Verdict:
    """A claim with its outcome and the evidence.

    Parameters
    ----------
    claim : str
        The claim.
    outcome : Outcome
        The outcome from the table.
    evidence : str
        The numbers behind the outcome.
    """

    claim: str
    outcome: Outcome
    evidence: str


def at_most(found: Estimate, limit: float) -> Outcome:
    """Decide whether a number is at most a limit.

    Parameters
    ----------
    found : Estimate
        The number with its interval.
    limit : float
        The limit.

    Returns
    -------
    Outcome
        The decision.
    """
    if found.high <= limit:
        return Outcome.HOLDS
    return Outcome.FAILS if found.low > limit else Outcome.UNDECIDED


def at_least(found: Estimate, limit: float) -> Outcome:
    """Decide whether a number is at least a limit.

    Parameters
    ----------
    found : Estimate
        The number with its interval.
    limit : float
        The limit.

    Returns
    -------
    Outcome
        The decision.
    """
    return at_most(Estimate(-found.value, found.margin), -limit)


def within(found: Estimate, limit: float) -> Outcome:
    """Decide whether the absolute value of a number is at most a limit.

    Parameters
    ----------
    found : Estimate
        The number with its interval.
    limit : float
        The limit.

    Returns
    -------
    Outcome
        The decision.
    """
    return all_of([at_most(found, limit), at_least(found, -limit)])


def all_of(outcomes: list[Outcome]) -> Outcome:
    """Decide a claim about all of several cases: one that fails is enough to refute it."""
    if Outcome.FAILS in outcomes:
        return Outcome.FAILS
    return Outcome.UNDECIDED if Outcome.UNDECIDED in outcomes else Outcome.HOLDS


def counted(claim: str, outcomes: Mapping[str, Outcome], detail: str) -> Verdict:
    """Return one verdict about many cells, with the names of the cells that do not support it.

    Parameters
    ----------
    claim : str
        The claim, about every cell.
    outcomes : mapping of str to Outcome
        The outcome for each cell, by its name.
    detail : str
        The numbers behind the verdict.

    Returns
    -------
    Verdict
        The verdict.
    """
    held = sum(outcome == Outcome.HOLDS for outcome in outcomes.values())
    said = [f"holds for {held} of {len(outcomes)}"]
    for outcome in (Outcome.FAILS, Outcome.UNDECIDED):
        names = [name for name, one in outcomes.items() if one == outcome]
        if names:
            few = "; ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
            said.append(f"{outcome} for {few}")
    return Verdict(claim, all_of(list(outcomes.values())), f"{', '.join(said)}. {detail}")


def listed(found: Mapping[str, Estimate]) -> str:
    """Return all estimates as text."""
    return "; ".join(f"{name}: {one}" for name, one in found.items())
