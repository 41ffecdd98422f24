"""`ChangesTerms`: rewards that were learned are taken out of the sums, or replaced in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from keyhole.core import Arm, Term, amend_term, forget_terms
from keyhole.errors import InvalidValue, Message
from keyhole.online.log import rows
from keyhole.online.log.decisions import decision_of
from keyhole.online.log.terms import Learned
from keyhole.online.logged.reading import ReadsRows
from keyhole.online.logged.terms import as_floats

# Times that the square of a reward may be the sum of squares that it is taken out of.
MOST_TAKEN = 1e8


class ChangesTerms(ReadsRows):
    """A bandit of a linear learner whose rewards can be taken out again, or replaced."""

    # -- which rewards the sums have --------------------------------------------------------------

    def has_arm(self, arm: Arm) -> bool:
        """Tell whether an arm can be learned of: it is there, or known by its features alone."""
        arms = self._learned.arms
        return arms.is_open or arm in arms

    def has_lost(self, arm: Arm, seq: int) -> bool:
        """Tell whether an arm was removed since a row, and with it what was learned of it.

        An arm that was added again knows nothing of what it was; a shared parameter stays.

        Parameters
        ----------
        arm : str or int
            The arm.
        seq : int
            The number of the row.
        """
        return not self._learned.arms.shared and self._terms.is_gone(arm, seq)

    def was_removed(self, arm: Arm) -> bool:
        """Tell whether an arm was removed, and not added again."""
        return arm in self._terms.removed and not self.has_arm(arm)

    def has_waiting(self, arms: Collection[Arm]) -> bool:
        """Tell whether rewards of some of these arms wait until units are known."""
        return any(one.arm in arms for one in self._learned.waiting)

    def _term(self, one: Learned) -> rows.Term | None:
        terms, learned, arm = self._terms, self._learned, one.term.arm
        if one.dropped:
            return None
        if learned.arms.is_hybrid and terms.last_removed >= one.seq:
            raise InvalidValue(
                "arms were removed since this reward was learned, and with sharing='hybrid' what "
                "was learned of them was integrated out of the sums: the reward has no term there"
            )
        if self.has_lost(arm, one.seq):
            return None
        if learned.arms.shared and not self.has_arm(arm):
            arm = learned.arms.names[0]  # which has the same parameter
        if one.term.key is not None:
            kept = {each.key for each in learned.waiting}
            kept |= {each.key for each in learned.provisional}
            if one.term.key not in kept:
                return None
            return rows.Term(arm=arm, value=one.term.value, key=one.term.key)
        if learned.is_plain:
            decision = decision_of(one.decision, self._decision_columns())
            x, _ = self._in_columns(decision, self._encoder_of([decision]))
        else:
            assert one.term.x is not None
            x = terms.present(as_floats(one.term.x), one.seq, learned.observer)
        return rows.Term(arm=arm, value=one.term.value, x=x.tolist(), weight=one.term.weight)

    # -- changing the sums ------------------------------------------------------------------------

    def take_out(self, terms: Sequence[rows.Term]) -> None:
        """Take rewards out of the sums: all of them, or none.

        Parameters
        ----------
        terms : sequence of Term
            What the sums have of them.
        """
        with self._at_work():
            forget_terms(self._learned, [self._core_term(one) for one in terms])
            for one in terms:
                self._terms.events.pop(one.key or "", None)
                self._note_rounding(one)
            self._drop_kept()
            # A base that has them would not have less than this bandit.
            self._lineage.additions += len(terms)

    def exchange(self, term: rows.Term, value: float) -> None:
        """Replace a reward in the sums.

        Parameters
        ----------
        term : Term
            What the sums have of it.
        value : float
            The reward that replaces it.
        """
        with self._at_work():
            amend_term(self._learned, self._core_term(term), value)
            self._note_rounding(term)
            self._drop_kept()
            self._lineage.additions += 1

    def _note_rounding(self, term: rows.Term) -> None:
        """Have a warning given if a reward that was taken out was far larger than those that stay.

        Sums of squares then keep less than half of their digits.
        """
        learned = self._learned
        if term.key is not None or term.arm not in learned.arms:
            return
        left = float(learned.posterior.squares[learned.arms.parameter(term.arm)])
        taken = term.weight * term.value * term.value
        if taken > MOST_TAKEN * max(left, 1.0):
            rest = (
                f"of arm {term.arm!r} is taken out, but it was so much larger than the others that "
                "its rounding stays in the sums: errors and a learned v are wrong by it. kh.fit of "
                "Log.to_parquet adds up the others alone"
            )
            learned.observer.messages.append(
                Message(f"the reward {term.value:g} {rest}", f"a reward {rest}")
            )

    def _core_term(self, one: rows.Term) -> Term:
        x = np.empty(0) if one.x is None else as_floats(one.x)
        return Term(one.arm, x, one.value, one.key or "", one.weight)
