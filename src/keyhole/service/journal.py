"""`LoopJournal`: the log of a loop as its bandit sees it; rows go to the service's database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keyhole.errors import (
    AlreadyLearned,
    FileError,
    ForgottenEvent,
    InvalidValue,
    UnknownEvent,
    shown,
)
from keyhole.online import Decision, decision_of, rows
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
        self.extra: dict[str, Any] = {}  # further fields of the next decision or reward

    @property
    def path(self) -> str:
        """What messages call it."""
        return f"loop {self._name!r}"

    def check_ready(self) -> None:
        """Do nothing: a service that cannot write asks its bandits nothing."""

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
        self.written.append(kind(seq=self.seq, at=self._now(), **fields))

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
        written, self.written = self.written, []
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

    def status(self, event: str) -> str:
        """Return what became of an event: "unknown", "decided", "learned" or "forgotten"."""
        found = self._events.get(event)
        if found is None:
            return "unknown"
        if found.state is State.FORGOTTEN:
            return "forgotten"
        return "decided" if found.learned is None else "learned"

    def check_once(self, event: str | None) -> None:
        """Raise if the reward of an event was learned, or the event was forgotten."""
        if event is not None and self.event(event).learned is not None:
            raise AlreadyLearned(f"the reward of event {event!r} was learned already")

    def has_decision(self, decision: Decision) -> bool:
        """Tell whether a decision is there: all that are learned are found by their ids."""
        return decision.id is not None

    def row_of(self, event: Event) -> rows.Decision | rows.Served:
        """Return the row of the decision of an event."""
        if event.row is None:
            body = self._store.row(self._loop, event.seq)
            row = None if body is None else rows.decoded(body)
            if not isinstance(row, rows.Decision | rows.Served):
                raise FileError(
                    f"row {event.seq} of loop {self._name!r} is not the decision of event "
                    f"{event.name!r}: the index does not fit the log"
                )
            event.row = row
        return event.row

    def decision(
        self, event: str, grown: tuple[tuple[str, str], ...] | None, recipe: str | None
    ) -> Decision:
        """Return a decision by its id, or raise `UnknownEvent`.

        Parameters
        ----------
        event : str
            The id.
        grown : tuple of pairs, optional
            All levels of growing categories that have columns.
        recipe : str, optional
            What tells the features from others.
        """
        self.event(event)  # or raise, if it was forgotten
        return self.decided(event, grown, recipe)

    def decided(
        self, event: str, grown: tuple[tuple[str, str], ...] | None, recipe: str | None
    ) -> Decision:
        """Return a decision as `decision` does, also of an event that was forgotten since.

        Parameters
        ----------
        event, grown, recipe
            As in `decision`.
        """
        found = self._events.get(event)
        if found is None:
            raise UnknownEvent(f"loop {self._name!r} has no event {shown(event)}")
        row = self.row_of(found)
        if isinstance(row, rows.Served):
            raise InvalidValue(f"event {event!r} was served by a baseline, and is not learned")
        return decision_of(row, None, grown, recipe)

    def learned_before(self, event: str, seq: int) -> float | None:
        """Return the reward that the sums had of an event before a row; None if they had none.

        Parameters
        ----------
        event : str
            The id of the event.
        seq : int
            The number of the row.
        """
        body = self._store.learned_before(self._loop, event, seq)
        row = None if body is None else rows.decoded(body)
        return row.value if isinstance(row, rows.Reward | rows.Amend) else None

    def learned(self, event: str) -> list[tuple[Decision, float]]:
        """Return the reward of an event that was learned, with its decision; or nothing."""
        found = self.event(event)
        if found.learned is None:
            return []
        return [(self.decision(event, None, None), found.learned)]
