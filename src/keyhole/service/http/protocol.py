"""The HTTP/1.1 protocol of uvicorn, with bounds on the head of a request, and answers after EOF.

uvicorn reads a head of any length, for any time: a client that sends it byte by byte would keep its
connection for ever. The time of a body is bounded by `Deadlines`. Nor does uvicorn bound the time
in which a client takes an answer that is too large for the buffers of the connection.

A client may close its side of the connection after its request, as `nc -N` does, and wait for the
answer. uvicorn closes the other side at once; here all requests that came whole are answered first.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from keyhole.service.http import logs
from keyhole.service.http.limits import Limits
from keyhole.service.http.straight import StraightProtocol

HEAD_SECONDS = 20.0
HEAD_BYTES = 65_536


class GuardedProtocol(StraightProtocol):
    """A connection that is closed if the head of a request is too long, or does not come."""

    _head_bytes, _came = 0, 0
    _is_too_long = False
    _at_end = False  # the client sends nothing more
    _timer: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None  # while buffers are full

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop()
        self._stop_taking()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what was written: buffers are full."""
        super().pause_writing()
        limits = getattr(self.app, "limits", None) or Limits()  # another application has none
        seconds = limits.seconds
        self._taking = self.loop.call_later(seconds, self._give_up, seconds)

    def resume_writing(self) -> None:
        """Go on writing: the client has taken what was written."""
        self._stop_taking()
        super().resume_writing()

    def _stop_taking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _give_up(self, seconds: float) -> None:
        """Drop an answer that is not taken, and the connection."""
        self._taking = None
        logs.event(
            f"the answer was not taken within {seconds:g} seconds: the connection was closed"
        )
        self.transport.abort()  # closing it would wait for the client, too

    def data_received(self, data: bytes) -> None:
        """Take bytes, and count them while a head is incomplete."""
        self._came = len(data)
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse_head()
            elif self._timer is None:
                self._timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or a head that was found to be too long."""
        if self._is_too_long:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def _refuse_head(self) -> None:
        body = b"The head of a request must have at most %d bytes." % HEAD_BYTES
        self.transport.write(
            STATUS_LINE[431] + b"content-type: text/plain; charset=utf-8\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)
        )
        self.transport.close()

    def eof_received(self) -> bool:  # type: ignore[override]  # as asyncio has it
        """Keep the connection open, if a request that came whole is not answered yet."""
        self._stop()  # a head that has begun will not come
        last = self.cycle
        if last is None or last.response_complete:
            return False
        if last.more_body:  # its body will not come; those before it are answered
            if not self.pipeline or self.pipeline[0][0] is not last:
                return False
            self.pipeline.popleft()
        self._at_end = True
        return True

    def on_response_complete(self) -> None:
        """Go on with the next request, or close if the client sends no more."""
        was_last = not self.pipeline
        super().on_response_complete()
        if self._at_end and was_last:
            self._unset_keepalive_if_required()
            self._close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head_bytes = 0

    def on_known_head(self) -> None:
        """Wait no more for the first request."""
        if self._timer is not None:
            self._stop()

    def on_headers_complete(self) -> None:
        """End the head of a request."""
        if self._timer is not None:
            self._stop()
        if self._head_bytes + self._came > HEAD_BYTES:  # which counts bytes after the head, too
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > HEAD_BYTES:
                self._is_too_long = True
                raise ValueError("the head is too long")  # ends the parsing
        super().on_headers_complete()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
