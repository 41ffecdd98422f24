"""Connections without a network: what a client sends to the server as pieces of bytes."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from keyhole.service import LoopSettings, Options, application
from keyhole.service.http.protocol import GuardedProtocol
from tests.service.http.serving import PLAIN

DATE = (b"date", b"Wed, 18 Nov 2026 16:00:00 GMT")


class Wire(asyncio.Transport):
    """A connection without a network."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.is_closed = b"", False
        self.before: Callable[[], None] = lambda: None  # called before something is written

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.before()
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Server:
    """The application, and what uvicorn keeps for all connections."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.runner = asyncio.Runner()
        loops = {"home": LoopSettings.of(PLAIN)}
        self.app = application(folder, Options(loops=loops, **options))
        self.app.service.wait(self.app.service.loop("home").unit)
        self.runner.run(self.app.begin())
        self.config = uvicorn.Config(
            self.app,
            http=GuardedProtocol,
            limit_concurrency=3,
            log_config=None,
            proxy_headers=False,
            timeout_keep_alive=1,
        )
        self.config.load()
        self.state = ServerState()
        self.state.default_headers = [DATE]
        self.served = 0  # requests that went the short way
        serve = self.app.serve

        def counted(*given: Any) -> None:
            self.served += 1
            serve(*given)

        self.app.serve = counted  # type: ignore[assignment, method-assign]

    def connect(self) -> GuardedProtocol:
        connection = GuardedProtocol(self.config, self.state, {}, self.runner.get_loop())
        connection.connection_made(Wire())
        return connection

    def run(self, *pieces: bytes, until: Callable[[Wire], bool] | None = None) -> Wire:
        """Send pieces on a connection of their own, a turn for each, and return it at the end."""
        connection = self.connect()
        wire = connection.transport
        assert isinstance(wire, Wire)
        asked = sum(len(re.findall(rb"POST|GET", piece)) for piece in pieces)

        async def work() -> None:
            for piece in pieces:
                connection.data_received(piece)
                await asyncio.sleep(0)
            async with asyncio.timeout(5.0):
                while not (until(wire) if until else wire.written.count(b"HTTP/1.1 ") >= asked):
                    await asyncio.sleep(0.001)

        self.runner.run(work())
        connection.connection_lost(None)
        return wire

    def close(self) -> None:
        self.runner.run(self.app.end())
        self.runner.close()


def request(name: str, *headers: str, path: str = "/v1/loops/home/decide", **given: Any) -> bytes:
    body = json.dumps({"event_id": name, "context": [1.0, 0.5]} | given).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def answers(wire: Wire) -> list[dict[str, Any]]:
    """Return the bodies of all answers, in order."""
    found, rest = [], wire.written
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None, head
        found.append(json.loads(rest[: int(length[1])]))
        rest = rest[int(length[1]) :]
    return found
