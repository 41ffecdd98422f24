"""`Router`: from a path to its handler, segment by segment.

A segment is decoded after the path was split, so that the id of an event may have a slash, as %2F.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

from keyhole.service.http.problems import Problem, response_of
from keyhole.service.http.request import Request
from keyhole.service.http.responses import Response
from keyhole.service.keys import Role

Handler: TypeAlias = Callable[[Any, Request], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Route:
    """A method of a path.

    Parameters
    ----------
    method : str
        The method.
    path : str
        The path, with variable segments in braces.
    handler : callable
        What answers it.
    role : str or None
        The role that a key must have; None if none is needed.
    about : Any, optional
        What the OpenAPI document tells of it.
    loop : str, optional
        The loop that it is about, if the path does not tell.
    problem : callable, optional
        What renders an error, with the id of the request.
    """

    method: str
    path: str
    handler: Handler
    role: Role | None
    about: Any = None
    loop: str | None = None
    problem: Callable[[Problem, str], Response] = response_of

    @property
    def names(self) -> list[str]:
        """The names of the variable segments."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @cached_property
    def has_loop(self) -> bool:
        """Whether the first variable segment is the name of a loop."""
        return self.names[:1] == ["loop"]


@dataclass(slots=True)
class _Node:
    fixed: dict[bytes, _Node] = field(default_factory=dict)
    variable: _Node | None = None
    methods: dict[str, Route] = field(default_factory=dict)


class Router:
    """The routes.

    Parameters
    ----------
    routes : list of Route
        All of them.
    """

    def __init__(self, routes: list[Route]) -> None:
        self.routes, self._root = routes, _Node()
        for route in routes:
            node = self._root
            for part in route.path.split("/")[1:]:
                if part.startswith("{"):
                    node.variable = node.variable or _Node()
                    node = node.variable
                else:
                    node = node.fixed.setdefault(part.encode(), _Node())
            node.methods[route.method] = route
            if route.method == "GET":
                node.methods["HEAD"] = route

    def find(self, method: str, path: bytes) -> tuple[Route, list[str]]:
        """Return the route of a path, and its variable segments.

        Parameters
        ----------
        method : str
            The method.
        path : bytes
            The path, as it came.
        """
        node, params = self._root, []
        for part in path.split(b"/")[1:]:
            found = node.fixed.get(part)
            if found is None:
                found = node.variable
                if found is None or not part:
                    raise Problem(404, f"there is no route {_shown(path)}; see /openapi.json")
                params.append(_decoded(part))
            node = found
        route = node.methods.get(method)
        if route is None:
            if not node.methods:
                raise Problem(404, f"there is no route {_shown(path)}; see /openapi.json")
            allowed = ", ".join(sorted(node.methods))
            raise Problem(
                405,
                f"{_shown(path)} takes {allowed}, got {method[:20]}",
                ((b"allow", allowed.encode()),),
            )
        return route, params


def _decoded(part: bytes) -> str:
    if b"%" in part:
        part = unquote_to_bytes(part)
    try:
        return part.decode()
    except UnicodeDecodeError:
        raise Problem(400, f"the path must be UTF-8, got {part[:100]!r}") from None


def _shown(path: bytes) -> str:
    return path[:200].decode("latin-1")
