"""No request makes the service fail, and every answer is as the OpenAPI document says."""

from pathlib import Path

import httpx

from tests.service.http.fuzzing import fuzz
from tests.service.http.serving import NAMED, PLAIN, threaded


def prepare(url: str) -> None:
    for name, settings in (("home", PLAIN), ("shop", NAMED)):
        httpx.put(f"{url}/v1/loops/{name}", json=settings)
    for event in ("o-1", "o-2"):
        given = {"event_id": event, "context": [1, 2]}
        httpx.post(f"{url}/v1/loops/home/decide", json=given)


def test_no_request_makes_the_service_fail(tmp_path: Path) -> None:
    with threaded(tmp_path / "data") as url:
        prepare(url)
        found = fuzz(url, examples=6)
        ready = httpx.get(f"{url}/readyz")
        document = httpx.get(f"{url}/openapi.json").json()
    assert ready.status_code == 200
    labels = [f"{one.upper()} {path}" for path, many in document["paths"].items() for one in many]
    assert {label for label, _ in found} == set(labels) - {"GET /openapi.json"}
    assert {status for _, status in found} >= {200, 404, 422}
    assert not [status for _, status in found if status >= 500]
