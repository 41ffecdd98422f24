"""Batches of a source as arrays: the group, the observation and the reward of each row."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from keyhole import checks
from keyhole.core import Arm, Arms, Floats, Ints, Learner
from keyhole.errors import InvalidValue, UnknownArm, shown
from keyhole.online.arrow import arrow
from keyhole.online.fitting.arrays import Bools, lengths_of, levels, numbers
from keyhole.online.fitting.columns import Columns

LEFT_OUT = -1
# Numbers between columns in memory: at distances of a power of two they compete for the cache.
APART = 72


class Rows(NamedTuple):
    """Rows of a batch, as the posterior learns them.

    Attributes
    ----------
    groups : ndarray of int of shape (n,)
        The parameter of each row, or its arm; `LEFT_OUT` for rows without a reward.
    observations : ndarray of shape (n, dim)
        The observations, NaN where an entry is missing.
    rewards : ndarray of shape (n,)
        The rewards.
    numbers : ndarray of int of shape (n,)
        Number of each row in its source.
    """

    groups: Ints
    observations: Floats
    rewards: Floats
    numbers: Ints


class Reader:
    """What makes arrays of the batches of one source.

    Parameters
    ----------
    name : str
        The source in messages.
    columns : Columns
        Its columns.
    learner : Learner
        How arms share parameters, and its features.
    arms : tuple of arms
        The names of the arms.
    dim : int
        Length of an observation.
    """

    def __init__(
        self, name: str, columns: Columns, learner: Learner, arms: tuple[Arm, ...], dim: int
    ) -> None:
        self.name, self.columns, self.dim = name, columns, dim
        self._arms = learner.arms(arms)
        # Observations of a log are encoded already.
        is_encoded = learner.features is None or isinstance(columns.observation, str)
        self._encoder: Any = None if is_encoded else learner.features.start()  # type: ignore[union-attr]
        # Memory that is touched for the first time takes longer than a copy of numbers into it.
        self._room = np.empty((dim, 0))
        self._place = {arm: k for k, arm in enumerate(self._arms.names)}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers of an observation."""
        seen = self.columns.observation
        if self._encoder is not None:
            return tuple(self._encoder.names)
        return tuple(f"{seen}[{k}]" for k in range(self.dim)) if isinstance(seen, str) else seen

    def rows(self, batch: Any, first: int) -> Rows:
        """Return the rows of a batch, valid until the next one is read.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            The batch.
        first : int
            Number of its first row in the source.

        Raises
        ------
        InvalidValue
            If a row with a reward cannot be used.
        """
        rewards, lacking = numbers(batch.column(self.columns.reward))
        used = np.ones(len(batch), bool) if lacking is None else ~lacking
        at = np.arange(first, first + len(batch))
        groups = self._groups(batch.column(self.columns.arm), used, first)
        seen, there = self._observations(batch, used, first)
        if there is None:
            return Rows(groups, seen, rewards, at)
        return Rows(groups[there], seen, rewards[there], at[there])

    # -- arms -------------------------------------------------------------------------------------

    def _groups(self, column: Any, used: Bools, first: int) -> Ints:
        """Return the group of each row, `LEFT_OUT` where there is no reward."""
        indices, names = levels(column)
        # One more for null, whose index is -1.
        known = np.array([*(self._place.get(name, -2) for name in names), -3], np.int64)
        if self._arms.is_open:
            known[:-1] = 0
        places: Ints = known[indices]
        wrong = used & (places < 0)
        if wrong.any():
            row = int(wrong.argmax())
            self._refuse_arm(first + row, None if places[row] == -3 else names[indices[row]])
        if self._arms.shared and not self._arms.is_hybrid:
            places = np.zeros(len(places), np.int64)
        return places if used.all() else np.where(used, places, LEFT_OUT)

    def _refuse_arm(self, row: int, name: Any) -> NoReturn:
        where = f"{self.columns.arm!r} in row {row} of {self.name}"
        if name is None:
            raise InvalidValue(f"{where} must be the name of an arm, got null")
        listed = ", ".join(map(repr, self._arms.names[:10]))
        more = ", ..." if len(self._arms.names) > 10 else ""
        raise UnknownArm(f"{where} must be one of the arms {listed}{more}, got {shown(name)}")

    # -- observations -----------------------------------------------------------------------------

    def _observations(self, batch: Any, used: Bools, first: int) -> tuple[Floats, Ints | None]:
        """Return observations, (m, dim), and the rows that they are of; None if they are of all."""
        if self._encoder is not None:
            return self._encoded(batch, used, first)
        if isinstance(self.columns.observation, str):
            column = batch.column(self.columns.observation)
            if hasattr(column, "flatten") and hasattr(column.type, "value_type"):
                return self._lists(column, used, first)
            return numbers(column)[0][:, None], None
        if self._room.shape[1] < len(batch) + APART:
            self._room = np.empty((self.dim, len(batch) + APART))
        seen = self._room[:, : len(batch)]
        for k, name in enumerate(self.columns.observation):
            seen[k] = numbers(batch.column(name))[0]
        return seen.T, None

    def _encoded(self, batch: Any, used: Bools, first: int) -> tuple[Floats, Ints | None]:
        """Return records as numbers."""
        fields = arrow().Table.from_batches([batch]).select(list(self.columns.observation))
        there = np.flatnonzero(used)
        fields = fields if used.all() else fields.take(there)
        try:
            rows: Floats = self._encoder.encode_frame(fields)[0]
        except InvalidValue:
            self._refuse_record(fields, first + there)
        return rows, None if used.all() else there

    def _refuse_record(self, fields: Any, numbers: Ints) -> NoReturn:
        """Raise for the first record that cannot be encoded, found by halving."""
        good, bad = 0, len(fields)  # so many records at the beginning can be, and cannot be
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                self._encoder.encode_frame(fields.slice(good, middle - good))
                good = middle
            except InvalidValue:
                bad = middle
        try:
            self._encoder.encode_frame(fields.slice(good, 1))
        except InvalidValue as reason:
            cause = str(reason).replace(" in row 0", "")
            raise InvalidValue(f"row {numbers[good]} of {self.name}: {cause}") from None
        raise AssertionError("records that cannot be encoded together can be one by one")

    def _lists(self, column: Any, used: Bools, first: int) -> tuple[Floats, Ints | None]:
        """Return lists of numbers as rows; they lie one after another in memory."""
        lengths = lengths_of(column)
        values = numbers(column.flatten())[0]  # without what null lists hide
        wrong = used & (lengths != self.dim)
        if wrong.any():
            row = int(wrong.argmax())
            length = int(lengths[row])
            raise InvalidValue(
                f"{self.columns.observation!r} in row {first + row} of {self.name} must be a list "
                f"of {self.dim} numbers, got {'null' if length < 0 else f'{length} of them'}"
            )
        # Rows without a reward may have lists, too, and of any length.
        filled = lengths == self.dim
        if len(values) != self.dim * np.count_nonzero(filled):
            values = values[np.repeat(filled, np.maximum(lengths, 0))]
        rows = values.reshape(-1, self.dim)
        return rows, None if filled.all() else np.flatnonzero(filled)


def n_groups(arms: Arms) -> int:
    """Return the number of groups that rows are added up in: a parameter's, or an arm's."""
    return 1 if arms.shared and not arms.is_hybrid else len(arms.names)


def check_usable(rows: Rows, reader: Reader) -> None:
    """Raise if a row with a reward has a number that is infinite, beyond `LARGEST`, or no number.

    Parameters
    ----------
    rows : Rows
        The rows, of which missing entries are already gone.
    reader : Reader
        What made them.
    """
    used = rows.groups >= 0
    wrong = used & ~(np.abs(rows.rewards) <= checks.LARGEST)
    if wrong.any():
        k = int(wrong.argmax())
        raise InvalidValue(unusable(reader.columns.reward, rows, k, reader, rows.rewards[k]))
    bad = used[:, None] & ~(np.abs(rows.observations) <= checks.LARGEST)
    if bad.any():
        k, j = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidValue(unusable(reader.names[j], rows, k, reader, rows.observations[k, j]))


def unusable(column: str, rows: Rows, k: int, reader: Reader, value: float) -> str:
    """Return the message of a number that cannot be used.

    Parameters
    ----------
    column : str
        Its column.
    rows : Rows
        The rows.
    k : int
        Index of its row among them.
    reader : Reader
        What made the rows.
    value : float
        The number.
    """
    text = (
        f"{column!r} in row {rows.numbers[k]} of {reader.name} must be a finite number of at most "
        f"{checks.LARGEST:g}, got {value}"
    )
    if value == value or column == reader.columns.reward:
        return text
    return f"{text}; a learner with missing='zero' or missing='drop' takes missing numbers"
