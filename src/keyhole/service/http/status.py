"""Routes of the service itself: whether it lives, whether it is ready, its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from keyhole.service.http import metrics as prometheus
from keyhole.service.http import responses
from keyhole.service.http.problems import CONTENT, Problem, details
from keyhole.service.http.request import Request
from keyhole.service.http.responses import Response

if TYPE_CHECKING:
    from keyhole.service.http.app import Application


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What the service says of itself."""

    status: str


async def healthz(_app: Application, _request: Request) -> Response:
    """Say that the process answers."""
    return responses.json(Status(status="ok"))


async def readyz(app: Application, _request: Request) -> Response:
    """Say whether decisions can be made and written."""
    try:
        app.ready()
    except Problem as problem:
        return responses.json(details(problem), problem.status, (CONTENT, *problem.headers))
    return responses.json(Status(status="ready"))


async def metrics(app: Application, _request: Request) -> Response:
    """Return metrics in the text format of Prometheus."""
    return Response(200, app.metrics.text(app).encode(), (prometheus.CONTENT,))
