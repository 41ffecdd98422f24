"""`keyhole verify`, `replay`, `compact` and `export` as commands: what they print and return."""

import json
from pathlib import Path

import apsw
import pytest

import keyhole as kh
from keyhole.service import DecideRequest, Service
from tests.cli.test_serving import run
from tests.service.http.serving import PLAIN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a service with three decisions, of which two have a reward."""
    with Service(tmp_path / "data") as service:
        loop = service.create("home", PLAIN)
        for k in range(3):
            service.decide("home", DecideRequest(context=[1.0, 0.5 * k], event_id=f"e-{k}"))
        for k in range(2):
            loop.reward(f"e-{k}", 1.0 + k)
    return tmp_path / "data"


def test_a_folder_is_verified(folder: Path) -> None:
    code, out, _ = run("verify", str(folder))
    assert code == 0
    assert "every decision, sum and index follows from the log" in out
    [found] = json.loads(run("verify", str(folder), "--json")[1])
    assert {name: found[name] for name in ("loop", "rows", "decisions", "learned")} == {
        "loop": "home",
        "rows": 7,
        "decisions": 3,
        "learned": 2,
    }


def test_a_wrong_row_is_told_with_exit_code_1(folder: Path) -> None:
    with apsw.Connection(str(folder / "keyhole.db")) as database:
        [(body,)] = database.execute("SELECT body FROM log WHERE seq = 4")
        row = json.loads(body)
        row["score"] += 1e-9
        changed = json.dumps(row).encode()
        database.execute("UPDATE log SET body = ? WHERE seq = 4", (changed,))
    code, out, err = run("verify", str(folder))
    assert (code, out) == (1, "")
    assert "row 4" in err
    assert "Traceback" not in err


def test_a_bandit_is_replayed_into_a_file(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "bandit.npz"
    code, out, _ = run("replay", str(folder), "--to", str(target), "--until", "6")
    assert (code, f"wrote {target}" in out) == (0, True)
    assert sum(kh.Bandit.load(target).counts.values()) == 1  # row 6 is the first reward


def test_a_log_is_compacted_and_exported(folder: Path, tmp_path: Path) -> None:
    code, out, _ = run("compact", str(folder), "--keep", "0")
    assert (code, out) == (0, "home: 7 rows archived, 0 stay in the database\n")
    for name in ("log.jsonl", "log.parquet"):
        code, out, _ = run("export", str(folder), str(tmp_path / name), "--loop", "home")
        assert (code, "wrote 7 rows" in out) == (0, True)
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["seq"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]


def test_compact_prints_warnings_as_lines(folder: Path) -> None:
    with apsw.Connection(str(folder / "keyhole.db")) as database:
        database.execute("UPDATE snapshot SET sha256 = x'00'")
    code, out, err = run("compact", str(folder), "--keep", "0")
    assert (code, out) == (0, "home: 7 rows archived, 0 stay in the database\n")
    assert err.startswith("warning: the snapshot of loop 'home' at row 7 is damaged (its checksum")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("verify", "nope"), "there is no service in nope"),
        (("export", "data", "log.txt"), "must end in"),
        (("export", "data", "log.jsonl", "--loop", "hme"), "loop must be one of home, got hme"),
        (("replay", "data", "--to", "b.npz", "--until", "99"), "until"),
        (("export", "empty", "log.jsonl"), "there is no loop in empty"),
        (("export", "two", "log.jsonl"), "loop must be given: one of home, shop"),
    ],
)
def test_what_cannot_be_done_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(folder.parent)
    for name, loops in (("empty", ()), ("two", ("home", "shop"))):
        with Service(name) as service:
            for loop in loops:
                service.create(loop, PLAIN)
    code, _, err = run(*words)
    assert code == 1
    assert says in err
    assert "Traceback" not in err
