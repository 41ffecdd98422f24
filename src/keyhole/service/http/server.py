"""`serve`: run the application by uvicorn, on one thread, until it is told to stop.

At SIGTERM or Ctrl-C it takes no new connection, answers what it has accepted, writes a snapshot of
every loop, and ends.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from keyhole.errors import FileUnusable, MissingExtra, install_line
from keyhole.files import Path
from keyhole.service.http import logs
from keyhole.service.http.app import Application
from keyhole.service.http.collecting import collect_in_pauses, kept_thresholds
from keyhole.service.http.making import Options, application

STOPS = (signal.SIGINT, signal.SIGTERM)
# Seconds that accepted requests have to be answered after the service was told to stop.
GRACE = 30
# Seconds that an idle connection is kept: longer than clients keep it, so that they never send to
# one that is being closed.
KEEP_ALIVE = 30
# Open connections from which on every request gets 503, by uvicorn.
MAX_CONNECTIONS = 10_000


def serve(
    folder: Path,
    *,
    port: int = 8000,
    options: Options | None = None,
    started: Callable[[str], None] | None = None,
    log: bool = False,
) -> None:
    """Serve a folder until the process is told to stop.

    Parameters
    ----------
    folder : path-like
        The folder of the service.
    port : int, default 8000
        The port; 0 takes a free one.
    options : Options, optional
        How it is served.
    started : callable, optional
        Called with the address, when requests are served.
    log : bool, default False
        Write lines of JSON to stderr: starts, failures, and requests if the options want them.
    """
    if log:
        logs.to_stderr()
    options = options or Options()
    app = application(folder, options)
    try:
        listening = bound(options.host, port)
    except OSError as reason:
        app.service.close()
        raise FileUnusable(
            f"port {port} of {options.host} cannot be listened at: {reason.strerror}"
        ) from None
    run(app, listening, started)


def run(
    app: Application, listening: socket.socket, started: Callable[[str], None] | None = None
) -> None:
    """Run an application on a socket until the process is told to stop.

    The event loop has a thread of its own, and the main thread waits for signals. A bandit in the
    main thread holds signals back while it changes, which takes 10 us of each decision.

    Parameters
    ----------
    app : Application
        The application.
    listening : socket
        A bound socket.
    started : callable, optional
        Called with the address, when requests are taken.
    """
    server = server_of(app)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
                runner.run(_serving(server, app, listening, started))
        except BaseException as error:  # raised by the thread that waits
            failures.append(error)

    thread = threading.Thread(target=work, name="keyhole-server")
    with _stopping_at_signals(server.handle_exit), kept_thresholds():
        thread.start()
        while thread.is_alive():
            # In steps: a signal that the system gives to another thread does not end the waiting.
            thread.join(0.2)
    try:
        app.service.close()  # does nothing, unless the server was told to stop twice
    except Exception as error:  # raised with the others
        failures.append(error)
    for failure in (*failures, app.failure):
        if failure is not None:
            raise failure


async def _serving(
    server: Any,
    app: Application,
    listening: socket.socket,
    started: Callable[[str], None] | None,
) -> None:
    host, number = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{number}"
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    if server.started:
        logs.event("started", address=address)
        if started is not None:
            started(address)
    collecting = asyncio.create_task(collect_in_pauses(lambda: app.metrics.total))
    try:
        await serving
    finally:
        collecting.cancel()


@contextmanager
def _stopping_at_signals(stop: Callable[[int, Any], None]) -> Iterator[None]:
    """Stop the server at SIGTERM and Ctrl-C, and end the process with code 0."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are of the main thread
        return
    before = {number: signal.signal(number, stop) for number in STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def server_of(app: Any) -> Any:
    """Return the server of an ASGI application, with the settings of the service."""
    try:
        import uvicorn

        from keyhole.service.http.protocol import GuardedProtocol
    except ImportError as reason:
        raise MissingExtra(
            f"the server needs {reason.name}, which is not installed: {install_line('service')}"
        ) from None
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        loop="auto",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=KEEP_ALIVE,
        limit_concurrency=MAX_CONNECTIONS,
        backlog=2048,
    )

    class Server(uvicorn.Server):
        """A server that ends with code 0 when it was told to stop: `run` sets the handlers."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server(config)


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address.

    Parameters
    ----------
    host : str
        The address, or a name of it.
    port : int
        The port; 0 takes a free one.
    """
    family, kind, proto, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, proto)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except BaseException:
        listening.close()
        raise
    return listening
