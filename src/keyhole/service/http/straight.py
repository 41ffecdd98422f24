"""`StraightProtocol`: uvicorn's HTTP/1.1, with a short way for requests that came in one piece.

uvicorn runs a task of an ASGI application for every request, which takes 20 us. The request of a
decision usually arrives in one piece; reading and answering it takes 7 us. Such a request is handed
to the application by one call, and the answer is written when its unit is on the disk. uvicorn
serves all other requests, with the same answers: a body in several pieces, a connection that is to
be closed, a request before the last one was answered.

A client repeats the head of its requests to the letter, but for the length of the body: a head that
was parsed before, by any connection, is not parsed again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from keyhole.service.http.heads import Head
from keyhole.service.http.responses import Header, Response

CLOSE = (b"connection", b"close")
END = b"\r\n\r\n"  # of a head


class StraightProtocol(HttpToolsProtocol):
    """A connection."""

    # The head of a request that is being read, if it goes the short way, and its body so far.
    _found: Head | None = None
    _body = b""
    # Whether a request, and its head, is being read; and the bytes that it began with, if it is
    # their first.
    _is_reading = _in_head = False
    _piece: bytes | None = None
    # Time of the last answer, and the timer that closes an idle connection: one for many requests.
    _used = 0.0
    _idle: asyncio.TimerHandle | None = None
    # Heads of answers, for as long as the server's headers, with the date, are the same.
    _answers: dict[tuple[int, tuple[Header, ...]], bytes] = {}  # noqa: RUF012 - of all connections
    _default_headers: Any = None

    # -- reading ----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        heads = getattr(self.app, "heads", None)  # another application has none
        if heads is not None and not self._is_reading:
            end = data.find(END) + len(END)
            head = heads.get(data[:end])
            if head is not None and len(data) == end + head.length and self._is_free():
                self._unset_keepalive_if_required()
                self.on_known_head()
                self._serve(head, data[end:])
                return
            self._piece = data
        self._parse(data)
        self._piece = None
        if self._found is not None and self.parser is not None and not self.transport.is_closing():
            self._go_usual_way()  # the rest of the body is still to come

    def _parse(self, data: bytes) -> None:
        """Have bytes parsed, and refuse what is not HTTP."""
        if self.transport.is_closing():
            return  # what follows a refused head may be of another protocol
        self._unset_keepalive_if_required()
        rest = memoryview(data)
        try:
            while (end := self._head_to_change(rest)) is not None:
                self._piece = None
                self.parser.feed_data(self._head_without_upgrade())
                rest = rest[end:]
        except httptools.HttpParserError:
            message = "Invalid HTTP request received."
            self.logger.warning(message)
            self.send_400_response(message)

    def _head_to_change(self, data: memoryview) -> int | None:
        """Have bytes parsed, up to the end of a head that asks for another protocol.

        Returns the number of bytes that were parsed, or None if it was all.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            end: int = stopped.args[0]
            return end
        return None

    def _head_without_upgrade(self) -> bytes:
        """Return the head that was parsed last, without what asks for another protocol."""
        parser = self.parser
        version = parser.get_http_version().encode("ascii")
        lines = [b"%b %b HTTP/%b" % (parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % pair for pair in self.headers if pair[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_known_head(self) -> None:
        """Begin a request whose head is not parsed again."""

    def on_message_begin(self) -> None:
        """Begin a request; the state of a task is made only if one is needed."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._found, self._body, self._is_reading, self._in_head = None, b"", True, True

    def on_headers_complete(self) -> None:
        """Find the way of a request."""
        self._in_head = False
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise ValueError("nothing after the head would be HTTP")  # ends the parsing
            return  # the head comes again, without `Upgrade`
        self._found = self._straight_head()
        if self._found is None:
            self._go_usual_way()

    def _is_free(self) -> bool:
        """Whether the connection has nothing else to do, and the server no more than it may."""
        cycle = self.cycle
        return (
            (cycle is None or cycle.response_complete)
            and not self.flow.write_paused
            and len(self.connections) < (self.limit_concurrency or 0)
            and not self.transport.is_closing()
        )

    def _straight_head(self) -> Head | None:
        """Return the head of a request that goes the short way, or None."""
        parser, url = self.parser, self.url
        find = getattr(self.app, "straight_route", None)  # another application has none
        if (
            find is None
            or not self._is_free()
            or self.expect_100_continue
            or parser.get_http_version() != "1.1"
            or not parser.should_keep_alive()
            or not url.startswith(b"/")
            or b"?" in url
            or b"#" in url
        ):
            return None
        for name, _ in self.headers:
            if name == b"origin" or name == b"transfer-encoding":
                return None
        method = parser.get_method().decode("ascii")
        found = find(method, url)
        if found is None:
            return None
        route, params = found
        return Head.of(route, params, method, url, self.headers)

    def _go_usual_way(self) -> None:
        """Hand a request, as far as it has come, to uvicorn."""
        url, headers, expects, body = self.url, self.headers, self.expect_100_continue, self._body
        self._found, self._body = None, b""
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)
        super().on_headers_complete()
        if body:
            super().on_body(body)

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        if self._found is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        """Serve a request that is all there."""
        if self.parser.should_upgrade():
            return  # its head comes again, and then its body
        found, body, piece = self._found, self._body, self._piece
        self._is_reading, self._piece = False, None
        if found is None:
            super().on_message_complete()
            return
        if len(body) > self.app.limits.body:
            self._go_usual_way()
            super().on_message_complete()
            return
        self._found, self._body = None, b""
        if piece is not None:
            self.app.heads.keep(piece, found, len(body))
        self._serve(found, body)

    def _serve(self, head: Head, body: bytes) -> None:
        """Hand a request to the application.

        Parameters
        ----------
        head : Head
            Its head.
        body : bytes
            Its body.
        """
        self.cycle = cycle = Cycle()  # type: ignore[assignment] # all that uvicorn asks of one
        self.app.serve(head, body, partial(self._respond, cycle))

    # -- answering --------------------------------------------------------------------------------

    def _respond(self, cycle: Cycle, response: Response, extra: tuple[Header, ...]) -> None:
        """Write an answer.

        Parameters
        ----------
        cycle : Cycle
            The request.
        response : Response
            The answer.
        extra : tuple
            Further headers.
        """
        cycle.response_complete = True
        if cycle.disconnected or self.transport.is_closing():
            return
        status, body, headers = response
        closes = not cycle.keep_alive or CLOSE in headers
        if closes and CLOSE not in headers:
            extra = (*extra, CLOSE)
        # In the order of uvicorn, so that the same request gets the same bytes by either way.
        head = self._head(status, headers)
        if status != 204:  # which has no body, and must not tell its length
            head += b"content-length: %d\r\n" % len(body)
        if extra:
            head += b"".join([b"%b: %b\r\n" % pair for pair in extra])
        self.transport.write(b"%b\r\n%b" % (head, body))
        if closes:
            self.transport.close()
        self.on_response_complete()

    def _head(self, status: int, headers: tuple[Header, ...]) -> bytes:
        """Return the first lines of an answer."""
        state, kept = self.server_state, StraightProtocol._answers
        if StraightProtocol._default_headers is not state.default_headers:
            StraightProtocol._default_headers = state.default_headers
            kept.clear()
        head = kept.get((status, headers))
        if head is None:
            lines = [b"%b: %b\r\n" % pair for pair in (*state.default_headers, *headers)]
            head = kept[status, headers] = STATUS_LINE[status] + b"".join(lines)
        return head

    # -- between requests -------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for one."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self._used = self.loop.time()
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self._idle is None:
            self._idle = self.loop.call_later(self.timeout_keep_alive, self._look_if_idle)

    def _look_if_idle(self) -> None:
        """Close a connection without requests."""
        self._idle = None
        if self._in_head or (self.cycle is not None and not self.cycle.response_complete):
            return  # its answer starts the timer again
        left = self._used + self.timeout_keep_alive - self.loop.time()
        if left <= 0.0:
            self.timeout_keep_alive_handler()
        else:
            self._idle = self.loop.call_later(left, self._look_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        super().connection_lost(exc)


class Cycle:
    """A request that went the short way, as uvicorn sees it."""

    __slots__ = ("disconnected", "keep_alive", "response_complete")
    more_body = False

    def __init__(self) -> None:
        self.response_complete = self.disconnected = False
        self.keep_alive = True  # False when the server is told to stop

    @property
    def message_event(self) -> Cycle:
        """Set by uvicorn when the client leaves; without an effect here."""
        return self

    def set(self) -> None:
        """Do nothing."""
