"""Power losses of a service under load, and what clients were promised before."""

import contextlib
import random
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import apsw

from keyhole.errors import KeyholeError
from keyhole.service import Service
from tests.service.disks import Disk
from tests.service.driving import Answer, Ask, Load, answered, drive
from tests.service.history import History, check
from tests.service.killing import paired

LOOPS: dict[str, dict[str, Any]] = {
    "once": {"arms": ["A", "B"], "dim": 2},
    "ends": {"arms": ["A", "B"], "dim": 2, "reward": {"default": 0.0, "wait": 0.002}},
}


def lose_power(folder: Path, seed: int, synchronous: str, longest: int = 400) -> History:
    """Drive a service until its power is off, and return what was asked and answered.

    The files that are left are in the folder "after".

    Parameters
    ----------
    folder : Path
        An empty folder.
    seed : int
        What is asked, when the power goes off, and what is lost.
    synchronous : str
        As of `Service`.
    longest : int, default 400
        The number of changes of files until then, at most.
    """
    rng = random.Random(seed)
    disk = Disk(f"disk{seed}{synchronous}", seed, rng.randint(1, longest))
    told: list[tuple[Ask, Answer | None]] = []
    service = None
    try:
        with contextlib.suppress(KeyholeError):
            # The default is what is promised: it is not named.
            options: Any = {} if synchronous == "FULL" else {"synchronous": synchronous}
            service = Service(folder / "before", vfs=disk.name, **options)
            if rng.random() < 0.5:  # the log moves into the database now and then
                service.store._writer.wal_autocheckpoint(rng.randint(5, 30))
            load = Load(seed, "p", LOOPS)
            _drive(service, load, disk, told)
    finally:
        disk.crash(folder / "after")
        if service is not None:
            with contextlib.suppress(KeyholeError):
                service.close()
        disk.unregister()
    return paired(told)


def _drive(service: Service, load: Load, disk: Disk, told: list[tuple[Ask, Answer | None]]) -> None:
    def listed() -> Iterator[Ask]:
        yield from load.begin()
        for _ in count():
            if disk.left < 0 or not service.writer.is_usable:
                return
            yield load.next()

    def tell(ask: Ask, answer: Answer | None) -> None:
        told.append((ask, answer))

    with contextlib.suppress(KeyholeError, apsw.Error):
        drive(service, listed(), tell, load.random.randrange(1000))


def stands(folder: Path, history: History) -> None:
    """Open what a power loss has left, check it, and ask all again that was not answered.

    Parameters
    ----------
    folder : Path
        The folder of the service.
    history : list of (ask, answer)
        What was asked and answered before.
    """
    with Service(folder) as service:
        check(str(folder), history, service)
        again: History = [(ask, answer or answered(service, ask)) for ask, answer in history]
        check(str(folder), again, service)


def losses(runs: int, synchronous: str, seed: int = 0) -> tuple[int, int]:
    """Lose power again and again; return how often something that was promised was lost.

    With it comes how many answers were given in all.

    Parameters
    ----------
    runs : int
        How often.
    synchronous : str
        As of `Service`.
    seed : int, default 0
        The seed of the first.
    """
    lost = acknowledged = 0
    for k in range(seed, seed + runs):
        with tempfile.TemporaryDirectory() as folder:
            history = lose_power(Path(folder), k, synchronous)
            acknowledged += sum("refused" not in answer for _, answer in history if answer)
            try:
                stands(Path(folder) / "after", history)
            except (AssertionError, KeyholeError, apsw.Error) as reason:
                if synchronous == "FULL":
                    raise AssertionError(f"the power loss with seed {k} lost: {reason}") from reason
                lost += 1
    return lost, acknowledged
