"""`Log`: the file in which a bandit writes down what it decides and learns."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keyhole import checks
from keyhole.errors import (
    AlreadyLearned,
    FileError,
    ForgottenEvent,
    InvalidValue,
    UnknownEvent,
    shown,
)
from keyhole.files import Path, checked_path, naming
from keyhole.online.decision import Decision
from keyhole.online.log import parquet, rows
from keyhole.online.log.appending import Appender, lines
from keyhole.online.log.events import FORGOTTEN, LEARNED, UNKNOWN, WORDS, Events

if TYPE_CHECKING:
    from keyhole.core import Arm, Policy, Recipe
    from keyhole.online.bandit import Bandit


class Log:
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
        self._replaced: dict[str, int] = {}  # places of decisions that took the place of others
        self._seq = 0
        self._read_to = 0  # the place up to which the index is made
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"Log({os.fspath(self.path)!r})"

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
            if isinstance(row, rows.Start) and row.schema != rows.SCHEMA:
                raise FileError(
                    f"line {seq} of {self.path} has schema {row.schema}, and this Keyhole reads "
                    f"schema {rows.SCHEMA} only"
                )
            yield place, place + len(line) + 1, row

    def refresh(self) -> None:
        """Take in the rows that were written since this was last called."""
        with self._lock:
            # A writer knows its own rows.
            if self._appender is None and self.exists:
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
        elif isinstance(row, rows.Given) and row.event is not None:
            if events.state(row.event) == UNKNOWN:
                events.add(row.event, place)
            else:  # another arm was taken in place of the chosen one
                self._replaced[row.event] = place
        elif isinstance(row, rows.Reward) and row.event is not None:
            events.set(row.event, LEARNED)
        elif isinstance(row, rows.Forget):
            events.set(row.event, FORGOTTEN)

    def __len__(self) -> int:
        """Return the number of rows."""
        self.refresh()
        return self._seq

    def status(self, event: str) -> str:
        """Return what became of an event: "unknown", "decided", "learned" or "forgotten"."""
        self.refresh()
        return WORDS[self._events.state(_checked_event(event))]

    @property
    def counts(self) -> dict[str, int]:
        """How many events are decided and wait for a reward, learned, and forgotten."""
        self.refresh()
        return self._events.counts()

    def row_of(self, event: str) -> rows.Decision | rows.Given:
        """Return the row of a decision, or raise `UnknownEvent`."""
        self.refresh()
        if self._events.state(_checked_event(event)) == UNKNOWN:
            raise UnknownEvent(f"there is no event {shown(event)} in {self.path}")
        place = self._replaced.get(event, self._events.place(event))
        for _, _, row in self._rows(place, place - 1) if self.is_parquet else self._at(place):
            assert isinstance(row, rows.Decision | rows.Given)
            return row
        raise FileError(f"{self.path} has become shorter")

    def _at(self, place: int) -> Iterator[tuple[int, int, rows.AnyRow]]:
        """Yield the row of a line, and those after it."""
        for start, line in lines(self.path, place):
            yield start, start + len(line) + 1, rows.decoded(line)

    def decision(
        self, event: str, grown: tuple[tuple[str, str], ...] | None, recipe: str | None
    ) -> Decision:
        """Return a decision by its id.

        Parameters
        ----------
        event : str
            The id.
        grown : tuple of pairs, optional
            All levels of growing categories that have columns.
        recipe : str, optional
            What tells the features from others.

        Raises
        ------
        UnknownEvent
            If there is none.
        """
        return self._decision_of(self.row_of(event), grown, recipe)

    def _decision_of(
        self,
        row: rows.Decision | rows.Given,
        grown: tuple[tuple[str, str], ...] | None,
        recipe: str | None,
    ) -> Decision:
        """Return the decision of a row; see `decision`."""
        if isinstance(row, rows.Given):
            return Decision.from_dict(row.decision)
        seen: Any = row.filled  # null is a missing entry
        if seen is None:
            # A row for each of all arms is the only case in which they have to be known.
            is_plain = len(row.y) == 1 or row.arms is not None
            seen = row.own_row([] if is_plain else self._candidates_at(row))
        return Decision(
            arm=row.arm,
            observation=seen,
            probability=row.probability,
            score=row.score,
            id=row.event,
            predicted=row.predicted or (),
            levels=None if grown is None else grown[: row.levels],
            recipe=recipe,
        )

    def _candidates_at(self, row: rows.Decision) -> list[Arm]:
        """Return all arms as they were when a decision was made, whose row of y is wanted."""
        arms: list[Arm] = []
        for each in self:
            if each.seq >= row.seq:
                break
            if isinstance(each, rows.Start):
                arms = list(each.arms)
            elif isinstance(each, rows.Arms):
                arms = each.applied_to(arms)
        return arms

    def learned(self, event: str) -> list[tuple[Decision, float]]:
        """Return the rewards of an event that were learned, each with the decision it was for.

        Raises
        ------
        UnknownEvent
            If there is no such event.
        """
        decision = self.decision(event, None, None)  # or raise
        found = []
        for row in self:
            if isinstance(row, rows.Decision | rows.Given) and row.event == event:
                decision = self._decision_of(row, None, None)
            elif isinstance(row, rows.Reward) and row.event == event:
                found.append((decision, row.value))
        return found

    def has_decision(self, decision: Decision) -> bool:
        """Tell whether this very decision is in the log, and not one with its id and another arm.

        A decision that was just made is; one that came through JSON is compared.
        """
        event = decision.id
        if event is None or self._events.state(event) == UNKNOWN:
            return False
        if decision._description is not None and event not in self._replaced:
            return True
        row = self.row_of(event)
        if isinstance(row, rows.Given):
            return bool(row.decision == decision.to_dict())
        if row.arm != decision.arm or row.predicted != (list(decision.predicted) or None):
            return False
        seen = [None if x != x else x for x in decision._observation.tolist()]
        return seen in (row.y if row.filled is None else [row.filled])

    def replay(self, *, policy: Policy | None = None, features: Recipe | None = None) -> Bandit:
        """Return the bandit that wrote this log, to the bit: all it had learned, and its draws.

        Every choice is made again, and compared with the log.

        Parameters
        ----------
        policy, features
            As in `Bandit.load`.

        Raises
        ------
        FileError
            If a row does not follow from those before it.
        """
        from keyhole.online.log.replaying import replayed

        return replayed(self, policy=policy, features=features)

    def columns(self) -> dict[str, Any]:
        """Return the decisions and their rewards as arrays by name, for `kh.evaluate`."""
        from keyhole.online.log.columns import columns

        return columns(self)

    def to_parquet(self, path: Path) -> int:
        """Write all rows to a Parquet file, and return their number.

        It holds the same as the JSON lines, in about a third of the space, and is read by anything
        that reads Parquet; `Log(path)` reads it, too.

        Parameters
        ----------
        path : path-like
            The file, which is replaced in one step.
        """
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
                self._read_to = self._appender.size
                self._appender.close()
                self._appender = None

    def check_ready(self) -> None:
        """Raise unless rows can be written: a bandit asks before it changes anything."""
        if self._appender is None:
            raise InvalidValue(f"{self.path} was closed: give a new bandit Log({str(self.path)!r})")
        self._appender.check()

    @property
    def is_parquet(self) -> bool:
        """Whether the file is one of `to_parquet`, which can be read and not written to."""
        if not self.exists:
            return False
        with naming("read", self.path), open(self.path, "rb") as file:
            return file.read(4) == parquet.MAGIC

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
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
        seq = self._seq + 1
        row = kind(seq=seq, at=time.time(), **fields)
        assert self._appender is not None
        self._note(row, self._appender.write(rows.encoded(row)))
        self._seq = seq

    def append_all(self, kind: type[rows.AnyRow], many: list[dict[str, Any]]) -> None:
        """Write several rows of a kind: all of them or, after a failure, none.

        Parameters
        ----------
        kind : type
            The kind of rows.
        many : list of dict
            The fields of each.
        """
        at, seq = time.time(), self._seq
        made = [kind(seq=seq + k, at=at, **fields) for k, fields in enumerate(many, start=1)]
        encoded = [rows.encoded(row) for row in made]
        assert self._appender is not None
        place = self._appender.write(b"".join(encoded))
        for row, line in zip(made, encoded, strict=True):
            self._note(row, place)
            place += len(line)
        self._seq += len(made)

    # -- once -------------------------------------------------------------------------------------

    def check_once(self, event: str | None) -> None:
        """Raise if the reward of an event was learned, or the event was forgotten."""
        if event is None:
            return
        state = self._events.state(event)
        if state == LEARNED:
            raise AlreadyLearned(
                f"the reward of event {event!r} was learned already, by this log; again=True "
                "learns one more"
            )
        if state == FORGOTTEN:
            raise ForgottenEvent(f"event {event!r} was forgotten, and learns no reward")


def _checked_event(event: object) -> str:
    if not isinstance(event, str):
        raise InvalidValue(f"an event is the id of a decision, a text, got {shown(event)}")
    return event
