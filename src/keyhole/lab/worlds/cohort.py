"""`CohortWorld`: the rows of a table, each once and in random order, with the rewards of all arms.

Unlike `DatasetWorld` nothing is sensed or simulated: rows are seen as they are, missing entries
included, and the rewards are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import Floats, Ints, Observer, Streams
from keyhole.errors import InvalidValue
from keyhole.lab.worlds.covariance import frozen
from keyhole.lab.worlds.describing import digest
from keyhole.lab.worlds.rounds import Rounds, World


@dataclass
class Arrivals:
    """The random streams of a run, and the rows that are next.

    Parameters
    ----------
    source : Streams
        The random streams.
    rows : ndarray of int
        The indices of the rows that are next.
    """

    source: Streams
    rows: Ints

    def next(self, n: int, n_rows: int) -> Ints:
        """Return the next n rows; after the last one all rows come again, in another order.

        Parameters
        ----------
        n : int
            The number of rows to return.
        n_rows : int
            The number of rows of the table.
        """
        while self.rows.size < n:
            order = self.source["order"].permutation(n_rows)
            self.rows = np.concatenate([self.rows, order])
        taken, self.rows = self.rows[:n], self.rows[n:]
        return taken


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CohortWorld(World):
    """A world of a table's rows in random order, with a context that all arms share.

    The regression oracle is the best observer: `values` are the least squares fit of each arm's
    rewards on a constant and the row, over the whole table. Missing entries are first replaced by
    their best linear prediction from the other entries, by the mean and covariance of all rows.
    `latent` values are unknown (NaN).

    Parameters
    ----------
    features : array_like of shape (rows, dim)
        The rows. Missing entries are NaN; no column is missing altogether.
    rewards : array_like of shape (rows, n_arms)
        The reward of each arm for each row. If each row has one 1 and otherwise 0, that arm is the
        right answer of the row.
    name : str, default "cohort"
        The name of the table.

    Raises
    ------
    InvalidValue
        If a setting has the wrong type, shape or range.

    Examples
    --------
    >>> from keyhole.lab.worlds import CohortWorld
    >>> rows = [[1.0, float("nan")], [2.0, 1.0], [3.0, 3.0], [4.0, 2.0]]
    >>> world = CohortWorld(rows, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> sorted(world.sample(4, seed=1).observations[:, 0, 0].tolist())
    [1.0, 2.0, 3.0, 4.0]
    """

    features: Floats
    rewards: Floats
    name: str

    shared_context = True

    def __init__(self, features: ArrayLike, rewards: ArrayLike, *, name: str = "cohort") -> None:
        rows = checks.with_missing("features", features)
        given = checks.floats("rewards", rewards)
        if rows.ndim != 2 or 0 in rows.shape:
            raise InvalidValue(f"features must have shape (rows, dim), got {rows.shape}")
        if given.ndim != 2 or len(given) != len(rows) or not given.shape[1]:
            raise InvalidValue(
                f"rewards must have a row for each of the {len(rows)} rows of features, "
                f"got shape {given.shape}"
            )
        if (unseen := np.isnan(rows).all(axis=0)).any():
            raise InvalidValue(
                f"column {int(unseen.argmax())} of features has missing entries only"
            )
        fields = {"features": frozen(rows), "rewards": frozen(given), "name": str(name)}
        for key, value in fields.items():
            object.__setattr__(self, key, value)

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return int(self.rewards.shape[1])

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return int(self.features.shape[1])

    @cached_property
    def labels(self) -> Ints | None:
        """The right answer of each row, or None if rewards are not one 1 and otherwise 0."""
        is_one = self.rewards == 1.0
        one_each = (is_one.sum(axis=1) == 1).all() and (is_one | (self.rewards == 0.0)).all()
        return is_one.argmax(axis=1) if one_each else None

    @cached_property
    def filled(self) -> Floats:
        """The rows with missing entries predicted from the others, (rows, dim)."""
        observer = Observer(self.dim, missing="predict")
        rows = np.array(self.features)
        observer.see(rows)
        return frozen(observer.filled(rows))

    @cached_property
    def _oracle(self) -> Floats:
        """The least squares fit on a constant and the row, (1 + dim, n_arms)."""
        return np.asarray(np.linalg.lstsq(self._design, self.rewards)[0], dtype=np.float64)

    @property
    def _design(self) -> Floats:
        return np.column_stack([np.ones(len(self.filled)), self.filled])

    @cached_property
    def eta(self) -> Floats:
        """The slopes of the regression oracle, (n_arms, dim)."""
        return frozen(np.ascontiguousarray(self._oracle[1:].T))

    @cached_property
    def values(self) -> Floats:
        """The regression oracle's prediction of each reward, (rows, n_arms)."""
        return frozen(self._design @ self._oracle)

    @cached_property
    def noise_scale(self) -> float:
        """The root mean squared error of the oracle's prediction, the largest over arms."""
        return float(np.sqrt(((self.rewards - self.values) ** 2).mean(axis=0).max()))

    def start(self, source: Streams) -> Arrivals:
        """Return the initial state of a run."""
        return Arrivals(source, np.empty(0, np.int64))

    def rounds(self, state: Arrivals, n: int) -> Rounds:
        """Return the next n rounds; see `World.rounds`.

        Parameters
        ----------
        state : Arrivals
            The state that `start` returned.
        n : int
            The number of rounds.
        """
        rows = state.next(n, len(self.features))
        return Rounds(
            observations=self.features[rows][:, None],
            rewards=self.rewards[rows],
            values=self.values[rows],
            latent=np.full((n, self.n_arms), np.nan),
            labels=None if self.labels is None else self.labels[rows],
        )

    def describe(self) -> dict[str, Any]:
        """Return the sizes of the table, and a digest of its content."""
        return {
            **super().describe(),
            "data": self.name,
            "rows": len(self.features),
            "missing_share": float(np.isnan(self.features).mean()),
            "sha256": digest(self.features, self.rewards),
        }

    def __repr__(self) -> str:
        rows, dim = self.features.shape
        return f"CohortWorld({self.name!r}, {rows:,} rows x {dim}, {self.n_arms} arms)"
