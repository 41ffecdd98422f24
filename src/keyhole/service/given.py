"""Checks of what the row of a decision repeats of its request: candidates, and rows of y.

A draw is made again from the observation and the candidates of its row. Here both are compared with
each other, with the arms of the loop, and with its settings.
"""

from __future__ import annotations

from keyhole.core import Features
from keyhole.errors import FileError, shown
from keyhole.online import LoggedBandit, rows
from keyhole.service.settings import LoopSettings


def check(row: rows.Decision | rows.Served, bandit: LoggedBandit, settings: LoopSettings) -> None:
    """Raise `FileError` unless a request could have had the candidates and the shape of a row.

    Parameters
    ----------
    row : Decision or Served
        The row.
    bandit : LoggedBandit
        The bandit of the loop at this row.
    settings : LoopSettings
        The settings of the loop at this row.
    """
    names = row.arms or []
    _check(row, names and len(set(names)) == len(names), f"its arms are {shown(names)}")
    _check(row, row.taken in names, f"its arm {shown(row.taken)} is none of {shown(names)}")
    features = bandit.learner.features
    has_records = isinstance(features, Features) and features.arms is not None
    if isinstance(row, rows.Decision):
        n_rows = len(names) if has_records else 1
        _check(row, len(row.y) == n_rows, f"its y has {len(row.y)} rows in place of {n_rows}")
        place = None if n_rows == 1 else names.index(row.arm)
        _check(row, row.place == place, f"its place is {row.place} in place of {place}")
    elif not settings.add_arms:
        unknown = [name for name in names if not bandit.has_arm(name)]
        _check(row, not unknown, f"the loop has no arms {shown(unknown)}")


def _check(row: rows.AnyRow, is_right: object, reason: str) -> None:
    if not is_right:
        raise FileError(f"row {row.seq} does not follow from those before it: {reason}")
