"""`Application`: the ASGI application of a service. All of it runs on one thread.

An answer is sent after all rows that it depends on were committed (promise P1): a handler calls the
service, which changes memory at once, and returns its answer with the unit that was written. The
application sends the answer when that unit is on the disk. A straight handler waits for nothing
else, and needs no task.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

from keyhole.errors import FileUnusable
from keyhole.service.http import logs
from keyhole.service.http.access import Access
from keyhole.service.http.commits import Commits
from keyhole.service.http.deadlines import Deadlines
from keyhole.service.http.heads import Head, Heads
from keyhole.service.http.limits import Limits
from keyhole.service.http.metrics import Metrics
from keyhole.service.http.problems import Problem, problem_of
from keyhole.service.http.recovery import Recovery
from keyhole.service.http.request import Request
from keyhole.service.http.responses import (
    Header,
    Message,
    Receive,
    Respond,
    Response,
    Scope,
    Send,
    sent,
)
from keyhole.service.http.routing import NO_UNIT, Answered, Found, Route, Router
from keyhole.service.service import Service

# Seconds between two checks of due events, keys, and slow clients.
TICK = 0.2
# Refusals that may follow from rows, which must be on the disk before: an id that was used for a
# different request, an event that was forgotten, an arm that was removed.
OF_STATE = frozenset({409, 410, 422})


class Application:
    """The ASGI application of a service.

    Parameters
    ----------
    service : Service
        The service, whose `notify` is `commits.notify`.
    commits : Commits
        The requests that wait for the disk.
    access : Access
        Who may do what.
    router : Router
        The routes.
    limits : Limits, optional
        How much a client may send.
    log_requests : bool, default False
        Write a line of JSON for every request, and not only for failures of the service.
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
        self.metrics, self.deadlines, self.heads = Metrics(), Deadlines(), Heads()
        self.recovery = Recovery(service)
        self._logs_requests = log_requests
        self._has_noted_keys = access.keys.exists  # noted at the start
        self._ticker: asyncio.Task[None] | None = None
        self.failure: Exception | None = None  # while it was stopped

    def ready(self) -> Service:
        """Return the service, or raise a `Problem` of status 503 if its disk has failed.

        A handler calls it before each use: while it waited, the disk may have failed.
        """
        if not self.service.writer.is_usable:
            self.recovery.attempt()
        return self.service

    # -- ASGI -------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or start and stop with the server."""
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
        cors: tuple[Header, ...] = ()
        try:
            route, params = self.router.find(scope["method"], scope["raw_path"])
            request = Request(scope, receive, params, self.deadlines, self.limits.seconds)
            if b"origin" in request.headers:
                extra = cors = self.access.cors(request.headers)
            self._check_access(request, route)
            response, unit = await self._answered(route, request)
        except Exception as error:  # whatever it is becomes an answer, and is logged
            response, extra = self._problem(error, scope, route, extra)
            unit = self._unit_of(error)
        try:
            await self.commits.wait(unit)
        except FileUnusable as reason:
            response, extra = self._problem(reason, scope, route, cors)
        await sent(send, response, extra)
        self._count(scope, route, response, extra, started)

    async def _answered(self, route: Route, request: Request) -> Answered:
        """Run the handler of a request, after reading the body if it is straight."""
        handler: Any = route.handler
        if not route.is_straight:
            answered: Answered = await handler(self, request)
        else:
            answered = handler(self, request, await request.body(self.limits.body))
        return answered

    def _unit_of(self, error: Exception) -> int:
        """Return the unit that a refusal follows from."""
        # By its own status: a route may render it with another one.
        follows = problem_of(error).status in OF_STATE
        return self.service.writer.submitted if follows else NO_UNIT

    def _check_access(self, request: Request, route: Route) -> None:
        """Raise a `Problem` of status 401 or 403 unless a request may take a route."""
        if route.role is None:
            self.access.check_host(request)
        else:
            loop = request.params[0] if route.has_loop else route.loop
            self.access.check(request, route.role, loop)

    def _count(
        self,
        scope: Scope,
        route: Route | None,
        response: Response,
        extra: tuple[Header, ...],
        started: float,
    ) -> None:
        """Count a request that was answered, and log it if that is wanted."""
        seconds = time.perf_counter() - started
        self.metrics.count(route, response.status, seconds)
        if self._logs_requests:
            logs.request(scope, response.status, seconds, extra)

    # -- straight ---------------------------------------------------------------------------------

    def straight_route(self, method: str, path: bytes) -> Found | None:
        """Return a straight route and the variable segments of its path; None for all others.

        Parameters
        ----------
        method : str
            The method.
        path : bytes
            The path, as it came.
        """
        try:
            found = self.router.find(method, path)
        except Problem:
            return None
        return found if found[0].is_straight else None

    def serve(self, head: Head, body: bytes, respond: Respond) -> None:
        """Serve a request of a straight route that has come whole, without a task.

        A task does the same, with twice the work for a decision.

        Parameters
        ----------
        head : Head
            The head of the request.
        body : bytes
            Its body, within the limits.
        respond : callable
            Sends the answer.
        """
        started = time.perf_counter()
        route, params, scope, headers, _ = head
        try:
            request = Request(scope, _nothing, params, self.deadlines, self.limits.seconds, headers)
            self._check_access(request, route)
            handler: Any = route.handler
            response, unit = handler(self, request, body)
        except Exception as error:  # whatever it is becomes an answer, and is logged
            response, extra = self._problem(error, scope, route, ())
            unit = self._unit_of(error)
        else:
            extra = ()
        self.commits.when(unit, partial(self._finish, head, respond, started, response, extra))

    def _finish(
        self,
        head: Head,
        respond: Respond,
        started: float,
        response: Response,
        extra: tuple[Header, ...],
        failure: FileUnusable | None = None,
    ) -> None:
        """Answer a request when its unit is on the disk, or will not be."""
        if failure is not None:
            response, extra = self._problem(failure, head.scope, head.route, ())
        respond(response, extra)
        self._count(head.scope, head.route, response, extra, started)

    # -- problems ---------------------------------------------------------------------------------

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
        render = self.router.render(scope["raw_path"]) if route is None else route.problem
        return render(problem, name), (*extra, (b"x-request-id", name.encode()))

    def _options(
        self, error: Exception, scope: Scope
    ) -> tuple[Response, tuple[Header, ...]] | None:
        """Return the methods of a path, if it exists; also for the preflight request of a page."""
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
        """Begin to serve requests, and to end due events."""
        self.commits.begin(self.service)
        self.access.keys.refresh()
        self._ticker = asyncio.create_task(self._tick())

    async def end(self) -> None:
        """Write a snapshot of every loop, and close the folder."""
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        logs.tell_left_out(at_end=True)
        self.service.close()

    async def _tick(self) -> None:
        """Do the regular work every `TICK` seconds; a failure is logged, and tried again."""
        while True:
            await asyncio.sleep(TICK)
            for step in (self._expire, self._keys, self._due, self._tell):
                try:
                    await step()
                except Problem:
                    pass  # the disk has failed, which was logged
                except Exception as error:  # logged; the next tick tries again
                    logs.event("timer failed", error)

    async def _expire(self) -> None:
        self.deadlines.expire()

    async def _keys(self) -> None:
        """Read keys again if they have changed; the first one is noted for the next start."""
        self.access.keys.refresh()
        if self.access.keys.exists and not self._has_noted_keys:
            await self.commits.wait(self.ready().note_keys())
            self._has_noted_keys = True

    async def _tell(self) -> None:
        logs.tell_left_out()

    async def _due(self) -> None:
        """End due events in turns; requests are served in between."""
        for _ in self.ready().turns():
            await asyncio.sleep(0)
            self.ready()


async def _nothing() -> Message:
    """Receive nothing more of a request that has come whole."""
    return {"type": "http.request", "body": b"", "more_body": False}
