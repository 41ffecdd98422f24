"""`kill -9` under load: what was acknowledged stands, the rest is there wholly or not at all."""

from pathlib import Path

import pytest

from keyhole.service.store import Store
from tests.service.history import check
from tests.service.killing import survive


def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path: Path) -> None:
    history = survive(str(tmp_path), kills=12, seed=1, enough=60)
    # The checker finds what is not right: an acknowledged event that is gone, ...
    store = Store(str(tmp_path / "keyhole.db"))
    try:
        [(loop, seq)] = store.query("SELECT loop, max(seq) FROM log GROUP BY loop LIMIT 1")
        store._writer.execute("DELETE FROM log WHERE loop = ? AND seq = ?", (loop, seq))
    finally:
        store.close()
    with pytest.raises(AssertionError):
        check(str(tmp_path), history)
