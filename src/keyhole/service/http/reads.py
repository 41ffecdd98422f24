"""Routes that show effects, and probabilities without a draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from keyhole.errors import InvalidValue, shown
from keyhole.service.candidates import Candidates, check_missing, checked_context
from keyhole.service.http import responses
from keyhole.service.http.problems import Problem
from keyhole.service.http.request import Request
from keyhole.service.http.routing import Answered
from keyhole.service.loop import Loop
from keyhole.service.requests import Action, DecideRequest

if TYPE_CHECKING:
    from keyhole.service.http.app import Application


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What one feature adds to the reward when it increases by 1, and its standard error.

    The error is null while the rewards do not determine the effect.
    """

    estimate: float
    error: float | None


class EffectsView(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of each arm, by feature, and the version of the state that they are of."""

    effects: dict[str, dict[str, Effect]]
    version: int


class ProbabilitiesView(msgspec.Struct, frozen=True, kw_only=True):
    """How likely each candidate is to be chosen now; nothing was drawn."""

    probabilities: dict[str, float]
    version: int


async def effects(app: Application, request: Request) -> Answered:
    """Show the estimates of each arm, with standard errors."""
    loop = app.ready().loop(request.params[0])
    found = {
        str(arm): {
            name: Effect(estimate=estimate, error=error)
            for name, (estimate, error) in one.by_name.items()
        }
        for arm, one in loop.bandit.effects.items()
    }
    return responses.json(EffectsView(effects=found, version=loop.version)), loop.unit


_decoder = msgspec.json.Decoder(DecideRequest)
# The parameters of GET, each a value of JSON, and their types.
PARAMETERS: dict[str, Any] = {
    "context": dict[str, Any] | list[float | None],
    "actions": list[Action],
    "exclude": list[str],
    "at_least": int,
}


async def get_probabilities(app: Application, request: Request) -> Answered:
    """Show how likely each candidate is, for a context in the query."""
    given: dict[str, Any] = {}
    for name, text in request.query(*PARAMETERS).items():
        try:
            given[name] = msgspec.json.decode(text, type=PARAMETERS[name])
        except msgspec.MsgspecError as reason:
            raise Problem(
                422, f"{name} must be JSON, as in a request to decide: {reason}"
            ) from None
    return await _probabilities(app, request, DecideRequest(**given))


async def post_probabilities(app: Application, request: Request) -> Answered:
    """Show how likely each candidate is, for the body of a request to decide."""
    return await _probabilities(app, request, _decoder.decode(await request.body(app.limits.body)))


async def _probabilities(app: Application, request: Request, given: DecideRequest) -> Answered:
    app.limits.check_decide(given)
    loop = app.ready().loop(request.params[0])
    loop.check_reached(given.at_least)
    found = ProbabilitiesView(probabilities=probabilities(loop, given), version=loop.version)
    return responses.json(found), loop.unit


def probabilities(loop: Loop, given: DecideRequest) -> dict[str, float]:
    """Return how likely each candidate of a request is to be chosen; nothing changes.

    Parameters
    ----------
    loop : Loop
        The loop.
    given : DecideRequest
        The request.
    """
    candidates = Candidates.of(loop.bandit, loop.settings, given)
    if candidates.new:
        raise InvalidValue(
            f"actions must be arms of the loop, got {shown(next(iter(candidates.new)))}: a "
            "decision adds new arms, and this adds none"
        )
    among: Any = candidates.records or candidates.names
    context: Any = checked_context(given.context, loop.bandit, loop.settings)[0]
    check_missing(loop.settings, context)
    found = loop.bandit.choice_probabilities(context, among=among)
    return {str(name): chance for name, chance in found.items()}
