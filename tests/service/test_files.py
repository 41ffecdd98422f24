"""Files that a service must not work on, and damage that it must find or survive."""

import asyncio
import errno
import os
import re
import sqlite3
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import apsw
import pytest

from keyhole.errors import FileError, FileUnusable, KeyholeWarning
from keyhole.service import DecideRequest, KeyFile, Service, compact, export, verify
from keyhole.service.store import Store
from tests.service.clocks import Moved
from tests.service.history import check
from tests.service.killing import FORKS

PLAIN: dict[str, Any] = {"arms": ["A", "B"], "dim": 2}


def filled(folder: Path, n: int = 30) -> bytes:
    """Write a log of n decisions and rewards, with two snapshots; return the state."""
    with Service(folder) as service:
        loop = service.create("home", PLAIN)
        for k in range(n):
            request = DecideRequest(context=[k / n, 1.0], event_id=f"e{k}")
            service.decide("home", request)
            loop.reward(f"e{k}", float(k % 3))
            if k == n // 2:
                service.keep(loop)
    with Service(folder) as service:
        return service.loop("home").model()


def edit(folder: Path, *statements: str) -> None:
    """Change a database behind the service's back."""
    connection = apsw.Connection(str(folder / "keyhole.db"))
    for statement in statements:
        # A text that was replaced in a body is stored as bytes again.
        connection.execute(
            re.sub(r"= (replace.*?\))( WHERE|$)", r"= CAST(\1 AS BLOB)\2", statement)
        )
    connection.close()


# -- files of others ------------------------------------------------------------------------------


def test_a_file_of_a_newer_version_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    edit(tmp_path, "PRAGMA user_version = 2")
    content = (tmp_path / "keyhole.db").read_bytes()
    with pytest.raises(FileError, match="has version 2, and this Keyhole reads version 1"):
        Service(tmp_path)
    assert (tmp_path / "keyhole.db").read_bytes() == content
    assert not list(tmp_path.glob("*-wal"))
    edit(tmp_path, "PRAGMA user_version = 1")
    with Service(tmp_path) as service:
        check(service.path, service=service)


def test_a_database_of_others_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "keyhole.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs(a)")
    other.close()
    content = path.read_bytes()
    with pytest.raises(FileError, match="not one of a decision service"):
        Service(tmp_path)
    assert path.read_bytes() == content


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keyhole.db").write_bytes(b"what is this" * 1000)
    with pytest.raises(FileError, match="is not a database"):
        Service(tmp_path)
    (tmp_path / "keyhole.db").unlink()
    Service(tmp_path).close()  # the folder is not in use


def hold(folder: str, pipe: Connection) -> None:
    """Work on a folder until told to end."""
    with Service(folder):
        pipe.send("ready")
        pipe.recv()


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    mine, theirs = FORKS.Pipe()
    process = FORKS.Process(target=hold, args=(str(tmp_path), theirs))
    process.start()
    assert mine.recv() == "ready"
    with pytest.raises(FileUnusable, match="in use by another process"):
        Service(tmp_path)
    mine.send("end")
    process.join()
    filled(tmp_path, 3)
    with Service(tmp_path) as service:
        with pytest.raises(FileUnusable, match="in use"):
            Service(tmp_path)
        check(service.path, service=service)


@pytest.mark.parametrize("name", ["lock", "keyhole.db", "keys.lock"])
def test_links_are_not_followed(tmp_path: Path, name: str) -> None:
    """Root would write to any file that the owner of the folder has chosen, or give it away."""
    folder, other = tmp_path / "data", tmp_path / "other"
    folder.mkdir()
    other.write_text("theirs")
    (folder / name).symlink_to(other)
    with pytest.raises(FileError, match="symbolic link"):
        KeyFile(folder).add("web", ["read"]) if name == "keys.lock" else Service(folder)
    assert other.read_text() == "theirs"


def test_an_archive_that_is_a_link_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "data", 3)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data" / "archive").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileUnusable, match="must be a folder, got a link"):
        compact(tmp_path / "data")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_system_without_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("fcntl.flock", fails)
    with pytest.raises(FileUnusable, match="no locks available"):
        Service(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


# -- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("damaged", ["last", "all", "another file"])
def test_a_damaged_snapshot_is_passed_over(tmp_path: Path, damaged: str) -> None:
    """The rows are all there: the state is the same, and there is a warning."""
    state = filled(tmp_path)
    change = "UPDATE snapshot SET model = zeroblob(length(model))"
    if damaged == "last":
        change += " WHERE seq = (SELECT max(seq) FROM snapshot)"
    if damaged == "another file":  # whole, and of no bandit
        change = (
            "UPDATE snapshot SET model = x'00', sha256 = "
            "x'6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d'"
        )
    edit(tmp_path, change)
    service = Service(tmp_path)
    with pytest.warns(KeyholeWarning, match="snapshot of loop 'home' at row .* is damaged"):
        assert service.loop("home").model() == state
    service.close()


def test_a_damaged_snapshot_without_its_rows_is_an_error(tmp_path: Path) -> None:
    filled(tmp_path)
    edit(tmp_path, "UPDATE snapshot SET model = x'00'", "DELETE FROM log WHERE seq < 5")
    with (
        Service(tmp_path) as service,
        pytest.warns(KeyholeWarning, match="damaged"),
        pytest.raises(FileError, match=r"row 1 .*is missing.* before row 5"),
    ):
        service.loop("home")


def test_a_log_that_ends_before_its_snapshot_is_an_error(tmp_path: Path) -> None:
    """It would be written on with rows that leave a gap."""
    filled(tmp_path)
    edit(tmp_path, "DELETE FROM log WHERE seq > 55")
    with (
        Service(tmp_path) as service,
        pytest.raises(FileError, match="has a snapshot at row 62, and ends at 55"),
    ):
        service.loop("home")


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM log WHERE seq = 40",
        "UPDATE log SET body = x'7b7d' WHERE seq = 40",
        "UPDATE log SET body = replace(body, '\"value\":2.0', '\"value\":1.5') WHERE seq = 8",
        'UPDATE log SET body = replace(body, \'"arm":"A"\', \'"arm":"B"\')',
        "UPDATE log SET body = replace(body, '\"probability\":0.5', '\"probability\":0.6')",
        "UPDATE log SET body = replace(body, '\"y\":[[0.5,', '\"y\":[[0.4,')",
        "UPDATE log SET event = 'e3' WHERE seq = 7",
        "UPDATE event SET learned = 7.0 WHERE event = 'e3'",
        "UPDATE event SET due = 7.0 WHERE event = 'e3'",
        "DELETE FROM event WHERE event = 'e3'",
        "UPDATE reward SET value = 7.0 WHERE event = 'e3'",
        "DELETE FROM reward WHERE event = 'e3'",
        "UPDATE loop SET draw_key = zeroblob(32)",
    ],
)
def test_what_was_altered_is_found(tmp_path: Path, change: str) -> None:
    """The negative controls of the history checker: it says so of every change."""
    filled(tmp_path)
    check(str(tmp_path))
    edit(tmp_path, change)
    with pytest.raises((AssertionError, FileError, KeyError)):
        check(str(tmp_path))


def test_a_missing_row_is_found_at_the_start(tmp_path: Path) -> None:
    filled(tmp_path)
    edit(tmp_path, "DELETE FROM snapshot", "DELETE FROM log WHERE seq = 40")
    with (
        Service(tmp_path) as service,
        pytest.raises(FileError, match=r"row 40 .*is missing.* before row 41"),
    ):
        service.loop("home")


@pytest.mark.parametrize("page", range(1, 12))
def test_a_page_of_zeros_is_named_or_harmless(tmp_path: Path, page: int) -> None:
    """Nothing is raised but a `FileError` that names the file, and no other state is loaded."""
    state = filled(tmp_path)
    path = tmp_path / "keyhole.db"
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    assert len(content) >= 12 * size
    content[page * size : (page + 1) * size] = bytes(size)
    path.write_bytes(content)
    try:
        with Service(tmp_path) as service:
            assert service.loop("home").model() == state
            for k in range(30):
                request = DecideRequest(context=[k / 30, 1.0], event_id=f"e{k}")
                assert service.decide("home", request).is_replay
    except FileError as reason:
        message = str(reason)
        assert "keyhole.db" in message or "home" in message


def test_a_damaged_loop_does_not_hold_up_the_others(tmp_path: Path) -> None:
    settings = {**PLAIN, "reward": {"default": 0.0, "wait": 5.0}}
    clock = Moved()
    with Service(tmp_path, now=clock) as service:
        for name in ("bad", "good"):
            service.create(name, settings)
            service.decide(name, DecideRequest(context=[1.0, 1.0], event_id="e1"))
    edit(tmp_path, "DELETE FROM snapshot", "DELETE FROM log WHERE loop = 1 AND seq = 1")
    clock.time += 6.0
    with Service(tmp_path, now=clock) as service:
        with pytest.raises(FileError, match=r"loop 'bad'.* is missing"):
            service.tick()
        assert service.loop("good").bandit.counts in ({"A": 1, "B": 0}, {"A": 0, "B": 1})


def due_in_two_loops(folder: Path, clock: Moved) -> None:
    """Write three events of each of two loops, all of which are due in 5 seconds."""
    with Service(folder, now=clock) as service:
        for name in ("bad", "good"):
            service.create(name, {**PLAIN, "reward": {"default": 0.0, "wait": 5.0}})
            for k in range(3):
                service.decide(name, DecideRequest(context=[1.0, k], event_id=f"e{k}"))
    clock.time += 6.0


def ended(service: Service, loop: str) -> int:
    """Return how many events of a loop have ended."""
    service.wait(service.writer.submitted)
    number = service.loop(loop).number
    [(n,)] = service.store.query(
        "SELECT count(*) FROM event WHERE loop = ? AND due IS NULL", (number,)
    )
    return int(n)


@pytest.mark.parametrize("page", [1, 50])
def test_a_damaged_decision_does_not_hold_up_other_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr("keyhole.service.service.MAX_DUE", page)
    clock = Moved()
    due_in_two_loops(tmp_path, clock)
    cut = "UPDATE log SET body = substr(body, 1, 20) WHERE loop = 1 AND event = 'e1'"
    edit(tmp_path, cut)
    with Service(tmp_path, now=clock) as service:
        with pytest.raises(FileError, match="row 4 of loop 'bad' is damaged"):
            service.tick()
        assert (ended(service, "bad"), ended(service, "good")) == (2, 3)
        assert service.tick() == 0, "it is told once"
    with pytest.raises(FileError, match=r"loop 'bad'.* row 4 .*is damaged"):
        verify(tmp_path)
    with pytest.raises(FileError, match="row 4 of loop 'bad' is damaged"):
        export(tmp_path, tmp_path / "bad.parquet", loop="bad")


def test_a_damaged_outcome_is_named_by_verify(tmp_path: Path) -> None:
    clock = Moved()
    with Service(tmp_path, now=clock) as service:
        loop = service.create("home", {**PLAIN, "reward": {"default": 0.0, "wait": 5.0}})
        service.decide("home", DecideRequest(context=[1.0, 0.0], event_id="e0"))
        assert loop.reward("e0", 1.0).status == "held"
    edit(tmp_path, "UPDATE log SET body = substr(body, 1, 20) WHERE kind = 'outcome'")
    with pytest.raises(FileError, match="row 4 of loop 'home' is damaged"):
        verify(tmp_path)


# -- snapshots and the write-ahead log -------------------------------------------------------------


def test_a_service_that_is_killed_often_keeps_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhole.service.service.SNAPSHOT_EVERY", 20)
    for run in range(4):
        service = Service(tmp_path)
        if not run:
            service.create("home", PLAIN)
        for k in range(15):
            service.decide("home", DecideRequest(context=[1.0, 1.0], event_id=f"{run}-{k}"))
            service.tick()
        service.writer.close()  # and killed: no snapshot is written
        service.store.close()
        service._folder.close()
    with Service(tmp_path) as service:
        kept = [seq for seq, *_ in service.store.snapshots(1)]
        assert max(kept) >= service.loop("home").version - 20
        check(str(tmp_path))


def test_a_loop_whose_snapshots_cannot_be_listed_is_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 3)
    with Service(tmp_path) as service:
        with monkeypatch.context() as patch:

            def failing(*_: object) -> None:
                raise FileUnusable("no disk")

            patch.setattr(service.store, "snapshots", failing)
            with pytest.raises(FileUnusable):
                service.loop("home")
        service.tick()
        assert service.loop("home").version == 8


def test_nothing_is_written_behind_what_a_failed_disk_may_have_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write-ahead log begins anew, for which a reader of it has to end."""
    with Service(tmp_path) as service:
        loop = service.create("home", PLAIN)
        service.decide("home", DecideRequest(context=[1.0, 1.0], event_id="e0"))
        service.wait(loop.unit)
        log = tmp_path / "keyhole.db-wal"
        assert log.stat().st_size > 0
        reader = apsw.Connection(str(tmp_path / "keyhole.db"), flags=apsw.SQLITE_OPEN_READONLY)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM log").get == 3
        service.writer.fail(OSError("no disk"))
        for _ in range(2):
            with pytest.raises(FileUnusable, match="is read by another program"):
                service.recover()
            assert not service.writer.is_usable
        reader.close()
        sizes: list[int] = []
        commit = Store.commit

        def noted(store: Store, units: Any) -> None:
            sizes.append(log.stat().st_size)
            commit(store, units)

        monkeypatch.setattr(Store, "commit", noted)
        service.recover()
        assert sizes[0] == 0
        service.decide("home", DecideRequest(context=[1.0, 1.0], event_id="e1"))
        check(str(tmp_path), service=service)


def test_a_service_can_be_closed_after_its_event_loop(tmp_path: Path) -> None:
    service, turns = Service(tmp_path), asyncio.new_event_loop()
    loop = service.create("home", PLAIN)
    service.gather(turns.call_soon)
    service.decide("home", DecideRequest(context=[1.0, 1.0], event_id="e0"))
    turns.close()
    service.close()
    with Service(tmp_path) as service:
        assert [seq for seq, *_ in service.store.snapshots(1)] == [loop.version]


def test_a_log_that_is_cut_while_it_is_open_stops_the_service(tmp_path: Path) -> None:
    """What was acknowledged is lost: the service must not go on without it, as if it were sound."""
    service = Service(tmp_path)
    loop = service.create("home", PLAIN)
    for k in range(3):
        request = DecideRequest(context=[1.0, 0.5], event_id=f"e{k}")
        service.wait(service.decide("home", request).unit)
    os.truncate(tmp_path / "keyhole.db-wal", 0)
    with pytest.raises(FileUnusable):
        service.tick()
    for _ in range(2):
        with pytest.raises(FileError, match=r"lacks rows|is not a database"):
            service.decide("home", DecideRequest(context=[1.0, 0.5], event_id="new"))
    assert loop.is_broken
    with pytest.raises(FileUnusable):
        service.close()


def test_a_backup_written_over_an_open_database_stops_the_service(tmp_path: Path) -> None:
    """As `cat` does it: the file is the same one, with rows of before."""
    filled(tmp_path, 4)
    backup = (tmp_path / "keyhole.db").read_bytes()
    service = Service(tmp_path)
    loop = service.loop("home")
    for k in range(300):
        service.decide("home", DecideRequest(context=[1.0, 0.5], event_id=f"n{k}"))
    service.wait(loop.unit)
    assert service.store.restart_log()
    (tmp_path / "keyhole.db").write_bytes(backup)
    service.writer.fail(OSError("the disk was away"))
    with pytest.raises(FileUnusable, match=r"lacks rows 1[0-9] to 310 of its loop 1"):
        service.recover()
    with pytest.raises(FileUnusable):
        service.close()


@pytest.mark.parametrize("column", ["name", "draw_key"])
def test_a_loop_without_a_name_or_a_key_is_refused(tmp_path: Path, column: str) -> None:
    """A disk that loses parts of a file leaves values that the tables do not allow."""
    filled(tmp_path, 3)
    change = "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'loop'"
    for old, new in (("NOT NULL", "NOT_NULL"), ("NOT_NULL", "NOT NULL")):
        connection = apsw.Connection(str(tmp_path / "keyhole.db"))
        connection.pragma("writable_schema", "ON")
        connection.execute(change, (old, new))
        connection.close()
        if new == "NOT_NULL":
            edit(tmp_path, f"UPDATE loop SET {column} = NULL")
    for call in (Service, verify):
        with pytest.raises(FileError, match="is damaged: loop 1 has the name"):
            call(tmp_path)
