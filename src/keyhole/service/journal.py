"""`LoopJournal`: the log of a loop as its bandit sees it; rows go to the service's database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keyhole.errors import FileError, FileUnusable, ForgottenEvent, UnknownEvent, shown
from keyhole.online import DECIDED, FORGOTTEN, LEARNED, UNKNOWN, rows
from keyhole.service import archived
from keyhole.service.events import Event, EventCache, State
from keyhole.service.store import LogRow, Store


class LoopJournal:
    """The rows of a loop: those of the database, and those on their way there.

    Parameters
    ----------
    loop : int
        The number of the loop.
    name : str
        Its name, for messages.
    store : Store
        The database.
    events : EventCache
        The events of the loop.
    now : callable
        The clock.
    """

    def __init__(
        self, loop: int, name: str, store: Store, events: EventCache, now: Callable[[], float]
    ) -> None:
        self._loop, self._name, self._store = loop, name, store
        self._events, self._now = events, now
        self.seq = 0
        self.written: list[rows.AnyRow] = []  # since they were last taken
        self.touched: dict[str, Event] = {}  # events whose term these rows are
        self.extra: dict[str, Any] = {}  # further fields of the next decision or reward

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"loop {self._name!r}"

    def open(self) -> None:
        """Do nothing: the service has opened its database."""

    def close(self) -> None:
        """Do nothing: the service closes its database."""

    def check_ready(self) -> None:
        """Do nothing: a service that cannot write asks its bandits nothing."""

    def give_up(self, reason: str) -> None:
        """Raise: a loop whose memory is ahead is loaded again."""
        raise FileUnusable(f"{self.name} cannot be written: {reason}")

    def append(self, kind: type[rows.AnyRow], **fields: Any) -> None:
        """Add a row.

        Parameters
        ----------
        kind : type
            The kind of row.
        **fields
            Its fields, but for `seq` and `at`, and for those in `extra`.
        """
        if self.extra and kind in (rows.Decision, rows.Reward, rows.Amend):
            fields |= self.extra
            self.extra = {}
        self.seq += 1
        row = kind(seq=self.seq, at=self._now(), **fields)
        self.written.append(row)
        if isinstance(row, rows.Reward | rows.Amend | rows.Counted):
            assert row.event is not None
            event = self.event(row.event)
            event.last, event.last_row = row.seq, row
            self.touched[row.event] = event

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
                type(row).__name__.lower(),
                getattr(row, "event", None),
                rows.encoded(row),
            )
            for row in written
        ]

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
            listed.append(found.last_row or self._row(found.last))
        return listed

    def has_row(self, event: Event) -> bool:
        """Tell whether the decision of an event is in the database, and not archived."""
        return event.row is not None or self._store.row(self._loop, event.seq) is not None

    def row_of(self, event: Event) -> rows.Decision | rows.Served:
        """Return the row of the decision of an event."""
        if event.row is None:
            row = self._row(event.seq)
            if not isinstance(row, rows.Decision | rows.Served):
                raise FileError(
                    f"row {event.seq} of {self.name} is not the decision of event "
                    f"{event.name!r}: the index does not fit the log"
                )
            event.row = row
        return event.row

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

    def _row(self, seq: int) -> rows.AnyRow:
        """Return a row of the database, or of the archive."""
        body = self._store.row(self._loop, seq)
        if body is None:
            body = archived.row(self._store.folder, self._name, seq)
        return rows.decoded(body)
