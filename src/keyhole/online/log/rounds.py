"""The rounds of a log: its decisions and what became of them, in arrays.

One pass over the rows. A round is used if its decision was made by the bandit of the log, with a
probability, and its reward is that of the chosen arm. In a round of the decision service in shadow
mode a baseline was served with certainty: its reward says nothing of the logged probabilities.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np

from keyhole.core import Arm, Floats, Ints
from keyhole.errors import FileError, InvalidValue
from keyhole.online.log import rows
from keyhole.online.log.events import Events
from keyhole.online.log.terms import arm_of

KEPT, VETOED, FORGOTTEN, SHADOW = range(4)
REWARDED = (KEPT, SHADOW)  # rounds whose rewards are known to be of one arm
PARTS = ("mean", "width", "optimism", "dispersion")
# Rows after which the posterior of a plain learner is not that of the rounds before, in order.
OTHER = (rows.Given, rows.Merge, rows.Amend, rows.Forget, rows.Context)


class LoggedRounds:
    """Decisions and their rewards, as the rows of a log tell them.

    Parameters
    ----------
    given : iterable of rows
        The rows.
    name : str
        What the log is called in messages.
    """

    def __init__(self, given: Iterable[rows.AnyRow], name: str) -> None:
        self.name = name
        self.start: rows.Start | None = None
        self.names: dict[Arm, int] = {}  # of all arms, in the order in which they came
        self.arms: list[Arm] = []  # those that there are
        self.sets: list[list[Arm]] = []  # different candidates
        self._set_of: dict[tuple[Arm, ...], int] = {}
        self.seqs, self.set_of, self.arms_at = array("q"), array("q"), array("q")
        self.chosen, self.fate = array("q"), bytearray()
        self.probability, self.epsilon, self.reward = array("d"), array("d"), array("d")
        self.parts = {part: array("d") for part in PARTS}
        self.y, self.y_rows, self.dims = array("d"), array("q"), set[int]()
        # Whether the posterior saw observations as they came, rewards came before the next
        # decision, and every round has scores.
        self.is_plain = self.is_in_order = self.has_scores = True
        self.n_elsewhere = self.n_off = 0
        self._events = Events()
        for row in given:
            self._take(row)
        if self.start is None:
            raise FileError(f"{name} has no rows")

    def __len__(self) -> int:
        return len(self.seqs)

    def _take(self, row: rows.AnyRow) -> None:
        if isinstance(row, rows.Decision):
            self._add(row)
        elif isinstance(row, rows.Reward):
            self._learn(row)
        elif isinstance(row, rows.Start):
            self.start, self.arms = self.start or row, list(row.arms)
            self._name(self.arms)
        elif isinstance(row, rows.Arms):
            self.arms = row.applied_to(self.arms)
            self.is_in_order = self.is_in_order and not row.removed
            self._name(self.arms)
        elif isinstance(row, rows.Served):
            self.n_off += 1
        elif isinstance(row, rows.Activate):
            self._activate(row)
        elif isinstance(row, OTHER):
            self.is_in_order = False
            self._change(row)

    def _name(self, arms: Iterable[Arm]) -> None:
        for arm in arms:
            self.names.setdefault(arm, len(self.names))

    def _set(self, arms: list[Arm]) -> int:
        """Return the number of a set of candidates."""
        key = tuple(arms)
        if key not in self._set_of:
            self._name(arms)
            self._set_of[key] = len(self.sets)
            self.sets.append(list(arms))
        return self._set_of[key]

    def _add(self, row: rows.Decision) -> None:
        if row.probability is None:
            raise InvalidValue(
                f"row {row.seq} of {self.name} has no probability: an evaluation needs "
                "Bandit(..., probabilities=True) and, of a learner of one's own, choices with "
                "their probability, Chosen(arm, probability)"
            )
        now = self._set(self.arms)
        chosen_from = now if row.arms is None else self._set(row.arms)
        k = len(self.sets[chosen_from])
        self._events.add(row.event, len(self))
        self.seqs.append(row.seq)
        self.arms_at.append(now)
        self.set_of.append(chosen_from)
        self.chosen.append(self.names[row.arm])
        # A baseline was served whatever was chosen, even if it is the same arm.
        # A deferred decision counts as vetoed until it is activated.
        self.fate.append(SHADOW if row.served is not None else VETOED if row.deferred else KEPT)
        self.is_in_order = self.is_in_order and row.served is None
        self.probability.append(row.probability)
        self.epsilon.append(row.epsilon)
        self.reward.append(np.nan)
        if row.mean is None:
            self.has_scores = False
        for part, kept in self.parts.items():
            values = getattr(row, part) or [np.nan]
            kept.extend(values if len(values) == k else values * k)
        self._observe(row)

    def _observe(self, row: rows.Decision) -> None:
        if row.x is not None or row.filled is not None or row.mean is None:
            self.is_plain = False
        if self.is_plain:
            self.dims.add(len(row.y[0]))
            self.y_rows.append(len(row.y))
            for one in row.y:
                self.y.extend(one)  # type: ignore[arg-type] # no entry is missing

    def _place(self, event: str | None) -> int:
        """Return the round of an event, or -1."""
        return -1 if event is None else self._events.place(event)

    def _learn(self, row: rows.Reward) -> None:
        t = self._place(row.event)
        if t < 0 or self.fate[t] not in REWARDED:
            return
        before = self.reward[t]
        self.reward[t] = row.value if before != before else before + row.value
        if t != len(self) - 1 or before == before:
            self.is_in_order = False

    def _activate(self, row: rows.Activate) -> None:
        t = self._place(row.event)
        if t >= 0 and self.fate[t] == VETOED:
            self.fate[t] = KEPT

    def _change(self, row: Any) -> None:
        t = self._place(getattr(row, "event", None))
        if isinstance(row, rows.Given):
            if t < 0:
                self.n_elsewhere += 1
            elif self.names.get(arm_of(row)) != self.chosen[t]:
                # Another arm was taken in place of the chosen one.
                self.fate[t] = VETOED
        elif t >= 0 and isinstance(row, rows.Amend) and self.fate[t] in REWARDED:
            self.reward[t] = row.value
        elif t >= 0 and isinstance(row, rows.Forget):
            self.fate[t] = FORGOTTEN

    # -- as columns -------------------------------------------------------------------------------

    def of(self, fate: int) -> Ints:
        """Return the rounds with a fate, in order."""
        return np.flatnonzero(np.frombuffer(self.fate, dtype=np.uint8) == fate)

    def table(self, part: str, rounds: Ints) -> Floats:
        """Return a part of the scores of every arm, (n, K), NaN for arms that were no candidates.

        Parameters
        ----------
        part : str
            One of `PARTS`.
        rounds : ndarray of int of shape (n,)
            The rounds.
        """
        missing = np.nan if part in ("mean", "width") else 0.0
        found = np.full((len(rounds), len(self.names)), missing)
        flat = np.array(self.parts[part])
        for rows_of, where, places in self._by_set(rounds):
            found[np.ix_(rows_of, where)] = flat[places]
        return found

    def observations(self, rounds: Ints) -> Floats | None:
        """Return what the posterior saw, (n, d) or (n, K, d); None if it is not what came.

        Parameters
        ----------
        rounds : ndarray of int of shape (n,)
            The rounds.
        """
        if not self.is_plain or len(self.dims) != 1 or not len(rounds):
            return None
        (d,), counts = self.dims, np.array(self.y_rows)
        flat, starts = np.array(self.y).reshape(-1, d), np.cumsum(counts) - counts
        if (counts == 1).all():
            return flat[rounds]
        found = np.full((len(rounds), len(self.names), d), np.nan)
        for rows_of, where, places in self._by_set(rounds):
            own = counts[rounds[rows_of]] > 1
            first = starts[rounds[rows_of]][:, None]
            found[np.ix_(rows_of, where)] = flat[first + own[:, None] * (places - places[:, :1])]
        return found

    def _by_set(self, rounds: Ints) -> Iterable[tuple[Ints, Ints, Ints]]:
        """Yield, for each set of candidates, its rounds, its arms, and their places in `parts`."""
        sizes = np.array([len(one) for one in self.sets])[np.array(self.set_of)]
        starts, kind = np.cumsum(sizes) - sizes, np.array(self.set_of)[rounds]
        for k, arms in enumerate(self.sets):
            rows_of = np.flatnonzero(kind == k)
            if rows_of.size:
                where = np.array([self.names[arm] for arm in arms])
                yield rows_of, where, starts[rounds[rows_of]][:, None] + np.arange(len(arms))
