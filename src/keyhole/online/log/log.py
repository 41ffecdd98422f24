"""`Log`: the file in which a bandit writes down what it decides and learns."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keyhole import checks
from keyhole.errors import FileError, InvalidValue, UnknownEvent, shown
from keyhole.files import Path, checked_path, naming
from keyhole.online.log import parquet, rows
from keyhole.online.log.appending import Appender, line_at, lines
from keyhole.online.log.decisions import last_decision
from keyhole.online.log.events import UNKNOWN, WORDS, Events
from keyhole.online.sharing import Shared

if TYPE_CHECKING:
    from keyhole.core import AnyLearner, Policy, Recipe
    from keyhole.online.bandit import Bandit


class Log(Shared):
    """A log of decisions and rewards, as JSON lines.

    Give it to a `Bandit`, which then writes a row for all that it decides and learns, before it
    answers. One bandit writes to a log at a time; other processes may read it meanwhile.

    Parameters
    ----------
    path : path-like
        The file. It is made when a bandit begins to write.
    sync : bool, default False
        Have the disk confirm each row, which then survives a loss of power. Otherwise rows survive
        the end of the process, however it comes.

    Examples
    --------
    >>> import os, tempfile
    >>> import keyhole as kh
    >>> path = os.path.join(tempfile.mkdtemp(), "decisions.jsonl")
    >>> bandit = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=1, log=path, seed=2)
    >>> decision = bandit.choose([1.0])
    >>> bandit.learn(decision, reward=1.0)
    >>> bandit.log.status(decision.id)
    'learned'
    >>> [type(row).__name__ for row in kh.Log(path)]
    ['Start', 'Decision', 'Reward']
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        self.path = checked_path("path", path)
        self.sync = checks.flag("sync", sync)
        self._appender: Appender | None = None
        self._events = Events()
        self._seq = 0
        self._read_to = 0  # the place up to which the index is made
        self._share()

    def _begin_anew(self) -> None:
        """Do nothing: in a forked child a log can be read, and is refused by its appender."""

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy reads: one bandit writes to a log, and holds the original.
        return _reader, (self.path, self.sync)

    def __repr__(self) -> str:
        return f"Log({os.fspath(self.path)!r})"

    @property
    def name(self) -> str:
        """The path, as messages name it."""
        return str(self.path)

    # -- reading ----------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[rows.AnyRow]:
        """Yield every row, in order."""
        for _, _, row in self._rows(0, 0):
            yield row

    def _rows(self, start: int, seq: int) -> Iterator[tuple[int, int, rows.AnyRow]]:
        """Yield start, end and content of the rows from a place on, which follow row `seq`."""
        if self.is_parquet:
            yield from ((row.seq, row.seq, row) for row in parquet.read(self.path) if row.seq > seq)
            return
        for place, line in lines(self.path, start):
            seq += 1
            try:
                row = rows.decoded(line)
            except rows.DamagedRow as reason:
                raise FileError(f"line {seq} of {self.path} is no row of a log: {reason}") from None
            if row.seq != seq:
                raise FileError(
                    f"line {seq} of {self.path} has the number {row.seq}: rows are missing before "
                    "it, or are there twice"
                )
            yield place, place + len(line) + 1, row

    def refresh(self) -> None:
        """Take in the rows that were written since this was last called."""
        with self._lock:
            # A writer knows its own rows, unless it is a copy in a forked child.
            if (self._appender is None or not self._appender.is_own) and self.exists:
                self._index()

    def _index(self) -> None:
        batch: list[tuple[int, rows.AnyRow]] = []
        for place, end, row in self._rows(self._read_to, self._seq):
            batch.append((place, row))
            place_of = getattr(row, "batch", None)
            if place_of is not None and place_of[0] + 1 < place_of[1]:
                continue  # a batch counts when all of it is there
            for start, each in batch:
                self._note(each, start)
            batch.clear()
            self._seq, self._read_to = row.seq, end

    def _note(self, row: rows.AnyRow, place: int) -> None:
        """Take a row into the index."""
        events = self._events
        if isinstance(row, rows.Decision):
            events.add(row.event, place)
        elif isinstance(row, rows.Reward):
            if row.event is not None:
                events.learn(row.event, place)
        elif isinstance(row, rows.Given):
            if row.event is None:
                return
            if events.state(row.event) == UNKNOWN:
                events.add(row.event, place)
            else:  # another arm was taken in place of the chosen one
                events.also(row.event, place)
        elif isinstance(row, rows.Counted | rows.Amend):
            events.change(row.event, place)
        elif isinstance(row, rows.Context):
            events.also(row.event, place)
        elif isinstance(row, rows.Forget):
            events.forget(row.event)

    def __len__(self) -> int:
        """Return the number of rows."""
        self.refresh()
        return self._seq

    def status(self, event: str) -> str:
        """Return what became of an event: "unknown", "decided", "learned" or "forgotten"."""
        return WORDS[self.state(event)]

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of events that are decided (without a reward yet), learned and forgotten."""
        self.refresh()
        with self._lock:
            return self._events.counts()

    def row_of(self, event: str) -> rows.Decision | rows.Given:
        """Return the row of a decision, or raise `UnknownEvent`."""
        row = last_decision(self.rows_of(_checked_event(event)))
        if row is None:
            raise UnknownEvent(f"there is no event {shown(event)} in {self.path}")
        return row

    def rows_of(self, event: str) -> list[rows.AnyRow]:
        """Return the rows of an event that its decision and its terms follow from, in order."""
        with self._lock:
            self.refresh()
            places = self._events.places(_checked_event(event))
            return [self._at(place) for place in places]

    def _at(self, place: int) -> rows.AnyRow:
        """Return the row at a place."""
        if self._appender is not None and self._appender.is_own:
            return rows.decoded(self._appender.line_at(place))
        if not self.is_parquet:
            return rows.decoded(line_at(self.path, place))
        return next(row for row in parquet.read(self.path) if row.seq == place)

    def state(self, event: str) -> int:
        """Return the state of an event as a number, that of its word in `status`."""
        with self._lock:
            self.refresh()
            return self._events.state(_checked_event(event))

    def replay(
        self,
        *,
        policy: Policy | None = None,
        features: Recipe | None = None,
        learner: AnyLearner | None = None,
    ) -> Bandit:
        """Return the bandit that wrote this log, to the bit: all it had learned, and its draws.

        Every choice is made again, and compared with the log.

        Parameters
        ----------
        policy, features
            As in `Bandit.load`.
        learner : AnyLearner, optional
            Needed only for a learner of your own, with the settings that it had.

        Raises
        ------
        FileError
            If a row does not follow from those before it.
        """
        from keyhole.online.log.replaying import Own, replayed

        return replayed(self, Own(policy, features, learner))

    def columns(
        self, *, policy: Policy | None = None, features: Recipe | None = None
    ) -> dict[str, Any]:
        """Return the decisions and their rewards as arrays by name, for `kh.evaluate`.

        Parameters
        ----------
        policy, features
            As in `replay`.
        """
        from keyhole.online.log.columns import columns
        from keyhole.online.log.replaying import Own

        return columns(self, Own(policy, features))

    def to_parquet(self, path: Path) -> int:
        """Write all rows to a Parquet file, and return their number.

        It holds the same as the JSON lines, in about a third of the space, and is read by anything
        that reads Parquet; `Log(path)` reads it, too.

        Parameters
        ----------
        path : path-like
            The file, which is replaced in one step.
        """
        target = checked_path("path", path)
        if self.exists and os.path.exists(target) and os.path.samefile(self.path, target):
            raise InvalidValue(
                f"path must be another file than the log itself, got {target}: a bandit goes on "
                "with JSON lines"
            )
        return parquet.write(self, path)

    # -- writing ----------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin to write: one bandit at a time does."""
        with self._lock:
            if self._appender is not None:
                raise InvalidValue(f"{self.path} is written by another bandit of this process")
            if self.is_parquet:
                raise InvalidValue(f"{self.path} is a Parquet file: a bandit writes JSON lines")
            appender = Appender(self.path, sync=self.sync)
            try:
                self._index()
                appender.cut(self._read_to)  # a batch of which a crash left only a part
            except BaseException:
                appender.close()
                raise
            self._appender = appender

    def close(self) -> None:
        """End writing. A bandit whose log is closed decides and learns no more."""
        with self._lock:
            if self._appender is not None:
                self._appender.close()
                self._appender = None

    def share_lock(self, lock: Any) -> None:
        """Use the lock of the bandit that writes: a thread never holds one and waits for the other.

        A bandit holds its lock while it writes. With another one here, a fork, which takes all
        locks one after the other, could wait for ever.
        """
        self._lock = lock

    def check_ready(self) -> None:
        """Raise unless rows can be written; called before a bandit changes anything."""
        if self._appender is None:
            raise InvalidValue(f"{self.path} was closed: give a new bandit Log({str(self.path)!r})")
        self._appender.check()

    def give_up(self, reason: str) -> None:
        """Write nothing any more, since the bandit is ahead of its rows."""
        if self._appender is not None:
            self._appender.broken = reason

    @property
    def is_parquet(self) -> bool:
        """True if the file was written by `to_parquet`: it can be read and not appended to."""
        if not self.exists:
            return False
        with naming("read", self.path), open(self.path, "rb") as file:
            return file.read(4) == parquet.MAGIC

    @property
    def exists(self) -> bool:
        """True if the file exists."""
        return os.path.exists(self.path)

    @property
    def seq(self) -> int:
        """The number of the last row."""
        return self._seq

    def append(self, kind: type[rows.AnyRow], **fields: Any) -> None:
        """Write a row.

        Parameters
        ----------
        kind : type
            The kind of row.
        **fields
            Its fields, but for `seq` and `at`.
        """
        with self._lock:
            row = kind(seq=self._seq + 1, at=time.time(), **fields)
            assert self._appender is not None
            self._note(row, self._appender.write(rows.encoded(row)))
            self._seq, self._read_to = row.seq, self._appender.size

    def append_all(self, kind: type[rows.AnyRow], many: list[dict[str, Any]]) -> None:
        """Write several rows of a kind: all of them or, after a failure, none.

        Parameters
        ----------
        kind : type
            The kind of rows.
        many : list of dict
            The fields of each.
        """
        with self._lock:
            at, seq = time.time(), self._seq
            made = [kind(seq=seq + k, at=at, **fields) for k, fields in enumerate(many, start=1)]
            encoded = [rows.encoded(row) for row in made]
            assert self._appender is not None
            place = self._appender.write(b"".join(encoded))
            for row, line in zip(made, encoded, strict=True):
                self._note(row, place)
                place += len(line)
            self._seq, self._read_to = seq + len(made), self._appender.size


def _reader(path: Path, sync: bool) -> Log:
    return Log(path, sync=sync)


def _checked_event(event: object) -> str:
    if not isinstance(event, str):
        raise InvalidValue(f"an event is the id of a decision, a text, got {shown(event)}")
    return event
