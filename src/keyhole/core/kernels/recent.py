"""`RecentIds`: a bounded set of the ids of recently learned decisions."""

from __future__ import annotations

from collections.abc import Iterable

import cython

# Duplicate rewards come soon: from a queue that delivers twice, a retry, a double click.
REMEMBERED = 10_000


@cython.final
@cython.cclass
class RecentIds:
    """Ids of the last learned decisions: at least `REMEMBERED`, at most twice as many.

    There are two sets: when the younger is full, it replaces the older. The class is a kernel
    because it is read and written with every reward.

    Parameters
    ----------
    ids : iterable of str, optional
        Ids to begin with.
    remembers : bool, default True
        Whether ids are added. A bandit whose log knows every event needs none.
    """

    def __init__(self, ids: Iterable[str] = (), remembers: cython.bint = True) -> None:
        self.remembers = remembers
        self.older: set[str] = set()
        self.younger: set[str] = set(ids)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def has(self, decision_id: str) -> cython.bint:
        """Return whether an id is in the set."""
        return decision_id in self.younger or decision_id in self.older

    def __contains__(self, decision_id: str) -> bool:
        return bool(self.has(decision_id))

    @cython.ccall
    def add(self, decision_id: str) -> None:
        """Add an id."""
        if not self.remembers:
            return
        self.younger.add(decision_id)
        if len(self.younger) >= REMEMBERED:
            self.older, self.younger = self.younger, set()

    def merge(self, other: RecentIds) -> None:
        """Add the ids of another; its younger ids are kept as long as the own younger ones."""
        self.younger |= other.younger
        self.older |= other.older

    def common(self, other: RecentIds) -> set[str]:
        """Return the ids that both sets have."""
        return (self.older | self.younger) & (other.older | other.younger)

    def copy(self) -> RecentIds:
        """Return an independent copy."""
        twin = RecentIds(self.younger, self.remembers)
        twin.older = set(self.older)
        return twin

    def listed(self) -> list[str]:
        """Return all ids in sorted order, which does not change from run to run."""
        return sorted(self.older | self.younger)
