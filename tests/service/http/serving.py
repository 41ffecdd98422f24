"""A service for tests: the application in this process, or a server in another."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx

from keyhole.service import Options, application
from keyhole.service.http.server import bound, server_of

PLAIN = {"arms": ["A", "B", "C"], "dim": 2}
NAMED = {
    "arms": ["A", "B"],
    "features": {"numbers": ["hour"], "categories": {"device": ["mobile", "desktop"]}},
}


class Local:
    """The application in this process, called without a socket."""

    def __init__(self, folder: Path, options: Options | None = None) -> None:
        self.runner = asyncio.Runner()
        self.app = application(folder, options)
        self.runner.run(self.app.begin())
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app), base_url="http://localhost:8000"
        )

    def __call__(self, method: str, path: str, content: Any = None, **given: Any) -> httpx.Response:
        if content is not None and not isinstance(content, str | bytes):
            content = json.dumps(content)
        return self.runner.run(self.client.request(method, path, content=content, **given))

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self("GET", path, **given)

    def post(self, path: str, content: Any = None, **given: Any) -> httpx.Response:
        return self("POST", path, content, **given)

    def put(self, path: str, content: Any = None, **given: Any) -> httpx.Response:
        return self("PUT", path, content, **given)

    def lines(self, path: str, *content: Any, **given: Any) -> list[Any]:
        """Send a batch, and return the answer of each line."""
        text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in content)
        answer = self.post(path, text, **given)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def close(self) -> None:
        self.runner.run(self.client.aclose())
        self.runner.run(self.app.end())
        self.runner.close()


@contextmanager
def local(folder: Path, options: Options | None = None) -> Iterator[Local]:
    served = Local(folder, options)
    try:
        yield served
    finally:
        served.close()


@contextmanager
def threaded(folder: Path, options: Options | None = None) -> Iterator[str]:
    """Serve a folder at a socket by a thread of this process, and hand out the address."""
    app = application(folder, options)
    server, listening = server_of(app), bound("127.0.0.1", 0)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.002)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


class Process:
    """`keyhole serve` in a process of its own, on a free port."""

    def __init__(self, folder: Path, *flags: str) -> None:
        command = [sys.executable, "-m", "keyhole", "serve", "--data", str(folder), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r"keyhole serves at (http://\S+)\n", line)
        assert found is not None, (line, self.process.communicate())
        self.url = found[1]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Stop it, and return its exit code and what it wrote to stderr."""
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
