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
# Times that the square of a number of an observation may be the sum of squares of the others: a
# twelfth digit of it is the first of theirs. Rewards have no part in the precision, and only r^2
# loses digits before the moment does.
LOST, LOST_REWARD = 1e12, 1e24


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
        for one in terms:
            self._check_rounding(one, forgets=True)
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
        self._check_rounding(term, forgets=False)
        with self._at_work():
            amend_term(self._learned, self._core_term(term), value)
            self._note_rounding(term)
            self._drop_kept()
            self._lineage.additions += 1

    def _check_rounding(self, term: rows.Term, *, forgets: bool) -> None:
        """Raise if a term is so large that its rounding would be all that stays in the sums.

        Parameters
        ----------
        term : Term
            What is to be taken out.
        forgets : bool
            Whether its observation is taken out, too, and not its reward alone.
        """
        learned = self._learned
        if term.key is not None or term.arm not in learned.arms:
            return
        posterior, i = learned.posterior, learned.arms.parameter(term.arm)
        if forgets and posterior.count[i] == 1:
            return  # nothing else is in the sums: they become the prior's
        reward = term.weight * term.value**2
        left = float(posterior.squares[i]) - reward
        size, what = abs(term.value), "reward"
        is_lost = reward > LOST_REWARD * max(left, 1.0)
        if forgets and not is_lost and term.x is not None:
            x = as_floats(term.x)
            squares = np.diagonal(posterior.precision[i])[: x.size]
            others = np.maximum(squares - term.weight * x**2, posterior.prior_precision)
            is_lost = bool((term.weight * x**2 > LOST * others).any())
            size, what = float(np.abs(x).max()), "observation"
        if is_lost:
            raise InvalidValue(
                f"the {what} has numbers up to {size:.3g}, so much larger than those of the others "
                f"of arm {term.arm!r} that its rounding would be all that stays in the sums, and "
                "nothing was changed: fit the other rows of the exported log with kh.fit, and go "
                "on with that bandit"
            )

    def _note_rounding(self, term: rows.Term) -> None:
        """Have a warning given if a reward that was taken out was far larger than those that stay.

        Sums of squares then keep less than half of their digits.
        """
        learned = self._learned
        if term.key is not None or term.arm not in learned.arms:
            return
        i = learned.arms.parameter(term.arm)
        left = float(learned.posterior.squares[i])
        taken = term.weight * term.value * term.value
        if term.x is not None:
            x = as_floats(term.x)
            squares = np.diagonal(learned.posterior.precision[i])[: x.size]
            if (term.weight * x**2 > MOST_TAKEN * np.maximum(squares, 1.0)).any():
                learned.observer.messages.append(
                    f"an observation of arm {term.arm!r} is taken out, but it was so much larger "
                    "than the others that its rounding stays in the sums. kh.fit of "
                    "Log.to_parquet adds up the others alone"
                )
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
