"""`decide` and `decide:batch`: the routes that a program waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from keyhole.service.http import batches, responses
from keyhole.service.http.proposing import check_first, first_settings
from keyhole.service.http.request import Request
from keyhole.service.http.responses import JSON
from keyhole.service.http.routing import Answered
from keyhole.service.loop import Decided
from keyhole.service.requests import DecideRequest
from keyhole.service.service import Service, UnknownLoop
from keyhole.service.settings import LoopSettings

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
    except UnknownLoop as unknown:
        check_may_make(request, unknown)
    return decided_first(service, name, first_settings(given), given)


def check_may_make(request: Request, unknown: UnknownLoop) -> None:
    """Raise `UnknownLoop`, unless the key of a request may make loops.

    Parameters
    ----------
    request : Request
        The request.
    unknown : UnknownLoop
        The exception to raise.
    """
    if "admin" not in request.key.roles:
        raise unknown


def decided_first(
    service: Service,
    name: str,
    settings: LoopSettings,
    given: DecideRequest,
    digest: bytes | None = None,
) -> Decided:
    """Make a loop for its first request, and decide.

    Both are in the log, or neither. The loop must be known to be new: to load or recover one needs
    the thread that `together` keeps from writing.

    Parameters
    ----------
    service : Service
        The service.
    name : str
        The loop, which does not exist.
    settings : LoopSettings
        Its settings.
    given : DecideRequest
        The request.
    digest : bytes, optional
        A digest of it, as in `Service.decide`.
    """
    check_first(settings, given)
    with service.writer.together():
        service.create(name, settings)
        return service.decide(name, given, digest)


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
