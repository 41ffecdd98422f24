"""Calls that end at any line, as by Ctrl-C: the log still proves what follows."""

import linecache
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from keyhole.errors import FileUnusable, ForgottenEvent, UnknownArm
from keyhole.service import Action, Conflict, DecideRequest, Service, verify
from keyhole.service.packing import digest
from tests.service.clocks import Moved
from tests.service.history import check

SETTINGS: dict[str, Any] = {
    "arms": ["A", "B"],
    "dim": 2,
    "reward": {"default": 0.0, "wait": 5.0, "learn": "provisional"},
    "add_arms": True,
}
# Lines of each call at which it is ended.
POINTS = 16


class Ended(KeyboardInterrupt):
    """What ends a call."""


def lines(call: Callable[[], object], end_at: int = 0) -> int:
    """Return how many lines of Keyhole a call runs; it is ended at one of them.

    Parameters
    ----------
    call : callable
        The call.
    end_at : int, default 0
        The line, counted from 1, or one soon after it; 0 for none.
    """
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if "keyhole" not in frame.f_code.co_filename:
            return None
        # Python handles no signal where a block begins or ends, or a lock might stay locked.
        if event == "line" and not line_of(frame).startswith(("with ", "try:")):
            count += 1
            # While signals are held back none ends a call: their handlers are others then.
            if 0 < end_at <= count and signal.getsignal(signal.SIGINT) is handler:
                sys.settrace(None)
                raise Ended
        return trace

    before, handler = sys.gettrace(), signal.getsignal(signal.SIGINT)
    sys.settrace(trace)
    try:
        call()
    except Ended:
        pass
    finally:
        sys.settrace(before)
    assert signal.getsignal(signal.SIGINT) is handler
    return count


def line_of(frame: FrameType) -> str:
    """Return the line of a frame."""
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()


class Played:
    """A service with some events, and the calls that are ended.

    Parameters
    ----------
    folder : Path
        Its folder.
    """

    def __init__(self, folder: Path) -> None:
        self.clock = Moved()
        self.service = Service(folder, now=self.clock, synchronous="OFF")
        self.service.create("home", SETTINGS)
        self.decide("e0")
        self.reward("e0", "z")
        self.decide("e1", defer=True)
        self.service.wait(self.service.writer.submitted)

    def decide(self, event: str, **fields: Any) -> None:
        given = DecideRequest(context=[1.0, 0.5], event_id=event, **fields)
        self.service.decide("home", given)

    def reward(self, event: str, name: str) -> None:
        self.service.loop("home").reward(event, 2.0, name)

    def new_arm(self) -> None:
        self.decide("x", actions=[Action(id="C"), Action(id="A")])

    def activate(self) -> None:
        self.service.loop("home").activate("e1")

    def forget(self) -> None:
        self.service.loop("home").forget("e0")

    def remove(self) -> None:
        self.service.loop("home").remove_arms(["B"])

    def change(self) -> None:
        self.service.create("home", {**SETTINGS, "mode": "shadow"})

    def end(self) -> None:
        self.clock.time += 9.0
        self.service.tick()


CALLS: dict[str, Callable[[Played], None]] = {
    "decide": lambda one: one.decide("x"),
    "reward": lambda one: one.reward("e0", "a"),
    "new arm": Played.new_arm,
    "activate": Played.activate,
    "forget": Played.forget,
    "remove": Played.remove,
    "change": Played.change,
    "end": Played.end,
}


def go_on(played: Played) -> None:
    """Ask for more; requests may be refused for what the ended call has done, or not."""
    for event in ("x", "y"):
        with suppress(Conflict):  # the ended call has decided it, with other candidates
            played.decide(event)
    for event, name in (("x", ""), ("e0", "a"), ("e0", "b"), ("e1", "c")):
        with suppress(*((ForgottenEvent,) if event == "e0" else ())):
            played.reward(event, name)
    played.clock.time += 30.0
    played.service.tick()
    played.service.wait(played.service.writer.submitted)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_ended_in_the_middle_leaves_a_sound_log(tmp_path: Path, name: str) -> None:
    for attempt in ("first", "whole"):  # the first one also imports, and fills caches
        whole = Played(tmp_path / attempt)
        total = lines(lambda one=whole: CALLS[name](one))  # type: ignore[misc]
        whole.service.close()
    for end_at in np.unique(np.linspace(1, total, POINTS).astype(int)).tolist():
        folder = tmp_path / f"{end_at}"
        played = Played(folder)
        ran = lines(lambda one=played: CALLS[name](one), end_at)  # type: ignore[misc]
        assert ran >= min(end_at, 0.9 * total)  # some lines run in some calls only
        go_on(played)
        service = played.service
        assert service.writer.committed == service.writer.submitted
        [found] = verify(folder)
        assert found.sha256 == digest(service.loop("home").model())
        check(str(folder), service=service)
        service.close()
        with Service(folder, now=played.clock) as again:
            assert found.sha256 == digest(again.loop("home").model())


def test_an_arm_whose_removal_ended_in_the_middle(tmp_path: Path) -> None:
    """Its rows tell that it is gone: they are written with the events that lost their rewards."""
    played = Played(tmp_path)
    played.remove()
    played.service.wait(played.service.writer.submitted)
    with pytest.raises(UnknownArm):
        played.remove()
    played.decide("x")
    played.service.close()
    verify(tmp_path)


def child(service: Service, pipe: Any) -> None:
    """Use a service that another process has made."""
    loop = service.loop  # what it would do is refused before it begins
    found = []
    for call in (
        lambda: loop("home").reward("e0", 1.0, "child"),
        lambda: service.decide("home", DecideRequest(context=[1.0, 0.5], event_id="child")),
        service.tick,
        lambda: service.wait(service.writer.submitted),
        service.writer.flush,
        service.recover,
    ):
        try:
            call()
        except FileUnusable as reason:
            found.append("forked" in str(reason))
    service.close()
    pipe.send(found)


def test_a_forked_process_cannot_use_a_service(tmp_path: Path) -> None:
    """It has no thread that writes, and would write beside the other one."""
    played = Played(tmp_path)
    forks = get_context("fork")
    mine, theirs = forks.Pipe()
    process = forks.Process(target=child, args=(played.service, theirs))
    process.start()
    assert mine.poll(30.0)
    assert mine.recv() == [True] * 6
    process.join()
    go_on(played)
    played.service.close()
    verify(tmp_path)
