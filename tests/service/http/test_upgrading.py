"""`Upgrade` is ignored: the body of such a request is its body, and never another request."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.http.wires import Server, Wire, answers, request

H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
KINDS = [
    H2C,
    ("Connection: Upgrade", "Upgrade: websocket"),
    ("CONNECTION: keep-alive, UPGRADE", "UPGRADE: TLS/1.0, h2c"),
    ("Upgrade: a", "Upgrade: b", "Connection: upgrade"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.close()


def with_body(body: bytes, *headers: str, first: str = "POST /v1/loops/home/decide") -> bytes:
    lines = [f"{first} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def has_ended(wire: Wire) -> bool:
    return wire.is_closed


@pytest.mark.parametrize("headers", KINDS)
def test_a_request_is_served_as_without_the_header(
    server: Server, headers: tuple[str, ...]
) -> None:
    """In any two pieces, and by the short way if it comes in one."""
    length = len(request("e100", *headers))
    for cut in range(0, length, 1 if headers == H2C else 7):
        whole = request(f"e{cut:03}", *headers)
        wire = server.run(*[piece for piece in (whole[:cut], whole[cut:]) if piece])
        assert b" 200 OK" in wire.written, cut
        assert [one["event_id"] for one in answers(wire)] == [f"e{cut:03}"]
    assert server.served >= 1


@pytest.mark.parametrize("headers", KINDS)
@pytest.mark.parametrize("cut", [None, -200, -1, 0, 1, 50])
def test_a_body_is_never_taken_as_a_request(
    server: Server, headers: tuple[str, ...], cut: int | None
) -> None:
    outer = with_body(request("smuggled"), *headers)
    end = outer.index(b"\r\n\r\n") + 4
    pieces = [outer] if cut is None else [outer[: end + cut], outer[end + cut :]]
    before = server.app.service.loop("home").version
    wire = server.run(*pieces, until=lambda wire: b"}" in wire.written)
    [answer] = answers(wire)
    assert answer["detail"].startswith("the body must be JSON")
    assert server.app.service.loop("home").version == before
    assert server.app.service.loop("home").events.get("smuggled") is None


def test_a_body_in_chunks_is_read(server: Server) -> None:
    head = "\r\n".join(["POST /v1/loops/home/decide HTTP/1.1", "Host: localhost", *H2C])
    whole = head.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    whole += b'24\r\n{"event_id":"e1","context":[1.0,2]} \r\n0\r\n\r\n'
    for cut in (0, 40, len(head), len(whole) - 20, len(whole) - 1):
        pieces = [piece for piece in (whole[:cut], whole[cut:]) if piece]
        wire = server.run(*pieces, until=lambda wire: b"}" in wire.written)
        assert [one["event_id"] for one in answers(wire)] == ["e1"]


@pytest.mark.parametrize("seed", range(10))
def test_any_pieces_of_many_requests_are_answered_as_without_the_header(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    kinds = [(), *KINDS]
    chosen = [(f"e{rng.randrange(8)}", rng.choice(kinds)) for _ in range(12)]
    got = []
    for is_plain in (True, False):
        monkeypatch.setattr("keyhole.service.http.logs._numbers", itertools.count())
        server = Server(tmp_path / str(is_plain))
        server.app.service.loop("home").bandit._draw_key = bytes(32)
        whole = b"".join(request(name, *(() if is_plain else kind)) for name, kind in chosen)
        cuts = sorted(rng.choices(range(1, len(whole)), k=rng.randrange(6)))
        pieces = [whole[a:b] for a, b in itertools.pairwise([0, *cuts, len(whole)]) if a < b]
        wire = server.run(*pieces, until=lambda wire: wire.written.count(b"HTTP/1.1 ") >= 12)
        got.append(wire.written)
        server.close()
    assert got[0] == got[1]


@pytest.mark.parametrize("target", ["/v1/loops/home/decide", "localhost:80", "*"])
@pytest.mark.parametrize("cut", [0, 10, -200, -1])
def test_nothing_is_read_after_a_request_to_connect(server: Server, target: str, cut: int) -> None:
    """It has no body: what follows would be of another protocol."""
    outer = with_body(request("smuggled"), first=f"CONNECT {target}")
    end = outer.index(b"\r\n\r\n") + 4
    before = server.app.service.loop("home").version
    pieces = [outer] if cut == 0 else [outer[: end + cut], outer[end + cut :]]
    wire = server.run(*[piece for piece in pieces if piece], until=has_ended)
    assert wire.written.startswith(b"HTTP/1.1 400 ")
    assert wire.written.count(b"HTTP/1.1 ") == 1
    assert b"connection: close\r\n" in wire.written
    assert server.app.service.loop("home").version == before


def test_the_head_of_such_a_request_is_bounded(server: Server) -> None:
    wire = server.run(request("e1", *H2C, f"X-Long: {'x' * 70_000}"), until=has_ended)
    assert b" 431 " in wire.written
