"""`Lineage`: which runs a bandit's knowledge comes from, so that nothing is counted twice.

A run is one bandit object at work: one that was made, loaded, copied or forked begins a run of its
own, with a random name. It numbers its decisions, and counts the rewards and observations that it
adds to its sums. The knowledge of a bandit is then a number for each run: two bandits have in
common the smaller of their numbers, run by run, and a merge is right if and only if that is its
base.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from keyhole.core.kernels import Tally
from keyhole.errors import InvalidValue

Additions: TypeAlias = dict[str, int]


class Past(NamedTuple):
    """The progress of a run."""

    decisions: int  # the number of its last decision
    additions: int  # rewards and observations that it had added, and arms that it had removed


NOTHING = Past(0, 0)


class Lineage(Tally):
    """The runs that a bandit goes back to, and its own."""

    def __init__(self, pasts: Mapping[str, Past] | None = None) -> None:
        super().__init__(secrets.token_hex(8))
        self.pasts = {} if pasts is None else dict(pasts)

    def everything(self) -> dict[str, Past]:
        """Return the progress of every run, this one included, without those that did nothing."""
        all_runs = {**self.pasts, self.run: Past(self.decisions, self.additions)}
        return {run: past for run, past in all_runs.items() if any(past)}

    def key(self) -> str:
        """Return a unique key of the next addition of this run."""
        return f"{self.run}-{self.additions}"

    def has_seen(self, decision_id: str | None) -> bool:
        """Tell whether the decision of this id belongs to a run, within its known progress."""
        run, _, rest = (decision_id or "").partition("-")
        number = rest.partition(".")[0]
        if not number.isdecimal():
            return False
        last = self.decisions if run == self.run else self.pasts.get(run, NOTHING).decisions
        return int(number) <= last

    def merged(self, other: Lineage) -> dict[str, Past]:
        """Return the runs that this bandit and another go back to, but for its own."""
        pasts = dict(self.pasts)
        for run, past in other.everything().items():
            if run != self.run:
                pasts[run] = Past(*map(max, past, pasts.get(run, NOTHING)))
        return pasts

    def check_merge(self, other: Lineage, base: Lineage | None) -> None:
        """Raise `InvalidValue` unless `base` is what both bandits have in common.

        Parameters
        ----------
        other : Lineage
            That of the bandit to be merged into this one.
        base : Lineage or None
            That of the bandit from which both went on; None if they have nothing in common.
        """
        mine, theirs = _additions(self), _additions(other)
        common = {run: min(n, theirs[run]) for run, n in mine.items() if run in theirs}
        given = {} if base is None else _additions(base)
        if common == given:
            return
        if base is None:
            raise InvalidValue(
                "these bandits started from a common one, whose rewards would count twice: "
                "give that one as base"
            )
        if any(common.get(run, 0) < n for run, n in given.items()):
            raise InvalidValue(
                "both bandits must have learned all that their base has: give as base the file "
                "that both started from, as it was then"
            )
        raise InvalidValue(
            "these bandits have more in common than this base, which would count twice: they "
            "were merged since; give as base the other bandit as it was at that merge"
        )


def _additions(lineage: Lineage) -> Additions:
    return {run: past.additions for run, past in lineage.everything().items() if past.additions}
