"""Identification of user-defined worlds and learners: class, code and settings."""

from __future__ import annotations

import hashlib
import inspect
import marshal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.errors import shown


def digest(*arrays: NDArray[Any]) -> str:
    """Return a SHA-256 of the arrays."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def identity(thing: object) -> dict[str, Any]:
    """Return the class of a user-defined object, a digest of its code, and its settings.

    Two simulations with the same folder of results must agree in all of them. Functions that the
    class calls are not included.
    """
    kind = type(thing)
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "code": hashlib.sha256(_code(kind)).hexdigest(),
        "settings": {name: _plain(value) for name, value in sorted(_settings(thing).items())},
    }


def _code(kind: type) -> bytes:
    """Return the source of a class, or its compiled functions if it was typed at a prompt."""
    try:
        return inspect.getsource(kind).encode()
    except (OSError, TypeError):
        functions = [value for value in vars(kind).values() if inspect.isfunction(value)]
        return b"".join(marshal.dumps(function.__code__) for function in functions)


def _plain(value: object) -> Any:
    try:
        return setting(value)
    except RecursionError:  # a list that contains itself
        return shown(value)


def setting(value: object) -> Any:
    """Return a setting in the types of JSON: arrays as digests, objects as their settings."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {"shape": list(value.shape), "sha256": digest(value)}
    if isinstance(value, dict):
        return {str(key): setting(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [setting(inner) for inner in value]
    if isinstance(value, int):  # Python does not write very long ones as decimals
        return hex(value)
    if type(value).__repr__ is object.__repr__:
        return {"class": type(value).__qualname__, "settings": setting(_settings(value))}
    try:
        return repr(value)
    except Exception:  # a user-defined object may raise anything
        return shown(value)


def _settings(thing: object) -> dict[str, Any]:
    """Return the attributes of an object, with the data attributes of its class."""
    of_class = {
        name: value
        for kind in reversed(type(thing).__mro__[:-1])
        if not kind.__module__.startswith(("keyhole.", "abc", "typing"))
        for name, value in vars(kind).items()
        if not name.startswith("_") and not callable(value) and not hasattr(value, "__get__")
    }
    return {**of_class, **getattr(thing, "__dict__", {})}
