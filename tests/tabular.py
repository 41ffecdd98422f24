"""Tables of arms, observations and rewards, and the bandits that have learned them row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import keyhole as kh
from keyhole.core import Floats

# Half of the distance from 1 to the next float64.
UNIT = 2.0**-53
ARMS = ("A", "B", "C")


class History(NamedTuple):
    """Rows of a history."""

    arms: list[str]
    y: Floats  # (n, dim)
    rewards: Floats  # (n,)

    @property
    def flat(self) -> pa.Table:
        """A table with a column for each number."""
        names = {f"y{j}": column for j, column in enumerate(self.y.T)}
        return pa.table({"arm": self.arms, "reward": self.rewards, **names})

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of the observation in `flat`."""
        return {"observation": [f"y{j}" for j in range(self.y.shape[1])]}

    @property
    def listed(self) -> pa.Table:
        """A table with a column of lists."""
        seen = pa.array(self.y.tolist(), pa.list_(pa.float64()))
        return pa.table({"arm": self.arms, "reward": self.rewards, "observation": seen})

    def learned(self, learner: Any, **options: Any) -> kh.Bandit:
        """Return a bandit that has learned all rows, one by one."""
        bandit = kh.Bandit(learner, arms=ARMS, dim=self.y.shape[1], **options)
        for arm, y, reward in zip(self.arms, self.y, self.rewards.tolist(), strict=True):
            bandit.learn(kh.Decision(arm=arm, observation=y), reward)
        return bandit


def history(n: int = 600, dim: int = 4, seed: int = 1) -> History:
    """Return rows of three arms."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal((n, dim))
    arms = rng.choice(ARMS, n).tolist()
    return History(arms, y, y @ rng.standard_normal(dim) + 2.0 + rng.standard_normal(n))


def written(given: History, folder: Path, *, files: int = 3, group: int = 50) -> list[Path]:
    """Write a history to several files of several row groups, and return their paths."""
    table, paths = given.flat, []
    size = -(-len(table) // files)
    for k in range(files):
        path = folder / f"part-{k}.parquet"
        pq.write_table(table.slice(k * size, size), path, row_group_size=group)
        paths.append(path)
    return paths


def bits(bandit: kh.Bandit) -> tuple[bytes, ...]:
    """Return all that a bandit has learned, to the bit."""
    return tuple(array.tobytes() for array in bandit.posterior.state)


def assert_alike(found: kh.Bandit, wanted: kh.Bandit) -> None:
    """Compare two bandits that have learned the same rows in different orders.

    A sum of n products, each rounded, is within (n + 1) UNIT of the sum of their magnitudes in any
    order, so that two are within twice that. By Cauchy and Schwarz the magnitudes of an entry of B
    or b add up to at most the root of the product of two diagonal entries. A mean moves by
    P (db - dB mean), and solving for it adds d^2 roundings times the condition.
    """
    assert found.counts == wanted.counts
    ours, theirs = found.posterior, wanted.posterior
    ours.refresh()
    theirs.refresh()
    assert ours.weight.tolist() == theirs.weight.tolist()
    for i, (precision, squares) in enumerate(zip(theirs.precision, theirs.squares, strict=True)):
        rounding = 2.0 * (theirs.count[i] + 1.0) * UNIT
        size = np.sqrt(np.diag(precision))
        d_precision = rounding * np.outer(size, size)
        d_moment = rounding * size * np.sqrt(squares)
        assert (np.abs(ours.precision[i] - precision) <= d_precision).all()
        assert (np.abs(ours.moment[i] - theirs.moment[i]) <= d_moment).all()
        assert abs(ours.squares[i] - squares) <= rounding * squares
        mean, covariance = theirs.mean[i], np.abs(theirs.covariance[i])
        moved = covariance @ (d_moment + d_precision @ np.abs(mean))
        solving = len(mean) ** 2 * UNIT * np.linalg.cond(precision) * np.linalg.norm(mean)
        assert (np.abs(ours.mean[i] - mean) <= moved + solving).all()
