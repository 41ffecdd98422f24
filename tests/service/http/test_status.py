"""Health, metrics, the OpenAPI document, wrong paths, and loops of a TOML file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from keyhole.errors import FileError, FileMissing
from keyhole.service import Conflict, LoopSettings, Options, application, loops_of, verify
from tests.service.http.serving import PLAIN, Local, local

HOME = "/v1/loops/home"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Local]:
    with local(tmp_path / "data") as served:
        served.put(HOME, PLAIN)
        yield served


def test_commits_are_confirmed_by_the_disk(home: Local) -> None:
    """P1 by default: 2 is FULL. In WAL mode NORMAL loses commits with the power."""
    assert home.app.service.store._writer.pragma("synchronous") == 2


def test_health(home: Local) -> None:
    assert home.get("/healthz").json() == {"status": "ok"}
    assert home.get("/readyz").json() == {"status": "ready"}
    assert home("HEAD", "/healthz").status_code == 200


def test_metrics_count_requests_and_rows(home: Local) -> None:
    for name in ("a", "a", "b"):
        home.post(HOME + "/decide", {"event_id": name, "context": [1, 2]})
    home.post(HOME + "/decide", {"event_id": "b", "context": [1, 3]})
    home.post(HOME + "/events/a/reward", {"value": 1})
    home.post(HOME + "/arms", {"add": ['a "quoted\\" arm']})
    home.get("/nope")
    text = home.get("/metrics").text
    route = 'method="POST",route="/v1/loops/{loop}/decide"'
    assert f'keyhole_requests_total{{{route},status="200"}} 3\n' in text
    assert f'keyhole_requests_total{{{route},status="409"}} 1\n' in text
    assert f'keyhole_request_seconds_bucket{{{route},le="+Inf"}} 4\n' in text
    assert f"keyhole_request_seconds_count{{{route}}} 4\n" in text
    assert 'keyhole_requests_total{method="",route="",status="404"} 1\n' in text
    assert 'keyhole_loop_rows{loop="home"} 6\n' in text
    assert r'arm="a \"quoted\\\" arm"} 0' in text
    assert "keyhole_units_waiting 0\n" in text


def test_metrics_are_of_the_form_that_prometheus_reads(home: Local) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    home.post(HOME + "/decide", {"context": [1, 2]})
    answer = home.get("/metrics")
    found = {one.name: one for one in text_string_to_metric_families(answer.text)}
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert found["keyhole_requests"].type == "counter"
    assert found["keyhole_request_seconds"].type == "histogram"
    [waiting] = found["keyhole_units_waiting"].samples
    assert waiting.value == 0.0


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/loops/", "/v1/loops/home/nope", "/v1//loops", "/v1/loops/home/decide/"],
)
def test_a_wrong_path_is_not_found(home: Local, path: str) -> None:
    answer = home.get(path)
    assert answer.status_code == 404
    assert "/openapi.json" in answer.json()["detail"]


def test_a_wrong_method_names_the_right_ones(home: Local) -> None:
    answer = home.get(HOME + "/decide")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert home("DELETE", HOME).headers["allow"] == "GET, HEAD, PUT"


def test_every_route_is_in_the_document_with_its_errors(home: Local) -> None:
    document = home.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    for route in home.app.router.routes:
        operation = document["paths"][route.path][route.method.lower()]
        assert operation["summary"].endswith(".")
        assert {"401", "404", "422", "503"} <= set(operation["responses"])
        names = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
        assert names == route.names
    decide = document["paths"]["/v1/loops/{loop}/decide"]["post"]
    schema = decide["requestBody"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/DecideRequest"}
    assert "event_id" in document["components"]["schemas"]["DecideRequest"]["properties"]
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names) >= 25


def test_a_websocket_is_closed(home: Local) -> None:
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    home.runner.run(home.app({"type": "websocket"}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


TOML = """
[home]
arms = ["A", "B"]
features.numbers = ["hour"]
features.categories.device = ["mobile", "desktop"]
reward = {default = 0.0, wait = "PT4H"}

[lists]
arms = ["x", "y"]
dim = 3
"""


def test_loops_of_a_file_are_made_at_the_start_and_changed_at_the_next(tmp_path: Path) -> None:
    file, folder = tmp_path / "loops.toml", tmp_path / "data"
    file.write_text(TOML)
    with local(folder, Options(loops=loops_of(file))) as served:
        assert served.get("/v1/loops").json() == {"loops": ["home", "lists"]}
        shown = served.get("/v1/loops/home").json()
        assert shown["settings"]["reward"]["wait"] == "PT4H"
    file.write_text(TOML.replace('"y"]', '"y", "z"]'))
    with local(folder, Options(loops=loops_of(file))) as served:
        assert served.get("/v1/loops/lists").json()["arms"] == ["x", "y", "z"]
        assert served.get("/v1/loops/home").json()["version"] == shown["version"]  # unchanged


def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "loops.toml"
    with pytest.raises(FileMissing, match="there is no file"):
        loops_of(file)
    for text, says in (
        ("[home", "is not TOML"),
        ("[home]\narms = ['A']", "needs features"),
        ("home = 1", "Expected `object`"),
        ("[home]\ndim = 2\nnope = 1", "nope"),
        ('[home]\ndim = 2\narms = ["a\\nb"]', "arms must be a text of 1 to 200 printable"),
    ):
        file.write_text(text)
        with pytest.raises(FileError, match=says):
            loops_of(file)


def test_settings_that_cannot_change_leave_the_folder(tmp_path: Path) -> None:
    home = {"home": LoopSettings.of(PLAIN)}
    application(tmp_path, Options(loops=home)).service.close()
    changed = {"home": LoopSettings.of({**PLAIN, "dim": 3})}
    with pytest.raises(Conflict, match="dim of loop 'home' cannot change"):
        application(tmp_path, Options(loops=changed))
    application(tmp_path, Options(loops=home)).service.close()


def test_arms_that_were_removed_stay_so_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "keyhole.service")
    file, folder = tmp_path / "loops.toml", tmp_path / "data"
    file.write_text(TOML)
    with local(folder, Options(loops=loops_of(file))) as served:
        gone = served.post("/v1/loops/lists/arms", {"remove": ["y"]}).json()
        assert gone["arms"] == gone["settings"]["arms"] == ["x"]
    file.write_text(TOML.replace("dim = 3", 'dim = 3\nmode = "off"'))
    with local(folder, Options(loops=loops_of(file))) as served:
        shown = served.get("/v1/loops/lists").json()
        assert (shown["arms"], shown["settings"]["mode"]) == (["x"], "off")
        assert '"loop":"lists","arms":["y"]' in caplog.text
        assert served.post("/v1/loops/lists/arms", {"add": ["y"]}).json()["arms"] == ["x", "y"]
    caplog.clear()
    with local(folder, Options(loops=loops_of(file))) as served:
        assert served.get("/v1/loops/lists").json()["arms"] == ["x", "y"]
    assert "removed" not in caplog.text
    verify(folder)
