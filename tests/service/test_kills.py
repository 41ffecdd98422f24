"""`kill -9` under load: what was acknowledged stands, the rest is there wholly or not at all."""

from pathlib import Path

import pytest

from keyhole.service import Service
from keyhole.service.store import Store
from tests.service.driving import Ask, answered
from tests.service.history import History, check
from tests.service.killing import survive
from tests.service.killing_http import survive as survive_http

# A decision and a reward in a loop without time-outs: nothing is written after them.
DECIDE: Ask = {
    "do": "decide",
    "loop": "once",
    "request": {"context": [1.0, 2.0, 3.0], "event_id": "last"},
}
REWARD: Ask = {"do": "reward", "loop": "once", "event": "last", "value": 1.0, "id": "r"}


def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path: Path) -> None:
    history = survive(str(tmp_path), kills=12, seed=1, enough=60)
    with Service(str(tmp_path)) as service:
        last: History = [(ask, answered(service, ask)) for ask in (DECIDE, REWARD)]
    check(str(tmp_path), history + last)
    # The checker finds an acknowledged event that is gone, in a database that agrees with itself.
    cut(tmp_path, "last")
    check(str(tmp_path), history)
    with pytest.raises(AssertionError, match="event last was acknowledged, and is lost"):
        check(str(tmp_path), history + last)


def test_nothing_acknowledged_over_http_is_lost_by_a_kill(tmp_path: Path) -> None:
    assert survive_http(str(tmp_path), kills=2, seed=1, longest=0.3) > 20


def cut(folder: Path, event: str) -> None:
    """Delete the last event of a loop: its rows, what the tables have of it, and snapshots."""
    store = Store(str(folder / "keyhole.db"))
    try:
        [(loop, seq)] = store.query("SELECT loop, seq FROM event WHERE event = ?", (event,))
        for table in ("log", "event", "reward", "snapshot"):
            store._writer.execute(f"DELETE FROM {table} WHERE loop = ? AND seq >= ?", (loop, seq))
    finally:
        store.close()
