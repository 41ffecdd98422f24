"""A progress bar with the time left, for work that somebody is watching."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)


def columns() -> tuple[ProgressColumn, ...]:
    """What a bar shows: what is done, how far, and the time left."""
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
    console = Console(stderr=True)
    transient = console.is_terminal
    with Progress(*columns(), console=console, transient=transient) as progress:
        task = progress.add_task(title, total=total)
        yield lambda amount: progress.update(task, advance=amount)
