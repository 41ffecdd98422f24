"""Requests wait for their own unit: neither less, nor for one of another writer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from keyhole import service
from keyhole.errors import FileUnusable
from keyhole.service.http.commits import Commits
from tests.service.http.serving import PLAIN


class Writer:
    """A writer whose commits are told by hand."""

    def __init__(self) -> None:
        self.committed = 0
        self.failure: BaseException | None = None

    def error(self) -> FileUnusable:
        return FileUnusable("cannot be written")


class Service:
    def __init__(self) -> None:
        self.writer = Writer()

    def gather(self, _later: Any) -> None:
        pass


async def turn() -> None:
    """Let what was scheduled be done."""
    for _ in range(3):
        await asyncio.sleep(0)


def begun() -> tuple[Commits, Service]:
    commits, service = Commits(), Service()
    commits.begin(service)  # type: ignore[arg-type]
    return commits, service


def tell(commits: Commits, service: Service, committed: int) -> None:
    service.writer.committed = committed
    commits.notify(committed, None)


def test_units_are_waited_for_in_order() -> None:
    async def work() -> None:
        commits, service = begun()
        waits = [asyncio.create_task(commits.wait(unit)) for unit in (1, 2, 2, 3)]
        await turn()
        tell(commits, service, 2)
        await turn()
        assert [one.done() for one in waits] == [True, True, True, False]
        await commits.wait(2)  # at once
        tell(commits, service, 3)
        await asyncio.wait_for(waits[3], 1.0)

    asyncio.run(work())


def test_a_writer_that_is_gone_answers_for_none_of_the_next() -> None:
    """Numbers begin anew: a late word of 9 units of the old one is not of the new one."""

    async def work() -> None:
        commits, service = begun()
        old = service.writer
        first = asyncio.create_task(commits.wait(9))
        await turn()
        # Of the old one, by its thread, and on its way.
        await asyncio.to_thread(commits.notify, 9, None)
        old.committed = 9
        service.writer = Writer()
        second = asyncio.create_task(commits.wait(5))
        await turn()
        assert (first.done(), second.done()) == (True, False)
        tell(commits, service, 5)
        await asyncio.wait_for(second, 1.0)
        assert not commits._waiting

    asyncio.run(work())


def test_a_failure_is_told_to_all_that_wait_and_to_those_who_come() -> None:
    async def work() -> None:
        commits, service = begun()
        waits = [asyncio.create_task(commits.wait(unit)) for unit in (1, 2)]
        await turn()
        service.writer.committed, service.writer.failure = 1, OSError("full")
        commits.notify(1, service.writer.failure)
        await turn()
        await waits[0]
        with pytest.raises(FileUnusable):
            await waits[1]
        with pytest.raises(FileUnusable):
            await asyncio.wait_for(commits.wait(3), 1.0)

    asyncio.run(work())


def test_a_commit_between_the_look_and_the_wait_is_not_missed() -> None:
    async def work() -> None:
        commits, service = begun()
        service.writer.committed = 4
        await asyncio.wait_for(commits.future(service.writer, 4), 1.0)  # type: ignore[arg-type]

    asyncio.run(work())


def test_one_that_is_cancelled_does_not_cancel_others() -> None:
    async def work() -> None:
        commits, service = begun()
        waits = [asyncio.create_task(commits.wait(1)) for _ in range(2)]
        await turn()
        waits[0].cancel()
        await turn()
        tell(commits, service, 1)
        await asyncio.wait_for(waits[1], 1.0)
        assert waits[0].cancelled()

    asyncio.run(work())


def test_units_of_a_turn_are_one_transaction_and_can_be_waited_for(tmp_path: Path) -> None:
    """The thread sleeps until the turn ends, or somebody waits: otherwise nothing would go on."""
    turns: list[Any] = []
    with service.Service(tmp_path, synchronous="OFF") as made:
        made.create("home", PLAIN)
        made.wait(made.writer.submitted)
        before = made.writer.commits
        made.gather(turns.append)
        for k in range(20):
            request = service.DecideRequest(context=[1.0, 2.0], event_id=f"e{k}")
            last = made.decide("home", request)
        assert (len(turns), made.writer.committed < last.unit) == (1, True)
        turns[0]()
        made.writer.wait(last.unit, timeout=5.0)
        assert made.writer.commits == before + 1
        unit = made.decide("home", service.DecideRequest(context=[1.0, 2.0])).unit
        made.writer.wait(unit, timeout=5.0)  # in the midst of a turn
        assert made.writer.committed == unit


def test_nobody_is_told_before_the_beginning() -> None:
    commits = Commits()
    commits.service = Service()  # type: ignore[assignment]
    commits.notify(1, None)
