"""`Once`: the reward of a decision is learned once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from keyhole.core.kernels import REMEMBERED, RecentIds
from keyhole.errors import AlreadyLearned
from keyhole.online.decisions import Decisions

if TYPE_CHECKING:
    from keyhole.online.decision import Decision

# The id of one decision of a batch: that of the batch, and its place.
MEMBER = re.compile(r"([0-9a-f]{16}-[0-9]+)\.[0-9]+")


class Once:
    """The decisions that a bandit has learned: as objects, and the last of them by id.

    A decision object remembers the bandit objects that have learned it. Of those that come through
    JSON or a pickle the ids of the last 10,000 are remembered.

    Parameters
    ----------
    ids : iterable of str, optional
        Ids that were learned before.
    remembers : bool, default True
        Whether ids are remembered. A bandit whose log knows every event needs none.
    """

    def __init__(self, ids: Iterable[str] = (), *, remembers: bool = True) -> None:
        listed = list(ids)
        self.recent = RecentIds(listed, remembers)
        # Of which batches some decisions were learned one by one.
        self.parted = RecentIds(filter(None, map(_batch_of, listed)), remembers)
        # What a decision remembers of this bandit.
        self.token = object()

    def check(self, decision: Decision) -> None:
        """Raise `AlreadyLearned` if this decision was."""
        key = decision.id
        known = key is not None and (key in self.recent or _batch_of(key) in self.recent)
        if known or self.token in decision._learned_by:
            which = f"decision {key!r}" if key else f"this decision for arm {decision.arm!r}"
            raise AlreadyLearned(
                f"the reward of {which} was learned already; again=True learns one more "
                f"(the last {REMEMBERED:,} ids are remembered)"
            )

    def check_many(self, decisions: Decisions | list[Decision]) -> None:
        """Raise `AlreadyLearned` if one of these was, or comes twice."""
        if isinstance(decisions, Decisions):
            if self.token in decisions._learned_by or decisions.id in self.recent:
                raise AlreadyLearned(
                    f"the rewards of batch {decisions.id!r} were learned already; again=True "
                    "learns them once more"
                )
            if decisions.id in self.parted:
                raise AlreadyLearned(
                    f"some rewards of batch {decisions.id!r} were learned already: give the others "
                    "as a list of decisions"
                )
            return
        ids, objects = set(), set()
        for decision in decisions:
            self.check(decision)
            if id(decision) in objects or decision.id in ids:
                raise AlreadyLearned(f"decision {decision.id!r} comes twice")
            objects.add(id(decision))
            if decision.id is not None:
                ids.add(decision.id)

    def add(self, decision: Decision) -> None:
        """Remember that this decision was learned."""
        if self.token not in decision._learned_by:
            decision._learned_by = (*decision._learned_by, self.token)
        key = decision.id
        if key is not None:
            self.recent.add(key)
            if batch := _batch_of(key):
                self.parted.add(batch)

    def add_many(self, decisions: Decisions | list[Decision]) -> None:
        """Remember that these were learned."""
        if isinstance(decisions, Decisions):
            decisions._learned_by = (*decisions._learned_by, self.token)
            self.recent.add(decisions.id)
            return
        for decision in decisions:
            self.add(decision)

    def merged(self, other: Once) -> Once:
        """Return a copy that remembers the decisions of another bandit as well."""
        twin = Once()
        twin.token = self.token
        twin.recent, twin.parted = self.recent.copy(), self.parted.copy()
        twin.recent.merge(other.recent)
        twin.parted.merge(other.parted)
        return twin

    def twice(self, other: Once, base: Once | None) -> int:
        """Return how many decisions two bandits have both learned, but their base has not.

        Parameters
        ----------
        other : Once
            That of the other bandit.
        base : Once or None
            That of the bandit from which both went on.
        """
        both = self.recent.common(other.recent)
        return len(both if base is None else both.difference(base.recent.listed()))


def _batch_of(key: str) -> str:
    """Return the id of the batch that a decision belongs to; empty if it belongs to none."""
    match = MEMBER.fullmatch(key) if "." in key else None
    return "" if match is None else match[1]
