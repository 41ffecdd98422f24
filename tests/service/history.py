"""The history checker: does what clients were answered stand in the database, and nothing else?

It runs after every fault test. It reads the file itself, and compares

- the log with itself: no gap, no event decided twice, no reward counted twice;
- the log with its index: the tables of events and rewards are those of the rows;
- the log with the clients: all that was acknowledged is there once and unchanged, and retries got
  the same answer;
- the log with the model: every draw and probability comes out again, the state is the same from row
  1, from each snapshot and in memory, to the bit, and its sums are those of the learned events.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

import apsw
import numpy as np

from keyhole.online import LoggedBandit
from keyhole.service import Service
from keyhole.service.events import EventCache
from keyhole.service.fold import LoopReplay
from keyhole.service.folder import DATABASE
from keyhole.service.journal import LoopJournal
from keyhole.service.packing import packed, unpacked
from keyhole.service.reader import LoopRow
from keyhole.service.reading import WholeFold
from keyhole.service.store import Store
from tests.service.driving import Answer, Ask
from tests.service.rebuilding import DEFERRED, FORGOTTEN, Known, Rebuilt, tables_of

History = list[tuple[Ask, Answer | None]]


def check(
    folder: str, history: History | None = None, service: Service | None = None
) -> dict[str, Rebuilt]:
    """Raise `AssertionError` unless a database keeps what clients were promised.

    Parameters
    ----------
    folder : str
        The folder of the service.
    history : list of (ask, answer), optional
        What was asked, and the answer, or None if none came.
    service : Service, optional
        The service, if it is open: its memory is compared as well.

    Returns
    -------
    dict of str to Rebuilt
        What the log of each loop comes to.
    """
    if service is not None:
        service.wait(service.writer.submitted)  # memory is ahead by what waits
    path = os.path.join(folder, DATABASE)
    database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        assert database.pragma("integrity_check") == "ok"
        loops = list(database.execute("SELECT id, name, settings, draw_key, run FROM loop"))
        rebuilt = {}
        for number, name, settings, key, run in loops:
            found = rebuilt[name] = check_index(database, number)
            assert json.loads(settings) == found.settings
            memory = None if service is None else service.loop(name).model()
            check_model(path, number, name, (key, run), found, memory)
    finally:
        database.close()
    if history is not None:
        check_clients(rebuilt, history)
    return rebuilt


def check_index(database: apsw.Connection, number: int) -> Rebuilt:
    """Return what the rows of a loop come to; its tables must say the same.

    Parameters
    ----------
    database : Connection
        The database.
    number : int
        The number of the loop.
    """
    listed = database.execute(
        "SELECT seq, at, kind, event, body FROM log WHERE loop = ? ORDER BY seq", (number,)
    )
    found = Rebuilt(list(listed))
    events, rewards = tables_of(database, number)
    assert events == {name: one.as_columns() for name, one in found.events.items()}
    assert rewards == {
        (name, reward): value
        for name, one in found.events.items()
        for reward, value in one.rewards.items()
    }
    return found


# -- the model ------------------------------------------------------------------------------------


def check_model(
    path: str,
    number: int,
    name: str,
    secrets: tuple[bytes, str],
    found: Rebuilt,
    memory: bytes | None,
) -> None:
    """Check the state of a loop: from row 1, from each snapshot, in memory; and its sums.

    Parameters
    ----------
    path : str
        The database.
    number, name
        The number and the name of the loop.
    secrets : tuple of bytes and str
        The key of its draws, and its run.
    found : Rebuilt
        What its rows come to.
    memory : bytes, optional
        The state in memory.
    """
    store = Store(path)
    try:
        bandit = replay(store, number, name, secrets, verifies=True)
        state = packed(bandit)
        assert packed(replay(store, number, name, secrets)) == state, "a quick replay differs"
        for [seq] in store.query("SELECT seq FROM snapshot WHERE loop = ?", (number,)):
            from_it = replay(store, number, name, secrets, after=seq)
            assert packed(from_it) == state, f"the replay from the snapshot at {seq} differs"
        if memory is not None:
            assert memory == state, "memory is not the replay of the log"
    finally:
        store.close()
    check_sums(bandit, found)


def replay(
    store: Store,
    number: int,
    name: str,
    secrets: tuple[bytes, str],
    *,
    after: int = 0,
    verifies: bool = False,
) -> LoggedBandit:
    """Return the bandit of a loop, from row 1 or from the snapshot at a row.

    Parameters
    ----------
    store : Store
        The database.
    number, name
        The number and the name of the loop.
    secrets : tuple of bytes and str
        The key of its draws, and its run.
    after : int, default 0
        The row of a snapshot, or 0.
    verifies : bool, default False
        Make every decision again.
    """
    key, run = secrets
    if verifies:  # as `verify` does, with the events of each row's time
        whole = WholeFold(store, LoopRow(number, name, key))
        for row in store.rows(number):
            whole.step(*row)
        made: LoggedBandit = whole.replay.made()
        return made
    events = EventCache(lambda event: store.event(number, event), 1_000_000)
    journal = LoopJournal(number, name, store, events, lambda: 0.0)
    bandit = None
    if after:
        [(checksum, model)] = store.query(
            "SELECT sha256, model FROM snapshot WHERE loop = ? AND seq = ?", (number, after)
        )
        assert hashlib.sha256(model).digest() == checksum
        bandit = unpacked(model, journal, key, run)
        journal.seq = after
    return LoopReplay(journal, key, bandit).fold(store.rows(number, after))


def check_sums(bandit: LoggedBandit, found: Rebuilt) -> None:
    """Check that the sums are those of the learned events, each once.

    Parameters
    ----------
    bandit : LoggedBandit
        The bandit.
    found : Rebuilt
        What the rows come to.
    """
    n = sum(bandit.counts.values()) + sum(bandit.waiting.values())
    assert n == len(found.learned), f"the sums have {n} events, and the log {len(found.learned)}"
    if not bandit.is_plain or found.settings["features"] is not None:
        return
    matrix, moment, counts = found.sums([str(arm) for arm in bandit.arms], bandit.dim)
    posterior = bandit.posterior
    prior = bandit.policy.prior_precision * np.eye(bandit.dim)
    np.testing.assert_allclose(posterior.precision, matrix + prior, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(posterior.moment, moment, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(posterior.count, counts)


# -- the clients ----------------------------------------------------------------------------------


def check_clients(rebuilt: dict[str, Rebuilt], history: History) -> None:
    """Check that all that was acknowledged stands, and that only what was asked is there.

    Parameters
    ----------
    rebuilt : dict of str to Rebuilt
        What the log of each loop comes to.
    history : list of (ask, answer)
        What was asked and answered.
    """
    first: dict[tuple[str, str], Answer] = {}
    for ask, answer in history:
        if answer is None or "refused" in answer:
            continue
        if ask["loop"] not in rebuilt:
            raise AssertionError(f"{ask['loop']} was made, and is lost")
        found = rebuilt[ask["loop"]]
        if ask["do"] == "decide":
            given = {key: value for key, value in answer.items() if key != "is_replay"}
            same = first.setdefault((ask["loop"], given["event_id"]), given)
            assert same == given, f"a retry got {given} in place of {same}"
        globals()[f"_check_{ask['do']}"](found, ask, answer)
    _check_asked(rebuilt, [ask for ask, _ in history])


def _known(found: Rebuilt, event: str) -> Known:
    assert event in found.events, f"event {event} was acknowledged, and is lost"
    return found.events[event]


def _check_create(found: Rebuilt, ask: Ask, answer: Answer) -> None:
    given = dict(ask["settings"])
    reward = given.pop("reward", {})
    assert any(
        reward.items() <= one["reward"].items() and given.items() <= one.items()
        for one in found.all_settings
    ), f"{ask} was acknowledged, and is lost"
    assert answer["version"] >= 2


def _check_decide(found: Rebuilt, ask: Ask, answer: Answer) -> None:
    known = _known(found, answer["event_id"])
    row = known.row
    assert answer["action"] == known.arm
    if row["kind"] == "decision":
        assert answer["version"] == row["version"]
        assert answer["score"] == row["score"]
        if row.get("served") is None:
            assert answer["probability"] == row["probability"]
            total = sum(answer["probabilities"].values())
            assert abs(total - 1.0) < 1e-9
            off = answer["probabilities"][answer["action"]] - row["probability"]
            assert abs(off) < 1e-12
    if ask["request"].get("event_id"):
        assert answer["event_id"] == ask["request"]["event_id"]


def _check_reward(found: Rebuilt, ask: Ask, answer: Answer) -> None:
    known = _known(found, ask["event"])
    assert ask["id"] in known.rewards, f"{ask} was acknowledged, and is lost"
    value, seq, counts = known.rewards[ask["id"]]
    if answer["status"] != "duplicate":
        assert value == ask["value"]
        assert counts == (answer["status"] not in ("late", "ignored"))
        assert seq <= answer["version"]


def _check_activate(found: Rebuilt, ask: Ask, _: Answer) -> None:
    assert _known(found, ask["event"]).state != DEFERRED


def _check_forget(found: Rebuilt, ask: Ask, _: Answer) -> None:
    assert _known(found, ask["event"]).state == FORGOTTEN


def _check_arms(found: Rebuilt, ask: Ask, _: Answer) -> None:
    for name in ask["arms"]:
        assert found.added_arms.count(name) == 1


def _check_asked(rebuilt: dict[str, Rebuilt], asks: Iterable[Ask]) -> None:
    """Check that no row tells of what nobody asked."""
    decided: set[tuple[str, Any]] = set()
    rewards: set[tuple[str, str, str, float]] = set()
    for ask in asks:
        if ask["do"] == "decide":
            decided.add((ask["loop"], ask["request"].get("event_id")))
        if ask["do"] == "reward":
            rewards.add((ask["loop"], ask["event"], ask["id"], ask["value"]))
    for loop, found in rebuilt.items():
        for event, known in found.events.items():
            assert (loop, event) in decided or (loop, None) in decided, f"nobody asked {event}"
            for name, (value, *_) in known.rewards.items():
                assert (loop, event, name, value) in rewards, f"nobody sent {event} {value}"
