"""`OpenBandit`: the tables of the Open Bandit data set."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from keyhole import checks
from keyhole.errors import InvalidValue, UnknownArm
from keyhole.evaluation.formats.arrow import Table, arrow, table_of
from keyhole.evaluation.formats.format import Columns, Format, Head, Progress, require_rewards
from keyhole.files import Path, replacing

NEEDED = ("timestamp", "item_id", "position", "click", "propensity_score")
AFFINITY = "user-item_affinity_"
# Rows that are written at a time.
GROUP = 10_000


@dataclass(frozen=True, kw_only=True)
class OpenBandit(Format):
    """Tables of Open Bandit: timestamp, item_id, position, click, propensity_score and features.

    A row is a round: an item that was shown at one of three positions, with the probability of
    that item at that position. The position is no part of the arm. Values are clicks in a row, over
    the positions that the rows have; `position` takes the rows of one. Rounds are sorted by time.

    Arms are the numbers of the items, from 0. The affinities of the user with each item become the
    observation, one number for each arm. User features are texts without an order and are not read.

    Written are items by the places of their arms, positions of 1, and times that count the rows.
    Observations of another form are not written.

    Parameters
    ----------
    position : int, optional
        The position whose rows are read, from 1. By default all rows are.
    n_items : int, optional
        Number of items. By default that of the affinities, or else the largest number plus one.
    """

    name: ClassVar[str] = "open-bandit"
    position: int | None = None
    n_items: int | None = None

    def __post_init__(self) -> None:
        for name in ("position", "n_items"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.integer(name, getattr(self, name)))

    def mismatch(self, head: Head) -> str | None:
        """Return why a file is not, for certain, such a table; None if it is."""
        names = head.line.decode("utf-8", "replace").replace('"', "").split(",")
        lost = [name for name in NEEDED if name not in names]
        return f"its first line has no column {lost[0]!r}" if lost else None

    def _read(self, source: Any, progress: Progress | None) -> dict[str, Any]:
        table = table_of(source, progress)
        item, position = table.wholes("item_id"), table.wholes("position")
        click, p = table.numbers("click"), table.numbers("propensity_score")
        table.wrong("propensity_score", "above 0 and at most 1", p, ~(p > 0.0) | ~(p <= 1.0))
        table.wrong("click", "a number", click, ~np.isfinite(click))
        table.wrong("position", "at least 1", position, position < 1)
        affinity = _affinity(table)
        k = self.n_items or (int(item.max()) + 1 if affinity is None else affinity.shape[1])
        unknown = (item < 0) | (item >= k)
        if unknown.any():
            row = int(unknown.argmax())
            raise UnknownArm(
                f"{table.origin}: column 'item_id', row {row:,} must be from 0 to {k - 1}, got "
                f"{item[row]}"
            )
        order = _order(table)
        if self.position is not None:
            order = order[position[order] == self.position]
            if not len(order):
                raise table.error(
                    f"column 'position' must be {self.position} in some row, got none"
                )
        columns = {
            "arms": range(k),
            "chosen": item[order],
            "probability": p[order],
            "reward": click[order],
        }
        if affinity is not None and affinity.shape[1] == k:
            columns["observation"] = affinity[order][:, :, None]
        return columns

    def _write(self, log: Columns, path: Path) -> None:
        require_rewards(log, "Open Bandit")
        if not log.candidates.all():
            t = int((~log.candidates.all(axis=1)).argmax())
            raise InvalidValue(
                f"candidates[{t}] must be all arms for Open Bandit, got "
                f"{int(log.candidates[t].sum())} of {log.n_arms}"
            )
        y = log.observation
        affinity = y[:, :, 0] if y is not None and y.shape[1:] == (log.n_arms, 1) else None
        names = [f"{AFFINITY}{i}" for i in range(0 if affinity is None else log.n_arms)]
        with replacing(path) as file:
            file.write((",".join(["", *NEEDED, *names]) + "\n").encode())
            for start in range(0, log.n_rounds, GROUP):
                rows = range(start, min(start + GROUP, log.n_rounds))
                file.write("".join(_row(log, affinity, t) for t in rows).encode())


def _row(log: Columns, affinity: Any, t: int) -> str:
    click, p = float(log.reward[t]), float(log.probability[t])
    seen = [] if affinity is None else [repr(one) for one in affinity[t].tolist()]
    # obp sorts by time. Microseconds since 1970 keep the order of rows.
    time = np.datetime64(t, "us").astype(str).replace("T", " ") + "+00:00"
    shown = repr(int(click)) if click.is_integer() else repr(click)
    return ",".join([str(t), time, str(int(log.chosen[t])), "1", shown, repr(p), *seen]) + "\n"


def _affinity(table: Table) -> Any:
    """Return the affinities with the items 0, 1, ..., (n, K), or None if there are none."""
    found = [name for name in table.data.column_names if re.fullmatch(AFFINITY + r"\d+", name)]
    if not found:
        return None
    names = [f"{AFFINITY}{i}" for i in range(len(found))]
    for name in names:
        if name not in found:
            raise table.error(f"there must be a column {name!r} beside {found[-1]!r}")
    values = [table.numbers(name) for name in names]
    for name, one in zip(names, values, strict=True):
        table.wrong(name, "a number", one, ~np.isfinite(one))
    return np.column_stack(values)


def _order(table: Table) -> Any:
    """Return rows in the order of their times; rows of the same time keep theirs."""
    times = table.column("timestamp")
    if times.null_count:
        row = int(np.argmax(times.is_null().to_numpy(zero_copy_only=False)))
        raise table.error(f"column 'timestamp', row {row:,} must be a time, got null")
    order = arrow("compute").sort_indices(times).to_numpy()
    return order.astype(np.int64)
