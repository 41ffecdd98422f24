"""`Calls`: the requests of both clients, and their answers; nothing is sent here.

A request that got no answer may have been written or not. Sent again with the same ids it gives the
answer that stands, and counts once. Both clients therefore make an id for every event and reward
that has none, before the first attempt.
"""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from keyhole.errors import InvalidValue, KeyholeError, MissingExtra, install_line
from keyhole.service.http import Done, EventView, LoopView
from keyhole.service.requests import (
    Action,
    Context,
    DecideAnswer,
    DecideRequest,
    RewardAnswer,
    RewardRequest,
)
from keyhole.service.settings import LoopSettings

try:
    import httpx
except ImportError as _reason:  # pragma: no cover - tests have it
    raise MissingExtra(f"the client needs httpx: {install_line('service')}") from _reason

Answer = TypeVar("Answer")
# Statuses after which the same request may succeed.
AGAIN = frozenset({408, 429, 502, 503, 504})


def encoded(content: object) -> bytes:
    """Return JSON, or raise `InvalidValue` if a number is not finite: JSON would make it null."""
    _check_finite(msgspec.to_builtins(content), "request")
    return msgspec.json.encode(content)


def _check_finite(value: object, place: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValue(
            f"{place} must be a finite number, or None if it is missing, got {value}"
        )
    if isinstance(value, dict):
        for name, one in value.items():
            _check_finite(one, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for k, one in enumerate(value):
            _check_finite(one, f"{place}[{k}]")


class ServiceError(KeyholeError):
    """An answer that is an error, or none at all.

    Parameters
    ----------
    detail : str
        What the service says: what came, what is allowed, and the fix.
    status : int, optional
        The status; None if there was no answer.
    request_id : str, optional
        The id by which the request is found in the service's log.
    """

    def __init__(
        self, detail: str, status: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.request_id = status, request_id


class Call(NamedTuple, Generic[Answer]):
    """A request, and the type of its answer."""

    method: str
    path: str
    content: bytes | None
    kind: type[Answer]

    def answer(self, response: httpx.Response) -> Answer:
        """Return the answer, or raise `ServiceError`."""
        if response.status_code >= 400:
            raise _error(response)
        return msgspec.json.decode(response.content, type=self.kind)


def _error(response: httpx.Response) -> ServiceError:
    try:
        found = msgspec.json.decode(response.content)
        detail, name = found["detail"], found.get("request_id")
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError):
        detail, name = response.text[:200], None  # a proxy's, and not the service's
    return ServiceError(f"{response.status_code}: {detail}", response.status_code, name)


class Calls:
    """The requests of both clients, without sending them.

    Parameters
    ----------
    url : str, default "http://127.0.0.1:8000"
        The address of the service.
    key : str, optional
        A key of `keyhole keys add`.
    timeout : float, default 10
        Seconds to wait for an answer.
    retries : int, default 4
        How often a request without an answer is sent again, after pauses that double.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 4,
    ) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._options: dict[str, Any] = {
            "base_url": url,
            "headers": {**headers, "Content-Type": "application/json"},
            "timeout": timeout,
        }
        self._retries = retries

    def decide_call(
        self, loop: str, context: Context, given: Mapping[str, Any]
    ) -> Call[DecideAnswer]:
        """Return the request of a decision.

        Parameters
        ----------
        loop : str
            The loop.
        context : dict or list
            The context.
        given : mapping
            Other fields of `DecideRequest`.
        """
        options = dict(given)
        if options.get("event_id") is None:
            options["event_id"] = str(uuid.uuid4())
        actions = options.pop("actions", None)
        if actions is not None:
            options["actions"] = [_action(one) for one in actions]
        request = DecideRequest(context=context, **options)
        return Call("POST", f"{loop_path(loop)}/decide", encoded(request), DecideAnswer)

    def reward_call(
        self, loop: str, event_id: str, value: float, reward_id: str | None
    ) -> Call[RewardAnswer]:
        """Return the request of a reward.

        Parameters
        ----------
        loop, event_id : str
            The loop, and the id of the event.
        value : float
            The reward.
        reward_id : str, optional
            Its id.
        """
        name = str(uuid.uuid4()) if reward_id is None else reward_id
        body = encoded(RewardRequest(value=value, reward_id=name))
        return Call("POST", f"{event_path(loop, event_id)}/reward", body, RewardAnswer)

    def create_call(self, loop: str, settings: LoopSettings | dict[str, Any]) -> Call[LoopView]:
        """Return the request that makes or changes a loop.

        Parameters
        ----------
        loop : str
            Its name.
        settings : LoopSettings or dict
            Its settings.
        """
        return Call("PUT", loop_path(loop), encoded(settings), LoopView)

    def activate_call(self, loop: str, event_id: str) -> Call[Done]:
        """Return the request that makes an event active.

        Parameters
        ----------
        loop, event_id : str
            The loop, and the id of the event.
        """
        return Call("POST", f"{event_path(loop, event_id)}/activate", None, Done)

    def event_call(self, loop: str, event_id: str) -> Call[EventView]:
        """Return the request that shows an event.

        Parameters
        ----------
        loop, event_id : str
            The loop, and the id of the event.
        """
        return Call("GET", event_path(loop, event_id), None, EventView)

    def loop_call(self, loop: str) -> Call[LoopView]:
        """Return the request that shows a loop."""
        return Call("GET", loop_path(loop), None, LoopView)

    def pause(self, attempt: int) -> float:
        """Return the seconds before the next attempt; random, so that clients do not agree."""
        return min(0.05 * 2.0**attempt, 2.0) * random.uniform(0.5, 1.5)


def _action(given: Action | str | Mapping[str, Any]) -> Action:
    if isinstance(given, str):
        return Action(id=given)
    return given if isinstance(given, Action) else Action(**given)


def loop_path(name: str) -> str:
    """Return the path of a loop."""
    return f"/v1/loops/{quote(name, safe='')}"


def event_path(loop: str, name: str) -> str:
    """Return the path of an event.

    Parameters
    ----------
    loop, name : str
        The loop, and the id of the event.
    """
    return f"{loop_path(loop)}/events/{quote(name, safe='')}"
