"""The sums of one part of the rows, which any process can compute by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from keyhole import checks
from keyhole.core import Arm, Learner, Observer, RowSums, Summing
from keyhole.errors import InvalidValue
from keyhole.online.arrow import arrow
from keyhole.online.fitting.columns import Columns
from keyhole.online.fitting.parts import Part, batches, schema_of
from keyhole.online.fitting.reading import LEFT_OUT, Reader, Rows, check_usable, n_groups, unusable


class Job(NamedTuple):
    """Rows to add up, and how.

    Attributes
    ----------
    part : Part
        The rows.
    columns : Columns
        Their columns.
    learner : Learner
        What is done to observations.
    arms : tuple of arms
        The names of the arms.
    dim : int
        Length of an observation.
    zero : float, default 0.0
        The number that is subtracted from rewards.
    """

    part: Part
    columns: Columns
    learner: Learner
    arms: tuple[Arm, ...]
    dim: int
    zero: float = 0.0


def check_summable(learner: Learner) -> None:
    """Raise unless what a learner learns is a sum over rows, whatever their order."""
    reason = ""
    if learner.standardize:
        reason = (
            "standardize=True: units follow from the first rows, and values beyond a limit are "
            "moved to it. Give standardize=False, and numbers in units of your own"
        )
    elif learner.missing in ("predict", "mean"):
        reason = (
            f"missing={learner.missing!r}: predictions follow from the rows before. Give "
            "missing='zero' or 'drop', or fill in missing entries beforehand"
        )
    elif learner.policy.plain_rule().weighted:
        reason = "a policy that weighs rewards: weights follow from the number of rewards before"
    elif learner.features is not None:
        encoder = learner.features.start()
        if encoder.takes_rows:
            reason = "a Transformed: transform the table beforehand"
        elif encoder.can_grow:
            reason = "categories that grow: list their levels"
    if reason:
        raise InvalidValue(
            f"only sums can be fitted from files, and {learner!r} has {reason}. Or learn the rows "
            "one by one"
        )


def summed(job: Job) -> RowSums:
    """Return the sums of a part.

    Raises
    ------
    InvalidValue
        If a row cannot be used; the message names the source, the row and the column.
    FileError
        If the file is damaged.
    """
    state = job.learner.start(job.arms[:1], job.dim)
    reader = _reader(job)
    summing = Summing(n_groups(job.learner.arms(job.arms)), state.observer.n_columns)
    for rows in _rows(job, reader):
        _add(rows, reader, state.observer, job.zero, summing)
    # NaN, infinity and squares beyond the limit show in the sums: numbers are looked at if they do.
    sizes = summing.squares.diagonal(axis1=1, axis2=2)
    if not (sizes <= checks.LARGEST**2).all():
        for rows in _rows(job, reader):
            check_usable(_without_missing(rows, reader, state.observer)[0], reader)
    return summing.result()


def rewards_of(job: Job) -> Iterator[float]:
    """Yield the rewards of a part, in order, of the rows that are learned."""
    reader, observer = _reader(job), job.learner.start(job.arms[:1], job.dim).observer
    for rows in _rows(job, reader):
        kept = _without_missing(rows, reader, observer)[0]
        yield from kept.rewards[kept.groups >= 0].tolist()


def _reader(job: Job) -> Reader:
    return Reader(job.part.source.name, job.columns, job.learner, job.arms, job.dim)


def _rows(job: Job, reader: Reader) -> Iterator[Rows]:
    types = arrow().types
    kind = schema_of(job.part.source).field(job.columns.arm).type
    others = (types.is_integer, types.is_dictionary, types.is_null)
    texts = () if any(test(kind) for test in others) else (job.columns.arm,)
    for first, batch in batches(job.part, job.columns.names, texts):
        yield reader.rows(batch, first)


def _add(rows: Rows, reader: Reader, observer: Observer, zero: float, summing: Summing) -> None:
    rows, n_dropped = _without_missing(rows, reader, observer)
    design = rows.observations
    if not observer.is_plain:
        design = observer.design(np.ascontiguousarray(design))
    summing.add(rows.groups, design, rows.rewards - zero if zero else rows.rewards)
    summing.n_dropped += n_dropped


def _without_missing(rows: Rows, reader: Reader, observer: Observer) -> tuple[Rows, int]:
    """Return rows as a learner takes them that has something to do, and how many are left out."""
    if observer.is_plain:
        return rows, 0
    lacking = np.isnan(rows.observations) & (rows.groups >= 0)[:, None]
    if not lacking.any():
        return rows, 0
    if observer.missing is None:
        k, j = (int(i) for i in np.argwhere(lacking)[0])
        raise InvalidValue(unusable(reader.names[j], rows, k, reader, float("nan")))
    filled = np.where(np.isnan(rows.observations), 0.0, rows.observations)
    if observer.missing == "zero":
        return rows._replace(observations=filled), 0
    dropped = lacking.any(axis=1)
    groups = np.where(dropped, LEFT_OUT, rows.groups)
    return rows._replace(groups=groups, observations=filled), int(dropped.sum())
