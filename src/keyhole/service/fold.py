"""The fold of a loop: rows of its log become its bandit, by the calls that made the rows.

A snapshot replaces the rows up to its number. At a start, later decisions of a plain learner are
not made again: they change nothing that is learned. `verify` makes every decision again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import closing

from keyhole.errors import FileError, KeyholeError, KeyholeWarning, shown
from keyhole.online import Decision, LoggedBandit, Own, Replay, rows
from keyhole.service import pages
from keyhole.service.candidates import bandit_among
from keyhole.service.journal import LoopJournal, decoded_row
from keyhole.service.pages import Page
from keyhole.service.reader import Reader

# Kinds of rows that are not decoded: they do not change the bandit.
OF_EVENTS = frozenset(kind.__name__.lower() for kind in rows.OF_EVENTS)
# Fields of a decision that a row has only where they are needed.
SOMETIMES = ("x", "predicted", "levels", "centred")
# Fields of a reward that determine its term in the sums.
LEARNED_AS = ("x", "counted", "weight", "key")
# Exceptions of rows that have the types of the schema, and values that no loop has written.
MALFORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


class LoopReplay(Replay):
    """The fold of the rows of a loop.

    Parameters
    ----------
    journal : LoopJournal
        Finds decisions by their events.
    draw_key : bytes
        The key of the draws.
    bandit : LoggedBandit, optional
        The bandit of a snapshot.
    verifies : bool, default False
        Make every decision again, and compare it with its row.
    """

    def __init__(
        self,
        journal: LoopJournal,
        draw_key: bytes,
        bandit: LoggedBandit | None = None,
        *,
        verifies: bool = False,
    ) -> None:
        super().__init__(journal.name, Own(None, None, None), verify=verifies, draw_key=draw_key)
        self.bandit, self.journal = bandit, journal
        if bandit is not None:
            bandit.tell = _nothing

    def fold(self, given: Iterable[tuple[int, str, bytes]]) -> LoggedBandit:
        """Take in rows, as the database has them, and return the bandit."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KeyholeWarning)  # issued when the rows were written
            for seq, kind, body in given:
                self.step(seq, kind, body)
        bandit: LoggedBandit = self.made()
        return bandit

    def catch_up(self, store: Reader, number: int) -> LoggedBandit:
        """Take in all further rows of a loop, and return the bandit.

        Parameters
        ----------
        store : Reader
            The database.
        number : int
            The number of the loop.
        """
        while True:
            odd = self._take_pages(store, number)
            if odd is None:
                bandit: LoggedBandit = self.made()
                return bandit
            size = (odd.last_other or odd.last) - self.journal.seq
            self.fold(store.rows(number, self.journal.seq, size))
            if not self.bandit.learns_in_order:
                return self.fold(store.rows(number, self.journal.seq))

    def _take_pages(self, store: Reader, number: int) -> Page | None:
        """Take in pages, and return the first one that must be taken in row by row.

        Parameters
        ----------
        store : Reader
            The database.
        number : int
            The number of the loop.
        """
        with closing(pages.ahead(store, number, self.journal.seq)) as following:
            return next((page for page in following if not self._take_page(page)), None)

    def _take_page(self, page: Page) -> bool:
        """Take in a page of decisions and rewards; False if its rows must be taken one by one.

        If a row is wrong, taking it in by itself raises the error.
        """
        bandit = self.bandit
        is_whole = page.last == self.journal.seq + page.n_rows
        if bandit is None or not is_whole or page.last_other is not None:
            return False
        if not bandit.learns_in_order:
            return False
        rewards = pages.rewards(page.bodies, bandit.dim)
        if rewards is None or not bandit.learn_in_order(*rewards):
            return False
        bandit.count_decisions(page.n_decisions)
        self.journal.seq = page.last
        return True

    def step(self, seq: int, kind: str, body: bytes) -> None:
        """Take in one row.

        Parameters
        ----------
        seq : int
            Its number.
        kind : str
            Its kind.
        body : bytes
            The row.
        """
        if seq != self.journal.seq + 1:
            raise FileError(
                f"row {self.journal.seq + 1} of {self.journal.name} is missing, before row {seq}"
            )
        self.journal.seq = seq
        try:
            if kind == "decision" and not self.verify and self.bandit.is_plain:
                self.bandit.count_decisions(1)
            elif kind not in OF_EVENTS:
                self.take(decoded_row(self.journal.name, seq, body))
        except KeyholeError:
            raise
        except MALFORMED as reason:
            raise malformed(self.journal.name, seq, reason) from reason

    def _start(self, row: rows.Start) -> None:
        super()._start(row)
        self.bandit = LoggedBandit.writing_to(self.bandit, self.journal, self.draw_key)
        self.bandit.tell = _nothing
        if self.verify:
            # These fields repeat the bandit's file, for readers of the log.
            found = {**self.bandit.start_fields(), "arms": list(self.bandit.arms)}
            for name in ("arms", "policy", "sharing", "prior_precision", "keyed"):
                if getattr(row, name) != found[name]:
                    raise FileError(
                        f"its {name} is {getattr(row, name)}, and its bandit's {found[name]}"
                    )

    def among(self, row: rows.Decision) -> tuple[rows.Name, ...] | None:
        """Return the candidates of a row as `Bandit.choose` got them."""
        return None if row.arms is None else bandit_among(self.bandit.arms, tuple(row.arms))

    def _made_again(self, row: rows.Decision) -> Decision:
        self._offset = self.bandit.rewards_offset
        return super()._made_again(row)

    def _check(self, row: rows.Decision, made: Decision) -> None:
        """Raise unless a row has all fields of the choice, made again."""
        super()._check(row, made)
        if row.arms is None:
            raise FileError("it has no candidates")
        found = self.bandit.fields_of(made, row.seq - 1, self._offset)
        for name, value in (dict.fromkeys(SOMETIMES) | found).items():
            self._check_same(name, getattr(row, name), value)

    def _keep(self, event: str, made: Decision | rows.Decision) -> None:
        """Do nothing: the journal finds decisions by their events."""

    def _of(self, row: rows.Reward | rows.Context) -> Decision:
        if row.event is None:
            raise FileError("it has no event")
        if isinstance(row, rows.Reward) and row.key is not None:
            self.bandit.note_key(row.key, row.event)
        # The index may be ahead of this row: the event may be forgotten by a later one.
        decided = self.journal.decided(row.event)
        if isinstance(row, rows.Reward) and row.taken is not None:
            self._check_taken(row, decided)
        decision: Decision = self.bandit.decision_of(decided)
        return decision

    # -- what is learned --------------------------------------------------------------------------

    def _reward(self, row: rows.Reward) -> None:
        if not self.verify:
            super()._reward(row)
            return
        made = self.bandit.learn_again(self._of(row), row.value)
        for name in LEARNED_AS:
            self._check_same(name, getattr(row, name), made.get(name))
        self._check_same("dropped", row.dropped, made.get("dropped", False))

    def _counted(self, row: rows.Counted) -> None:
        if self.verify:
            event, term = self.bandit.fixed_term(row.term.key)
            self._check_same("event", row.event, event)
            self._check_same("term", row.term, term)
        super()._counted(row)

    def _amend(self, row: rows.Amend) -> None:
        if self.verify:
            terms = self.bandit.terms_of(self.journal, row.event)
            self._check_same("term", row.term, terms[0] if terms else None)
        super()._amend(row)

    def _forget(self, row: rows.Forget) -> None:
        if self.verify:
            terms = self.bandit.terms_of(self.journal, row.event)
            self._check_same("terms", row.terms, terms)
        super()._forget(row)

    def _check_same(self, name: str, given: object, found: object) -> None:
        """Raise unless a field of a row follows from the rows before it.

        Parameters
        ----------
        name : str
            The name of the field.
        given, found : object
            Its value in the row, and in the replay.
        """
        if given != found:
            raise FileError(f"its {name} is {shown(given)}, and the replay's {shown(found)}")

    def _check_taken(self, row: rows.Reward, decided: rows.Decision) -> None:
        """Raise unless a reward has the arm and observation of its decision."""
        found = {"taken": row.taken, "seen": row.seen}
        if decided.learned_at() != found:
            raise FileError(f"its arm and observation are not those of event {row.event!r}")


def malformed(name: str, seq: int, reason: Exception) -> FileError:
    """Return the error of a row with a field that no loop has written.

    Parameters
    ----------
    name : str
        The name of the loop in messages.
    seq : int
        The number of the row.
    reason : Exception
        One of `MALFORMED`, which the code that takes in rows has raised.
    """
    return FileError(
        f"row {seq} of {name} does not follow from those before it: "
        f"{type(reason).__name__} {reason}"
    )


def _nothing(_message: str) -> None:
    """Drop a warning: it was issued when the row was written."""
