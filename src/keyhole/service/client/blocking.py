"""`Client`: the service, from a program that waits for its answers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Self, SupportsFloat

import httpx

from keyhole.service.client.answers import AGAIN, FORGOTTEN, Answer, Call, ServiceError
from keyhole.service.client.calls import Calls, Given
from keyhole.service.client.pool import Pool
from keyhole.service.http import EventView, LoopView, ProbabilitiesView
from keyhole.service.requests import Action, DecideAnswer, RewardAnswer
from keyhole.service.settings import LoopSettings


class Client(Calls):
    """The service, from a program that waits for its answers.

    Threads may share one. After a fork, the child makes connections of its own. A copy, also one by
    pickle, is another client with the same arguments; a pickle has the key.

    Parameters
    ----------
    url : str, default "http://127.0.0.1:8000"
        The address of the service. One of this machine, such as localhost, is asked directly;
        others through the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, except those of NO_PROXY.
        Redirects are not followed.
    key : str, optional
        A key of `keyhole keys add`.
    timeout : float, default 10
        Seconds to wait for a connection, and for each part of an answer.
    patience : float, default 10
        Seconds for which a request that got no answer is sent again, after pauses that double;
        longer than a service takes to restart. Unless it is 0, which sends it once, a request is
        sent at least twice, also if the first time-out was longer. The last one begins after
        about `max(patience, timeout)` seconds at most, and may take `timeout` seconds more.
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
        self._pool = Pool(lambda: httpx.Client(**self._options))

    def create(self, loop: str, settings: LoopSettings | dict[str, Any]) -> LoopView:
        """Make a loop, or change its settings.

        Parameters
        ----------
        loop : str
            Its name.
        settings : LoopSettings or dict
            Its settings.
        """
        return self._send(self.create_call(loop, settings))

    def decide(
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
        """Ask for a decision.

        Parameters
        ----------
        loop : str
            The loop.
        context : dict, list or array
            Fields by name, or numbers, also those of NumPy; None and NaN are missing entries.
        actions : iterable, optional
            The candidates: names, or dicts with "id" and "features".
        event_id : str, optional
            The id of the event; a random one by default.
        exclude : iterable of str, optional
            Candidates that must not be chosen.
        baseline : str, optional
            The arm that is answered in the modes "shadow" and "off".
        defer : bool, default False
            Learn the event only after it was activated.
        explain : bool, default False
            Say what each feature adds.
        at_least : int, optional
            A version that the state must have reached, such as that of the last reward.
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
        return self._send(self.decide_call(loop, context, given))

    def reward(
        self, loop: str, event_id: str, value: SupportsFloat, reward_id: str | None = None
    ) -> RewardAnswer:
        """Send a reward of an event.

        Parameters
        ----------
        loop : str
            The loop.
        event_id : str
            The id of the event.
        value : float
            The reward.
        reward_id : str, optional
            Distinguishes it from others of the event; a random text by default, so that each call
            counts once.
        """
        return self._send(self.reward_call(loop, event_id, value, reward_id))

    def activate(self, loop: str, event_id: str) -> None:
        """Make a deferred event active.

        Parameters
        ----------
        loop : str
            The loop.
        event_id : str
            The id of the event.
        """
        self._send(self.activate_call(loop, event_id))

    def event(self, loop: str, event_id: str) -> EventView:
        """Return an event: its state, decision and rewards.

        Parameters
        ----------
        loop : str
            The loop.
        event_id : str
            The id of the event.
        """
        return self._send(self.event_call(loop, event_id))

    def forget(self, loop: str, event_id: str) -> None:
        """Forget an event: what was learned from it is taken out.

        One that was forgotten before stays so.

        Parameters
        ----------
        loop : str
            The loop.
        event_id : str
            The id of the event.
        """
        try:
            self._send(self.forget_call(loop, event_id))
        except ServiceError as error:
            if error.status != FORGOTTEN:
                raise

    def probabilities(
        self,
        loop: str,
        context: Given,
        *,
        actions: Iterable[Action | str | Mapping[str, Any]] | None = None,
        exclude: Iterable[str] = (),
    ) -> ProbabilitiesView:
        """Return how likely each candidate is to be chosen now; nothing is drawn.

        Parameters
        ----------
        loop : str
            The loop.
        context : dict, list or array
            As in `decide`.
        actions : iterable, optional
            The candidates: names, or dicts with "id" and "features".
        exclude : iterable of str, optional
            Candidates that must not be chosen.
        """
        given = {"actions": actions, "exclude": exclude}
        return self._send(self.probabilities_call(loop, context, given))

    def loop(self, loop: str) -> LoopView:
        """Return a loop."""
        return self._send(self.loop_call(loop))

    def close(self) -> None:
        """Close all connections of this process. Later requests raise `ServiceError`."""
        http = self._pool.end()
        if http is not None:
            http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _send(self, call: Call[Answer]) -> Answer:
        attempts = self.attempts()
        while True:
            http = self._pool.get()
            try:
                response = http.request(call.method, call.path, content=call.content)
            except httpx.RequestError as reason:
                pause = attempts.pause()
                if pause is None:
                    raise attempts.error(reason) from reason
            except Exception as reason:  # of the library, which was closed or misused
                self._pool.drop(http)
                self._pool.check_open(reason)
                raise
            except BaseException:
                # An interrupt at any line of httpx: its connections may be in any state.
                self._pool.drop(http)
                raise
            else:
                pause = attempts.pause() if response.status_code in AGAIN else None
                if pause is None:
                    return call.answer(response)
            time.sleep(pause)
