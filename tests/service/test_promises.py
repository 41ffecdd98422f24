"""The promises of the service, each with a test that was seen to fail."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keyhole.service import DecideRequest, Service
from tests.service.history import check

PLAIN: dict[str, Any] = {"arms": ["A", "B"], "dim": 2}


class Moved:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture(name="clock")
def _clock() -> Moved:
    return Moved()


@pytest.fixture(name="service")
def _service(tmp_path: Path, clock: Moved) -> Iterator[Service]:
    service = Service(tmp_path, now=clock)
    yield service
    service.close()


def decide(service: Service, loop: str, event: str, context: Any = (1.0, 0.5), **more: Any) -> Any:
    given = list(context) if isinstance(context, tuple) else context
    decided = service.decide(loop, DecideRequest(context=given, event_id=event, **more))
    service.wait(decided.unit)
    return decided


def reopened(service: Service) -> bytes:
    """Return the state of the loop "home" after all was loaded again, without a snapshot."""
    service.recover()
    return service.loop("home").model()


def test_forgetting_is_replayed(service: Service) -> None:
    """P9: from the rows, and where only the row `forget` comes after the snapshot."""
    loop = service.create("home", PLAIN)
    for k in range(6):
        decide(service, "home", f"e{k}", (float(k), 1.0))
        loop.reward(f"e{k}", 0.5 * k)
    loop.forget("e1")
    assert reopened(service) == loop.model()
    loop = service.loop("home")
    service.keep(loop)
    loop.forget("e2")
    state = loop.model()
    assert reopened(service) == state
    assert sum(service.loop("home").bandit.counts.values()) == 4
    check(service.path, service=service)  # the sums are those of the other four, to 1e-12
