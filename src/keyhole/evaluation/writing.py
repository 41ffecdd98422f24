"""Logs in the formats of others."""

from __future__ import annotations

from typing import Any

from keyhole.evaluation.formats import Format, format_of, to_dict, to_table
from keyhole.evaluation.logged import Logged
from keyhole.files import Path


def write_log(log: object, path: Path, format: str | Format) -> int:  # noqa: A002
    """Write a log in the format of another library.

    Parameters
    ----------
    log : Logged, Log, path, mapping or frame
        The log, as in `Logged.of`.
    path : path-like
        The file, which is replaced in one step.
    format : str or Format
        "dsjson", "cb", "open-bandit" or "frame" (Parquet, or Arrow for a name that ends in .arrow).

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    InvalidValue
        If the log has what the format has no place for, or lacks what it needs. Nothing is written.

    Examples
    --------
    >>> import os, tempfile
    >>> import keyhole as kh
    >>> path = os.path.join(tempfile.mkdtemp(), "log.dsjson")
    >>> log = dict(arms=["A", "B"], chosen=[0], probability=[0.8], reward=[1.0],
    ...            probabilities=[[0.8, 0.2]])
    >>> kh.evaluation.write_log(log, path, "dsjson")
    1
    >>> kh.evaluation.Logged.of(path).arms
    ('A', 'B')
    """
    return format_of(format).write(Logged.of(log), path)


def to_obp(log: object) -> dict[str, Any]:
    """Return a log as the dictionary `bandit_feedback` of obp.

    Actions are the places of the arms. `pi_b` is there if the probability of every arm is known,
    and `context` if all arms have one observation.

    Parameters
    ----------
    log : Logged, Log, path, mapping or frame
        The log, as in `Logged.of`, with all its rewards.
    """
    return to_dict(Logged.of(log))


def to_arrow(log: object) -> Any:
    """Return a log as a pyarrow table, from which pandas and polars make frames.

    Nothing is lost: `Logged.of(table)` gives the same log.

    Parameters
    ----------
    log : Logged, Log, path, mapping or frame
        The log, as in `Logged.of`.
    """
    return to_table(Logged.of(log))
