"""Make a new loop, or load one from its last snapshot and the rows after it."""

from __future__ import annotations

import hashlib
import platform
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import msgspec

import keyhole
from keyhole.core import kernels
from keyhole.errors import FileError, KeyholeError, KeyholeWarning
from keyhole.online import Bandit, LoggedBandit, rows
from keyhole.service.archived import Archive
from keyhole.service.events import EventCache
from keyhole.service.fold import LoopReplay
from keyhole.service.journal import LoopJournal
from keyhole.service.loop import Loop
from keyhole.service.packing import packed, unpacked
from keyhole.service.reader import LoopRow, Reader
from keyhole.service.reading import WholeFold, all_rows, last_row
from keyhole.service.settings import LoopSettings
from keyhole.service.store import Unit

# Events that a loop keeps in memory; one of 5 arms and dim 10 takes 1.3 kB.
CACHED_EVENTS = 20_000


class Place(NamedTuple):
    """The database, the writer and the clock of a service."""

    store: Reader
    submit: Callable[[Unit], int]
    committed: Callable[[], int]
    now: Callable[[], float]


def fingerprint() -> str:
    """Return the fingerprint that equal bits depend on: version, build, kind of processor."""
    return f"{keyhole.__version__} {kernels.BUILD} {platform.machine()}"


def made(place: Place, row: LoopRow, settings: LoopSettings, bandit: Bandit | None = None) -> Loop:
    """Make a new loop, and have its first rows written.

    Parameters
    ----------
    place : Place
        Database, writer and clock.
    row : LoopRow
        Its number, name and draw key.
    settings : LoopSettings
        Its settings.
    bandit : Bandit, optional
        The bandit that it continues; a new one by default.
    """
    events, journal = _parts(place, row)
    events.known.is_complete = True  # there are none
    if bandit is None:
        bandit = Bandit(settings.learner(), arms=settings.arms, dim=settings.dim)
    logged = LoggedBandit.writing_to(bandit, journal, row.draw_key)
    logged.write_start()
    journal.append(rows.Settings, loop=row.name, settings=settings.to_dict())
    loop = Loop(row.number, row.name, settings, logged, journal, events, place.submit, place.now)
    statement = "INSERT INTO loop VALUES (?, ?, ?, ?, ?)"
    values = (*row, msgspec.json.encode(settings), logged.run)
    loop.submit(Unit(journal.take(), [], [], [(statement, values)]))
    return loop


def loaded(place: Place, row: LoopRow) -> Loop:
    """Return a loop of the database.

    Parameters
    ----------
    place : Place
        Database, writer and clock.
    row : LoopRow
        The loop.

    Raises
    ------
    FileError
        If its rows or its snapshot are damaged.
    """
    store = place.store
    given, run = store.settings_and_run(row.number)
    events, journal = _parts(place, row)
    replay = LoopReplay(journal, row.draw_key, restored(store, row, journal, run))
    bandit = replay.catch_up(store, row.number)
    settings = settings_of(row.name, given)
    return Loop(row.number, row.name, settings, bandit, journal, events, place.submit, place.now)


def restored(store: Reader, row: LoopRow, journal: LoopJournal, run: str) -> LoggedBandit | None:
    """Return the bandit of a loop's last snapshot, and set the journal to its row; or None.

    A snapshot only saves time. A damaged one is skipped, with a warning: the one before
    it and the rows give the same state. If those rows were archived, all are taken in again.

    Parameters
    ----------
    store : Reader
        The database.
    row : LoopRow
        The loop.
    journal : LoopJournal
        Its journal.
    run : str
        The name of its run.
    """
    last = last_row(store, row)
    before = sys.maxsize
    while (found := store.snapshot(row.number, before)) is not None:
        before, _, checksum, model = found
        if before > last:
            raise FileError(f"{journal.name} has a snapshot at row {before}, and ends at {last}")
        try:
            if hashlib.sha256(model).digest() != checksum:
                raise FileError("its checksum differs")
            bandit = unpacked(model, journal, row.draw_key, run)
        except KeyholeError as reason:
            warnings.warn(
                f"the snapshot of {journal.name} at row {before} is damaged ({reason}): earlier "
                "rows are taken in again",
                KeyholeWarning,
                stacklevel=2,
            )
            continue
        journal.seq = before
        return bandit
    return from_archive(store, row, journal, run)


def from_archive(
    store: Reader, row: LoopRow, journal: LoopJournal, run: str
) -> LoggedBandit | None:
    """Return the bandit of all rows of a loop; None if none were archived: the database has them.

    Parameters
    ----------
    store, row, journal, run
        As in `restored`.
    """
    if Archive(store.folder, row.name).last() == 0:
        return None
    whole = WholeFold(store, row, verifies=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeyholeWarning)  # issued when the rows were written
        for one in all_rows(store, row):
            whole.step(*one)
    journal.seq = whole.journal.seq
    return unpacked(packed(whole.replay.made()), journal, row.draw_key, run)


def settings_of(name: str, given: bytes) -> LoopSettings:
    """Return the settings of a loop as the database has them, or raise `FileError`.

    Parameters
    ----------
    name : str
        The name of the loop.
    given : bytes
        The settings, as JSON.
    """
    try:
        return LoopSettings.of(msgspec.json.decode(given))
    except (msgspec.MsgspecError, KeyholeError, TypeError, UnicodeDecodeError) as reason:
        raise FileError(f"the settings of loop {name!r} are damaged: {reason}") from None


def snapshot(loop: Loop) -> Unit:
    """Return a unit that keeps a loop as it is now, and the snapshot before that."""
    model = loop.model()
    checksum = hashlib.sha256(model).digest()
    values = (loop.number, loop.version, fingerprint(), checksum, model)
    older = (
        "DELETE FROM snapshot WHERE loop = ?1 AND seq NOT IN "
        "(SELECT seq FROM snapshot WHERE loop = ?1 ORDER BY seq DESC LIMIT 2)"
    )
    insert = "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?)"
    return Unit.of_statements((insert, values), (older, (loop.number,)))


def _parts(place: Place, row: LoopRow) -> tuple[EventCache, LoopJournal]:
    store, (number, name, _) = place.store, row
    events = EventCache(lambda event: store.event(number, event), CACHED_EVENTS, place.committed)
    return events, LoopJournal(number, name, store, events, place.now)
