"""The servers that `benchmarks.service` measures, each in a process of its own, and their load."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from keyhole.service import LoopSettings, Options, serve
from keyhole.service.http.server import bound, server_of

LOOP: dict[str, Any] = {"arms": list("ABCDE"), "dim": 10}
SCRIPT = Path(__file__).with_name("decide.lua")


def run_echo() -> None:
    """Serve an echo of a request's body, decoded and encoded."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    decoder, encoder = msgspec.json.Decoder(), msgspec.json.Encoder()

    async def echo(request: Request) -> Response:
        found = decoder.decode(await request.body())
        return Response(encoder.encode(found), media_type="application/json")

    path = "/v1/loops/{loop}/decide"
    server = server_of(Starlette(routes=[Route(path, echo, methods=["POST"])]))
    listening = bound("127.0.0.1", 0)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=[listening]))


def run_service(folder: str, synchronous: str) -> None:
    """Serve a folder with the loop that is measured.

    Parameters
    ----------
    folder : str
        The folder.
    synchronous : str
        "FULL" or "OFF".
    """
    options = Options(synchronous=synchronous, loops={"home": LoopSettings.of(LOOP)})
    serve(folder, port=0, options=options, started=lambda url: print(url, flush=True))


@contextmanager
def server(kind: str) -> Iterator[str]:
    """Run a server in a process of its own, and hand out its address."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.serving", kind, folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.communicate()


def load(url: str, connections: int, seconds: float, size: int = 1) -> dict[str, float]:
    """Return the rate of requests and the quantiles of their times, under wrk.

    Parameters
    ----------
    url : str
        The address of a server.
    connections : int
        Connections that wrk keeps busy.
    seconds : float
        How long.
    size : int, default 1
        Decisions of a request.
    """
    flags = ["-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(SCRIPT)]
    shown = subprocess.check_output(["wrk", *flags, url, "--", str(size)], text=True)
    found = re.search(r"RESULT (.*)", shown)
    assert found is not None, shown
    measured: dict[str, float] = json.loads(found[1])
    assert measured["errors"] == 0, shown
    return measured


if __name__ == "__main__":
    kind, folder = sys.argv[1:]
    if kind == "echo":
        run_echo()
    else:
        run_service(folder, kind)
