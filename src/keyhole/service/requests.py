"""What clients ask of a loop, and what they are answered: plain typed structures of JSON."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Context = dict[str, Any] | list[float | None]
RewardStatus = Literal["counted", "duplicate", "held", "late", "amended", "ignored"]


class Action(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A candidate: its name, and its features if it has some."""

    id: str
    features: dict[str, Any] | None = None


class DecideRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a decision.

    Parameters
    ----------
    context : dict or list
        Fields by name, or numbers. Null is a missing entry.
    event_id : str, optional
        The id of the event. The same id again gives the same answer.
    actions : list of Action, optional
        The candidates; all arms of the loop by default.
    exclude : list of str, default []
        Candidates that must not be chosen.
    baseline : str, optional
        The arm that is answered in the modes "shadow" and "off".
    defer : bool, default False
        Learn the event only after it was activated.
    explain : bool, default False
        Say what each feature adds.
    at_least : int, optional
        A version that the state must have reached.
    """

    context: Context = {}
    event_id: str | None = None
    actions: list[Action] | None = None
    exclude: list[str] = []
    baseline: str | None = None
    defer: bool = False
    explain: bool = False
    at_least: int | None = None


class DecideAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision.

    Parameters
    ----------
    event_id : str
        The id, by which rewards are sent.
    action : str
        The arm.
    probability : float
        The exact probability with which it was chosen; 1 for a baseline.
    probabilities : dict of str to float
        Those of all candidates.
    score : float or None
        Its score.
    version : int
        The number of the last row that the state had taken in.
    mode : str
        The mode of the loop.
    proposed : str, optional
        In the mode "shadow", the arm that would have been chosen.
    explanation : dict, optional
        What each feature adds.
    """

    event_id: str
    action: str
    probability: float
    probabilities: dict[str, float]
    score: float | None
    version: int
    mode: str
    proposed: str | None = None
    explanation: dict[str, Any] | None = None


class RewardRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reward of an event.

    Parameters
    ----------
    value : float
        The reward.
    reward_id : str, default ""
        What tells it from other rewards of the event: one of each id counts.
    """

    value: float
    reward_id: str = ""


class RewardAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a reward.

    Parameters
    ----------
    status : str
        "counted": it is learned. "amended": it changes what was learned. "held": it is learned when
        the event is due, or active. "late": it came too late, and is not learned. "ignored": the
        loop was off, or the arm was removed. "duplicate": one of this id came before, and nothing
        changed.
    total : float or None
        What the rewards of the event come to.
    version : int
        The number of the last row.
    """

    status: RewardStatus
    total: float | None
    version: int
