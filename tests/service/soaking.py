"""Load over HTTP at full rate for minutes: only the database may grow, and no memory."""

import asyncio
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from keyhole.service.loading import CACHED_EVENTS
from tests.service.http.serving import Process

SETTINGS = """
[home]
arms = ["A", "B", "C", "D", "E"]
dim = 10
reward = {default = 0.0, wait = 2.0, late = "ignore"}
"""
CONNECTIONS = 64


@dataclass(frozen=True)
class Soaked:
    """What was seen.

    Parameters
    ----------
    requests : int
        Requests that were answered: decisions, and a reward for every second one.
    rate : float
        Requests in a second.
    start, end : float
        Resident memory of the server in MB when the events in memory have come to their number,
        and at the end, by a straight line.
    wal : float
        The largest write-ahead log, in MB.
    bytes_per_request : float
        The size of the database for each request.
    """

    requests: int
    rate: float
    start: float
    end: float
    wal: float
    bytes_per_request: float


class Load:
    """Clients that ask as fast as they are answered, each on a connection of its own.

    Parameters
    ----------
    url : str
        The address of the server.
    until : float
        When to stop, by the steady clock.
    """

    def __init__(self, url: str, until: float) -> None:
        self._address, self._until = urlsplit(url), until
        self.decisions = self.requests = 0

    async def run(self) -> None:
        """Ask until the time is over."""
        async with asyncio.TaskGroup() as group:
            for client in range(CONNECTIONS):
                group.create_task(self._ask(client))

    async def _ask(self, client: int) -> None:
        host, port = self._address.hostname, self._address.port
        reader, writer = await asyncio.open_connection(host, port)
        contexts = np.random.default_rng(client).normal(size=(100, 10)).tolist()
        for k in range(1_000_000_000):
            if time.monotonic() > self._until:
                writer.close()
                return
            event = f"{client}-{k}"
            given = {"event_id": event, "context": contexts[k % 100]}
            await self._post(reader, writer, "decide", given)
            self.decisions += 1
            if k % 2:
                await self._post(reader, writer, f"events/{event}/reward", {"value": 1.0})

    async def _post(self, reader: Any, writer: Any, path: str, content: Any) -> None:
        body = json.dumps(content).encode()
        head = f"POST /v1/loops/home/{path} HTTP/1.1\r\nHost: localhost\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        length = answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        self.requests += 1


def soak(folder: str, seconds: float) -> Soaked:
    """Decide and reward for some time as fast as it goes.

    Parameters
    ----------
    folder : str
        The folder of the service.
    seconds : float
        How long.
    """
    config = Path(folder) / "loops.toml"
    config.write_text(SETTINGS)
    database = Path(folder) / "data" / "keyhole.db"
    with Process(Path(folder) / "data", "--config", str(config)) as served:
        started = time.monotonic()
        load = Load(served.url, started + seconds)
        seen, wal = asyncio.run(_watched(load, served.process.pid, database, seconds))
        elapsed = time.monotonic() - started
        code, errors = served.stop()
        assert code == 0, errors
    steady = [one for one in seen if one[0] > seconds / 4 and one[2] > 2 * CACHED_EVENTS]
    assert len(steady) > 50, f"{seconds:g} seconds are too short for {CACHED_EVENTS} events"
    times, memory, _ = np.array(steady).T
    slope, first = np.polyfit(times, memory, 1)
    return Soaked(
        load.requests,
        load.requests / elapsed,
        float(first + slope * times[0]),
        float(first + slope * times[-1]),
        wal,
        database.stat().st_size / load.requests,
    )


async def _watched(
    load: Load, process: int, database: Path, seconds: float
) -> tuple[list[tuple[float, float, int]], float]:
    """Return times, memory and decisions so far while a load runs, and the largest log in MB."""
    started, seen, wal = time.monotonic(), [], 0.0
    running = asyncio.create_task(load.run())
    while not running.done():
        await asyncio.sleep(seconds / 200)
        seen.append((time.monotonic() - started, _resident(process), load.decisions))
        wal = max(wal, Path(f"{database}-wal").stat().st_size / 1e6)
    await running
    return seen, wal


def _resident(process: int) -> float:
    """Return the resident memory of a process, in MB."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
