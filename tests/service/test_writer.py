"""`Writer`: who commits, in which order, and what becomes of all who wait."""

import threading
import time
from typing import Any

import pytest

from keyhole.errors import FileUnusable
from keyhole.service.store import Unit
from keyhole.service.writer import MAX_UNITS, SLOW, Writer
from tests.service.driving import Turn


class Disk:
    """A store that keeps what is committed, and by which thread."""

    path = "a disk"

    def __init__(self) -> None:
        self.confirmed_in = 0.0
        self.committed: list[list[Any]] = []
        self.threads: list[int] = []
        self.may_commit = threading.Event()
        self.may_commit.set()
        self.began = threading.Event()
        self.failure: Exception | None = None

    def commit(self, units: list[Unit]) -> None:
        self.began.set()
        assert self.may_commit.wait(10.0)
        if self.failure is not None:
            raise self.failure
        self.committed.append([unit.rewards[0] for unit in units])
        self.threads.append(threading.get_ident())


def unit(number: int) -> Unit:
    return Unit([], [], [number], [])  # type: ignore[list-item] # what tells it from others


@pytest.fixture
def disk() -> Disk:
    return Disk()


def begun(disk: Disk, notify: Any = None) -> tuple[Writer, Turn]:
    writer, turn = Writer(disk, notify), Turn()  # type: ignore[arg-type]
    writer.gather(turn.plan)
    return writer, turn


def test_a_turn_is_one_transaction_of_the_thread_that_ends_it(disk: Disk) -> None:
    told: list[tuple[int, Any]] = []
    writer, turn = begun(disk, lambda *given: told.append(given))
    assert [writer.submit(unit(k)) for k in (1, 2, 3)] == [1, 2, 3]
    assert not disk.committed
    turn.end()
    assert disk.committed == [[1, 2, 3]]
    assert disk.threads == [threading.get_ident()]
    assert told == [(3, None)]
    writer.close()


def test_a_slow_disk_is_waited_for_by_another_thread(disk: Disk) -> None:
    writer, turn = begun(disk)
    disk.confirmed_in = 100 * SLOW
    for k in range(1, 3):  # the first tells that it is slow
        writer.submit(unit(k))
        turn.end()
        writer.wait(k, 10.0)
    assert disk.threads[0] == threading.get_ident()
    assert disk.threads[1] != threading.get_ident()
    disk.confirmed_in = 0.0  # it gets fast again, by and by
    for k in range(3, 200):
        writer.submit(unit(k))
        turn.end()
        writer.wait(k, 10.0)
    assert disk.threads[-1] == threading.get_ident()
    assert [one for many in disk.committed for one in many] == list(range(1, 200))
    writer.close()


def test_units_that_come_while_the_thread_commits_are_committed_after_it(disk: Disk) -> None:
    writer, turn = begun(disk)
    disk.may_commit.clear()
    writer.submit(unit(1))
    writer.usual = 2 * SLOW
    turn.end()
    assert disk.began.wait(10.0)
    writer.usual = 0.0
    writer.submit(unit(2))
    turn.end()  # the disk is at work: this thread must not commit beside the other one
    assert writer.committed == 0
    disk.may_commit.set()
    writer.wait(2, 10.0)
    assert disk.committed == [[1], [2]]
    assert threading.get_ident() not in disk.threads
    writer.close()


def test_more_than_a_transaction_takes_is_committed_in_order(disk: Disk) -> None:
    writer, turn = begun(disk)
    for k in range(MAX_UNITS + 5):
        writer.submit(unit(k))
    turn.end()
    writer.wait(MAX_UNITS + 5, 10.0)
    assert [len(many) for many in disk.committed] == [MAX_UNITS, 5]
    assert [one for many in disk.committed for one in many] == list(range(MAX_UNITS + 5))
    writer.close()


def test_a_turn_that_never_ends_is_written_at_the_next_one_and_at_the_end(disk: Disk) -> None:
    writer, _ = begun(disk)
    writer.submit(unit(1))
    other = Turn()
    writer.gather(other.plan)  # that of another loop
    writer.wait(1, 10.0)
    writer.submit(unit(2))
    other.end()
    assert disk.threads[1] == threading.get_ident()
    writer.submit(unit(3))
    writer.close()
    assert disk.committed == [[1], [2], [3]]


def test_who_waits_for_what_is_there_asks_for_nothing(disk: Disk) -> None:
    writer, turn = begun(disk)
    writer.wait(0)
    writer.submit(unit(1))
    time.sleep(0.05)  # in which the thread would commit it
    assert not disk.committed
    turn.end()
    assert disk.threads == [threading.get_ident()]
    writer.close()


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_failure_is_told_and_ends_the_thread(disk: Disk, is_slow: bool) -> None:
    told: list[Any] = []
    writer, turn = begun(disk, lambda _, failure: told.append(failure))
    writer.usual = 2 * SLOW * is_slow
    disk.failure = OSError("no space")
    number = writer.submit(unit(1))
    turn.end()
    with pytest.raises(FileUnusable, match="no space"):
        writer.wait(number, 10.0)
    writer._thread.join(10.0)
    assert not writer._thread.is_alive()
    assert told == [disk.failure]
    assert not writer.is_usable
    with pytest.raises(FileUnusable, match="no space"):
        writer.submit(unit(2))
    writer.close()
    assert not disk.committed


def test_statements_that_may_take_long_are_left_to_the_thread(disk: Disk) -> None:
    turn, mine = Turn(), threading.get_ident()
    writer = Writer(disk)  # type: ignore[arg-type]
    writer.gather(turn.plan)
    writer.submit(unit(1))
    turn.end()
    last = writer.submit(unit(2)._replace(others=[("DELETE", ())]))
    turn.end()
    writer.wait(last, 10.0)
    assert [one == mine for one in disk.threads] == [True, False]
    writer.close()
