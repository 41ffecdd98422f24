"""Loops, arms, effects, probabilities, model and log over HTTP."""

import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

import keyhole as kh
from keyhole.service import compact
from tests.service.http.serving import NAMED, PLAIN, Local, local

HOME = "/v1/loops/home"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Local]:
    with local(tmp_path / "data") as served:
        served.put(HOME, PLAIN)
        yield served


def decide_and_reward(home: Local, n: int) -> None:
    for k in range(n):
        home.post(HOME + "/decide", {"event_id": f"e{k}", "context": [1.0, 0.1 * k]})
        home.post(HOME + f"/events/e{k}/reward", {"value": float(k % 2)})


# -- loops -----------------------------------------------------------------------------------------


def test_a_loop_is_created_shown_listed_and_changed(home: Local) -> None:
    assert home.get("/v1/loops").json() == {"loops": ["home"]}
    shown = home.get(HOME).json()
    assert (shown["name"], shown["arms"], shown["version"]) == ("home", ["A", "B", "C"], 2)
    again = home.put(HOME, PLAIN)
    assert (again.status_code, again.json()) == (200, shown)
    changed = home.put(HOME, {**PLAIN, "arms": ["A", "B", "C", "D"], "mode": "off"}).json()
    assert (changed["arms"], changed["settings"]["mode"]) == (["A", "B", "C", "D"], "off")


def test_put_replaces_all_settings_and_shows_them(home: Local) -> None:
    given = {**PLAIN, "reward": {"default": 0.0, "wait": "PT1H"}, "mode": "shadow", "baseline": "B"}
    home.put(HOME, given)
    answer = home.put(HOME, {"dim": 2, "mode": "off"}).json()
    assert answer["arms"] == ["A", "B", "C"], "only POST .../arms removes what was learned"
    settings = answer["settings"]
    assert (settings["mode"], settings["baseline"]) == ("off", None)
    assert (settings["reward"]["default"], settings["reward"]["wait"]) == (None, None)
    assert settings == home.get(HOME).json()["settings"]


def test_pages_of_archived_rows_are_gone(tmp_path: Path) -> None:
    with local(tmp_path) as served:
        served.put(HOME, {**PLAIN, "reward": {"default": 0.0, "wait": 0.01}})
        decide_and_reward(served, 3)
        time.sleep(0.05)
        assert served.app.service.tick() == 3
    compact(tmp_path)
    with local(tmp_path) as served:
        gone = served.get(HOME + "/log?after=0")
        assert gone.status_code == 410
        [after] = re.findall(r"give after=(\d+) or more", gone.json()["detail"])
        assert served.get(f"{HOME}/log?after={after}").status_code == 200


def test_unknown_names_in_a_query_are_refused(home: Local) -> None:
    decide_and_reward(home, 1)
    event = HOME + "/events/e0"
    assert "explanation" in home.get(event + "?explain=true").json()
    assert home.get(event + "?explain=false").json() == home.get(event).json()
    for value in ("1", "True", "maybe", ""):
        answer = home.get(f"{event}?explain={value}")
        assert answer.status_code == 422
        assert "explain must be true or false" in answer.json()["detail"]
    for path in (event + "?explains=true", HOME + "/log?before=3", HOME + "/log?after=0&Limit=1"):
        answer = home.get(path)
        assert (answer.status_code, answer.json()["detail"][:15]) == (422, "the query takes")


def test_messages_say_what_a_loop_takes(home: Local) -> None:
    home.put("/v1/loops/shop", NAMED)
    for path, body, says in (
        ("shop/decide", {"context": [1.0, 2.0]}, "the loop has the fields ['hour', 'device']"),
        ("shop/probabilities", {"context": [1.0]}, "the loop has the fields ['hour', 'device']"),
        ("shop/observe", {"contexts": [[1.0]]}, "the loop has the fields ['hour', 'device']"),
        ("home/decide", {"context": [1.0, 2.0], "at_least": -1}, ">= 0"),
        ("home/decide", {"context": [1.0, 2.0], "event_id": "."}, "must not be '.' or '..'"),
        ("home/decide", {"context": [1.0, 2.0], "event_id": ".."}, "must not be '.' or '..'"),
    ):
        answer = home.post(f"/v1/loops/{path}", body)
        assert answer.status_code == 422
        assert says in answer.json()["detail"]
    [line] = home.lines(HOME + "/decide:batch", {"context": [1.0, 2.0], "event_id": ".."})
    assert "must not be" in line["problem"]["detail"]
    assert home.post(HOME + "/decide", {"context": [1, 2], "event_id": "..."}).status_code == 200
    for settings, says in (
        ({"features": {"nums": ["a"]}}, "features takes numbers, booleans, categories, "),
        ({"dim": 2, "policy": {"name": "LinUCB", "a": 1}}, "policy takes name, alpha, "),
    ):
        answer = home.put("/v1/loops/new", {**settings, "arms": ["A"]})
        assert (answer.status_code, says in answer.json()["detail"]) == (422, True)


def test_settings_of_rewards_that_do_nothing_are_refused(home: Local) -> None:
    for reward in ({"wait": "PT1S"}, {"late": "ignore"}, {"learn": "at_once", "wait": 600}):
        answer = home.put("/v1/loops/new", {**PLAIN, "reward": reward})
        assert answer.status_code == 422
        assert "whenever they come. Give reward.default" in answer.json()["detail"]
    ends = {"default": 0.0}, {"learn": "at_end"}, {"learn": "provisional", "default": 1.0}
    for k, ending in enumerate(ends):
        shown = home.put(f"/v1/loops/l{k}", {**PLAIN, "reward": ending}).json()["settings"]
        assert (shown["reward"]["wait"], shown["reward"]["late"]) == ("PT10M", "amend")
        assert home.put(f"/v1/loops/l{k}", shown).json()["settings"] == shown
    shown = home.get(HOME).json()["settings"]
    assert (shown["reward"]["wait"], shown["reward"]["late"]) == (None, None)
    assert home.put(HOME, shown).json()["version"] == 2


@pytest.mark.parametrize(
    ("name", "settings", "status", "says"),
    [
        ("home", {**PLAIN, "dim": 3}, 409, "dim of loop 'home' cannot change"),
        ("home", {**PLAIN, "policy": {"name": "Greedy"}}, 409, "policy"),
        ("new", {"arms": ["A"]}, 422, "features"),
        ("new", {**PLAIN, "policy": {"name": "Nope"}}, 422, "policy.name"),
        ("new", {**PLAIN, "policy": {"v": -1}}, 422, "policy: v"),
        ("new", {**PLAIN, "policy": {"w": 1}}, 422, "policy"),
        ("new", {**PLAIN, "policy": {"sharing": "shared", "draw": "joint"}}, 422, "exact"),
        ("new", {**PLAIN, "reward": {"wait": "4 hours"}}, 422, "reward.wait"),
        ("new", {**PLAIN, "arms": ["A", ""]}, 422, "arms"),
        ("new", {**PLAIN, "arms": {"A": {"x": "y" * 2000}}}, 422, "characters"),
        ("new", {**PLAIN, "rewards": {}}, 422, "unknown field"),
        ("home", {**PLAIN, "missing": "mean"}, 409, "missing of loop 'home' cannot change"),
        ("new", {**PLAIN, "missing": "drop"}, 422, "missing must be"),
        ("new", {**NAMED, "features": {"numbers": ["x"], "missing": "drop"}}, 422, "missing must"),
        ("new", {**NAMED, "standardize": True}, 422, "features.standardize"),
        ("new", {"features": {"arms": 1}}, 422, "features.arms"),
        ("new", {"features": {"cross": [1]}}, 422, "cross"),
        ("n%2Fw", PLAIN, 422, "name of a loop"),
        ("-", PLAIN, 422, "name of a loop"),
    ],
)
def test_settings_are_checked(
    home: Local, name: str, settings: Any, status: int, says: str
) -> None:
    answer = home.put(f"/v1/loops/{name}", settings)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["detail"]
    assert home.get("/v1/loops").json() == {"loops": ["home"]}


def test_arms_join_and_leave(home: Local) -> None:
    assert home.post(HOME + "/arms", {"add": ["D"]}).json()["arms"] == ["A", "B", "C", "D"]
    assert home.post(HOME + "/arms", {"remove": ["A"]}).json()["arms"] == ["B", "C", "D"]
    for wrong in ({}, {"add": ["B"]}, {"remove": ["X"]}, {"add": ["E"], "remove": ["B"]}):
        refused = home.post(HOME + "/arms", wrong)
        assert refused.status_code == 422
        if len(wrong) != 1:
            assert ("got both" if wrong else "got neither") in refused.json()["detail"]
    assert home.get(HOME).json()["arms"] == ["B", "C", "D"]


def test_settings_that_are_given_back_add_no_removed_arm(home: Local) -> None:
    home.post(HOME + "/arms", {"remove": ["A"]})
    settings = home.get(HOME).json()["settings"]
    assert settings["arms"] == ["B", "C"]
    assert home.put(HOME, {**settings, "mode": "off"}).json()["arms"] == ["B", "C"]
    records = {"A": {"price": 1.0}, "B": {"price": 2.0}}
    features = {"numbers": ["hour"], "arms": {"numbers": ["price"]}}
    home.put("/v1/loops/shop", {"arms": records, "features": features})
    shown = home.post("/v1/loops/shop/arms", {"remove": ["B"]}).json()
    assert shown["settings"]["arms"] == {"A": {"price": 1.0}}
    assert home.put(HOME, PLAIN).json()["arms"] == ["B", "C", "A"], "it is named again"


def test_contexts_are_observed_without_a_decision(home: Local) -> None:
    home.put("/v1/loops/shop", NAMED)
    given = [{"hour": hour, "device": "mobile"} for hour in range(12)]
    answer = home.post("/v1/loops/shop/observe", {"contexts": given})
    assert answer.json() == {"version": 3}
    assert home.post("/v1/loops/shop/observe", {"contexts": []}).status_code == 422
    assert home.post("/v1/loops/shop/observe", {"contexts": [{"x": 1}]}).status_code == 422


# -- what is learned -------------------------------------------------------------------------------


def close(value: float) -> Any:
    """Return what equals a number but for rounding.

    The service and a bandit that was loaded solve the same sums: a solution for 2 features and 12
    rewards loses some 10 units of rounding, 1e-15 of the value each.
    """
    return pytest.approx(value, rel=1e-12, abs=1e-12)


def test_effects_are_those_of_the_model(home: Local) -> None:
    decide_and_reward(home, 12)
    found = home.get(HOME + "/effects").json()
    bandit = kh.Bandit.load(home.get(HOME + "/model").content)
    assert found["version"] == home.get(HOME).json()["version"]
    for arm, effects in bandit.effects.items():
        for name, (estimate, error) in effects.by_name.items():
            shown = found["effects"][str(arm)][name]
            assert shown["estimate"] == close(estimate)
            assert shown["error"] == (close(error) if np.isfinite(error) else None)


def test_probabilities_draw_nothing_and_are_those_of_the_next_decision(home: Local) -> None:
    decide_and_reward(home, 8)
    before = home.get(HOME).json()["version"]
    got = home.get(HOME + "/probabilities", params={"context": "[1.0, 0.5]"}).json()
    posted = home.post(HOME + "/probabilities", {"context": [1.0, 0.5]}).json()
    assert got == posted
    assert got["version"] == before == home.get(HOME).json()["version"]
    decided = home.post(HOME + "/decide", {"context": [1.0, 0.5]}).json()
    for arm, chance in decided["probabilities"].items():
        assert got["probabilities"][arm] == close(chance)  # of two kernels
    without = home.get(
        HOME + "/probabilities", params={"context": "[1.0, 0.5]", "exclude": '["A"]'}
    ).json()
    assert list(without["probabilities"]) == ["B", "C"]


def test_probabilities_are_of_a_version_that_was_reached(home: Local) -> None:
    version = home.get(HOME).json()["version"]
    given = {"context": [1.0, 0.5], "at_least": version}
    assert home.post(HOME + "/probabilities", given).json()["version"] == version
    given["at_least"] = version + 1
    answer = home.post(HOME + "/probabilities", given)
    assert (answer.status_code, "at_least must be at most" in answer.text) == (409, True)
    query = {"context": "[1.0, 0.5]", "at_least": str(version + 1)}
    assert home.get(HOME + "/probabilities", params=query).status_code == 409


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("context=[1", "context must be JSON"),
        ("context=[1]", "2 numbers"),
        ("contxt=[1]", "takes context, actions, exclude"),
        ('context=[1,2]&actions=[{"id":"X"}]', "must be arms"),
    ],
)
def test_a_query_of_probabilities_is_checked(home: Local, query: str, says: str) -> None:
    answer = home.get(HOME + "/probabilities?" + query)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


def test_probabilities_of_actions_with_records(home: Local) -> None:
    actions = [{"id": f"p{k}", "features": {"price": float(k)}} for k in range(3)]
    given = {"context": {"hour": 3.0}, "actions": actions}
    home.post("/v1/loops/shop/decide", given)
    found = home.post("/v1/loops/shop/probabilities", given).json()["probabilities"]
    assert sum(found.values()) == close(1.0)
    assert list(found) == ["p0", "p1", "p2"]


def test_a_query_that_cannot_be_read_is_refused(home: Local) -> None:
    many = "&".join(f"a{k}=1" for k in range(60))
    assert home.get(HOME + "/probabilities?" + many).status_code == 400
    assert home.get(HOME + "/probabilities?context=%FF").status_code == 400


# -- the model -------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [PLAIN, NAMED])
def test_a_model_begins_another_loop(home: Local, settings: dict[str, Any]) -> None:
    home.put("/v1/loops/one", settings)
    context = [1.0, 2.0] if settings is PLAIN else {"hour": 2, "device": "mobile"}
    for k in range(20):
        home.post("/v1/loops/one/decide", {"event_id": f"e{k}", "context": context})
        home.post(f"/v1/loops/one/events/e{k}/reward", {"value": float(k % 3)})
    model = home.get("/v1/loops/one/model")
    assert model.headers["content-type"] == "application/octet-stream"
    made = home.put("/v1/loops/two/model", model.content)
    assert made.status_code == 201, made.text
    assert made.json()["learned"] == home.get("/v1/loops/one").json()["learned"]
    chances = [
        home.post(f"/v1/loops/{name}/probabilities", {"context": context}).json()["probabilities"]
        for name in ("one", "two")
    ]
    assert chances[0] == {arm: close(chance) for arm, chance in chances[1].items()}
    assert home.post("/v1/loops/two/decide", {"context": context}).status_code == 200


def test_a_model_is_a_plain_file_of_a_bandit_however_much_has_changed(home: Local) -> None:
    features = {"numbers": ["hour"], "categories": {"city": "grow"}}
    home.put("/v1/loops/grown", {"arms": ["A", "B"], "features": features})
    for k in range(150):
        context = {"hour": k % 24, "city": f"city {k}"}
        home.post("/v1/loops/grown/decide", {"event_id": f"e{k}", "context": context})
        home.post(f"/v1/loops/grown/events/e{k}/reward", {"value": float(k % 3)})
    model = home.get("/v1/loops/grown/model").content
    learned = home.get("/v1/loops/grown").json()["learned"]
    assert kh.Bandit.load(model).counts == learned
    assert (model[:4], model[-22:-18]) == (b"PK\x03\x04", b"PK\x05\x06")  # and nothing else


@pytest.mark.parametrize("name", ["a\nb", "x" * 201, "\u202eA"])
def test_arms_that_no_request_could_name_are_refused(home: Local, name: str) -> None:
    """By every way in which a loop gets arms."""
    model = kh.Bandit(kh.ThompsonSampling(), arms=["A", name], dim=2).to_bytes()
    for answer in (
        home.put("/v1/loops/new/model", model),
        home.put("/v1/loops/new", {**PLAIN, "arms": ["A", name]}),
        home.post(HOME + "/arms", {"add": [name]}),
    ):
        assert answer.status_code == 422
        assert "arms must be a text of 1 to 200 printable" in answer.json()["detail"]
    assert home.get("/v1/loops").json() == {"loops": ["home"]}


def test_a_model_replaces_none_and_must_be_one(home: Local) -> None:
    model = home.get(HOME + "/model").content
    assert home.put(HOME + "/model", model).status_code == 409
    for wrong in (b"", b"PK", model[:-100], b"x" * 1000):
        answer = home.put("/v1/loops/two/model", wrong)
        assert (answer.status_code, "saved Bandit" in answer.text) == (422, True)
    numbered = kh.Bandit(kh.ThompsonSampling(), arms=3, dim=2).to_bytes()
    assert "texts as names" in home.put("/v1/loops/two/model", numbered).text
    clipped = kh.Learner(kh.ThompsonSampling(), standardize=True, clip=5.0)
    other = kh.Bandit(clipped, arms=["A"], dim=2).to_bytes()
    assert "cannot have the learner" in home.put("/v1/loops/two/model", other).text
    assert home.get("/v1/loops").json() == {"loops": ["home"]}


# -- the log ---------------------------------------------------------------------------------------


def test_the_log_is_read_in_pages_without_gaps(home: Local) -> None:
    decide_and_reward(home, 6)
    rows: list[Any] = []
    while True:
        after = rows[-1]["seq"] if rows else 0
        page = home.get(HOME + "/log", params={"after": after, "limit": 5})
        assert page.headers["content-type"] == "application/x-ndjson"
        found = [json.loads(line) for line in page.text.splitlines()]
        if not found:
            break
        rows += found
    assert [row["seq"] for row in rows] == list(range(1, 15))
    assert [row["kind"] for row in rows[:4]] == ["start", "settings", "decision", "reward"]


def test_the_log_as_arrow_has_the_same_rows(home: Local) -> None:
    decide_and_reward(home, 3)
    lines = home.get(HOME + "/log").text.splitlines()
    answer = home.get(HOME + "/log", headers={"Accept": "application/vnd.apache.arrow.stream, */*"})
    table = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    assert table.column("row").to_pylist() == lines
    assert table.column("seq").to_pylist() == list(range(1, len(lines) + 1))


@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=0", "limit=100001", "after=9e9"])
def test_pages_are_checked(home: Local, query: str) -> None:
    answer = home.get(f"{HOME}/log?{query}")
    assert answer.status_code == 422
    assert "whole number" in answer.json()["detail"]


def test_a_page_ends_where_it_grows_large(home: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    decide_and_reward(home, 6)
    monkeypatch.setattr("keyhole.service.http.logpage.PAGE_BYTES", 1_000)
    first = home.get(HOME + "/log").text.splitlines()
    assert 1 <= len(first) < 14
    rest = home.get(HOME + f"/log?after={len(first)}").text
    assert json.loads(rest.splitlines()[0])["seq"] == len(first) + 1


def test_large_answers_are_whole(home: Local) -> None:
    home.post(HOME + "/decide:batch", "\n".join(['{"context": [1, 2]}'] * 300))
    text = home.get(HOME + "/log").text
    assert len(text) > 65_536
    assert len(text.splitlines()) == 302
