"""`RecentIds`: a bounded memory of the decisions that were learned."""

from __future__ import annotations

from collections.abc import Iterable

import cython

# A reward that comes again does so soon: a queue that delivers twice, a retry, a double click.
REMEMBERED = 10_000


@cython.final
@cython.cclass
class RecentIds:
    """The ids of the last decisions learned: at least `REMEMBERED`, at most twice as many.

    Two sets take turns: when the younger is full, the older is forgotten. It is with the kernels
    because it is read and written with every reward.

    Parameters
    ----------
    ids : iterable of str
        Those that are remembered from the start.
    """

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self.older: set[str] = set()
        self.younger: set[str] = set(ids)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def has(self, decision_id: str) -> cython.bint:
        """Whether it is remembered."""
        return decision_id in self.younger or decision_id in self.older

    def __contains__(self, decision_id: str) -> bool:
        return bool(self.has(decision_id))

    @cython.ccall
    def add(self, decision_id: str) -> None:
        """Remember one more."""
        self.younger.add(decision_id)
        if len(self.younger) >= REMEMBERED:
            self.older, self.younger = self.younger, set()

    def merge(self, other: RecentIds) -> None:
        """Remember those of another too: its younger ones as long as one's own."""
        self.younger |= other.younger
        self.older |= other.older

    def common(self, other: RecentIds) -> set[str]:
        """Return the ids that both remember."""
        return (self.older | self.younger) & (other.older | other.younger)

    def copy(self) -> RecentIds:
        """Return an independent copy."""
        twin = RecentIds(self.younger)
        twin.older = set(self.older)
        return twin

    def listed(self) -> list[str]:
        """Return all of them, in an order that does not change from run to run."""
        return sorted(self.older | self.younger)
