"""The bytes of a snapshot: a bandit's file, and where its sums have the rewards of earlier rows."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import numpy as np

from keyhole.errors import FileError, KeyholeError
from keyhole.files import read_arrays
from keyhole.online import Bandit, LoggedBandit, Store


class Packed(msgspec.Struct, array_like=True):
    """The content of a snapshot."""

    bandit: bytes
    terms: dict[str, Any]


def packed(bandit: LoggedBandit) -> bytes:
    """Return the bytes of a bandit: equal states give equal bytes."""
    return msgspec.msgpack.encode(Packed(bandit.keyed_bytes(), bandit.terms.to_dict()))


def unpacked(content: bytes, store: Store, key: bytes, run: str) -> LoggedBandit:
    """Return the bandit of a snapshot, or raise `FileError`.

    Parameters
    ----------
    content : bytes
        The bytes of `packed`.
    store : Store
        Where it writes.
    key : bytes
        The key of its draws.
    run : str
        The name of its run.
    """
    try:
        found = msgspec.msgpack.decode(content, type=Packed)
    except msgspec.MsgspecError as reason:
        raise FileError(f"the snapshot of {store.name} is damaged: {reason}") from None
    bandit = LoggedBandit.writing_to(Bandit.load(found.bandit, resume=True), store, key)
    bandit.begin_run(run)
    bandit.terms.restore(found.terms)
    return bandit


def digest(content: bytes) -> str:
    """Return the SHA-256 of the content of a snapshot: equal states have the same.

    The bytes of a snapshot differ from one version of Python to another, which writes other headers
    of its files.
    """
    header, arrays, terms = _parts(content)
    found = hashlib.sha256(msgspec.msgpack.encode([header, terms], order="deterministic"))
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def are_close(first: bytes, second: bytes) -> bool:
    """Tell whether two snapshots are the same but for rounding, 1e-9 of the largest numbers.

    Parameters
    ----------
    first, second : bytes
        The bytes of `packed`, on machines of different kinds or by different versions.
    """
    try:
        return _alike(_parts(first), _parts(second))
    except (msgspec.MsgspecError, KeyholeError, KeyError, ValueError):
        return False


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the header, the arrays and the terms of a snapshot, without the version that wrote it.

    Bounds of eigenvalues are left out: they only save time, and GreedyFirst lowers them when it
    chooses, which a start does not repeat.
    """
    found = msgspec.msgpack.decode(content, type=Packed)
    arrays = read_arrays(found.bandit)
    arrays.pop("bound", None)
    header = json.loads(str(arrays.pop("header")))
    del header["written_by"]
    return header, arrays, found.terms


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two values are equal but for rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.dtype.kind != "f":
            return bool(np.array_equal(one, other))
        finite = np.abs(one[np.isfinite(one)])
        atol = 1e-9 * float(finite.max(initial=0.0))
        return bool(np.allclose(one, other, rtol=1e-9, atol=atol, equal_nan=True))
    if isinstance(one, float) and isinstance(other, float):
        return bool(np.isclose(one, other, rtol=1e-9, atol=0.0, equal_nan=True))
    return bool(one == other)
