"""Personalizer's routes, with its own unchanged client against a server on loopback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import (
    ErrorResponseException,
    RankableAction,
    RankRequest,
)
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

from keyhole.service import KeyFile
from tests.service.http.serving import Local, Process, local

RANK = "/personalizer/v1.0/rank"
EVENTS = "/personalizer/v1.0/events"


def request(**given: Any) -> RankRequest:
    actions = [
        RankableAction(id="pasta", features=[{"taste": "salty", "spice": 1}, {"_note": "x"}]),
        RankableAction(id="ice", features=[{"taste": "sweet", "spice": 0}]),
        RankableAction(id="juice", features=[{"taste": "sweet"}, {"nutrition": {"spice": 0}}]),
    ]
    context = [{"time": "morning"}, {"user": {"age": 30, "member": True}, "hours": [1.0, 2.5]}]
    return RankRequest(actions=actions, context_features=context, **given)


def test_the_unchanged_client_ranks_rewards_and_activates(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    secret = KeyFile(folder).add("app", ["admin"])
    with Process(folder) as served:
        client = PersonalizerClient(served.url, CognitiveServicesCredentials(secret))
        answer = client.rank(request(event_id="e-1", excluded_actions=["juice"]))
        assert answer.event_id == "e-1"
        assert answer.reward_action_id in ("pasta", "ice")
        assert answer.ranking[0].id == answer.reward_action_id
        assert [one.id for one in answer.ranking][-1] == "juice"
        assert answer.ranking[-1].probability == 0.0
        assert sum(one.probability for one in answer.ranking) == pytest.approx(1.0)
        again = client.rank(request(event_id="e-1", excluded_actions=["juice"]))
        assert again.reward_action_id == answer.reward_action_id
        client.events.reward("e-1", value=1.0)
        client.events.reward("e-1", value=0.5)  # the first counts

        made = client.rank(request(defer_activation=True))
        client.events.reward(made.event_id, value=1.0)
        head = {"Authorization": f"Bearer {secret}"}
        path = f"{served.url}/v1/loops/personalizer/events/"
        shown = httpx.get(path + made.event_id, headers=head).json()
        assert (shown["state"], shown["due"], shown["learned"]) == ("deferred", None, None)
        client.events.activate(made.event_id)
        assert httpx.get(path + made.event_id, headers=head).json()["state"] == "open"
        shown = httpx.get(path + "e-1", headers=head).json()
        assert (shown["rewards"], shown["total"]) == ({"": 1.0}, 1.0)

        with pytest.raises(HttpOperationError) as unknown:
            client.events.reward("no-such", value=1.0)
        assert unknown.value.response.status_code == 404
        with pytest.raises(ErrorResponseException) as refused:
            client.rank(request(event_id="e-1"))  # another request
        error: Any = refused.value.error
        assert error.error.code == "BadRequest"
        assert "was used for a different request" in error.error.message
        stranger = PersonalizerClient(served.url, CognitiveServicesCredentials("nobody"))
        with pytest.raises(ErrorResponseException) as unauthorized:
            stranger.rank(request())
        assert unauthorized.value.response.status_code == 401
        error = unauthorized.value.error
        assert error.error.code == "Unauthorized"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Local]:
    with local(tmp_path / "data") as found:
        yield found


def ranked(served: Local, given: dict[str, Any], path: str = RANK) -> Any:
    answer = served.post(path, given)
    assert answer.status_code == 201, answer.text
    return answer.json()


ACTIONS = [
    {"id": "a", "features": [{"topic": "tech"}]},
    {"id": "b", "features": [{"topic": "art"}]},
]


def test_free_form_features_become_fields_with_names(served: Local) -> None:
    context = [
        {"user": {"device": {"os": "x"}, "_id": 7}},
        {"hour": 14, "dark": False, "v": [1, 2]},
    ]
    ranked(served, {"contextFeatures": context, "actions": ACTIONS})
    settings = served.get("/v1/loops/personalizer").json()["settings"]
    features = settings["features"]
    assert features["categories"] == {"user.device.os": "grow"}
    assert features["numbers"] == ["hour", "v[0]", "v[1]"]
    assert features["booleans"] == ["dark"]
    assert features["arms"]["categories"] == {"topic": "grow"}
    assert ["hour", "arm.topic"] in features["cross"]
    assert settings["reward"]["aggregate"] == "first"


def test_fields_that_come_later_are_left_out_and_counted(served: Local) -> None:
    ranked(served, {"contextFeatures": [{"hour": 14}], "actions": ACTIONS})
    later = [{"id": "c", "features": [{"topic": "art", "length": 3}]}, *ACTIONS]
    ranked(served, {"contextFeatures": [{"hour": 9, "day": "Mon"}], "actions": later})
    for _ in range(3):  # sent again, it counts once; and not if it is refused
        ranked(served, {"contextFeatures": [{"day": "Tue"}], "actions": later, "eventId": "e-1"})
    assert served.post(RANK, {"actions": later, "eventId": "e-1"}).status_code == 400
    counted = served.get("/v1/loops/personalizer").json()["ignored_fields"]
    assert counted == {"day": 2, "arm.length": 2}


def test_without_features_of_actions_each_is_known_by_its_id(served: Local) -> None:
    bare = [{"id": "a", "features": []}, {"id": "b"}]
    ranked(served, {"contextFeatures": [{"hour": 14}], "actions": bare})
    shown = served.get("/v1/loops/personalizer").json()
    assert shown["arms"] == ["a", "b"]
    ranked(served, {"contextFeatures": [{"hour": 14}], "actions": ACTIONS})


def test_too_many_pairs_of_fields_are_not_crossed(served: Local) -> None:
    wide = [{"id": "a", "features": [{str(k): k for k in range(10)}]}]
    given = {"contextFeatures": [{f"c{k}": k for k in range(10)}], "actions": wide}
    ranked(served, given)
    assert served.get("/v1/loops/personalizer").json()["arms"] == ["a"]


def test_any_loop_has_the_routes(served: Local) -> None:
    given = {"contextFeatures": [{"hour": 14}], "actions": ACTIONS, "eventId": "e"}
    ranked(served, given, "/loops/home" + RANK)
    assert served.get("/v1/loops").json() == {"loops": ["home"]}
    assert served.post("/loops/home" + EVENTS + "/e/reward", {"value": 1}).status_code == 204
    assert served.post("/loops/home" + EVENTS + "/e/activate").status_code == 204


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"actions": []}, "got none"),
        ({"actions": [{"id": "a"}]}, "must have a feature"),
        ({"contextFeatures": [{"x": ["a", "b"]}], "actions": ACTIONS}, "array of numbers"),
        ({"contextFeatures": [1], "actions": ACTIONS}, "object"),
        ({"contextFeatures": [{"x": 1}]}, "actions"),
        ("nothing", "must be JSON"),
    ],
)
def test_errors_have_the_form_of_personalizer(served: Local, given: Any, says: str) -> None:
    answer = served.post(RANK, given)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["code"] == "BadRequest"
    assert says in error["message"]


def test_an_unknown_event_is_not_found(served: Local) -> None:
    ranked(served, {"contextFeatures": [{"hour": 14}], "actions": ACTIONS})
    answer = served.post(EVENTS + "/nope/reward", {"value": 1.0})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "ResourceNotFound")


def test_the_loop_learns_what_is_rewarded(served: Local) -> None:
    """With rewards for one topic, its actions come to be chosen, also new ones."""
    served.put(
        "/v1/loops/personalizer",
        {
            "policy": {"name": "ThompsonSampling", "sharing": "shared"},
            "features": {
                "numbers": ["hour"],
                "arms": {"categories": {"topic": ["tech", "art"]}},
            },
            "ignore_unknown_fields": True,
        },
    )
    for k in range(60):
        given = {"contextFeatures": [{"hour": k % 24}], "actions": ACTIONS, "eventId": f"e{k}"}
        made = ranked(served, given)
        value = 1.0 if made["rewardActionId"] == "a" else 0.0
        served.post(f"{EVENTS}/e{k}/reward", {"value": value})
    new = [
        {"id": "y", "features": [{"topic": "art"}]},
        {"id": "x", "features": [{"topic": "tech"}]},
    ]
    answer = ranked(served, {"contextFeatures": [{"hour": 3}], "actions": new})
    chances = {one["id"]: one["probability"] for one in answer["ranking"]}
    assert chances["x"] > 0.7


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ('[{"hour": 1, "hour": 2}]', "'hour' twice"),
        ('[{"user": {"age": 1, "age": 2}}]', "'age' twice"),
        ('[{"hour": 1}, {"hour": 2}]', "hour must come once"),
        ('[{"user": {"age": 1}}, {"user.age": 2}]', "user.age must come once"),
    ],
)
def test_a_field_that_comes_twice_is_refused(served: Local, context: str, says: str) -> None:
    """Of two values one would be lost without a word."""
    body = f'{{"contextFeatures": {context}, "actions": [{{"id": "a"}}, {{"id": "b"}}]}}'
    answer = served.post(RANK, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "BadRequest")
    assert says in answer.json()["error"]["message"]
    assert served.get("/v1/loops").json() == {"loops": []}
    long = body.replace(context, '[{"hour": 1%s}]' % ("0" * 5_000))
    assert served.post(RANK, long).status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/personalizer/v1.0/configuration/service", 404),
        ("POST", "/personalizer/v1.1-preview.3/multislot/rank", 404),
        ("POST", "/loops/home/personalizer/v1.0/nope", 404),
        ("GET", RANK, 405),
    ],
)
def test_errors_of_unknown_routes_have_its_form_too(
    served: Local, method: str, path: str, status: int
) -> None:
    answer = served(method, path)
    assert (answer.status_code, set(answer.json())) == (status, {"error"})
    assert set(answer.json()["error"]) == {"code", "message"}
    assert answer.headers["content-type"] == "application/json"
    other = served.get("/v1/nope")
    assert (other.status_code, other.json()["status"]) == (404, 404)
