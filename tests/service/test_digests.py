"""A digest tells requests that are decided otherwise, and no others."""

from itertools import combinations
from typing import Any

import msgspec
import pytest

from keyhole.service import DecideRequest
from keyhole.service.digests import request_digest


def digest(**given: Any) -> bytes:
    # As it comes: through JSON.
    return request_digest(msgspec.json.decode(msgspec.json.encode(given), type=DecideRequest))


SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"context": [1, 2.5]}, {"context": [1.0, 2.5]}),
    ({"context": [0.0, None]}, {"context": [-0.0, None]}),
    ({"context": {"a": 1, "b": "x"}}, {"context": {"b": "x", "a": 1.0}}),
    ({"context": {"a": 0}}, {"context": {"a": -0.0}}),
    (
        {"context": {"a": {"c": [1, {"d": 2}], "b": 1}}},
        {"context": {"a": {"b": 1.0, "c": [1.0, {"d": 2.0}]}}},
    ),
    ({"context": {"a": 10**400, "b": 1}}, {"context": {"b": 1.0, "a": 10**400}}),
    ({"context": [1]}, {"context": [1], "event_id": "e", "explain": True, "at_least": 3}),
    ({"context": [1]}, {"context": [1], "exclude": [], "actions": None, "defer": False}),
    ({"exclude": ["A", "B"]}, {"exclude": ["B", "A", "A"]}),
    (
        {"actions": [{"id": "A", "features": {"p": 1, "q": 2}}, {"id": "B", "features": {}}]},
        {"actions": [{"features": {"q": 2.0, "p": 1.0}, "id": "A"}, {"id": "B"}]},
    ),
]

OTHERS: list[dict[str, Any]] = [
    {"context": [1.0]},
    {"context": [1.0000000000000002]},
    {"context": [None]},
    {"context": [1.0, 1.0]},
    {"context": {"a": 1}},
    {"context": {"a": True}},
    {"context": {"a": "1"}},
    {"context": {"a": None}},
    {"context": {"a": [1]}},
    {"context": {"b": 1}},
    {"context": {"a": 1, "b": 1}},
    {"context": {"a": 10**400}},
    {"context": {"a": 10**400 + 1}},
    {"context": [1.0], "exclude": ["A"]},
    {"context": [1.0], "baseline": "A"},
    {"context": [1.0], "defer": True},
    {"context": [1.0], "actions": []},
    {"context": [1.0], "actions": [{"id": "A"}, {"id": "B"}]},
    {"context": [1.0], "actions": [{"id": "B"}, {"id": "A"}]},
    {"context": [1.0], "actions": [{"id": "A", "features": {"p": 1}}, {"id": "B"}]},
    {"context": [1.0], "actions": [{"id": "A"}, {"id": "B", "features": {"p": 1}}]},
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_requests_that_are_decided_alike_have_one_digest(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert digest(**one) == digest(**other)


def test_other_requests_have_other_digests() -> None:
    for one, other in combinations(OTHERS, 2):
        assert digest(**one) != digest(**other), (one, other)
