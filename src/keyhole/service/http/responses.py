"""`Response`: the answer of a handler, as bytes; and how it is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

JSON = (b"content-type", b"application/json")
NDJSON = (b"content-type", b"application/x-ndjson")

_encode = msgspec.json.Encoder().encode


class Response(NamedTuple):
    """A status, a body, and headers beside its length."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = (JSON,)


# Sends a response with further headers.
Respond: TypeAlias = Callable[[Response, tuple[Header, ...]], None]


def json(content: Any, status: int = 200, headers: tuple[Header, ...] = (JSON,)) -> Response:
    """Return a response of JSON.

    Parameters
    ----------
    content : object
        The content to encode.
    status : int, default 200
        The status.
    headers : tuple, optional
        Its headers, with the type of its content.
    """
    return Response(status, _encode(content), headers)


def lines(content: list[Any]) -> Response:
    """Return a response of newline-delimited JSON."""
    return Response(200, b"".join(_encode(one) + b"\n" for one in content), (NDJSON,))


async def sent(send: Send, response: Response, extra: tuple[Header, ...] = ()) -> None:
    """Send a response.

    Parameters
    ----------
    send : callable
        The channel of the server.
    response : Response
        The response.
    extra : tuple, optional
        Further headers.
    """
    status, body, headers = response
    # 204 has no body, and must not tell its length.
    length = () if status == 204 else ((b"content-length", b"%d" % len(body)),)
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, *length, *extra],
        }
    )
    await send({"type": "http.response.body", "body": body})
