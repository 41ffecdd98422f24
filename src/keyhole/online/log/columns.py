"""The decisions of a log as columns, for evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from keyhole.core import Arm
from keyhole.errors import FileError, InvalidValue
from keyhole.online.log import rows
from keyhole.online.log.log import Log


def columns(log: Log) -> dict[str, Any]:
    """Return the decisions of a log, one entry for each, in the order in which they were made.

    `keyhole.evaluation.Logged` says what each column is. A decision whose reward has not come has
    the reward NaN; of several rewards of one decision the sum counts. Left out are decisions that
    were forgotten, that were made elsewhere, and in whose place another arm was taken: the last two
    have no probability. Observations are there where the posterior saw them as they came.

    Parameters
    ----------
    log : Log
        The log.

    Raises
    ------
    InvalidValue
        If decisions have no probability, or arms were chosen by one joint sample.
    """
    start: rows.Start | None = None
    names: list[Arm] = []  # of all arms, in the order in which they came
    arms: list[Arm] = []  # those that there are
    made: list[tuple[rows.Decision, list[Arm]]] = []
    places: dict[str, int] = {}
    rewards: dict[int, float] = {}
    gone: set[int] = set()  # places that are left out
    for row in log:
        if isinstance(row, rows.Start):
            start, arms = row, list(row.arms)
        elif isinstance(row, rows.Arms):
            arms = row.applied_to(arms)
        elif isinstance(row, rows.Decision):
            places[row.event] = len(made)
            made.append((row, arms if row.arms is None else row.arms))
            if row.probability is None:
                raise InvalidValue(
                    f"row {row.seq} of {log.path} has no probability: an evaluation needs "
                    "Bandit(..., probabilities=True)"
                )
        elif isinstance(row, rows.Given) and row.event in places:
            # Another arm was taken in place of the chosen one: its probability is not known.
            gone.add(places.pop(row.event))
        elif isinstance(row, rows.Reward) and row.event in places:
            place = places[row.event]
            rewards[place] = rewards.get(place, 0.0) + row.value
        elif isinstance(row, rows.Amend) and row.event in places:
            rewards[places[row.event]] = row.value
        elif isinstance(row, rows.Forget) and row.event in places:
            gone.add(places.pop(row.event))
        names += [arm for arm in arms if arm not in names] if len(arms) > len(names) else []
    if start is None:
        raise FileError(f"{log.path} has no rows")
    kept = [t for t in range(len(made)) if t not in gone]
    made, values = [made[t] for t in kept], [rewards.get(t, np.nan) for t in kept]
    names = list(dict.fromkeys([*names, *(arm for _, each in made for arm in each)]))
    place_of = {arm: k for k, arm in enumerate(names)}
    n, k = len(made), len(names)
    parts = {name: np.full((n, k), np.nan) for name in ("mean", "width")}
    explored = {name: np.zeros((n, k)) for name in ("optimism", "dispersion")}
    for t, (row, candidates) in enumerate(made):
        where = [place_of[arm] for arm in candidates]
        for name, table in (parts | explored).items():
            table[t, where] = getattr(row, name)
    return {
        "arms": names,
        "chosen": np.array([place_of[row.arm] for row, _ in made], dtype=np.int64),
        "probability": np.array([row.probability for row, _ in made], dtype=np.float64),
        "reward": np.array(values, dtype=np.float64),
        **parts,
        **explored,
        "epsilon": np.array([row.epsilon for row, _ in made]),
        "observation": _observations(made, k, place_of),
        "sharing": start.sharing,
        "prior_precision": start.prior_precision,
    }


def _observations(
    made: list[tuple[rows.Decision, list[Arm]]], n_arms: int, place_of: dict[Arm, int]
) -> Any:
    """Return what the posterior saw, (n, d) or (n, n_arms, d); None if units or columns changed."""
    if not made or any(row.x is not None or row.filled is not None for row, _ in made):
        return None
    if len({len(row.y[0]) for row, _ in made}) > 1:
        return None
    if all(len(row.y) == 1 for row, _ in made):
        return np.array([row.y[0] for row, _ in made], dtype=np.float64)
    table = np.full((len(made), n_arms, len(made[0][0].y[0])), np.nan)
    for t, (row, candidates) in enumerate(made):
        table[t, [place_of[arm] for arm in candidates]] = row.y
    return table
