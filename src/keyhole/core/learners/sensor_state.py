"""`SensorState`, the state of a `SensorLearner`: rewards, late contexts, copies and merging."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keyhole.core import kernels
from keyhole.core.kernels import Floats, Rule
from keyhole.core.learners.arms import Arm, Arms
from keyhole.core.learners.sensor_configurations import centre_of, configured
from keyhole.core.learners.sensor_fit import GROWTH, SensorFit
from keyhole.core.observers import REWARDS, Moments, Range, Sensor
from keyhole.errors import InvalidValue, Message

if TYPE_CHECKING:
    from keyhole.core.learners.sensor_learner import SensorLearner


# From this many pairs or repeats on, the usual range is known well enough to clip values.
CLIPPED_FROM = REWARDS


class SensorReward(NamedTuple):
    """A reward as it was learned through a sensor."""

    arm: Arm
    sensor: int  # its index
    y: Floats  # (dim,)  the measurement, clipped, with NaN for missing entries
    reward: float


class SensorState(SensorFit):
    """The state of a `SensorLearner`.

    The sums per configuration and the pairs of contexts and measurements are the state. Weights
    and the posterior are computed from them on a schedule.

    Parameters
    ----------
    learner : SensorLearner
        The recipe.
    arms : Arms
        The names of the arms.
    """

    def __init__(self, learner: SensorLearner, arms: Arms) -> None:
        super().__init__(learner, arms)
        self.pairs: dict[int, Moments] = {
            j: sensor.pairs.copy()
            for j, sensor in enumerate(self.sensors)
            if sensor.pairs is not None
        }
        self._chooser: kernels.Chooser | None = None
        # Warnings to give at the end of the current operation, and the number of clipped values.
        self.messages: list[str] = []
        self.n_clipped = 0

    # -- glitches ---------------------------------------------------------------------------------

    def clipped(self, sensor: int, row: Floats, name: str = "y") -> Floats:
        """Return a measurement or a context, clipped to the usual range of the sensor.

        Parameters
        ----------
        sensor : int
            The index of the sensor. One that was estimated from few rows clips nothing.
        row : ndarray of shape (dim,) or (context_dim,)
            The measurement or the context.
        name : {"y", "context"}
            Which of the two it is.
        """
        one, limit = self.sensors[sensor], self.learner.clip
        if limit is None or one.n_rows < CLIPPED_FROM:
            return row
        usual = one.observation_range if name == "y" else one.context_range
        clipped: Floats = usual.clipped(row, limit)
        if clipped is not row:
            self._note_far(name, row, usual, limit)
        return clipped

    def _note_far(self, name: str, row: Floats, usual: Range, limit: float) -> None:
        """Record a message about a clipped vector; of many, about those at powers of two."""
        self.n_clipped += 1
        if self.n_clipped & (self.n_clipped - 1):
            return
        j = int(np.nanargmax(np.abs(row - usual.mean) / usual.scale))
        count = f"{self.n_clipped} times so far; clip=None takes values as they are"
        self.messages.append(
            Message(
                f"{name}[{j}] is {row[j]:g}, far from its usual {usual.mean[j]:g} ± "
                f"{usual.scale[j]:g}, or inconsistent with other entries: it is clipped to "
                f"{limit:g} of these units ({count})",
                f"a value of {name}[{j}] was far from its usual ones, and clipped ({count})",
            )
        )

    # -- learning ---------------------------------------------------------------------------------

    def add(self, parameter: int, place: int, y: Floats, reward: float) -> None:
        """Learn a reward, and refresh weights that are due.

        Parameters
        ----------
        parameter : int
            The parameter of the arm.
        place : int
            The index of the configuration.
        y : ndarray of shape (dim,)
            The measurement, or the context.
        reward : float
            The reward.
        """
        i, one = parameter, self.configurations[place]
        row = one.base(y)
        if not self.is_zero_fixed and self.see_first_rewards([reward]):
            for known in np.flatnonzero(self.n).tolist():
                self._rebuild(known)
        reward -= self.zero
        if place == 0 and self.bases is not None:  # the first context that became known
            self.sums[place].add(i, row, reward)
            self.rebuild()
            return
        weight, numerator = self.weights[place, i], self.numerators[i]
        if np.isnan(weight):
            weight, numerator = self._first_weight(place, i)
        root = float(np.sqrt(weight))
        learned = root * self._in_basis(i, one.columns @ row)[None]
        # What may fail comes first.
        self.posterior.learn_rows(np.array([i]), learned, np.array([root * reward]))
        self.weights[place, i], self.numerators[i] = weight, numerator
        self.sums[place].add(i, row, reward)
        if self.n[i] >= GROWTH * self.refreshed[i]:
            self.refresh(i)

    def learn(
        self,
        given: SensorReward,
        context: Floats | None,
        *,
        is_pair: bool = True,
    ) -> None:
        """Learn a reward, and the context if it is known: all of it, or nothing if that raises.

        Parameters
        ----------
        given : SensorReward
            The reward, its arm and its measurement.
        context : ndarray of shape (context_dim,) or None
            The context.
        is_pair : bool, default True
            Whether the context and the measurement were not seen together before.
        """
        _, sensor, y, reward = given
        parameter, seen = self.arms.parameter(given.arm), ~np.isnan(y)
        # A reward that changes no more than its own sums and posterior does so at once. A new
        # configuration without rewards, which is left if that fails, means nothing.
        is_plain = self.n[parameter] + 1.0 < GROWTH * self.refreshed[parameter]
        is_plain = is_plain and self.is_zero_fixed
        if context is not None:
            is_plain = is_plain and self.bases is None and sensor not in self.pairs
        state = self if is_plain else self.copy()
        if context is None:
            state.add(parameter, state.configuration(sensor, seen), y, reward)
        else:
            state.add(parameter, 0, context, reward)
            if is_pair:
                state.see_pair(sensor, context, y)
        if state is not self:
            vars(self).update(vars(state))

    def exchange(self, rewards: Sequence[SensorReward], context: Floats) -> None:
        """Replace beliefs by a context that became known: all of it, or nothing if that raises.

        The sums are then those of rewards that were learned with their context.

        Parameters
        ----------
        rewards : sequence of SensorReward
            Rewards of one decision, as they were learned without the context.
        context : ndarray of shape (context_dim,)
            The context.
        """
        state = self.copy()
        truth = state.configurations[0].base(context)
        for arm, sensor, y, reward in rewards:
            i, place, belief = state._row_of(SensorReward(arm, sensor, y, reward), None)
            state.sums[place].remove(i, belief, reward - state.zero)
            state.sums[0].add(i, truth, reward - state.zero)
        if state.bases is not None:  # the first context that became known
            state.rebuild()
        else:
            for i in sorted({self.arms.parameter(one.arm) for one in rewards}):
                state._refresh(i, changed=True)
        state.see_pair(rewards[0].sensor, context, rewards[0].y)
        vars(self).update(vars(state))

    def forget(self, rewards: Sequence[tuple[SensorReward, Floats | None]]) -> None:
        """Take rewards of one decision out: all of them, or none if that raises.

        The sums are then those without them, and all else is computed from the sums anew.

        Parameters
        ----------
        rewards : sequence of (SensorReward, ndarray or None)
            The rewards as they were learned, and their context, if it is known.
        """
        state = self.copy()
        for given, context in rewards:
            i, place, row = state._row_of(given, context)
            state.sums[place].remove(i, row, given.reward - state.zero)
        paired = [(given, context) for given, context in rewards if context is not None]
        if paired:  # a context and its measurement are one pair, however many rewards they have
            (_, sensor, y, _), context = paired[0]
            if sensor in state.pairs and not np.isnan(y).any():
                state.pairs[sensor].remove(np.concatenate([context, y]))
        state.empty({self.arms.parameter(given.arm) for given, _ in rewards})
        state.rebuild()
        vars(self).update(vars(state))

    def amend(self, given: SensorReward, context: Floats | None, reward: float) -> None:
        """Replace a reward by another: all of it, or nothing if that raises.

        Parameters
        ----------
        given : SensorReward
            The reward as it was learned.
        context : ndarray of shape (context_dim,) or None
            Its context, if it is known.
        reward : float
            The reward that replaces it.
        """
        state = self.copy()
        i, place, row = state._row_of(given, context)
        state.sums[place].amend(i, row, given.reward - state.zero, reward - state.zero)
        state._refresh(i, changed=True)
        vars(self).update(vars(state))

    def _row_of(self, given: SensorReward, context: Floats | None) -> tuple[int, int, Floats]:
        """Return parameter, configuration and base row of a reward that was learned."""
        i = self.arms.parameter(given.arm)
        if context is not None:
            return i, 0, self.configurations[0].base(context)
        place = self.configuration(given.sensor, ~np.isnan(given.y))
        return i, place, self.configurations[place].base(given.y)

    def see_pair(self, sensor: int, x: Floats, y: Floats) -> None:
        """Improve an estimated sensor by a context and its measurement.

        Parameters
        ----------
        sensor : int
            The index of the sensor. One that is known stays as it is.
        x, y : ndarray of shape (context_dim,) and (dim,)
            The pair. A measurement with missing entries is left out.
        """
        if sensor not in self.pairs or np.isnan(y).any():
            return
        self.pairs[sensor].add(np.concatenate([x, y])[None])
        before = self.sensors[sensor].n_rows  # when it was estimated last
        if float(self.pairs[sensor].seen[0]) >= GROWTH * max(before, 1.0):
            self.estimate_sensor(sensor)
            self.refresh_all()

    def estimate_sensor(self, sensor: int, pairs: Moments | None = None) -> None:
        """Estimate a sensor anew, and convert its configurations.

        Parameters
        ----------
        sensor : int
            The index of the sensor.
        pairs : Moments, optional
            The sums over pairs (x, y) to estimate it from; by default those of all pairs.
        """
        self.sensors[sensor] = Sensor.of_pairs(
            self.pairs[sensor] if pairs is None else pairs,
            self.learner.context_dim,
            self.learner.sensors[sensor].is_centred,
        )
        if self.learner.intercept:
            self.centre = centre_of(self.sensors)
        self._glimpses = {}
        for place, one in enumerate(self.configurations):
            if one.sensor == sensor or self.learner.intercept:
                self.configurations[place] = configured(
                    self.learner, self.sensors, self.centre, one.sensor, one.seen
                )
        self._unseen = None

    # -- choosing ---------------------------------------------------------------------------------

    @cached_property
    def rule(self) -> Rule:
        """The rule of the policy."""
        rule = self.learner.policy.plain_rule()
        if rule.weighted or rule.decay > 0.0:
            raise InvalidValue(
                "sensors need a policy without weights and with a constant epsilon, "
                f"got {self.learner.policy!r}"
            )
        return rule

    def chooser(self, arms: Arms) -> kernels.Chooser:
        """Return the compiled part that chooses among some arms; that for all is kept."""
        kept, core = self._chooser, self.posterior.core
        if arms is self.arms and kept is not None and kept.core is core:
            return kept
        made = kernels.Chooser(core, self.rule, arms.parameter_of, keeps=True)
        if arms is self.arms:
            self._chooser = made
        return made

    # -- copies and merging -----------------------------------------------------------------------

    def copy(self) -> SensorState:
        """Return an independent copy."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        # The compiled part holds the arrays of this very posterior.
        return {**vars(self), "_chooser": None, "_glimpses": {}}

    def __deepcopy__(self, memo: dict[int, Any]) -> SensorState:
        twin = object.__new__(SensorState)
        kept = ("learner", "rule", "arms", "_unseen")  # which never change
        listed = ("configurations", "sensors", "places")  # whose entries never do
        for name, value in self.__getstate__().items():
            if name in kept:
                vars(twin)[name] = value
            elif name == "sums":
                vars(twin)[name] = [sums.copy() for sums in value]
            else:
                vars(twin)[name] = (copy.copy if name in listed else copy.deepcopy)(value)
        return twin

    def merged(self, other: SensorState, base: SensorState | None) -> SensorState:
        """Return the merged state of both; rewards of a common `base` count once.

        Sums are added by the names of arms and by configuration.

        Parameters
        ----------
        other : SensorState
            The other state, of an equal learner and the same arms.
        base : SensorState or None
            The state that both started from.

        Raises
        ------
        InvalidValue
            If arms differ, or the base has rewards that one of the two lacks.
        """
        made = self.copy()
        for each, sign in ((other, 1.0), (base, -1.0)):
            if each is None:
                continue
            if set(each.arms.names) != set(self.arms.names):
                raise InvalidValue(
                    f"arms must be the same in bandits that are merged, got {self.arms.names} "
                    f"and {each.arms.names}"
                )
            order = [each.arms.parameter(arm) for arm in self.arms.names]
            for sums, one in zip(each.sums, each.configurations, strict=True):
                place = made.configuration(one.sensor, one.seen)
                theirs = sums if self.arms.shared else sums.of(order)
                if self.learner.intercept:
                    theirs = theirs.moved(each.zero - made.zero)
                made.sums[place] = made.sums[place].plus(theirs, sign)
        for j, pairs in made.pairs.items():
            known = self.learner.sensors[j].pairs if base is None else base.pairs[j]
            pairs.merge(other.pairs[j], known)
        if any((sums.n < 0.0).any() for sums in made.sums):
            raise InvalidValue("both bandits must have learned all that their base has")
        if self.learner.intercept:
            known = 0 if base is None else len(base.first_rewards)
            made.see_first_rewards(other.first_rewards[known:])
        made.rebuild()
        return made

    def rebuild(self) -> None:
        """Compute everything from the sums and the pairs, after these have changed."""
        for j in self.pairs:
            self.estimate_sensor(j)
        if self._needs_all_columns != (self.bases is None):
            self.set_bases()
        # Weights follow from the posterior, which follows from weights: two passes bring both
        # close to what they converge to.
        for _ in range(2):
            self.refresh_all()
