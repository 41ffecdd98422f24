"""Atomic calls of a bandit: one at a time, and each completely or not at all.

Every call holds a lock, which excludes other threads (`sharing` has the locks, and handles forks).
Ctrl-C may come between any two lines, and is handled in two ways. The everyday call is one compiled
function, which no signal interrupts (`kernels.Online`). Every other call that changes more than one
thing first plans the steps that an interruption would leave to do or to undo; `_finish` does them
at its end, or at the beginning of the next call.

Warnings are collected during a call and issued after it, when the lock is released: a warning that
is turned into an error then leaves nothing half done.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from keyhole.core import Arm, Arms, Ints, Learner, LearnerState, Observer, choice_streams, kernels
from keyhole.errors import InvalidValue, KeyholeWarning
from keyhole.online import labels, sharing
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions
from keyhole.online.lineage import Lineage, Past
from keyhole.online.once import Once


class WholeCalls(sharing.Shared):
    """The parts of a bandit, and calls that change them as a whole.

    Attributes
    ----------
    tell : callable or None
        Takes the text of a warning, in place of `warnings.warn`.
    """

    tell: Callable[[str], None] | None = None

    def _set(
        self,
        learner: Learner,
        learned: LearnerState,
        random: kernels.Bits,
        probabilities: bool,
        lineage: Lineage | None = None,
        once: Once | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> None:
        """Put a bandit together.

        Parameters
        ----------
        learner : Learner
            The learner.
        learned : LearnerState
            Its state.
        random : ndarray of uint64 of shape (2, 4)
            The states of its random streams.
        probabilities : bool
            Whether decisions have a probability.
        lineage : Lineage, optional
            The runs that it goes back to.
        once : Once, optional
            The decisions that it has learned.
        columns : tuple of str, optional
            The names of features.
        """
        self._learner, self._rule = learner, learner.policy.plain_rule()
        self._learned, self._random = learned, random
        self._takes_numbers = learned.encoder is None  # and no records
        if self._rule.weighted and not probabilities:
            raise InvalidValue(
                f"{learner.policy!r} weighs rewards by the probabilities of choices: "
                "probabilities must be True, got False"
            )
        self._probabilities, self._columns = probabilities, columns
        self._lineage = Lineage() if lineage is None else lineage
        self._once = Once() if once is None else once
        # The compiled part for all arms; and the same if it is all that a decision takes: features
        # are plain, and nothing is left to do. The first is gone when arms or posterior may change.
        self._kept: kernels.Online | None = None
        self._everyday: kernels.Online | None = None
        # The same for the arms of the last `among`.
        self._subset: tuple[Arms, tuple[Arm, ...], Arms] | None = None
        self._kept_subset: kernels.Online | None = None
        # What an interrupted call has left to do, or to undo; the next call begins with it.
        self._unfinished: Callable[[], None] | None = None
        self._share()

    def _parts(self) -> tuple[Any, ...]:
        """Return the arguments of `_set`, by which another object takes over."""
        with self._lock:
            self._finish()
            return (
                self._learner,
                self._learned,
                self._random,
                self._probabilities,
                self._lineage,
                self._once,
                self._columns,
            )

    def _begin_anew(self) -> None:
        """Begin a run of its own, with random numbers of its own."""
        self._finish()
        self._lineage = Lineage(self._lineage.everything())
        self._random = choice_streams(None)
        self._drop_kept()

    @property
    def _observer(self) -> Observer:
        return self._learned.observer

    # -- one call at a time, finished before the next ---------------------------------------------

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Hold the lock, first finish an interrupted call, and warn at the end."""
        with self._lock:
            self._finish()
            self._everyday = None
            yield
        self._warn(stacklevel=5)  # that of the caller of the method that is at work

    def _plan(self, unfinished: Callable[[], None]) -> None:
        """Plan a step for `_finish`, which the next call does if this one is interrupted."""
        self._everyday = None
        self._unfinished = unfinished

    def _finish(self) -> None:
        """Do the planned steps. A step may be done twice, if it is interrupted itself."""
        if self._unfinished is not None:
            self._unfinished()
            self._unfinished = None

    def _warn(self, stacklevel: int = 3) -> None:
        """Issue the collected warnings, now that all is done."""
        with self._lock:
            messages = self._learned.observer.messages
            given, messages[:] = messages[:], []
        for message in given:
            if self.tell is None:
                warnings.warn(message, KeyholeWarning, stacklevel=stacklevel)
            else:
                self.tell(message)

    def _drop_kept(self) -> None:
        """Drop the compiled parts, which hold arrays that are about to be replaced."""
        self._kept = self._kept_subset = self._everyday = None

    # -- planned steps ----------------------------------------------------------------------------

    def _note_learned(
        self, decision: Decision, total: Callable[[], float], before: float, additions: int
    ) -> None:
        """Remember that a reward was learned, if there are more now than before.

        Parameters
        ----------
        decision : Decision
            The decision.
        total : callable
            Returns the number of rewards.
        before : float
            Their number before.
        additions : int
            The number of additions of this run with this reward: a number, not one more, since this
            may be done twice.
        """
        if total() > before:
            self._once.add(decision)
            self._lineage.additions = additions

    def _note_all_learned(self, decisions: Decisions | list[Decision], additions: int) -> None:
        """Remember that these rewards were learned.

        Parameters
        ----------
        decisions : Decisions or list of Decision
            Their decisions.
        additions : int
            The number of additions of this run with these rewards.
        """
        self._once.add_many(decisions)
        self._lineage.additions = additions

    def _undoing(self, indices: Ints) -> Callable[[], None]:
        """Return a step that restores the present state of these parameters."""
        learned = self._learned
        posterior, observer = learned.posterior, learned.observer
        learned.observer = observer.copy()  # which is what changes
        rows, waiting, provisional = posterior.rows(indices), learned.waiting, learned.provisional
        n_provisional, n_dropped = len(provisional), learned.n_dropped
        lineage, additions = self._lineage, self._lineage.additions

        def undo() -> None:
            self._drop_kept()
            lineage.additions, learned.n_dropped = additions, n_dropped
            posterior.put_back(indices, rows)
            learned.posterior, learned.observer = posterior, observer
            learned.waiting, learned.provisional = waiting, provisional[:n_provisional]

        return undo

    def _finish_seeing(self, look: float, seen: float, additions: int) -> None:
        """Do what follows from observations, if they were added to the sums.

        Parameters
        ----------
        look : float
            The count at which units and predictions are checked again.
        seen : float
            The count of entries with these observations.
        additions : int
            The number of additions of this run with these observations.
        """
        learned = self._learned
        if learned.observer.moments.seen.sum() >= seen:
            learned.see(np.empty((0, learned.observer.dim)), look)
            self._lineage.additions = additions

    # -- merging ----------------------------------------------------------------------------------

    def _merge(self, other: WholeCalls, base: WholeCalls | None) -> None:
        """Add the rewards that another bandit has learned: all of them, or none.

        Parameters
        ----------
        other : WholeCalls
            The other bandit.
        base : WholeCalls or None
            The bandit from which both went on.
        """
        involved = [each for each in (self, other, base) if each is not None]
        with sharing.all_locked(*involved):
            for each in involved:
                each._finish()
            if other._columns is not None:
                labels.checked(other._columns, self._columns)
            self._lineage.check_merge(other._lineage, None if base is None else base._lineage)
            learned = self._learned.merged(other._learned, None if base is None else base._learned)
            twice = self._once.twice(other._once, None if base is None else base._once)
            if twice:
                learned.observer.messages.append(
                    f"{twice} decisions were learned by both of these bandits, and count twice: a "
                    "reward was sent to two of them"
                )
            # An interrupted assignment is done again by the next call.
            self._plan(
                partial(
                    self._take_over,
                    learned,
                    self._lineage.merged(other._lineage),
                    self._once.merged(other._once),
                    self._columns or other._columns,
                )
            )
            self._finish()

    def _take_over(
        self,
        learned: LearnerState,
        pasts: dict[str, Past],
        once: Once,
        columns: tuple[str, ...] | None,
    ) -> None:
        """Replace the parts that a merge has combined.

        Parameters
        ----------
        learned : LearnerState
            The merged state.
        pasts : dict of str to Past
            The runs that both go back to.
        once : Once
            The decisions that both have learned.
        columns : tuple of str or None
            The names of features.
        """
        self._drop_kept()
        self._learned, self._once, self._columns = learned, once, columns
        self._lineage.pasts = pasts
