"""`Store`: what a bandit needs of the place where its rows are kept."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from keyhole.online.log import rows


@runtime_checkable
class Store(Protocol):
    """A place for the rows of one bandit: `Log` is a file; a table of a database is another.

    A store orders rows, numbers them without gaps, and finds those of an event. It does not look
    into them beyond that: `replaying.Replay` folds the rows of any store into the bandit.
    """

    @property
    def name(self) -> str:
        """What it is called in messages."""

    @property
    def seq(self) -> int:
        """The number of the last row."""

    def open(self) -> None:
        """Begin to write: one bandit at a time does."""

    def close(self) -> None:
        """End writing."""

    def check_ready(self) -> None:
        """Raise unless rows can be written: a bandit asks before it changes anything."""

    def give_up(self, reason: str) -> None:
        """Write nothing any more, since the bandit is ahead of its rows."""

    def append(self, kind: type[rows.AnyRow], **fields: Any) -> None:
        """Write a row.

        Parameters
        ----------
        kind : type
            The kind of row.
        **fields
            Its fields, but for `seq` and `at`.
        """

    def append_all(self, kind: type[rows.AnyRow], many: list[dict[str, Any]]) -> None:
        """Write several rows of a kind: all of them or, after a failure, none.

        Parameters
        ----------
        kind : type
            The kind of rows.
        many : list of dict
            The fields of each.
        """

    def state(self, event: str) -> int:
        """Return the state of an event: one of the numbers of `events.WORDS`."""

    def rows_of(self, event: str) -> list[rows.AnyRow]:
        """Return the rows of an event that its decision and its terms follow from, in order.

        Those are all rows with this `event`. A row before the last `amend` or `counted` may be left
        out if the event has one reward. Of an unknown event there are none.
        """
