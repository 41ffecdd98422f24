"""Choices from records with names, for learners that have features.

A record becomes a row of numbers by the learner's encoder. One that brings in a new level of a
growing category first gets that level a column; what was learned is then the same in more columns.
A decision remembers the levels that were known when it was made, so that its reward can come later,
and in another process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from keyhole.core import Arm, Encoder, Floats, Layout, LearnerState, widened
from keyhole.errors import InvalidValue, shown
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions
from keyhole.online.rounds import Rounds

Among = Iterable[Arm] | None


class Named(Rounds):
    """Records in place of rows of numbers."""

    # -- choosing ---------------------------------------------------------------------------------

    def _numbers_of(self, y: Any, among: Among) -> tuple[Any, Among]:
        """Return what is seen as rows of numbers, and the names of the arms; learn new levels."""
        rows, names, encoder = self._encoded(y, among)
        if encoder is not None:
            self._know(encoder)
        return rows, names

    def _encoded(self, y: Any, among: Among) -> tuple[Any, Among, Encoder | None]:
        """Return rows of numbers, the names of the arms, and the encoder that knows all levels."""
        encoder = self._learned.encoder
        if encoder is None or self._is_columns(y):
            return y, tuple(among) if isinstance(among, Mapping) else among, None
        names, records = self._arm_records(among)
        if records is not None:
            rows, wider = encoder.encode(y, records)
        elif encoder.takes_rows and np.ndim(y) == 2:
            rows, wider = encoder.encode_frame(y)
        else:
            rows, wider = encoder.encode(y)
        return rows, names, wider

    def _encoded_many(self, y: Any, among: Among) -> tuple[Any, Among]:
        """Return many records, or a frame, as rows of numbers; learn new levels."""
        encoder = self._learned.encoder
        if encoder is None or self._is_columns(y):
            return y, among
        names, records = self._arm_records(among)
        if records is None:
            rows, wider = encoder.encode_frame(y)
        else:
            wider = encoder
            for each in y:
                wider = wider.encode(each, records)[1]
            rows = np.array([wider.encode(each, records)[0] for each in y])
        self._know(wider)
        return rows, names

    def _is_columns(self, y: object) -> bool:
        """Whether an observation is an array of columns, which need no encoding."""
        encoder = self._learned.encoder
        takes_rows = encoder is not None and encoder.takes_rows
        return isinstance(y, np.ndarray) and y.dtype.names is None and not takes_rows

    def _arm_records(self, among: Among) -> tuple[Among, Sequence[Any] | None]:
        """Return the names of the arms that are available, and a record of each, if needed."""
        has_arms = getattr(self._learner.features, "arms", None) is not None
        if not has_arms:
            if isinstance(among, Mapping):
                raise InvalidValue(
                    "among has records of arms, and the features have none: give "
                    "Features(..., arms=Features(...))"
                )
            return among, None
        if isinstance(among, Mapping):
            names = tuple(among)
            # All arms in their own order are the usual case, which compiled code serves.
            is_usual = names == self._learned.arms.names
            return (None if is_usual else names), list(among.values())
        known = self._learned.arm_records
        wanted = self._learned.arms.names if among is None else tuple(among)
        if missing := [name for name in wanted if name not in known]:
            raise InvalidValue(
                f"arm {missing[0]!r} has no record: give one in among={{name: record, ...}}, or "
                "in arms={name: record, ...} when the bandit is made"
            )
        if not wanted:
            raise InvalidValue("this bandit has no arms of its own: give among={name: record, ...}")
        return (None if among is None else wanted), [known[name] for name in wanted]

    # -- levels -----------------------------------------------------------------------------------

    def _know(self, encoder: Encoder) -> None:
        """Add columns for new levels, all at once."""
        if encoder is self._learned.encoder:
            return
        wider = self._learned.in_columns_of(encoder)
        self._plan(partial(self._become, wider))
        self._finish()

    def _become(self, learned: LearnerState) -> None:
        """Replace what was learned by the same in other columns."""
        self._drop_kept()
        self._learned = learned

    def _rows_of(self, decision: Decision) -> tuple[Floats, Floats]:
        """Return a decision's observation in today's columns: filled in, and with NaN."""
        y, raw = decision._observation, decision.raw
        encoder = self._learned.encoder
        grown = decision._grown
        if encoder is None or grown is None or grown == encoder.grown:
            return y, raw
        made = Encoder(encoder.features, grown)
        self._know(encoder.merged(made))
        assert self._learned.encoder is not None
        old, new = Layout.of(made), Layout.of(self._learned.encoder)
        if y.shape != (old.dim,):
            raise InvalidValue(
                f"this decision's observation has {y.size} numbers, and its levels make {old.dim}"
            )
        places, siblings = old.places_in(new), old.siblings_of(new)
        return widened(y, places, siblings), widened(raw, places, siblings)

    def _rows_of_all(self, decisions: Decisions | list[Decision]) -> tuple[Floats, Floats]:
        """Return the observations of many decisions in today's columns."""
        grown = self._learned.grown
        made = decisions._batch.grown if isinstance(decisions, Decisions) else None
        if grown is None or made == grown:
            return super()._rows_of_all(decisions)
        for each in decisions:
            self._rows_of(each)  # which may bring in new levels
        rows = [self._rows_of(each) for each in decisions]
        y, raw = (
            np.array(part).reshape(-1, self._observer.dim) for part in zip(*rows, strict=True)
        )
        return y, raw

    # -- arms -------------------------------------------------------------------------------------

    def _add_records(self, arms: object) -> None:
        """Keep the records of arms, if they come with any."""
        if not isinstance(arms, Mapping):
            return
        encoder = self._learned.encoder
        if encoder is None or getattr(self._learner.features, "arms", None) is None:
            raise InvalidValue(
                "arms have records, which need a learner with Features(..., arms=Features(...)), "
                f"got {shown(self._learner)}"
            )
        kept = {name: dict(record) for name, record in arms.items()}
        if kept:
            self._know(encoder.encode({}, list(kept.values()))[1])
        self._learned.arm_records = {**self._learned.arm_records, **kept}
