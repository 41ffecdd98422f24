"""Requests that schemathesis makes from the OpenAPI document, valid ones and others."""

import json
from collections import Counter
from contextlib import suppress
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)


@schemathesis.serializer("application/x-ndjson")
def as_lines(_context: Any, value: Any) -> bytes:
    lines = value if isinstance(value, list) else [value]
    return "\n".join(json.dumps(line) for line in lines).encode()


# Loops and events that are there, so that requests get past the names.
LOOPS, EVENTS = ("home", "shop", "personalizer"), ("o-1", "o-2", "o-3")


def fuzz(url: str, examples: int, first: int = 1) -> Counter[tuple[str, int]]:
    """Send requests to every route of a service; return how many of each had each status.

    No answer may have a status that the document does not have for its route, or one of the
    service's own failures; and answers must be of their schemas.

    Parameters
    ----------
    url : str
        The address of a service.
    examples : int
        How many requests to each route: half of them are valid by the document.
    first : int, default 1
        The seed.
    """
    found: Counter[tuple[str, int]] = Counter()
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            takes = operation.query or (operation.body and not operation.path.endswith("/model"))
            if mode is GenerationMode.NEGATIVE and not takes:
                continue  # nothing that could be wrong

            @seed(first)
            @settings(
                max_examples=max(1, examples // 2),
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def one(case: Any) -> None:
                names = case.path_parameters or {}
                if "loop" in names and len(names["loop"]) % 4:
                    names["loop"] = LOOPS[len(names["loop"]) % 3]
                if "event" in names and len(names["event"]) % 2:
                    names["event"] = EVENTS[len(names["event"]) % 3]
                answer = case.call()
                found[case.operation.label, answer.status_code] += 1
                case.validate_response(answer, checks=CHECKS)

            # What takes anything has no wrong values.
            with suppress(*((Unsatisfiable,) if mode is GenerationMode.NEGATIVE else ())):
                one()
    return found


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
