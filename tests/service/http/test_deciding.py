"""Decisions over HTTP: the same id, the same answer; other bodies, other statuses."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from keyhole.service import Service, verify
from keyhole.service.loop import Loop
from keyhole.service.store import Store, Unit
from tests.service.history import check
from tests.service.http.serving import NAMED, PLAIN, Local, local

DECIDE = "/v1/loops/home/decide"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Local]:
    with local(tmp_path / "data") as served:
        assert served.put("/v1/loops/home", PLAIN).status_code == 201
        yield served


def test_a_decision_has_an_exact_probability(home: Local) -> None:
    answer = home.post(DECIDE, {"event_id": "o-1", "context": [1.0, 0.5]})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert "idempotent-replay" not in answer.headers
    decided = answer.json()
    assert decided["event_id"] == "o-1"
    chance = decided["probabilities"][decided["action"]]
    assert decided["probability"] == pytest.approx(chance, abs=1e-12)
    assert list(decided["probabilities"]) == ["A", "B", "C"]
    # Nothing was learned: all arms are alike.
    assert decided["probabilities"]["A"] == pytest.approx(1 / 3, abs=1e-12)


def test_the_same_request_again_gives_the_same_answer(home: Local) -> None:
    given = {"event_id": "o-1", "context": [1.0, 0.5], "explain": False}
    first = home.post(DECIDE, given)
    again = home.post(DECIDE, '{ "context": [1, 0.5], "event_id": "o-1" }')  # other spaces
    assert again.content == first.content
    assert again.headers["idempotent-replay"] == "true"
    # Nothing was written for it: settings, start, decision.
    assert home.get("/v1/loops/home").json()["version"] == 3


@pytest.mark.parametrize(
    "again",
    [
        '{"defer": false, "context": {"hour": 14, "device": "mobile"}, "event_id": "o-1"}',
        '{"event_id": "o-1", "context": {"device": "mobile", "hour": 14.0}}',
        '{"event_id": "o-1", "context": {"device": "mobile", "hour": 1.4e1}, "at_least": 2}',
        '{"event_id": "o-1", "context": {"device": "mobile", "hour": 14}, "explain": true}',
    ],
)
def test_a_retry_may_be_written_otherwise(home: Local, again: str) -> None:
    home.put("/v1/loops/shop", NAMED)
    path = "/v1/loops/shop/decide"
    given = {"event_id": "o-1", "context": {"hour": 14, "device": "mobile"}}
    first = home.post(path, given).json()
    answer = home.post(path, again)
    assert answer.headers["idempotent-replay"] == "true"
    assert {name: answer.json()[name] for name in first} == first


def test_the_same_id_with_another_body_is_a_conflict(home: Local) -> None:
    home.post(DECIDE, {"event_id": "o-1", "context": [1.0, 0.5]})
    other = home.post(DECIDE, {"event_id": "o-1", "context": [1.0, 0.6]})
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    assert "was used for a different request" in other.json()["detail"]
    assert other.json()["request_id"] == other.headers["x-request-id"]


def test_without_an_id_each_request_gets_one_ordered_by_time(home: Local) -> None:
    ids = [home.post(DECIDE, {"context": [1.0, 0.5]}).json()["event_id"] for _ in range(3)]
    assert len(set(ids)) == 3
    assert [one[14] for one in ids] == ["7"] * 3
    assert [one[:8] for one in ids] == sorted(one[:8] for one in ids)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ("", 400, "must be JSON"),
        ('{"context": [1, 2]', 400, "must be JSON"),
        (b'{"context": {"a": "\xff"}}', 400, "must be JSON"),
        ('{"context": [1, NaN]}', 400, "must be JSON"),
        ('{"context": [1, 1e999]}', 422, "out of range"),
        ('{"context": [1, "x"]}', 422, "float"),
        ('{"context": {"a": 1' + "0" * 5000 + "}}", 422, ""),
        ('{"context": {"a": "\\ud800"}}', 400, "must be JSON"),
        ('{"contxt": [1, 2]}', 422, "unknown field `contxt`"),
        ('{"context": [1]}', 422, "2 numbers"),
        ('{"context": [1, null]}', 422, "with the setting missing"),
        ('{"context": {"a": 1}}', 422, ""),
        ('{"context": [1, 2], "event_id": ""}', 422, "event_id"),
        ('{"context": [1, 2], "event_id": "a\\nb"}', 422, "printable"),
        ('{"context": [1, 2], "exclude": ["X"]}', 422, "exclude"),
        (
            '{"context": [1, 2], "exclude": ["A", "B", "C"]}',
            422,
            "exclude names all arms of the loop",
        ),
        ('{"context": [1, 2], "actions": [{"id": ""}]}', 422, "printable"),
        ('{"context": [1, 2], "actions": [{"id": "A"}, {"id": "A"}]}', 422, "different"),
        ('{"context": [1, 2], "actions": [{"id": "A", "features": {"a": 1}}]}', 422, "features"),
        ('{"context": [1, 2], "baseline": "X"}', 422, "baseline"),
        ('{"context": [1, 2], "at_least": 99}', 409, "at_least"),
        ('{"context": {"a": ' + "[" * 20 + "]" * 20 + "}}", 422, "nested"),
        ('{"context": {"a": ' + "[" * 90_000 + "}}", 422, ""),
        ('{"context": {"' + "a" * 2000 + '": 1}}', 422, "characters"),
        ('{"context": {"a": "' + "a" * 2000 + '"}}', 422, "characters"),
        ('{"context": [' + "1," * 2000 + "1]}", 422, "fields"),
        ('{"context": {"a": [' + "[1],[2]," * 3000 + "[1]]}}", 422, "at most 8000 parts"),
        (
            json.dumps({"context": [1, 2], "actions": [{"id": f"{k}"} for k in range(1001)]}),
            422,
            "1000",
        ),
        (json.dumps({"context": [1, 2], "exclude": ["A"] * 1001}), 422, "exclude must be at most"),
    ],
)
def test_errors_teach_and_change_nothing(home: Local, body: Any, status: int, says: str) -> None:
    answer = home.post(DECIDE, body)
    assert answer.status_code == status, answer.text
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (problem["status"], set(problem)) == (
        status,
        {"title", "status", "detail", "request_id"},
    )
    assert says in problem["detail"]
    assert home.get("/v1/loops/home").json()["version"] == 2


def test_a_body_that_is_too_large_is_refused_while_it_is_read(home: Local) -> None:
    large = b"[" + b"1," * (1 << 20) + b"1]"
    assert home.post(DECIDE, large).status_code == 413

    async def parts() -> Any:  # without a length
        for _ in range(3):
            yield b" " * (1 << 19)
        raise AssertionError("read past the limit")

    assert home.post(DECIDE, None, data=None).status_code == 400
    answer = home.runner.run(home.client.post(DECIDE, content=parts()))
    assert answer.status_code == 413
    assert "1048576 bytes" in answer.json()["detail"]


def test_excluded_and_listed_actions_limit_the_choice(home: Local) -> None:
    found = {
        home.post(DECIDE, {"context": [1, 2], "exclude": ["A", "C"]}).json()["action"]
        for _ in range(5)
    }
    assert found == {"B"}
    listed = home.post(DECIDE, {"context": [1, 2], "actions": [{"id": "C"}, {"id": "B"}]})
    assert list(listed.json()["probabilities"]) == ["C", "B"]


def test_a_new_action_joins_only_where_the_loop_lets_it(home: Local) -> None:
    """It would be a candidate of every request: a loop whose arms are declared refuses it."""
    given = {"context": [1, 2], "actions": [{"id": "C"}, {"id": "D"}]}
    for mode in ("online", "shadow", "off"):
        home.put("/v1/loops/home", {**PLAIN, "mode": mode})
        refused = home.post(DECIDE, given)
        assert (refused.status_code, "add_arms" in refused.json()["detail"]) == (422, True)
    assert home.get("/v1/loops/home").json()["arms"] == ["A", "B", "C"]
    home.put("/v1/loops/home", {**PLAIN, "add_arms": True})
    assert list(home.post(DECIDE, given).json()["probabilities"]) == ["C", "D"]
    assert home.get("/v1/loops/home").json()["arms"] == ["A", "B", "C", "D"]
    home.put("/v1/loops/home", PLAIN)
    assert home.post(DECIDE, given).status_code == 200  # D has stayed


def test_actions_join_a_loop_that_was_made_by_its_first_request(home: Local) -> None:
    for context in ({"hour": 14}, [1.0, 2.0]):
        path = f"/v1/loops/{type(context).__name__}"
        home.post(path + "/decide", {"context": context, "actions": [{"id": "A"}]})
        assert home.get(path).json()["settings"]["add_arms"] is True
        home.post(path + "/decide", {"context": context, "actions": [{"id": "B"}]})
        assert home.get(path).json()["arms"] == ["A", "B"]


def test_an_unknown_loop_is_not_found(home: Local) -> None:
    answer = home.post("/v1/loops/other/decide", {"context": [1, 2]})
    assert answer.status_code == 422  # and how it could be made
    assert "lists its actions" in answer.json()["detail"]


def test_a_first_request_makes_a_loop(home: Local) -> None:
    given = {
        "context": {"hour": 14, "device": "mobile", "member": True},
        "actions": [{"id": "A"}, {"id": "B"}],
    }
    answer = home.post("/v1/loops/shop/decide", given)
    assert answer.status_code == 200
    features = home.get("/v1/loops/shop").json()["settings"]["features"]
    assert features == {
        "numbers": ["hour"],
        "booleans": ["member"],
        "categories": {"device": "grow"},
    }
    assert home.post("/v1/loops/shop/decide", {"context": {"hour": None}}).status_code == 200


def test_actions_with_features_make_a_loop_that_knows_new_ones(home: Local) -> None:
    def given(*prices: float) -> dict[str, Any]:
        actions = [{"id": f"p{price}", "features": {"price": price}} for price in prices]
        return {"context": {"hour": 14}, "actions": actions}

    assert home.post("/v1/loops/shop/decide", given(1.0, 2.0)).status_code == 200
    settings = home.get("/v1/loops/shop").json()["settings"]
    assert settings["policy"]["sharing"] == "shared"
    assert settings["features"]["cross"] == [["hour", "arm.price"]]
    answer = home.post("/v1/loops/shop/decide", given(3.0, 4.0)).json()
    assert list(answer["probabilities"]) == ["p3.0", "p4.0"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"context": {"a": None}, "actions": [{"id": "A"}]}, "context.a is null"),
        ({"context": {}, "actions": [{"id": "A"}]}, "at least one field"),
        ({"context": [], "actions": [{"id": "A"}]}, "at least one field"),
        ({"context": {"a": [1]}, "actions": [{"id": "A"}]}, "context.a must be a number"),
        ({"context": {"a": 1}, "actions": []}, "lists its actions"),
        (
            {"context": {"a": 1}, "actions": [{"id": "A"}], "exclude": ["A"]},
            "exclude names all actions",
        ),
        ({"context": {"a": 1}, "actions": [{"id": "A"}], "event_id": ""}, "event_id"),
        ({"context": {"a": 1}, "actions": [{"id": "A"}], "at_least": 3}, "at_least"),
        ({"context": {"a": 1e60}, "actions": [{"id": "A"}]}, "a must be"),
        (
            {
                "context": {str(i): i for i in range(10)},
                "actions": [{"id": "A", "features": {str(i): i for i in range(10)}}],
            },
            "crosses at most 30",
        ),
    ],
)
def test_a_first_request_that_tells_too_little_makes_none(
    home: Local, given: dict[str, Any], says: str
) -> None:
    answer = home.post("/v1/loops/new/decide", given)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert home.get("/v1/loops").json() == {"loops": ["home"]}


def test_a_list_of_numbers_makes_a_loop(home: Local) -> None:
    given = {"context": [1.0, 2.0, 3.0], "actions": [{"id": "A"}, {"id": "B"}]}
    assert home.post("/v1/loops/new/decide", given).status_code == 200
    assert home.get("/v1/loops/new").json()["settings"]["dim"] == 3


@pytest.mark.parametrize(("arms", "most"), [(2, 500), (5, 316), (1_000, 22)])
def test_a_first_request_makes_no_loop_that_would_stop_the_service(
    home: Local, arms: int, most: int
) -> None:
    """The work of a decision grows with arms times the square of the fields."""
    actions = [{"id": f"a{k}"} for k in range(arms)]
    path = f"/v1/loops/large-{arms}"
    for n in (most + 1, 1_000):
        for context in ([1.0] * n, {f"f{k}": 1.0 for k in range(n)}):
            answer = home.post(path + "/decide", {"context": context, "actions": actions})
            assert answer.status_code == 422
            assert f"{arms:,} arms and " in answer.json()["detail"]
    assert home.get(path).status_code == 404
    given = {"context": [1.0] * most, "actions": actions}
    assert home.post(path + "/decide", given).status_code == 200
    ranked = {"contextFeatures": [{f"f{k}": 1.0 for k in range(most + 1)}], "actions": actions}
    answer = home.post("/personalizer/v1.0/rank", ranked)
    assert (answer.status_code, "create the loop with PUT" in answer.text) == (400, True)


@pytest.mark.parametrize(
    "settings",
    [
        {"dim": 1_000, "arms": [f"a{k}" for k in range(101)]},
        {
            "features": {"numbers": [f"f{k}" for k in range(300)]},
            "arms": [f"a{k}" for k in range(2_000)],
        },
        {"dim": 10, "arms": [f"a{k}" for k in range(1_000)], "policy": {"sharing": "hybrid"}},
    ],
)
def test_a_loop_that_would_fill_the_memory_is_refused(
    home: Local, settings: dict[str, Any]
) -> None:
    answer = home.put("/v1/loops/huge", settings)
    assert (answer.status_code, "may learn 100,000,000 numbers" in answer.text) == (422, True)
    few = {**settings, "arms": settings["arms"][:2]}
    assert home.put("/v1/loops/huge", few).status_code == 201


def test_levels_of_requests_do_not_fill_the_memory(
    home: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two arms, and at most ten columns with the constant: nine levels and no tenth."""
    monkeypatch.setattr("keyhole.service.settings.MAX_SUMS", 2 * 10**2)
    settings = {"arms": ["A", "B"], "features": {"categories": {"c": "grow"}}}
    assert home.put("/v1/loops/grows", settings).status_code == 201
    for k in range(9):
        assert home.post("/v1/loops/grows/decide", {"context": {"c": f"u{k}"}}).status_code == 200
    version = home.get("/v1/loops/grows").json()["version"]
    for path, given in (
        ("decide", {"context": {"c": "u9"}}),
        ("observe", {"contexts": [{"c": "u9"}]}),
        ("arms", {"add": ["C"]}),
    ):
        answer = home.post(f"/v1/loops/grows/{path}", given)
        assert (answer.status_code, "may learn 200 numbers" in answer.text) == (422, True)
    assert home.get("/v1/loops/grows").json()["version"] == version
    assert home.post("/v1/loops/grows/decide", {"context": {"c": "u8"}}).status_code == 200
    check(home.app.service.path, service=home.app.service)


def test_the_memory_for_probabilities_is_bounded(home: Local) -> None:
    """One for each number of candidates would be 6 GB for a loop of 100,000 arms."""
    home.put("/v1/loops/many", {"dim": 1, "arms": [f"a{k}" for k in range(30)]})
    for k in range(25):
        given = {"context": [1.0], "exclude": [f"a{j}" for j in range(k)]}
        answer = home.post("/v1/loops/many/decide", given).json()
        assert abs(sum(answer["probabilities"].values()) - 1.0) < 1e-9
    assert len(home.app.service.loop("many").answers._chances) <= 8


def test_a_batch_has_a_status_for_each_line(home: Local) -> None:
    found = home.lines(
        DECIDE + ":batch",
        {"event_id": "b-1", "context": [1, 2]},
        {"event_id": "b-1", "context": [1, 3]},
        "not JSON",
        {"event_id": "b-1", "context": [1, 2]},
        "",
        {"context": [1]},
    )
    assert [one["status"] for one in found] == [200, 409, 400, 200, 422]
    assert found[0]["answer"]["event_id"] == "b-1"
    assert (found[3]["answer"], found[3]["replay"]) == (found[0]["answer"], True)
    assert "2 numbers" in found[4]["problem"]["detail"]
    single = home.post(DECIDE, {"event_id": "b-1", "context": [1, 2]})
    assert single.json() == found[0]["answer"]


def test_lines_of_a_batch_are_numbered_and_named(home: Local) -> None:
    """A program that sent blank or broken lines must be able to tell which answer is whose."""
    lines = [
        "",
        '{"event_id": "n-1", "context": [1, 2]}',
        "   ",
        '{"event_id": "n-2", "context": [1]}',
        '{"event_id": "n-3", "contexts": 1}',
        '{"event_id": 7}',
        '{"event_id": "n-4"',
        "[]",
        '{"context": [1, 2]}',
    ]
    found = home.lines(DECIDE + ":batch", *lines)
    assert [(one["line"], one["event_id"], one["status"]) for one in found[:-1]] == [
        (2, "n-1", 200),
        (4, "n-2", 422),
        (5, "n-3", 422),
        (6, None, 422),
        (7, None, 400),
        (8, None, 422),
    ]
    assert (found[-1]["line"], found[-1]["event_id"]) == (9, found[-1]["answer"]["event_id"])
    rewards = ['{"event_id": "n-1", "value": 1}', "", '{"event_id": "n-9", "value": 1}']
    found = home.lines(DECIDE.replace("decide", "rewards"), *rewards)
    assert [(one["line"], one["event_id"], one["status"]) for one in found] == [
        (1, "n-1", 200),
        (3, "n-9", 404),
    ]


def test_a_batch_of_too_many_lines_is_refused_whole(home: Local) -> None:
    answer = home.post(DECIDE + ":batch", "{}\n" * 10_001)
    assert answer.status_code == 413
    assert "10000 lines, got 10001" in answer.json()["detail"]


@pytest.mark.parametrize("missing", ["predict", "mean", "zero"])
def test_null_in_a_list_is_a_missing_entry(home: Local, missing: str) -> None:
    path = "/v1/loops/gaps"
    home.put(path, {**PLAIN, "missing": missing})
    for k in range(40):
        context = [1.0, None] if k % 3 else [float(k % 5), 2.0]
        given = {"event_id": f"e{k}", "context": context, "explain": True}
        made = home.post(path + "/decide", given)
        assert made.status_code == 200
        home.post(f"{path}/events/e{k}/reward", {"value": float(k % 2)})
    assert made.json()["explanation"]["missing"] == missing
    assert sum(home.get(path).json()["learned"].values()) == 40
    query = {"context": "[null, 2]"}
    assert home.get(path + "/probabilities", params=query).status_code == 200
    assert home.post(path + "/observe", {"contexts": [[1, None]]}).status_code == 200
    check(home.app.service.path, service=home.app.service)
    for wrong in (
        home.get("/v1/loops/home/probabilities", params=query),
        home.post("/v1/loops/home/observe", {"contexts": [[1, 2], [1, None]]}),
    ):
        assert (wrong.status_code, "got null" in wrong.json()["detail"]) == (422, True)


def test_a_first_request_may_have_null_in_a_list(home: Local) -> None:
    given = {"context": [1.0, None], "actions": [{"id": "A"}, {"id": "B"}]}
    assert home.post("/v1/loops/gaps/decide", given).status_code == 200
    assert home.get("/v1/loops/gaps").json()["settings"]["missing"] == "predict"


@pytest.mark.parametrize("path", [DECIDE, "/personalizer/v1.0/rank"])
def test_a_first_request_is_in_the_log_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """P2: no transaction has a new loop without the decision that it was made for."""
    kinds: list[list[str]] = []
    commit, create = Store.commit, Service.create

    def noting(store: Store, units: Sequence[Unit]) -> None:
        kinds.append([row[3] for unit in units for row in unit.rows])
        commit(store, units)

    def created(service: Service, *given: Any) -> Loop:
        loop = create(service, *given)
        service.writer.flush()
        time.sleep(0.05)  # the writer's thread takes all that it can
        return loop

    monkeypatch.setattr(Store, "commit", noting)
    monkeypatch.setattr(Service, "create", created)
    given: dict[str, Any] = {"actions": [{"id": "A"}, {"id": "B"}]}
    given |= {"context": {"hour": 1}} if path == DECIDE else {"contextFeatures": [{"hour": 1}]}
    with local(tmp_path) as served:
        assert served.post(path, given).status_code in (200, 201)
    assert kinds[0] == ["start", "settings", "decision"]


def test_a_baseline_is_answered_in_shadow_and_off(home: Local) -> None:
    home.put("/v1/loops/home", {**PLAIN, "mode": "shadow", "baseline": "B"})
    shadow = home.post(DECIDE, {"context": [1, 2]}).json()
    assert (shadow["action"], shadow["probability"], shadow["mode"]) == ("B", 1.0, "shadow")
    assert shadow["proposed"] in "ABC"
    rewarded = f"/v1/loops/home/events/{shadow['event_id']}/reward"
    assert home.post(rewarded, {"value": 1.0}).json()["status"] == "counted"
    # The baseline's arm was served, and has learned.
    assert home.get("/v1/loops/home").json()["learned"] == {"A": 0, "B": 1, "C": 0}
    home.put("/v1/loops/home", {**PLAIN, "mode": "off", "baseline": "C"})
    off = home.post(DECIDE, {"context": [1, 2]}).json()
    assert (off["action"], off["mode"], off["score"]) == ("C", "off", None)


def test_a_baseline_is_an_arm_and_stays_one(home: Local) -> None:
    path = "/v1/loops/home"
    for name in ("home", "new"):
        refused = home.put(f"/v1/loops/{name}", {**PLAIN, "mode": "shadow", "baseline": "X"})
        assert (refused.status_code, "baseline must be" in refused.json()["detail"]) == (422, True)
    assert home.get(path).json()["settings"]["baseline"] is None
    home.put(path, {**PLAIN, "arms": ["D"], "baseline": "D"})  # one that joins, or was there
    home.put(path, {**PLAIN, "arms": [], "baseline": "D"})
    gone = home.post(path + "/arms", {"remove": ["D"]})
    assert (gone.status_code, "is the baseline" in gone.json()["detail"]) == (422, True)
    without = {"context": [1, 2], "exclude": ["D"]}
    assert home.post(DECIDE, without).status_code == 200  # it is not needed
    home.put(path, {**PLAIN, "baseline": "D", "mode": "shadow"})
    assert home.post(DECIDE, without).status_code == 422
    features = {"numbers": ["hour"], "arms": {"numbers": ["price"]}}
    bare = {"policy": {"sharing": "shared"}, "features": features, "baseline": "X"}
    assert home.put("/v1/loops/bare", bare).status_code == 201  # actions come with requests


def test_named_fields_are_checked_by_name(home: Local) -> None:
    home.put("/v1/loops/shop", NAMED)
    path = "/v1/loops/shop/decide"
    assert home.post(path, {"context": {"hour": 1, "device": "mobile"}}).status_code == 200
    wrong = home.post(path, {"context": {"hour": "one", "device": "mobile"}})
    assert (wrong.status_code, "hour" in wrong.json()["detail"]) == (422, True)
    unknown = home.post(path, {"context": {"hours": 1}})
    assert (unknown.status_code, "hours" in unknown.json()["detail"]) == (422, True)


def test_a_request_that_is_refused_adds_no_arms(tmp_path: Path) -> None:
    settings = {"arms": ["A", "B"], "features": {"numbers": ["x"]}, "add_arms": True}
    with local(tmp_path) as served:
        served.put("/v1/loops/g", settings)
        for value in ("bad", 1e300):
            given = {"context": {"x": value}, "actions": [{"id": "A"}, {"id": "NEW"}]}
            assert served.post("/v1/loops/g/decide", given).status_code == 422
        assert served.get("/v1/loops/g").json()["arms"] == ["A", "B"]
        served.put("/v1/loops/d", {"arms": ["A", "B"], "dim": 2, "add_arms": True})
        contexts: list[Any] = [[None, 1], [1e300, 1], [1]]
        for context in contexts:
            given = {"context": context, "actions": [{"id": "A"}, {"id": "NEW"}]}
            assert served.post("/v1/loops/d/decide", given).status_code == 422
        assert served.get("/v1/loops/d").json()["arms"] == ["A", "B"]


def test_ids_of_another_loop_are_new_in_a_loop_that_goes_on_from_its_model(
    tmp_path: Path,
) -> None:
    with local(tmp_path) as served:
        served.put("/v1/loops/old", PLAIN)
        for k in range(5):
            served.post("/v1/loops/old/decide", {"event_id": f"p{k}", "context": [1, k]})
            served.post(f"/v1/loops/old/events/p{k}/reward", {"value": 1.0})
        model = served.get("/v1/loops/old/model").content
        assert served.put("/v1/loops/new/model", model).status_code == 201
        served.post("/v1/loops/new/decide", {"event_id": "p1", "context": [1, 2]})
        answer = served.post("/v1/loops/new/events/p1/reward", {"value": 2.0})
        assert answer.json()["status"] == "counted"
        assert sum(served.get("/v1/loops/new").json()["learned"].values()) == 6
    [_, new] = verify(tmp_path)
    assert (new.decisions, new.learned) == (1, 1)


def test_a_loop_whose_sums_are_not_finite_answers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local(tmp_path) as served:
        served.put("/v1/loops/home", PLAIN)
        served.post("/v1/loops/home/decide", {"event_id": "e0", "context": [1, 2]})
        loop = served.app.service.loop("home")
        choose = loop.bandit.choose_everyday

        def broken(y: Any, event: str) -> dict[str, Any]:
            fields = choose(y, event)
            assert fields is not None
            return fields | {"score": math.nan}

        monkeypatch.setattr(loop.bandit, "choose_everyday", broken)
        answer = served.post("/v1/loops/home/decide", {"event_id": "e1", "context": [1, 2]})
        assert (answer.status_code, "are not finite" in answer.json()["detail"]) == (422, True)
        # The loop is loaded again.
        answer = served.post("/v1/loops/home/decide", {"event_id": "e1", "context": [1, 2]})
        assert answer.status_code == 200
        assert "idempotent-replay" not in answer.headers
    assert verify(tmp_path)[0].decisions == 2


def test_weighed_rewards_have_no_shadow_mode(tmp_path: Path) -> None:
    settings = {**PLAIN, "policy": {"name": "WeightedThompsonSampling"}}
    with local(tmp_path) as served:
        answer = served.put("/v1/loops/w", settings | {"mode": "shadow"})
        assert (answer.status_code, "must not be 'shadow'" in answer.json()["detail"]) == (
            422,
            True,
        )
        assert served.put("/v1/loops/w", settings).status_code == 201
        assert served.put("/v1/loops/w", settings | {"mode": "shadow"}).status_code == 422
