"""The index of a log: its events from its rows, with a check that each row follows.

The service writes the tables `event` and `reward` with the rows; this makes them from rows alone.
"""

from __future__ import annotations

from keyhole.errors import FileError
from keyhole.online import rows
from keyhole.service.eventfile import EventFile
from keyhole.service.events import Event, State
from keyhole.service.settings import LoopSettings


class Index:
    """The events of a loop, from its rows.

    Parameters
    ----------
    events : EventFile
        Where they are kept.
    loop : str
        The name of the loop.
    """

    def __init__(self, events: EventFile, loop: str) -> None:
        self.events, self.loop = events, loop
        self.settings = LoopSettings()
        self.learned = 0  # the number of events in the sums

    def take(self, row: rows.AnyRow) -> None:
        """Take in the next row, or raise `FileError` if it does not follow from those before."""
        match row:
            case rows.Settings():
                self._check(row, row.loop == self.loop, f"it is of loop {row.loop!r}")
                self.settings = LoopSettings.of(row.settings)
            case rows.Decision() | rows.Served():
                self._add(row)
            case rows.Reward() if row.event is not None:
                event = self._event(row, row.event)
                self._came(event, row)
                self._check(row, event.learned is None, "its event was learned before")
                self._check(row, event.state is not State.DEFERRED, "its event is not active")
                event.learned = self._checked_total(event, row)
                event.last, self.learned = row.seq, self.learned + 1
                if row.ends:
                    self._end(event, row)
            case rows.Amend():
                event = self._event(row, row.event)
                self._came(event, row)
                self._check(row, event.learned is not None, "its event was not learned before")
                event.learned, event.last = self._checked_total(event, row), row.seq
            case rows.Counted():
                self._event(row, row.event).last = row.seq
            case rows.Outcome():
                self._outcome(row)
            case rows.Arms():
                self._remove(row.removed)
            case rows.Activate():
                event = self._event(row, row.event)
                self._check(row, event.state is State.DEFERRED, "its event was not deferred")
                self._check_due(row, is_active=True)
                event.state, event.due = State.OPEN, row.due
            case rows.Due():
                self._end(self._event(row, row.event), row)
            case rows.Forget():
                event = self._event(row, row.event)
                self.learned -= event.learned is not None
                event.state, event.due, event.learned = State.FORGOTTEN, None, None
                event.last = None

    def _add(self, row: rows.Decision | rows.Served) -> None:
        self._check(row, self.events.get(row.event) is None, "its event was decided before")
        self._check(row, row.request is not None, "it has no request")
        self._check(row, mode_of(row) == self.settings.mode, f"it is of the mode {mode_of(row)}")
        event = Event(row.event, row.seq, bytes.fromhex(row.request or ""))
        if isinstance(row, rows.Decision):
            self._check_due(row, is_active=not row.deferred)
            event.state = State.DEFERRED if row.deferred else State.OPEN
            event.due = row.due
        else:
            event.learns = False
        event.arm = str(row.taken)
        self.events.add(event)

    def _check_due(self, row: rows.Decision | rows.Activate, *, is_active: bool) -> None:
        """Raise unless a row says when its event is due, if it is to end, within its settings.

        The clock is read for `due` first, and for the row then: any time may have passed between.
        """
        reward = self.settings.reward
        is_due = is_active and reward.learning != "at_once"
        self._check(row, (row.due is not None) == is_due, f"its due is {row.due}")
        if row.due is not None:
            last = row.at + reward.seconds
            self._check(row, row.due <= last, f"its due is {row.due}, and at most {last}")

    def _end(self, event: Event, row: rows.Reward | rows.Due) -> None:
        """End an event, which is due by the clock that is read for the row."""
        due = event.due
        self._check(row, due is not None and due <= row.at, f"its event is due at {due}")
        event.state, event.due = State.ENDED, None

    def _outcome(self, row: rows.Outcome) -> None:
        """Add a reward that was not learned, or not yet."""
        event = self._event(row, row.event)
        self._check_new(event, row, row.id)
        (event.rewards if row.counts else event.uncounted)[row.id] = row.value

    def _remove(self, arms: list[rows.Name]) -> None:
        """Clear `learned` of all events of removed arms, unless arms share their parameter."""
        if not arms or self.settings.learner().policy.sharing != "per-arm":
            return
        self.learned -= self.events.drop_learned(arms)

    def _event(self, row: rows.AnyRow, name: str) -> Event:
        event = self.events.get(name)
        if event is None or event.state is State.FORGOTTEN:
            raise FileError(f"row {row.seq}: event {name!r} was not decided, or was forgotten")
        return event

    def _came(self, event: Event, row: rows.Reward | rows.Amend) -> None:
        """Add the reward that came with a row, which counts once."""
        if row.id is None:
            return
        self._check_new(event, row, row.id)
        assert row.outcome is not None
        event.rewards[row.id] = row.outcome

    def _check_new(self, event: Event, row: rows.AnyRow, name: str) -> None:
        is_new = name not in event.rewards and name not in event.uncounted
        self._check(row, is_new, f"the reward {name!r} came before")

    def _checked_total(self, event: Event, row: rows.Reward | rows.Amend) -> float:
        total = event.total(self.settings.reward)
        self._check(row, total == row.value, f"its value is {row.value}, and the total {total}")
        return row.value

    def _check(self, row: rows.AnyRow, is_right: bool, reason: str) -> None:
        if not is_right:
            raise FileError(f"row {row.seq} does not follow from those before it: {reason}")


def mode_of(row: rows.Decision | rows.Served) -> str:
    """Return the mode of a loop that has written a row."""
    if isinstance(row, rows.Served):
        return "off"
    return "online" if row.served is None else "shadow"
