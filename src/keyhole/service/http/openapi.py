"""The OpenAPI document, from the routes and the structures that they decode and encode.

The schemas are made from the classes that decode requests and encode answers.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

import keyhole
from keyhole.service.http import responses
from keyhole.service.http.problems import ProblemDetails
from keyhole.service.http.request import Request
from keyhole.service.http.routing import NO_UNIT, Answered, Route

if TYPE_CHECKING:
    from keyhole.service.http.app import Application

TEMPLATE = "#/components/schemas/{name}"
NDJSON = "application/x-ndjson"
# Statuses that every route may answer.
OF_ALL = (400, 401, 403, 404, 405, 408, 413, 422, 500, 503)


async def openapi(app: Application, _request: Request) -> Answered:
    """Return the OpenAPI document."""
    return responses.json(document(app.router.routes)), NO_UNIT


def document(routes: list[Route]) -> dict[str, Any]:
    """Return the OpenAPI document of routes."""
    types = [kind for route in routes for kind in _types(route)]
    schemas, components = msgspec.json.schema_components(types, ref_template=TEMPLATE)
    named = dict(zip(map(id, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, named)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Keyhole decision service",
            "version": keyhole.__version__,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "subscription": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Ocp-Apim-Subscription-Key",
                },
            },
        },
    }


def _types(route: Route) -> list[Any]:
    about = route.about
    answers = [kind for one in about.answers.values() for kind in _each(one)]
    given = [*answers, about.body, about.error or ProblemDetails]
    return [kind for kind in given if kind is not None]


def _each(kind: Any) -> tuple[Any, ...]:
    return kind if isinstance(kind, tuple) else (kind,)


def _operation(route: Route, named: dict[int, Any]) -> dict[str, Any]:
    about = route.about
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()} {route.path}",
        "summary": about.summary,
        "parameters": _parameters(route),
        "responses": _answers(route, named),
    }
    if route.role is not None:
        operation["security"] = [{"key": []}, {"subscription": []}, {}]
        operation["description"] = f"A key needs the role `{route.role}`."
    if about.body is not None or about.takes != "application/json":
        content = NDJSON if about.lines else about.takes
        media = _media(route, [] if about.body is None else [named[id(about.body)]])
        operation["requestBody"] = {"required": True, "content": {content: media}}
    return operation


def _media(route: Route, schemas: list[Any]) -> dict[str, Any]:
    """Return the schema of a body; lines are items of an array, as OpenAPI has them from 3.2 on."""
    if not schemas:
        return {}
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
    return {"schema": {"type": "array", "items": schema} if route.about.lines else schema}


def _parameters(route: Route) -> list[dict[str, Any]]:
    path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
        }
        for name in route.names
    ]
    query = [
        {"name": name, "in": "query", "required": False, **given}
        for name, given in route.about.query.items()
    ]
    return [*path, *query]


def _answers(route: Route, named: dict[int, Any]) -> dict[str, Any]:
    about = route.about
    found: dict[str, Any] = {}
    for status, kind in about.answers.items():
        found[str(status)] = {"description": HTTPStatus(status).phrase}
        if status != 204:
            content = NDJSON if about.lines else about.content
            schemas = [named[id(one)] for one in _each(kind) if one is not None]
            found[str(status)]["content"] = {
                one: _media(route, schemas) for one in (content, *about.contents)
            }
    error = about.error or ProblemDetails
    content = "application/problem+json" if error is ProblemDetails else "application/json"
    for status in sorted({*OF_ALL, *about.problems}):
        found[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {content: {"schema": named[id(error)]}},
        }
    return found
