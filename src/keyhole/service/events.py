"""`Event`: the index entry of one decision: its state, its rewards, their total.

It is an index of the log: every field follows from rows, and `Event` has no other memory.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from math import fsum
from statistics import fmean

from keyhole.online import rows
from keyhole.service.known import KnownIds
from keyhole.service.settings import Aggregate, RewardSettings

# The unit of a change that was not submitted yet.
NOT_YET = sys.maxsize


class State(IntEnum):
    """The state of an event."""

    DEFERRED = 0  # decided, and not active: it is not learned
    OPEN = 1  # active: rewards are waited for
    ENDED = 2  # due: a reward is late
    FORGOTTEN = 3


@dataclass(slots=True)
class Event:
    """A decision, and the rewards that came for it.

    Parameters
    ----------
    name : str
        Its id.
    seq : int
        The number of the row of its decision.
    request : bytes
        A digest of the request that it answers.
    state : State
        Its state.
    due : float or None
        When rewards are no longer waited for.
    learned : float or None
        The total that was learned; None if there is none.
    learns : bool
        Whether it is learned at all: events of a loop that is off are not.
    last : int or None
        The number of the last row that determines its term in the sums.
    rewards : dict of str to float
        The rewards that came and count, by their ids, in order.
    uncounted : dict of str to float
        Those that were late or ignored: they never count.
    arm : str
        The arm that its rewards belong to.
    row, last_row : Decision and AnyRow, optional
        The row of its decision and its last row, while a call needs them.
    body, last_body : bytes, optional
        The same rows as the log has them, if they are in memory. A row as an object is dozens of
        small ones: 2.6 kB in place of 1.3, and 2 us to free it when it leaves the cache.
    is_archived : bool, default False
        Whether `body` was read from the archive.
    unit : int, default 0
        The unit that writes its last change.
    """

    name: str
    seq: int
    request: bytes
    state: State = State.OPEN
    due: float | None = None
    learned: float | None = None
    learns: bool = True
    last: int | None = None
    rewards: dict[str, float] = field(default_factory=dict)
    uncounted: dict[str, float] = field(default_factory=dict)
    arm: str = ""
    row: rows.Decision | rows.Served | None = None
    last_row: rows.AnyRow | None = None
    body: bytes | None = None
    last_body: bytes | None = None
    is_archived: bool = False
    unit: int = 0

    @property
    def n_bytes(self) -> int:
        """The length of the rows that are in memory."""
        return len(self.body or b"") + len(self.last_body or b"")

    def keep_encoded(self, bodies: dict[int, bytes]) -> None:
        """Keep the bytes of rows in place of objects, once they are submitted.

        Parameters
        ----------
        bodies : dict of int to bytes
            The rows that were submitted, by their numbers.
        """
        self.body = bodies.get(self.seq, self.body)
        self.last_body = None if self.last is None else bodies.get(self.last, self.last_body)
        self.row = self.last_row = None

    def total(self, settings: RewardSettings) -> float | None:
        """Return the total of the rewards that count; the default reward if there are none."""
        values = list(self.rewards.values())
        return AGGREGATES[settings.aggregate](values) if values else settings.default


AGGREGATES: dict[Aggregate, Callable[[list[float]], float]] = {
    "sum": fsum,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "mean": fmean,
    "max": max,
    "min": min,
}


# Events beyond the size of a cache after which it is shrunk: some at a time.
SPARE = 100
# Bytes of rows in a cache: those of a thousand arms have 100 kB each.
MAX_BYTES = 1 << 26


class EventCache:
    """The events of a loop that were used last; all others are in the database.

    An event whose last change is not committed yet stays: the database has its earlier state.

    Parameters
    ----------
    read : callable
        Returns an event of the database by its id, or None.
    size : int
        How many events are kept, if their rows have at most `MAX_BYTES`.
    committed : callable
        Returns the number of the last unit that is in the database.
    """

    def __init__(
        self,
        read: Callable[[str], Event | None],
        size: int,
        committed: Callable[[], int] = lambda: 0,
    ) -> None:
        self._read, self._size, self._committed = read, size, committed
        self._events: OrderedDict[str, Event] = OrderedDict()
        self._n_bytes = 0
        self.known = KnownIds()
        # Whether an event lost its term when its arm was removed; the database may still list it as
        # learned.
        self.is_gone: Callable[[Event], bool] = lambda _: False

    def get(self, name: str) -> Event | None:
        """Return an event by its id, or None."""
        event = self._events.get(name)
        if event is not None:
            self._events.move_to_end(name)
        elif not self.known.is_new(name):
            event = self._read(name)
            if event is not None:
                self._drop_gone(event)
                self._keep(event)
        return event

    def add(self, event: Event) -> None:
        """Add a new event."""
        self.known.add(event.name)
        self._keep(event)

    def _keep(self, event: Event) -> None:
        """Keep an event, and drop the least recently used one if there are too many."""
        self._events[event.name] = event
        self._n_bytes += event.n_bytes
        if len(self._events) > self._size + SPARE:
            self._shrink()

    def grow(self, event: Event, n_bytes: int) -> None:
        """Count further bytes of an event in memory.

        Parameters
        ----------
        event : Event
            The event.
        n_bytes : int
            How many more.
        """
        if self._events.get(event.name) is event:
            self._n_bytes += n_bytes
            if self._n_bytes > MAX_BYTES:
                self._shrink()

    def drop_gone(self) -> None:
        """Clear `learned` of the events in memory that lost their term."""
        for event in self._events.values():
            self._drop_gone(event)

    def _drop_gone(self, event: Event) -> None:
        if event.learned is not None and self.is_gone(event):
            event.learned = None

    def _shrink(self) -> None:
        committed = self._committed()
        while len(self._events) > self._size or self._n_bytes > MAX_BYTES:
            name, oldest = next(iter(self._events.items()))
            if oldest.unit > committed:
                # It stays, and the next call looks at another one.
                self._events.move_to_end(name)
                return
            del self._events[name]
            self._n_bytes -= oldest.n_bytes
