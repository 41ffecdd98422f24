"""A linear world as text, so that results can say which world they are from, to the bit."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np

from keyhole.lab.worlds.linear import LinearWorld

# HDF5 files hold attributes of up to 64 kB; larger worlds are not written.
LONGEST = 48_000


def as_text(world: object) -> str | None:
    """Return the settings of a linear world as JSON, or None for other or larger worlds.

    Examples
    --------
    >>> as_text(object()) is None
    True
    """
    if type(world) is not LinearWorld:
        return None
    settings = {one.name: getattr(world, one.name) for one in fields(world)}
    plain = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in settings.items()
    }
    text = json.dumps(plain)
    return text if len(text) <= LONGEST else None


def from_text(text: str) -> LinearWorld:
    """Return the world that `as_text` wrote.

    Examples
    --------
    >>> world = LinearWorld(sensing=[[1.0]], coefficients=[[0.1], [0.3]])
    >>> from_text(as_text(world)).describe() == world.describe()
    True
    """
    return LinearWorld(**json.loads(text))
