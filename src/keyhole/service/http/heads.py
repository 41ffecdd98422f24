"""`Heads`: heads of requests that were parsed before.

Programs send the same head with every request, but for the length of the body. To parse it again
takes a sixth of the time of a decision. The content of a head depends on its bytes alone. Its key
is checked at every request.
"""

from __future__ import annotations

from typing import NamedTuple, Self
from urllib.parse import unquote

from keyhole.service.http.responses import Header, Scope
from keyhole.service.http.routing import Route

# How many heads are kept, and the longest of them: 2 MB of bytes, and what was parsed of them.
# Heads with an id of their request fill the cache. A full cache is cleared whole, which costs less
# than finding the oldest entry.
MAX_HEADS, MAX_BYTES = 1_000, 2_000


class Head(NamedTuple):
    """The parsed head of a request to a straight route.

    Attributes
    ----------
    route : Route
        The route.
    params : list of str
        The variable segments of the path.
    scope : dict
        The ASGI scope of the request, which must not be changed.
    headers : dict of bytes to bytes
        Its headers.
    length : int
        Bytes of the body, in `Heads`.
    """

    route: Route
    params: list[str]
    scope: Scope
    headers: dict[bytes, bytes]
    length: int = 0

    @classmethod
    def of(
        cls, route: Route, params: list[str], method: str, url: bytes, headers: list[Header]
    ) -> Self:
        """Return a head.

        Parameters
        ----------
        route : Route
            The route.
        params : list of str
            The variable segments of the path.
        method : str
            The method.
        url : bytes
            The path, which has no query.
        headers : list of pairs
            The headers.
        """
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(url.decode("latin-1")),
            "raw_path": url,
            "query_string": b"",
            "headers": headers,
        }
        return cls(route, params, scope, dict(headers))


class Heads(dict[bytes, Head]):
    """Heads by their bytes."""

    def keep(self, data: bytes, head: Head, length: int) -> None:
        """Keep the head of a request.

        Parameters
        ----------
        data : bytes
            The bytes that came; nothing is kept unless they are this request alone.
        head : Head
            The parsed head.
        length : int
            How many bytes the body has.
        """
        text = data[: len(data) - length]
        # Parsers may end a line where a carriage return is missing, or begin after empty lines:
        # then the end of the head is not the first empty line of the data.
        is_plain = text.find(b"\r\n\r\n") == len(text) - 4 and (
            text.count(b"\n") == text.count(b"\r\n")
        )
        # The path of an event rarely repeats.
        if is_plain and len(text) <= MAX_BYTES and len(head.params) < 2:
            if len(self) >= MAX_HEADS:
                self.clear()
            self[text] = head._replace(length=length)
