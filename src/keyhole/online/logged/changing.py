"""`ChangesTerms`: rewards that were learned are taken out of the sums, or replaced in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from keyhole.core import Arm, Term, amend_term, forget_terms, terms_in_sums
from keyhole.errors import InvalidValue
from keyhole.online.log import Store, rows
from keyhole.online.log.decisions import decision_of
from keyhole.online.log.terms import Learned
from keyhole.online.logged.reading import ReadsRows
from keyhole.online.logged.rounding import Loss
from keyhole.online.logged.terms import as_floats


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

    def is_integrated_out(self, arm: Arm, seq: int) -> bool:
        """Tell whether an arm of sharing="hybrid" was removed since a row.

        Its own part was integrated out of the sums then. Rewards of other arms are added to the
        sums before and after that alike, and can be taken out.

        Parameters
        ----------
        arm : str or int
            The arm.
        seq : int
            The number of the row.
        """
        return self._learned.arms.is_hybrid and self._terms.is_gone(arm, seq)

    def was_removed(self, arm: Arm) -> bool:
        """Tell whether an arm was removed, and not added again."""
        return arm in self._terms.removed and not self.has_arm(arm)

    def has_waiting(self, arms: Collection[Arm]) -> bool:
        """Tell whether rewards of some of these arms wait until units are known."""
        return any(one.arm in arms for one in self._learned.waiting)

    def terms_of(self, log: Store, event: str) -> list[rows.Term]:
        """Return what the sums have of the rewards of an event now.

        Parameters
        ----------
        log : Store
            The log.
        event : str
            The id of the event.
        """
        return [one for one in map(self._term, self._rewards_of(log, event)) if one is not None]

    def _term(self, one: Learned) -> rows.Term | None:
        terms, learned, arm = self._terms, self._learned, one.term.arm
        if one.dropped:
            return None
        if self.is_integrated_out(arm, one.seq):
            raise InvalidValue(
                f"arm {arm!r} was removed since this reward was learned, and with sharing='hybrid' "
                "what it taught the shared part stays there: the reward has no term any more. "
                "Forget or amend before you remove an arm"
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
        loss = self._loss(terms, forgets=True)
        with self._at_work():
            forget_terms(self._learned, [self._core_term(one) for one in terms])
            for one in terms:
                self._terms.events.pop(one.key or "", None)
            self._note_rounding(loss, terms)
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
        loss = self._loss([term], forgets=False)
        with self._at_work():
            amend_term(self._learned, self._core_term(term), value)
            self._note_rounding(loss, [term])
            self._drop_kept()
            self._lineage.additions += 1

    def check_rounding(self, terms: Sequence[rows.Term], *, forgets: bool) -> None:
        """Raise if the rounding of an event's terms would be all that stays in the sums.

        It is asked before a row is written, and not when rows are repeated: sums that differ in
        their last digits must not come to another answer.

        Parameters
        ----------
        terms : sequence of Term
            What is to be taken out.
        forgets : bool
            Whether observations are taken out, and not rewards alone.
        """
        if terms:
            self._loss(terms, forgets=forgets).check(terms[0].arm)

    def _loss(self, terms: Sequence[rows.Term], *, forgets: bool) -> Loss:
        listed = [self._core_term(one) for one in terms]
        return Loss.of(self._learned, terms_in_sums(self._learned, listed), forgets=forgets)

    def _note_rounding(self, loss: Loss, terms: Sequence[rows.Term]) -> None:
        """Have a warning given if what was taken out was far larger than what stays."""
        if terms:
            rewards = [one.value for one in terms]
            self._learned.observer.messages += loss.messages(terms[0].arm, rewards)

    def _core_term(self, one: rows.Term) -> Term:
        x = np.empty(0) if one.x is None else as_floats(one.x)
        return Term(one.arm, x, one.value, one.key or "", one.weight)
