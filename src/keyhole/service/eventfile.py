"""`EventFile`: all events of a log while its rows are read, in bounded memory.

Those that were used last are in memory. All others are in a temporary database, which SQLite keeps
in the folder of temporary files and deletes by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import apsw
import msgspec

from keyhole.online import rows
from keyhole.service.events import MAX_BYTES, Event, EventCache, State

# Events in memory, about 4 kB each with their rows, and how many are moved to the file at a time.
SIZE, PART = 5_000, 500

# number, request, state, due, learned, learns, last, rewards that count and others, arm; row and
# last row if they are archived
_Content = tuple[
    int,
    bytes,
    int,
    float | None,
    float | None,
    bool,
    int | None,
    dict[str, float],
    dict[str, float],
    str,
    bytes | None,
    bytes | None,
]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Content).decode


class EventFile(EventCache):
    """The events of a log.

    Parameters
    ----------
    archived : int, default 0
        The number of the last archived row. Rows up to it are kept with their events: to find one
        in the archive, a file is read from its beginning.
    size : int, default 5,000
        How many events are in memory.
    """

    def __init__(self, archived: int = 0, size: int = SIZE) -> None:
        super().__init__(self._load, size)
        self.known.is_complete = True  # there are none
        self._archived, self._since = archived, 0
        self._file = apsw.Connection("")
        for pragma, value in (("journal_mode", "OFF"), ("synchronous", "OFF")):
            self._file.pragma(pragma, value)
        self._file.execute("CREATE TABLE event(name TEXT PRIMARY KEY, content BLOB) WITHOUT ROWID")

    def present(self, name: str) -> Event:
        """Return an event that is there."""
        event = self.get(name)
        assert event is not None
        return event

    def drop_learned(self, arms: list[rows.Name]) -> int:
        """Clear `learned` of all events of removed arms, and return how many had it."""
        gone = [one.name for one in self.each() if one.learned is not None and one.arm in arms]
        for name in gone:
            self.present(name).learned = None
        return len(gone)

    def took(self, n_bytes: int) -> None:
        """Move events to the file if the rows since the last move exceed `MAX_BYTES`."""
        self._since += n_bytes
        if self._since > MAX_BYTES:
            self._write(list(self._events))

    def each(self) -> Iterator[Event]:
        """Yield all events, in the order of the bytes of their ids."""
        self._write(list(self._events))
        for name, content in self._file.execute("SELECT name, content FROM event ORDER BY name"):
            yield self._event(name, content)

    def _shrink(self) -> None:
        self._write(list(islice(self._events, min(PART, len(self._events) - 1))))

    def _write(self, names: list[str]) -> None:
        """Move events from memory to the file."""
        self._since = 0
        moved = [(name, self._events.pop(name)) for name in names]
        self._n_bytes -= sum(event.n_bytes for _, event in moved)
        written = [(name, self._content(event)) for name, event in moved]
        with self._file:
            self._file.executemany("INSERT OR REPLACE INTO event VALUES (?, ?)", written)

    def _content(self, event: Event) -> bytes:
        return _encode(
            (
                event.seq,
                event.request,
                int(event.state),
                event.due,
                event.learned,
                event.learns,
                event.last,
                event.rewards,
                event.uncounted,
                event.arm,
                self._kept(event.row),
                self._kept(event.last_row),
            )
        )

    def _kept(self, row: rows.AnyRow | None) -> bytes | None:
        return rows.encoded(row) if row is not None and row.seq <= self._archived else None

    def _load(self, name: str) -> Event | None:
        found = self._file.execute("SELECT content FROM event WHERE name = ?", (name,)).get
        return None if found is None else self._event(name, found)

    def _event(self, name: str, content: bytes) -> Event:
        (seq, request, state, due, learned, learns, last, *others) = _decode(content)
        rewards, uncounted, arm, row, last_row = others
        event = Event(name, seq, request, State(state), due, learned, learns, last)
        event.rewards, event.uncounted, event.arm = rewards, uncounted, arm
        if row is not None:
            decided = rows.decoded(row)
            assert isinstance(decided, rows.Decision | rows.Served)
            event.row = decided
        if last_row is not None:
            event.last_row = rows.decoded(last_row)
        return event
