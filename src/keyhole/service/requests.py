"""Requests to a loop and their answers, as plain typed structures of JSON; ids and names."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from keyhole.errors import InvalidValue, shown

MAX_ID_LENGTH = 200
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

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
    at_least: Annotated[int, msgspec.Meta(ge=0)] | None = None


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
        The number of the last row in the state that decided.
    mode : str
        The mode of the loop.
    proposed : str, optional
        In the mode "shadow", the arm that would have been chosen.
    explanation : dict, optional
        The contribution of each feature.
    unexplained : str, optional
        Why there is no explanation, although it was requested.
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
    unexplained: str | None = None


class RewardRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reward of an event.

    Parameters
    ----------
    value : float
        The reward.
    reward_id : str, default ""
        Distinguishes it from other rewards of the event: one of each id counts.
    """

    value: float
    reward_id: str = ""


class RewardAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a reward.

    Parameters
    ----------
    status : str
        "counted": it is learned. "amended": the event had ended, and it changes what was learned.
        "held": it is learned when the event is due, or active. "late": it came too late, and never
        counts. "ignored": the loop was off when it decided, or the arm was removed, and it never
        counts. "duplicate": one of this id came before, and nothing changed.
    total : float or None
        The total of the rewards of the event that count.
    version : int
        The number of the last row.
    """

    status: RewardStatus
    total: float | None
    version: int


def check_name(what: str, given: str) -> None:
    """Raise `InvalidValue` unless a text can be the name of a loop or of a key.

    Parameters
    ----------
    what : str
        What it names, in messages.
    given : str
        The text.
    """
    if not NAME.fullmatch(given):
        raise InvalidValue(
            f"{what} must be 1 to 100 letters, digits, '.', '_' or '-', and begin with a letter or "
            f"digit, got {shown(given)}"
        )


def check_event_id(given: str) -> None:
    """Raise `InvalidValue` unless a text can be the id of an event, which is a part of paths."""
    check_id("event_id", given)
    if given in (".", ".."):
        raise InvalidValue(
            f"event_id must not be '.' or '..', got {given!r}: clients leave it out of a path, and "
            "no reward could be sent"
        )


def check_id(name: str, given: str, shortest: int = 1) -> None:
    """Raise `InvalidValue` unless a text can be an id, or the name of an arm.

    Parameters
    ----------
    name : str
        Its name in messages.
    given : str
        The text.
    shortest : int, default 1
        The length that it must have.
    """
    if not shortest <= len(given) <= MAX_ID_LENGTH or not given.isprintable():
        raise InvalidValue(
            f"{name} must be a text of {shortest} to {MAX_ID_LENGTH} printable characters, got "
            f"{shown(given)}"
        )
