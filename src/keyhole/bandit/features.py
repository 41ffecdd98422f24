"""From what is observed to what the posterior is about: gaps filled, units settled, a constant."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.bandit.arms import Arm, Arms
from keyhole.errors import InvalidValue
from keyhole.kernels import Floats
from keyhole.moments import Moments
from keyhole.posterior import Posterior

# A feature's scale is known to about an eighth when it was seen so many times, and settled.
SETTLED = 32
# With a constant, rewards are counted from the mean of the first so many.
REWARDS = 8


class Reward(NamedTuple):
    """A reward, of which arm, and at which observation."""

    arm: Arm
    observation: Floats
    reward: float


class Units(NamedTuple):
    """Where each feature's scale begins, and how long its unit is; 0 while that is not known."""

    centre: Floats
    scale: Floats

    @property
    def known(self) -> Any:
        """Which features have a unit."""
        return self.scale > 0.0

    def told(self, rows: Floats) -> Floats:
        """Rows in these units. Of a feature without one the posterior sees 0, and so nothing."""
        room = np.zeros(np.broadcast_shapes(rows.shape, self.scale.shape))
        return np.divide(rows - self.centre, self.scale, out=room, where=self.known)

    def due(self, seen: Floats) -> Any:
        """Which features get a unit now, by how often they were seen.

        With the first of them all that were seen half as often, so that rewards that waited for
        it are not told without them.
        """
        enough = seen >= SETTLED
        if enough.any() and not self.known.any():
            enough = seen >= SETTLED / 2
        return enough & ~self.known


class Effects(NamedTuple):
    """What an arm's reward is made of: the constant, if there is one, then a number a feature.

    estimate: what one more of the feature adds, in its own units. error: the posterior's standard
    deviation of that, at the noise learned from the rewards; infinite until its unit is settled.
    """

    estimate: Floats
    error: Floats


class Features:
    """What a bandit does to observations before its posterior sees them.

    missing="predict": NaN becomes the best linear prediction from the entries that are there.
    standardize: features are told in units of their own standard deviation (and, with a constant,
    from their mean on), which are settled for good once enough was seen. intercept: a constant is
    put before them, and rewards are counted from a zero of their own, so that adding a number to
    all of them changes no decision.

    Units are settled once and then stay, so that the posterior is a sum like any other, and one in
    other units can be told in these. A prior of 1 in settled units is one in each feature's own.
    """

    def __init__(
        self,
        dim: int,
        *,
        intercept: bool = False,
        standardize: bool = False,
        missing: Literal["predict"] | None = None,
    ) -> None:
        self.dim = dim
        self.intercept = checks.flag("intercept", intercept)
        self.standardize = checks.flag("standardize", standardize)
        if missing not in ("predict", None):
            raise InvalidValue(f"missing must be 'predict' or None, got {missing!r}")
        self.missing = missing
        # Whether observations are taken as they are.
        self.is_plain = not any(self.options.values())
        self.moments = Moments.empty(dim)
        self.units: Units | None = None
        # What rewards are counted from; None until that is settled.
        self.zero: float | None = None if self.intercept else 0.0

    @property
    def options(self) -> dict[str, Any]:
        """The settings it was made with."""
        return {
            "intercept": self.intercept,
            "standardize": self.standardize,
            "missing": self.missing,
        }

    @property
    def watches(self) -> bool:
        """Whether anything follows from the observations' mean and covariance."""
        return self.standardize or self.missing is not None

    @property
    def width(self) -> int:
        """How many numbers the posterior is about."""
        return self.dim + self.intercept

    @property
    def is_settled(self) -> bool:
        """Whether observations and rewards can be told in the posterior's units."""
        return self.zero is not None and (not self.standardize or self.units is not None)

    @property
    def offset(self) -> float:
        """What is taken off every reward: 0 while that is not settled, and nothing learned."""
        return self.zero or 0.0

    def settle_zero(self, rewards: list[Reward]) -> None:
        """Count rewards from the mean of those that wait, if they are enough."""
        if self.zero is None and len(rewards) >= REWARDS:
            self.zero = float(np.mean([one.reward for one in rewards]))

    def numbers(self, y: ArrayLike) -> Floats:
        """y as a fresh array of usable numbers, and of NaN where that is allowed."""
        if self.missing is not None:
            return checks.gappy("y", y)
        try:
            return checks.floats("y", y)
        except InvalidValue as reason:
            if np.isnan(checks.gappy("y", y)).any():
                raise InvalidValue(f"{reason}; gaps are filled with missing='predict'") from None
            raise

    def filled(self, rows: Floats) -> Floats:
        """Rows without gaps, from what was seen so far; nothing is added to it."""
        if self.missing is not None and np.isnan(rows).any():
            rows = rows.copy()
            self.moments.fill(rows)
        return rows

    def see(self, rows: Floats) -> None:
        """Add rows as they were observed, gaps and all, and settle the units that are due."""
        if self.watches:
            self.moments.add(rows)
        if not self.standardize:
            return
        units = self.units or Units(np.zeros(self.dim), np.zeros(self.dim))
        due = units.due(self.moments.seen)
        if due.any():
            centre, scale = self._measured()
            self.units = Units(
                np.where(due, centre, units.centre), np.where(due, scale, units.scale)
            )

    def _measured(self) -> Units:
        mean, scale = self.moments.mean, np.sqrt(np.diag(self.moments.covariance).clip(min=0.0))
        # What never varied so far has at least a size; what was always 0 has no unit yet.
        constant = scale <= 1e-12 * np.abs(mean)
        scale[constant] = np.abs(mean[constant])
        return Units(mean if self.intercept else np.zeros(self.dim), scale)

    def design(self, rows: Floats) -> Floats:
        """Rows, (..., dim), as the posterior sees them, (..., width).

        What is still missing in them was never seen: of that the posterior sees 0.
        """
        if self.missing is not None:
            rows = np.where(np.isnan(rows), 0.0 if self.units is None else self.units.centre, rows)
        if self.units is not None:
            rows = self.units.told(rows)
        if self.intercept:
            rows = np.concatenate([np.ones((*rows.shape[:-1], 1)), rows], axis=-1)
        return np.ascontiguousarray(rows)

    def teach(self, posterior: Posterior, arms: Arms, rewards: list[Reward]) -> None:
        """Have a posterior of these units learn rewards that were waiting for them."""
        if rewards:
            parameters = np.array([arms.parameter(one.arm) for one in rewards])
            y = self.design(np.array([one.observation for one in rewards]))
            given = np.array([one.reward for one in rewards])
            posterior.learn_many(parameters, y, given - self.offset)

    def from_units_of(self, other: Features) -> Floats:
        """M with design = M other_design, for observations in the other's settled units."""
        own, theirs = self.units, other.units
        if own is None or theirs is None:
            return np.eye(self.width)
        both = own.known & theirs.known
        change = np.divide(theirs.scale, own.scale, out=np.zeros(self.dim), where=both)
        if not self.intercept:
            return np.diag(change)
        result = np.diag(np.concatenate([[1.0], change]))
        moved = theirs.centre - own.centre
        result[1:, 0] = np.divide(moved, own.scale, out=np.zeros(self.dim), where=both)
        return result

    def steps(self) -> Floats:
        """What one more of each feature adds to a design, a row each; the design of 0 comes first.

        Without a constant there is no first row. A feature without a unit has a row of zeros.
        """
        nothing = self.design(np.zeros((1, self.dim)))
        more = self.design(np.eye(self.dim)) - nothing
        return np.concatenate([nothing, more]) if self.intercept else more

    def take_units_of(self, other: Features) -> None:
        """Take over the units, and the rewards' zero, that are not settled here, but there."""
        if self.zero is None:
            self.zero = other.zero
        if self.units is None or other.units is None:
            self.units = self.units or other.units
            return
        mine = self.units.known
        self.units = Units(
            np.where(mine, self.units.centre, other.units.centre),
            np.where(mine, self.units.scale, other.units.scale),
        )

    def copy(self) -> Features:
        """An independent copy."""
        twin = Features(self.dim, **self.options)
        twin.moments, twin.units, twin.zero = self.moments.copy(), self.units, self.zero
        return twin
