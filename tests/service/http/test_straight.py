"""Requests of the short way are answered as by uvicorn's, and all that is unusual goes that way."""

import asyncio
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keyhole.service import Limits
from keyhole.service.http.heads import Head, Heads
from keyhole.service.http.protocol import GuardedProtocol
from keyhole.service.keys import KeyFile
from tests.service.http.wires import Server, answers, request


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.close()


def test_a_whole_request_goes_the_short_way(server: Server) -> None:
    connection, found = server.connect(), []
    wire: Any = connection.transport
    # The server answers when the decision is in the database, and not before.
    wire.before = lambda: found.append(server.app.service.store.event(1, "e1"))

    async def work() -> None:
        connection.data_received(request("e1"))
        async with asyncio.timeout(5.0):
            while not wire.written:
                await asyncio.sleep(0.001)

    server.runner.run(work())
    assert server.served == 1
    assert [one is not None for one in found] == [True]
    [answer] = answers(wire)
    assert answer["event_id"] == "e1"
    assert server.state.total_requests == 1


@pytest.mark.parametrize(
    ("given", "headers", "path"),
    [
        ({}, (), "/v1/loops/home/decide"),
        ({"context": [1.0]}, (), "/v1/loops/home/decide"),
        ({"context": "x"}, (), "/v1/loops/home/decide"),
        ({}, (), "/v1/loops/none/decide"),
        ({"value": 1.0}, (), "/v1/loops/home/events/nobody/reward"),
        ({}, (), "/personalizer/v1.0/events/nobody/activate"),
        ({}, ("Sec-Fetch-Site: cross-site",), "/v1/loops/home/decide"),
    ],
)
def test_both_ways_answer_alike(
    tmp_path: Path, given: dict[str, Any], headers: tuple[str, ...], path: str
) -> None:
    """The same bytes: head, body, and the number of rows afterwards."""
    got: list[tuple[bytes, int]] = []
    whole = request("e1", "X-Request-Id: mine", *headers, path=path, **given)
    for k, pieces in enumerate(([whole], [whole[:-3], whole[-3:]])):
        server = Server(tmp_path / str(k))
        server.app.service.loop("home").bandit._draw_key = bytes(32)
        got.append((server.run(*pieces).written, server.app.service.loop("home").version))
        assert server.served == (k == 0)
        server.close()
    assert got[0] == got[1]


def test_a_head_that_came_before_is_not_parsed_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = []
    complete = GuardedProtocol.on_headers_complete

    def counted(connection: GuardedProtocol) -> None:
        parsed.append(connection.url)
        complete(connection)

    monkeypatch.setattr(GuardedProtocol, "on_headers_complete", counted)
    for k in range(3):
        assert answers(server.run(request(f"e{k}")))[0]["event_id"] == f"e{k}"
    assert server.served == 3
    assert len(parsed) == 1
    server.run(request("e10"))  # with a body of another length
    server.run(request("e3", "X-Request-Id: mine"))
    assert len(parsed) == 3
    assert server.app.service.loop("home").version == 7


@pytest.mark.parametrize("seed", range(12))
def test_any_pieces_are_answered_alike_whether_heads_are_known_or_not(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes to a server that keeps heads, and to one that parses every head."""
    rng = random.Random(seed)
    sent = [request("e0")]
    for k in range(11):
        name = f"e{rng.randrange(6)}"
        sent.append(
            rng.choice(
                [
                    request(name),
                    request(name),
                    request(name, context=[2.0, 0.5]),
                    request(name, "X-Request-Id: mine"),
                    request(name, context="\r\n\r\n"),
                    request("", path=f"/v1/loops/home/events/{name}/reward", value=1.0 * k),
                    request(name, "Origin: http://localhost"),
                    request(name, "Connection: Upgrade", "Upgrade: h2c"),
                    b"\r\n" + request(name),
                    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
                ]
            )
        )
    whole, cuts = b"".join(sent), [0]
    for one in sent:  # mostly a request in a piece, and sometimes any cut
        cuts.append(cuts[-1] + len(one))
    moved = [k if rng.random() < 0.8 else rng.randrange(cuts[1], len(whole)) for k in cuts]
    cuts = sorted([cuts[1], *moved])
    pieces = [whole[a:b] for a, b in itertools.pairwise([0, *cuts, len(whole)]) if a < b]
    got = []
    for keeps in (True, False):
        monkeypatch.setattr("keyhole.service.http.logs._numbers", itertools.count())
        server = Server(tmp_path / str(keeps))
        server.app.service.loop("home").bandit._draw_key = bytes(32)
        heads = server.app.heads
        if not keeps:
            heads.keep = lambda *_: None  # type: ignore[method-assign]
        wire = server.run(*pieces, until=lambda wire: wire.written.count(b"HTTP/1.1 ") >= 12)
        got.append(wire.written)
        # A request that came whole was sent first, so that its head was known to the others.
        assert bool(heads) == keeps
        server.close()
    assert got[0] == got[1]


@pytest.mark.parametrize(
    "data",
    [
        b"POST /a HTTP/1.1\nContent-Length: 8\n\n\r\n\r\nabcd",  # an empty line of another kind
        b"\r\n\r\nPOST /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcdPOST",
        b"POST /a HTTP/1.1\r\nX: " + b"x" * 2_000 + b"\r\nContent-Length: 4\r\n\r\nabcd",
    ],
)
def test_a_head_whose_end_is_not_certain_is_not_kept(server: Server, data: bytes) -> None:
    found = server.app.straight_route("POST", b"/v1/loops/home/decide")
    assert found is not None
    route, params = found
    head = Head.of(route, params, "POST", b"/a", [])
    heads = Heads()
    heads.keep(data, head, 4)
    assert not heads
    heads.keep(b"POST /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd", head, 4)
    assert [one.length for one in heads.values()] == [4]


def test_heads_of_events_are_not_kept_and_others_are_bounded(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.run(request("", path="/v1/loops/home/events/e1/reward", value=1.0))
    assert not server.app.heads
    monkeypatch.setattr("keyhole.service.http.heads.MAX_HEADS", 3)
    for k in range(10):
        server.run(request("e1", f"X-Request-Id: {k}"))
        assert 1 <= len(server.app.heads) <= 3


def test_a_known_head_needs_a_key_that_still_allows_it(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert b" 200 OK" in server.run(request("e1")).written
    keys = KeyFile(tmp_path)
    keys.add("web", roles=["decide"])
    server.app.access.keys.refresh()
    assert b" 401 " in server.run(request("e2")).written
    server.close()


@pytest.mark.parametrize(
    ("path", "given", "status"),
    [
        ("/v1/loops/home/decide", {}, 200),  # again
        ("/v1/loops/home/events/e1/reward", {"value": 1.0}, 200),
        ("/v1/loops/home/events/e1/activate", {}, 200),
        ("/loops/home/personalizer/v1.0/events/e1/reward", {"value": 1.0}, 204),
        ("/loops/home/personalizer/v1.0/events/e1/activate", {}, 204),
    ],
)
def test_both_ways_answer_alike_to_what_follows(
    tmp_path: Path, path: str, given: dict[str, Any], status: int
) -> None:
    got: list[list[bytes]] = []
    body = json.dumps(given).encode()
    whole = request("e1") if path.endswith("decide") else b"".join(
        [
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\n".encode(),
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body),
        ]
    )  # fmt: skip
    for k, pieces in enumerate(([whole], [whole[:-1], whole[-1:]])):
        server = Server(tmp_path / str(k))
        server.app.service.loop("home").bandit._draw_key = bytes(32)
        server.run(request("e1"))
        got.append(sorted(server.run(*pieces).written.split(b"\r\n")))
        assert server.served == 2 - k
        server.close()
    assert got[0] == got[1]
    assert b"HTTP/1.1 %d " % status in b"".join(got[0])


@pytest.mark.parametrize(
    "unusual",
    [
        request("e1", "Connection: close"),
        request("e1", "Expect: 100-continue"),
        request("e1", "Origin: http://localhost"),
        request("e1").replace(b"HTTP/1.1", b"HTTP/1.0"),
        request("e1", path="/v1/loops/home/decide?a=1"),
        request("e1", path="http://localhost/v1/loops/home/decide"),
        request("e1", path="/v1/loops/home/decide:batch"),
        b"GET /v1/loops HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/loops/home/decide HTTP/1.1\r\nHost: localhost\r\n"
        b'Transfer-Encoding: chunked\r\n\r\n24\r\n{"event_id":"e1","context":[1.0,2]} '
        b"\r\n0\r\n\r\n",
    ],
)
def test_what_is_unusual_goes_the_usual_way(server: Server, unusual: bytes) -> None:
    wire = server.run(unusual, until=lambda wire: b"\r\n\r\n{" in wire.written)
    assert server.served == 0
    assert b" 200 OK" in wire.written


@pytest.mark.parametrize("mark", ["?", "#"])
def test_the_query_of_a_path_is_no_part_of_an_id(server: Server, mark: str) -> None:
    server.run(request("e1"))
    path = f"/v1/loops/home/events/e1{mark}b/reward"
    wire = server.run(request("", path=path, value=1.0))
    assert server.served == 1
    assert b" 405 " in wire.written


@pytest.mark.parametrize("size", [1, 7, 60])
def test_a_request_in_pieces_is_answered_once(server: Server, size: int) -> None:
    whole = request("e1")
    pieces = [whole[k : k + size] for k in range(0, len(whole), size)]
    wire = server.run(*pieces, until=lambda wire: b"}" in wire.written)
    [answer] = answers(wire)
    assert answer["event_id"] == "e1"
    assert server.app.service.loop("home").version == 3


def test_requests_in_one_packet_are_answered_in_order(server: Server) -> None:
    """Also if some could be answered before the disk has confirmed those before them."""
    sent = [request(f"e{k}", context=[1.0, 0.5] if k % 3 else "x") for k in range(20)]
    wire = server.run(b"".join(sent))
    found = [one.get("event_id") for one in answers(wire)]
    assert found == [f"e{k}" if k % 3 else None for k in range(20)]


def test_requests_of_many_turns_share_a_connection(server: Server) -> None:
    connection = server.connect()
    wire: Any = connection.transport

    async def work() -> None:
        for k in range(5):
            connection.data_received(request(f"e{k}"))
            while wire.written.count(b"HTTP/1.1 200") <= k:
                await asyncio.sleep(0)

    server.runner.run(work())
    assert server.served == 5
    assert [one["event_id"] for one in answers(wire)] == [f"e{k}" for k in range(5)]
    assert not wire.is_closed


def test_a_request_that_was_answered_early_does_not_keep_its_connection(server: Server) -> None:
    """Its body never comes."""
    connection = server.connect()
    wire: Any = connection.transport

    async def work() -> None:
        head = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
        connection.data_received(head + b"ab")
        async with asyncio.timeout(10.0):
            while not wire.is_closed:
                await asyncio.sleep(0.05)

    server.runner.run(work())
    assert b" 404 " in wire.written


def test_a_connection_is_closed_when_it_is_idle_and_not_before(server: Server) -> None:
    connection = server.connect()
    wire: Any = connection.transport

    async def work() -> None:
        for k in range(3):
            connection.data_received(request(f"e{k}"))
            await asyncio.sleep(0.6)
            assert not wire.is_closed
        await asyncio.sleep(1.2)

    server.runner.run(work())
    assert wire.is_closed
    assert len(answers(wire)) == 3


def test_a_server_that_stops_answers_what_it_has_accepted_and_closes(server: Server) -> None:
    connection = server.connect()
    wire: Any = connection.transport

    async def work() -> None:
        connection.data_received(request("e1"))
        assert not wire.written, "the end of the turn commits"
        connection.shutdown()
        assert not wire.is_closed
        async with asyncio.timeout(5.0):
            while not wire.is_closed:
                await asyncio.sleep(0.001)

    server.runner.run(work())
    assert wire.is_closed
    assert b"connection: close\r\n" in wire.written
    assert answers(wire)[0]["event_id"] == "e1"


def test_a_refusal_waits_for_the_rows_it_follows_from(server: Server) -> None:
    """P1: else the client would make another id of an event that a crash has undone."""
    first, second = server.connect(), server.connect()
    wire: Any = second.transport

    async def work() -> None:
        first.data_received(request("e1"))
        second.data_received(request("e1", context=[2.0, 0.5]))
        assert not wire.written
        async with asyncio.timeout(5.0):
            while not wire.written:
                await asyncio.sleep(0.001)

    server.runner.run(work())
    assert b" 409 " in wire.written


def test_the_path_is_logged_as_the_usual_way_logs_it(server: Server) -> None:
    found = server.app.straight_route("POST", b"/v1/loops/home/events/a%2Fb/reward")
    assert found is not None
    head = Head.of(*found, method="POST", url=b"/v1/loops/home/events/a%2Fb/reward", headers=[])
    assert head.scope["path"] == "/v1/loops/home/events/a/b/reward"
    assert head.scope["raw_path"] == b"/v1/loops/home/events/a%2Fb/reward"


def test_routes_are_cached_after_many_names_were_tried(server: Server) -> None:
    for k in range(1_500):
        assert server.app.straight_route("POST", b"/v1/loops/x%d/decide" % k) is not None
    kept = server.app.router._kept
    assert ("POST", b"/v1/loops/x1499/decide") in kept
    assert len(kept) <= 1_000


def test_a_client_that_leaves_is_not_written_to(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    connection = server.connect()
    wire: Any = connection.transport

    async def work() -> None:
        connection.data_received(request("e1"))
        connection.connection_lost(None)
        service = server.app.service
        async with asyncio.timeout(5.0):
            while service.writer.committed < service.writer.submitted:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0)

    server.runner.run(work())
    assert not wire.written
    assert not caplog.records
    assert server.app.service.store.event(1, "e1") is not None


def test_a_body_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    server = Server(tmp_path, limits=Limits(body=200))
    wire = server.run(request("e1", baseline="x" * 200))
    assert b"413" in wire.written.split(b"\r\n")[0]
    assert wire.is_closed
    server.close()


def test_too_many_connections_are_refused(server: Server) -> None:
    others = [server.connect() for _ in range(3)]
    server.run(request("e1"), until=lambda wire: b"503" in wire.written)
    assert server.served == 0
    for one in others:
        one.connection_lost(None)
    assert b"200 OK" in server.run(request("e1")).written


def test_a_client_that_takes_no_answers_is_read_no_further(server: Server) -> None:
    """Short answers would pile up in memory: the usual way waits until the buffers are empty."""
    connection = server.connect()
    wire: Any = connection.transport

    async def work() -> None:
        connection.pause_writing()
        connection.data_received(request("e1"))
        await asyncio.sleep(0.05)
        assert not wire.written
        connection.resume_writing()
        async with asyncio.timeout(5.0):
            while not wire.written:
                await asyncio.sleep(0.001)

    server.runner.run(work())
    assert server.served == 0
    assert answers(wire)[0]["event_id"] == "e1"


def test_a_failure_of_the_disk_is_an_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(server.app.service.store, "commit", full)
    wire = server.run(request("e1"))
    assert server.served == 1
    assert b" 503 " in wire.written
    assert "no space" in answers(wire)[0]["detail"]
    wire = server.run(request("e1"))
    assert b" 200 OK" in wire.written
    assert b"idempotent-replay" not in wire.written


def test_an_error_of_the_service_is_an_answer_and_no_end_of_the_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(server.app.service, "decide", broken)
    wire = server.run(request("e1"))
    assert b" 500 " in wire.written
    assert b"a bug" not in wire.written
