"""The HTTP/1.1 protocol of uvicorn, with bounds on the head of a request.

uvicorn reads a head of any length, for any time: a client that sends it byte by byte would keep its
connection for ever. The time of a body is bounded by `Deadlines`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 20.0
HEAD_BYTES = 65_536


class GuardedProtocol(HttpToolsProtocol):
    """A connection that is closed if the head of a request is too long, or does not come."""

    _in_head, _head_bytes = False, 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and count those of a head that is not whole."""
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.send_400_response(f"The head must have at most {HEAD_BYTES} bytes.")
            elif self._timer is None:
                self._timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """End the head of a request."""
        self._in_head = False
        if self._timer is not None:
            self._stop()
        super().on_headers_complete()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
