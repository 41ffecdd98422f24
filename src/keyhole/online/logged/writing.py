"""`Writes`: what all kinds of bandits with a log have in common.

Each call is made as without a log, under the same lock; then its row is written, and then it
returns. So rows are in the order in which the bandit changed, and a caller who got an answer finds
it in the log. If a row cannot be written, the call raises, and the bandit refuses all that would
change it: its state is ahead of its log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from keyhole.core import Arm, Floats
from keyhole.errors import AlreadyLearned, ForgottenEvent, InvalidValue, UnknownEvent, shown
from keyhole.files import Path
from keyhole.online import arguments
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.holding import held_interrupts
from keyhole.online.lineage import NOTHING, Lineage
from keyhole.online.log import Log, Store, rows
from keyhole.online.log.decisions import Columns, decision_of, last_decision, tells_of
from keyhole.online.log.events import DECIDED, FORGOTTEN, LEARNED, UNKNOWN
from keyhole.online.log.terms import Learned, learned


class Writes(Bandit):
    """A bandit with a log."""

    _log: Store | None = None
    _quiet = False  # whether warnings wait until a row is written
    _unlogged: type[Bandit] = Bandit  # the same kind of bandit without a log
    # Events in whose place another decision was learned.
    _replaced: frozenset[str] = frozenset()

    @property
    def log(self) -> Any:
        """The log."""
        return self._log

    # -- runs -------------------------------------------------------------------------------------

    def _begin_log(self, log: Store | Path) -> None:
        """Open a new log, and write down the bandit as it is now."""
        opened = log if isinstance(log, Store) else Log(log)
        opened.open()
        try:
            if opened.seq:
                raise InvalidValue(
                    f"{opened.name} is the log of another bandit: Bandit.from_log goes on with "
                    "that one; a new bandit needs a new file"
                )
            self._write_start(opened, resumed=False)
        except BaseException:
            opened.close()
            raise

    def resume(self, log: Store) -> None:
        """Go on writing to an open log, whose rows have led to this bandit, in a new run."""
        version = log.seq
        self._lineage = Lineage(self._lineage.everything())
        self._drop_kept()
        self._write_start(log, resumed=True)
        self._after(log, version)  # what a crash has kept from being written

    def _learn_at_once(self) -> None:
        """Have the state follow from the rows of the log alone, to the bit, and not from reads."""

    def _write_start(self, log: Store, *, resumed: bool) -> None:
        self._learn_at_once()
        log.append(
            rows.Start,
            schema=rows.SCHEMA,
            run=self._lineage.run,
            arms=list(self.arms),
            resumed=resumed,
            **self.start_fields(),
        )
        if isinstance(log, Log):
            log.share_lock(self._lock)
        self._log = log

    def start_fields(self) -> dict[str, Any]:
        """Return the fields of the first row that differ from one kind of bandit to another."""
        raise NotImplementedError

    def begin_run(self, name: str) -> None:
        """Go on in the run of this name: that of the bandit that wrote a log."""
        pasts = self._lineage.everything()
        past = pasts.pop(name, NOTHING)
        self._lineage = Lineage(pasts)
        self._lineage.run = name
        self._lineage.decisions, self._lineage.additions = past
        self._learn_at_once()
        self._drop_kept()

    def without_log(self) -> Bandit:
        """Return this bandit as one that writes nothing; it takes over all that was learned."""
        raise NotImplementedError

    # -- one call, one row ------------------------------------------------------------------------

    def _writing(self) -> Writing:
        """Hold Ctrl-C, the lock and warnings until what was done is written down."""
        return Writing(self)

    def _warn(self, stacklevel: int = 3) -> None:
        if not self._quiet:
            super()._warn(stacklevel)

    def _has_warnings(self) -> bool:
        """Return whether there is something to warn of."""
        return False

    def _after(self, log: Store, version: int) -> None:
        """Do what is left to do after the rows of a call were written.

        Parameters
        ----------
        log : Store
            The log.
        version : int
            The last row before the call.
        """

    def _give_up(self) -> None:
        """Drop what a call that was refused has left to write."""

    # -- decisions --------------------------------------------------------------------------------

    def _decision_columns(self) -> Columns:
        """Return what the numbers of observations are."""
        return Columns()

    def _found(self, decision: Decision | str) -> Decision:
        """Return a decision, or that of the log with this id."""
        if isinstance(decision, str):
            return self.decision(decision)
        return arguments.checked_decision(decision)

    def decision(self, event: str) -> Decision:
        """Return a decision of the log by its id, or raise `UnknownEvent`."""
        log = self._log
        if log is None:
            raise UnknownEvent(f"this bandit has no log, in which {shown(event)} could be")
        row = last_decision(log.rows_of(event))
        if row is None:
            self._unknown(event, log)
        return self.decision_of(row)

    def decision_of(self, row: rows.Decision | rows.Given) -> Decision:
        """Return the decision that a row of the log tells of."""
        found = decision_of(row, self._decision_columns())
        found._run = self._lineage.run  # what is in the log was seen
        return found

    def _unknown(self, event: str, log: Store) -> NoReturn:
        raise UnknownEvent(f"there is no event {shown(event)} in {log.name}")

    def _is_logged(self, log: Store, decision: Decision) -> bool:
        """Tell whether this very decision is in the log, and not one with its id and another arm.

        A decision that was just made is; one that came through JSON is compared.
        """
        event = decision.id
        if event is None or log.state(event) == UNKNOWN:
            return False
        if decision._description is not None and event not in self._replaced:
            return True
        row = last_decision(log.rows_of(event))
        return row is not None and tells_of(row, decision)

    def _write_given(self, log: Store, decisions: Sequence[Decision]) -> None:
        """Write down decisions that are not in the log, before their rewards."""
        many: list[dict[str, Any]] = [
            {"event": one.id, "decision": one.to_dict()}
            for one in decisions
            if not self._is_logged(log, one)
        ]
        if many:
            for one in many:
                self.note_given(log.state(one["event"] or ""), one["event"])
            log.append_all(rows.Given, many)

    def note_given(self, state: int, event: str | None) -> None:
        """Take note of a decision that comes from elsewhere, or replaces one of the log.

        Parameters
        ----------
        state : int
            The state of its event before.
        event : str or None
            Its id.
        """
        if event is not None and state != UNKNOWN:
            self._replaced |= {event}

    def _check_once(self, log: Store, event: str | None, again: bool) -> None:
        """Raise if the event was forgotten or, unless it is one more, its reward was learned.

        Parameters
        ----------
        log : Store
            The log.
        event : str or None
            The id of the event.
        again : bool
            Whether it is one more reward.
        """
        state = UNKNOWN if event is None else log.state(event)
        if state == LEARNED and not again:
            raise AlreadyLearned(
                f"the reward of event {event!r} was learned already, by this log; again=True "
                "learns one more"
            )
        if state == FORGOTTEN:
            raise ForgottenEvent(f"event {event!r} was forgotten, and learns no reward")

    # -- changing what was learned ----------------------------------------------------------------

    def forget(self, event: str) -> None:
        """Take the rewards of a decision out again, as `Bandit.forget`, and write it down."""
        with self._writing() as log:
            known = self._rewards_of(log, event)
            terms = [one for one in map(self._term, known) if one is not None]
            self.check_rounding(terms, forgets=True)
            self.take_out(terms)
            self.note_forgotten(event)
            log.append(rows.Forget, event=event, terms=terms)

    def amend(self, event: str, reward: float) -> None:
        """Replace the reward of a decision, as `Bandit.amend`, and write it down.

        Parameters
        ----------
        event, reward
            As in `Bandit.amend`.
        """
        value = arguments.reward_number(reward)
        with self._writing() as log:
            known = self._rewards_of(log, event)
            if log.state(event) == DECIDED:
                raise InvalidValue(
                    f"event {event!r} has no reward that could be amended: learn(event, reward)"
                )
            if len(known) != 1:
                raise InvalidValue(
                    f"event {event!r} has {len(known)} rewards, and amend replaces a single one"
                )
            term = self._term(known[0])
            if term is not None:
                self.check_rounding([term], forgets=False)
                self.exchange(term, value)
                self.note_amended(event, value)
            log.append(rows.Amend, event=event, value=value, term=term)

    def _rewards_of(self, log: Store, event: str) -> list[Learned]:
        """Return the rewards of a known event that were learned, or raise."""
        if not isinstance(event, str):
            raise InvalidValue(f"an event is the id of a decision, a text, got {shown(event)}")
        state = log.state(event)
        if state == FORGOTTEN:
            raise ForgottenEvent(f"event {event!r} was forgotten already")
        if state == UNKNOWN:
            self._unknown(event, log)
        return learned(log.rows_of(event))

    def _term(self, one: Learned) -> rows.Term | None:
        """Return what the sums have of a reward now; None if they have nothing of it."""
        raise NotImplementedError

    def check_rounding(self, terms: Sequence[rows.Term], *, forgets: bool) -> None:
        """Raise if the rounding of what is taken out would be all that stays in the sums.

        Parameters
        ----------
        terms : sequence of Term
            What is to be taken out.
        forgets : bool
            Whether observations are taken out, and not rewards alone.
        """

    def take_out(self, terms: Sequence[rows.Term]) -> None:
        """Take rewards out of the sums: all of them, or none."""
        raise NotImplementedError

    def exchange(self, term: rows.Term, value: float) -> None:
        """Replace a reward in the sums.

        Parameters
        ----------
        term : Term
            What the sums have of it.
        value : float
            The reward that replaces it.
        """
        raise NotImplementedError

    # -- rows that were read, and not written -----------------------------------------------------

    def believe(self, y: Floats) -> None:
        """Do what the choice, or choices, of one call have changed besides the random stream.

        Parameters
        ----------
        y : ndarray of shape (n, dim)
            What was observed, with NaN where an entry is missing.
        """
        del y
        self._lineage.decisions += 1

    def chances(self, contexts: Sequence[tuple[rows.Decision, list[Arm]]]) -> list[Floats]:
        """Return the probability of each candidate at the contexts of other rounds, now.

        Parameters
        ----------
        contexts : sequence of (Decision, list of arms)
            The rows of these rounds, and their candidates, all of which the bandit has.
        """
        raise NotImplementedError

    def note_row(self, seq: int) -> None:
        """Take note of what a row has changed."""

    def end_notes(self) -> None:
        """Take no notes any more: no row will be written."""

    def note_key(self, key: str, event: str) -> None:
        """Take note of a reward that waits or is provisional.

        Parameters
        ----------
        key : str
            What it is found by.
        event : str
            The id of its decision.
        """

    def note_counted(self, key: str | None) -> None:
        """Take note that the log has the term of a reward that waited."""

    def note_forgotten(self, event: str) -> None:
        """Take note that an event was forgotten."""

    def note_amended(self, event: str, value: float) -> None:
        """Take note that the reward of an event was replaced.

        Parameters
        ----------
        event : str
            The id of the decision.
        value : float
            The reward.
        """

    # -- copies -----------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy has no log: one bandit writes to it.
        return _without_log, (self._unlogged, self.__getstate__())


class Writing:
    """A call of a bandit that ends with a row in its log. A class: half the time of a generator."""

    __slots__ = ("bandit", "held", "version")

    def __init__(self, bandit: Writes) -> None:
        self.bandit, self.held, self.version = bandit, held_interrupts(), 0

    def __enter__(self) -> Store:
        self.held.__enter__()
        bandit = self.bandit
        bandit._lock.acquire()
        try:
            log = bandit._log
            if log is None:
                raise InvalidValue("this bandit has no log")
            log.check_ready()
        except BaseException:
            bandit._lock.release()
            self.held.__exit__(None, None, None)
            raise
        bandit._quiet, self.version = True, log.seq
        return log

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        bandit = self.bandit
        try:
            if kind is not None:
                bandit._give_up()
            elif bandit._log is not None:
                bandit._after(bandit._log, self.version)
        finally:
            bandit._quiet = False
            bandit._lock.release()
            self.held.__exit__(None, None, None)
        if bandit._has_warnings():
            bandit._warn(stacklevel=4)


def _without_log(kind: type[Bandit], state: dict[str, Any]) -> Bandit:
    """Return a bandit without a log out of a pickle or a copy."""
    bandit = object.__new__(kind)
    bandit.__setstate__(state)
    return bandit
