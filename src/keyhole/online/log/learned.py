"""Which rewards of a log are in its bandit's sums at the end, row by row.

A reward may come late, once more (`again`), for another arm than the chosen one, and be forgotten;
what was learned of an arm goes when the arm is removed. `Learned` resolves all of it, so that one
who fits a posterior to a log reads single rows, each an arm, an observation and a reward.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from keyhole.core import REWARDS, Arm
from keyhole.errors import FileError
from keyhole.online import storage
from keyhole.online.log import rows
from keyhole.online.log.events import UNKNOWN, Events
from keyhole.online.log.packing import unpacked

NOTHING = float("nan")


class Summary(NamedTuple):
    """What one who fits a posterior has to know of a log beside its rows.

    Attributes
    ----------
    kind : str
        The format of the bandit's file, which tells bandits with sensors from others.
    recipe : str or None
        What tells the features from others.
    dim : int or None
        The length of an observation when it began.
    arms : list of arms
        The arms at the end.
    gone : list of arms
        Arms that were removed, and of which rewards are still in the sums.
    runs : dict of str to list of int
        For each run, the number of its decisions and of its additions.
    others : dict of str to int
        For each run that was taken over, by the bandit it began with or by a merge, the number of
        its additions.
    n_foreign : int
        Number of rewards of decisions that were made elsewhere.
    first : list of [float, bool]
        The first rewards, and whether their observation has no missing entry: where a constant is
        fitted, rewards are counted from the median of the first ones.
    """

    kind: str
    recipe: str | None
    dim: int | None
    arms: list[Arm]
    gone: list[Arm]
    runs: dict[str, list[int]]
    others: dict[str, int]
    n_foreign: int
    first: list[tuple[float, bool]]


class Learned:
    """The rewards of a log that are in its bandit's sums.

    Parameters
    ----------
    given : iterable of rows
        The rows of the log.
    """

    def __init__(self, given: Iterable[rows.AnyRow]) -> None:
        self.n_rows = 0
        # By the number of a row: the reward that it stands for, and the index of its arm.
        self._values, self._arm_of = array("d", [NOTHING]), array("q", [-1])
        # Rows of further rewards, and the rows of their decisions.
        self.sources: dict[int, int] = {}
        self._events = Events()
        self._further: dict[str, list[int]] = {}  # rows of an event beside its last decision's
        self._nameless: deque[int] = deque()
        self._foreign: set[int] = set()  # rows of decisions that were made elsewhere
        self._batch: list[rows.Reward] = []
        self._indices: dict[Arm, int] = {}
        self._arms: list[Arm] = []
        self._first: list[tuple[float, bool]] = []
        self._has_missing: set[int] = set()  # rows of early decisions with missing entries
        self._runs: dict[str, list[int]] = {}
        self._others: dict[str, int] = {}
        self._run, self._header, self._sharing = "", dict[str, Any](), ""
        self._wants_first = True
        for row in given:
            self._take(row)

    def value(self, seq: int) -> float | None:
        """Return the reward that a row stands for; None if there is none."""
        value = self._values[seq]
        return None if value != value else value

    @property
    def summary(self) -> Summary:
        """What one who fits a posterior has to know beside the rows."""
        used = ~np.isnan(np.array(self._values))
        left = set(np.array(self._arm_of)[used].tolist())
        names = [name for name, index in self._indices.items() if index in left]
        return Summary(
            kind=self._header.get("format", ""),
            recipe=self._header.get("recipe"),
            dim=self._header.get("dim"),
            arms=self._arms,
            gone=[name for name in names if name not in set(self._arms)],
            runs=self._runs,
            others={run: n for run, n in self._others.items() if run not in self._runs},
            n_foreign=sum(bool(used[k]) for k in self._foreign),
            first=self._first,
        )

    # -- rows -------------------------------------------------------------------------------------

    def _take(self, row: rows.AnyRow) -> None:
        self.n_rows = row.seq
        self._values.append(NOTHING)
        self._arm_of.append(-1)
        if isinstance(row, rows.Start):
            self._start(row)
        elif isinstance(row, rows.Decision):
            self._decision(row.event, row.taken, row.own_row(self._arms), row.seq)
            self._runs[self._run][0] = max(self._runs[self._run][0], row.round)
        elif isinstance(row, rows.Given):
            self._foreign.add(row.seq)
            self._decision(row.event, row.decision["arm"], row.own_row(), row.seq)
        elif isinstance(row, rows.Reward):
            self._batch.append(row)
            if row.batch is None or row.batch[0] + 1 == row.batch[1]:
                batch, self._batch = self._batch, []
                for one in batch:
                    self._reward(one)
        elif isinstance(row, rows.Forget):
            self._forget(row.event)
        elif isinstance(row, rows.Amend):
            self._amend(row)
        elif isinstance(row, rows.Arms):
            self._arms = row.applied_to(self._arms)
            self._remove(row.removed)
        elif isinstance(row, rows.Merge):
            self._knows(row.other)

    def _start(self, row: rows.Start) -> None:
        self._run, self._arms, self._sharing = row.run, list(row.arms), row.sharing or ""
        if row.learner == "own":  # whose state no file has
            self._header = {"format": "own"}
        elif not self._header:
            self._header = self._knows(row.bandit)
        self._runs.setdefault(row.run, [0, 0])

    def _knows(self, bandit: str) -> dict[str, Any]:
        """Take note of the runs that a bandit goes back to, and return its header."""
        header = storage.read(unpacked(bandit)).header
        for run, past in storage.pasts_of(header.get("lineage", {})).items():
            self._others[run] = max(self._others.get(run, 0), past.additions)
        return header

    def _decision(self, event: str | None, arm: Arm, seen: rows.Numbers, seq: int) -> None:
        if self._wants_first and None in seen:
            self._has_missing.add(seq)
        self._arm_of[seq] = self._indices.setdefault(arm, len(self._indices))
        if event is None:
            self._nameless.append(seq)
            return
        if self._events.state(event) != UNKNOWN:  # another arm in place of the chosen one
            self._further.setdefault(event, []).append(self._events.place(event))
        self._events.add(event, seq)

    def _reward(self, row: rows.Reward) -> None:
        at = self._nameless.popleft() if row.event is None else self._place(row)
        if self._wants_first:
            self._first.append((row.value, at not in self._has_missing))
            self._wants_first = sum(whole for _, whole in self._first) < REWARDS
        if self._values[at] == self._values[at]:
            self.sources[row.seq], self._arm_of[row.seq] = at, self._arm_of[at]
            at = row.seq
            if row.event is not None:
                self._further.setdefault(row.event, []).append(at)
        self._values[at] = row.value
        self._runs[self._run][1] += 1

    def _place(self, row: rows.Reward) -> int:
        assert row.event is not None
        if self._events.state(row.event) == UNKNOWN:
            raise FileError(f"row {row.seq} is a reward of {row.event!r}, which was not decided")
        return self._events.place(row.event)

    def _forget(self, event: str) -> None:
        for at in [self._events.place(event), *self._further.pop(event, ())]:
            self._runs[self._run][1] += self._values[at] == self._values[at]
            self._values[at] = NOTHING

    def _amend(self, row: rows.Amend) -> None:
        """Replace the one reward of an event, if the sums have it."""
        at = self._events.place(row.event)
        if row.term is not None:
            self._values[at] = row.value
            self._runs[self._run][1] += 1

    def _remove(self, names: list[Arm]) -> None:
        self._runs[self._run][1] += bool(names)
        if self._sharing != "per-arm":
            return  # what was learned of them stays
        for index in (self._indices[name] for name in names if name in self._indices):
            for at in np.flatnonzero(np.array(self._arm_of) == index).tolist():
                self._values[at] = NOTHING
