"""`verify` finds what was changed beside the bodies of rows, and in copies of them.

The service reads columns, the tables of loops and rewards, and snapshots without a look at the log.
"""

import hashlib
import math
import shutil
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest

from keyhole.errors import FileError, KeyholeWarning
from keyhole.files import read_arrays, write_arrays
from keyhole.service import (
    DecideRequest,
    Service,
    archived,
    compact,
    packing,
    verify,
)
from tests.service.test_verifying import NAMED, PLAIN, changed, played, row_at

LEARNS_LATE = {**PLAIN, "reward": {"default": 0.0, "wait": 3600.0}}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The database of a service with decisions, rewards, settings and a snapshot."""
    folder = tmp_path_factory.mktemp("pristine")
    played(folder, PLAIN)
    verify(folder)
    return (folder / "keyhole.db").read_bytes()


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("UPDATE log SET kind = 'decision' WHERE kind = 'reward'", "row 5 has the columns"),
        ("UPDATE log SET kind = 'due' WHERE seq = (SELECT max(seq) FROM log)", "the columns"),
        ("UPDATE log SET event = 'zzz' WHERE kind = 'decision' AND seq > 9", "the columns"),
        ("UPDATE log SET at = 0.0 WHERE seq = 12", "row 12 has the columns"),
        ("INSERT INTO log VALUES (1, 0, 0.0, 'due', 'o-1', x'7b7d')", "row 0 .*not belong"),
        ("INSERT INTO log VALUES (7, 1, 0.0, 'due', 'o-1', x'7b7d')", "rows of a loop 7"),
        ("DELETE FROM loop", "rows of a loop 1, which is missing"),
        ("UPDATE loop SET name = 'other'", "of loop 'home'"),
        ("UPDATE loop SET run = 'another'", "another run"),
        (
            "UPDATE loop SET settings = replace(settings, 'add_arms\":false', 'add_arms\":true')",
            "other settings",
        ),
        ("UPDATE loop SET settings = x'00'", "settings are damaged"),
        ("UPDATE reward SET seq = 1000 - seq", "which came with row"),
        ("UPDATE snapshot SET model = zeroblob(length(model))", "is damaged"),
        ("UPDATE snapshot SET seq = seq + 100", "which the log does not have"),
    ],
)
def test_what_was_changed_beside_the_rows_is_found(
    tmp_path: Path, pristine: bytes, statement: str, match: str
) -> None:
    (tmp_path / "keyhole.db").write_bytes(pristine)
    changed(tmp_path, statement)
    with pytest.raises(FileError, match=match):
        verify(tmp_path)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("start", "prior_precision", 9.0),
        ("start", "arms", ["A", "B"]),
        ("start", "policy", {"name": "Greedy"}),
        ("start", "run", "another"),
        ("settings", "settings", {**PLAIN, "mode": "shadow"}),
        ("decision", "served", "A"),
        ("decision", "seq", 9),
        ("decision", "at", 1.0),
        ("reward", "seq", 4),
    ],
)
def test_a_changed_description_is_found(
    tmp_path: Path, pristine: bytes, kind: str, field: str, value: Any
) -> None:
    (tmp_path / "keyhole.db").write_bytes(pristine)
    seq, body = row_at(tmp_path, kind)
    row = msgspec.json.decode(body)
    row[field] = value
    changed(tmp_path, "UPDATE log SET body = ? WHERE seq = ?", msgspec.json.encode(row), seq)
    with pytest.raises(FileError, match="home"):
        verify(tmp_path)


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        (
            "UPDATE log SET body = replace(body, '\"A\"', '\"B\"')",
            "differs between archive and database",
        ),
        ("DELETE FROM log", "which is open"),
    ],
)
def test_copies_of_archived_rows_are_compared(tmp_path: Path, statement: str, match: str) -> None:
    """The service answers and learns from those that `compact` has left in the database."""
    played(tmp_path, LEARNS_LATE, rounds=6)
    compact(tmp_path)
    verify(tmp_path)
    changed(tmp_path, statement)
    with pytest.raises(FileError, match=match):
        verify(tmp_path)


def as_on_another_machine(folder: Path, factor: float) -> None:
    """Have the snapshot be of another kind of machine, with all means times a factor."""
    name = "SELECT seq, model FROM snapshot ORDER BY seq DESC LIMIT 1"
    with Service(folder) as service:
        [(seq, model)] = service.store.query(name)
        kept = msgspec.msgpack.decode(model, type=packing.Packed)
        arrays = read_arrays(kept.bandit)
        arrays["mean"] = arrays["mean"] * factor
        path = folder / "other.npz"
        write_arrays(path, arrays)
        other = msgspec.msgpack.encode(packing.Packed(path.read_bytes(), kept.terms))
    mark = "UPDATE snapshot SET fingerprint = 'of another', model = ?, sha256 = ? WHERE seq = ?"
    changed(folder, mark, other, hashlib.sha256(other).digest(), seq)


@pytest.mark.parametrize("settings", [PLAIN, {**NAMED, "reward": {}}])
def test_a_snapshot_of_another_kind_of_machine_is_compared_but_for_rounding(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    played(tmp_path, settings)
    as_on_another_machine(tmp_path, 1.0 + 1e-12)
    [found] = verify(tmp_path)
    assert found.snapshots > 0
    as_on_another_machine(tmp_path, -1.0)
    with pytest.raises(FileError, match="is not the state of the rows"):
        verify(tmp_path)


@pytest.mark.parametrize("settings", [PLAIN, LEARNS_LATE, NAMED])
@pytest.mark.parametrize(
    "statement", ["DELETE FROM snapshot", "UPDATE snapshot SET model = zeroblob(length(model))"]
)
@pytest.mark.filterwarnings("ignore:the snapshot of loop 'home':keyhole.KeyholeWarning")
def test_a_loop_without_a_snapshot_comes_back_from_the_archive(
    tmp_path: Path, settings: dict[str, Any], statement: str
) -> None:
    played(tmp_path, settings)
    compact(tmp_path, keep=0.0)
    with Service(tmp_path) as service:
        request = DecideRequest(
            context=[0.5, 1.0] if "dim" in settings else {"age": 3.0}, event_id="late"
        )
        service.decide("home", request)
        service.wait(service.loop("home").unit)
        state = service.loop("home").model()
    changed(tmp_path, statement)
    with Service(tmp_path) as service:
        loop = service.loop("home")
        assert loop.model() == state
        assert service.decide("home", request).is_replay
        assert loop.reward("late", 1.0).status in ("counted", "held")


def test_a_damaged_snapshot_is_told(tmp_path: Path) -> None:
    played(tmp_path, PLAIN)
    changed(tmp_path, "UPDATE snapshot SET model = zeroblob(length(model))")
    with pytest.warns(KeyholeWarning, match="is damaged"), Service(tmp_path) as service:
        assert np.isfinite(service.loop("home").bandit.posterior.mean).all()


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("UPDATE log SET kind = CAST(x'ff64' AS TEXT) WHERE seq = 9", "row 9 .*kind of the table"),
        ("UPDATE log SET event = CAST(x'6fad' AS TEXT) WHERE seq = 9", "row 9 .*table log"),
        ("UPDATE event SET event = CAST(x'6fad' AS TEXT) WHERE seq = 9", "first at event 'o-4'"),
        ("UPDATE event SET arm = CAST(x'c1' AS TEXT) WHERE seq = 9", "row 9 .*column arm"),
        ("UPDATE reward SET reward_id = CAST(x'ff' AS TEXT) WHERE seq = 5", "came with row 5"),
        ("UPDATE loop SET run = CAST(x'ff' AS TEXT)", "its name or run"),
        (
            "UPDATE log SET body = CAST(replace(body, x'6f2d', x'6fad') AS BLOB) WHERE seq = 9",
            "row 9 .*damaged",
        ),
        (
            "UPDATE log SET body = CAST(replace(body, x'6f2d', x'6fad') AS BLOB) WHERE seq = 5",
            "row 5 .*damaged",
        ),
        ("UPDATE event SET event = x'6f' WHERE seq = 9", "table of events does not fit"),
        ("UPDATE reward SET value = 'x' WHERE seq = 5", "table of rewards does not fit"),
        (
            'UPDATE log SET body = CAST(replace(CAST(body AS TEXT), \'"event":"o-1"\', '
            "'\"event\":null') AS BLOB) WHERE kind = 'reward' AND event = 'o-1'",
            "row 5 .*it has no event",
        ),
    ],
)
def test_a_field_that_cannot_be_read_is_named_by_loop_and_row(
    tmp_path: Path, pristine: bytes, statement: str, match: str
) -> None:
    (tmp_path / "keyhole.db").write_bytes(pristine)
    changed(tmp_path, statement)
    with pytest.raises(FileError, match=match) as caught:
        verify(tmp_path)
    assert "loop 'home'" in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE loop SET run = CAST(x'ff' AS TEXT)",
        "UPDATE loop SET settings = x'7bff'",
        "UPDATE log SET body = CAST(replace(body, x'6f2d', x'6fad') AS BLOB) WHERE kind = 'reward'",
        "UPDATE log SET kind = CAST(x'ff' AS TEXT) WHERE seq = 1",
        "UPDATE log SET kind = CAST(x'ff' AS TEXT) WHERE seq = 9",
    ],
)
def test_a_loop_with_a_damaged_text_is_not_loaded(
    tmp_path: Path, pristine: bytes, statement: str
) -> None:
    (tmp_path / "keyhole.db").write_bytes(pristine)
    changed(tmp_path, "DELETE FROM snapshot")
    changed(tmp_path, statement)
    with Service(tmp_path) as service, pytest.raises(FileError, match="loop 'home'"):
        service.loop("home")


@pytest.mark.parametrize("value", ["x", "-1", "", "14", '{"last": -1}'])
def test_a_note_that_no_compaction_has_written_is_named(tmp_path: Path, value: str) -> None:
    played(tmp_path, PLAIN, rounds=6)
    compact(tmp_path, keep=0.0)
    changed(tmp_path, "UPDATE note SET value = ?", value)
    for call in (verify, Service):
        with pytest.raises(FileError, match=r"the note 'archived 1' .* restore the database"):
            call(tmp_path)


def edited(folder: Path, kind: str, nth: int = 0, /, **fields: Any) -> int:
    """Change fields of a row, or leave out those that are None; return its number."""
    seq, body = row_at(folder, kind, nth)
    row = {**msgspec.json.decode(body), **fields}
    row = {name: value for name, value in row.items() if value is not None}
    content = msgspec.json.encode(row) + b"\n"
    changed(folder, "UPDATE log SET body = ? WHERE seq = ?", content, seq)
    return seq


def refused(folder: Path, match: str) -> None:
    with pytest.raises(FileError, match=match):
        verify(folder)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"arms": ["Z"]}, "its arm 'A' is none of"),
        ({"arms": []}, r"its arms are \[\]"),
        ({"arms": ["A", "B", "B"]}, "its arms are"),
        ({"arms": ["A", "Z"]}, r"the loop has no arms \['Z'\]"),
        ({"arm": "Z"}, "its arm 'Z' is none of"),
        ({"arm": "Z", "arms": ["Z"]}, r"the loop has no arms \['Z'\]"),
    ],
)
def test_candidates_of_a_loop_that_is_off_are_its_arms(
    tmp_path: Path, fields: dict[str, Any], match: str
) -> None:
    played(tmp_path, {**PLAIN, "mode": "off"}, rounds=4)
    seq = edited(tmp_path, "served", 2, **fields)
    changed(tmp_path, "UPDATE event SET arm = ? WHERE seq = ?", fields.get("arm", "A"), seq)
    refused(tmp_path, f"row {seq} .*{match}")


def test_the_arm_that_was_served_is_a_candidate(tmp_path: Path) -> None:
    played(tmp_path, {**PLAIN, "mode": "shadow"}, rounds=4)
    seq = edited(tmp_path, "decision", served="Z")
    changed(tmp_path, "UPDATE event SET arm = 'Z' WHERE seq = ?", seq)
    refused(tmp_path, f"row {seq} .*its arm 'Z' is none of")


OFFERS: dict[str, Any] = {
    "arms": {"A": {"price": 1.0}, "B": {"price": 1.0}},
    "features": {"numbers": ["age"], "arms": {"numbers": ["price"]}},
}


@pytest.mark.parametrize("sharing", ["per-arm", "shared", "hybrid"])
@pytest.mark.parametrize("name", ["y", "place"])
def test_observations_have_a_row_for_each_candidate_or_one(
    tmp_path: Path, sharing: str, name: str
) -> None:
    """A draw comes out the same from a row that is there twice."""
    for settings, n_rows in ((PLAIN, 1), (OFFERS, 2)):
        folder = tmp_path / str(n_rows)
        policy = {"name": "ThompsonSampling", "sharing": sharing}
        with Service(folder) as service:
            service.create("home", {**settings, "policy": policy})
            context: Any = [1.0, 0.5] if settings is PLAIN else {"age": 3.0}
            service.decide("home", DecideRequest(context=context, event_id="o-1"))
        verify(folder)
        _, body = row_at(folder, "decision")
        y = msgspec.json.decode(body)["y"]
        assert len(y) == n_rows
        wrong: Any = {"y": y * 3 if n_rows == 1 else y[:1], "place": 2}[name]
        refused(folder, f"row {edited(folder, 'decision', **{name: wrong})} ")


class Ticking:
    """A clock that goes on whenever it is read."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        self.time += 0.37
        return self.time


@pytest.mark.parametrize("learn", ["at_end", "provisional"])
def test_the_end_of_an_event_follows_from_its_settings(tmp_path: Path, learn: str) -> None:
    """Those of events that have ended are in no table."""
    clock = Ticking()
    reward = {"learn": learn, "default": 0.0, "wait": 10.0}
    with Service(tmp_path / "sound", now=clock) as service:
        loop = service.create("home", {**PLAIN, "reward": reward})
        for k in range(4):
            defer = k > 1
            request = DecideRequest(context=[1.0, 0.5], event_id=f"o-{k}", defer=defer)
            service.decide("home", request)
        for name in ("o-2", "o-3"):
            loop.activate(name)
        loop.reward("o-1", 1.0)
        service.wait(loop.unit)
        clock.time += 100.0
        assert service.tick() == 4
    verify(tmp_path / "sound")
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("decision", {"due": None}, "its due is None"),
        ("decision", {"due": 1_000_020.0}, "its due is 1000020.0, and at most"),
        ("activate", {"due": None}, "its due is None"),
        ("activate", {"due": 1_000_020.0}, "its due is 1000020.0, and at most"),
    ]
    for k, (kind, fields, match) in enumerate(cases):
        shutil.copytree(tmp_path / "sound", tmp_path / str(k))
        refused(tmp_path / str(k), f"row {edited(tmp_path / str(k), kind, **fields)} .*{match}")


def test_an_event_that_was_not_deferred_is_not_activated(tmp_path: Path) -> None:
    with Service(tmp_path) as service:
        loop = service.create("home", PLAIN)
        service.decide("home", DecideRequest(context=[1.0, 0.5], event_id="o-1", defer=True))
        loop.activate("o-1")
        loop.reward("o-1", 1.0)
    verify(tmp_path)
    edited(tmp_path, "decision", deferred=False)
    refused(tmp_path, "row 4 .*its event was not deferred")


def test_an_event_ends_when_it_is_due(tmp_path: Path) -> None:
    now = [1_000.0]
    with Service(tmp_path, now=lambda: now[0]) as service:
        service.create("home", {**PLAIN, "reward": {"learn": "at_end", "wait": 10.0}})
        service.decide("home", DecideRequest(context=[1.0, 0.5], event_id="o-1"))
        service.wait(service.loop("home").unit)
        now[0] = 1_010.0
        assert service.tick() == 1
    verify(tmp_path)
    seq = edited(tmp_path, "due", at=1_009.0)
    changed(tmp_path, "UPDATE log SET at = 1009.0 WHERE seq = ?", seq)
    refused(tmp_path, f"row {seq} .*its event is due at 1010.0")


@pytest.mark.parametrize("place", [0, 7, -1])
def test_a_row_without_its_newline_is_found(tmp_path: Path, pristine: bytes, place: int) -> None:
    """An archive or an export would have it on one line with the next."""
    (tmp_path / "keyhole.db").write_bytes(pristine)
    seq, body = row_at(tmp_path, "decision", place)
    changed(tmp_path, "UPDATE log SET body = ? WHERE seq = ?", body.rstrip(b"\n"), seq)
    refused(tmp_path, f"row {seq} does not end in a newline")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM note",
        "UPDATE note SET name = 'archived 2'",
        "UPDATE note SET value = '{\"last\":1}'",
    ],
)
def test_a_database_knows_which_rows_were_archived(tmp_path: Path, statement: str) -> None:
    """A page of its log would leave them out, and not answer that they are elsewhere."""
    played(tmp_path, PLAIN, rounds=6)
    compact(tmp_path)  # copies of young events stay, among them the last row
    changed(tmp_path, statement)
    refused(tmp_path, "lacks rows of loop 'home' from")
    with pytest.raises(FileError, match="lacks rows of loop 'home'"):
        Service(tmp_path)


def compacted_twice(folder: Path) -> None:
    """Leave copies of events of one time, and not those before, which a first compaction left."""
    now = [0.0]
    opened = partial(Service, now=lambda: now[0])
    for k in range(3):
        with opened(folder) as service:
            loop = service.create("home", PLAIN)
            for name in (f"o-{k}", f"p-{k}"):
                service.decide("home", DecideRequest(context=[1.0, 0.5], event_id=name))
            loop.reward(f"o-{k}", 1.0)
        with patch("keyhole.service.compacting.Service", opened):
            compact(folder, keep=(15.0, 5.0, 15.0)[k])
        now[0] += 10.0


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("DELETE FROM log", "lacks row"),
        ("DELETE FROM log WHERE event = 'o-2'", "lacks row .* of event 'o-2'"),
        (
            "DELETE FROM log WHERE event = 'p-2' AND kind = 'decision'",
            "lacks row .* of event 'p-2'",
        ),
        ("DELETE FROM log WHERE event = 'o-2' AND kind = 'reward'", "lacks row .* of event 'o-2'"),
    ],
)
def test_copies_of_open_events_without_an_end_are_there(
    tmp_path: Path, statement: str, match: str
) -> None:
    """Without them rewards of these events would be late."""
    compacted_twice(tmp_path)
    verify(tmp_path)
    changed(tmp_path, statement)
    refused(tmp_path, match)


def test_copies_that_were_deleted_do_not_come_back(tmp_path: Path) -> None:
    """Their rewards were answered as late."""
    compacted_twice(tmp_path)
    archive = archived.Archive(str(tmp_path), "home")
    body = next(body for _, _, body in archive.rows() if b'"o-0"' in body)
    row = msgspec.json.decode(body)
    statement = "INSERT INTO log VALUES (1, ?, ?, 'decision', 'o-0', ?)"
    changed(tmp_path, statement, row["seq"], row["at"], body)
    refused(tmp_path, "has row 3 of event 'o-0', .*has deleted it")


@pytest.mark.parametrize("keep", [math.inf, -math.inf, math.nan, 1e9])
def test_a_compaction_notes_any_time(tmp_path: Path, keep: float) -> None:
    played(tmp_path, PLAIN, rounds=4)
    for _ in range(2):
        compact(tmp_path, keep=keep)
        verify(tmp_path)


def connected(folder: Path, statement: str) -> list[Any]:
    """Return the first column of a query."""
    connection = sqlite3.connect(folder / "keyhole.db")
    found = [one for one, *_ in connection.execute(statement)]
    connection.close()
    return found


TERMS = {"plain": PLAIN, "units": {**PLAIN, "intercept": True, "standardize": True}}


@pytest.fixture(scope="module", params=TERMS)
def changed_terms(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, bytes]:
    """A database with rewards of every kind, one amended and one forgotten, and no snapshot."""
    folder = tmp_path_factory.mktemp(request.param)
    settings = {**TERMS[request.param], "reward": {"learn": "provisional", "default": 0.0}}
    rng = np.random.default_rng(1)
    with Service(folder) as service:
        loop = service.create("home", settings)
        for k in range(60):
            x = rng.standard_normal(2).tolist()
            service.decide("home", DecideRequest(context=x, event_id=f"o-{k}"))
            if k % 2:
                loop.reward(f"o-{k}", float(k % 3) + 0.5)
        loop.forget("o-7")
    changed(folder, "DELETE FROM snapshot")
    verify(folder)
    return request.param, (folder / "keyhole.db").read_bytes()


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("forget", "terms", []),
        ("forget", "terms", "value"),
        ("forget", "terms", "x"),
        ("amend", "term", None),
        ("amend", "term", "value"),
        ("amend", "term", "x"),
        ("counted", "term", "value"),
        ("counted", "term", "x"),
        ("reward", "x", [1.0, 0.3, 0.3]),
        ("reward", "counted", 0.25),
        ("reward", "key", "other-1.0"),
        ("reward", "weight", 0.5),
        ("reward", "dropped", True),
    ],
)
def test_terms_that_do_not_follow_are_found(
    tmp_path: Path, changed_terms: tuple[str, bytes], kind: str, name: str, value: Any
) -> None:
    """What forgetting and amending take out of the sums is written down, and could be changed."""
    which, content = changed_terms
    (tmp_path / "keyhole.db").write_bytes(content)
    if kind == "counted" and which == "plain":
        kind, name, value = "reward", "seen", "AAAAAAAA8D8AAAAAAADwPw=="  # no reward waits there
    seq, body = row_at(tmp_path, kind, -1)
    row = msgspec.json.decode(body)
    if value in ("value", "x"):  # of a term
        term = row[name][0] if name == "terms" else row[name]
        term[value] = 9.0 if value == "value" else [9.0] * len(term["x"])
    elif value is None:
        del row[name]
    else:
        row[name] = value
    changed(
        tmp_path, "UPDATE log SET body = ? WHERE seq = ?", msgspec.json.encode(row) + b"\n", seq
    )
    with pytest.raises(FileError, match=f"row {seq} "):
        verify(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER lose BEFORE INSERT ON reward BEGIN SELECT RAISE(IGNORE); END",
        "DROP INDEX event_due",
        "CREATE TABLE more(x)",
    ],
)
def test_other_tables_indexes_and_triggers_are_refused(
    tmp_path: Path, pristine: bytes, statement: str
) -> None:
    (tmp_path / "keyhole.db").write_bytes(pristine)
    changed(tmp_path, statement)
    with pytest.raises(FileError, match="other tables, indexes or triggers"):
        verify(tmp_path)
    with pytest.raises(FileError, match="other tables, indexes or triggers"):
        Service(tmp_path)


def test_a_snapshot_is_compared_by_what_it_says(tmp_path: Path, pristine: bytes) -> None:
    """Versions of Python write other headers of its files around the same content."""
    (tmp_path / "keyhole.db").write_bytes(pristine)
    connection = sqlite3.connect(tmp_path / "keyhole.db")
    [(model,)] = connection.execute("SELECT model FROM snapshot")
    found = msgspec.msgpack.decode(model, type=packing.Packed)
    header = found.bandit.index(b"PK\x03\x04")
    version = found.bandit[header + 4]
    found.bandit = b"".join(
        (found.bandit[: header + 4], bytes([version - 1]), found.bandit[header + 5 :])
    )
    model = msgspec.msgpack.encode(found)
    checksum = hashlib.sha256(model).digest()
    connection.execute("UPDATE snapshot SET model = ?, sha256 = ?", (model, checksum))
    connection.commit()
    connection.close()
    [other] = verify(tmp_path)
    assert other.snapshots == 1
