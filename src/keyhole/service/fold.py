"""The fold of a loop: rows of its log become its bandit, by the calls that made the rows.

A snapshot stands for the rows up to its number. To go on, decisions of a plain learner need not be
made again: they change nothing that is learned. `verify` makes every decision again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from keyhole.errors import FileError, KeyholeWarning
from keyhole.online import Decision, LoggedBandit, Own, Replay, rows
from keyhole.service.candidates import bandit_among
from keyhole.service.journal import LoopJournal

# Kinds of rows that need not even be decoded.
OF_EVENTS = frozenset(kind.__name__.lower() for kind in rows.OF_EVENTS)


class LoopReplay(Replay):
    """The fold of the rows of a loop.

    Parameters
    ----------
    journal : LoopJournal
        Where decisions are found by their events.
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

    def fold(self, given: Iterable[tuple[int, str, bytes]]) -> LoggedBandit:
        """Take in rows, as the database has them, and return the bandit."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KeyholeWarning)  # they were given when it happened
            for seq, kind, body in given:
                self.step(seq, kind, body)
        if self.bandit is None:
            raise FileError(f"{self.journal.name} has no rows")
        bandit: LoggedBandit = self.bandit
        return bandit

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
        if kind == "decision" and not self.verify and self.bandit.is_plain:
            self.bandit._lineage.decisions += 1
        elif kind not in OF_EVENTS:
            self.take(self._decoded(seq, body))

    def _decoded(self, seq: int, body: bytes) -> rows.AnyRow:
        try:
            return rows.decoded(body)
        except rows.DamagedRow as reason:
            raise FileError(f"row {seq} of {self.journal.name} is damaged: {reason}") from None

    def _start(self, row: rows.Start) -> None:
        super()._start(row)
        self.bandit = LoggedBandit.writing_to(self.bandit, self.journal, self.draw_key)

    def among(self, row: rows.Decision) -> tuple[rows.Name, ...] | None:
        """Return the candidates of a row in the way that they were given."""
        return None if row.arms is None else bandit_among(self.bandit, tuple(row.arms))

    def _keep(self, event: str, made: Decision | rows.Decision) -> None:
        """Keep nothing: decisions are found by their events."""

    def _of(self, row: rows.Reward | rows.Context) -> Decision:
        assert row.event is not None
        if isinstance(row, rows.Reward) and row.key is not None:
            self.bandit.note_key(row.key, row.event)
        # The index may say of its event what comes in a later row: that it is forgotten, say.
        decision: Decision = self.bandit.decision_of(self.journal.decided(row.event))
        return decision
