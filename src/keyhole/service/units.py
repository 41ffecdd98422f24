"""`LoopUnits`: the rows of one call of a loop form one unit, submitted whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from keyhole.errors import FileUnusable, KeyholeError
from keyhole.online import rows
from keyhole.service.events import NOT_YET, Event
from keyhole.service.journal import LoopJournal
from keyhole.service.store import RewardRow, Statement, Unit, event_row


class LoopUnits:
    """The part of a loop that submits units to the writer.

    Parameters
    ----------
    number : int
        Its number in the database.
    name : str
        Its name.
    journal : LoopJournal
        Its log.
    submit : callable
        Hands a unit to the writer and returns its number.

    Attributes
    ----------
    unit : int
        The number of the last unit that this loop submitted.
    is_broken : bool
        Whether memory is ahead of what was submitted.
    """

    def __init__(
        self, number: int, name: str, journal: LoopJournal, submit: Callable[[Unit], int]
    ) -> None:
        self.number, self.name, self.journal = number, name, journal
        self._submit = submit
        self.unit, self.is_broken = 0, False

    @property
    def version(self) -> int:
        """The number of the last row."""
        return self.journal.seq

    def check_usable(self) -> None:
        """Raise `FileUnusable` if memory has changes that were not submitted.

        An answer from it could be lost.
        """
        if self.is_broken:
            raise FileUnusable(
                f"loop {self.name!r} has changes that could not be written: it has to be loaded "
                "again"
            )

    def submit(self, unit: Unit) -> None:
        """Hand a unit over."""
        self.unit = self._submit(unit)

    def hand_over(self, draft: Draft) -> None:
        """Hand over the rows that were written since the last time, as one unit with a draft."""
        for event in self.journal.touched.values():
            draft.add(event)
        events = draft.events
        if len(events) > 1:  # each once
            events = list({event.name: event for event in events}.values())
        listed = [event_row(self.number, event) for event in events]
        written = self.journal.take()
        self.unit = self._submit(Unit(written, listed, draft.rewards, draft.others))
        for event in events:
            event.unit = self.unit
        self.journal.keep_encoded(events, written)

    def give_up(self) -> None:
        """Make the log agree with memory after a block has raised.

        A refused call of the bandit changes nothing but levels and arms that it added first: they
        are written. After any other row the loop is loaded again.
        """
        written, self.journal.extra = self.journal.written, {}
        if not all(map(_is_addition, written)):
            return
        if written:
            self.hand_over(Draft(self))
        self.is_broken = False


def _is_addition(row: rows.AnyRow) -> bool:
    """Whether a row adds levels or arms: a refused request keeps them."""
    return isinstance(row, rows.Levels) or (isinstance(row, rows.Arms) and not row.removed)


class Draft:
    """A block whose rows are handed over as one unit.

    Within it memory is ahead of the log. It stays so, and the loop is loaded again, if the block
    ends otherwise than by a refusal: by Ctrl-C, at any line, or for lack of memory.

    It is a class, and not a generator with `contextmanager`, which takes three times as long.

    Parameters
    ----------
    loop : LoopUnits
        The loop.

    Attributes
    ----------
    events, rewards, others : list
        The further content of the unit, beside its rows.
    """

    __slots__ = ("events", "loop", "others", "rewards")

    def __init__(self, loop: LoopUnits) -> None:
        self.loop = loop
        self.events: list[Event] = []
        self.rewards: list[RewardRow] = []
        self.others: list[Statement] = []

    def add(self, event: Event) -> None:
        """Have a changed event written."""
        event.unit = NOT_YET
        self.events.append(event)

    def __enter__(self) -> Self:
        self.loop.check_usable()
        self.loop.is_broken = True
        return self

    def __exit__(self, kind: object, error: object, _trace: object) -> None:
        loop = self.loop
        if kind is None:
            if loop.journal.written:
                loop.hand_over(self)
            loop.is_broken = False
        elif isinstance(error, KeyholeError) and not isinstance(error, FileUnusable):
            loop.give_up()
