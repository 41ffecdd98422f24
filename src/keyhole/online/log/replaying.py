"""The fold: the bandit that follows from the rows of a log, to the bit, whatever keeps them.

Every call that a row records is made again, with the same random numbers. A choice must come out
as it is in the log: arm, probability and score. Without `verify` choices are believed: what they
change is done, but no arm is scored and no random number is drawn. What is learned is the same.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from keyhole.core import AnyLearner, Encoder, Policy, Recipe, key_streams
from keyhole.errors import FileError, FileMissing, InvalidValue, KeyholeError, KeyholeWarning, shown
from keyhole.files import Path
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.log import rows
from keyhole.online.log.decisions import decision_of, last_decision
from keyhole.online.log.events import DECIDED, UNKNOWN
from keyhole.online.log.log import Log
from keyhole.online.log.packing import unpacked
from keyhole.online.logged import LoggedBandit, LoggedOwnBandit

# Decisions that are kept for their rewards; older ones are looked up. They take about a kilobyte.
MOST_KEPT = 20_000
Find: TypeAlias = Callable[[str], list[rows.AnyRow]]


class Own(NamedTuple):
    """What no row can hold, and its user gives: see `Bandit.from_log`."""

    policy: Policy | None = None
    features: Recipe | None = None
    learner: AnyLearner | None = None


def replayed(log: Log, own: Own) -> Bandit:
    """Return the bandit of a log, which writes nothing.

    Parameters
    ----------
    log : Log
        The log.
    own : Own
        What no row can hold.
    """
    # A Parquet file has no rows that could be looked up one by one.
    find = None if log.is_parquet else log.rows_of
    made = folded(log, log.name, own, find)
    made.end_notes()
    bandit: Bandit = made.without_log()
    return bandit


def resumed(log: Log | Path, own: Own) -> Bandit:
    """Return the bandit of a log, which goes on writing to it, in a run of its own.

    Parameters
    ----------
    log : Log or path-like
        The log.
    own : Own
        What no row can hold.
    """
    opened = log if isinstance(log, Log) else Log(log)
    if not opened.exists:
        raise FileMissing(f"there is no log {opened.path}: a new bandit begins one")
    opened.open()  # first: nobody else may write meanwhile
    try:
        bandit: Any = folded(opened, opened.name, own, opened.rows_of)
        bandit.resume(opened)
    except BaseException:
        opened.close()
        raise
    found: Bandit = bandit
    return found


def folded(given: Iterable[rows.AnyRow], name: str, own: Own, find: Find | None = None) -> Any:
    """Return the bandit that follows from rows; it has no log yet.

    Parameters
    ----------
    given : iterable of rows
        All rows, in order: those of a `Log`, or of any other `Store`.
    name : str
        What the log is called in messages.
    own : Own
        What no row can hold.
    find : callable, optional
        `Store.rows_of`, by which old decisions are found. Without it all are kept in memory.
    """
    replay = Replay(name, own, find=find)
    with quietly():
        for row in given:
            replay.take(row)
    return replay.made()


@contextmanager
def quietly() -> Iterator[None]:
    """Ignore warnings, which were given when it happened."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeyholeWarning)
        yield


class Replay:
    """The fold of rows into a bandit.

    Parameters
    ----------
    name : str
        What the log is called in messages.
    own : Own
        What no row can hold.
    verify : bool, default True
        Make every choice again, and compare it. Otherwise choices are believed, and the random
        stream of the bandit stays where it was.
    find : callable, optional
        `Store.rows_of`, by which old decisions are found. Without it all are kept in memory.
    draw_key : bytes, optional
        The key of the draws, if they are keyed by the ids of events.
    """

    def __init__(
        self,
        name: str,
        own: Own,
        *,
        verify: bool = True,
        find: Find | None = None,
        draw_key: bytes | None = None,
    ) -> None:
        self.name, self.own, self.verify, self.find = name, own, verify, find
        self.draw_key = draw_key
        self.bandit: Any = None
        self.plain: Any = Bandit  # whose calls are made: they write nothing
        self.sensors: list[Any] = []  # the names of the sensors
        # Decisions that have no reward yet, by id; and those without an id, in order.
        self.decisions: dict[str, Decision | rows.Decision] = {}
        self.nameless: deque[Decision] = deque()
        self.choices: list[rows.Decision] = []  # of a batch that is not complete
        self.rewards: list[rows.Reward] = []
        self.first = 0  # the first row of that batch

    def made(self) -> Any:
        """Return the bandit, or raise `FileError` if there were no rows."""
        if self.bandit is None:
            raise FileError(f"{self.name} has no rows")
        return self.bandit

    def take(self, row: rows.AnyRow) -> None:
        """Repeat the call that a row records, or raise `FileError`."""
        try:
            if self.bandit is None and not isinstance(row, rows.Start):
                raise FileError("a log begins with a row of kind 'start'")
            if isinstance(row, rows.OF_EVENTS):
                return
            getattr(self, f"_{type(row).__name__.lower()}")(row)
            pending = self.choices or self.rewards
            if pending:  # what a batch changes, it changes as a whole
                self.first = pending[0].seq
            else:
                self.bandit.note_row(self.first or row.seq)
                self.first = 0
        except KeyholeError as reason:
            raise FileError(
                f"row {row.seq} of {self.name} does not follow from those before it: {reason}"
            ) from None

    # -- runs -------------------------------------------------------------------------------------

    def _start(self, row: rows.Start) -> None:
        if row.keyed and self.draw_key is None and self.verify:
            raise FileError(
                "its draws are keyed by a secret of the decision service: `keyhole replay FOLDER` "
                "replays it there"
            )
        if self.bandit is None:
            self.bandit = self._begun(row)
            self.plain, self.sensors = self.bandit._unlogged, row.sensors or []
        elif not row.resumed:
            raise FileError("a second bandit begins, which does not go on from the first")
        # One that is resumed is that of the rows before, in a run of its own.
        self.bandit.begin_run(row.run)

    def _begun(self, row: rows.Start) -> Any:
        content, (policy, features, learner) = unpacked(row.bandit), self.own
        if row.learner == "own":
            self.verify = True  # what a choice changes of its state is not known
            return LoggedOwnBandit.begun(content, learner)
        if learner is not None:
            raise InvalidValue(
                f"learner is for a learner of one's own, and this log has its learner: {row.policy}"
            )
        return LoggedBandit.load(content, policy=policy, features=features, resume=True)

    # -- choices ----------------------------------------------------------------------------------

    def _decision(self, row: rows.Decision) -> None:
        if not self.verify:
            self._believe(row)
            return
        if row.batch is None:
            made = self._made_again(row)
            self._check(row, made)
            self._keep(row.event, made)
            return
        self.choices.append(row)
        if row.batch[0] + 1 < row.batch[1]:
            return
        first, self.choices, batch = self.choices[0], [], self.choices
        y = np.array([one.y for one in batch], dtype=np.float64)  # (n, 1 or n_arms, dim)
        rounds = y if y.shape[1] > 1 else y[:, 0]
        chosen = self.plain.choose_many(self.bandit, rounds, among=first.arms)
        for one, each in zip(batch, chosen, strict=True):
            self._check(one, each)
            self._keep(one.event, each)

    def among(self, row: rows.Decision) -> Iterable[rows.Name] | None:
        """Return the candidates of a row, for `Bandit.choose`."""
        return row.arms

    def _made_again(self, row: rows.Decision) -> Decision:
        """Return the choice of a row, made again."""
        if self.draw_key is not None:
            key_streams(self.bandit._random, self.draw_key, row.event)
        y = np.array(row.y, dtype=np.float64)
        sensor = None if row.sensor is None else self.sensors[row.sensor]
        made: Decision = self.plain.choose(self.bandit, y, among=self.among(row), sensor=sensor)
        run = self.bandit._lineage.run
        # The caller gave it, as all of those that draws are keyed by.
        if self.draw_key is not None or not row.event.startswith(f"{run}-"):
            made._id, made._run = row.event, run
        return made

    def _keep(self, event: str, made: Decision | rows.Decision) -> None:
        """Keep a decision for its reward; the oldest one may have to go."""
        self.decisions.pop(event, None)  # it becomes the newest one
        self.decisions[event] = made
        if self.find is not None and len(self.decisions) > MOST_KEPT:
            del self.decisions[next(iter(self.decisions))]

    def _believe(self, row: rows.Decision) -> None:
        """Take over a choice, or, with its last row, those of a batch."""
        self.choices.append(row)
        if row.batch is not None and row.batch[0] + 1 < row.batch[1]:
            return
        batch, self.choices = self.choices, []
        self.bandit.believe(np.array([y for one in batch for y in one.y], dtype=np.float64))
        for one in batch:
            self._keep(one.event, one)

    def _check(self, row: rows.Decision, made: Decision) -> None:
        wanted = (row.event, row.arm, row.probability, row.score)
        found = (made.id, made.arm, made.probability, made.score)
        if wanted != found:
            raise FileError(f"it has {wanted}, and the replay {found}")

    # -- rewards ----------------------------------------------------------------------------------

    def _given(self, row: rows.Given) -> None:
        made = Decision.from_dict(row.decision)
        if row.event is None:
            self.nameless.append(made)
        else:
            known = self._found(row.event, row.seq) is not None
            self.bandit.note_given(DECIDED if known else UNKNOWN, row.event)
            self._keep(row.event, made)

    def _of(self, row: rows.Reward | rows.Context) -> Decision:
        if row.event is None:
            return self.nameless.popleft()
        found = self._found(row.event, row.seq)
        if found is None:
            raise FileError(f"there is no decision {shown(row.event)}")
        if isinstance(row, rows.Reward) and row.key is not None:
            self.bandit.note_key(row.key, row.event)
        if isinstance(found, Decision):
            return found
        if isinstance(found, rows.Decision):
            decided: Decision = self.bandit.decision_of(found)
            return decided
        return decision_of(found, self.bandit._decision_columns())

    def _found(self, event: str, seq: int) -> Decision | rows.Decision | rows.Given | None:
        """Return the decision of an event before a row, or None."""
        known = self.decisions.get(event)
        if known is not None or self.find is None:
            return known
        return last_decision(row for row in self.find(event) if row.seq < seq)

    def _reward(self, row: rows.Reward) -> None:
        if row.batch is None:
            options = {"again": row.again, "context": row.context}
            self.plain.learn(self.bandit, self._of(row), row.value, **options)
            return
        self.rewards.append(row)
        if row.batch[0] + 1 < row.batch[1]:
            return
        batch, self.rewards = self.rewards, []
        listed, values = [self._of(one) for one in batch], [one.value for one in batch]
        self.plain.learn_many(self.bandit, listed, values, again=batch[0].again)

    def _context(self, row: rows.Context) -> None:
        self.plain.learn_context(self.bandit, self._of(row), row.context)

    def _counted(self, row: rows.Counted) -> None:
        self.bandit.note_counted(row.term.key)

    def _amend(self, row: rows.Amend) -> None:
        if row.term is not None:
            self.bandit.exchange(row.term, row.value)
            self.bandit.note_amended(row.event, row.value)

    def _forget(self, row: rows.Forget) -> None:
        self.bandit.take_out(row.terms)
        self.bandit.note_forgotten(row.event)

    # -- what else changes a bandit ---------------------------------------------------------------

    def _observe(self, row: rows.Observe) -> None:
        self.plain.observe(self.bandit, np.array(row.y, dtype=np.float64))

    def _levels(self, row: rows.Levels) -> None:
        encoder = self.bandit._learned.encoder
        if encoder is None or not encoder.can_grow:
            raise FileError("its levels need features with growing categories")
        self.bandit._know(Encoder(encoder.features, (*encoder.grown, *row.grown)))

    def _arms(self, row: rows.Arms) -> None:
        if row.added:
            with_records = any(record is not None for _, record in row.added)
            names: Any = [name for name, _ in row.added]
            self.plain.add_arms(self.bandit, dict(row.added) if with_records else names)
        if row.removed:
            self.plain.remove_arms(self.bandit, row.removed)

    def _merge(self, row: rows.Merge) -> None:
        policy, features, _ = self.own
        files = [None if one is None else unpacked(one) for one in (row.other, row.base)]
        other, base = (
            None if one is None else Bandit.load(one, policy=policy, features=features)
            for one in files
        )
        assert other is not None
        self.plain.merge(self.bandit, other, base=base)
