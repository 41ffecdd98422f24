"""A disk that fails: waiting requests get 503, nothing unwritten is answered, and it recovers."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from keyhole.service.store import Store
from tests.service.http.serving import PLAIN, Local, local

HOME = "/v1/loops/home"


class Disk:
    """What a commit does: it waits, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails, self.opens = 0, True
        commit, begin = Store.commit, Store.__init__

        def failing(store: Store, units: Any) -> None:
            if self.fails:
                self.fails -= 1
                raise apsw.FullError("database or disk is full")
            commit(store, units)

        def opening(store: Store, *args: Any, **options: Any) -> None:
            if not self.opens:
                from keyhole.errors import FileUnusable

                raise FileUnusable("the database cannot be opened: no disk")
            begin(store, *args, **options)

        monkeypatch.setattr(Store, "commit", failing)
        monkeypatch.setattr(Store, "__init__", opening)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def home(tmp_path: Path, disk: Disk) -> Iterator[Local]:
    assert disk.opens
    with local(tmp_path / "data") as served:
        served.put(HOME, PLAIN)
        yield served
        disk.fails, disk.opens = 0, True
        served.get("/readyz")


def decide(home: Local, name: str) -> Any:
    return home.post(HOME + "/decide", {"event_id": name, "context": [1, 2]})


def test_what_is_not_written_is_not_answered(home: Local, disk: Disk) -> None:
    first = decide(home, "o-1").json()
    disk.fails = 1
    failed = decide(home, "o-2")
    assert failed.status_code == 503
    assert failed.headers["retry-after"] == "1"
    assert failed.headers["content-type"] == "application/problem+json"
    assert "disk is full" in failed.json()["detail"]
    # It has recovered: what was written is there, and what was not can be sent again.
    assert home.get("/readyz").status_code == 200
    assert decide(home, "o-1").json() == first
    again = decide(home, "o-2")
    assert (again.status_code, "idempotent-replay" in again.headers) == (200, False)
    rows = [json.loads(line) for line in home.get(HOME + "/log").text.splitlines()]
    assert [row["seq"] for row in rows] == [1, 2, 3, 4]


def test_all_that_wait_get_an_error(home: Local, disk: Disk) -> None:
    disk.fails = 1

    async def together() -> list[int]:
        requests = [
            home.client.post(HOME + "/decide", json={"event_id": f"e{k}", "context": [1, 2]})
            for k in range(20)
        ]
        return [one.status_code for one in await asyncio.gather(*requests)]

    found = home.runner.run(together())
    assert 503 in found
    events = [
        name
        for name, status in zip([f"e{k}" for k in range(20)], found, strict=True)
        if status == 200
    ]
    for name in events:
        assert home.get(f"{HOME}/events/{name}").status_code == 200
    lost = found.count(503)
    assert home.get(HOME).json()["version"] == 2 + 20 - lost


def test_a_batch_that_is_not_written_is_an_error_as_a_whole(home: Local, disk: Disk) -> None:
    disk.fails = 1
    lines = "".join(f'{{"event_id": "b{k}", "context": [1, 2]}}\n' for k in range(50))
    assert home.post(HOME + "/decide:batch", lines).status_code == 503
    answer = home.post(HOME + "/decide:batch", lines)
    assert answer.status_code == 200
    assert [json.loads(line)["status"] for line in answer.text.splitlines()] == [200] * 50
    assert home.get(HOME).json()["version"] == 52


def test_a_disk_that_stays_away_is_told_until_it_is_back(home: Local, disk: Disk) -> None:
    decide(home, "o-1")
    disk.fails, disk.opens = 1, False
    assert decide(home, "o-2").status_code == 503
    ready = home.get("/readyz")
    assert (ready.status_code, "no disk" in ready.json()["detail"]) == (503, True)
    assert home.get("/healthz").status_code == 200
    for _ in range(3):
        assert decide(home, "o-1").status_code == 503
        assert home.get(HOME + "/effects").status_code == 503
    disk.opens = True
    home.runner.run(asyncio.sleep(0.8))  # the timer tries again
    assert home.get("/readyz").json() == {"status": "ready"}
    assert decide(home, "o-1").headers["idempotent-replay"] == "true"
    text = home.get("/metrics").text
    assert "keyhole_disk_failures_total 1\n" in text


def test_a_failure_of_ours_is_logged_and_says_nothing(
    home: Local, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("keyhole.service.loop.Loop.reward", broken)
    decide(home, "o-1")
    answer = home.post(HOME + "/events/o-1/reward", {"value": 1})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    [line] = [one for one in caplog.messages if "ZeroDivisionError" in one]
    assert json.loads(line)["request_id"] == answer.json()["request_id"]
    assert "broken" in json.loads(line)["trace"]
    batch = home.post(HOME + "/rewards", '{"event_id": "o-1", "value": 1}')
    assert batch.status_code == 500


def test_a_stop_that_cannot_write_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process must not look as if all were well."""
    import signal
    import threading

    from keyhole.errors import FileUnusable
    from keyhole.service import Service, serve

    def stop() -> None:
        signal.raise_signal(signal.SIGTERM)

    def failing(self: Service) -> None:
        close(self)
        raise FileUnusable("the disk is full")

    close = Service.close
    monkeypatch.setattr(Service, "close", failing)
    with pytest.raises(FileUnusable, match="the disk is full"):
        serve(tmp_path, port=0, started=lambda _: threading.Timer(0.05, stop).start())
    assert capsys.readouterr().out == ""
