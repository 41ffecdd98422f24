"""`decide` and `decide:batch`: the routes that a program waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from keyhole.service.http import batches, responses
from keyhole.service.http.proposing import check_first, proposed
from keyhole.service.http.request import Request
from keyhole.service.http.responses import JSON, Response
from keyhole.service.loop import Decided
from keyhole.service.requests import DecideRequest
from keyhole.service.service import UnknownLoop

if TYPE_CHECKING:
    from keyhole.service.http.app import Application

REPLAY = (JSON, (b"idempotent-replay", b"true"))
_decoder = msgspec.json.Decoder(DecideRequest)


async def decide(app: Application, request: Request) -> Response:
    """Decide, and answer when the decision is on the disk."""
    given = _decoder.decode(await request.body(app.limits.body))
    decided = decided_by(app, request, given)
    # Encoded while the disk works.
    response = (
        responses.json(decided.answer, 200, REPLAY)
        if decided.is_replay
        else responses.json(decided.answer)
    )
    await app.commits.wait(decided.unit)
    return response


def decided_by(app: Application, request: Request, given: DecideRequest) -> Decided:
    """Decide in the loop of a request, which is made if it is not there.

    Parameters
    ----------
    app : Application
        The application.
    request : Request
        The request, whose key must be one of role "admin" to make a loop.
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
    service.create(name, settings)
    return service.decide(name, given)


async def decide_batch(app: Application, request: Request) -> Response:
    """Decide for each line, and answer each with a status of its own."""

    def one(line: bytes) -> tuple[int, Any]:
        decided = decided_by(app, request, _decoder.decode(line))
        return decided.unit, batches.Decision(
            status=200, answer=decided.answer, replay=decided.is_replay
        )

    return await batches.answered(app, request, one)
