"""Optional packages of an evaluation, imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from keyhole.errors import MissingExtra, install_line


def load(module: str, wanted: str, extra: str = "lab") -> Any:
    """Return a module that needs an extra.

    Parameters
    ----------
    module : str
        Name of the module.
    wanted : str
        What it is needed for, in the error message.
    extra : str, default "lab"
        The extra.

    Raises
    ------
    MissingExtra
        If its packages are not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("keyhole"):
            raise
        package = (missing.name or module).split(".")[0]
        raise MissingExtra(
            f"{wanted} needs {package}, which is not installed: {install_line(extra)}"
        ) from None
