"""The fold: the bandit that follows from the rows of a log, to the bit, whatever keeps them.

Every call that a row records is made again, with the same random numbers. A choice must come out
as it is in the log: arm, probability and score.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from keyhole.core import Encoder, Policy, Recipe, key_streams
from keyhole.errors import FileError, FileMissing, KeyholeError, KeyholeWarning
from keyhole.files import Path
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.log import rows
from keyhole.online.log.events import DECIDED, UNKNOWN
from keyhole.online.log.log import Log
from keyhole.online.log.packing import unpacked
from keyhole.online.logged import LoggedBandit


def replayed(log: Log, *, policy: Policy | None, features: Recipe | None) -> Bandit:
    """Return the bandit of a log, which writes nothing.

    Parameters
    ----------
    log : Log
        The log.
    policy, features
        As in `Bandit.load`.
    """
    return _folded(log, policy, features).without_log()


def resumed(log: Log | Path, *, policy: Policy | None, features: Recipe | None) -> Bandit:
    """Return the bandit of a log, which goes on writing to it, in a run of its own.

    Parameters
    ----------
    log : Log or path-like
        The log.
    policy, features
        As in `Bandit.load`.
    """
    opened = log if isinstance(log, Log) else Log(log)
    if not opened.exists:
        raise FileMissing(f"there is no log {opened.path}: a new bandit begins one")
    opened.open()  # first: nobody else may write meanwhile
    try:
        bandit = _folded(opened, policy, features)
        bandit.resume(opened)
    except BaseException:
        opened.close()
        raise
    return bandit


def _folded(log: Log, policy: Policy | None, features: Recipe | None) -> LoggedBandit:
    """Return the bandit that follows from all rows."""
    replay = Replay(log.name, policy, features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeyholeWarning)  # they were given when it happened
        for row in log:
            replay.take(row)
    if replay.bandit is None:
        raise FileError(f"{log.path} has no rows")
    bandit: LoggedBandit = replay.bandit
    return bandit


class Replay:
    """The fold of rows into a bandit.

    Parameters
    ----------
    name : str
        What the log is called in messages.
    policy, features
        As in `Bandit.load`.
    draw_key : bytes, optional
        The key of the draws, if they are keyed by the ids of events.
    """

    def __init__(
        self,
        name: str,
        policy: Policy | None,
        features: Recipe | None,
        draw_key: bytes | None = None,
    ) -> None:
        self.name, self.policy, self.features = name, policy, features
        self.draw_key = draw_key
        self.bandit: Any = None
        # Decisions that have no reward yet, by id; and those without an id, in order.
        self.decisions: dict[str, Decision] = {}
        self.nameless: deque[Decision] = deque()
        self.choices: list[rows.Decision] = []  # of a batch that is not complete
        self.rewards: list[rows.Reward] = []
        self.first = 0  # the first row of that batch

    def take(self, row: rows.AnyRow) -> None:
        """Repeat the call that a row records, or raise `FileError`."""
        try:
            if self.bandit is None and not isinstance(row, rows.Start):
                raise FileError("a log begins with a row of kind 'start'")
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

    def _start(self, row: rows.Start) -> None:
        if row.keyed and self.draw_key is None:
            raise FileError(
                "its draws are keyed by a secret of the decision service: `keyhole replay FOLDER` "
                "replays it there"
            )
        if self.bandit is None:
            content = unpacked(row.bandit)
            self.bandit = LoggedBandit.load(
                content, policy=self.policy, features=self.features, resume=True
            )
        elif not row.resumed:
            raise FileError("a second bandit begins, which does not go on from the first")
        # One that is resumed is that of the rows before, in a run of its own.
        self.bandit.begin_run(row.run)

    def _decision(self, row: rows.Decision) -> None:
        if row.batch is None:
            made = self._made_again(row)
            self._check(row, made)
            self.keep(row, made)
            return
        self.choices.append(row)
        if row.batch[0] + 1 < row.batch[1]:
            return
        first, self.choices, batch = self.choices[0], [], self.choices
        y = np.array([one.y for one in batch], dtype=np.float64)  # (n, 1 or n_arms, dim)
        rounds = y if y.shape[1] > 1 else y[:, 0]
        chosen = Bandit.choose_many(self.bandit, rounds, among=first.arms)
        for one, each in zip(batch, chosen, strict=True):
            self._check(one, each)
            self.keep(one, each)

    def among(self, row: rows.Decision) -> Iterable[rows.Name] | None:
        """Return the candidates of a row, for `Bandit.choose`."""
        return row.arms

    def keep(self, row: rows.Decision, made: Decision) -> None:
        """Keep a decision for its reward.

        Parameters
        ----------
        row : Decision
            Its row.
        made : Decision
            The choice, made again.
        """
        self.decisions[row.event] = made

    def _made_again(self, row: rows.Decision) -> Decision:
        """Return the choice of a row, made again."""
        if self.draw_key is not None:
            key_streams(self.bandit._random, self.draw_key, row.event)
        y = np.array(row.y, dtype=np.float64)
        made = Bandit.choose(self.bandit, y, among=self.among(row))
        run = self.bandit._lineage.run
        if not row.event.startswith(f"{run}-"):  # the caller gave it
            made._id, made._run = row.event, run
        return made

    def _check(self, row: rows.Decision, made: Decision) -> None:
        wanted = (row.event, row.arm, row.probability, row.score)
        found = (made.id, made.arm, made.probability, made.score)
        if wanted != found:
            raise FileError(f"it has {wanted}, and the replay {found}")

    def _given(self, row: rows.Given) -> None:
        made = Decision.from_dict(row.decision)
        if row.event is None:
            self.nameless.append(made)
        else:
            self.bandit.note_given(DECIDED if row.event in self.decisions else UNKNOWN, row.event)
            self.decisions[row.event] = made

    def _of(self, row: rows.Reward) -> Decision:
        if row.event is None:
            return self.nameless.popleft()
        if row.event not in self.decisions:
            raise FileError(f"there is no decision {row.event!r}")
        if row.key is not None:
            self.bandit.note_key(row.key, row.event)
        return self.decisions[row.event]

    def _reward(self, row: rows.Reward) -> None:
        if row.batch is None:
            Bandit.learn(self.bandit, self._of(row), row.value, again=row.again)
            return
        self.rewards.append(row)
        if row.batch[0] + 1 < row.batch[1]:
            return
        batch, self.rewards = self.rewards, []
        listed, values = [self._of(one) for one in batch], [one.value for one in batch]
        Bandit.learn_many(self.bandit, listed, values, again=batch[0].again)

    def _counted(self, row: rows.Counted) -> None:
        self.bandit.note_counted(row.term.key)

    def _amend(self, row: rows.Amend) -> None:
        if row.term is not None:
            self.bandit.exchange(row.term, row.value)

    def _forget(self, row: rows.Forget) -> None:
        self.bandit.take_out(row.terms)

    def _observe(self, row: rows.Observe) -> None:
        Bandit.observe(self.bandit, np.array(row.y, dtype=np.float64))

    def _levels(self, row: rows.Levels) -> None:
        encoder = self.bandit._learned.encoder
        if encoder is None or not encoder.can_grow:
            raise FileError("its levels need features with growing categories")
        self.bandit._know(Encoder(encoder.features, tuple(row.grown)))

    def _arms(self, row: rows.Arms) -> None:
        if row.added:
            with_records = any(record is not None for _, record in row.added)
            names: Any = [name for name, _ in row.added]
            Bandit.add_arms(self.bandit, dict(row.added) if with_records else names)
        if row.removed:
            Bandit.remove_arms(self.bandit, row.removed)

    def _merge(self, row: rows.Merge) -> None:
        files = [None if one is None else unpacked(one) for one in (row.other, row.base)]
        other, base = (
            None if one is None else Bandit.load(one, policy=self.policy, features=self.features)
            for one in files
        )
        assert other is not None
        Bandit.merge(self.bandit, other, base=base)
