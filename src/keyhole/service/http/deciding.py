"""`decide` and `decide:batch`: the routes that a program waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from keyhole.service.http import batches, responses
from keyhole.service.http.proposing import check_first, proposed
from keyhole.service.http.request import Request
from keyhole.service.http.responses import JSON
from keyhole.service.http.routing import Answered
from keyhole.service.loop import Decided
from keyhole.service.requests import DecideRequest
from keyhole.service.service import UnknownLoop

if TYPE_CHECKING:
    from keyhole.service.http.app import Application

ONCE = (JSON,)
REPLAY = (JSON, (b"idempotent-replay", b"true"))
_decoder = msgspec.json.Decoder(DecideRequest)


def decide(app: Application, request: Request, body: bytes) -> Answered:
    """Decide.

    Parameters
    ----------
    app : Application
        The application.
    request : Request
        The request.
    body : bytes
        Its body.
    """
    decided = decided_by(app, request, _decoder.decode(body))
    headers = REPLAY if decided.is_replay else ONCE
    return responses.json(decided.answer, 200, headers), decided.unit


def decided_by(app: Application, request: Request, given: DecideRequest) -> Decided:
    """Decide in the loop of a request, which is made if it does not exist.

    Parameters
    ----------
    app : Application
        The application.
    request : Request
        The request, whose key must have the role "admin" to make a loop.
    given : DecideRequest
        Its content.
    """
    app.limits.check_decide(given)
    service, name = app.ready(), request.params[0]
    try:
        return service.decide(name, given)
    except UnknownLoop:
        if "admin" not in request.key.roles:
            raise
    settings = proposed(given)
    check_first(settings, given)
    with service.writer.together():  # the request is in the log as a whole, or not at all
        service.create(name, settings)
        return service.decide(name, given)


async def decide_batch(app: Application, request: Request) -> Answered:
    """Decide for each line, and answer each with a status of its own."""

    def one(number: int, line: bytes) -> tuple[int, Any]:
        decided = decided_by(app, request, _decoder.decode(line))
        answer = decided.answer
        return decided.unit, batches.Decision(
            line=number,
            event_id=answer.event_id,
            status=200,
            answer=answer,
            replay=decided.is_replay,
        )

    return await batches.answered(app, request, one)
