"""The digest of a request: detects a different request with the same event id.

Requests that would be decided alike have the same digest. The order of keys, 1 in place of 1.0, an
excluded action that is named twice, and fields that only concern the answer (`explain`, `at_least`)
do not change it: the client that sends a request again may be another program.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from keyhole.service.requests import DecideRequest

_encode = msgspec.msgpack.Encoder(order="deterministic").encode  # keys of objects are sorted


def request_digest(request: DecideRequest) -> bytes:
    """Return the digest of the fields that determine a decision; computed for every decision."""
    context: Any = request.context
    if context.__class__ is dict:
        context = _object(context)
    elif 0.0 in context:  # which -0.0 equals
        context = _same(context)
    actions: Any = request.actions
    if actions is not None:
        actions = [(one.id, _object(one.features) if one.features else None) for one in actions]
    exclude = sorted(set(request.exclude)) if request.exclude else None
    content = _encode((context, actions, exclude, request.baseline, request.defer))
    return hashlib.blake2b(content, digest_size=16).digest()


def _object(record: dict[str, Any]) -> dict[str, Any]:
    """Return an object with equal numbers made the same."""
    try:
        # Adding 0.0 gives a float, and 0.0 for -0.0. This line is most of the time of a digest.
        return {
            name: value + 0.0
            if (kind := value.__class__) is float or kind is int
            else (value if kind is str else _same(value))
            for name, value in record.items()
        }
    except OverflowError:
        return {name: _same(value) for name, value in record.items()}


def _same(value: Any) -> Any:
    """Return a value of JSON with equal numbers made the same."""
    kind = value.__class__
    if kind is float or kind is int:
        try:
            return value + 0.0
        except OverflowError:  # no field takes it, and it equals no other number
            return str(value)
    if kind is dict:
        return _object(value)
    return [_same(one) for one in value] if kind is list else value
