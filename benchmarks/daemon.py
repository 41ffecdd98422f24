"""Vowpal Wabbit's daemon on a TCP port of its own, and its load from a process of its own.

It parses a text, answers the probability of each action, and does no more: it draws no arm, keeps
nothing of the decision, and a reward has to come with context, actions and probability again. Its
command is `vw`; the wheel on PyPI has no command, but its library has the same daemon.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.peers.environments import PEERS

# SquareCB, as in `benchmarks.peers`; and without a name its epsilon-greedy, which computes least.
EXPLORATIONS = {"squarecb": ["--squarecb"], "epsilon": []}
OPTIONS = ["--cb_explore_adf", "-q", "sa", "--noconstant", "--quiet"]
CHILDREN = 8
# What the command does, by the library: begin to listen, and serve until a signal comes.
LIBRARY = "import sys, pylibvw; pylibvw.vw.run_parser(pylibvw.vw(sys.argv[1:]))"
MISSING = (
    "Vowpal Wabbit's daemon is not measured: there is no command `vw`, and no environment of it, "
    "which 'python -m benchmarks.peers' makes"
)

# A decision of 5 arms in dim 10, the context of `decide.lua`.
SHARED = "shared |s " + " ".join(f"{j}:{(j + 1) / 10:g}" for j in range(10))
EXAMPLE = "\n".join([SHARED, *(f"|a {arm}" for arm in range(5)), "", ""]).encode()
TOGETHER = 100


def command() -> list[str] | None:
    """Return what runs Vowpal Wabbit, without its options; None if it is not installed."""
    found = shutil.which("vw")
    if found is not None:
        return [found]
    [peer] = [one for one in PEERS if one.name == "vowpalwabbit"]
    return [str(peer.python), "-c", LIBRARY] if peer.python.exists() else None


@contextmanager
def daemon(exploration: str) -> Iterator[int]:
    """Run a daemon, and hand out its port.

    Raises
    ------
    RuntimeError
        If Vowpal Wabbit is not installed, or its daemon does not answer.
    """
    begin = command()
    if begin is None:
        raise RuntimeError(MISSING)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ["--daemon", "--foreground", "--port", str(port), "--num_children", str(CHILDREN)]
    process = subprocess.Popen(
        [*begin, *OPTIONS, *EXPLORATIONS[exploration], *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it forks children, which end with their group
    )
    try:
        _wait_for(port, process)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when a daemon answers as it should, or raise `RuntimeError`."""
    end = time.monotonic() + 20.0
    while process.poll() is None and time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5.0) as connection:
                connection.sendall(EXAMPLE)
                answer = connection.recv(1000).decode()
        except OSError:
            time.sleep(0.05)
            continue
        chances = [float(one.partition(":")[2]) for one in answer.strip().split(",")]
        if len(chances) != 5 or abs(sum(chances) - 1.0) > 1e-3:
            raise RuntimeError(f"Vowpal Wabbit answered no probabilities of 5 arms: {answer!r}")
        return
    raise RuntimeError(f"Vowpal Wabbit's daemon did not start: exit status {process.poll()}")


def rate(port: int, connections: int, seconds: float) -> float:
    """Return the decisions per second of a daemon, by a client in a process of its own.

    Parameters
    ----------
    port : int
        The port of the daemon.
    connections : int
        Connections that are kept busy.
    seconds : float
        How long.
    """
    given = [sys.executable, "-m", "benchmarks.daemon", str(port), str(connections), str(seconds)]
    return float(subprocess.check_output(given, text=True))


def best_rates(seconds: float) -> tuple[float, float]:
    """Return the best rate of one connection, and of `CHILDREN`, each with a process of its own.

    Parameters
    ----------
    seconds : float
        Seconds of each load.
    """
    found = []
    for connections in (1, CHILDREN):
        rates = []
        for exploration in EXPLORATIONS:
            with daemon(exploration) as port:
                rates.append(rate(port, connections, seconds))
        found.append(max(rates))
    return found[0], found[1]


class Load:
    """The load of one connection: examples as fast as they are taken, answers as they come."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.answers, self._last = 0, b""
        self._block, self._sent = memoryview(EXAMPLE * TOGETHER), 0

    def send(self) -> None:
        """Send what the connection takes of a block of examples."""
        self._sent += self.socket.send(self._block[self._sent :])
        self._sent %= len(self._block)

    def receive(self) -> None:
        """Count the answers that have come."""
        answer = self.socket.recv(1 << 18)
        if not answer:
            raise ConnectionError("Vowpal Wabbit's daemon has closed a connection")
        # An answer ends with a blank line, which may come in two parts.
        self.answers += (self._last + answer).count(b"\n\n")
        is_cut = answer.endswith(b"\n") and not (self._last + answer).endswith(b"\n\n")
        self._last = b"\n" if is_cut else b""


def drive(loads: list[Load], seconds: float) -> float:
    """Keep connections busy, and return the answers per second.

    Parameters
    ----------
    loads : list of Load
        The connections.
    seconds : float
        How long.
    """
    before, start = sum(one.answers for one in loads), time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for one in loads:
            selector.register(one.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, one)
        while (taken := time.perf_counter() - start) < seconds:
            for key, events in selector.select(0.1):
                if events & selectors.EVENT_READ:
                    key.data.receive()
                if events & selectors.EVENT_WRITE:
                    key.data.send()
    return (sum(one.answers for one in loads) - before) / taken


def main() -> None:
    """Print the decisions per second of a daemon under load."""
    port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    loads = [Load(port) for _ in range(connections)]
    drive(loads, min(0.5, seconds / 4))  # until buffers are full
    print(drive(loads, seconds), flush=True)
    for one in loads:
        one.socket.close()


if __name__ == "__main__":
    main()
