"""A progress bar with the time left, for work that somebody is watching."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


def columns() -> tuple[ProgressColumn, ...]:
    """What a bar shows: what is done, how far, and the time left."""
    # Imported where a bar is shown: it takes a tenth of the time that a first simulation does.
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}")
    return text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn()


@contextlib.contextmanager
def bar(
    title: str, total: int, *, show: bool | Callable[[int], None] | None
) -> Iterator[Callable[[int], None]]:
    """A function that moves the bar on. By default it is shown when stderr is a terminal.

    `show` may be such a function already: that of somebody else's bar.
    """
    if callable(show):
        yield show
        return
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    transient = console.is_terminal
    with Progress(*columns(), console=console, transient=transient) as progress:
        task = progress.add_task(title, total=total)
        yield lambda amount: progress.update(task, advance=amount)
