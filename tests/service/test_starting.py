"""A start takes in pages of rewards in one call each, and comes to the state in memory, to the bit.

The negative controls alter a row: a start must not pass over what it does not read one by one.
"""

from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from keyhole.core import Posterior
from keyhole.errors import FileError
from keyhole.online import rows
from keyhole.service import DecideRequest, Service, pages, verify
from keyhole.service.fold import LoopReplay
from keyhole.service.store import Store
from tests.service.clocks import Moved

PLAIN: dict[str, Any] = {"arms": ["A", "B", "C"], "dim": 3}
RECORDS: dict[str, Any] = {
    "arms": ["A", "B"],
    "features": {"numbers": ["age"], "categories": {"device": ["mobile", "desktop"]}},
}
AT_ONCE = {"learn": "at_once"}
AT_END = {"default": 0.0, "wait": "PT1H", "learn": "at_end"}
PROVISIONAL = {"default": 0.0, "wait": "PT1H", "learn": "provisional"}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a log of a few rows take several pages."""
    monkeypatch.setattr(pages, "SIZE", 7)


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the kinds of the rows that are taken in one by one."""
    kinds: list[str] = []
    step = LoopReplay.step

    def noting(self: LoopReplay, seq: int, kind: str, body: bytes) -> None:
        kinds.append(kind)
        step(self, seq, kind, body)

    monkeypatch.setattr(LoopReplay, "step", noting)
    return kinds


def lived(folder: Path, settings: dict[str, Any], n: int = 60) -> bytes:
    """Write a log of n decisions, with rewards some decisions later, and return the state."""
    random, clock = np.random.default_rng(1), Moved()
    with Service(folder, now=clock) as service:
        loop = service.create("home", settings)
        for k in range(n):
            context: Any = random.standard_normal(3).tolist()
            if "features" in settings:
                context = {"age": context[0], "device": "mobile" if k % 3 else "desktop"}
            service.decide("home", DecideRequest(context=context, event_id=f"e{k}"))
            if k >= 9:
                loop.reward(f"e{k - 9}", float(random.standard_normal()))
        clock.time += 7200.0
        service.tick()
        state = loop.model()
    without_snapshots(folder)
    return state


def without_snapshots(folder: Path) -> None:
    """Have the next start take in all rows."""
    execute(folder, "DELETE FROM snapshot")


def execute(folder: Path, statement: str, *values: Any) -> Any:
    """Change a database behind the service's back, or read it."""
    connection = apsw.Connection(str(folder / "keyhole.db"))
    found = connection.execute(statement, values).get
    connection.close()
    return found


def started(folder: Path) -> bytes:
    """Return the state of a service that has just started."""
    with Service(folder) as service:
        return service.loop("home").model()


@pytest.mark.parametrize("reward", [AT_ONCE, AT_END])
def test_a_start_learns_whole_pages(
    tmp_path: Path, stepped: list[str], reward: dict[str, Any]
) -> None:
    state = lived(tmp_path, {**PLAIN, "reward": reward})
    assert started(tmp_path) == state
    assert stepped == ["start"]


@pytest.mark.parametrize(
    "changed",
    [
        {"reward": PROVISIONAL},  # every reward amends
        {"mode": "shadow", "baseline": "B"},  # of arms that were served instead
        {"policy": {"name": "ThompsonSampling", "sharing": "shared"}},
        {"policy": {"name": "ThompsonSampling", "sharing": "hybrid"}},  # is not plain
        {"policy": {"name": "ThompsonSampling", "v": "learned"}},
        {"intercept": True},  # rewards wait for their zero
        RECORDS,  # have units
    ],
    ids=str,
)
def test_a_start_comes_to_the_state_in_memory(tmp_path: Path, changed: dict[str, Any]) -> None:
    plain = {} if "features" in changed else PLAIN
    state = lived(tmp_path, {**plain, "reward": AT_ONCE, **changed})
    assert started(tmp_path) == state
    without_snapshots(tmp_path)
    [verified] = verify(tmp_path)
    assert verified.learned > 0


def test_rows_that_are_no_rewards_are_taken_in_at_their_place(
    tmp_path: Path, stepped: list[str]
) -> None:
    random = np.random.default_rng(2)
    with Service(tmp_path) as service:
        loop = service.create("home", PLAIN)
        for k in range(80):
            context = random.standard_normal(3).tolist()
            service.decide("home", DecideRequest(context=context, event_id=f"e{k}"))
            loop.reward(f"e{k}", float(k % 5))
            if k == 20:
                loop.add_arms(["D"])
            if k == 30:
                loop.forget("e3")
            if k == 40:
                loop.remove_arms(["D"])
            if k == 50:
                loop.reward("e9", 2.0, "another")
        state = loop.model()
    without_snapshots(tmp_path)
    assert started(tmp_path) == state
    assert {"arms", "forget", "amend"} < set(stepped)
    assert len(stepped) < 40  # of 165 rows


def test_a_reward_in_pages_needs_no_other_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = lived(tmp_path, {**PLAIN, "reward": AT_ONCE})
    asked: list[str] = []
    query = Store.query

    def noting(self: Store, statement: str, values: tuple[Any, ...] = ()) -> Any:
        asked.append(statement)
        return query(self, statement, values)

    monkeypatch.setattr(Store, "query", noting)
    assert started(tmp_path) == state
    assert not [one for one in asked if "FROM event" in one or "seq = ?" in one]


# -- negative controls ----------------------------------------------------------------------------


def altered(folder: Path, seq: int, **fields: Any) -> None:
    """Replace fields of a row of a log."""
    body = execute(folder, "SELECT body FROM log WHERE seq = ?", seq)
    row: Any = rows.decoded(body)
    changed = rows.encoded(rows.converted({**rows.as_dict(row), **fields}, type(row)))
    execute(folder, "UPDATE log SET body = ? WHERE seq = ?", changed, seq)


def last_reward(folder: Path) -> tuple[int, rows.Reward]:
    """Return the last row of a reward."""
    seq = int(execute(folder, "SELECT max(seq) FROM log WHERE kind = 'reward'"))
    row: Any = rows.decoded(execute(folder, "SELECT body FROM log WHERE seq = ?", seq))
    return seq, row


@pytest.mark.parametrize("field", ["taken", "seen"])
def test_a_reward_that_does_not_fit_its_decision_is_found(tmp_path: Path, field: str) -> None:
    lived(tmp_path, {**PLAIN, "reward": AT_ONCE})
    seq, row = last_reward(tmp_path)
    other = {"taken": "A" if row.taken != "A" else "B", "seen": np.ones(3).tobytes()}
    altered(tmp_path, seq, **{field: other[field]})
    with pytest.raises(FileError, match=f"row {seq} .*observation are not those of event"):
        verify(tmp_path)


@pytest.mark.parametrize(
    "fields",
    [
        {"taken": "nobody"},
        {"seen": np.ones(2).tobytes()},
        {"seen": np.full(3, np.nan).tobytes()},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_reward_that_cannot_be_is_named_at_the_start(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    lived(tmp_path, {**PLAIN, "reward": AT_ONCE})
    seq, _ = last_reward(tmp_path)
    altered(tmp_path, seq, **fields)
    with Service(tmp_path) as service, pytest.raises(FileError, match=f"row {seq} "):
        service.loop("home")


def test_a_reward_of_an_event_that_was_learned_before_is_found(tmp_path: Path) -> None:
    lived(tmp_path, {**PLAIN, "reward": AT_ONCE})
    seq, _ = last_reward(tmp_path)
    body = execute(tmp_path, "SELECT body FROM log WHERE event = 'e0' AND kind = 'decision'")
    first = rows.decoded(body)
    assert isinstance(first, rows.Decision)
    altered(tmp_path, seq, event="e0", **first.learned_at())
    with pytest.raises(FileError, match=f"row {seq} .*came before"):
        verify(tmp_path)


@pytest.mark.parametrize("kind", ["decision", "reward"])
def test_a_row_that_is_missing_in_a_page_is_named(tmp_path: Path, kind: str) -> None:
    lived(tmp_path, {**PLAIN, "reward": AT_ONCE})
    seq = int(execute(tmp_path, "SELECT max(seq) - 20 FROM log WHERE kind = ?", kind))
    seq = int(execute(tmp_path, "SELECT min(seq) FROM log WHERE kind = ? AND seq > ?", kind, seq))
    execute(tmp_path, "DELETE FROM log WHERE seq = ?", seq)
    with Service(tmp_path) as service, pytest.raises(FileError, match=f"row {seq} .*is missing"):
        service.loop("home")


def test_a_reward_that_is_damaged_in_a_page_is_named(tmp_path: Path) -> None:
    lived(tmp_path, {**PLAIN, "reward": AT_ONCE})
    seq, _ = last_reward(tmp_path)
    execute(tmp_path, "UPDATE log SET body = CAST('{\"kind\":' AS BLOB) WHERE seq = ?", seq)
    with Service(tmp_path) as service, pytest.raises(FileError, match=f"row {seq} .*is damaged"):
        service.loop("home")


def test_a_batch_that_adds_up_sums_has_other_bits() -> None:
    """`learn_rows` is faster, and rounds otherwise: pages must not use it."""
    random = np.random.default_rng(3)
    y, rewards = random.standard_normal((50, 3)), random.standard_normal(50)
    parameters = random.integers(2, size=50)
    one_by_one, in_order, summed = (Posterior(n_parameters=2, dim=3) for _ in range(3))
    for k in range(50):
        one_by_one.learn_rows(parameters[k : k + 1], y[k : k + 1], rewards[k : k + 1])
    in_order.learn_in_order(parameters, y, rewards)
    summed.learn_rows(parameters, y, rewards)
    assert in_order.mean.tobytes() == one_by_one.mean.tobytes()
    assert summed.mean.tobytes() != one_by_one.mean.tobytes()
