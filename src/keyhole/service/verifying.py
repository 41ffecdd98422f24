"""`verify`: recompute every draw, probability and sum of a folder from its log."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from keyhole.errors import FileError
from keyhole.files import Path
from keyhole.service.fold import LoopReplay
from keyhole.service.index import Index
from keyhole.service.loading import fingerprint
from keyhole.service.packing import packed
from keyhole.service.reading import WholeFold, all_rows, reading
from keyhole.service.store import Store, event_row


@dataclass(frozen=True)
class Verified:
    """What was found to be right of a loop.

    Parameters
    ----------
    loop : str
        Its name.
    rows, decisions, learned : int
        How many rows there are, decisions that were made again with the same arm, probability and
        score, and events that the sums have.
    snapshots : int
        Snapshots that equal the state at their row, to the bit.
    sha256 : str
        The checksum of the state after the last row.
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
        If a row does not follow from those before it, a draw or probability comes out otherwise,
        or the index or a snapshot does not fit the log. The message names loop and row.
    """
    with reading(folder) as store:
        listed = store.query("SELECT id, name, draw_key FROM loop ORDER BY id")
        say = progress or (lambda *_: None)
        return [_verified(store, number, name, key, say) for number, name, key in listed]


def _verified(
    store: Store, number: int, name: str, key: bytes, progress: Callable[[str, int], None]
) -> Verified:
    whole = WholeFold(store, number, name, key)
    kept = {seq: (mark, checksum) for seq, mark, checksum in store.snapshots(number)}
    snapshots = 0
    try:
        for seq, kind, body in all_rows(store, number, name):
            whole.step(seq, kind, body)
            if seq in kept:
                snapshots += _check_snapshot(whole.replay, seq, *kept[seq])
            if seq % 1000 == 0:
                progress(name, seq)
    except FileError as reason:
        raise FileError(f"loop {name!r}: {reason}") from None
    _check_tables(store, number, name, whole.index)
    state = hashlib.sha256(packed(whole.replay.bandit)).hexdigest()
    return Verified(name, whole.journal.seq, whole.decisions, whole.index.learned, snapshots, state)


def _check_snapshot(replay: LoopReplay, seq: int, mark: str, checksum: bytes) -> int:
    """Return 1 if a snapshot equals the state; 0 if another kind of machine made it."""
    if mark != fingerprint():
        return 0
    if hashlib.sha256(packed(replay.bandit)).digest() != checksum:
        raise FileError(f"the snapshot at row {seq} is not the state of the rows up to it")
    return 1


def _check_tables(store: Store, number: int, name: str, index: Index) -> None:
    """Raise if the tables of events and rewards are not those of the log."""
    kept = {row[1]: row for row in store.all_events(number)}
    made = {event.name: event_row(number, event) for event in index.events.values()}
    if kept != made:
        wrong = sorted(one for one in kept.keys() | made.keys() if kept.get(one) != made.get(one))
        raise FileError(
            f"loop {name!r}: the table of events does not fit the log, first at event "
            f"{wrong[0]!r}: {kept.get(wrong[0])} in place of {made.get(wrong[0])}"
        )
    rewards = store.all_rewards(number)
    wanted = {
        (event.name, one, value)
        for event in index.events.values()
        for one, value in event.rewards.items()
    }
    if rewards != wanted:
        wrong_reward = min(rewards ^ wanted)
        raise FileError(
            f"loop {name!r}: the table of rewards does not fit the log at {wrong_reward}"
        )
