"""The worth of each row of the sensing matrix, for the design of sensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keyhole.core import Policy
from keyhole.errors import InvalidValue
from keyhole.theory.asymptotics.asymptotes import asymptote


@dataclass(frozen=True)
class Change:
    """The effect of a change of the sensor.

    Parameters
    ----------
    constant : float
        c after the change.
    value : float
        The change of the best observer's expected reward per round.
    total : float
        The change of the policy's expected reward over the horizon: that of `value` times the
        horizon, less that of the regret.
    """

    constant: float
    value: float
    total: float


@dataclass(frozen=True)
class SensorRow:
    """The worth of one row of the sensing matrix to a policy.

    Parameters
    ----------
    row : int
        The index of the row, from 0.
    without : Change
        The row is left out.
    halved : Change
        The standard deviation of its noise is halved.
    """

    row: int
    without: Change
    halved: Change


def sensor_rows(world: Any, policy: Policy, *, horizon: int = 10_000) -> tuple[SensorRow, ...]:
    """Return the worth of each row of the sensing matrix, the most valuable first.

    Regret is against the best observer with the same sensor. A row less often lowers c, since
    there is less to learn, and yet costs reward in every round. `Change.total` has both.

    Parameters
    ----------
    world : LinearWorld
        A normal world with at least two rows of its sensing matrix.
    policy : ThompsonSampling or Greedy
        The policy.
    horizon : int, default 10,000
        The number of rounds.

    Raises
    ------
    InvalidValue
        If there is no asymptote of the policy, or no curve of its regret, in this world or in one
        without a row or with half the noise of it.
    """
    before = _result(world, policy, horizon)
    if (dim := len(world.sensing)) < 2:
        raise InvalidValue("sensor_rows needs a sensing matrix of at least 2 rows, got 1")
    rows = []
    for row in range(dim):
        kept, factors = np.arange(dim) != row, np.where(np.arange(dim) == row, 0.5, 1.0)
        fewer = replace(
            world,
            sensing=world.sensing[kept],
            sensing_covariance=world.sensing_covariance[np.ix_(kept, kept)],
        )
        sharper = replace(
            world, sensing_covariance=world.sensing_covariance * np.outer(factors, factors)
        )
        changes = (
            _change(before, _result(one, policy, horizon), horizon) for one in (fewer, sharper)
        )
        rows.append(SensorRow(row, *changes))
    return tuple(sorted(rows, key=lambda one: one.without.total))


def _result(world: Any, policy: Policy, horizon: int) -> tuple[float, float, float]:
    """Return the constant, the best observer's value, and the regret at the horizon."""
    found = asymptote(world, policy, horizon=horizon)
    return found.constant, float(world.best_value[0]), float(found.regret(horizon))


def _change(
    before: tuple[float, float, float], after: tuple[float, float, float], horizon: int
) -> Change:
    value = after[1] - before[1]
    return Change(after[0], value, horizon * value - (after[2] - before[2]))
