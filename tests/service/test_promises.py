"""The promises of the service, each with a test that was seen to fail."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keyhole.errors import FileError, FileUnusable, InvalidValue
from keyhole.service import Action, DecideRequest, Service
from keyhole.service.store import Unit
from tests.service.clocks import Moved
from tests.service.history import check

PLAIN: dict[str, Any] = {"arms": ["A", "B"], "dim": 2}


@pytest.fixture(name="clock")
def _clock() -> Moved:
    return Moved()


@pytest.fixture(name="service")
def _service(tmp_path: Path, clock: Moved) -> Iterator[Service]:
    service = Service(tmp_path, now=clock)
    yield service
    service.close()


def decide(service: Service, loop: str, event: str, context: Any = (1.0, 0.5), **more: Any) -> Any:
    given = list(context) if isinstance(context, tuple) else context
    decided = service.decide(loop, DecideRequest(context=given, event_id=event, **more))
    service.wait(decided.unit)
    return decided


def reopened(service: Service) -> bytes:
    """Return the state of the loop "home" after all was loaded again, without a snapshot."""
    service.recover()
    return service.loop("home").model()


def test_forgetting_is_replayed(service: Service) -> None:
    """P9: from the rows, and where only the row `forget` comes after the snapshot."""
    loop = service.create("home", PLAIN)
    for k in range(6):
        decide(service, "home", f"e{k}", (float(k), 1.0))
        loop.reward(f"e{k}", 0.5 * k)
    loop.forget("e1")
    assert reopened(service) == loop.model()
    loop = service.loop("home")
    service.keep(loop)
    loop.forget("e2")
    state = loop.model()
    assert reopened(service) == state
    assert sum(service.loop("home").bandit.counts.values()) == 4
    check(service.path, service=service)  # the sums are those of the other four, to 1e-12


def break_commits(service: Service, monkeypatch: pytest.MonkeyPatch, times: int = 1) -> None:
    """Have the next commits of the open database fail."""
    commit, left = service.store.commit, [times]

    def failing(units: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise FileUnusable("the disk is full")
        commit(units)

    monkeypatch.setattr(service.store, "commit", failing)


def test_a_lost_unit_is_never_acknowledged(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: also when others have been written since, under numbers of their own."""
    unit = service.create("home", PLAIN).unit
    service.wait(unit)
    break_commits(service, monkeypatch)
    lost = service.decide("home", DecideRequest(context=[1.0, 0.0], event_id="lost"))
    with pytest.raises(FileUnusable, match="disk is full"):
        service.wait(lost.unit)
    service.recover()
    for k in range(5):
        decide(service, "home", f"e{k}")
    with pytest.raises(FileUnusable, match="send the request again"):
        service.wait(lost.unit)
    again = decide(service, "home", "lost", (1.0, 0.0))
    assert not again.is_replay
    check(service.path, service=service)


def test_what_could_not_be_handed_over_is_not_answered_as_known(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: the second ask after a failure must not be taken for the retry of the first."""
    loop = service.create("home", PLAIN)
    decide(service, "home", "good")
    break_commits(service, monkeypatch)
    with pytest.raises(FileUnusable):
        decide(service, "home", "lost")
    request = DecideRequest(context=[1.0, 0.5], event_id="e1")
    for _ in range(2):  # the loop as the caller holds it, and not the service, which recovers
        with pytest.raises(FileUnusable):
            service.wait(loop.decide("e1", request, b"digest").unit)
    for call in (lambda: loop.reward("good", 1.0), lambda: loop.activate("good")):
        with pytest.raises(FileUnusable):
            call()
    assert service.loop("home") is not loop
    assert not decide(service, "home", "e1").is_replay
    check(service.path, service=service)


def test_a_loop_of_before_a_recovery_writes_nothing(service: Service) -> None:
    """P5: its rows would leave a gap, or come twice."""
    old = service.create("home", PLAIN)
    decide(service, "home", "e0")
    service.recover()
    decide(service, "home", "e1")
    with pytest.raises(FileUnusable, match="loaded again"):
        old.reward("e0", 1.0)
    with pytest.raises(FileUnusable, match="closed"):
        service.keep(old)
    service.loop("home").reward("e0", 1.0)
    service.wait(service.loop("home").unit)
    check(service.path, service=service)


def test_an_event_on_its_way_to_the_disk_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P3: a reward that comes again while its first commit is under way counts once."""
    monkeypatch.setattr("keyhole.service.loading.CACHED_EVENTS", 2)
    monkeypatch.setattr("keyhole.service.events.SPARE", 0)
    with Service(tmp_path) as service:
        loop = service.create("home", PLAIN)
        for k in range(3):
            decide(service, "home", f"e{k}")
        may_commit, commit = threading.Event(), service.store.commit

        def slow(units: Any) -> None:
            assert may_commit.wait(10.0)
            commit(units)

        monkeypatch.setattr(service.store, "commit", slow)
        assert loop.reward("e0", 1.0).status == "counted"
        for k in range(3, 8):
            service.decide("home", DecideRequest(context=[1.0, 0.5], event_id=f"e{k}"))
        assert loop.reward("e0", 1.0).status == "duplicate"
        assert service.decide("home", DecideRequest(context=[1.0, 0.5], event_id="e3")).is_replay
        may_commit.set()
        service.wait(loop.unit)
        assert sum(loop.bandit.counts.values()) == 1
        decide(service, "home", "e8")
        decide(service, "home", "e9")
        assert len(loop.events._events) == 2, "what is on the disk is let go of"
        check(service.path, service=service)


def test_reading_the_log_hides_no_commit(service: Service) -> None:
    """P3: a query that is not at its end would show the database as it was."""
    loop = service.create("home", PLAIN)
    for k in range(5):
        decide(service, "home", f"e{k}")
    reading = service.store.rows(loop.number)
    assert next(reading)[0] == 1
    decide(service, "home", "later")
    event = service.store.event(loop.number, "later")
    assert event is not None
    assert event.seq == loop.version
    assert [seq for seq, *_ in reading] == list(range(2, 8))


def test_pages_of_the_log_have_every_row_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = service.create("home", PLAIN)
    for k in range(8):
        decide(service, "home", f"e{k}")
    for size in (1, 3, 5, 10, 11):
        monkeypatch.setattr("keyhole.service.reader.PAGE", size)
        for after, limit, wanted in ((0, -1, range(1, 11)), (4, 5, range(5, 10)), (9, 9, (10,))):
            found = [seq for seq, *_ in service.store.rows(loop.number, after, limit)]
            assert found == list(wanted)


def test_what_cannot_be_written_leaves_no_gap(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: an arm that memory has, and that could not be encoded as a row."""
    loop = service.create("home", PLAIN)

    def fails() -> None:
        raise MemoryError

    monkeypatch.setattr(loop.journal, "take", fails)
    with pytest.raises(MemoryError):
        loop.add_arms(["C"])
    assert loop.bandit.arms == ("A", "B", "C")
    decide(service, "home", "e1")
    assert service.loop("home").bandit.arms == ("A", "B")
    check(service.path, service=service)


def test_a_refused_request_breaks_nothing(service: Service) -> None:
    """P2: what it added before it was refused is in the log, or it is not in memory."""
    loop = service.create("home", {**PLAIN, "add_arms": True})
    for _ in range(2):
        with pytest.raises(InvalidValue):
            decide(service, "home", "e1", (1.0, 2.0, 3.0), actions=[Action(id="A"), Action(id="N")])
    assert service.loop("home") is loop, "one bad request must not have everything loaded again"
    assert not decide(service, "home", "e1").is_replay
    check(service.path, service=service)


def test_a_broken_loop_is_not_kept(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyhole.service.service.SNAPSHOT_EVERY", 1)
    loop = service.create("home", PLAIN)
    decide(service, "home", "e1")
    loop.is_broken = True
    service.tick()
    service.wait(loop.unit)
    assert service.store.query("SELECT count(*) FROM snapshot") == [(0,)]


def test_a_notification_that_fails_ends_the_wait(tmp_path: Path) -> None:
    def notify(_: int, __: BaseException | None) -> None:
        raise RuntimeError("the event loop is closed")

    service = Service(tmp_path, notify=notify)
    service.wait(service.create("home", PLAIN).unit)
    service.writer._thread.join(10.0)
    assert not service.writer.is_usable
    with pytest.raises(FileUnusable, match="event loop is closed"):
        service.recover()  # which writes, and is told of it
    assert service.names == ["home"]
    with pytest.raises(FileUnusable, match="event loop is closed"):
        service.close()


def test_a_new_folder_is_synced_with_those_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: a database that is synced would be lost with its folder."""
    synced, fsync = set(), os.fsync

    def noting(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    Service(tmp_path / "a" / "b").close()
    assert {tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino} <= synced


def test_an_event_of_a_loop_that_is_off_is_active(service: Service) -> None:
    """The table of events follows from the rows: those of the mode "off" know no deferring."""
    service.create("home", {**PLAIN, "mode": "off"})
    decide(service, "home", "e1", defer=True)
    check(service.path, service=service)
    service.loop("home").activate("e1")
    assert service.loop("home").reward("e1", 1.0).status == "ignored"
    service.wait(service.loop("home").unit)
    check(service.path, service=service)


def test_a_closed_service_stays_closed(tmp_path: Path) -> None:
    """Its folder may be in use by another one."""
    service = Service(tmp_path)
    service.create("home", PLAIN)
    service.close()
    taken = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)  # gets the number of the lock
    service.close()
    os.close(taken)
    calls = (lambda: service.loop("home"), service.recover, service.tick)
    for call in (*calls, lambda: service.create("new", PLAIN)):
        with pytest.raises(FileUnusable, match="was closed"):
            call()


def test_events_of_a_removed_arm_end_like_others(service: Service, clock: Moved) -> None:
    """One that cannot be learned must not keep all others of the service from being ended."""
    reward = {"default": 0.0, "wait": 10.0}
    loop = service.create("home", {**PLAIN, "reward": reward, "add_arms": True})
    service.create("other", {**PLAIN, "reward": reward})
    decide(service, "home", "gone", actions=[Action(id="C")])
    decide(service, "home", "also", actions=[Action(id="C")], defer=True)
    decide(service, "home", "stays", actions=[Action(id="A")])
    decide(service, "other", "e1")
    loop.remove_arms(["C"])
    assert loop.reward("gone", 1.0).status == "ignored"
    loop.activate("also")
    clock.time += 11.0
    service.wait(loop.unit)
    assert service.tick() == 4
    assert service.tick() == 0
    service.wait(loop.unit)
    assert loop.bandit.counts == {"A": 1, "B": 0}
    check(service.path, service=service)


@pytest.mark.parametrize(("aggregate", "wanted"), [("first", 2.0), ("last", 1.0)])
def test_rewards_keep_their_order(
    service: Service, clock: Moved, aggregate: str, wanted: float
) -> None:
    """P5: in the order of their rows, whatever their ids, also after they were read again."""
    reward = {"default": 0.0, "wait": 10.0, "aggregate": aggregate}
    service.create("home", {**PLAIN, "reward": reward})
    decide(service, "home", "e1")
    service.loop("home").reward("e1", 2.0, "b")
    service.loop("home").reward("e1", 3.0, "c")
    service.recover()
    service.loop("home").reward("e1", 1.0, "a")
    service.recover()
    clock.time += 11.0
    assert service.tick() == 1
    event = service.loop("home").events.get("e1")
    assert event is not None
    assert event.learned == wanted
    service.wait(service.loop("home").unit)
    check(service.path, service=service)


def test_closing_writes_all_that_was_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: also where a snapshot cannot be made."""
    service = Service(tmp_path)
    service.create("home", PLAIN)
    commit = service.store.commit

    def slow(units: Any) -> None:
        time.sleep(0.05)
        commit(units)

    def fails(_: Any) -> None:
        raise FileError("it cannot be made")

    monkeypatch.setattr(service.store, "commit", slow)
    monkeypatch.setattr("keyhole.service.loading.snapshot", fails)
    units = [
        service.decide("home", DecideRequest(context=[1.0, 0.5], event_id=f"e{k}")).unit
        for k in range(5)
    ]
    with pytest.raises(FileError, match="cannot be made"):
        service.close()
    assert service.writer.committed == units[-1]
    monkeypatch.undo()
    with Service(tmp_path) as again:
        assert decide(again, "home", "e4").is_replay


def test_a_folder_that_is_removed_is_told(tmp_path: Path) -> None:
    """What is written to a file that is gone is lost, and a new one would begin with nothing."""
    service = Service(tmp_path / "data")
    loop = service.create("home", PLAIN)
    decide(service, "home", "e1")
    for path in sorted((tmp_path / "data").iterdir()):
        path.unlink()
    with pytest.raises(FileUnusable, match="was removed"):
        service.tick()
    with pytest.raises(FileUnusable):
        loop.reward("e1", 1.0)
    with pytest.raises(FileUnusable, match="was removed"):
        service.loop("home")
    assert not list((tmp_path / "data").glob("keyhole.db"))


def test_rewards_after_a_change_of_settings_are_learned(service: Service, clock: Moved) -> None:
    loop = service.create("home", PLAIN)
    decide(service, "home", "e1")
    loop.change(loop.settings.of({**PLAIN, "reward": {"default": 0.0, "wait": 10.0}}))
    assert loop.reward("e1", 5.0).status == "counted"
    decide(service, "home", "e2")
    assert loop.reward("e2", 5.0).status == "held"
    loop.change(loop.settings.of({**PLAIN, "reward": {"default": 0.5, "learn": "provisional"}}))
    decide(service, "home", "e3")
    loop.change(loop.settings.of({**PLAIN, "reward": {"default": 0.0, "wait": 10.0}}))
    assert loop.reward("e3", 2.0).status == "counted"
    clock.time += 1000.0
    service.wait(loop.unit)
    service.tick()
    names = ("e1", "e2", "e3")
    assert [loop.journal.event(name).learned for name in names] == [5.0, 5.0, 2.0]
    check(service.path, service=service)


def test_totals_that_cannot_be_learned_are_refused(service: Service, clock: Moved) -> None:
    loop = service.create("home", {**PLAIN, "reward": {"default": 0.0, "wait": 10.0}})
    with pytest.raises(InvalidValue, match=r"reward\.default must be"):
        service.create("other", {**PLAIN, "reward": {"default": 1e60}})
    decide(service, "home", "e1")
    loop.reward("e1", 1e50, "a")
    with pytest.raises(InvalidValue, match="between -1e50 and 1e50"):
        loop.reward("e1", 1e50, "b")
    clock.time += 11.0
    service.wait(loop.unit)
    assert service.tick() == 1
    check(service.path, service=service)


def test_an_arm_that_was_added_again_learns_nothing_of_before(service: Service) -> None:
    loop = service.create("home", PLAIN)
    decide(service, "home", "e1", actions=[Action(id="A")])
    loop.reward("e1", 2.0, "a")
    loop.remove_arms(["A"])
    loop.add_arms(["A"])
    assert loop.reward("e1", 5.0, "b").status == "ignored"
    assert loop.bandit.counts["A"] == 0


def test_names_of_arms_are_checked_without_http_too(service: Service) -> None:
    loop = service.create("home", PLAIN)
    for name in ("", "x" * 201, "two\nlines"):
        with pytest.raises(InvalidValue, match="arms must be"):
            loop.add_arms([name])
    assert loop.bandit.arms == ("A", "B")


def test_many_arms_are_removed_by_one_statement(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each arm would read all events again and again, and nothing else is written."""
    names = [f"a{k}" for k in range(20)]
    loop = service.create("home", {"arms": names, "dim": 1})
    for k in range(60):
        decide(service, "home", f"e{k}", [1.0])
        loop.reward(f"e{k}", 1.0)
    service.wait(loop.unit)
    before = len(service.store.query("SELECT 1 FROM event WHERE learned IS NOT NULL"))
    gone = [name for name in names[5:] if loop.bandit.counts[name]]
    lost = sum(loop.bandit.counts[name] for name in gone)
    assert (before, lost > 10) == (60, True)
    units: list[Unit] = []

    def submitted(unit: Unit) -> int:
        units.append(unit)
        return service.writer.submit(unit)

    monkeypatch.setattr(loop, "_submit", submitted)
    loop.remove_arms(names[5:])
    service.wait(loop.unit)
    assert [len(unit.others) for unit in units] == [2]  # of events, and of the settings
    after = len(service.store.query("SELECT 1 FROM event WHERE learned IS NOT NULL"))
    assert after == before - lost
    check(service.path, service=service)


def test_forgetting_leaves_the_sums_of_a_log_without_the_reward(service: Service) -> None:
    """P9 for records with names, in units that were learned, and growing levels.

    The twin never gets the rewards that the other one forgets. Each decision has one candidate, so
    that both choose the same arms.
    """
    rng = np.random.default_rng(1)
    features = {"numbers": ["hour"], "categories": {"device": "grow"}}
    loops = [
        service.create(name, {"arms": ["A", "B"], "features": features}) for name in ("one", "twin")
    ]
    forgotten = set(range(45, 120, 3))  # units are known from the 32nd on
    for k in range(120):
        context = {"hour": float(12 + 5 * rng.standard_normal()), "device": f"d{k % 4}"}
        value = float(3 + rng.standard_normal())
        for loop in loops:
            decide(service, loop.name, f"e{k}", context, exclude=["AB"[k % 2]])
            if loop is loops[0] or k not in forgotten:
                loop.reward(f"e{k}", value)
    for k in forgotten:
        loops[0].forget(f"e{k}")
    one, twin = (loop.bandit.posterior for loop in loops)
    assert loops[0].bandit.counts == loops[1].bandit.counts
    for name in ("precision", "moment", "squares"):
        mine, other = getattr(one, name), getattr(twin, name)
        np.testing.assert_allclose(mine, other, rtol=0.0, atol=1e-12 * np.abs(other).max())
    check(service.path, service=service)
