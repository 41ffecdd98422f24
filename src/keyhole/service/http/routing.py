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

Render: TypeAlias = Callable[[Problem, str], Response]
# A handler returns the answer, and the unit that has to be committed before it is sent.
Answered: TypeAlias = tuple[Response, int]
# Of a request that has come whole, or of one that may have to wait for its body.
StraightHandler: TypeAlias = Callable[[Any, Request, bytes], Answered]
Handler: TypeAlias = Callable[[Any, Request], Awaitable[Answered]]
# The unit of an answer that follows from nothing in a log.
NO_UNIT = 0
# Paths whose route is cached. Those with the id of an event are not: they hardly come again.
MAX_KEPT = 1_000


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
        Its handler: a coroutine, or a `StraightHandler` if `is_straight`.
    role : str or None
        The role that a key must have; None if none is needed.
    about : Any, optional
        Its entry in the OpenAPI document, an `About`.
    loop : str, optional
        The loop that it is about, if the path does not name it.
    problem : callable, optional
        Renders an error, with the id of the request.
    is_straight : bool, default False
        Whether the handler answers as soon as it has the body, and waits for nothing but the disk.
    """

    method: str
    path: str
    handler: Handler | StraightHandler
    role: Role | None
    about: Any = None
    loop: str | None = None
    problem: Render = response_of
    is_straight: bool = False

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
    problems: set[Render] = field(default_factory=set)  # of all routes that begin here


# A route, and the variable segments of a path.
Found: TypeAlias = tuple[Route, list[str]]


class Router:
    """The routes.

    Parameters
    ----------
    routes : list of Route
        All of them.
    """

    def __init__(self, routes: list[Route]) -> None:
        self.routes, self._root = routes, _Node()
        self._kept: dict[tuple[str, bytes], Found] = {}
        for route in routes:
            node = self._root
            for part in route.path.split("/")[1:]:
                if part.startswith("{"):
                    node.variable = node.variable or _Node()
                    node = node.variable
                else:
                    node = node.fixed.setdefault(part.encode(), _Node())
                node.problems.add(route.problem)
            node.methods[route.method] = route
            if route.method == "GET":
                node.methods["HEAD"] = route

    def find(self, method: str, path: bytes) -> Found:
        """Return the route of a path, and its variable segments.

        Parameters
        ----------
        method : str
            The method.
        path : bytes
            The path, as it came.
        """
        kept = self._kept.get((method, path))
        if kept is not None:
            return kept
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
        if len(params) < 2:
            if len(self._kept) >= MAX_KEPT:  # by a client that tries many names
                self._kept.clear()
            self._kept[method, path] = route, params
        return route, params

    def render(self, path: bytes) -> Render:
        """Return the renderer of errors for a path without a route: that of its neighbours.

        Parameters
        ----------
        path : bytes
            The path, as it came.
        """
        node: _Node = self._root
        found: Render = response_of
        for part in path.split(b"/")[1:]:
            below = node.fixed.get(part) or node.variable
            if below is None:
                break
            node = below
            found = next(iter(node.problems)) if len(node.problems) == 1 else response_of
        return found


def _decoded(part: bytes) -> str:
    if b"%" in part:
        part = unquote_to_bytes(part)
    try:
        return part.decode()
    except UnicodeDecodeError:
        raise Problem(400, f"the path must be UTF-8, got {part[:100]!r}") from None


def _shown(path: bytes) -> str:
    return path[:200].decode("latin-1")
