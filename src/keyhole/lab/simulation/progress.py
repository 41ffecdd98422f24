"""A progress bar with the remaining time."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


def columns() -> tuple[ProgressColumn, ...]:
    """Return the columns of a bar: the description, the progress and the remaining time."""
    # Imported only if a bar is shown: the import takes a tenth of the time of a first simulation.
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}")
    return text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn()


@contextlib.contextmanager
def bar(
    title: str, total: int, *, show: bool | Callable[[int], None] | None
) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress bar.

    Parameters
    ----------
    title : str
        The description of the bar.
    total : int
        The amount of work.
    show : bool, callable or None
        Whether the bar is shown. None shows it if stderr is a terminal. A callable is used as the
        function that advances an existing bar.

    Yields
    ------
    callable
        A function of the amount of work done.
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
