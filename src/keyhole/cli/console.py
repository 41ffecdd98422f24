"""Consoles and error handling that all commands share."""

from __future__ import annotations

import functools
import json
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from keyhole.errors import InvalidValue, KeyholeError, KeyholeWarning

INTERRUPTED = 130  # exit code of a command that Ctrl-C ended, as in shells

Given = ParamSpec("Given")
Result = TypeVar("Result")


def out() -> Console:
    """Return the console for results."""
    return Console(highlight=False)


def err() -> Console:
    """Return the console for progress and errors, which keeps them out of the results."""
    return Console(stderr=True, highlight=False)


def writable(folder: Path) -> None:
    """Raise if the path of an output folder is a file."""
    if folder.exists() and not folder.is_dir():
        raise InvalidValue(f"--out must be a folder, got the file {folder}")


def as_json(value: Any) -> None:
    """Print a value as JSON, with NaN as null and infinity, which JSON lacks too, as "inf"."""
    typer.echo(json.dumps(_strict(value), indent=1, allow_nan=False))


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Print Keyhole's warnings as lines, without the place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KeyholeWarning)
        try:
            yield
        finally:  # also before an error
            for one in caught:
                err().print(f"[yellow]warning:[/] {escape(str(one.message))}", soft_wrap=True)


def clean(command: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return the command with a message and an exit code in place of a user error's traceback."""

    @functools.wraps(command)
    def wrapped(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return command(*args, **kwargs)
        except (KeyholeError, OSError) as error:  # a file that cannot be read or written
            err().print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
            raise typer.Exit(1) from None
        except MemoryError as error:
            err().print(f"[bold red]error:[/] not enough memory: {escape(str(error))}")
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            err().print("[yellow]interrupted[/]")
            raise typer.Exit(INTERRUPTED) from None

    return wrapped
