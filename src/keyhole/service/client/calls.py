"""`Calls`: the requests of both clients, and their answers; nothing is sent here.

A request that got no answer may have been written or not. Sent again with the same ids it gives the
same answer, and counts once. Both clients therefore make an id for every event and reward
that has none, before the first attempt.
"""

from __future__ import annotations

import ipaddress
import math
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, SupportsFloat, TypeAlias
from urllib.parse import quote

import httpx
import msgspec

from keyhole.checks import real
from keyhole.errors import InvalidValue, shown
from keyhole.service.client.answers import Call
from keyhole.service.client.attempts import Attempts
from keyhole.service.http import Done, EventView, LoopView, ProbabilitiesView
from keyhole.service.requests import (
    Action,
    DecideAnswer,
    DecideRequest,
    RewardAnswer,
    RewardRequest,
    check_event_id,
    check_name,
)
from keyhole.service.settings import LoopSettings

# Seconds of the longest time-out: a day, which the system's calls accept.
LONGEST = 86_400.0
# What a header may have: no spaces, line ends or other letters.
_KEY = re.compile(r"[!-~]+")


class Array(Protocol):
    """An array, such as one of NumPy, which is not needed here."""

    def tolist(self) -> Any:
        """Return its numbers."""


# A context as programs have it.
Given: TypeAlias = Mapping[str, Any] | Sequence[Any] | Array


def encoded(content: object, name: str = "request", *, has_missing: bool = True) -> bytes:
    """Return JSON. Numbers and arrays of NumPy become plain ones.

    Parameters
    ----------
    content : object
        The content to encode.
    name : str, default "request"
        Its name in messages.
    has_missing : bool, default True
        Whether NaN becomes null, a missing entry; otherwise it is refused.

    Raises
    ------
    InvalidValue
        If a number is infinite, or a value cannot be sent.
    """
    plain = msgspec.to_builtins(content, enc_hook=_plain)
    return msgspec.json.encode(_finite(plain, name, has_missing))


def _plain(value: Any) -> Any:
    """Return a number or an array of NumPy, or of a similar type, as plain values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise InvalidValue(
        f"a request must have numbers, texts, lists and dicts, got {type(value).__name__}"
    )


def _finite(value: Any, place: str, has_missing: bool) -> Any:
    if isinstance(value, float):
        if math.isinf(value) or (math.isnan(value) and not has_missing):
            missing = ", or None if it is missing" if has_missing else ""
            raise InvalidValue(f"{place} must be a finite number{missing}, got {value}")
        return None if math.isnan(value) else value
    if isinstance(value, dict):
        return {k: _finite(one, f"{place}.{k}", has_missing) for k, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one, f"{place}[{k}]", has_missing) for k, one in enumerate(value)]
    return value


def _check_ordered(name: str, value: object) -> None:
    """Raise `InvalidValue` if a value is a set, or has one: numbers would be sent in any order."""
    if isinstance(value, set | frozenset):
        raise InvalidValue(f"{name} must have an order, as a list has, got {shown(value)}")
    if isinstance(value, Mapping):
        for field, one in value.items():
            _check_ordered(f"{name}.{field}", one)
    elif isinstance(value, list | tuple):
        for k, one in enumerate(value):
            _check_ordered(f"{name}[{k}]", one)


class Calls:
    """The requests of both clients, without sending them.

    Parameters
    ----------
    url, key, timeout, patience
        As in `Client`.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        timeout: float,
        patience: float,
    ) -> None:
        if not _is_address(url):
            raise InvalidValue(
                "url must be an address such as 'http://localhost:8000' or 'https://example.org', "
                f"got {shown(url)}"
            )
        if key is not None and not _KEY.fullmatch(key):
            # Not shown: it is a secret.
            raise InvalidValue(
                "key must have letters, digits and signs of ASCII alone. Has it a line end from a "
                "file? Then strip it"
            )
        self._arguments: dict[str, Any] = {
            "url": url,
            "key": key,
            "timeout": timeout,
            "patience": patience,
        }
        self._patience = real("patience", patience, min_value=0.0, max_value=math.inf)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._options: dict[str, Any] = {
            "base_url": url,
            "headers": {**headers, "Content-Type": "application/json"},
            "timeout": real("timeout", timeout, above=0.0, max_value=LONGEST),
        }
        if _is_loopback(httpx.URL(url).host):
            # A proxy would ask its own machine, and see contexts and the key.
            self._options |= {"trust_env": False, "verify": httpx.create_ssl_context()}

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._arguments), ()

    def decide_call(
        self, loop: str, context: Given, given: Mapping[str, Any]
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
        body = encoded(_decide_request(context, options))
        same = ("event_id", options["event_id"])
        return Call("POST", f"{loop_path(loop)}/decide", body, DecideAnswer, same)

    def probabilities_call(
        self, loop: str, context: Given, given: Mapping[str, Any]
    ) -> Call[ProbabilitiesView]:
        """Return the request for the probabilities of candidates.

        Parameters
        ----------
        loop : str
            The loop.
        context : dict or list
            The context.
        given : mapping
            Other fields of `DecideRequest`.
        """
        body = encoded(_decide_request(context, given))
        return Call("POST", f"{loop_path(loop)}/probabilities", body, ProbabilitiesView)

    def reward_call(
        self, loop: str, event_id: str, value: SupportsFloat, reward_id: str | None
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
        try:
            is_finite = math.isfinite(value)
        except (TypeError, OverflowError):
            is_finite = False
        if not is_finite:
            raise InvalidValue(f"value must be a finite number, got {shown(value)}")
        name = str(uuid.uuid4()) if reward_id is None else reward_id
        number: Any = value
        body = encoded(RewardRequest(value=number, reward_id=name))
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
        body = encoded(settings, "settings", has_missing=False)
        return Call("PUT", loop_path(loop), body, LoopView, ("name", loop))

    def activate_call(self, loop: str, event_id: str) -> Call[Done]:
        """Return the request that makes an event active.

        Parameters
        ----------
        loop, event_id : str
            The loop, and the id of the event.
        """
        same = ("event_id", event_id)
        return Call("POST", f"{event_path(loop, event_id)}/activate", None, Done, same)

    def forget_call(self, loop: str, event_id: str) -> Call[Done]:
        """Return the request that forgets an event.

        Parameters
        ----------
        loop, event_id : str
            The loop, and the id of the event.
        """
        return Call("DELETE", event_path(loop, event_id), None, Done, ("event_id", event_id))

    def event_call(self, loop: str, event_id: str) -> Call[EventView]:
        """Return the request that shows an event.

        Parameters
        ----------
        loop, event_id : str
            The loop, and the id of the event.
        """
        same = ("event_id", event_id)
        return Call("GET", event_path(loop, event_id), None, EventView, same)

    def loop_call(self, loop: str) -> Call[LoopView]:
        """Return the request that shows a loop."""
        return Call("GET", loop_path(loop), None, LoopView, ("name", loop))

    def attempts(self) -> Attempts:
        """Begin to count the attempts of a request."""
        return Attempts(self._patience)


def _is_address(url: str) -> bool:
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    # Paths of requests would become a part of a query.
    return found.scheme in ("http", "https") and bool(found.host) and not found.query


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _decide_request(context: Given, given: Mapping[str, Any]) -> DecideRequest:
    """Return a request for a decision, or for the probabilities of one.

    Parameters
    ----------
    context : dict or list
        The context.
    given : mapping
        Other fields of `DecideRequest`.
    """
    options = dict(given)
    actions = options.pop("actions", None)
    _check_ordered("context", context)
    _check_ordered("actions", actions)
    if isinstance(actions, str | bytes):
        raise InvalidValue(f"actions must be a list of actions, got the text {shown(actions)}")
    if actions is not None:
        options["actions"] = [_action(one) for one in actions]
    options["exclude"] = _names("exclude", options["exclude"])
    contexts: Any = context  # an array becomes a list
    return DecideRequest(context=contexts, **options)


def _action(given: Action | str | Mapping[str, Any]) -> Action:
    if isinstance(given, str):
        return Action(id=given)
    if isinstance(given, Action):
        return given
    if not (isinstance(given, Mapping) and "id" in given and set(given) <= {"id", "features"}):
        raise InvalidValue(
            f'an action must be a name, or a dict with "id" and "features", got {shown(given)}'
        )
    return Action(**given)


def _names(name: str, given: Iterable[str]) -> list[str]:
    """Return names as a list; a text would be one for each letter."""
    if isinstance(given, str | bytes):
        raise InvalidValue(f"{name} must be a list of names, got the text {shown(given)}")
    return list(given)


def loop_path(name: str) -> str:
    """Return the path of a loop, or raise `InvalidValue` if no loop can have that name."""
    check_name("the name of a loop", name)  # '..' would be another path; a long one has no address
    return f"/v1/loops/{quote(name, safe='')}"


def event_path(loop: str, name: str) -> str:
    """Return the path of an event.

    Parameters
    ----------
    loop, name : str
        The loop, and the id of the event.
    """
    check_event_id(name)
    return f"{loop_path(loop)}/events/{quote(name, safe='')}"
