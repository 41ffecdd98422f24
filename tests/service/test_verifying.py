"""`verify` finds what does not follow from the log; `compact`, `export` and `replay` keep it."""

import os
import shutil
import stat
import tempfile
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import numpy as np
import pytest

import keyhole as kh
from keyhole.errors import FileError, FileMissing, FileUnusable, InvalidValue, KeyholeWarning
from keyhole.service import (
    DecideRequest,
    Service,
    archived,
    compact,
    eventfile,
    export,
    replay,
    verify,
)

PLAIN: dict[str, Any] = {"arms": ["A", "B", "C"], "dim": 2}
NAMED: dict[str, Any] = {
    "arms": ["A", "B"],
    "features": {"numbers": ["age"], "categories": {"device": "grow"}},
    "reward": {"default": 0.0, "wait": 60.0},
}


def played(folder: Path, settings: dict[str, Any], rounds: int = 60) -> bytes:
    """Play some rounds with rewards, and leave a folder that was closed."""
    rng = np.random.default_rng(1)
    with Service(folder) as service:
        loop = service.create("home", settings)
        for k in range(rounds):
            x = {"age": float(k % 7), "device": f"d{k % 3}"}
            context: Any = rng.standard_normal(2).tolist() if "dim" in settings else x
            service.decide("home", DecideRequest(context=context, event_id=f"o-{k}"))
            if k % 2:
                loop.reward(f"o-{k}", float(rng.standard_normal()))
        service.wait(loop.unit)
        return loop.model()


def test_warnings_have_no_values_of_contexts_and_come_once(tmp_path: Path) -> None:
    played(tmp_path, NAMED)
    with warnings.catch_warnings(record=True) as caught, Service(tmp_path) as service:
        warnings.simplefilter("always")
        far = {"age": 58125.5, "device": "d1"}
        service.decide("home", DecideRequest(context=far, event_id="far"))
        for k in range(40):
            usual = {"age": float(k % 7), "device": "d1"}
            service.decide("home", DecideRequest(context=usual, event_id=f"p-{k}"))
    [text] = [str(one.message) for one in caught]
    assert text == (
        "loop 'home': a value of feature 'age' was far from its usual ones, and clipped (1 times "
        "so far; clip=None takes values as they are)"
    )
    database = apsw.Connection(str(tmp_path / "keyhole.db"))
    database.execute("DELETE FROM snapshot")
    database.close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        verify(tmp_path)
        with Service(tmp_path) as service:
            service.loop("home")
    assert [str(one.message) for one in caught] == []


@pytest.mark.parametrize("settings", [PLAIN, NAMED])
def test_a_folder_is_verified_and_stays_so_when_it_is_compacted(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    model = played(tmp_path, settings)
    before = verify(tmp_path)
    assert (before[0].decisions, before[0].snapshots) == (60, 1)
    [moved] = compact(tmp_path, keep=0.0)
    assert moved.rows == before[0].rows
    assert verify(tmp_path) == before
    with Service(tmp_path) as service:
        assert service.loop("home").model() == model
    assert verify(tmp_path) == before


def changed(tmp_path: Path, statement: str, *values: Any) -> None:
    connection = apsw.Connection(str(tmp_path / "keyhole.db"))
    connection.execute(statement, values)
    connection.close()


def row_at(tmp_path: Path, kind: str, place: int = 0) -> tuple[int, bytes]:
    connection = apsw.Connection(str(tmp_path / "keyhole.db"))
    found: list[Any] = list(
        connection.execute("SELECT seq, body FROM log WHERE kind = ? ORDER BY seq", (kind,))
    )
    connection.close()
    seq, body = found[place]
    return seq, body


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("decision", "probability", 0.123),
        ("decision", "arm", "another"),
        ("decision", "score", 9.0),
        ("decision", "event", "o-other"),
        ("decision", "mean", [9.0, 9.0]),
        ("decision", "width", [9.0, 9.0]),
        ("decision", "dispersion", [9.0]),
        ("decision", "version", 1),
        ("decision", "round", 77),
        ("decision", "epsilon", 0.5),
        ("decision", "arms", None),
        ("decision", "x", [1.0, 2.0]),
        ("decision", "request", "not hexadecimal"),
        ("reward", "outcome", None),
        ("reward", "value", 5.0),
        ("reward", "event", "o-0"),
    ],
)
def test_a_changed_row_is_found(tmp_path: Path, kind: str, field: str, value: Any) -> None:
    played(tmp_path, PLAIN)
    seq, body = row_at(tmp_path, kind, 7)
    row = msgspec.json.decode(body)
    if field == "arm":
        value = next(arm for arm in "ABC" if arm != row["arm"])
    row[field] = value
    encoded = msgspec.json.encode(row) + b"\n"
    changed(tmp_path, "UPDATE log SET body = ? WHERE seq = ?", encoded, seq)
    with pytest.raises(FileError, match="home"):
        verify(tmp_path)


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("DELETE FROM log WHERE seq = 9", "row 9 .*missing"),
        ("UPDATE event SET learned = 3.5 WHERE event = 'o-1'", "event 'o-1'"),
        ("DELETE FROM event WHERE event = 'o-2'", "event 'o-2'"),
        ("UPDATE reward SET value = value + 1 WHERE event = 'o-1'", "table of rewards"),
        ("UPDATE snapshot SET sha256 = zeroblob(32)", "snapshot at row"),
    ],
)
def test_a_missing_row_or_another_index_is_found(
    tmp_path: Path, statement: str, match: str
) -> None:
    played(tmp_path, PLAIN)
    changed(tmp_path, statement)
    with pytest.raises(FileError, match=match):
        verify(tmp_path)


def test_an_export_is_a_log_that_can_be_evaluated(tmp_path: Path) -> None:
    played(tmp_path / "data", PLAIN, rounds=200)
    n = export(tmp_path / "data", tmp_path / "log.jsonl")
    assert export(tmp_path / "data", tmp_path / "log.parquet") == n
    one, other = (list(kh.Log(tmp_path / name)) for name in ("log.jsonl", "log.parquet"))
    assert one == other
    assert kh.Log(tmp_path / "log.jsonl").counts == {"decided": 100, "learned": 100, "forgotten": 0}
    with pytest.raises(InvalidValue, match=r"end in .parquet or .jsonl, got .*log.csv"):
        export(tmp_path / "data", tmp_path / "log.csv")
    assert not (tmp_path / "log.csv").exists()


def test_a_replay_up_to_a_row_is_the_state_there(tmp_path: Path) -> None:
    played(tmp_path, PLAIN)
    seq, _ = row_at(tmp_path, "reward", 10)
    assert sum(replay(tmp_path, until=seq - 1).counts.values()) == 10
    assert sum(replay(tmp_path, until=seq).counts.values()) == 11
    assert sum(replay(tmp_path).counts.values()) == 30
    for until in (0, 93):
        with pytest.raises(InvalidValue, match=f"until must be from 1 to 92, .*, got {until}"):
            replay(tmp_path, until=until)
    compact(tmp_path, keep=0.0)
    assert sum(replay(tmp_path, until=92).counts.values()) == 30
    with pytest.raises(InvalidValue, match="from 1 to 92"):
        replay(tmp_path, until=93)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match="no service"):
        verify(tmp_path)
    played(tmp_path / "data", PLAIN)
    with pytest.raises(InvalidValue, match="one of home, got other"):
        replay(tmp_path / "data", loop="other")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "keyhole.db").write_text("no database, but a text of some length " * 30)
    with pytest.raises(FileError, match="is not a database"):
        verify(tmp_path / "text")
    with pytest.raises(FileError, match="is not a database"):
        Service(tmp_path / "text")


def test_rewards_of_archived_events_are_late_and_can_be_forgotten(tmp_path: Path) -> None:
    played(tmp_path, PLAIN)
    compact(tmp_path, keep=0.0)
    with Service(tmp_path) as service:
        loop = service.loop("home")
        assert loop.reward("o-0", 1.0).status == "late"
        assert loop.explain("o-0")["arm"] in "ABC"
        loop.forget("o-1")
    assert verify(tmp_path)[0].learned == 29


@pytest.mark.parametrize("settings", [PLAIN, NAMED])
def test_amending_and_forgetting_across_a_restart_is_verified(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    played(tmp_path, settings)
    with Service(tmp_path, now=lambda: 1e12) as service:
        loop = service.loop("home")
        service.tick()
        assert loop.reward("o-1", 2.5, "second").status in ("counted", "amended")
        loop.forget("o-3")
    with Service(tmp_path) as service:
        loop = service.loop("home")
        assert loop.reward("o-1", 2.5, "third").status in ("counted", "amended")
        loop.forget("o-5")
    [found] = verify(tmp_path)
    # All that had a default reward were learned when they were due.
    assert found.learned == (28 if settings is PLAIN else 58)


def test_an_export_has_what_other_policies_would_have_earned(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    with Service(tmp_path / "data") as service:
        loop = service.create(
            "home", {"arms": ["A", "B"], "dim": 2, "reward": {"learn": "at_once"}}
        )
        for k in range(300):
            x = rng.standard_normal(2)
            decided = service.decide("home", DecideRequest(context=x.tolist(), event_id=f"o-{k}"))
            gain = x[0] if decided.answer.action == "A" else -x[0]
            loop.reward(f"o-{k}", float(gain + rng.standard_normal()))
        loop.reward("o-7", 0.5, "more")
        loop.change(loop.settings.of({**loop.settings.to_dict(), "mode": "shadow"}))
        for k in range(300, 310):
            service.decide("home", DecideRequest(context=[1.0, 0.0], event_id=f"o-{k}"))
            loop.reward(f"o-{k}", 1.0)
    export(tmp_path / "data", tmp_path / "log.jsonl")
    assert not [row for row in kh.Log(tmp_path / "log.jsonl") if type(row).__name__ == "Given"]
    columns = kh.Log(tmp_path / "log.jsonl").columns()
    assert len(columns["chosen"]) == 300  # those that were served are no choices of the policy
    greedy = kh.evaluate(tmp_path / "log.jsonl", kh.Greedy()).rows[0]
    # The mean of the better arm is that of |x|; greedy choices miss little of it.
    assert abs(greedy.value - np.sqrt(2 / np.pi)) < 4 * greedy.error + 0.05


@contextmanager
def read_only(source: Path) -> Iterator[Path]:
    """Hand out a copy of a folder that this process cannot write to, root or not."""
    place = Path(tempfile.mkdtemp())
    user = os.geteuid()
    try:
        shutil.copytree(source, place / "data")
        for path in (place, place / "data", *(place / "data").rglob("*")):
            is_folder = path.is_dir()
            path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH | (0o111 if is_folder else 0))
        if user == 0:
            os.seteuid(65_534)  # nothing is forbidden to root
        yield place / "data"
    finally:
        if user == 0:
            os.seteuid(0)
        for path in (place, place / "data"):
            path.chmod(0o700)
        shutil.rmtree(place)


def test_a_folder_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    played(tmp_path / "data", PLAIN)
    with read_only(tmp_path / "data") as folder:
        with pytest.raises(PermissionError):
            (folder / "file").touch()
        with pytest.warns(KeyholeWarning, match=r"is read as it stands: .* nothing is left out"):
            found = verify(folder)
        with pytest.warns(KeyholeWarning, match="read as it stands"):
            assert sum(replay(folder).counts.values()) == 30
    assert verify(tmp_path / "data") == found


def test_rows_that_are_in_the_write_ahead_log_alone_are_not_left_out(tmp_path: Path) -> None:
    """To read the database without it would verify an earlier state, and say that all is well."""
    with Service(tmp_path / "data") as service:
        loop = service.create("home", PLAIN)
        service.decide("home", DecideRequest(context=[1.0, 2.0], event_id="o-1"))
        service.wait(loop.unit)
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
    (tmp_path / "copy" / "keyhole.db-shm").unlink()
    with (
        read_only(tmp_path / "copy") as folder,
        pytest.raises(
            FileUnusable, match=r"keyhole.db-wal has rows .* Copy the folder to a writable place"
        ),
    ):
        verify(folder)
    assert verify(tmp_path / "copy")[0].decisions == 1


def test_a_folder_in_use_is_verified_as_it_was_at_the_beginning(tmp_path: Path) -> None:
    with Service(tmp_path) as service:
        loop = service.create("home", PLAIN)

        def decide(first: int, n: int) -> None:
            for k in range(first, first + n):
                service.decide("home", DecideRequest(context=[1.0, 2.0], event_id=f"o-{k}"))
                loop.reward(f"o-{k}", 1.0)
            service.wait(loop.unit)

        decide(0, 600)
        [found] = verify(tmp_path, lambda *_: decide(600, 5))
        assert (found.decisions, found.rows) == (600, 1_202)
        [found] = verify(tmp_path)
        assert found.decisions == 605


@pytest.mark.parametrize("is_archived", [False, True])
def test_events_beyond_those_in_memory_are_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_archived: bool
) -> None:
    """Rewards, amendments and forgotten events of all ages, with three events in memory."""
    monkeypatch.setattr(eventfile.EventFile.__init__, "__defaults__", (0, 3))
    rng = np.random.default_rng(2)
    with Service(tmp_path) as service:
        loop = service.create("home", PLAIN)
        for k in range(120):
            context = rng.standard_normal(2).tolist()
            service.decide("home", DecideRequest(context=context, event_id=f"o-{k}"))
            loop.reward(f"o-{rng.integers(k + 1)}", float(k), f"r-{k}")
        for k in range(0, 120, 17):
            loop.forget(f"o-{k}")
        state = loop.model()
    if is_archived:
        compact(tmp_path, keep=0.0)
    with monkeypatch.context() as patched:
        patched.setattr(archived.Archive, "row", None)  # it would read a file from its beginning
        [found] = verify(tmp_path)
    assert found.decisions == 120
    with Service(tmp_path) as service:
        assert service.loop("home").model() == state
    changed(tmp_path, "UPDATE event SET learned = 3.5 WHERE event = 'o-1'")
    with pytest.raises(FileError, match="event 'o-1'"):
        verify(tmp_path)


def test_the_memory_of_a_verification_does_not_grow_with_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eventfile.EventFile.__init__, "__defaults__", (0, 50))
    monkeypatch.setattr(eventfile, "PART", 10)
    most = {}
    for rounds in (400, 1_600):
        played(tmp_path / str(rounds), PLAIN, rounds=rounds)
        tracemalloc.start()
        verify(tmp_path / str(rounds))
        most[rounds] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # 1,200 more events with their rows, 4 kB each, would take 4.8 MB more.
    assert most[1_600] < most[400] + 2.4e6
