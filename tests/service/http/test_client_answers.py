"""Answers that are not the service's, or not of the request; time-outs; proxies."""

import asyncio
import gzip
import json
import random
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import httpx
import pytest

from keyhole.errors import InvalidValue
from keyhole.service import AsyncClient, Client, ServiceError
from keyhole.service.client.awaiting import Bound
from keyhole.service.client.pool import Pool

CONTEXT = [1.0, 2.0]
Handler = Callable[[httpx.Request], httpx.Response]


def answered(handler: Handler, **given: Any) -> Client:
    """Return a client whose requests a function answers."""
    client = Client(**given)
    transport = httpx.MockTransport(handler)
    client._pool = Pool(lambda: httpx.Client(**client._options, transport=transport))
    return client


def answered_asynchronously(handler: Handler, **given: Any) -> AsyncClient:
    client = AsyncClient(**given)
    http = httpx.AsyncClient(**client._options, transport=httpx.MockTransport(handler))
    client._pool = Pool(lambda: Bound(http, asyncio.get_running_loop()))
    return client


def error_of(handler: Handler, **given: Any) -> ServiceError:
    """Return the exception of both clients."""

    async def work() -> ServiceError:
        async with answered_asynchronously(handler, **given) as client:
            with pytest.raises(ServiceError) as error:
                await client.loop("home")
            return error.value

    with answered(handler, **given) as client, pytest.raises(ServiceError) as error:
        client.loop("home")
    second = asyncio.run(work())
    assert (second.status, second.request_id) == (error.value.status, error.value.request_id)
    return error.value


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.decide("home", CONTEXT, event_id="mine"),
        lambda client: client.decide("home", CONTEXT),
        lambda client: client.event("home", "mine"),
        lambda client: client.activate("home", "mine"),
        lambda client: client.forget("home", "mine"),
        lambda client: client.loop("home"),
        lambda client: client.create("home", {"arms": ["A"]}),
    ],
)
def test_an_answer_of_another_request_is_refused(ask: Callable[[Client], object]) -> None:
    decision = {"event_id": "other", "action": "A", "probability": 1.0, "probabilities": {"A": 1.0}}
    decision |= {"score": 0.0, "version": 3, "mode": "online"}
    view: dict[str, Any] = {
        "event_id": "other",
        "state": "open",
        "decision": decision,
        "rewards": {},
    }
    view |= {"uncounted": {}, "total": None, "learned": None, "due": None, "seq": 3}
    done = {"event_id": "other", "status": "active", "version": 3}
    loop = {"name": "other", "settings": {"arms": ["A"], "dim": 2}, "version": 2, "arms": ["A"]}
    loop |= {"learned": {"A": 0}, "waiting": {"A": 0}, "ignored_fields": {}}

    def handler(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/decide"):
            return httpx.Response(200, json=decision)
        if path.endswith("/events/mine"):
            return httpx.Response(200, json=view if request.method == "GET" else done)
        return httpx.Response(200, json=done if path.endswith("/activate") else loop)

    with answered(handler) as client, pytest.raises(ServiceError, match="another request") as error:
        ask(client)
    assert "got 'other'" in str(error.value)


def test_a_page_of_a_proxy_is_no_answer() -> None:
    page = "<html>Please log in</html>"
    error = error_of(lambda _request: httpx.Response(200, html=page))
    assert error.status == 200
    assert "must be a LoopView in JSON, got text/html" in str(error)
    assert page in str(error)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 100_000, b'{"name": 3}', b"null"])
def test_content_that_cannot_be_read_is_no_answer(content: bytes) -> None:
    error = error_of(lambda _request: httpx.Response(200, content=content))
    assert error.status == 200
    assert "must be a LoopView in JSON, got no type" in str(error)
    # base64 is a codec, but not one of texts.
    typed = {"content-type": "text/plain; charset=base64"}
    error = error_of(lambda _request: httpx.Response(418, content=content, headers=typed))
    assert str(error).startswith("418: ")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_an_error_with_the_new_address(status: int) -> None:
    to = {"location": "https://moved.example/v1/loops/home"}
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(status, headers=to, html="moved")

    error = error_of(handler, key="secret")
    assert error.status == status
    assert "moved to 'https://moved.example/v1/loops/home'" in str(error)
    # The key is sent to no other host.
    assert {one.url.host for one in requests} == {"127.0.0.1"}


def test_a_compression_that_cannot_be_read_is_no_answer() -> None:
    count = 0

    def handler(_request: httpx.Request) -> httpx.Response:
        nonlocal count
        count += 1
        bad = httpx.ByteStream(gzip.compress(json.dumps({"a": 1}).encode())[3:])
        return httpx.Response(200, stream=bad, headers={"content-encoding": "gzip"})

    error = error_of(handler, patience=0.1)
    assert error.status is None
    assert "DecodingError" in str(error)
    assert count >= 4


def test_a_request_that_timed_out_is_sent_again_unless_patience_is_0() -> None:
    count = 0

    def handler(_request: httpx.Request) -> httpx.Response:
        nonlocal count
        count += 1
        time.sleep(0.06)  # longer than the patience below, as 10 seconds are with the defaults
        raise httpx.ReadTimeout("late")

    for patience, least in ((0.05, 2), (0.0, 1)):
        count = 0
        error = error_of(handler, patience=patience)
        assert f"no answer, sent {least} times" in str(error)
        assert count == 2 * least


def test_pauses_leave_the_random_numbers_of_the_program_alone() -> None:
    before = random.getstate()
    with Client() as client:
        assert client.attempts().pause() is not None
    assert random.getstate() == before


class Recorder(BaseHTTPRequestHandler):
    """A proxy that notes what it was asked for, and has no answer."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_error(404)

    def log_message(self, *_given: object) -> None:
        """Write nothing."""


def test_a_service_of_this_machine_is_not_asked_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with HTTPServer(("127.0.0.1", 0), Recorder) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.server_port}")
        try:
            for host in ("127.0.0.1", "localhost", "[::1]"):
                unreached = pytest.raises(ServiceError, match="ConnectError")
                with Client(f"http://{host}:9", patience=0.0) as client, unreached:
                    client.loop("home")
            assert Recorder.asked == []
            refused = pytest.raises(ServiceError, match=r"^404: ")
            with Client("http://keyhole.example", patience=0.0) as client, refused:
                client.loop("home")
            assert Recorder.asked == ["http://keyhole.example/v1/loops/home"]
        finally:
            proxy.shutdown()
            thread.join()


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"key": "secret\n"}, "key must have letters, digits and signs of ASCII"),
        ({"key": "sécret"}, "key must have letters, digits and signs of ASCII"),
        ({"timeout": -1.0}, "timeout must be above 0"),
        ({"timeout": float("inf")}, "timeout must be above 0 and at most 86400"),
        ({"timeout": None}, "timeout must be a number"),
        ({"patience": float("nan")}, "patience must be a number"),
        ({"patience": -1.0}, "patience must be at least 0"),
        ({"url": "http://localhost:8000?key=1"}, "url must be an address"),
    ],
)
def test_arguments_are_checked_before_the_first_request(
    kind: Any, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message) as error:
        kind(**given)
    assert "cret" not in str(error.value)


@pytest.mark.parametrize("name", ["..", "", "a/b", "a" * 70_000, "\ud800"])
def test_a_name_that_no_loop_can_have_is_not_sent(name: str) -> None:
    with Client() as client, pytest.raises(InvalidValue, match="the name of a loop must be"):
        client.loop(name)
