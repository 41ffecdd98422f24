"""Rows, fold and file are apart: any store of the same rows leads to the same bandit."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.online.log import Store, events, replaying, rows
from keyhole.online.log.events import Events
from keyhole.online.log.replaying import Own, Replay, folded
from keyhole.online.logged import LoggedBandit
from tests.online.test_log import LEARNERS, lived


class Table:
    """A store in memory: a table of (seq, event, body), as a database would have it."""

    name = "a table"

    def __init__(self) -> None:
        self.table: list[tuple[int, str | None, bytes]] = []
        self.states: dict[str, int] = {}
        self.broken = ""

    @property
    def seq(self) -> int:
        return len(self.table)

    def open(self) -> None: ...

    def close(self) -> None: ...

    def check_ready(self) -> None:
        if self.broken:
            raise kh.InvalidValue(self.broken)

    def give_up(self, reason: str) -> None:
        self.broken = reason

    def append(self, kind: Any, **fields: Any) -> None:
        self.append_all(kind, [fields])

    def append_all(self, kind: Any, many: list[dict[str, Any]]) -> None:
        for fields in many:
            row = kind(seq=self.seq + 1, at=time.time(), **fields)
            event = getattr(row, "event", None)
            self.table.append((row.seq, event, rows.encoded(row)))
            if event is not None:
                known = {"reward": events.LEARNED, "forget": events.FORGOTTEN}
                state = known.get(type(row).__name__.lower(), events.DECIDED)
                self.states[event] = max(self.states.get(event, 0), state)

    def state(self, event: str) -> int:
        return self.states.get(event, events.UNKNOWN)

    def rows_of(self, event: str) -> list[rows.AnyRow]:
        return [rows.decoded(body) for _, key, body in self.table if key == event]

    def __iter__(self) -> Any:
        return (rows.decoded(body) for _, _, body in self.table)


@pytest.mark.parametrize("name", ["learned v", "units"])
def test_another_store_leads_to_the_same_bandit(name: str) -> None:
    made = Table()
    assert isinstance(made, Store)
    store: Any = made
    bandit = lived(LEARNERS[name], store, own_rows=True)
    learned = [key for key, state in store.states.items() if state == events.LEARNED]
    for event in learned[:10]:
        bandit.forget(event)
    for event in learned[12:20]:
        bandit.amend(event, 0.25)
    for find in (None, store.rows_of):
        again = folded(store, store.name, Own(), find)
        assert again.without_log().to_bytes() == bandit.without_log().to_bytes()
    again.resume(store)
    again.forget(learned[20])
    assert folded(store, store.name, Own()).counts == again.counts


def test_a_replayed_bandit_takes_no_notes(tmp_path: Path) -> None:
    """What a log would be told of gathers nowhere."""
    path = tmp_path / "decisions.jsonl"
    bandit = lived(LEARNERS["units"], path, own_rows=False, rounds=30)
    again: Any = kh.Log(path).replay()
    for _ in range(60):
        again.learn(again.choose(np.ones(3)), 1.0)
    assert again._learned.fixed is None
    assert bandit._learned.fixed == []


def test_choices_that_are_believed_lead_to_the_same_sums() -> None:
    store: Any = Table()
    bandit = lived(LEARNERS["units"], store, own_rows=False)
    replay = Replay("a table", Own(), verify=False)
    for row in store:
        replay.take(row)
    assert isinstance(replay.bandit, LoggedBandit)
    for mine, theirs in zip(replay.bandit.posterior.state, bandit.posterior.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert replay.bandit.counts == bandit.counts
    decision = bandit.choose([0.1, 0.2, 0.3])
    assert replay.bandit._lineage.decisions == bandit._lineage.decisions - 1
    assert decision.id == f"{replay.bandit._lineage.run}-{bandit._lineage.decisions}"


@pytest.mark.parametrize("name", ["learned v", "units", "epsilon"])
def test_old_decisions_are_looked_up(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "MOST_KEPT", 3)
    path = tmp_path / "decisions.jsonl"
    bandit = lived(LEARNERS[name], path, own_rows=True)
    vetoed = bandit.choose(np.ones(3)).instead("A")
    bandit.learn(vetoed, 1.0)
    for _ in range(6):
        bandit.choose(np.ones(3))
    bandit.learn(vetoed, 2.0, again=True)
    bandit.forget(vetoed.id)
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()
    bandit.log.close()
    kh.Bandit.from_log(path)


# -- the index -------------------------------------------------------------------------------------


def test_ids_of_runs_and_batches_take_few_bytes() -> None:
    """17 each, and what arrays have in reserve; by their text it is some hundred."""
    import tracemalloc

    run = "0123456789abcdef"

    def size(ids: Any) -> float:
        found = Events()
        tracemalloc.start()
        for place, event in enumerate(ids):
            found.add(event, place)
            found.learn(event, place)
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.counts() == {"decided": 0, "learned": 5_000, "forgotten": 0}
        return used / 5_000

    assert size(f"{run}-{k}" for k in range(1, 5_001)) < 25.0
    assert size(f"{run}-{b}.{k}" for b in range(5) for k in range(1000)) < 25.0
    assert size(f"order {k}" for k in range(5_000)) < 400.0


def test_the_index_finds_what_was_put_in() -> None:
    run, found = "0123456789abcdef", Events()
    ids = [f"{run}-{k}" for k in (5, 6, 9, 3, 500, 7)]
    ids += [f"{run}-07", f"{run}-", f"{run}-5.0", f"{run}-5.2", f"{run}-5.1", f"{run}-²", "x", "-"]
    ids += [f"{run}-{10**30}", f"{run}x-1", run]
    for place, event in enumerate(ids):
        found.add(event, 10 * place)
    for place, event in enumerate(ids):
        assert found.place(event) == 10 * place
        assert found.state(event) == events.DECIDED
        found.learn(event, 10 * place + 1)
    assert found.state(f"{run}-8") == events.UNKNOWN  # passed over
    assert found.place(f"{run}-8") == -1
    found.also(ids[0], 7)
    found.change(ids[1], 99)
    found.forget(ids[2])
    assert found.places(ids[0]) == [0, 1, 7]
    assert found.places(ids[1]) == [10, 99]
    assert found.counts() == {"decided": 0, "learned": len(ids) - 1, "forgotten": 1}


# -- threads and processes -------------------------------------------------------------------------


def test_threads_read_a_log_while_others_write(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=3, dim=2, seed=1, log=path)
    other, done, errors = kh.Log(path), threading.Event(), list[BaseException]()

    def count() -> None:
        try:
            while not done.is_set():
                assert bandit.log.counts["learned"] <= 3 * 80
        except BaseException as reason:
            errors.append(reason)

    def read() -> None:
        rng = np.random.default_rng(0)
        try:
            while not done.is_set():
                for log in (bandit.log, other):
                    event = f"{bandit._lineage.run}-{rng.integers(1, 200)}"
                    if log.status(event) != "unknown":
                        assert log.row_of(event).event == event
        except BaseException as reason:
            errors.append(reason)

    def write(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for k in range(40):
                decision = bandit.choose(rng.standard_normal(2))
                bandit.learn(decision.id, 1.0)
                # Ids of another run each: the index grows while others count it.
                given = kh.Decision(arm=0, observation=[1.0, 0.0], id=f"{seed:08x}{k:08x}-1")
                bandit.learn(given, 1.0)
        except BaseException as reason:
            errors.append(reason)

    readers = [threading.Thread(target=one) for one in (read, count, count)]
    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads meet within a call
    try:
        for thread in readers + writers:
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        for thread in readers:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert bandit.log.counts == other.counts == {"decided": 0, "learned": 240, "forgotten": 0}
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


def _in_child(bandit: Any, answers: Any) -> None:
    calls: list[Any] = [
        lambda: bandit.choose([1.0]),
        lambda: bandit.forget(f"{bandit._lineage.run}-1"),
        lambda: bandit.log.append(rows.Observe, y=[[1.0]]),
    ]
    found = []
    for call in calls:
        try:
            call()
        except kh.KeyholeError as reason:
            found.append(str(reason))
    answers.put((found, len(bandit.log)))
    time.sleep(0.3)  # while the parent goes on
    answers.put((bandit.log.counts["decided"], len(bandit.log)))


def test_a_fork_while_threads_write_neither_hangs_nor_writes(tmp_path: Path) -> None:
    """The child reads the log, also what its parent writes later; its own rows are refused.

    The log is older than the bandit, whose lock a fork would otherwise take after that of the log.
    """
    path = tmp_path / "decisions.jsonl"
    log = kh.Log(path)
    bandit: Any = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=log)
    done, forking = threading.Event(), threading.Event()
    context = multiprocessing.get_context("fork")

    def write() -> None:
        while not done.is_set():
            bandit.choose([1.0])
            bandit.log.status("x")
            if not forking.is_set():
                time.sleep(0.001)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            answers = context.Queue()
            child = context.Process(target=_in_child, args=(bandit, answers))
            forking.set()
            time.sleep(0.002)
            child.start()
            forking.clear()
            refused, n = answers.get(timeout=30)
            assert len(refused) == 3
            assert all("of another process" in one for one in refused)
            decided, later = answers.get(timeout=30)
            assert later > n
            assert n - 1 <= decided < later
            child.join(timeout=30)
            assert child.exitcode == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


FORKS = """
import os, sys, threading
import keyhole as kh
log = kh.Log(sys.argv[1])  # older than its bandit: a fork takes its lock first
bandit = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=log)
done = threading.Event()
def write():
    while not done.is_set():
        bandit.choose([1.0])
threads = [threading.Thread(target=write) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(30):
    child = os.fork()
    if child == 0:
        os._exit(0 if bandit.log.status("x") == "unknown" else 1)
    assert os.waitpid(child, 0)[1] == 0
done.set()
"""


def test_forks_and_threads_that_write_never_wait_for_each_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKS, str(tmp_path / "decisions.jsonl")]
    subprocess.run(command, check=True, timeout=60)


def test_a_log_can_be_sent_to_another_process_and_reads_there(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    bandit: Any = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=kh.Log(path, sync=True))
    bandit.learn(bandit.choose([1.0]), 1.0)
    reader = pickle.loads(pickle.dumps(bandit.log))
    assert (reader.path, reader.sync) == (bandit.log.path, True)
    assert reader.counts == bandit.log.counts
    with pytest.raises(kh.InvalidValue, match="was closed"):
        reader.check_ready()
    assert os.path.samefile(reader.path, path)
