"""`Application`: the ASGI application of a service. All of it runs on one thread.

An answer is sent after all that it is based on was committed (promise P1): a handler calls the
service, which changes memory at once, and waits for the unit that was written.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from keyhole.service.http import logs
from keyhole.service.http.access import Access
from keyhole.service.http.commits import Commits
from keyhole.service.http.deadlines import Deadlines
from keyhole.service.http.limits import Limits
from keyhole.service.http.metrics import Metrics
from keyhole.service.http.problems import Problem, problem_of, response_of
from keyhole.service.http.recovery import Recovery
from keyhole.service.http.request import Request
from keyhole.service.http.responses import Header, Receive, Response, Scope, Send, sent
from keyhole.service.http.routing import Route, Router
from keyhole.service.service import Service

# Seconds between two looks at what is due, at keys, and at slow clients.
TICK = 0.2


class Application:
    """The ASGI application of a service.

    Parameters
    ----------
    service : Service
        The service, whose `notify` is that of the commits.
    commits : Commits
        What waits for the disk.
    access : Access
        Who may do what.
    router : Router
        The routes.
    limits : Limits, optional
        How much a client may send.
    log_requests : bool, default False
        Write a line of JSON for every request, and not for errors of the service alone.
    """

    def __init__(
        self,
        service: Service,
        commits: Commits,
        access: Access,
        router: Router,
        *,
        limits: Limits | None = None,
        log_requests: bool = False,
    ) -> None:
        self.service, self.commits, self.access = service, commits, access
        self.router, self.limits = router, limits or Limits()
        self.metrics, self.deadlines = Metrics(), Deadlines()
        self.recovery = Recovery(service)
        self._logs_requests = log_requests
        self._ticker: asyncio.Task[None] | None = None
        self.failure: Exception | None = None  # of the end
        commits.service = service

    def ready(self) -> Service:
        """Return the service, or raise a `Problem` of status 503 if its disk has failed.

        A handler calls it before each use: while it waited, the disk may have failed.
        """
        if not self.service.writer.is_usable:
            self.recovery.attempt()
        return self.service

    # -- ASGI -------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or the beginning and the end of the server."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        route: Route | None = None
        extra: tuple[Header, ...] = ()
        try:
            route, params = self.router.find(scope["method"], scope["raw_path"])
            request = Request(scope, receive, params, self.deadlines, self.limits.seconds)
            if b"origin" in request.headers:
                extra = self.access.cors(request.headers)
            if route.role is not None:
                self.access.check(request, route.role, params[0] if route.has_loop else route.loop)
            response = await route.handler(self, request)
        except Exception as error:  # whatever it is becomes an answer, and is logged
            response, extra = self._problem(error, scope, route, extra)
        if len(response.body) < 65_536:
            await sent(send, response, extra)
        else:  # more than the buffers of a connection take: a client has to read it
            with self.deadlines.within(self.limits.seconds):
                await sent(send, response, extra)
        seconds = time.perf_counter() - started
        self.metrics.count(route, response.status, seconds)
        if self._logs_requests:
            logs.request(scope, response.status, seconds, extra)

    def _problem(
        self, error: Exception, scope: Scope, route: Route | None, extra: tuple[Header, ...]
    ) -> tuple[Response, tuple[Header, ...]]:
        """Return the answer to a request that failed, and its headers."""
        if route is None and scope["method"] == "OPTIONS":
            allowed = self._options(error, scope)
            if allowed is not None:
                return allowed
        problem, name = problem_of(error), logs.request_id(scope)
        if problem.status >= 500:
            logs.failure(scope, name, problem.status, error)
        render = response_of if route is None else route.problem
        return render(problem, name), (*extra, (b"x-request-id", name.encode()))

    def _options(
        self, error: Exception, scope: Scope
    ) -> tuple[Response, tuple[Header, ...]] | None:
        """Return what a path allows, if it is one; also to the preflight of a page."""
        if not isinstance(error, Problem) or error.status != 405:
            return None
        cors = self.access.cors(dict(scope["headers"]))
        return Response(204, b"", error.headers), cors

    # -- begin and end ----------------------------------------------------------------------------

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.begin()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        try:
            await self.end()
        except Exception as error:  # told to the server, which ends
            self.failure = error
            logs.event("stop failed", error)
            await send({"type": "lifespan.shutdown.failed", "message": str(error)})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    async def begin(self) -> None:
        """Begin to serve: wait for the disk, and look at what is due."""
        self.commits.begin(self.service)
        self.access.keys.refresh()
        self._ticker = asyncio.create_task(self._tick())

    async def end(self) -> None:
        """Write a snapshot of every loop, and close the folder."""
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        self.service.close()

    async def _tick(self) -> None:
        """End what is due, again and again; a failure is logged, and tried again."""
        while True:
            await asyncio.sleep(TICK)
            for step in (self.deadlines.expire, self.access.keys.refresh, self._due):
                try:
                    step()
                except Problem:
                    pass  # the disk has failed, which was logged
                except Exception as error:  # logged; the next tick tries again
                    logs.event("timer failed", error)

    def _due(self) -> Any:
        return self.ready().tick()
