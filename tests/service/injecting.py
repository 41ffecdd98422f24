"""An error at the k-th call of the file system, for every k of a small scenario."""

import contextlib
import tempfile
from collections import Counter
from typing import Any

import apsw

from keyhole.errors import KeyholeError
from keyhole.service import Service
from tests.service.disks import Faulty
from tests.service.driving import Answer, Ask, Turn, answered
from tests.service.history import check

SETTINGS: dict[str, Any] = {
    "arms": ["A", "B"],
    "dim": 2,
    "reward": {"default": 0.0, "wait": 1.0},
}
# Those of the first part are asked while calls fail, and again with the second when none does.
FIRST: list[Ask] = [
    {"do": "create", "loop": "home", "settings": SETTINGS},
    {"do": "decide", "loop": "home", "request": {"context": [1.0, 0.5], "event_id": "a"}},
    {"do": "decide", "loop": "home", "request": {"context": [0.5, -1.0], "event_id": "b"}},
    {"do": "reward", "loop": "home", "event": "a", "value": 1.0, "id": "r"},
    {"do": "keep"},
    {"do": "decide", "loop": "home", "request": {"context": [0.5, 1.0], "event_id": "c"}},
    {"do": "tick"},
    {"do": "forget", "loop": "home", "event": "b"},
    {"do": "recover"},
    {"do": "reward", "loop": "home", "event": "a", "value": 1.0, "id": "r"},
]
SECOND: list[Ask] = [
    {"do": "decide", "loop": "home", "request": {"context": [1.0, 1.0], "event_id": "d"}},
    {"do": "reward", "loop": "home", "event": "d", "value": 2.0, "id": "r"},
    {"do": "tick"},
]


class Scenario:
    """A service on a disk with an error, and what it was asked and answered.

    Parameters
    ----------
    folder : str
        An empty folder.
    disk : Faulty
        The disk.
    by_turn : bool
        Commit at the end of a turn, as a server does, and not by the writer's thread.
    """

    def __init__(self, folder: str, disk: Faulty, *, by_turn: bool) -> None:
        self.folder, self.disk = folder, disk
        self.turn, self.by_turn = Turn(), by_turn
        self.history: list[tuple[Ask, Answer | None]] = []
        self.time = 1000.0
        self.service: Service | None = None

    def now(self) -> float:
        return self.time

    def open(self) -> Service:
        if self.service is None:
            self.service = Service(self.folder, now=self.now, vfs=self.disk.name)
            self.service.store._writer.wal_autocheckpoint(6)
            self.service.gather(self.turn.plan)
        return self.service

    def run(self, asks: list[Ask]) -> None:
        """Ask; an error of the disk is a `KeyholeError`, and nothing else is raised."""
        for ask in asks:
            try:
                service = self.open()
                if ask["do"] in ("keep", "tick", "recover"):
                    self._do(service, ask["do"])
                else:
                    end = self.turn.end if self.by_turn else None
                    self.history.append((ask, answered(service, ask, end)))
            except KeyholeError:
                self.history.append((ask, None)) if "loop" in ask else None

    def _do(self, service: Service, what: str) -> None:
        if what == "recover":
            service.recover()
        elif what == "keep":
            service.keep(service.loop("home"))
        else:
            self.time += 2.0
            service.tick()

    def finish(self) -> None:
        """Ask all again when no call fails, and check; then once more after a restart."""
        self.disk.heal()
        asks = [ask for ask, _ in self.history] + SECOND
        unknown = [one for one in self.history if one[1] is None or not is_final(one[1])]
        self.history = [one for one in self.history if one not in unknown]
        self.run(asks)
        assert self.service is not None
        for ask, answer in self.history[-len(asks) :]:
            assert answer is not None, f"{ask} was not answered by a disk without errors"
            assert is_final(answer), f"{ask}: {answer}"
        self.service.wait(self.service.loop("home").unit)
        check(self.folder, self.history, self.service)
        self.service.close()
        with Service(self.folder) as service:
            check(self.folder, self.history, service)

    def give_up(self) -> None:
        """Close what is open."""
        self.disk.heal()
        if self.service is not None:
            with contextlib.suppress(KeyholeError):
                self.service.close()


def is_final(answer: Answer) -> bool:
    return "refused" not in answer or bool(answer["is_final"])


def inject(
    k: int, *, lasts: bool, error: type[apsw.Error] = apsw.IOError, by_turn: bool = False
) -> tuple[list[str], list[Any]]:
    """Run the scenario with an error at the k-th call; return what failed, and the history.

    Parameters
    ----------
    k : int
        The number of the call.
    lasts : bool
        Whether all later calls fail too, until the second part.
    error : type
        The error of SQLite.
    by_turn : bool, default False
        As of `Scenario`.
    """
    disk = Faulty(f"faulty-{k}-{lasts}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            scenario = Scenario(folder, disk, by_turn=by_turn)
            disk.set(k, lasts=lasts, error=error)
            try:
                scenario.run(FIRST)
                scenario.finish()
            finally:
                scenario.give_up()
            return disk.failed, scenario.history
    finally:
        disk.unregister()


def calls() -> int:
    """Return how many calls the first part makes when none fails."""
    disk = Faulty("counting")
    try:
        with tempfile.TemporaryDirectory() as folder:
            scenario = Scenario(folder, disk, by_turn=False)
            scenario.run(FIRST)
            made = disk.calls
            scenario.finish()
            return made
    finally:
        disk.unregister()


# Each with whether it lasts until the disk is healed.
KINDS = [(error, lasts) for error in (apsw.IOError, apsw.FullError) for lasts in (False, True)]


def inject_all(step: int = 1) -> Counter[str]:
    """Run the scenario with errors at every call, or at every n-th; return how often each failed.

    Parameters
    ----------
    step : int, default 1
        From one call to the next; each kind of error begins at another.
    """
    failed: Counter[str] = Counter()
    last = calls()
    for first, (error, lasts) in enumerate(KINDS, start=1):
        for k in range(first, last + 1, step):
            # In turns: two kinds of error at each call go either way.
            by_turn = ((k - first) // step + first) % 2 == 0
            failed.update(inject(k, lasts=lasts, error=error, by_turn=by_turn)[0])
    return failed
