"""Personalizer's requests as requests of the service: features become fields with names.

    {"user": {"device": "mobile"}}     the field user.device
    "tags": [0.3, 0.7]                 the fields tags[0] and tags[1]
    "_note": ...                       nothing: names that begin with _ are ignored
    null                               a missing entry

The first request of a loop tells which fields there are, and of which kind. Later ones are left out
and counted (`ignored_fields` of the loop). Hashing all fields into a fixed number of columns would
take in later ones too, but two fields that fall into one column are learned as one, silently; a
column that has a name can be shown, explained and corrected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from keyhole.errors import InvalidValue, shown
from keyhole.service.http.proposing import MAX_CROSSES, by_records, fields_of
from keyhole.service.requests import Action, DecideRequest
from keyhole.service.settings import LoopSettings

# Personalizer's defaults: the first reward within ten minutes, or else 0.
REWARD = {"default": 0.0, "wait": "PT10M", "aggregate": "first", "learn": "at_end"}


class RankableAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action with its features."""

    id: str
    features: list[dict[str, Any]] | None = None


class RankRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A request of Personalizer for a ranking."""

    actions: list[RankableAction]
    context_features: list[dict[str, Any]] | None = None
    excluded_actions: list[str] | None = None
    event_id: str | None = None
    defer_activation: bool | None = None


class RankedAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action, and its probability of being chosen."""

    id: str
    probability: float


class RankResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The ranking; rewards of the event are of `rewardActionId`."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


def flat(name: str, features: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Return free-form features as fields with names.

    Parameters
    ----------
    name : str
        Their name in messages.
    features : list of dict, optional
        The features. A field must come once: of two values one would be lost.
    """
    found: dict[str, Any] = {}
    for one in features or ():
        for field, value in _fields("", one):
            if isinstance(value, list):
                raise InvalidValue(
                    f"{name}: {field} must be a text, a number, true, false, an object or an array "
                    f"of numbers, got {shown(value)}"
                )
            if field in found:
                raise InvalidValue(f"{name}: {field} must come once, got it twice")
            found[field] = value
    return found


def check_once(body: bytes) -> None:
    """Raise `InvalidValue` if an object of a body has a name twice: the decoder takes the last."""
    # Numbers stay texts: json would refuse those with thousands of digits.
    json.loads(body, object_pairs_hook=_once, parse_int=str, parse_float=str)


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise InvalidValue(f"an object must have a name once, got {shown(twice)} twice")


def _fields(before: str, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if name.startswith("_"):
            continue
        path = f"{before}.{name}" if before else name
        if isinstance(value, dict):
            yield from _fields(path, value)
        elif isinstance(value, list) and all(_is_number(part) for part in value):
            yield from ((f"{path}[{place}]", part) for place, part in enumerate(value))
        else:
            yield path, value


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def as_decide(given: RankRequest) -> DecideRequest:
    """Return a request for a ranking as one for a decision."""
    return DecideRequest(
        context=flat("contextFeatures", given.context_features),
        event_id=given.event_id or None,
        actions=[
            Action(id=action.id, features=flat(f"features of {action.id}", action.features) or None)
            for action in given.actions
        ],
        exclude=given.excluded_actions or [],
        defer=bool(given.defer_activation),
    )


def personalizer_settings(given: DecideRequest) -> LoopSettings:
    """Return the settings of a loop that a first request makes."""
    assert isinstance(given.context, dict)
    actions = given.actions or []
    context = _without_null(given.context)
    records = [record for one in actions if (record := _without_null(one.features or {}))]
    fields = {name for record in records for name in record}
    if records and len(context) * len(fields) > MAX_CROSSES:
        records = []  # each action is then known by its id
    if not context and not records:
        raise InvalidValue(
            "the first request of a loop must have a feature, of the context or of an action, got "
            "none"
        )
    settings = by_records(context, records, [action.id for action in actions])
    return LoopSettings.of({**settings, "reward": REWARD, "ignore_unknown_fields": True})


def _without_null(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not null: null does not tell the kind of a field."""
    return {name: value for name, value in record.items() if value is not None}


def without_unknown(
    settings: LoopSettings, given: DecideRequest
) -> tuple[DecideRequest, list[str]]:
    """Return a request without features of actions that settings do not have, and these.

    Parameters
    ----------
    settings : LoopSettings
        The settings of a loop.
    given : DecideRequest
        The request.
    """
    arms = (settings.features or {}).get("arms") or {}
    fields = set(fields_of(arms))
    actions, ignored = [], []
    for action in given.actions or ():
        record = action.features or {}
        ignored += [f"arm.{name}" for name in record if name not in fields]
        kept = {name: value for name, value in record.items() if name in fields}
        actions.append(Action(id=action.id, features=kept or None))
    return msgspec.structs.replace(given, actions=actions), ignored
