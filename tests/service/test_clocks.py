"""Clocks stamp, and never order: time-outs are rows, and decide races with rewards."""

import time
from pathlib import Path
from typing import Any

import pytest

from keyhole.service import DecideRequest, Service
from keyhole.service.clock import Clock
from keyhole.service.learning import MAX_DUE
from tests.service.clocks import Moved
from tests.service.history import check

AT_END: dict[str, Any] = {
    "arms": ["A", "B"],
    "dim": 1,
    "reward": {"default": 0.0, "wait": 10.0},
}


def decide(service: Service, event: str) -> None:
    service.wait(service.decide("home", DecideRequest(context=[1.0], event_id=event)).unit)


def test_a_race_of_time_out_and_reward_is_decided_by_the_log(tmp_path: Path) -> None:
    """P8: what counts is which row came first, and not what time it was."""
    clock = Moved()
    with Service(tmp_path, now=clock) as service:
        loop = service.create("home", AT_END)
        for event in ("early", "slow", "late"):
            decide(service, event)
        assert loop.reward("early", 1.0).status == "held"
        clock.time += 11.0
        # It is due, and its time-out is not in the log yet.
        assert loop.reward("slow", 2.0).status == "held"
        service.wait(loop.unit)
        assert service.tick() == 3
        assert loop.reward("late", 4.0).status == "amended"
        assert loop.reward("slow", 2.0).status == "duplicate"
        service.wait(loop.unit)
        found = check(service.path, service=service)["home"]
    learned = {name: one.learned for name, one in found.events.items()}
    assert learned == {"early": 1.0, "slow": 2.0, "late": 4.0}


def test_a_time_out_that_is_not_on_the_disk_yet_is_made_once(tmp_path: Path) -> None:
    """The database says that it is due until the row is committed; memory knows better."""
    clock = Moved()
    with Service(tmp_path, now=clock) as service:
        loop = service.create("home", AT_END)
        decide(service, "e1")
        clock.time += 11.0
        assert [service.tick(), service.tick()] == [1, 0]
        service.wait(loop.unit)
        assert sum(loop.bandit.counts.values()) == 1
        check(service.path, service=service)


def test_all_that_is_due_ends_in_one_tick_by_short_turns(tmp_path: Path) -> None:
    """However many: a loop of 5,000 decisions a second would never catch up with a limit."""
    clock = Moved()
    with Service(tmp_path, now=clock) as service:
        for name in ("home", "other"):
            service.create(name, AT_END)
            for k in range(1200):  # several of one time
                clock.time += 0.001 * (k % 3 == 0)
                request = DecideRequest(context=[1.0], event_id=f"e{k}")
                service.decide(name, request)
        service.wait(service.writer.submitted)
        clock.time += 11.0
        turns = service.turns()
        first = next(turns)
        assert 0 < first <= MAX_DUE
        decide(service, "between")  # a request has its turn
        assert first + sum(turns) == 2400
        service.wait(service.writer.submitted)
        assert service.tick() == 0
        for name in ("home", "other"):
            assert sum(service.loop(name).bandit.counts.values()) == 1200
        check(service.path, service=service)


@pytest.mark.parametrize("jump", [-1e6, -5.0, 5.0, 1e6])
def test_a_jump_of_the_clock(tmp_path: Path, jump: float) -> None:
    """Rows stay in their order; events end when the clock says so, once."""
    clock = Moved()
    with Service(tmp_path, now=clock) as service:
        loop = service.create("home", AT_END)
        decide(service, "before")
        clock.time += jump
        decide(service, "after")
        loop.reward("before", 1.0)
        service.wait(loop.unit)
        ended = service.tick()
        assert ended == (1 if jump > 10.0 else 0)
        service.wait(loop.unit)
        check(service.path, service=service)
    # Across a restart the clock may jump as well.
    clock.time -= 2 * jump
    with Service(tmp_path, now=clock) as service:
        service.tick()
        clock.time += 1e7
        service.wait(service.loop("home").unit)
        service.tick()
        service.wait(service.loop("home").unit)
        assert service.tick() == 0
        found = check(service.path, service=service)["home"]
    assert {name: one.learned for name, one in found.events.items()} == {
        "before": 1.0,
        "after": 0.0,
    }


def test_the_clock_of_a_service_does_not_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    real = time.time()
    monkeypatch.setattr(time, "time", lambda: real + 3600.0)
    assert abs(clock() - real) < 60.0
    assert abs(Clock()() - real - 3600.0) < 60.0
