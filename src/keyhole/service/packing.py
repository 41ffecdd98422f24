"""The bytes of a snapshot: a bandit's file, and where its sums have the rewards of earlier rows."""

from __future__ import annotations

from typing import Any

import msgspec

from keyhole.errors import FileError
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
        What `packed` returned.
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
