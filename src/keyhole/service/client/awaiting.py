"""`AsyncClient`: the service, from a program that runs on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self, SupportsFloat

import httpx

from keyhole.service.client.answers import AGAIN, FORGOTTEN, Answer, Call, ServiceError
from keyhole.service.client.calls import Calls, Given
from keyhole.service.client.pool import Pool
from keyhole.service.http import EventView, LoopView, ProbabilitiesView
from keyhole.service.requests import Action, DecideAnswer, RewardAnswer
from keyhole.service.settings import LoopSettings


class Bound(NamedTuple):
    """An HTTP client, and the event loop of its connections."""

    http: httpx.AsyncClient
    loop: asyncio.AbstractEventLoop

    def check_loop(self) -> None:
        """Raise `ServiceError` in another event loop, where its connections do not work."""
        if self.loop is not asyncio.get_running_loop():
            raise ServiceError(
                "an AsyncClient is for one event loop, got another one: make a client in each, "
                "such as by 'async with AsyncClient(url) as client' inside asyncio.run, or use "
                "Client"
            )


class AsyncClient(Calls):
    """The service, from a program that runs on asyncio.

    It is for the event loop of its first request; in another one it raises `ServiceError`. A child
    of a fork and copies are as those of `Client`.

    Parameters
    ----------
    url, key, timeout, patience
        As in `Client`.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 10.0,
        patience: float = 10.0,
    ) -> None:
        super().__init__(url, key=key, timeout=timeout, patience=patience)
        self._pool = Pool(self._bound)

    async def create(self, loop: str, settings: LoopSettings | dict[str, Any]) -> LoopView:
        """Make a loop, or change its settings; as `Client.create`.

        Parameters
        ----------
        loop : str
            Its name.
        settings : LoopSettings or dict
            Its settings.
        """
        return await self._send(self.create_call(loop, settings))

    async def decide(
        self,
        loop: str,
        context: Given,
        *,
        actions: Iterable[Action | str | Mapping[str, Any]] | None = None,
        event_id: str | None = None,
        exclude: Iterable[str] = (),
        baseline: str | None = None,
        defer: bool = False,
        explain: bool = False,
        at_least: int | None = None,
    ) -> DecideAnswer:
        """Ask for a decision; as `Client.decide`.

        Parameters
        ----------
        loop, context, actions, event_id, exclude, baseline, defer, explain, at_least
            As in `Client.decide`.
        """
        given = {
            "actions": actions,
            "event_id": event_id,
            "exclude": exclude,
            "baseline": baseline,
            "defer": defer,
            "explain": explain,
            "at_least": at_least,
        }
        return await self._send(self.decide_call(loop, context, given))

    async def reward(
        self, loop: str, event_id: str, value: SupportsFloat, reward_id: str | None = None
    ) -> RewardAnswer:
        """Send a reward of an event; as `Client.reward`.

        Parameters
        ----------
        loop, event_id, value, reward_id
            As in `Client.reward`.
        """
        return await self._send(self.reward_call(loop, event_id, value, reward_id))

    async def activate(self, loop: str, event_id: str) -> None:
        """Make a deferred event active.

        Parameters
        ----------
        loop, event_id
            As in `Client.activate`.
        """
        await self._send(self.activate_call(loop, event_id))

    async def event(self, loop: str, event_id: str) -> EventView:
        """Return an event: its state, decision and rewards.

        Parameters
        ----------
        loop, event_id
            As in `Client.event`.
        """
        return await self._send(self.event_call(loop, event_id))

    async def forget(self, loop: str, event_id: str) -> None:
        """Forget an event; as `Client.forget`.

        Parameters
        ----------
        loop, event_id
            As in `Client.forget`.
        """
        try:
            await self._send(self.forget_call(loop, event_id))
        except ServiceError as error:
            if error.status != FORGOTTEN:
                raise

    async def probabilities(
        self,
        loop: str,
        context: Given,
        *,
        actions: Iterable[Action | str | Mapping[str, Any]] | None = None,
        exclude: Iterable[str] = (),
    ) -> ProbabilitiesView:
        """Return how likely each candidate is; as `Client.probabilities`.

        Parameters
        ----------
        loop, context, actions, exclude
            As in `Client.probabilities`.
        """
        given = {"actions": actions, "exclude": exclude}
        return await self._send(self.probabilities_call(loop, context, given))

    async def loop(self, loop: str) -> LoopView:
        """Return a loop."""
        return await self._send(self.loop_call(loop))

    async def close(self) -> None:
        """Close all connections of this process. Later requests raise `ServiceError`."""
        bound = self._pool.peek()
        if bound is not None:
            bound.check_loop()  # before the end: the other event loop can still close it
        if self._pool.end() is not None and bound is not None:
            await bound.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def _bound(self) -> Bound:
        return Bound(httpx.AsyncClient(**self._options), asyncio.get_running_loop())

    def _http(self) -> httpx.AsyncClient:
        """Return the HTTP client of this process, which is of this event loop."""
        bound = self._pool.get()
        bound.check_loop()
        return bound.http

    async def _send(self, call: Call[Answer]) -> Answer:
        attempts = self.attempts()
        while True:
            try:
                http = self._http()
                response = await http.request(call.method, call.path, content=call.content)
            except httpx.RequestError as reason:
                pause = attempts.pause()
                if pause is None:
                    raise attempts.error(reason) from reason
            except (RuntimeError, ValueError) as reason:
                self._pool.check_open(reason)
                raise
            else:
                pause = attempts.pause() if response.status_code in AGAIN else None
                if pause is None:
                    return call.answer(response)
            await asyncio.sleep(pause)
