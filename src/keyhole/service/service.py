"""`Service`: the loops of a folder, without HTTP.

One thread calls it. A call changes memory at once, and `wait` returns when the change is on the
disk; an answer must not be sent before.
"""

from __future__ import annotations

import os
import secrets
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Self

from keyhole.core import Arm
from keyhole.errors import FileError, FileUnusable, InvalidValue, KeyholeError, shown
from keyhole.files import Path
from keyhole.online import Bandit
from keyhole.service import archived, loading
from keyhole.service.clock import Clock
from keyhole.service.digests import request_digest
from keyhole.service.folder import Folder
from keyhole.service.learning import MAX_DUE
from keyhole.service.loop import Decided, Loop
from keyhole.service.reader import LoopRow
from keyhole.service.requests import DecideRequest, check_name
from keyhole.service.schema import TRIALS
from keyhole.service.settings import LoopSettings
from keyhole.service.store import Store, Unit
from keyhole.service.writer import Writer

# Rows after which a snapshot is made: a start reads only the rows after the last one.
SNAPSHOT_EVERY = 20_000
# Ids of a loop's events that a tick reads, after a start: 5 ms.
IDS_AT_ONCE = 5_000


class UnknownLoop(InvalidValue):
    """No loop has this name; nothing was changed."""


class Service:
    """The loops of a folder.

    Parameters
    ----------
    folder : path-like
        The folder, which is made if it does not exist.
    now : callable, optional
        The clock, in seconds since 1970.
    synchronous : {"FULL", "OFF"}, default "FULL"
        Whether the disk confirms what is written; "OFF" is for measurements and fault tests.
    vfs : str, optional
        The file system layer of SQLite, for fault tests.
    notify : callable, optional
        Called after each commit, by the thread that committed; see `Writer`.

    Examples
    --------
    >>> import tempfile
    >>> from keyhole.service import DecideRequest, Service
    >>> service = Service(tempfile.mkdtemp())
    >>> loop = service.create("home", {"arms": ["A", "B"], "dim": 2})
    >>> decided = service.decide("home", DecideRequest(context=[1.0, 0.5], event_id="o-1"))
    >>> service.loop("home").reward("o-1", 1.0).status
    'counted'
    >>> service.close()
    """

    def __init__(
        self,
        folder: Path,
        *,
        now: Callable[[], float] | None = None,
        synchronous: str = "FULL",
        vfs: str | None = None,
        notify: Callable[[int, BaseException | None], None] | None = None,
    ) -> None:
        self._folder = Folder(folder)
        self.now, self._notify = now or Clock(), notify
        self._later: Callable[[Callable[[], None]], object] | None = None
        self._options: dict[str, Any] = {"synchronous": synchronous, "vfs": vfs}
        self._is_closed = False
        self._lost: list[range] = []  # units that were submitted and are not in the database
        try:
            self._open()
        except BaseException:
            self._folder.close()
            raise

    def _open(self, last: int = 0, written: Mapping[int, int] | None = None) -> None:
        """Open the database; if it cannot be, nothing is changed.

        Loops that were loaded before keep submitting to their own writer, and not to the new one.

        Parameters
        ----------
        last : int, default 0
            The last unit of the writer before this one.
        written : mapping of int to int, optional
            The last row of each loop that was on the disk, if that writer has failed.
        """
        store = Store(self._folder.database, **self._options)
        try:
            if not store.restart_log() and written is not None:
                raise FileUnusable(
                    f"{store.path} is read by another program: it can be written again after that"
                )
            archived.check(store)
            _check_rows(store, written or {})
            listed = store.loops()
        except BaseException:
            store.close()
            raise
        self.store, self.writer = store, Writer(store, self._notify, last)
        self.writer.gather(self._later)
        writer = self.writer
        self._place = loading.Place(store, writer.submit, lambda: writer.committed, self.now)
        self._rows = {row.name: row for row in listed}
        self._loops: dict[str, Loop] = {}
        self._snapshots: dict[str, int] = {}  # the row of the last snapshot of each
        self._stuck: set[tuple[str, str]] = set()  # loops and events that cannot be ended

    @property
    def path(self) -> str:
        """The folder."""
        return self._folder.path

    # -- loops ------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The names of all loops."""
        return list(self._rows)

    @property
    def in_memory(self) -> list[Loop]:
        """The loops that were used since the start."""
        return list(self._loops.values())

    def loop(self, name: str) -> Loop:
        """Return a loop, or raise `UnknownLoop`.

        After a failure of the disk all loops are loaded again first.

        Raises
        ------
        FileUnusable
            If the database still cannot be read or written.
        """
        self._check_usable()
        found = self._loops.get(name)
        if found is None or found.is_broken:
            if name not in self._rows:
                raise UnknownLoop(f"there is no loop {shown(name)}")
            if found is not None:
                self.wait(self.writer.submitted)  # what was submitted is written first
            found = loading.loaded(self._place, self._rows[name])
            kept = self.store.snapshots(found.number)
            self._snapshots[name] = max((seq for seq, *_ in kept), default=0)
            self._loops[name] = found
        return found

    def create(
        self,
        name: str,
        settings: LoopSettings | dict[str, Any],
        bandit: Bandit | None = None,
    ) -> Loop:
        """Make a loop, or change the settings of one that is there.

        Parameters
        ----------
        name : str
            Its name: letters, digits, ".", "_" and "-".
        settings : LoopSettings or dict
            Its settings, all of them: those that are left out have their defaults.
        bandit : Bandit, optional
            The bandit that a new loop continues.
        """
        check_name("the name of a loop", name)
        checked = LoopSettings.of(settings)
        checked.check_mode()
        self._check_usable()
        if name in self._rows:
            loop = self.loop(name)
            if loop.settings != checked:
                loop.change(checked)
            return loop
        checked.check_baseline(checked.arm_names if bandit is None else bandit.arms)
        number = max((row.number for row in self._rows.values()), default=0) + 1
        row = LoopRow(number, name, secrets.token_bytes(32))
        loop = loading.made(self._place, row, checked, bandit)
        self._rows[name], self._loops[name], self._snapshots[name] = row, loop, loop.version
        return loop

    def removed_arms(self, name: str, arms: Collection[Arm]) -> list[Arm]:
        """Return those of the given arms that were removed from a loop.

        Parameters
        ----------
        name : str
            The loop, which need not exist.
        arms : collection of str
            The arms.
        """
        if name not in self._rows:
            return []
        bandit = self.loop(name).bandit
        return [arm for arm in arms if bandit.was_removed(arm)]

    @property
    def has_had_keys(self) -> bool:
        """Whether keys of clients were noted: a later start without them is a mistake."""
        return bool(self.store.query("SELECT value FROM note WHERE name = 'keys'"))

    def note_keys(self, *, are_needed: bool = True) -> int:
        """Note for every later start that there were keys of clients, or that none are needed.

        Returns the unit to wait for.

        Parameters
        ----------
        are_needed : bool, default True
            False to serve without keys again.
        """
        self._check_usable()
        note = "INSERT OR REPLACE INTO note VALUES ('keys', 'needed')"
        statement = note if are_needed else "DELETE FROM note WHERE name = 'keys'"
        return self.writer.submit(Unit.of_statements((statement, ())))

    def archived(self, name: str) -> int:
        """Return the number of the last row of a loop that was archived, or 0."""
        return archived.noted(self.store, self._rows[name].number)

    # -- deciding ---------------------------------------------------------------------------------

    def decide(self, name: str, request: DecideRequest, digest: bytes | None = None) -> Decided:
        """Decide in a loop.

        Parameters
        ----------
        name : str
            The loop.
        request : DecideRequest
            The request.
        digest : bytes, optional
            A digest of it; `request_digest` by default.
        """
        event = new_event_id(self.now()) if request.event_id is None else request.event_id
        return self.loop(name).decide(event, request, digest or request_digest(request))

    def gather(self, later: Callable[[Callable[[], None]], object]) -> None:
        """Write all units of a turn of an event loop in one transaction.

        Parameters
        ----------
        later : callable
            Calls a function at the end of the turn, such as `call_soon`.
        """
        self._later = later
        self.writer.gather(later)

    def wait(self, unit: int) -> None:
        """Return when a unit is on the disk, or raise `FileUnusable`."""
        if any(unit in lost for lost in self._lost):
            raise FileUnusable(f"{self.store.path} could not be written: send the request again")
        self.writer.wait(unit)

    # -- time -------------------------------------------------------------------------------------

    def tick(self) -> int:
        """End events that are due, keep loops that have grown, and return how many events ended.

        After a start it also reads the ids of events, some at a time; see `KnownIds`.

        Raises
        ------
        FileError
            If a loop is damaged; all others are done first.
        """
        return sum(self.turns())

    def turns(self) -> Iterator[int]:
        """Do what `tick` does in short turns, and yield after each how many events ended.

        A caller with other work does it in between. All events that are due when the first turn
        begins are ended.
        """
        self._check_usable()
        try:
            self._check_folder()
            if not self.store.is_there:
                raise FileUnusable(f"{self.store.path} was removed while the service ran")
        except FileUnusable as reason:
            self.writer.fail(reason)
            raise self.writer.error() from None
        damaged: list[Exception] = []
        until = self.now()
        for number, name, _ in list(self._rows.values()):
            # Events that have ended stay due in the database until their unit is committed.
            due = self._due(number, until)
            if not due:
                yield 0
            while due:
                yield self._time_out(name, [event for _, event in due], damaged)
                found = self._loops.get(name)
                if found is None or found.is_broken:  # it cannot be loaded
                    break
                self._check_usable()
                due = self._due(number, until, due[-1])
        for name, loop in list(self._loops.items()):
            if not loop.is_broken and loop.version - self._snapshots[name] >= SNAPSHOT_EVERY:
                self.keep(loop)
                yield 0
            known = loop.events.known
            if not known.is_complete:
                known.add_all(self.store.ids(loop.number, known.last, IDS_AT_ONCE))
                yield 0
        if damaged:
            raise damaged[0]

    def _due(self, number: int, until: float, *after: tuple[float, str]) -> list[tuple[float, str]]:
        """Return events of a loop that are due; a database that cannot be read stops the service.

        Each turn of the timer asks: what was damaged from outside is found within a second.
        """
        try:
            return self.store.due(number, until, MAX_DUE, *after)
        except FileError as reason:
            self.writer.fail(reason)
            raise self.writer.error() from None

    def _time_out(self, name: str, names: list[str], damaged: list[Exception]) -> int:
        """End events of a loop, and return how many did.

        Parameters
        ----------
        name : str
            The loop.
        names : list of str
            The ids of the events.
        damaged : list of Exception
            Receives the error of a loop that cannot be loaded, or of an event; the other events are
            ended all the same.
        """
        due = [one for one in names if (name, one) not in self._stuck]
        ended, at_once = 0, len(due)
        while True:
            try:
                loop = self.loop(name)  # again after a failure, also after that of the last event
            except FileUnusable:
                raise
            except Exception as reason:  # raised when the others are done
                damaged.append(reason)
                break
            if not due:
                break
            now, due = due[:at_once], due[at_once:]
            try:
                ended += loop.time_out(now)
            except FileUnusable:
                raise
            except Exception as reason:  # raised when the others are done
                if len(now) > 1:  # one by one, to find which it is
                    due, at_once = now, 1
                else:  # tried again after the next start, or when the disk has failed
                    self._stuck.add((name, now[0]))
                    damaged.append(reason)
        return ended

    def keep(self, loop: Loop) -> None:
        """Write a snapshot of a loop."""
        loop.submit(loading.snapshot(loop))
        self._snapshots[loop.name] = loop.version

    def recover(self) -> None:
        """Commit what can be committed, then load all loops again from the database.

        After a failure of the disk, memory is ahead of the database. Loops that were returned
        before refuse everything. A full disk can be opened and read: the service has recovered
        when something was written.

        Raises
        ------
        FileUnusable
            If the database still cannot be opened or written; another call tries again.
        """
        if self._is_closed:
            raise FileUnusable(f"the service of {self.path} was closed")
        self.writer.check_process()
        for loop in self._loops.values():
            loop.is_broken = True
        before = self.writer
        before.close()
        self.store.close()
        self._check_folder()
        if not os.path.exists(self._folder.database):
            # A new database in its place would be empty, without an error.
            raise FileUnusable(f"{self._folder.database} was removed while the service ran")
        self._open(before.submitted, before.written)
        if before.committed < before.submitted:
            self._lose(before.committed + 1, before.submitted + 1)
        for statement in TRIALS:
            self.wait(self.writer.submit(Unit.of_statements((statement, ()))))

    def _check_folder(self) -> None:
        """Raise if the folder was replaced: another process may work on what is there now."""
        if not self._folder.is_held:
            raise FileUnusable(
                f"{self.path} was replaced, or its file 'lock' was removed, while the service ran: "
                "start it again"
            )

    def _lose(self, first: int, end: int) -> None:
        """Note units that are not in the database; adjacent ranges are joined.

        Parameters
        ----------
        first, end : int
            The number of the first, and the one after the last.
        """
        if self._lost and self._lost[-1].stop == first:
            first = self._lost.pop().start
        self._lost.append(range(first, end))

    def _check_usable(self) -> None:
        """Load all again if the disk has failed; raise `FileUnusable` if it still does."""
        if not self.writer.is_usable:
            self.recover()

    def close(self) -> None:
        """Write all that was submitted, a snapshot of every loop, and close the folder.

        A second call does nothing. In a process that was forked nothing is written.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if not self.writer.is_own:  # the files are the other process's, which goes on
            return
        self.writer.gather(None)  # an event loop may have ended
        failures: list[KeyholeError] = []
        try:
            if self.writer.failure is None:
                for name, loop in self._loops.items():
                    if not loop.is_broken and loop.version > self._snapshots[name]:
                        try:
                            self.keep(loop)
                        except KeyholeError as reason:  # raised when the others are kept
                            failures.append(reason)
        finally:  # snapshots are optional; submitted units are not
            self.writer.close()
            self.store.close()
            self._folder.close()
        if self.writer.failure is not None:
            raise self.writer.error()
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _check_rows(store: Store, written: Mapping[int, int]) -> None:
    """Raise `FileUnusable` if a database lacks rows that were on the disk.

    Parameters
    ----------
    store : Store
        The database, which was opened again.
    written : mapping of int to int
        The last row of each loop that was on the disk, by the number of the loop.
    """
    for number, seq in written.items():
        found = store.last_seq(number)
        if found < seq:
            raise FileUnusable(
                f"{store.path} lacks rows {found + 1} to {seq} of its loop {number}, which were "
                "written: a file was changed by another program. Stop the service, and restore a "
                "backup"
            )


def new_event_id(now: float) -> str:
    """Return an id of RFC 9562's version 7: ordered by time, and random."""
    milliseconds = int(now * 1000) & ((1 << 48) - 1)
    value = milliseconds << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))
