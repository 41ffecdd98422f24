"""Archives beside databases of another time, and folders that are replaced under a service."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from keyhole.errors import FileError, FileUnusable, InvalidValue
from keyhole.service import DecideRequest, Service
from keyhole.service.compacting import compact
from keyhole.service.exporting import export
from keyhole.service.store import Store
from keyhole.service.verifying import verify
from tests.service.http.serving import PLAIN, local


def decide(service: Service, *names: str) -> None:
    for name in names:
        service.decide("home", DecideRequest(context=[1.0, 0.5], event_id=name))
    service.wait(service.loop("home").unit)


def events(first: int, end: int) -> list[str]:
    return [f"e{k}" for k in range(first, end)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A compacted folder with ten events, and beside it a backup of the time when it had five."""
    folder = tmp_path / "data"
    with Service(folder) as service:
        service.create("home", PLAIN)
        decide(service, *events(0, 5))
    shutil.copytree(folder, tmp_path / "backup")
    with Service(folder) as service:
        decide(service, *events(5, 10))
    compact(folder, keep=0.0)
    return folder


@pytest.mark.parametrize("how", ["shown", "asked again", "explained"])
def test_reading_an_archived_event_changes_nothing_that_is_learned(folder: Path, how: str) -> None:
    with Service(folder) as service:
        loop = service.loop("home")
        assert loop.reward("e1", 1.0).status == "late"
        if how == "shown":
            loop.journal.row_of(loop.journal.event("e2"))
        elif how == "asked again":
            asked = DecideRequest(context=[1.0, 0.5], event_id="e2")
            assert service.decide("home", asked).is_replay
        else:
            loop.explain("e2")
        assert loop.reward("e2", 1.0).status == "late"
        assert sum(loop.bandit.counts.values()) == 0


def without_archive(folder: Path) -> None:
    shutil.rmtree(folder / "archive")


def with_backup(folder: Path) -> None:
    """The database of an older time beside the archive, as of a restore."""
    for file in folder.glob("keyhole.db*"):
        file.unlink()
    shutil.copy(folder.parent / "backup" / "keyhole.db", folder)


def without_database(folder: Path) -> None:
    for file in folder.glob("keyhole.db*"):
        file.unlink()


def with_empty_database(folder: Path) -> None:
    without_database(folder)
    with Service(folder.parent / "other"):
        pass
    shutil.copy(folder.parent / "other" / "keyhole.db", folder)


def with_another_loop_of_its_name(folder: Path) -> None:
    without_database(folder)
    with Service(folder.parent / "other") as service:
        service.create("home", PLAIN)
        decide(service, *(f"x{k}" for k in range(20)))
    shutil.copy(folder.parent / "other" / "keyhole.db", folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_archive, "up to 12 were archived.* ends at 0: restore the archive"),
        (with_backup, "reaches to row 12, which is not that of .*different times"),
        (with_empty_database, "rows of loop 'home', which .* does not have: restore the database"),
        (with_another_loop_of_its_name, "different times"),
    ],
)
def test_an_archive_of_another_time_is_refused(
    folder: Path, change: Callable[[Path], None], message: str
) -> None:
    change(folder)
    tries: list[Callable[[], Any]] = [
        lambda: Service(folder),
        lambda: verify(folder),
        lambda: export(folder, folder / "x.jsonl"),
        lambda: compact(folder, keep=0.0),
    ]
    for one in tries:
        with pytest.raises(FileError, match=message):
            one()
    assert not (folder / "x.jsonl").exists()


def test_a_database_that_was_removed_is_not_begun_anew_beside_its_archive(folder: Path) -> None:
    without_database(folder)
    with pytest.raises(FileError, match="does not have: restore the database"):
        Service(folder)


def test_a_compaction_that_was_interrupted_is_completed(folder: Path) -> None:
    """Its files are there, and the rows are in the database still."""
    whole = folder.parent / "whole"
    shutil.copytree(folder.parent / "backup", whole)
    compact(whole, keep=0.0)
    shutil.copytree(whole / "archive", folder.parent / "backup" / "archive")
    backup = folder.parent / "backup"
    verify(backup)
    with Service(backup) as service:
        decide(service, "after")
    compact(backup, keep=0.0)
    verify(backup)
    assert export(backup, backup / "x.jsonl") == 8
    with Service(backup) as service:
        assert service.store.query("SELECT count(*) FROM log") == [(0,)]


@pytest.mark.parametrize("where", ["replacing", "sync_folder", "wait"])
def test_a_compaction_that_fails_anywhere_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It fails while files are written, after that, and before rows are deleted."""
    with Service(folder) as service:
        decide(service, *events(10, 15))
    export(folder, folder / "before.jsonl")
    before = [one.sha256 for one in verify(folder)]

    def fail(*_given: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        if where == "wait":
            patched.setattr(Service, "wait", fail)
        else:
            patched.setattr(f"keyhole.service.compacting.{where}", fail)
        with pytest.raises(OSError, match="no space left"):
            compact(folder, keep=0.0)
    assert [one.sha256 for one in verify(folder)] == before
    compact(folder, keep=0.0)
    assert [one.sha256 for one in verify(folder)] == before
    export(folder, folder / "after.jsonl")
    assert (folder / "after.jsonl").read_bytes() == (folder / "before.jsonl").read_bytes()


def test_an_archive_is_synced_with_the_folders_above_it_before_rows_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: a synced file is lost with its folder, and the rows are nowhere else."""
    with Service(tmp_path) as service:
        service.create("home", PLAIN)
        decide(service, "e1")
    synced: list[set[int]] = [set()]
    fsync, commit = os.fsync, Store.commit

    def noting(handle: int) -> None:
        synced[-1].add(os.fstat(handle).st_ino)
        fsync(handle)

    def committing(store: Store, units: Any) -> None:
        if any("DELETE FROM log" in statement for unit in units for statement, _ in unit.others):
            synced.append(set())
        commit(store, units)

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(Store, "commit", committing)
    compact(tmp_path, keep=0.0)
    archive = tmp_path / "archive"
    places = [tmp_path, archive, archive / "home", *(archive / "home").iterdir()]
    assert len(synced) == 2, "rows were deleted once"
    assert {place.stat().st_ino for place in places} <= synced[0]


def test_large_archives_have_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyhole.service.compacting.ROWS", 4)
    with Service(tmp_path) as service:
        service.create("home", PLAIN)
        decide(service, *events(0, 8))
    compact(tmp_path, keep=0.0)
    names = sorted(one.name for one in (tmp_path / "archive" / "home").iterdir())
    assert names == ["1-4.jsonl.gz", "5-8.jsonl.gz", "9-10.jsonl.gz"]
    verify(tmp_path)
    with Service(tmp_path) as service:
        loop = service.loop("home")
        for name in events(0, 8):
            assert loop.journal.decided(name).event == name
            assert not loop.journal.has_row(loop.journal.event(name))
            assert loop.reward(name, 1.0).status == "late"


def test_a_row_of_another_event_is_no_answer(tmp_path: Path) -> None:
    with Service(tmp_path) as service:
        service.create("home", PLAIN)
        decide(service, "e0", "e1")
    with apsw.Connection(str(tmp_path / "keyhole.db")) as connection:
        connection.execute("UPDATE event SET seq = 3 WHERE event = 'e1'")
    with (
        Service(tmp_path) as service,
        pytest.raises(FileError, match="row 3 of loop 'home' is not the decision of event 'e1'"),
    ):
        decide(service, "e1")


@pytest.mark.parametrize("how", ["lock", "folder"])
def test_a_folder_that_was_replaced_is_left_to_others(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "data"
    service = Service(folder)
    service.create("home", PLAIN)
    decide(service, "e0")
    if how == "lock":
        (folder / "lock").unlink()
    else:
        shutil.copytree(folder, tmp_path / "copy")
        shutil.rmtree(folder)
        shutil.move(tmp_path / "copy", folder)
    with Service(folder) as other:
        decide(other, "o0")
        for _ in range(2):
            with pytest.raises(FileUnusable, match="was replaced, or its file 'lock' was removed"):
                service.tick()
        with pytest.raises(FileUnusable, match="was replaced"):
            decide(service, "e1")
        decide(other, "o1")
    with pytest.raises(FileUnusable):
        service.close()
    verify(folder)


def test_every_file_of_an_archive_is_missed(tmp_path: Path) -> None:
    for first in (0, 5):
        with Service(tmp_path) as service:
            if not first:
                service.create("home", PLAIN)
            decide(service, *events(first, first + 5))
        compact(tmp_path, keep=0.0)
    files = sorted((tmp_path / "archive" / "home").iterdir())
    assert len(files) == 2
    next(one for one in files if one.name.startswith("1-")).unlink()
    with pytest.raises(FileError, match="has no file with row 1"):
        Service(tmp_path)


def test_rows_that_were_written_to_an_archive_and_not_deleted_are_still_shown(
    tmp_path: Path,
) -> None:
    with local(tmp_path / "data") as served:
        served.put("/v1/loops/home", PLAIN)
        served.post("/v1/loops/home/decide", {"event_id": "e0", "context": [1, 2]})
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    compact(tmp_path / "copy", keep=0.0)
    shutil.move(tmp_path / "copy" / "archive", tmp_path / "data" / "archive")
    with local(tmp_path / "data") as served:
        assert len(served.get("/v1/loops/home/log").text.splitlines()) == 3


def test_a_deferred_event_that_was_archived_is_not_activated(tmp_path: Path) -> None:
    """Its rewards are late, so that the default reward would be learned in their place."""
    with Service(tmp_path) as service:
        service.create("home", {**PLAIN, "reward": {"default": 0.0, "wait": 5.0}})
        request = DecideRequest(context=[1.0, 0.5], event_id="d0", defer=True)
        service.decide("home", request)
    compact(tmp_path, keep=0.0)
    with Service(tmp_path) as service:
        with pytest.raises(InvalidValue, match="was archived before it was activated"):
            service.loop("home").activate("d0")
        assert service.loop("home").reward("d0", 1.0).status == "late"


def test_a_write_ahead_log_that_is_removed_is_noticed_and_nothing_is_lost(tmp_path: Path) -> None:
    with Service(tmp_path) as service:
        service.create("home", PLAIN)
        decide(service, "e0")
        (tmp_path / "keyhole.db-wal").unlink()
        with pytest.raises(FileUnusable, match="was removed while the service ran"):
            service.tick()
        decide(service, "e1")
        assert (tmp_path / "keyhole.db-wal").exists()
        shutil.copytree(tmp_path, tmp_path.with_name("crashed"))
    with Service(tmp_path.with_name("crashed")) as service:
        assert service.store.ids(1, "", 9) == ["e0", "e1"]
