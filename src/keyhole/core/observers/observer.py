"""Conversion of observations to the posterior's columns: missing entries, units, a constant."""

from __future__ import annotations

import copy
import math
from bisect import bisect
from operator import is_
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import kernels
from keyhole.core.kernels import Floats, Ints
from keyhole.core.observers.layout import Layout
from keyhole.core.observers.moments import Moments
from keyhole.core.observers.units import MIN_SEEN, Sample, Scale, Units
from keyhole.errors import InvalidValue, Message, shown

# Treatments of missing entries.
Fill: TypeAlias = Literal["predict", "mean", "zero", "drop"]

# With a constant, rewards are counted from the median of this many first rewards.
REWARDS = 8
# Values more than this many units from their feature's middle are moved to that limit, and so are
# the first rewards.
CLIP = 10.0
# Units are checked again each time that features were seen 4 times as often as at the last check:
# standard errors are then half as large. Early predictions are checked the first three times.
LOOKS = tuple(MIN_SEEN * 4**k for k in range(1, 25))
PREDICTED = LOOKS[2]


class Effects(NamedTuple):
    """Effects on an arm's reward: the constant, if there is one, then one number per feature.

    Attributes
    ----------
    estimate : ndarray
        Least-squares estimate of the change of the reward when the feature increases by 1, in the
        feature's own units.
    error : ndarray
        Its standard error; infinite while the rewards do not determine the effect, and the estimate
        is then the posterior's mean.
    names : tuple of str or None
        The name of each effect. A level of a category counts from its first level where there is a
        constant, which is the reward that numbers of 0 and first levels give.
    """

    estimate: Floats
    error: Floats
    names: tuple[str, ...] | None = None

    @property
    def by_name(self) -> dict[str, tuple[float, float]]:
        """Estimate and standard error of each effect by its name."""
        names = self.names or tuple(map(str, range(len(self.estimate))))
        pairs = zip(self.estimate.tolist(), self.error.tolist(), strict=True)
        return dict(zip(names, pairs, strict=True))


class Observer:
    """Conversion of observations to the columns that the posterior learns from.

    Units are fixed when enough values were seen, and replaced where later values show that they
    are far off: the posterior is a sum, and a sum in some units can be converted to others.

    Parameters
    ----------
    dim : int
        Length of an observation.
    intercept : bool, default False
        Put a constant before the features, and count rewards from a zero of their own, so that
        adding a number to all rewards changes no decision.
    standardize : bool, default False
        Convert features to units of their own spread (and, with a constant, from their middle).
    missing : {"predict", "mean", "zero", "drop"}, optional
        Replacement of NaN: the best linear prediction from the entries that are present, the mean
        of the entry so far, or 0. "drop" leaves out observations with a missing entry.
    clip : float or None, default 10.0
        With `standardize`, move features, and the first 32 rewards, that are more than this many
        units from their middle to that limit.
    clip_rewards : bool, default True
        Whether rewards have this limit.
    layout : Layout, optional
        The columns; by default numbers without names.
    """

    def __init__(
        self,
        dim: int,
        *,
        intercept: bool = False,
        standardize: bool = False,
        missing: Fill | None = None,
        clip: float | None = CLIP,
        clip_rewards: bool = True,
        layout: Layout | None = None,
    ) -> None:
        self.dim = dim
        self.layout = Layout.plain(dim) if layout is None else layout
        self.intercept = checks.flag("intercept", intercept)
        self.standardize = checks.flag("standardize", standardize)
        if missing is not None and not (isinstance(missing, str) and missing in get_args(Fill)):
            kinds = ", ".join(map(repr, get_args(Fill)))
            raise InvalidValue(f"missing must be one of {kinds}, or None, got {shown(missing)}")
        self.missing = missing
        self.clip = None if clip is None else checks.real("clip", clip, min_value=1.0)
        if not self.standardize and self.clip not in (CLIP, None):
            raise InvalidValue("clip is in units of features, which need standardize=True")
        self.clip_rewards = checks.flag("clip_rewards", clip_rewards)
        # True if observations are taken as they are.
        options = self.intercept or self.standardize or self.missing
        self.is_plain = self.layout.is_plain and not options
        self.moments = Moments.empty(dim if self.watches else 0)
        # The moments that predictions follow from: those of up to a sixteenth fewer rows.
        self.snapshot = Moments.empty(dim if missing == "predict" else 0)
        self.sample = Sample.empty(dim if self.standardize else 0)
        self.units: Units | None = None
        if self.standardize and self.layout.is_indicator.all():
            self.units = self._indicators(Units.unknown(dim))
        self._scale_of: tuple[Units, Scale] | None = None
        self._rows: kernels.RowObserver | None = None
        self._rows_of: tuple[object, ...] = ()
        self._everyday: kernels.Everyday | None = None
        self._everyday_of: tuple[object, ...] = ()
        # The same for rewards, as for one more feature.
        self.reward_sample = Sample.empty(1 if self.standardize else 0)
        self.reward_unit = Units.unknown(len(self.reward_sample.seen))
        # The zero that rewards are counted from; None until it is fixed.
        self.zero: float | None = None if self.intercept else 0.0
        # Warnings to give at the end of the current operation, and the number of clipped values.
        self.messages: list[str] = []
        self.n_clipped = 0

    @property
    def options(self) -> dict[str, Any]:
        """Settings of the constructor."""
        return {
            "intercept": self.intercept,
            "standardize": self.standardize,
            "missing": self.missing,
            "clip": self.clip,
            "clip_rewards": self.clip_rewards,
        }

    @property
    def watches(self) -> bool:
        """True if the mean and covariance of the observations are used."""
        return self.standardize or self.missing in ("predict", "mean")

    @property
    def n_columns(self) -> int:
        """Number of columns of a design."""
        return self.dim + self.intercept + len(self.layout.crosses)

    def _indicators(self, units: Units) -> Units:
        """Return units in which indicators are counted as they are."""
        ones = Units(np.zeros(self.dim), np.ones(self.dim))
        return units.replaced(ones, self.layout.is_indicator)

    @property
    def is_ready(self) -> bool:
        """True if observations and rewards can be converted to the posterior's units."""
        return self.zero is not None and (not self.standardize or self.units is not None)

    @property
    def offset(self) -> float:
        """Number subtracted from every reward; 0 while it is not fixed and nothing is learned."""
        return self.zero or 0.0

    @property
    def n_rewards(self) -> int:
        """Number of rewards that were seen, where they are counted."""
        return int(self.reward_sample.seen.sum())

    @property
    def seen(self) -> float:
        """Number of times that the most frequent feature was seen."""
        return float(self.rows.seen) if self.watches else 0.0

    @property
    def next_look(self) -> float:
        """Number of times that a feature must have been seen for units to be checked again."""
        return float(LOOKS[bisect(LOOKS, self.seen)])

    @property
    def rows(self) -> kernels.RowObserver:
        """The compiled part, which reads and writes the arrays of this observer."""
        made_of = (self.moments, self.snapshot, self.sample, self.units)
        if self._rows is None or not all(map(is_, made_of, self._rows_of)):
            self._rows, self._rows_of = (
                kernels.RowObserver(
                    self.dim,
                    self.intercept,
                    kernels.FILLS[self.missing],
                    self.moments if self.watches else None,
                    self.snapshot if self.missing == "predict" else None,
                    None if self.units is None else self._scale()[:4],
                    self.sample if self.standardize else None,
                    self.layout.crosses,
                ),
                made_of,
            )
        return self._rows

    def limited(self, rewards: Floats, before: int) -> Floats:
        """Return rewards with outliers among the first 32 rewards moved to the limit.

        Later rewards are returned as they are: a large reward that is rare may be the signal.

        Parameters
        ----------
        rewards : ndarray of shape (n,)
            Rewards in the order of arrival.
        before : int
            Number of rewards before them.
        """
        if self.clip is None or not self.clip_rewards or before >= MIN_SEEN:
            return rewards
        if not self.reward_unit.scale.any():
            return rewards
        middle, scale = float(self.reward_unit.middle[0]), float(self.reward_unit.scale[0])
        low, high = middle - self.clip * scale, middle + self.clip * scale
        limited: Floats = rewards.copy()
        first = slice(0, MIN_SEEN - before)
        limited[first] = np.clip(rewards[first], low, high)
        for value in rewards[limited != rewards]:
            self._note_far("reward", value, middle, scale)
        return limited

    def see_rewards(self, rewards: Floats) -> None:
        """Add rewards, and recompute their unit each time their number doubles."""
        if not self.standardize:
            return
        before = int(self.reward_sample.seen[0])
        self.reward_sample.add(rewards[:, None])
        after = int(self.reward_sample.seen[0])
        if after >= REWARDS and (before < REWARDS or before.bit_length() < after.bit_length()):
            self.reward_unit = self.reward_sample.units(np.ones(1, dtype=bool))

    def fix_zero(self, rewards: list[float]) -> None:
        """Count rewards from the median of the first pending ones, if there are enough."""
        if self.zero is None and len(rewards) >= REWARDS:
            self.zero = float(np.median(rewards[:REWARDS]))

    # -- observations -----------------------------------------------------------------------------

    def numbers(self, y: ArrayLike) -> Floats:
        """Return y as a fresh array of usable numbers, with NaN where that is allowed."""
        if self.missing is not None:
            return checks.with_missing("y", y)
        if self.layout.unseen:
            raise InvalidValue(
                f"{self.layout.unseen[0]} is missing; missing entries are predicted with "
                "missing='predict'"
            )
        try:
            return checks.floats("y", y)
        except InvalidValue as reason:
            absent = np.isnan(checks.with_missing("y", y))
            if absent.any():
                fields, cause = self.layout.fields, str(reason)
                if fields is not None and absent.shape[-1:] == (len(fields),):
                    cause = f"{fields[int(np.argwhere(absent)[0][-1])]} is missing"
                raise InvalidValue(
                    f"{cause}; missing entries are predicted with missing='predict'"
                ) from None
            raise

    def filled(self, rows: Floats) -> Floats:
        """Return rows, (n, dim), with NaN replaced; the moments stay as they are.

        An entry that was never seen cannot be predicted and stays NaN. Dropped rows keep their NaN.
        """
        if self.missing in (None, "drop") or not np.isnan(rows).any():
            return rows
        filled: Floats = self.rows.filled(rows)
        return filled

    def see(self, rows: Floats) -> None:
        """Add rows as they were observed, including NaN, and fix the units that are due."""
        self.rows.see_rows(rows)
        if not self.standardize:
            return
        if self.units is not None and self._scale().is_complete:
            return
        units = self.units or Units.unknown(self.dim)
        due = units.due(np.where(self.layout.is_indicator, 0.0, self.moments.seen))
        if due.any():
            self.units = self._indicators(units.replaced(self.sample.units(due), due))

    @property
    def everyday(self) -> kernels.Everyday:
        """The compiled conversion of single observations and rewards, once units are fixed."""
        made_of = (self.rows, self.next_look, self.offset, self.reward_sample)
        same = self._everyday_of and all(map(_same, made_of, self._everyday_of))
        if self._everyday is None or not same:
            rewards = self.reward_sample if self.standardize else None
            look = self.next_look if self.watches else np.inf
            self._everyday = kernels.Everyday(self.rows, self.offset, look, PREDICTED, rewards)
            self._everyday_of = made_of
        return self._everyday

    @property
    def is_steady(self) -> bool:
        """True if rows are converted in the same way until units are checked again."""
        if not self.is_ready or self.missing == "drop" or self.layout.unseen:
            return False
        if not self.standardize:
            return True
        return self._scale().is_complete and self.n_rewards >= MIN_SEEN

    def see_rounds(self, rounds: Floats) -> Floats:
        """Add rounds one after another, (T, n, dim); return them as the posterior sees them.

        Each is filled from the rounds before it, as `filled` and `see` do one by one.
        """
        design: Floats = self.rows.see_rounds(rounds)
        return design

    def better_units(self) -> Units | None:
        """Return units from the latest sample; units that are not far from the old ones stay."""
        if self.units is None:
            return None
        latest = self.sample.units(self.units.known & ~self.layout.is_indicator)
        return self.units.replaced(latest, self.units.differ(latest))

    def design(self, rows: Floats) -> Floats:
        """Return rows, (..., dim), as the posterior sees them, (..., n_columns).

        An entry that is still missing was never seen, and becomes 0. A dropped row becomes 0 in
        every column.
        """
        if self.is_plain:
            return np.require(rows, requirements=["C", "W"])  # as kernels take them
        flat = rows.reshape(math.prod(rows.shape[:-1]), self.dim)
        design: Floats = self.rows.converted(flat)
        if self.missing == "drop":
            design[self.dropped(flat)] = 0.0
        return design.reshape(*rows.shape[:-1], self.n_columns)

    def dropped(self, rows: Floats) -> Any:
        """Return a mask of the rows, (n, dim), in which an entry is missing."""
        return np.isnan(rows).any(axis=-1) | bool(self.layout.unseen)

    def _scale(self) -> Scale:
        """Return the `Scale` of the units, computed once for each."""
        units = self.units or Units.unknown(self.dim)
        if self._scale_of is None or self._scale_of[0] is not units:
            limit = checks.LARGEST if self.clip is None else self.clip
            self._scale_of = (units, units.scale_for(centred=self.intercept, limit=limit))
        return self._scale_of[1]

    def note_clipped(self, rows: Floats, names: tuple[str, ...] | None) -> None:
        """Record a message about the first value that `design` clips.

        Parameters
        ----------
        rows : ndarray of shape (..., dim)
            The observations.
        names : tuple of str or None
            Names of the features, for the message.
        """
        if self.units is None:
            return
        scale = self._scale()
        far = (rows < scale.low) | (rows > scale.high)
        if far.any():
            *place, j = np.argwhere(far)[0].tolist()
            known = self.layout.names or names
            name = f"feature {j}" if known is None else f"feature {known[j]!r}"
            self._note_far(name, rows[(*place, j)], self.units.middle[j], self.units.scale[j])

    def _note_far(self, name: str, value: float, middle: float, scale: float) -> None:
        """Record a message about a clipped value; of many, about those at powers of two."""
        self.n_clipped += 1
        if self.n_clipped & (self.n_clipped - 1):
            return
        limit = checks.LARGEST if self.clip is None else self.clip
        count = f"{self.n_clipped} times so far; clip=None takes values as they are"
        self.messages.append(
            Message(
                f"{name} is {value:g}, far from its usual {middle:g} ± {scale:g}: it is clipped to "
                f"{limit:g} of these units ({count})",
                f"a value of {name} was far from its usual ones, and clipped ({count})",
            )
        )

    # -- converting -------------------------------------------------------------------------------

    def from_units_of(self, other: Observer) -> Floats:
        """Return M with design = M other_design, the conversion from the units of another."""
        return self.from_units(other.units)

    def from_units(self, theirs: Units | None) -> Floats:
        """Return M with design = M other_design, the conversion from other units."""
        own = self.units
        if own is None or theirs is None:
            return np.eye(self.n_columns)
        both = own.known & theirs.known
        change = np.divide(theirs.scale, own.scale, out=np.zeros(self.dim), where=both)
        moved = np.zeros(self.dim)
        if self.intercept:
            np.divide(theirs.middle - own.middle, own.scale, out=moved, where=both)
        # Each feature becomes change * feature + moved, and a product the product of two such.
        first, crossed = int(self.intercept), self.intercept + self.dim
        result = np.zeros((self.n_columns, self.n_columns))
        features = np.arange(first, crossed)
        result[features, features] = change
        if self.intercept:
            result[0, 0], result[features, 0] = 1.0, moved
        for row, (p, q) in enumerate(self.layout.crosses.tolist(), start=crossed):
            result[row, row] = change[p] * change[q]
            result[row, first + p] += change[p] * moved[q]
            result[row, first + q] += moved[p] * change[q]
            if self.intercept:
                result[row, 0] += moved[p] * moved[q]
        return result

    def take_units_of(self, other: Observer) -> None:
        """Take units, and the zero of rewards, from another where they are not fixed here."""
        if self.zero is None:
            self.zero = other.zero
        if self.units is None or other.units is None:
            self.units = self.units or other.units
            return
        self.units = other.units.replaced(self.units, self.units.known)

    def renew_predictions(self) -> None:
        """Predict from all rows that were seen until now."""
        if self.missing == "predict":
            self.snapshot = self.moments.copy()

    def merge_moments(self, other: Moments, base: Moments) -> None:
        """Add the observations that another has seen since `base`, which both contain.

        Parameters
        ----------
        other : Moments
            The sums of the other.
        base : Moments
            The sums that both started from.
        """
        self.moments.merge(other, base)
        self.renew_predictions()
        self._rows = None  # it keeps count of what was seen

    def merge_rewards(self, other: Observer) -> None:
        """Add the sample of rewards of another."""
        self.reward_sample.merge(other.reward_sample)
        if not self.reward_unit.known.any():
            self.reward_unit = other.reward_unit

    def with_units(self, units: Units) -> Observer:
        """Return a copy in other units."""
        twin = self.copy()
        twin.units = units
        return twin

    def steps(self) -> Floats:
        """Return the changes of a design by which effects are defined, one row for each.

        With a constant: the design of the baseline, in which numbers are 0 and categories have
        their first level; then, for each column, the change from the baseline when it is raised by
        1 (for a level, when it takes the place of the first), without that of its square; then, for
        each product, how much more changes if both are. Without a constant the baseline is a design
        of zeros, and left out.
        """
        base = np.zeros(self.dim)
        if self.intercept:
            base[self.layout.baseline()] = 1.0
        is_level = self.layout.is_level
        units = Units(np.zeros(self.dim), np.ones(self.dim)) if self.units is None else self.units
        scale = units.scale_for(centred=self.intercept, limit=checks.LARGEST)
        start = (base - scale.origin) * scale.inverse
        # By the changes themselves: in the difference of two designs, one far from the middle would
        # be lost.
        raised = [self._raised(base, j, is_level) - base for j in range(self.dim)]
        change = np.array(raised).reshape(self.dim, self.dim) * scale.inverse
        p, q = self.layout.crosses.T
        alone = np.hstack(
            [
                np.zeros((self.dim, int(self.intercept))),
                change,
                change[:, p] * start[q] + start[p] * change[:, q] + change[:, p] * change[:, q],
            ]
        )
        more = np.zeros((len(p), self.n_columns))
        first = self.n_columns - len(p)
        more[:, first:] = change[p][:, p] * change[q][:, q] + change[q][:, p] * change[p][:, q]
        is_square = p == q
        more[is_square] *= 0.5  # raised by 2, a square changes by twice its coefficient
        alone[p[is_square]] -= more[is_square]  # raised from 0 to 1, a square changes by 1 as well
        if not self.intercept:
            return np.vstack([alone, more])
        return np.vstack([np.hstack([[1.0], start, start[p] * start[q]]), alone, more])

    def effect_rows(self) -> Ints:
        """Return which rows of `steps` are effects: those of first levels are 0 by definition.

        Spare columns have none.
        """
        first = np.zeros(self.dim, dtype=bool)
        if self.intercept:
            first[self.layout.baseline()] = True
        if self.layout.names is not None:  # a spare column is no effect yet
            first |= np.array([not name for name in self.layout.names], dtype=bool)
        kept = np.concatenate([~first, ~first[self.layout.crosses].any(axis=1)])
        return np.flatnonzero(np.concatenate([[True], kept]) if self.intercept else kept)

    def _raised(self, base: Floats, j: int, is_level: Any) -> Floats:
        """Return a record in which a column is raised by 1; a level replaces the others.

        Parameters
        ----------
        base : ndarray of shape (dim,)
            The record.
        j : int
            The column.
        is_level : ndarray of bool of shape (dim,)
            Which columns are levels.
        """
        raised = base.copy()
        if is_level[j]:
            raised[self.layout.group == self.layout.group[j]] = 0.0
        raised[j] += 1.0
        return raised

    def in_layout(self, layout: Layout) -> Observer:
        """Return an observer of the same observations in more columns, new levels of categories.

        It shares arrays with this one where levels took spare columns.
        """
        if self.layout.is_renamed_in(
            layout
        ):  # levels took spare columns, and no number has changed
            relabelled = copy.copy(self)
            relabelled.layout = layout
            return relabelled
        twin = Observer(layout.dim, **self.options, layout=layout)
        places, siblings = self.layout.places_in(layout), self.layout.siblings_of(layout)
        twin.moments = self.moments.spread(places, siblings) if self.watches else twin.moments
        if self.missing == "predict":
            twin.snapshot = self.snapshot.spread(places, siblings)
        if self.standardize:
            twin.sample = self.sample.spread(places, siblings)
        if self.units is not None:
            units = Units.unknown(layout.dim)
            units.middle[places], units.scale[places] = self.units
            twin.units = twin._indicators(units)
        self._copy_rewards_to(twin)
        return twin

    def copy(self) -> Observer:
        """Return an independent copy."""
        twin = Observer(self.dim, **self.options, layout=self.layout)
        twin.moments, twin.sample = self.moments.copy(), self.sample.copy()
        twin.snapshot, twin.units = self.snapshot.copy(), self.units
        self._copy_rewards_to(twin)
        return twin

    def _copy_rewards_to(self, twin: Observer) -> None:
        twin.zero, twin.messages, twin.n_clipped = self.zero, self.messages, self.n_clipped
        twin.reward_sample, twin.reward_unit = self.reward_sample.copy(), self.reward_unit


def _same(one: object, other: object) -> bool:
    """Return whether two are the same number, or the same object."""
    return one == other if isinstance(one, float) else one is other
