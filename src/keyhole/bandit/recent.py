"""`RecentIds`: a bounded memory of the decisions that were learned."""

from __future__ import annotations

from collections.abc import Iterable

# A reward that comes again does so soon: a queue that delivers twice, a retry, a double click.
REMEMBERED = 10_000


class RecentIds:
    """The ids of the last decisions learned: at least `REMEMBERED`, at most twice as many.

    Two sets take turns: when the younger is full, the older is forgotten.
    """

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._older: set[str] = set()
        self._younger: set[str] = set(ids)

    def __contains__(self, decision_id: str) -> bool:
        return decision_id in self._younger or decision_id in self._older

    def add(self, decision_id: str) -> None:
        """Remember one more."""
        self._younger.add(decision_id)
        if len(self._younger) >= REMEMBERED:
            self._older, self._younger = self._younger, set()

    def merge(self, other: RecentIds) -> None:
        """Remember those of another too: its younger ones as long as one's own."""
        self._younger |= other._younger
        self._older |= other._older

    def common(self, other: RecentIds) -> set[str]:
        """Return the ids that both remember."""
        return (self._older | self._younger) & (other._older | other._younger)

    def copy(self) -> RecentIds:
        """Return an independent copy."""
        twin = RecentIds(self._younger)
        twin._older = set(self._older)
        return twin

    def listed(self) -> list[str]:
        """Return all of them, in an order that does not change from run to run."""
        return sorted(self._older | self._younger)
