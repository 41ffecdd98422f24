"""Events over HTTP: rewards count once, deferred events, forgetting."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.http.serving import NAMED, PLAIN, Local, local

HOME = "/v1/loops/home"
GROWING = {
    "arms": ["A", "B", "C"],
    "features": {"numbers": ["hour"], "categories": {"device": "grow"}, "standardize": False},
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Local]:
    with local(tmp_path / "data") as served:
        served.put(HOME, PLAIN)
        served.post(HOME + "/decide", {"event_id": "o-1", "context": [1.0, 0.5]})
        yield served


def learned(home: Local) -> int:
    return sum(home.get(HOME).json()["learned"].values())


def test_a_reward_counts_once(home: Local) -> None:
    given = {"value": 1.0, "reward_id": "purchase-9"}
    first = home.post(HOME + "/events/o-1/reward", given)
    assert first.json() == {"status": "counted", "total": 1.0, "version": 4}
    again = home.post(HOME + "/events/o-1/reward", {**given, "value": 5.0})
    assert again.json() == {"status": "duplicate", "total": 1.0, "version": 4}
    assert learned(home) == 1
    shown = home.get(HOME + "/events/o-1").json()
    assert (shown["rewards"], shown["learned"], shown["state"]) == (
        {"purchase-9": 1.0},
        1.0,
        "open",
    )
    assert shown["decision"]["event_id"] == "o-1"
    assert shown["seq"] == 3


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ('{"value": "1"}', 422, "float"),
        ('{"value": 1e60}', 422, "1e50"),
        ("{}", 422, "value"),
        ('{"value": 1, "reward_id": "a\\u0000"}', 422, "printable"),
        ("", 400, "must be JSON"),
    ],
)
def test_rewards_are_checked(home: Local, body: str, status: int, says: str) -> None:
    answer = home.post(HOME + "/events/o-1/reward", body)
    assert answer.status_code == status
    assert says in answer.json()["detail"]
    assert learned(home) == 0


@pytest.mark.parametrize("what", ["/reward", "/activate", ""])
def test_an_unknown_event_or_loop_is_not_found(home: Local, what: str) -> None:
    for path in (HOME + "/events/o-2", "/v1/loops/other/events/o-1"):
        method = "POST" if what else "GET"
        answer = home(method, path + what, {"value": 1.0} if what == "/reward" else None)
        assert answer.status_code == 404
        assert "o-2" in answer.json()["detail"] or "other" in answer.json()["detail"]


def test_a_deferred_event_is_learned_after_its_activation(home: Local) -> None:
    home.post(HOME + "/decide", {"event_id": "o-2", "context": [1, 2], "defer": True})
    held = home.post(HOME + "/events/o-2/reward", {"value": 1.0}).json()
    assert (held["status"], learned(home)) == ("held", 0)
    assert home.get(HOME + "/events/o-2").json()["state"] == "deferred"
    active = home.post(HOME + "/events/o-2/activate")
    assert active.json()["status"] == "active"
    assert learned(home) == 1
    again = home.post(HOME + "/events/o-2/activate")
    assert again.json()["version"] == active.json()["version"]


def test_a_forgotten_event_is_gone(home: Local) -> None:
    home.post(HOME + "/events/o-1/reward", {"value": 1.0})
    assert learned(home) == 1
    assert home("DELETE", HOME + "/events/o-1").json()["status"] == "forgotten"
    assert learned(home) == 0
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/activate")):
        assert home(method, HOME + "/events/o-1" + path).status_code == 410
    assert home.post(HOME + "/events/o-1/reward", {"value": 1.0}).status_code == 410
    again = home.post(HOME + "/decide", {"event_id": "o-1", "context": [1.0, 0.5]})
    assert again.status_code == 410


def test_an_id_may_have_a_slash_and_any_letter(home: Local) -> None:
    for name, path in (("a/b c", "a%2Fb%20c"), ("\u00e9\u4e2d", "%C3%A9%E4%B8%AD")):
        home.post(HOME + "/decide", {"event_id": name, "context": [1, 2]})
        assert home.get(f"{HOME}/events/{path}").json()["event_id"] == name
    assert home.get(f"{HOME}/events/%FF").status_code == 400


def test_a_batch_of_rewards(home: Local) -> None:
    found = home.lines(
        HOME + "/rewards",
        {"event_id": "o-1", "value": 1.0},
        {"event_id": "o-1", "value": 1.0},
        {"event_id": "o-2", "value": 1.0},
        {"value": 2.0},
    )
    assert [one["status"] for one in found] == [200, 200, 404, 422]
    status = [one["answer"]["status"] for one in found if "answer" in one]
    assert status == ["counted", "duplicate"]


def test_an_event_can_be_explained(home: Local) -> None:
    shown = home.get(HOME + "/events/o-1", params={"explain": "true"}).json()
    assert shown["explanation"]["arm"] == shown["decision"]["action"]
    answer = home.post(HOME + "/decide", {"event_id": "x", "context": [1, 2], "explain": True})
    assert answer.json()["explanation"]["probabilities"].keys() == {"A", "B", "C"}
    named = {"context": {"hour": 3, "device": None}, "explain": True}
    home.put("/v1/loops/shop", NAMED)
    for _ in range(12):
        made = home.post("/v1/loops/shop/decide", named).json()
        home.post(f"/v1/loops/shop/events/{made['event_id']}/reward", {"value": 1.0})
    assert made["explanation"]["terms"].keys() >= {"hour", "device"}


def test_a_decision_that_cannot_be_explained_is_answered(home: Local) -> None:
    """It is in the log: an error would have the client take it for refused."""
    given = {"event_id": "x", "context": [1, 2], "explain": True}
    first = home.post(HOME + "/decide", given).json()
    home.post(HOME + "/arms", {"remove": [first["action"]]})
    again = home.post(HOME + "/decide", given)
    assert (again.status_code, again.json()["action"]) == (200, first["action"])
    assert "explanation" not in again.json()
    assert "was removed" in again.json()["unexplained"]
    shown = home.get(HOME + "/events/x", params={"explain": "true"}).json()
    assert (shown["decision"]["action"], "was removed" in shown["unexplained"]) == (
        first["action"],
        True,
    )
    home.put(HOME, {**PLAIN, "mode": "off"})
    off = home.post(HOME + "/decide", {"context": [1, 2], "explain": True}).json()
    assert (off["mode"], "the loop was off" in off["unexplained"]) == ("off", True)
    shown = home.get(f"{HOME}/events/{off['event_id']}", params={"explain": "true"}).json()
    assert "the loop was off" in shown["unexplained"]


def test_an_explanation_is_by_arms_and_levels_of_now(home: Local) -> None:
    home.put("/v1/loops/shop", GROWING)
    path = "/v1/loops/shop"
    for name, device in (("old", "mobile"), ("new", "desktop")):
        context = {"hour": 3, "device": device}
        home.post(path + "/decide", {"event_id": name, "context": context})
    action = home.get(path + "/events/old").json()["decision"]["action"]
    gone = next(arm for arm in "ABC" if arm != action)
    home.post(path + "/arms", {"remove": [gone]})
    shown = home.get(path + "/events/old", params={"explain": "true"}).json()["explanation"]
    assert shown["arm"] == action
    assert shown["probabilities"].keys() == set("ABC") - {gone}
    assert shown["terms"].keys() >= {"hour", "device"}


def test_time_ends_events_and_what_is_learned(home: Local) -> None:
    waits = {"default": 0.0, "wait": 0.01}
    home.put("/v1/loops/due", {**PLAIN, "reward": waits})
    home.post("/v1/loops/due/decide", {"event_id": "d-1", "context": [1, 2]})
    assert home.get("/v1/loops/due/events/d-1").json()["state"] == "open"
    home.runner.run(asyncio.sleep(0.5))  # two ticks
    shown = home.get("/v1/loops/due/events/d-1").json()
    assert (shown["state"], shown["learned"], shown["due"]) == ("ended", 0.0, None)


def test_an_event_shows_no_reward_that_comes_while_it_waits_for_the_disk(
    home: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.post(HOME + "/decide", {"event_id": "p-1", "context": [1, 2]})
    loop, wait = home.app.service.loop("home"), home.app.commits.wait

    async def meanwhile(unit: int) -> None:
        loop.reward("p-1", 2.0, "second")
        await wait(unit)

    home.post(HOME + "/events/p-1/reward", {"value": 1.0, "reward_id": "first"})
    monkeypatch.setattr(home.app.commits, "wait", meanwhile)
    shown = home.get(HOME + "/events/p-1").json()
    assert (shown["rewards"], shown["total"]) == ({"first": 1.0}, 1.0)
