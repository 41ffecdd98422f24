"""`verify`: recompute every draw, probability and sum of a folder from its log."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

import msgspec

from keyhole.errors import FileError, KeyholeError
from keyhole.files import Path
from keyhole.service import tables
from keyhole.service.eventfile import EventFile
from keyhole.service.fold import LoopReplay
from keyhole.service.loading import fingerprint
from keyhole.service.packing import are_close, digest, packed
from keyhole.service.reader import LoopRow, Reader
from keyhole.service.reading import WholeFold, all_rows, reading
from keyhole.service.store import event_row


@dataclass(frozen=True)
class Verified:
    """The result of `verify` for a loop.

    Parameters
    ----------
    loop : str
        Its name.
    rows, decisions, learned : int
        How many rows there are, decisions that were made again with the same arm, probability and
        score, and events that the sums have.
    snapshots : int
        Snapshots that equal the state at their row: to the bit, or to 1e-9 if another version or
        kind of machine made them.
    sha256 : str
        The checksum of the state after the last row, the same by every version of Python.
    """

    loop: str
    rows: int
    decisions: int
    learned: int
    snapshots: int
    sha256: str


def verify(folder: Path, progress: Callable[[str, int], None] | None = None) -> list[Verified]:
    """Verify every loop of a folder, which may be in use; nothing is written.

    Parameters
    ----------
    folder : path-like
        The folder.
    progress : callable, optional
        Called with the name of a loop and the number of rows that were taken in.

    Raises
    ------
    FileError
        If a row does not follow from those before it, a draw or probability comes out differently,
        or the index or a snapshot does not fit the log. The message names loop and row.
    """
    with reading(folder) as store:
        listed = store.loops()
        tables.check_loops(store)
        say = progress or (lambda *_: None)
        return [_verified(store, loop, say) for loop in listed]


def _verified(store: Reader, loop: LoopRow, progress: Callable[[str, int], None]) -> Verified:
    number, name, _ = loop
    whole = WholeFold(store, loop)
    kept = {seq: (mark, checksum) for seq, mark, checksum in store.snapshots(number)}
    table = tables.Log(store, number)
    snapshots = 0
    try:
        for seq, kind, body in all_rows(store, loop):
            row = whole.step(seq, kind, body)
            if body[-1:] != b"\n":  # `compact` and `export` would join it with the next row
                raise FileError(f"row {seq} does not end in a newline")
            table.check(row, body)
            tables.check_reward(store, number, row)
            if seq in kept:
                model = tables.model(store, number, seq)
                _check_snapshot(whole.replay, seq, *kept.pop(seq), model)
                snapshots += 1
            if seq % 1000 == 0:
                progress(name, seq)
        table.check_end()
        if kept:
            raise FileError(f"there is a snapshot at row {min(kept)}, which the log does not have")
        tables.check_loop(store, number, whole.replay.made().run, whole.index.settings)
    except FileError as reason:
        raise FileError(f"loop {name!r}: {reason}") from None
    _check_events(store, loop, whole.events)
    _check_rewards(store, loop, whole.events)
    state = digest(packed(whole.replay.bandit))
    return Verified(name, whole.journal.seq, whole.decisions, whole.index.learned, snapshots, state)


def _check_snapshot(replay: LoopReplay, seq: int, mark: str, checksum: bytes, model: bytes) -> None:
    """Raise if a snapshot is not the state: to the bit, or to 1e-9 if it is of another machine.

    Parameters
    ----------
    replay : LoopReplay
        The fold up to the row.
    seq : int
        The number of the row.
    mark : str
        The fingerprint of the version and the machine that made the snapshot.
    checksum, model : bytes
        The snapshot.
    """
    if hashlib.sha256(model).digest() != checksum:
        raise FileError(f"the snapshot at row {seq} is damaged: its checksum differs")
    state = packed(replay.bandit)
    if state == model:
        return
    try:
        is_same = digest(state) == digest(model)
    except (msgspec.MsgspecError, KeyholeError, KeyError, ValueError) as reason:
        raise FileError(f"the snapshot at row {seq} is damaged: {reason}") from None
    if not is_same and (mark == fingerprint() or not are_close(state, model)):
        raise FileError(f"the snapshot at row {seq} is not the state of the rows up to it")


def _check_events(store: Reader, loop: LoopRow, events: EventFile) -> None:
    """Raise if the table of events does not follow from the log."""
    made_rows = (event_row(loop.number, event) for event in events.each())
    for kept, made in zip_longest(store.each_event(loop.number), made_rows):
        if kept == made:
            continue
        wrong = min((one[1] for one in (kept, made) if one is not None), key=_bytes)
        in_table = kept if kept is not None and kept[1] == wrong else None
        in_log = made if made is not None and made[1] == wrong else None
        raise FileError(
            f"loop {loop.name!r}: the table of events does not fit the log, first at event "
            f"{wrong!r}: {in_table} in place of {in_log}"
        )


def _check_rewards(store: Reader, loop: LoopRow, events: EventFile) -> None:
    """Raise if the table of rewards does not follow from the log."""
    for kept, made in zip_longest(store.each_reward(loop.number), _rewards(events)):
        if kept != made:
            wrong = min(
                (one for one in (kept, made) if one is not None),
                key=lambda one: (_bytes(one[0]), _bytes(one[1])),
            )
            raise FileError(
                f"loop {loop.name!r}: the table of rewards does not fit the log at {wrong}"
            )


def _bytes(name: str | bytes) -> bytes:
    """Return the bytes of a name, which a changed database may hold as bytes."""
    return name.encode() if isinstance(name, str) else name


def _rewards(events: EventFile) -> Iterator[tuple[str, str, float, int]]:
    """Yield event, id and value of every reward, and whether it counts, as the table does."""
    for event in events.each():
        came = event.rewards | event.uncounted
        for one in sorted(came, key=str.encode):
            yield event.name, one, came[one], int(one in event.rewards)
