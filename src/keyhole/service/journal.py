"""`LoopJournal`: the log of a loop as its bandit sees it; rows go to the service's database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

from keyhole.errors import FileError, FileUnusable, ForgottenEvent, UnknownEvent, shown
from keyhole.online import DECIDED, FORGOTTEN, LEARNED, UNKNOWN, rows
from keyhole.service.archived import Archive
from keyhole.service.events import NOT_YET, Event, EventCache, State
from keyhole.service.reader import Reader
from keyhole.service.store import LogRow

Kind = TypeVar("Kind", bound=rows.AnyRow)
# Their names, as the database has them.
KINDS = {kind: kind.__name__.lower() for kind in get_args(rows.AnyRow)}
# Rows that may have fields of the service, and rows that terms of the sums follow from.
WITH_EXTRA = frozenset({rows.Decision, rows.Reward, rows.Amend})
OF_TERMS = (rows.Reward, rows.Amend, rows.Counted)


class LoopJournal:
    """The rows of a loop: those in the database, and those on their way there.

    Parameters
    ----------
    loop : int
        The number of the loop.
    name : str
        Its name, for messages.
    store : Reader
        The database.
    events : EventCache
        The events of the loop.
    now : callable
        The clock.
    """

    def __init__(
        self, loop: int, name: str, store: Reader, events: EventCache, now: Callable[[], float]
    ) -> None:
        self._loop, self._name, self._store = loop, name, store
        self._events, self._now = events, now
        self.seq = 0
        self.written: list[rows.AnyRow] = []  # since they were last taken
        self.touched: dict[str, Event] = {}  # events whose terms follow from these rows
        self.extra: dict[str, Any] = {}  # further fields of the next decision or reward

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"loop {self._name!r}"

    def open(self) -> None:
        """Do nothing: the service has opened its database."""

    def close(self) -> None:
        """Do nothing: the service closes its database."""

    def check_ready(self) -> None:
        """Do nothing: a service that cannot write does not call its bandits."""

    def give_up(self, reason: str) -> None:
        """Raise: a loop whose memory is ahead is loaded again."""
        raise FileUnusable(f"{self.name} cannot be written: {reason}")

    def append(self, kind: type[rows.AnyRow], **fields: Any) -> None:
        """Add a row, as the bandit does.

        Parameters
        ----------
        kind : type
            The kind of row.
        **fields
            Its fields, but for `seq` and `at`, and for those in `extra`.
        """
        if self.extra and kind in WITH_EXTRA:
            fields |= self.extra
            self.extra = {}
        row = self.add(kind, fields)
        if isinstance(row, OF_TERMS):
            assert row.event is not None
            event = self.event(row.event)
            event.last, event.last_row, event.unit = row.seq, row, NOT_YET
            self.touched[row.event] = event

    def add(self, kind: type[Kind], fields: dict[str, Any]) -> Kind:
        """Add a row that no term follows from, and return it.

        Parameters
        ----------
        kind : type
            The kind of row.
        fields : dict
            Its fields, but for `seq` and `at`.
        """
        row = kind(seq=self.seq + 1, at=self._now(), **fields)
        self.written.append(row)
        self.seq += 1
        return row

    def append_all(self, kind: type[rows.AnyRow], many: list[dict[str, Any]]) -> None:
        """Add several rows of a kind.

        Parameters
        ----------
        kind : type
            The kind of rows.
        many : list of dict
            The fields of each.
        """
        for fields in many:
            self.append(kind, **fields)

    def take(self) -> list[LogRow]:
        """Return the rows that were added since the last call, as the database keeps them."""
        written, self.written, self.touched = self.written, [], {}
        return [
            (
                self._loop,
                row.seq,
                row.at,
                KINDS[type(row)],
                getattr(row, "event", None),
                rows.encoded(row),
            )
            for row in written
        ]

    def keep_encoded(self, events: list[Event], written: list[LogRow]) -> None:
        """Keep the bytes of the rows of events that were submitted.

        Parameters
        ----------
        events : list of Event
            The events that have changed.
        written : list of tuple
            The rows that `take` returned.
        """
        bodies = {row[1]: row[5] for row in written}
        for event in events:
            before = event.n_bytes
            event.keep_encoded(bodies)
            self._events.grow(event, event.n_bytes - before)

    # -- events -----------------------------------------------------------------------------------

    def event(self, name: str) -> Event:
        """Return an event, or raise `UnknownEvent` or `ForgottenEvent`."""
        event = self._events.get(name)
        if event is None:
            raise UnknownEvent(f"loop {self._name!r} has no event {shown(name)}")
        if event.state is State.FORGOTTEN:
            raise ForgottenEvent(f"event {shown(name)} was forgotten")
        return event

    def state(self, event: str) -> int:
        """Return the state of an event, as a bandit knows it."""
        found = self._events.get(event)
        if found is None:
            return UNKNOWN
        if found.state is State.FORGOTTEN:
            return FORGOTTEN
        return DECIDED if found.learned is None else LEARNED

    def rows_of(self, event: str) -> list[rows.AnyRow]:
        """Return the decision of an event, and the last row that its term follows from."""
        found = self._events.get(event)
        if found is None:
            return []
        listed: list[rows.AnyRow] = [self.row_of(found)]
        if found.last is not None:
            if found.last_row is None:
                if found.last_body is None:
                    found.last_body, _ = self._body(found.last)
                    self._events.grow(found, len(found.last_body))
                found.last_row = decoded_row(self.name, found.last, found.last_body)
            listed.append(found.last_row)
        return listed

    def has_row(self, event: Event) -> bool:
        """Tell whether the decision of an event is in the database, and not archived."""
        if event.row is not None or event.body is not None:
            return not event.is_archived
        return self._store.row(self._loop, event.seq) is not None

    def row_of(self, event: Event) -> rows.Decision | rows.Served:
        """Return the row of the decision of an event."""
        if event.row is not None:
            return event.row
        if event.body is None:
            event.body, event.is_archived = self._body(event.seq)
            self._events.grow(event, len(event.body))
        row = decoded_row(self.name, event.seq, event.body)
        if not isinstance(row, rows.Decision | rows.Served) or row.event != event.name:
            raise FileError(
                f"row {event.seq} of {self.name} is not the decision of event "
                f"{event.name!r}: the index does not fit the log"
            )
        event.row = row
        return row

    def decided(self, name: str) -> rows.Decision:
        """Return the decision of an event, also of one that was forgotten since.

        Raises
        ------
        UnknownEvent
            If there is no such event, or it was not decided.
        """
        event = self._events.get(name)
        row = None if event is None else self.row_of(event)
        if not isinstance(row, rows.Decision):
            raise UnknownEvent(f"{self.name} has no decision {shown(name)}")
        return row

    def _body(self, seq: int) -> tuple[bytes, bool]:
        """Return the body of a row, and whether it is in the archive."""
        body = self._store.row(self._loop, seq)
        if body is not None:
            return body, False
        return Archive(self._store.folder, self._name).row(seq), True


def decoded_row(name: str, seq: int, body: bytes) -> rows.AnyRow:
    """Return a row of a loop, or raise `FileError` if it is damaged.

    Parameters
    ----------
    name : str
        The name of the loop in messages.
    seq : int
        The number of the row.
    body : bytes
        The row.
    """
    try:
        return rows.decoded(body)
    except rows.DamagedRow as reason:
        raise FileError(f"row {seq} of {name} is damaged: {reason}") from None
