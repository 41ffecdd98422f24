"""Choices from records with names, for learners that have features.

A record becomes a row of numbers by the learner's encoder. One with a new level of a growing
category first adds a column for that level; the state is then the same in more columns. A decision
remembers the levels that were known when it was made, so that its reward can come later, and in
another process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.core import Arm, Encoder, Floats, Layout, LearnerState, arm_name, widened
from keyhole.errors import InvalidValue, shown
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions
from keyhole.online.rounds import Rounds

Among = Iterable[Arm] | None


class Named(Rounds):
    """Records in place of rows of numbers."""

    # -- choosing ---------------------------------------------------------------------------------

    def _numbers_of(self, y: Any, among: Among) -> tuple[Any, Among]:
        """Return an observation as rows of numbers, and the names of the arms; learn new levels."""
        rows, names, encoder = self._encoded(y, among)
        if encoder is not None:
            self._know(encoder, rows, names)
        return rows, names

    def _encoded(
        self, y: Any, among: Among, encoder: Encoder | None = None
    ) -> tuple[Any, Among, Encoder | None]:
        """Return rows of numbers, the names of the arms, and the encoder that knows all levels.

        Parameters
        ----------
        y : array_like or record
            The observation.
        among : iterable of names, or dict of names and records, optional
            The arms that are available.
        encoder : Encoder, optional
            One that has more levels than this bandit knows.
        """
        encoder = encoder or self._learned.encoder
        if encoder is None or self._is_columns(y):
            self._check_columns(y)
            return y, _names_alone(among), None
        names, records = self._arm_records(among)
        if records is not None:
            rows, wider = encoder.encode(y, records)
        elif encoder.takes_rows and _has_rows(y):
            rows, wider = encoder.encode_frame(y)
        else:
            rows, wider = encoder.encode(y)
        return rows, names, wider

    def _encoded_many(self, y: Any, among: Among) -> tuple[Any, Among]:
        """Return many records, or a frame, as rows of numbers; learn new levels."""
        encoder = self._learned.encoder
        if encoder is None or self._is_columns(y):
            self._check_columns(y)
            return y, _names_alone(among)
        names, records = self._arm_records(among)
        if records is None:
            rows, wider = encoder.encode_frame(y)
        else:
            rows, wider = encoder.encode_rounds(y, records)
        self._know(wider, rows, names)
        return rows, names

    def _is_columns(self, y: object) -> bool:
        """Tell whether an observation is an array or list of columns, which need no encoding."""
        encoder = self._learned.encoder
        if encoder is not None and encoder.takes_rows:
            return False
        if type(y) is list:  # as compiled code takes them
            return bool(y) and all(type(number) is float for number in y)
        return isinstance(y, np.ndarray) and y.dtype.names is None

    def _is_array(self, y: object) -> bool:
        """Tell whether an observation is an array of checked columns, and no record."""
        if type(y) is not np.ndarray:
            return False
        self._check_columns(y)
        return True

    def _check_columns(self, y: Any, encoder: Encoder | None = None) -> None:
        """Raise if numbers are given in place of a record and no record has such columns.

        Parameters
        ----------
        y : array_like
            The numbers.
        encoder : Encoder, optional
            One that has more levels than this bandit knows.
        """
        encoder = encoder or self._learned.encoder
        if encoder is None or encoder.takes_rows:
            return
        rows = y if type(y) is np.ndarray else np.asarray(y)
        # Other shapes and types are refused where they are read.
        if rows.shape[-1:] == (encoder.dim,) and rows.dtype.kind in "iuf":
            encoder.check_columns(rows)

    def _arm_records(self, among: Among) -> tuple[Among, Sequence[Any] | None]:
        """Return the names of the arms that are available, and a record of each, if needed."""
        if among is not None and not isinstance(among, Mapping | tuple):
            among = self._learned.arms.among(among).names  # an iterator serves once
        if not self._has_arm_features:
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
        wanted = self._learned.arms.names if among is None else among
        if not wanted:
            raise InvalidValue("this bandit has no arms of its own: give among={name: record, ...}")
        for name in self._learned.arms.among(wanted).names:
            if name not in known:
                raise InvalidValue(
                    f"arm {name!r} has no record: give one in among={{name: record, ...}}, or "
                    "in arms={name: record, ...} when the bandit is made"
                )
        return among, [known[name] for name in wanted]

    @property
    def _has_arm_features(self) -> bool:
        return getattr(self._learner.features, "arms", None) is not None

    # -- levels -----------------------------------------------------------------------------------

    def _know(self, encoder: Encoder, rows: Any = None, names: Among = None) -> None:
        """Add columns for new levels, all at once, unless the call that has them is refused.

        Parameters
        ----------
        encoder : Encoder
            The encoder that has these levels.
        rows : array_like, optional
            The observation, in its columns.
        names : iterable of arms, optional
            The arms that are available.
        """
        if encoder is self._learned.encoder:
            return
        wider = self._learned.in_columns_of(encoder)
        if rows is not None:
            wider.observer.numbers(rows)
        if names is not None:
            wider.arms.among(names)
        known = self._learned.encoder
        full = sorted(encoder.full.difference(() if known is None else known.full))
        self._plan(partial(self._become, wider, encoder, full))
        self._finish()

    def _become(self, learned: LearnerState, encoder: Encoder, full: list[str]) -> None:
        """Replace the state by the same state in other columns.

        Parameters
        ----------
        learned : LearnerState
            The state in these columns.
        encoder : Encoder
            Their encoder.
        full : list of str
            Growing categories that were shown a level beyond the limit for the first time.
        """
        self._drop_kept()
        self._learned = learned
        learned.encoder = encoder
        for field in full:
            message = (
                f"{encoder.limit(field)}; further ones count as missing from now on. Hash a "
                "category of this many levels"
            )
            if message not in learned.observer.messages:  # this may be done twice
                learned.observer.messages.append(message)

    def _rows_of(self, decision: Decision) -> tuple[Floats, Floats]:
        """Return a decision's observation in today's columns: filled in, and with NaN."""
        encoder = self._encoder_of([decision])
        y, raw = self._in_columns(decision, encoder)
        self._check_columns(raw, encoder)
        if encoder is not None:
            self._know(encoder)
        return y, raw

    def _rows_of_all(self, decisions: Decisions | list[Decision]) -> tuple[Floats, Floats]:
        """Return the observations of many decisions in today's columns."""
        made = decisions._batch.grown if isinstance(decisions, Decisions) else None
        encoder = None
        if self._learned.grown is not None and made != self._learned.grown:
            encoder = self._encoder_of(decisions)
        if encoder is None:
            y, raw = super()._rows_of_all(decisions)
            self._check_columns(raw)
            return y, raw
        pairs = [self._in_columns(each, encoder) for each in decisions]
        y, raw = np.array(pairs).reshape(-1, 2, encoder.dim).transpose(1, 0, 2)
        self._check_columns(raw, encoder)
        self._know(encoder)
        return y, raw

    def _encoder_of(self, decisions: Iterable[Decision]) -> Encoder | None:
        """Return an encoder that has the levels of these decisions, too; None if none can grow."""
        encoder = self._learned.encoder
        if encoder is None or not encoder.can_grow:
            return None
        for grown in dict.fromkeys(each._grown for each in decisions):
            if grown is not None and grown != encoder.grown:
                encoder = encoder.with_levels(grown)
        return encoder

    def _in_columns(self, decision: Decision, encoder: Encoder | None) -> tuple[Floats, Floats]:
        """Return a decision's observation in an encoder's columns: filled in, and with NaN."""
        if encoder is None or not encoder.can_grow:
            return super()._rows_of(decision)
        grown = self._learned.grown if decision._grown is None else decision._grown
        assert grown is not None
        if encoder.has_columns_of(grown, decision._observation.size):
            self._check_missing(decision._observation)
            return decision._observation, decision.raw
        made, wider = Layout.of(Encoder(encoder.features, grown)), Layout.of(encoder)
        y = decision._observation
        if y.shape != (made.dim,):
            raise InvalidValue(
                f"this decision's observation has {y.size} numbers, and its levels make {made.dim}"
            )
        places, siblings = made.places_in(wider), made.siblings_of(wider)
        y, raw = (widened(row, places, siblings) for row in (y, decision.raw))
        self._check_missing(y)
        return y, raw

    # -- arms -------------------------------------------------------------------------------------

    def _check_described(self, arms: object) -> None:
        """Raise if arms come without records, and those of the other arms are kept."""
        if self._learned.arm_records and not isinstance(arms, Mapping):
            listed = list(arms) if checks.is_listing(arms) else [arms]
            fields = self._learner.features.arms.fields  # type: ignore[union-attr]
            record = ", ".join(f"{name!r}: ..." for name in fields)
            raise InvalidValue(
                "the features describe arms, and this bandit keeps their records: "
                f"add_arms({{{shown(next(iter(listed), 'name'))}: {{{record}}}}})"
            )

    def _checked_records(self, arms: object) -> tuple[dict[Arm, dict[str, Any]], Encoder | None]:
        """Return the records of arms, if they come with any, and the encoder that has their levels.

        A record is kept as it is written into a file.
        """
        if not isinstance(arms, Mapping) or not arms:
            return {}, None
        encoder = self._learned.encoder
        if encoder is None or not self._has_arm_features:
            raise InvalidValue(
                "arms have records, which need a learner with Features(..., arms=Features(...)), "
                f"got {shown(self._learner)}"
            )
        records, wider = encoder.arm_records(list(arms.values()))
        return dict(zip(map(arm_name, arms), records, strict=True)), wider


def _has_rows(y: Any) -> bool:
    """Tell whether an observation has a row for each arm: an array, a frame or a list."""
    if isinstance(y, list | tuple):
        return bool(y) and isinstance(y[0], list | tuple | np.ndarray)
    return len(getattr(y, "shape", ())) == 2


def _names_alone(among: Among) -> Among:
    """Return the names of arms, if they come without records, which would be ignored."""
    if isinstance(among, Mapping):
        raise InvalidValue(
            "among has records of arms, and y is numbers: give records to a bandit with "
            "Features(..., arms=...), or the names of arms alone, among=[...]"
        )
    return among
