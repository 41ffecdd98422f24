"""`Journal`: all that a bandit needs of the place where its rows go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from keyhole.online.decision import Decision

if TYPE_CHECKING:
    from keyhole.online.log.rows import AnyRow


class Journal(Protocol):
    """Where a bandit writes down what it decides and learns: a file, or the log of a service."""

    @property
    def seq(self) -> int:
        """The number of the last row."""

    def check_ready(self) -> None:
        """Raise unless rows can be written: a bandit asks before it changes anything."""

    def append(self, kind: type[AnyRow], **fields: Any) -> None:
        """Write a row of a kind, from its fields but for `seq` and `at`."""

    def append_all(self, kind: type[AnyRow], many: list[dict[str, Any]]) -> None:
        """Write several rows of a kind: all of them or, after a failure, none."""

    def status(self, event: str) -> str:
        """Return what became of an event: "unknown", "decided", "learned" or "forgotten"."""

    def check_once(self, event: str | None) -> None:
        """Raise if the reward of an event was learned, or the event was forgotten."""

    def has_decision(self, decision: Decision) -> bool:
        """Tell whether this very decision is there, and not one with its id and another arm."""

    def decision(
        self, event: str, grown: tuple[tuple[str, str], ...] | None, recipe: str | None
    ) -> Decision:
        """Return a decision by its id, or raise `UnknownEvent`."""

    def learned(self, event: str) -> list[tuple[Decision, float]]:
        """Return the rewards of an event that were learned, each with the decision it was for."""
