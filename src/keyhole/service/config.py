"""Loops from a TOML file, for `keyhole serve --config`.

[home]
arms = ["A", "B"]
features.numbers = ["hour"]
features.categories.device = ["mobile", "desktop"]
reward = {default = 0.0, wait = "PT4H"}
"""

from __future__ import annotations

import os
import tomllib

from keyhole.errors import FileError, FileMissing, InvalidValue
from keyhole.files import Path, checked_path, naming
from keyhole.service.settings import LoopSettings


def loops_of(path: Path) -> dict[str, LoopSettings]:
    """Return the loops of a TOML file: a table for each, by its name.

    Raises
    ------
    FileError
        If there is no file, it is not TOML, or a table is not the settings of a loop.
    """
    name = os.fspath(checked_path("config", path))
    with naming("read", name):
        try:
            with open(name, "rb") as file:
                given = tomllib.load(file)
        except FileNotFoundError:
            raise FileMissing(f"there is no file {name}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
            raise FileError(f"{name} is not TOML: {reason}") from None
    try:
        return {loop: LoopSettings.of(settings) for loop, settings in given.items()}
    except InvalidValue as reason:
        raise FileError(f"{name}: {reason}") from None
