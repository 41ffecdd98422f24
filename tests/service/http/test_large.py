"""Large requests: bounded, in turns between which others are served, and durable as a whole."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keyhole.service import Limits, Options
from keyhole.service.http.turns import STEPS, Turns
from tests.service.http.serving import NAMED, PLAIN, Local, local

HOME = "/v1/loops/home"
SHOP = "/v1/loops/shop"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Local]:
    with local(tmp_path, Options(limits=Limits(batch_lines=1_000))) as served:
        served.put(HOME, PLAIN)
        served.put(SHOP, NAMED)
        yield served


def versions_seen(home: Local, path: str, content: Any) -> tuple[Any, list[int]]:
    """Return the answer to a request, and the versions of a loop that others saw meanwhile."""
    seen: list[int] = []
    loop = home.app.service.loop("home")

    async def watch() -> None:
        while True:
            seen.append(loop.version)
            await asyncio.sleep(0)

    async def work() -> Any:
        watching = asyncio.create_task(watch())
        answer = await home.client.post(path, json=content)
        watching.cancel()
        return answer

    return home.runner.run(work()), seen


def test_contexts_are_observed_in_turns(home: Local) -> None:
    before = home.app.service.loop("home").version
    contexts = [[float(k), 1.0] for k in range(5 * STEPS)]
    answer, seen = versions_seen(home, HOME + "/observe", {"contexts": contexts})
    assert answer.json() == {"version": before + 5}
    assert set(range(before + 1, before + 5)) <= set(seen)


def test_each_context_is_observed_once(home: Local) -> None:
    contexts = [[float(k % 7), float(k)] for k in range(2 * STEPS + 50)]
    home.put("/v1/loops/units", {**PLAIN, "standardize": True})
    assert home.post("/v1/loops/units/observe", {"contexts": contexts}).status_code == 200
    rows = [json.loads(line) for line in home.get("/v1/loops/units/log").text.splitlines()]
    assert [len(one["y"]) for one in rows if one["kind"] == "observe"] == [STEPS, STEPS, 50]
    assert [y for one in rows if one["kind"] == "observe" for y in one["y"]] == contexts


@pytest.mark.parametrize("wrong", [[1.0], [1.0, None], [1.0, 2.0, 3.0], {"x": 1.0}])
def test_a_context_of_another_kind_is_refused_before_the_first_is_observed(
    home: Local, wrong: Any
) -> None:
    before = home.get(HOME).json()["version"]
    answer = home.post(HOME + "/observe", {"contexts": [[1.0, 2.0]] * 150 + [wrong]})
    assert answer.status_code == 422
    assert "were observed" not in answer.json()["detail"]
    assert home.get(HOME).json()["version"] == before


def test_a_refusal_in_the_midst_says_what_was_observed(home: Local) -> None:
    before = home.get(SHOP).json()["version"]
    contexts = [{"hour": float(k), "device": "mobile"} for k in range(250)]
    for place, says in ((250, "the first 200 contexts were observed"), (50, None)):
        given = [*contexts[:place], {"hours": 1.0}, *contexts[place:]]
        answer = home.post(SHOP + "/observe", {"contexts": given})
        assert answer.status_code == 422
        assert "got 'hours'" in answer.json()["detail"]
        assert (says or "") in answer.json()["detail"]
        assert ("were observed" in answer.json()["detail"]) == (says is not None)
    assert home.get(SHOP).json()["version"] == before + 2


def test_too_many_contexts_are_refused_whole(home: Local) -> None:
    before = home.get(HOME).json()["version"]
    answer = home.post(HOME + "/observe", {"contexts": [[1.0, 2.0]] * 1_001})
    assert answer.status_code == 413
    assert "contexts must be at most 1000, got 1001" in answer.json()["detail"]
    assert home.get(HOME).json()["version"] == before
    assert home.post(HOME + "/observe", {"contexts": [[1.0, 2.0]] * 1_000}).status_code == 200


@pytest.mark.parametrize("route", ["decide:batch", "rewards"])
def test_blank_lines_of_a_batch_are_lines(home: Local, route: str) -> None:
    """They are counted before they are split: 16 MB of them take a gigabyte."""
    answer = home.post(f"{HOME}/{route}", b"\n" * 1_001)
    assert (answer.status_code, "got 1001" in answer.json()["detail"]) == (413, True)
    assert home.post(f"{HOME}/{route}", b"\n" * 1_000).status_code == 200
    assert home.post(f"{HOME}/{route}", b"\n" * 999 + b" ").status_code == 200
    assert home.post(f"{HOME}/{route}", b"\n" * 1_000 + b" ").status_code == 413


def test_a_turn_of_slow_lines_ends_early(home: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyhole.service.http.turns.SECONDS", 0.0)  # each line takes longer
    before = home.app.service.loop("home").version
    given = {"contexts": [[1.0, 2.0]] * 3}
    assert home.post(HOME + "/observe", given).status_code == 200
    lines = [{"event_id": f"e{k}", "context": [1.0, 2.0]} for k in range(20)]
    seen: list[int] = []

    async def work() -> None:
        text = b"\n".join(msgspec.json.encode(line) for line in lines)
        sending = asyncio.create_task(home.client.post(HOME + "/decide:batch", content=text))
        while not sending.done():
            seen.append(home.app.service.loop("home").version)
            await asyncio.sleep(0)

    home.runner.run(work())
    assert set(range(before + 2, before + 21)) <= set(seen)


def test_a_disk_that_fails_in_the_midst_is_told(
    home: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the service has recovered: what was submitted before is lost."""
    monkeypatch.setattr("keyhole.service.http.recovery.PAUSE", 0.0)
    before = home.get(HOME).json()["version"]
    store = home.app.service.store
    commit, calls = store.commit, [0]

    def failing(units: Any) -> None:
        calls[0] += 1
        if calls[0] == 2:
            raise OSError("no space")
        commit(units)

    monkeypatch.setattr(store, "commit", failing)
    answer = home.post(HOME + "/observe", {"contexts": [[1.0, 2.0]] * 5 * STEPS})
    assert answer.status_code == 503
    assert calls[0] == 2
    after = home.get(HOME).json()["version"]
    assert before + 1 <= after < before + 5


@pytest.mark.parametrize("route", ["observe", "decide:batch"])
def test_an_answer_is_made_in_the_last_turn(
    home: Local, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After another turn it would tell of rows of others, or of a writer that has failed."""
    asked: list[int] = []
    end = Turns.end

    async def counted(turns: Turns) -> None:
        asked.append(home.app.service.loop("home").version)
        await end(turns)

    monkeypatch.setattr(Turns, "end", counted)
    monkeypatch.setattr("keyhole.service.http.turns.SECONDS", 10.0)
    if route == "observe":
        content: Any = {"contexts": [[1.0, 2.0]] * (2 * STEPS)}
    else:
        content = "\n".join(['{"context": [1.0, 2.0]}'] * (2 * STEPS))
    assert home.post(f"{HOME}/{route}", content).status_code == 200
    last = home.app.service.loop("home").version
    assert asked
    assert max(asked) < last


def test_a_refusal_after_a_failure_does_not_tell_of_lost_rows(
    home: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first turn is lost, the service recovers, and the second turn would be refused."""
    end, count = Turns.end, [0]

    async def failing(turns: Turns) -> None:
        count[0] += 1
        if count[0] == 3:  # after the turn of checks, and the first that observes
            home.app.service.writer.fail(OSError("no space"))
        await end(turns)

    monkeypatch.setattr(Turns, "end", failing)
    contexts: list[Any] = [{"hour": 1.0, "device": "mobile"}] * STEPS
    answer = home.post(SHOP + "/observe", {"contexts": [*contexts, {"hours": 1.0}]})
    assert count[0] == 3
    assert answer.status_code == 503
