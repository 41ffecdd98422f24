"""A disk that fails: waiting requests get 503, nothing unwritten is answered, and it recovers."""

import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from keyhole.errors import FileUnusable
from keyhole.service import KeyFile, application
from keyhole.service.http.repeats import Repeats
from keyhole.service.store import Store
from tests.service.history import check
from tests.service.http.serving import PLAIN, Local, Process, local

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
        check(str(tmp_path / "data"), service=served.app.service)


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

    async def recovered() -> None:  # by the timer, which tries again
        async with asyncio.timeout(20.0):
            while not home.app.service.writer.is_usable:
                await asyncio.sleep(0.05)

    home.runner.run(recovered())
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


def test_a_full_disk_is_told_until_it_takes_rows_again(tmp_path: Path) -> None:
    """It can be opened and read all the time; only a row that was written shows that it is back."""
    import resource

    with Process(tmp_path / "data") as served, httpx.Client(base_url=served.url) as client:
        client.put(HOME, json=PLAIN)
        number, log = served.process.pid, tmp_path / "data" / "keyhole.db-wal"
        _, most = resource.prlimit(number, resource.RLIMIT_FSIZE)
        before, size = 0, 40_000  # enough to open the file, and not for the rows that there are
        while log.stat().st_size < 5 * size:
            client.post(HOME + "/decide", json={"event_id": f"b{before}", "context": [1, 2]})
            before += 1
        resource.prlimit(number, resource.RLIMIT_FSIZE, (size, most))
        for k in range(40):
            given = {"event_id": f"e{k}", "context": [1, 2]}
            assert client.post(HOME + "/decide", json=given).status_code == 503
        for _ in range(20):
            assert client.get("/readyz").status_code == 503
            time.sleep(0.06)
        assert "keyhole_ready 0\n" in client.get("/metrics").text
        resource.prlimit(number, resource.RLIMIT_FSIZE, (most, most))
        end = time.monotonic() + 10.0
        while client.get("/readyz").status_code == 503 and time.monotonic() < end:
            time.sleep(0.02)
        given = {"event_id": "e1", "context": [1, 2]}
        assert client.post(HOME + "/decide", json=given).status_code == 200
        code, errors = served.stop()
    lines = [json.loads(line) for line in errors.splitlines()]
    assert code == 0
    assert len(lines) < 20
    written = sum(line.get("status") == 503 for line in lines)
    left_out = sum(line["lines"] for line in lines if "lines" in line)
    assert (written + left_out, left_out > 20) == (40, True)
    assert [line["event"] for line in lines if "event" in line][1:3] == [
        "the disk failed",
        "recovered",
    ]


def test_of_equal_lines_a_few_are_written_and_the_others_counted() -> None:
    time = 0.0
    repeats = Repeats(lambda: time)
    assert [repeats.allows("a") for _ in range(8)] == [True] * 5 + [False] * 3
    assert repeats.allows("b")
    time = 9.0
    assert repeats.over() == []
    time = 10.0
    assert repeats.over() == [("a", 3)]
    assert repeats.allows("a")
    for k in range(2_000):  # texts without end
        repeats.allows(f"text {k}")
    assert dict(repeats.over(math.inf))["others"] > 900
    assert repeats.over(math.inf) == []


def test_warnings_of_python_are_lines_of_json() -> None:
    program = (
        "import warnings; from keyhole.service.http import logs; logs.to_stderr()\n"
        "for _ in range(9): warnings.warn('odd', stacklevel=1); warnings.simplefilter('always')\n"
        "logs.tell_left_out(at_end=True)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line.get("logger") for line in lines] == ["py.warnings"] * 5 + [None]
    assert "UserWarning: odd" in lines[0]["message"]
    assert lines[-1]["lines"] == 4


def test_keys_are_noted_for_the_next_start_though_the_first_attempt_failed(
    home: Local, disk: Disk, tmp_path: Path
) -> None:
    KeyFile(tmp_path / "data").add("web", ["admin"])
    disk.fails = 1
    with pytest.raises(FileUnusable):
        home.runner.run(home.app._keys())
    home.app.service.recover()
    assert not home.app.service.has_had_keys
    home.runner.run(home.app._keys())
    assert home.app.service.has_had_keys


def test_a_start_that_cannot_note_keys_is_refused(disk: Disk, tmp_path: Path) -> None:
    """A later start without the file of keys would serve everyone."""
    KeyFile(tmp_path / "data").add("web", ["admin"])
    disk.fails = 1
    with pytest.raises(FileUnusable, match="disk is full"):
        application(tmp_path / "data")
    with local(tmp_path / "data") as served:
        assert served.app.service.has_had_keys
