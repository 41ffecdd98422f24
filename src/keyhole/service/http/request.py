"""`Request`: a request as handlers see it; bytes of its body are counted while they are read."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from keyhole.errors import shown
from keyhole.service.http.deadlines import Deadlines
from keyhole.service.http.problems import Problem
from keyhole.service.http.responses import Receive, Scope

# Parts of a query: enough for every route, and no work for a list of a million.
MAX_PARAMETERS = 50


class Request:
    """A request.

    Parameters
    ----------
    scope : dict
        The request line and headers, of ASGI.
    receive : callable
        The channel of the body.
    params : list of str
        The variable segments of the path, in order.
    deadlines : Deadlines
        Cancels reading a body that does not come.
    seconds : float
        How long a body may take.
    headers : dict, optional
        The headers of the scope, which are the last ones of those with one name.
    """

    __slots__ = ("_deadlines", "_receive", "_seconds", "headers", "key", "params", "scope")

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        params: list[str],
        deadlines: Deadlines,
        seconds: float,
        headers: dict[bytes, bytes] | None = None,
    ) -> None:
        self.scope, self._receive, self.params = scope, receive, params
        self._deadlines, self._seconds = deadlines, seconds
        self.headers: dict[bytes, bytes] = dict(scope["headers"]) if headers is None else headers
        self.key: Any = None  # the key that was accepted

    def header(self, name: bytes) -> str:
        """Return a header, or an empty text."""
        return self.headers.get(name, b"").decode("latin-1")

    def query(self, *names: str) -> dict[str, str]:
        """Return the parameters of the query; the last of several with one name.

        Parameters
        ----------
        *names : str
            Those that the route takes; others are refused.
        """
        try:
            text = self.scope["query_string"].decode("ascii")
            pairs = parse_qsl(
                text, keep_blank_values=True, max_num_fields=MAX_PARAMETERS, errors="strict"
            )
        except ValueError as reason:
            raise Problem(400, f"the query cannot be read: {reason}") from None
        for name, _ in pairs:
            if name not in names:
                raise Problem(422, f"the query takes {', '.join(names)}, got {shown(name)}")
        return dict(pairs)

    async def body(self, limit: int) -> bytes:
        """Return the body, or raise a `Problem` of status 413 or 408.

        Parameters
        ----------
        limit : int
            How many bytes it may have.
        """
        length = self.headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > limit:
            raise too_large(limit)
        with self._deadlines.within(self._seconds):
            message = await self._receive()
            body: bytes = message.get("body", b"")
            if message.get("more_body", False):
                body = await self._rest([body], len(body), limit)
        if message["type"] == "http.disconnect":
            raise gone()
        if len(body) > limit:
            raise too_large(limit)
        return body

    async def _rest(self, parts: list[bytes], size: int, limit: int) -> bytes:
        while size <= limit:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise gone()
            part = message.get("body", b"")
            parts.append(part)
            size += len(part)
            if not message.get("more_body", False):
                break
        return b"".join(parts)


def gone() -> Problem:
    """Return the problem of a client that left: the answer cannot be delivered."""
    return Problem(408, "the client left before its request was whole")


def too_large(limit: int) -> Problem:
    """Return the problem of a body that is too large."""
    # It also ends the connection: the rest of the body need not be read.
    return Problem(
        413,
        f"the body must have at most {limit} bytes: send it in parts",
        ((b"connection", b"close"),),
    )
