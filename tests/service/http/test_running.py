"""A server in a process of its own: stopping, being killed, slow clients, two at once."""

import json
import signal
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from keyhole.errors import FileUnusable
from keyhole.service import Limits, Options, application, serve
from keyhole.service.http import protocol
from tests.service.history import check
from tests.service.http.serving import PLAIN, Process, threaded

HOME = "/v1/loops/home"


def decide_until_stopped(url: str, number: int, answered: dict[str, str]) -> None:
    """Decide as fast as possible, and keep every answer of status 200."""
    with httpx.Client(base_url=url) as client:
        for k in range(100_000):
            name = f"t{number}-{k}"
            try:
                given = {"event_id": name, "context": [1.0, float(number)]}
                answer = client.post(HOME + "/decide", json=given)
            except httpx.TransportError:
                return
            if answer.status_code == 200:
                answered[name] = answer.json()["action"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_answered_is_there_after_a_stop(tmp_path: Path, how: signal.Signals) -> None:
    answered: dict[str, str] = {}
    folder = tmp_path / "data"
    with Process(folder, "--log-requests") as served:
        httpx.put(served.url + HOME, json=PLAIN, headers={"X-Request-Id": "mine"})
        httpx.get(served.url + "/nope")
        sent(served.url, b"NOT HTTP\r\n\r\n")  # the server warns of it
        threads = [
            threading.Thread(target=decide_until_stopped, args=(served.url, number, answered))
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 30.0
        while len(answered) < 40 and time.monotonic() < end:
            time.sleep(0.02)
        code, errors = served.stop(how)
        for thread in threads:
            thread.join()
    assert code == (0 if how is signal.SIGTERM else -signal.SIGKILL)
    assert "Traceback" not in errors
    assert len(answered) >= 40
    check_lines(errors)
    with Process(folder) as again, httpx.Client(base_url=again.url) as client:
        for name, action in list(answered.items())[-50:]:
            shown = client.get(f"{HOME}/events/{name}").json()
            assert shown["decision"]["action"] == action
        shown = client.get(HOME).json()
        # Settings and start, and at most one more decision of each thread, without an answer.
        assert 0 <= shown["version"] - 2 - len(answered) <= (0 if how is signal.SIGTERM else 4)
        assert again.stop(signal.SIGINT)[0] == 0
    check(str(folder))


def check_lines(text: str) -> None:
    """Every line of the log is JSON, and tells of a request or of the service."""
    lines = [json.loads(line) for line in text.splitlines()]
    found = {line["path"]: line for line in lines if "path" in line}
    assert (found[HOME]["status"], found[HOME]["request_id"]) == (201, "mine")
    assert found["/nope"]["status"] == 404
    assert found[HOME + "/decide"]["milliseconds"] > 0.0
    assert "started" in [line.get("event") for line in lines]
    assert "uvicorn.error" in [line.get("logger") for line in lines]


def test_a_second_server_of_a_folder_or_port_is_refused(tmp_path: Path) -> None:
    with threaded(tmp_path / "one") as url:
        with pytest.raises(FileUnusable, match="in use by another process"):
            serve(tmp_path / "one", port=0)
        port = urlsplit(url).port
        assert port is not None
        with pytest.raises(FileUnusable, match=f"port {port} of 127.0.0.1 cannot be listened at"):
            serve(tmp_path / "two", port=port)
    application(tmp_path / "two").service.close()  # its folder was left


def sent(url: str, *parts: bytes, pause: float = 0.0, wait: float = 5.0) -> bytes:
    """Send bytes in parts, and return all that comes back until the server closes."""
    where = urlsplit(url)
    assert where.hostname is not None
    with socket.create_connection((where.hostname, where.port or 80), timeout=wait) as connection:
        got = b""
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            while data := connection.recv(65_536):
                got += data
        except (ConnectionError, TimeoutError):
            pass
        return got


def test_slow_and_endless_clients_are_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    with threaded(tmp_path, Options(limits=Limits(seconds=0.2))) as url:
        httpx.put(url + HOME, json=PLAIN)
        start = time.monotonic()
        assert sent(url, b"POST /v1/lo") == b""  # the head does not come
        slow = (
            b"POST /v1/loops/home/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
        )
        assert b"408 Request Timeout" in sent(url, slow, b"{")  # nor the body
        chunked = slow.replace(b"Content-Length: 9", b"Transfer-Encoding: chunked")
        many = b"40000\r\n" + b" " * 0x40000 + b"\r\n"
        assert b"413 " in sent(url, chunked, *[many] * 5)
        long = b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000
        assert b"431 Request Header Fields Too Large" in sent(url, long, b"x" * 40_000, pause=0.05)
        assert time.monotonic() - start < 4.0
        assert httpx.get(url + "/healthz").status_code == 200
        assert b"400 Bad Request" in sent(url, b"NOT HTTP\r\n\r\n")
        second = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1"  # a slow one after it
        assert sent(url, second).endswith(b'{"status":"ok"}')
        leaving = slow.replace(b"Content-Length: 9", b"Content-Length: 99")
        where = urlsplit(url)
        for part in (leaving, leaving + b"{"):
            with socket.create_connection((str(where.hostname), where.port or 80)) as connection:
                connection.sendall(part)  # and gone
        assert httpx.get(url + HOME).json()["version"] == 2


def test_a_client_that_takes_no_answer_is_cut_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with threaded(tmp_path, Options(limits=Limits(seconds=0.2))) as url:
        where = urlsplit(url)
        with socket.create_connection((str(where.hostname), where.port or 80)) as connection:
            asked = 1_000
            # Answers of 20 MB and more: none of the buffers on the way takes them.
            connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * asked)
            end = time.monotonic() + 10.0
            while "was not taken" not in caplog.text and time.monotonic() < end:
                time.sleep(0.02)
            assert "the answer was not taken within 0.2 seconds" in caplog.text
            connection.settimeout(5.0)
            got = 0
            try:
                while data := connection.recv(1 << 20):
                    got += data.count(b"HTTP/1.1 200")
            except ConnectionError:
                pass
            assert got < asked, "the connection was closed"
        assert httpx.get(url + "/healthz").status_code == 200
    assert [one.levelname for one in caplog.records if one.levelname == "ERROR"] == []
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n" % (b"x" * 70_000),
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (b"X: 12345678\r\n" * 6_000),
        b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"x" * 70_000),
    ],
)
def test_a_head_that_comes_at_once_is_bounded_too(tmp_path: Path, head: bytes) -> None:
    with threaded(tmp_path) as url:
        assert sent(url, head).startswith(b"HTTP/1.1 431 ")
        # A body that comes with its head is none of it.
        body = b'{"context": [1], "actions": [{"id": "A"}], "event_id": "%s"}' % (b"x" * 100_000)
        whole = (
            b"POST /v1/loops/home/decide HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        assert sent(url, whole).startswith(b"HTTP/1.1 422 ")


def half_closed(url: str, given: bytes = b"") -> bytes:
    """Send bytes, close this side of the connection, and return all that comes back."""
    where = urlsplit(url)
    with socket.create_connection((str(where.hostname), where.port or 80), timeout=5) as connection:
        connection.sendall(given)
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while data := connection.recv(65_536):
            got += data
        return got


def check_half_closed(url: str) -> None:
    httpx.put(url + HOME, json=PLAIN)
    head = b"POST /v1/loops/home/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    requests = []
    for k in range(3):
        body = b'{"event_id": "h-%d", "context": [1, 2]}' % k
        requests.append(head % len(body) + body)
    assert half_closed(url, requests[0]).count(b'"event_id":"h-0"') == 1
    # Several at once, and what is not whole after them.
    for rest in (b"", b"GET /heal", head % 100 + b"{"):
        got = half_closed(url, b"".join(requests) + rest)
        assert [got.count(b'"event_id":"h-%d"' % k) for k in range(3)] == [1, 1, 1], (rest, got)
    assert half_closed(url, head % 100 + b"{") == b""
    assert half_closed(url) == b""
    got = half_closed(url, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert got.endswith(b'{"status":"ok"}')
    assert httpx.get(url + HOME).json()["version"] == 5


def test_a_client_that_closes_its_side_is_answered(tmp_path: Path) -> None:
    """With the event loop of Python, and with uvloop."""
    with threaded(tmp_path / "one") as url:
        check_half_closed(url)
    with Process(tmp_path / "two") as served:
        check_half_closed(served.url)
        assert served.stop()[0] == 0


def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    with threaded(tmp_path) as url:
        httpx.put(url + HOME, json=PLAIN)
        one = b"GET /v1/loops HTTP/1.1\r\nHost: localhost\r\n\r\n"
        last = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        got = sent(url, one * 3 + last)
        assert got.count(b'{"loops":["home"]}') == 3
        assert got.endswith(b'{"status":"ok"}')
