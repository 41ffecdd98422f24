"""Routes of the model: the bandit of a loop as a file, and a loop that continues one.

A model is a function of its log. A file therefore begins a new loop, as the first row of its log,
and never replaces what another loop has learned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from keyhole.core import Features, Learner
from keyhole.errors import FileError, InvalidValue, shown
from keyhole.online import Bandit
from keyhole.service.http import loops, responses
from keyhole.service.http.request import Request
from keyhole.service.http.responses import Response
from keyhole.service.http.routing import Answered
from keyhole.service.loop import Conflict
from keyhole.service.settings import LoopSettings

if TYPE_CHECKING:
    from keyhole.service.http.app import Application

CONTENT = (b"content-type", b"application/octet-stream")


async def get_model(app: Application, request: Request) -> Answered:
    """Return the bandit of a loop, which `keyhole.Bandit.load` takes."""
    loop = app.ready().loop(request.params[0])
    model, version = loop.bandit.keyed_bytes(), b'"%d"' % loop.version
    return Response(200, model, (CONTENT, (b"etag", version))), loop.unit


async def put_model(app: Application, request: Request) -> Answered:
    """Make a loop that continues a saved bandit."""
    body = await request.body(app.limits.batch)
    service, name = app.ready(), request.params[0]
    if name in service.names:
        raise Conflict(
            f"loop {name!r} has a log, of which its model is a function: put the model of a loop "
            "that does not exist"
        )
    try:
        bandit = Bandit.load(body)
    except FileError as reason:
        raise InvalidValue(f"the body must be a saved Bandit: {reason}") from None
    loop = service.create(name, settings_of(bandit), bandit)
    return responses.json(loops.view(loop), 201), loop.unit


def settings_of(bandit: Bandit) -> LoopSettings:
    """Return the settings of a loop that can continue a saved bandit.

    Raises
    ------
    InvalidValue
        If a loop cannot have its learner.
    """
    learner, policy = bandit.learner, bandit.policy
    if not isinstance(learner, Learner) or not isinstance(learner.features, Features | None):
        raise InvalidValue(f"a loop cannot have the learner {shown(learner)}")
    names = [name for name in bandit.arms if not isinstance(name, str)]
    if names:
        raise InvalidValue(f"arms of a loop must have texts as names, got {shown(names[0])}")
    given: dict[str, Any] = {
        "policy": {"name": type(policy).__name__, **plain(policy)},
        "arms": list(bandit.arms),
    }
    if learner.features is not None:
        given["features"] = plain_features(learner.features.to_dict())
    else:
        given |= {
            "dim": bandit.dim,
            "intercept": learner.intercept,
            "standardize": learner.standardize,
            "missing": learner.missing,
            "clip_rewards": learner.clip_rewards,
        }
    settings = LoopSettings.of(given)
    if settings.learner() != learner:
        raise InvalidValue(
            f"a loop cannot have the learner {shown(learner)}: without features it has intercept, "
            "standardize and missing only"
        )
    return settings


def plain(recipe: Any) -> dict[str, Any]:
    """Return the settings of a frozen recipe as values of JSON."""
    record: dict[str, Any] = msgspec.to_builtins(recipe)
    return record


def plain_features(record: dict[str, Any]) -> dict[str, Any]:
    """Return what `Features.to_dict` gave as arguments of `Features`."""
    arms = record["arms"]
    return {
        **record,
        "categories": dict(record["categories"]),
        "arms": None if arms is None else plain_features(arms),
    }
