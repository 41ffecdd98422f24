"""The settings of a loop that is made by its first request.

    a field that is a number          `numbers`, in units of its own spread
    a field that is true or false     `booleans`
    a field that is a text            `categories` that grow: a text gets a column when it comes
    a list of numbers                 `dim`, with a constant and units; null is predicted
    actions                           the arms; later ones join (`add_arms`)
    actions with features             features of arms, crossed with those of the context, for one
                                      parameter that all arms share: new actions are known by their
                                      features

Null does not tell the kind of a named field, and is refused here; later it is a missing entry.
Rewards are learned when they come. All this is written into the log, and `GET /v1/loops/{loop}`
shows it; `PUT` changes what can be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keyhole.errors import InvalidValue, shown
from keyhole.online import Bandit
from keyhole.service.candidates import Candidates, checked_context
from keyhole.service.requests import DecideRequest, check_event_id
from keyhole.service.settings import LoopSettings

# Pairs of a field of the context and one of the arms. A cross has a column for each pair of levels,
# and a decision takes time with the square of the columns.
MAX_CROSSES = 30
# Numbers of the posteriors, arms times the square of the fields: 4 MB, made within 0.1 s, while
# nothing else is served. PUT allows more.
MAX_SUMS = 500_000


def first_settings(request: DecideRequest) -> LoopSettings:
    """Return settings for a loop, from its first request.

    Raises
    ------
    InvalidValue
        If the request does not say enough.
    """
    if not request.actions:
        raise InvalidValue(
            "there is no such loop, and a first request makes one only if it lists its actions, "
            'such as [{"id": "A"}, {"id": "B"}]; or create the loop with PUT'
        )
    names = [action.id for action in request.actions]
    if isinstance(request.context, list):
        if not request.context:
            raise _nothing()
        given: dict[str, Any] = {"dim": len(request.context), "arms": names, "add_arms": True}
        given |= {"intercept": True, "standardize": True, "missing": "predict"}
        return LoopSettings.of(given)
    records = [action.features for action in request.actions if action.features]
    return LoopSettings.of(by_records(request.context, records, names))


def check_first(settings: LoopSettings, request: DecideRequest) -> None:
    """Raise if a loop that is made for a request could not answer it: none is made then.

    Parameters
    ----------
    settings : LoopSettings
        The settings of the loop.
    request : DecideRequest
        Its first request.
    """
    check_size(settings, request)
    if request.event_id is not None:
        check_event_id(request.event_id)
    if request.at_least is not None:
        raise InvalidValue(f"at_least must be null for a new loop, got {request.at_least}")
    bandit: Any = Bandit(settings.learner(), arms=settings.arms, dim=settings.dim)
    candidates = Candidates.of(bandit, settings, request)
    among: Any = candidates.records or candidates.names
    context: Any = checked_context(request.context, bandit, settings)[0]
    bandit.choice_probabilities(context, among=among)


def check_size(settings: LoopSettings, request: DecideRequest) -> None:
    """Raise `InvalidValue` if posteriors would be large: a long list must not stop the service.

    Parameters
    ----------
    settings : LoopSettings
        The settings of the loop.
    request : DecideRequest
        Its first request.
    """
    # Arms with features share one posterior, of their fields, those of the context and pairs.
    features = settings.features or {}
    of_arms = fields_of(features.get("arms") or {})
    fields = len(request.context) + len(of_arms) + len(features.get("cross", ()))
    arms = 1 if of_arms else len(request.actions or ())
    if arms * fields**2 > MAX_SUMS:
        raise InvalidValue(
            f"a loop that is made by its first request may learn {MAX_SUMS:,} numbers, arms times "
            f"the square of the fields, got {arms:,} arms and {fields:,} fields: create the loop "
            "with PUT, which allows more"
        )


def by_records(
    context: Mapping[str, Any], records: list[dict[str, Any]], names: list[str]
) -> dict[str, Any]:
    """Return settings for a context and actions with names.

    Parameters
    ----------
    context : mapping
        The context.
    records : list of dict
        The features of actions that have some.
    names : list of str
        The names of the actions.
    """
    if not records:
        if not context:
            raise _nothing()
        # As these came with a request, so may others.
        return {"features": kinds("context", [context]), "arms": names, "add_arms": True}
    arms = kinds("actions: features", records)
    features = kinds("context", [context]) if context else {}
    pairs = [[one, f"arm.{other}"] for one in fields_of(features) for other in fields_of(arms)]
    if len(pairs) > MAX_CROSSES:
        raise InvalidValue(
            f"the context has {len(fields_of(features))} fields and the actions "
            f"{len(fields_of(arms))}, and a loop that is made by its first request crosses at most "
            f"{MAX_CROSSES} pairs of them: create the loop with PUT, and say which count"
        )
    return {
        "policy": {"name": "ThompsonSampling", "sharing": "shared"},
        "features": {**features, "arms": arms, "cross": pairs},
        "arms": [],
    }


def kinds(name: str, records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arguments of `Features` for the fields of records.

    Parameters
    ----------
    name : str
        The name of the records in messages.
    records : iterable of mappings
        The records. The first value of a field that is not null tells its kind.
    """
    found: dict[str, Any] = {}
    for record in records:
        for field, value in record.items():
            if found.get(field) is None:
                found[field] = value
    unknown = [field for field, value in found.items() if value is None]
    if unknown:
        raise InvalidValue(
            f"{name}.{unknown[0]} is null in the request that makes the loop, and null does "
            "not tell its kind: send a value, or create the loop with PUT"
        )
    made: dict[str, Any] = {"numbers": [], "booleans": [], "categories": {}}
    for field, value in found.items():
        if isinstance(value, bool):
            made["booleans"].append(field)
        elif isinstance(value, int | float):
            made["numbers"].append(field)
        elif isinstance(value, str):
            made["categories"][field] = "grow"
        else:
            raise InvalidValue(
                f"{name}.{field} must be a number, true, false or a text, got {shown(value)}"
            )
    return made


def fields_of(features: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields of the arguments of `Features`."""
    return [
        name for kind in ("numbers", "booleans", "categories") for name in features.get(kind, ())
    ]


def _nothing() -> InvalidValue:
    return InvalidValue(
        "context must have at least one field or number in the request that makes a loop, got none"
    )
