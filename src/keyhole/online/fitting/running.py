"""Work on threads or on a cluster, with results in the order of its parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    executor: Executor | None,
    workers: int,
    ahead: int,
) -> Generator[Result]:
    """Yield the results of all items, in their order, or raise the error of the first that fails.

    When the iteration ends early, by an error or by Ctrl-C, items that have not begun never do.

    Parameters
    ----------
    work : callable
        The work on one item.
    items : sequence
        The items.
    executor : Executor or None
        Who works; None for threads that end with this iteration.
    workers : int
        Number of threads.
    ahead : int
        Number of items that may be at work, or finished and not yet taken.
    """
    own = ThreadPoolExecutor(max_workers=workers) if executor is None else None
    crew = own or executor
    assert crew is not None
    waiting: deque[Future[Result]] = deque()
    left = iter(items)
    try:
        while True:
            for item in left:
                waiting.append(crew.submit(work, item))
                if len(waiting) >= ahead:
                    break
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        if own is not None:
            own.shutdown(wait=True, cancel_futures=True)
