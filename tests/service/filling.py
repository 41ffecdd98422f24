"""A disk that is full: a process whose files may not grow beyond a size, and then may."""

import resource
from typing import Any

from keyhole.errors import FileUnusable, KeyholeError
from keyhole.service import Service
from tests.service.driving import Answer, Ask, Load, answered
from tests.service.history import History, check


def fill(folder: str, size: int, pipe: Any) -> None:
    """Ask until the disk is full, then give it room and ask all again that was not answered.

    Sends how many asks were answered before, and how many refused; or the text of a failure.

    Parameters
    ----------
    folder : str
        The folder of the service.
    size : int
        The size of a file, at most, in bytes.
    pipe : Connection
        Where to send the result.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    load = Load(1, "f")
    history: list[tuple[Ask, Answer | None]] = []
    try:
        with Service(folder) as service:
            asks = load.begin()
            while sum(_was_full(answer) for _, answer in history) < 5:
                history.append((asks[0], answered(service, asks[0])))
                asks = asks[1:] or [load.next()]
                assert len(history) < 20_000, "the disk was never full"
            n = sum(not _was_full(answer) for _, answer in history)
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            full = [ask for ask, answer in history if _was_full(answer)]
            history = [one for one in history if not _was_full(one[1])]
            again: History = [(ask, answered(service, ask)) for ask in full]
            assert not any(_was_full(answer) for _, answer in again)
            check(folder, history + again, service)
        pipe.send((n, len(full)))
    except (AssertionError, KeyholeError) as reason:
        pipe.send(f"{type(reason).__name__}: {reason}")


def _was_full(answer: Answer | None) -> bool:
    return answer is not None and answer.get("refused") == FileUnusable.__name__
