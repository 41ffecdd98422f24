"""A digest that identifies the fit of a transformer, by settings and learned attributes.

By scikit-learn's convention `get_params` returns the settings, and names of learned attributes end
with an underscore. Of other objects all attributes count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

import numpy as np


def fit_digest(transformer: object) -> str:
    """Return 12 hexadecimal digits that are equal for equal fits, in every process."""
    found = hashlib.sha256()
    for part in _parts(transformer, ()):
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()[:12]


def _parts(value: Any, within: tuple[int, ...]) -> Iterator[bytes]:
    """Yield bytes that identify a value.

    Parameters
    ----------
    value : object
        The value.
    within : tuple of int
        The ids of the objects that it is part of, which end a circle.
    """
    yield type(value).__qualname__.encode()
    if value is None or isinstance(value, str | bytes | bool | int | float | complex):
        yield repr(value).encode()
        return
    if id(value) in within:
        return
    inside = (*within, id(value))
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        yield f"{array.dtype} {array.shape}".encode()
        if array.dtype.hasobject:
            yield from _parts(array.tolist(), inside)
        else:
            yield np.ascontiguousarray(array).tobytes()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _parts(key, inside)
            yield from _parts(item, inside)
    elif isinstance(value, set | frozenset):
        yield from sorted(b"".join(_parts(item, inside)) for item in value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item, inside)
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    elif hasattr(value, "__code__"):
        yield f"{value.__module__}.{value.__qualname__}".encode()
        # Two lambdas have one name: their code distinguishes them.
        yield from _parts(_code(value.__code__), inside)
    else:
        yield from _parts(_attributes(value), inside)


def _code(code: CodeType) -> list[Any]:
    """Return the code of a function: instructions, names and constants, inner functions too."""
    constants = [_code(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


def _attributes(value: Any) -> dict[str, Any]:
    """Return settings and learned attributes of a transformer, or all attributes of an object."""
    attributes: dict[str, Any] = dict(getattr(value, "__dict__", {}))
    if callable(getattr(value, "get_params", None)) and not isinstance(value, type):
        settings = value.get_params(deep=False)
        learned = {
            name: one
            for name, one in attributes.items()
            if name.endswith("_") and not name.startswith("_")
        }
        attributes = {**settings, **learned}
    return dict(sorted(attributes.items()))
