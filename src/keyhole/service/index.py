"""The index of a log: every event as its rows say, and whether what was learned follows from them.

The tables `event` and `reward` are written with the rows; this makes them from the rows alone.
"""

from __future__ import annotations

from keyhole.errors import FileError
from keyhole.online import rows
from keyhole.service.events import Event, State
from keyhole.service.settings import LoopSettings


class Index:
    """The events of a loop, as its rows say."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.settings = LoopSettings()
        self.learned = 0  # how many events the sums have

    def take(self, row: rows.AnyRow) -> None:
        """Take in the next row, or raise `FileError` if it does not follow from those before."""
        match row:
            case rows.Settings():
                self.settings = LoopSettings.of(row.settings)
            case rows.Decision() | rows.Served():
                self._add(row)
            case rows.Reward() if row.event is not None:
                event = self._event(row, row.event)
                self._came(event, row)
                self._check(row, event.learned is None, "its event was learned before")
                event.learned = self._checked_total(event, row)
                event.last, self.learned = row.seq, self.learned + 1
                if row.ends:
                    event.state, event.due = State.ENDED, None
            case rows.Amend():
                event = self._event(row, row.event)
                self._came(event, row)
                self._check(row, event.learned is not None, "its event was not learned before")
                event.learned, event.last = self._checked_total(event, row), row.seq
            case rows.Counted():
                self._event(row, row.event).last = row.seq
            case rows.Outcome():
                self._event(row, row.event).rewards[row.id] = row.value
            case rows.Activate():
                event = self._event(row, row.event)
                event.state, event.due = State.OPEN, row.due
            case rows.Due():
                event = self._event(row, row.event)
                event.state, event.due = State.ENDED, None
            case rows.Forget():
                event = self._event(row, row.event)
                self.learned -= event.learned is not None
                event.state, event.due, event.learned = State.FORGOTTEN, None, None
                event.last = None

    def _add(self, row: rows.Decision | rows.Served) -> None:
        self._check(row, row.event not in self.events, "its event was decided before")
        self._check(row, row.request is not None, "it has no request")
        event = Event(row.event, row.seq, bytes.fromhex(row.request or ""))
        if isinstance(row, rows.Decision):
            event.state = State.DEFERRED if row.deferred else State.OPEN
            event.due = row.due
        else:
            event.learns = False
        self.events[row.event] = event

    def _event(self, row: rows.AnyRow, name: str) -> Event:
        event = self.events.get(name)
        if event is None or event.state is State.FORGOTTEN:
            raise FileError(f"row {row.seq}: event {name!r} was not decided, or was forgotten")
        return event

    def _came(self, event: Event, row: rows.Reward | rows.Amend) -> None:
        """Add the reward that came with a row, which counts once."""
        if row.id is None:
            return
        self._check(row, row.id not in event.rewards, f"the reward {row.id!r} came before")
        assert row.outcome is not None
        event.rewards[row.id] = row.outcome

    def _checked_total(self, event: Event, row: rows.Reward | rows.Amend) -> float:
        reward = self.settings.reward
        total = event.total(reward.aggregate, reward.default)
        self._check(row, total == row.value, f"it has {row.value}, and the rewards are {total}")
        return row.value

    def _check(self, row: rows.AnyRow, is_right: bool, reason: str) -> None:
        if not is_right:
            raise FileError(f"row {row.seq} does not follow from those before it: {reason}")
