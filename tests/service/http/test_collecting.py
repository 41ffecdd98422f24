"""Garbage of the server: thresholds while it runs, and full collections in pauses."""

import asyncio
import gc

import pytest

from keyhole.service.http import collecting


def test_thresholds_are_those_of_the_server_while_it_runs() -> None:
    before = gc.get_threshold()
    with collecting.kept_thresholds():
        assert gc.get_threshold() == collecting.THRESHOLDS
        assert gc.get_freeze_count() > 1_000
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() < 1_000


@pytest.mark.parametrize(
    ("busy", "most", "expected"), [(False, 9.0, 1), (True, 9.0, 0), (True, 0.0, 1)]
)
def test_all_is_collected_when_nobody_asks_or_after_a_while(
    monkeypatch: pytest.MonkeyPatch, busy: bool, most: float, expected: int
) -> None:
    collected, requests = [], 0
    monkeypatch.setattr(collecting, "STEP", 0.002)
    monkeypatch.setattr(collecting, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(collecting, "MAX_SECONDS", most)
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1))

    def served() -> int:
        nonlocal requests
        requests += busy
        return requests

    async def work() -> None:
        task = asyncio.create_task(collecting.collect_in_pauses(served))
        await asyncio.sleep(0.05)
        task.cancel()

    asyncio.run(work())
    assert bool(collected) == expected
