"""P1 of every route: no answer is sent before the rows that it follows from are on the disk."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from keyhole import Bandit, ThompsonSampling
from keyhole.service import DecideRequest
from keyhole.service.http.personalizer import LOOP as PERSONALIZER
from keyhole.service.http.routing import Route
from tests.service.http.wires import Server, Wire

LOOP = "/v1/loops/{loop}"
EVENT = LOOP + "/events/{event}"
CONTEXT = {"context": [1.0, 0.5]}
FIRST = {"context": [1.0], "actions": [{"id": "A"}, {"id": "B"}]}
RANK = {"actions": [{"id": "A"}, {"id": "B"}], "contextFeatures": [{"hour": 1}]}
MODEL = Bandit(ThompsonSampling(), arms=["A"], dim=2).to_bytes()
# They tell how the process and the disk are, also while the disk confirms nothing.
OF_THE_PROCESS = {"GET /healthz", "GET /readyz", "GET /openapi.json", "GET /metrics"}


class Case(NamedTuple):
    """A request, and what it answers.

    `changes` says that it writes rows: it then waits for them also if nothing else does.
    """

    body: Any = b""
    status: int = 200
    changes: bool = False
    loop: str = "home"
    event: str = "e1"
    query: str = ""
    says: bytes = b""


PERSONAL = [
    (f"POST {before}/personalizer/v1.0{path}", case._replace(loop=loop))
    for before, loop in (("", PERSONALIZER), ("/loops/{loop}", "ranked"))
    for path, case in (
        ("/rank", Case({**RANK, "eventId": "e2"}, 201, changes=True)),
        ("/rank", Case({**RANK, "eventId": "e1", "excludedActions": ["A"]}, 400)),
        ("/events/{event}/reward", Case({"value": 1.0}, 204, changes=True)),
        ("/events/{event}/activate", Case(b"", 204, changes=True, event="deferred")),
    )
]
CASES: list[tuple[str, Case]] = [
    ("GET /v1/loops", Case()),
    (f"PUT {LOOP}", Case({"arms": ["A"], "dim": 2}, 201, changes=True, loop="new")),
    (f"PUT {LOOP}", Case({"arms": ["A", "B", "C", "D"], "dim": 2}, changes=True)),
    (f"PUT {LOOP}", Case({"arms": ["A", "B", "C"], "dim": 2})),
    (f"PUT {LOOP}", Case({"arms": ["A"], "dim": 3}, 409)),
    (f"GET {LOOP}", Case()),
    (f"POST {LOOP}/decide", Case(CONTEXT, changes=True)),
    (f"POST {LOOP}/decide", Case({**CONTEXT, "event_id": "e1"})),
    (f"POST {LOOP}/decide", Case({"context": [2.0, 2.0], "event_id": "e1"}, 409)),
    (f"POST {LOOP}/decide", Case({**CONTEXT, "actions": [{"id": "X"}]}, 422)),
    (f"POST {LOOP}/decide", Case(FIRST, changes=True, loop="new")),
    (f"POST {LOOP}/decide:batch", Case(CONTEXT, changes=True)),
    (f"POST {LOOP}/decide:batch", Case({"context": [2.0, 2.0], "event_id": "e1"}, says=b"409")),
    (f"POST {LOOP}/decide:batch", Case(FIRST, changes=True, loop="new")),
    (f"POST {LOOP}/rewards", Case({"event_id": "e1", "value": 1.0}, changes=True)),
    (f"POST {LOOP}/rewards", Case({"event_id": "forgotten", "value": 1.0}, says=b"410")),
    (f"POST {LOOP}/arms", Case({"add": ["D"]}, changes=True)),
    (f"POST {LOOP}/arms", Case({"remove": ["A"]}, changes=True)),
    (f"POST {LOOP}/arms", Case({"remove": ["X"]}, 422)),
    (f"POST {LOOP}/observe", Case({"contexts": [[1.0, 2.0]]}, changes=True)),
    (f"POST {LOOP}/observe", Case({"contexts": [[1.0, 2.0]] * 250}, changes=True)),
    (f"POST {EVENT}/reward", Case({"value": 1.0}, changes=True)),
    (f"POST {EVENT}/reward", Case({"value": 1.0}, 410, event="forgotten")),
    (f"POST {EVENT}/activate", Case(changes=True, event="deferred")),
    (f"POST {EVENT}/activate", Case()),
    (f"GET {EVENT}", Case(query="?explain=true")),
    (f"GET {EVENT}", Case(status=410, event="forgotten")),
    (f"DELETE {EVENT}", Case(changes=True)),
    (f"GET {LOOP}/effects", Case()),
    (f"GET {LOOP}/probabilities", Case(query="?context=[1,2]")),
    (f"POST {LOOP}/probabilities", Case(CONTEXT)),
    (f"GET {LOOP}/model", Case()),
    (f"PUT {LOOP}/model", Case(MODEL, 201, changes=True, loop="new")),
    (f"PUT {LOOP}/model", Case(MODEL, 409)),
    (f"GET {LOOP}/log", Case(says=b'"waits"')),
    *PERSONAL,
    ("POST /loops/{loop}/personalizer/v1.0/rank", Case(RANK, 201, changes=True, loop="new")),
]
NAMES = [f"{name} {k}" for k, (name, _) in enumerate(CASES)]


class Slow(Server):
    """A server whose disk confirms what is written when it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        service = self.app.service
        for name in (PERSONALIZER, "ranked"):
            features = {"numbers": ["hour"]}
            service.create(name, {"features": features, "arms": ["A", "B"]})
            self.decide(name, "e1", {"hour": 1})
            self.decide(name, "deferred", {"hour": 1}, defer=True)
        self.decide("home", "e1", [1.0, 0.5])
        self.decide("home", "deferred", [1.0, 0.5], defer=True)
        self.decide("home", "forgotten", [1.0, 0.5])
        service.loop("home").forget("forgotten")
        service.wait(service.writer.submitted)
        self.runner.run(asyncio.sleep(0.01))  # turns that were planned have ended
        self.turns: list[Callable[[], None]] = []  # what ends a turn, and writes
        service.gather(self.turns.append)

    def decide(self, loop: str, event: str, context: Any, **given: Any) -> None:
        request = DecideRequest(context=context, event_id=event, **given)
        self.app.service.decide(loop, request)

    def leave_waiting(self, loop: str) -> None:
        """Change a loop, if there is one, by what no client was told of yet."""
        if loop in self.app.service.names:
            context: Any = [1.0, 0.5] if loop == "home" else {"hour": 1}
            self.decide(loop, "waits", context)

    async def confirm(self) -> None:
        """Write all that was submitted."""
        writer = self.app.service.writer
        async with asyncio.timeout(5.0):
            while writer.committed < writer.submitted:
                planned, self.turns[:] = list(self.turns), []
                for end in planned:
                    end()
                await asyncio.sleep(0.001)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Slow]:
    made = Slow(tmp_path)
    yield made
    made.close()


def written(case: Case, name: str) -> bytes:
    """Return the bytes of a request."""
    method, _, path = name.partition(" ")
    target = path.replace("{loop}", case.loop).replace("{event}", case.event) + case.query
    body = case.body if isinstance(case.body, bytes) else json.dumps(case.body).encode()
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def settled() -> None:
    """Let a request go as far as it can."""
    for _ in range(50):
        await asyncio.sleep(0)
    await asyncio.sleep(0.005)


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(("name", "case"), CASES, ids=NAMES)
def test_no_answer_is_sent_before_its_rows_are_on_the_disk(
    slow: Slow, name: str, case: Case, waits: bool, is_whole: bool
) -> None:
    """Its own rows, and those of others that it follows from; by the short way and by a task."""
    if waits:
        slow.leave_waiting(case.loop)
    sent = written(case, name)
    connection = slow.connect()
    wire = connection.transport
    assert isinstance(wire, Wire)

    async def work() -> None:
        for piece in (sent,) if is_whole else (sent[:10], sent[10:]):
            connection.data_received(piece)
        await settled()
        is_due = case.changes or (waits and case.loop in slow.app.service.names)
        assert bool(wire.written) == (not is_due)
        await slow.confirm()
        async with asyncio.timeout(5.0):
            while not wire.written:
                await asyncio.sleep(0.001)
        await settled()

    slow.runner.run(work())
    head, _, body = wire.written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % case.status), wire.written[:500]
    if waits or case.says != b'"waits"':
        assert case.says in body


def key(route: Route) -> str:
    return f"{route.method} {route.path}"


def test_every_route_has_a_case(slow: Slow) -> None:
    """A new route needs one: either it reads or changes a loop, or it is of the process."""
    routes = {key(route) for route in slow.app.router.routes}
    assert routes == {name for name, _ in CASES} | OF_THE_PROCESS


@pytest.mark.parametrize("name", sorted(OF_THE_PROCESS))
def test_routes_of_the_process_answer_while_the_disk_confirms_nothing(
    slow: Slow, name: str
) -> None:
    slow.leave_waiting("home")
    wire = slow.run(written(Case(), name), until=lambda wire: b" 200 OK" in wire.written)
    assert wire.written


def test_only_a_new_loop_keeps_the_writer_from_writing(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To load or recover a loop needs the writer's thread, and would wait for ever."""
    writer, held = slow.app.service.writer, []
    together = writer.together

    def counted() -> Any:
        held.append(len(slow.app.service.names))
        return together()

    monkeypatch.setattr(writer, "together", counted)
    native, ranking = f"POST {LOOP}/decide", PERSONAL[0][0]
    other = ranking.replace("/personalizer", "/loops/{loop}/personalizer", 1)
    before = len(slow.app.service.names)
    for name, case in (
        (native, Case(CONTEXT)),
        (native, Case(FIRST, loop="first")),
        (ranking, Case(RANK)),
        (other, Case(RANK, loop="second")),
        (other, Case(RANK, loop="second")),
    ):
        connection = slow.connect()
        connection.data_received(written(case, name))
        slow.runner.run(slow.confirm())
        connection.connection_lost(None)
    assert held == [before, before + 1]
    assert len(slow.app.service.names) == before + 2
