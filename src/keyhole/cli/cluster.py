"""Where long work runs: threads, or the workers of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer

from keyhole.errors import InvalidValue, MissingExtra, install_line

Workers: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Number of threads.  \\[default: one for each core]")
]
Scheduler: TypeAlias = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler to run on.  \\[default: threads]")
]


@contextmanager
def executor_of(scheduler: str | None, workers: int | None) -> Iterator[Executor | None]:
    """Yield the executor of a Dask scheduler, or None for local threads if there is none.

    Parameters
    ----------
    scheduler : str or None
        Address of the scheduler.
    workers : int or None
        Number of threads, which a scheduler does not take.
    """
    if scheduler is None:
        yield None
        return
    if workers is not None:
        raise InvalidValue(
            f"--workers cannot be used with --scheduler, which has its own workers, got {workers}"
        )
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise MissingExtra(
            "--scheduler needs dask.distributed, which is not installed: " + install_line("cluster")
        ) from None
    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError) as reason:
        raise InvalidValue(f"there is no Dask scheduler at {scheduler}: {reason}") from None
    with client:
        yield client.get_executor()
