"""The index of a loop, made again from the rows of its log by code that shares nothing with it.

Rows are read as JSON, so that a mistake of the schema's classes is not made twice.
"""

import json
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import fmean
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

DEFERRED, OPEN, ENDED, FORGOTTEN = range(4)

AGGREGATES: dict[str, Any] = {
    "sum": lambda values: float(sum(map(Fraction, values))),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "mean": fmean,
    "max": max,
    "min": min,
}


@dataclass
class Known:
    """An event, as the rows tell of it."""

    seq: int
    request: bytes
    state: int
    due: float | None
    learns: bool
    row: dict[str, Any]
    learned: float | None = None
    # Value, row, and whether it counts, by id.
    rewards: dict[str, tuple[float, int, int]] = field(default_factory=dict)

    def as_columns(self) -> tuple[Any, ...]:
        return (
            *(self.seq, self.request, self.state, self.due, self.learned, int(self.learns)),
            self.arm,
        )

    def total(self, reward: dict[str, Any]) -> float | None:
        values = [value for value, _, counts in self.rewards.values() if counts]
        total = AGGREGATES[reward["aggregate"]](values) if values else reward["default"]
        return None if total is None else float(total)

    @property
    def arm(self) -> Any:
        """The arm that its reward is of."""
        served = self.row.get("served")
        return self.row["arm"] if served is None else served


def learning_of(settings: dict[str, Any]) -> str:
    reward = settings["reward"]
    return str(reward["learn"] or ("at_once" if reward["default"] is None else "at_end"))


class Rebuilt:
    """What the rows of a loop come to.

    Parameters
    ----------
    listed : list of tuple
        The columns (seq, at, kind, event, body) of the log, in order.
    """

    def __init__(self, listed: list[tuple[int, float, str, str | None, bytes]]) -> None:
        self.events: dict[str, Known] = {}
        self.settings: dict[str, Any] = {}
        self.all_settings: list[dict[str, Any]] = []
        self.added_arms: list[str] = []
        for expected, (seq, at, kind, event, body) in enumerate(listed, start=1):
            row = json.loads(body)
            assert seq == expected, f"row {expected} is missing before row {seq}"
            assert (row["seq"], row["at"], row["kind"]) == (seq, at, kind), row
            assert row.get("event") == event, row
            take = getattr(self, f"_{kind}", None)
            if take is not None:
                take(row)

    def _settings(self, row: dict[str, Any]) -> None:
        self.settings = row["settings"]
        self.all_settings.append(row["settings"])

    def _start(self, row: dict[str, Any]) -> None:
        self.added_arms += row["arms"]

    def _arms(self, row: dict[str, Any]) -> None:
        self.added_arms += [name for name, _ in row.get("added", [])]
        is_shared = self.settings and self.settings["policy"].get("sharing", "per-arm") != "per-arm"
        for known in self.learned.values():
            if known.arm in row.get("removed", []) and not is_shared:
                known.learned = None

    def _new(self, row: dict[str, Any], known: Known) -> None:
        assert row["event"] not in self.events, f"{row['event']} was decided twice"
        self.events[row["event"]] = known

    def _decision(self, row: dict[str, Any]) -> None:
        deferred = row.get("deferred", False)
        state, request = DEFERRED if deferred else OPEN, bytes.fromhex(row["request"])
        self._new(row, Known(row["seq"], request, state, row.get("due"), True, row))

    def _served(self, row: dict[str, Any]) -> None:
        request = bytes.fromhex(row["request"])
        self._new(row, Known(row["seq"], request, OPEN, None, False, row))

    def _event(self, row: dict[str, Any]) -> Known:
        known = self.events[row["event"]]
        assert known.state != FORGOTTEN, f"row {row['seq']} is of a forgotten event"
        return known

    def _came(
        self, known: Known, name: str | None, value: float | None, seq: int, *, counts: bool = True
    ) -> None:
        if name is not None and value is not None:
            assert name not in known.rewards, f"the reward {name!r} came twice: row {seq}"
            known.rewards[name] = (value, seq, int(counts))

    def _reward(self, row: dict[str, Any]) -> None:
        known = self._event(row)
        assert known.learned is None, f"row {row['seq']} learns a second time"
        assert known.learns, f"row {row['seq']} learns an event that is not learned"
        self._came(known, row.get("id"), row.get("outcome"), row["seq"])
        known.learned = row["value"]
        assert row["value"] == known.total(self.settings["reward"])
        if row.get("ends", False):
            known.state, known.due = ENDED, None

    def _amend(self, row: dict[str, Any]) -> None:
        known = self._event(row)
        assert known.learned is not None
        self._came(known, row.get("id"), row.get("outcome"), row["seq"])
        known.learned = row["value"]
        assert row["value"] == known.total(self.settings["reward"])

    def _outcome(self, row: dict[str, Any]) -> None:
        known, counts = self._event(row), row.get("counts", True)
        self._came(known, row["id"], row["value"], row["seq"], counts=counts)

    def _activate(self, row: dict[str, Any]) -> None:
        known = self._event(row)
        known.state, known.due = OPEN, row.get("due")

    def _due(self, row: dict[str, Any]) -> None:
        known = self._event(row)
        known.state, known.due = ENDED, None

    def _forget(self, row: dict[str, Any]) -> None:
        known = self._event(row)
        known.state, known.due, known.learned = FORGOTTEN, None, None

    @property
    def learned(self) -> dict[str, Known]:
        """The events that the sums have."""
        return {name: one for name, one in self.events.items() if one.learned is not None}

    def sums(self, arms: list[str], dim: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return sum of y y', sum of r y and n of each arm, for rows that are learned as they are.

        Parameters
        ----------
        arms : list of str
            The arms.
        dim : int
            The number of columns.
        """
        matrix = np.zeros((len(arms), dim, dim))
        moment, n = np.zeros((len(arms), dim)), np.zeros(len(arms))
        for known in self.learned.values():
            i, y = arms.index(known.arm), np.array(known.row["y"][0], dtype=float)
            assert known.learned is not None
            matrix[i] += np.outer(y, y)
            moment[i] += known.learned * y
            n[i] += 1.0
        return matrix, moment, n


def tables_of(database: apsw.Connection, loop: int) -> tuple[dict[str, Any], dict[Any, Any]]:
    """Return the tables of events and of rewards of a loop, by their keys.

    Parameters
    ----------
    database : Connection
        The database.
    loop : int
        The number of the loop.
    """
    events = database.execute(
        "SELECT event, seq, request, state, due, learned, learns, arm FROM event WHERE loop = ?",
        (loop,),
    )
    rewards = database.execute(
        "SELECT event, reward_id, value, seq, counts FROM reward WHERE loop = ?", (loop,)
    )
    return (
        {name: tuple(rest) for name, *rest in events},
        {(event, name): tuple(rest) for event, name, *rest in rewards},
    )
