"""Routes of the service itself: whether it lives, whether it is ready, its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from keyhole.service.http import metrics as prometheus
from keyhole.service.http import responses
from keyhole.service.http.problems import CONTENT, Problem, details
from keyhole.service.http.request import Request
from keyhole.service.http.responses import Response
from keyhole.service.http.routing import NO_UNIT, Answered

if TYPE_CHECKING:
    from keyhole.service.http.app import Application


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the service."""

    status: str


async def healthz(_app: Application, _request: Request) -> Answered:
    """Say that the process answers."""
    return responses.json(Status(status="ok")), NO_UNIT


async def readyz(app: Application, _request: Request) -> Answered:
    """Say whether decisions can be made and written."""
    try:
        app.ready()
    except Problem as problem:
        headers = (CONTENT, *problem.headers)
        return responses.json(details(problem), problem.status, headers), NO_UNIT
    return responses.json(Status(status="ready")), NO_UNIT


async def metrics(app: Application, _request: Request) -> Answered:
    """Return metrics in the text format of Prometheus, also while the disk confirms nothing."""
    return Response(200, app.metrics.text(app).encode(), (prometheus.CONTENT,)), NO_UNIT
