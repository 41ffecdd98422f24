"""`SensorLearner`: a posterior over mu, learned through sensors that are known or calibrated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import kernels
from keyhole.core.kernels import Floats
from keyhole.core.learners.arms import Arm, Arms, arm_name
from keyhole.core.learners.draws import Draws
from keyhole.core.learners.joint import choose_jointly
from keyhole.core.learners.protocol import Chosen
from keyhole.core.learners.sensor_configurations import centre_of
from keyhole.core.learners.sensor_state import SensorReward, SensorState
from keyhole.core.observers import CLIP, Sensor
from keyhole.core.policies import Policy
from keyhole.errors import InvalidValue, shown

# The name of a sensor, of a type that a file or JSON can carry.
SensorName: TypeAlias = Arm


@dataclass(frozen=True, repr=False, eq=False)
class SensorLearner:
    """A learner of mu, the coefficients of the context itself, through one or several sensors.

    A measurement y becomes a belief x_hat about the context. Rewards that are learned through one
    sensor count for all of them, which is the gain over learning the coefficients of y for each
    sensor. An estimated sensor is a prior: corrections of its predictions are learned beside mu.

    Parameters
    ----------
    policy : Policy
        How arms are scored. A numeric v is the standard deviation of a reward with weight 1,
        which is the average one.
    sensors : Sensor, sequence or mapping of Sensor, or "oracle"
        The sensors, all of the same context. Those of a sequence are named 0, 1, and so on.
        "oracle", for simulations, takes those of the world that the learner plays in.
    intercept : bool, default False
        Fit a constant per arm. Contexts then count from the mean that the sensors know, and
        rewards from the median of the first 8, so that either may be about any number. The prior
        of a constant is as wide as the rewards are, not as their noise.
    reward_scale : float, optional
        The standard deviation of a reward given the context; by default it is learned.
    clip : float or None, default 10
        Move entries of a measurement, or of a late context, that are more than this many standard
        deviations from their mean to that limit. None takes all as they are. `Bandit` warns of
        clipped values. A sensor that was estimated from fewer than 8 pairs clips nothing.
    em : bool, default False
        Use that the variance of a reward depends on mu too, by expectation-maximization from the
        same sums. It helps where much of the context is unseen and little of it noise.

    Examples
    --------
    >>> import keyhole as kh
    >>> sensors = {"both": kh.Sensor(sensing=np.eye(2)), "one": kh.Sensor(sensing=[[1.0, 0.0]])}
    >>> learner = kh.SensorLearner(kh.ThompsonSampling(), sensors)
    >>> state = learner.start(n_arms=2, dim=2)
    >>> learner.learn(state, 0, np.array([1.0]), reward=2.0, sensor="one")
    >>> learner
    SensorLearner(ThompsonSampling(v='learned'), 2 sensors, context_dim=2)
    """

    policy: Policy
    sensors: Any  # tuple of Sensor, once it is made
    _: KW_ONLY
    intercept: bool = False
    reward_scale: float | None = None
    clip: float | None = CLIP
    em: bool = False
    names: tuple[SensorName, ...] = field(init=False, default=())  # those of the sensors

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise InvalidValue(
                "a learner needs a policy, a Policy such as ThompsonSampling(), "
                f"got {shown(self.policy)}"
            )
        if self.policy.sharing == "hybrid":
            raise InvalidValue("sharing must be 'per-arm' or 'shared' with sensors, got 'hybrid'")
        names, sensors = _named(self.sensors) if self.is_complete else ((), self.sensors)
        scale = self.reward_scale
        checked = {
            "sensors": sensors,
            "names": names,
            "intercept": checks.flag("intercept", self.intercept),
            "clip": None if self.clip is None else checks.real("clip", self.clip, min_value=1.0),
            "em": checks.flag("em", self.em),
            "reward_scale": None if scale is None else checks.positive("reward_scale", scale),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def is_complete(self) -> bool:
        """True if the sensors are given; False if each world provides its own."""
        return not (isinstance(self.sensors, str) and self.sensors == "oracle")

    @cached_property
    def context_dim(self) -> int:
        """The length of a context."""
        return int(self.sensors[0].context_dim)

    @cached_property
    def dim(self) -> int:
        """The length of the longest measurement."""
        return max(int(sensor.dim) for sensor in self.sensors)

    @cached_property
    def centre(self) -> Floats:
        """The context that rows are counted from, (context_dim,): 0 without a constant."""
        return centre_of(self.sensors) if self.intercept else np.zeros(self.context_dim)

    @cached_property
    def doubt_columns(self) -> dict[int, int]:
        """The first column of the corrections of each sensor that was estimated."""
        start, places = int(self.intercept) + self.context_dim, {}
        for j, sensor in enumerate(self.sensors):
            if sensor.doubt is not None:
                places[j], start = start, start + self.n_corrections(j)
        return places

    def n_corrections(self, place: int) -> int:
        """Return the number of corrections of an estimated sensor: a constant and coefficients."""
        sensor = self.sensors[place]
        return int(not sensor.is_centred) + int(sensor.dim)

    @cached_property
    def n_columns(self) -> int:
        """The number of columns of the posterior: a constant, x, and corrections."""
        corrections = sum(self.n_corrections(j) for j in self.doubt_columns)
        return int(int(self.intercept) + self.context_dim + corrections)

    def resolve(self, noise_scale: float, sensors: Mapping[SensorName, Sensor]) -> Self:
        """Return the learner for a world, from which "oracle" settings are taken.

        Parameters
        ----------
        noise_scale : float
            The noise scale of the world.
        sensors : mapping of Sensor
            The sensors of the world, by name.
        """
        if self.is_complete:
            sensors = dict(zip(self.names, self.sensors, strict=True))
        elif not sensors:
            raise InvalidValue(
                "sensors='oracle' needs a world with sensors: LinearWorld(sensors=...)"
            )
        return replace(self, policy=self.policy.resolve(noise_scale), sensors=sensors)

    def place(self, sensor: object) -> int:
        """Return the index of a sensor by its name, or by itself; None means the only one."""
        if sensor is None:
            if len(self.sensors) == 1:
                return 0
            raise InvalidValue(f"sensor must be given, one of {self._listed}")
        if isinstance(sensor, Sensor):
            # Itself first: two sensors of different names may be equal.
            same = [j for j, one in enumerate(self.sensors) if one is sensor]
            same += [j for j, one in enumerate(self.sensors) if one == sensor]
            found = same[0] if same else None
        elif isinstance(sensor, bool) or not isinstance(sensor, str | Integral):
            found = None
        else:
            found = self._places.get(sensor)  # type: ignore[arg-type] # NumPy integers too
        if found is not None:
            return int(found)
        raise InvalidValue(f"there is no sensor {shown(sensor)}; the sensors are {self._listed}")

    @cached_property
    def _places(self) -> dict[SensorName, int]:
        return {name: j for j, name in enumerate(self.names)}

    @property
    def _listed(self) -> str:
        listed = ", ".join(map(repr, self.names[:10]))
        return listed + (", ..." if len(self.names) > 10 else "")

    # -- the protocol -----------------------------------------------------------------------------

    def start(self, n_arms: int | Iterable[Arm], dim: int) -> SensorState:
        """Return the state of a learner that has learned nothing.

        Parameters
        ----------
        n_arms : int or iterable of names
            The number of arms, or their names.
        dim : int
            The length of the longest measurement.
        """
        if not self.is_complete:
            raise InvalidValue("sensors='oracle' is for simulations: give the sensors")
        if dim != self.dim:
            raise InvalidValue(
                f"dim must be {self.dim}, the length of the longest measurement, got {shown(dim)}"
            )
        names: Any = range(int(n_arms)) if isinstance(n_arms, Integral) else n_arms
        return SensorState(self, Arms(names, shared=self.policy.sharing == "shared"))

    def choose(
        self, state: SensorState, observation: ArrayLike, draws: Draws, *, sensor: object = None
    ) -> Chosen:
        """Choose an arm by its index, as `AnyLearner.choose`.

        Parameters
        ----------
        state : SensorState
            What `start` returned.
        observation : array_like of shape (dim,) or (n_arms, dim)
            A measurement for all arms, or one for each, with NaN for missing entries.
        draws : Draws
            Random numbers.
        sensor : name or Sensor, optional
            The sensor; it may be left out if there is only one.
        """
        return self.scored(state, self.measured(state, observation, sensor), draws, sensor)[0]

    def scored(
        self,
        state: SensorState,
        rows: Floats,
        draws: Draws,
        sensor: object,
        arms: Arms | None = None,
    ) -> tuple[Chosen, float]:
        """Return the choice, by its place among some arms, and its score; see `choose`.

        Parameters
        ----------
        state : SensorState
            What `start` returned.
        rows : ndarray
            What `measured` returned.
        draws : Draws
            Random numbers.
        sensor : name or Sensor, optional
            The sensor.
        arms : Arms, optional
            The arms to choose from; by default all of them.
        """
        arms = state.arms if arms is None else arms
        return self.scored_at(state, self.prepared(state, rows, sensor, arms), draws, arms)

    def scored_at(
        self, state: SensorState, prepared: Floats, draws: Draws, arms: Arms
    ) -> tuple[Chosen, float]:
        """Return the choice by what the posterior sees, and its score; see `scored`.

        Parameters
        ----------
        state : SensorState
            What `start` returned.
        prepared : ndarray of shape (1, c) or (n_arms, c)
            What `prepared` returned.
        draws : Draws
            Random numbers.
        arms : Arms
            The arms to choose from.
        """
        if state.rule.joint:
            n = len(arms.names)
            chosen, highest = choose_jointly(state.posterior, state.rule, prepared, n, draws)
            return chosen, highest + state.zero
        chooser, rule = state.chooser(arms), state.rule
        place, score, location, scale = chooser.choose_rounds(
            prepared[None],
            np.array(draws.normals)[None],
            np.array(draws.uniforms)[None],
        )
        # The integral is exact to rounding, which may end a little above 1.
        best = min(float(kernels.chance_rows(location, scale, place)[0]), 1.0)
        probability = (1.0 - rule.epsilon) * best + rule.epsilon / len(arms.names)
        return Chosen(int(place[0]), probability), float(score[0]) + state.zero

    def prepared(self, state: SensorState, rows: Floats, sensor: object, arms: Arms) -> Floats:
        """Return measurements as the posterior sees them, (1, c) or (n_arms, c).

        Parameters
        ----------
        state : SensorState
            What `start` returned.
        rows : ndarray
            What `measured` returned.
        sensor : name or Sensor, optional
            The sensor.
        arms : Arms
            The arms that they are of.
        """
        j = self.place(sensor)
        pairs = zip(rows, ~np.isnan(rows), strict=True)
        designs = [state.glimpsed(j, seen).design(state.clipped(j, row)) for row, seen in pairs]
        return state.rows(np.stack(designs), arms)

    def learn(
        self,
        state: SensorState,
        arm: int,
        observation: ArrayLike,
        reward: float,
        *,
        sensor: object = None,
        context: ArrayLike | None = None,
    ) -> None:
        """Learn the reward of the arm of this index, as `AnyLearner.learn`.

        Parameters
        ----------
        state : SensorState
            What `start` returned, which is changed.
        arm : int
            The index of the arm.
        observation : array_like of shape (dim,)
            The measurement of that arm.
        reward : float
            Its reward.
        sensor : name or Sensor, optional
            The sensor; it may be left out if there is only one.
        context : array_like of shape (context_dim,), optional
            The context, if it became known with the reward. It then takes the place of the belief,
            and improves the estimate of a calibrated sensor.
        """
        arm = checks.integer("arm", arm, min_value=0, max_value=len(state.arms.names) - 1)
        given = self.given(state, state.arms.names[arm], observation, reward, sensor)
        x = None if context is None else self.checked_context(state, given.sensor, context)
        state.learn(given, x)

    def given(
        self,
        state: SensorState,
        arm: Arm,
        observation: ArrayLike,
        reward: float,
        sensor: object,
    ) -> SensorReward:
        """Return a reward as it is learned, or raise `InvalidValue`; see `learn`.

        Parameters
        ----------
        state : SensorState
            What `start` returned.
        arm : str or int
            The name of the arm.
        observation : array_like of shape (dim,)
            The measurement of that arm.
        reward : float
            Its reward.
        sensor : name or Sensor, optional
            The sensor.
        """
        reward = checks.real("reward", reward)
        rows = self.measured(state, observation, sensor)
        if len(rows) != 1 or np.ndim(observation) != 1:
            raise InvalidValue(
                f"observation must be one measurement, got shape {np.shape(observation)}"
            )
        j = self.place(sensor)
        return SensorReward(arm, j, state.clipped(j, rows[0]), reward)

    def checked_context(self, state: SensorState, sensor: int, context: ArrayLike) -> Floats:
        """Return a context as an array, clipped to its usual range, or raise `InvalidValue`.

        Parameters
        ----------
        state : SensorState
            What `start` returned.
        sensor : int
            The index of the sensor of its measurement.
        context : array_like of shape (context_dim,)
            The context.
        """
        x = checks.floats("context", context)
        if x.shape != (self.context_dim,):
            raise InvalidValue(f"context must have shape ({self.context_dim},), got {x.shape}")
        return state.clipped(sensor, x, "context")

    def measured(
        self,
        state: SensorState,
        observation: ArrayLike,
        sensor: object,
        arms: Arms | None = None,
    ) -> Floats:
        """Return the measurements of a sensor, (1, dim) or (n_arms, dim), or raise `InvalidValue`.

        Where sensors differ in length, the entries after the last of a shorter one may be there,
        and must then be missing.

        Parameters
        ----------
        state : SensorState
            What `start` returned.
        observation : array_like
            The measurements.
        sensor : name or Sensor, optional
            The sensor.
        arms : Arms, optional
            The arms that they are of; by default all.
        """
        one = self.sensors[self.place(sensor)]
        rows = np.atleast_2d(checks.with_missing("y", observation))
        n = len((state.arms if arms is None else arms).names)
        if rows.shape in ((1, self.dim), (n, self.dim)) and np.isnan(rows[:, one.dim :]).all():
            rows = np.ascontiguousarray(rows[:, : one.dim])
        if rows.shape not in ((1, one.dim), (n, one.dim)):
            raise InvalidValue(
                f"y must have shape ({one.dim},), or ({n}, {one.dim}) with a row for each of the "
                f"{n} arms, for this sensor, got {np.shape(observation)}"
            )
        return rows

    @property
    def options(self) -> dict[str, Any]:
        """All settings but the policy, in plain types; sensors by a digest."""
        sensors: Any = self.sensors
        if self.is_complete:
            named = zip(self.names, self.sensors, strict=True)
            sensors = [[name, sensor.digest] for name, sensor in named]
        return {
            "sensors": sensors,
            "intercept": self.intercept,
            "reward_scale": self.reward_scale,
            "clip": self.clip,
            "em": self.em,
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SensorLearner):
            return NotImplemented
        return self._settings == other._settings

    def __hash__(self) -> int:
        return hash(self._settings)

    @property
    def _settings(self) -> tuple[Any, ...]:
        named = (self.names, self.sensors)
        return (self.policy, *named, self.intercept, self.reward_scale, self.clip, self.em)

    def __repr__(self) -> str:
        count = f"sensors={self.sensors!r}"
        options = []
        if self.is_complete:
            count = f"{len(self.sensors)} sensor{'s' if len(self.sensors) > 1 else ''}"
            options = [f"context_dim={self.context_dim}"]
        options += ["intercept=True"] if self.intercept else []
        options += [f"reward_scale={self.reward_scale}"] if self.reward_scale is not None else []
        options += [f"clip={self.clip}"] if self.clip != CLIP else []
        options += ["em=True"] if self.em else []
        return f"SensorLearner({', '.join([repr(self.policy), count, *options])})"


def sensor_name(name: object) -> SensorName:
    """Return a sensor's name, which a file or JSON leaves unchanged, or raise `InvalidValue`."""
    is_number = isinstance(name, Integral) and not isinstance(name, bool)
    if name == "" or not (isinstance(name, str) or is_number):
        raise InvalidValue(
            "a sensor's name must be a text that is not empty, or a whole number, "
            f"got {shown(name)}"
        )
    return arm_name(name)


def _named(sensors: object) -> tuple[tuple[SensorName, ...], tuple[Sensor, ...]]:
    """Return the names and the sensors, all of one context_dim."""
    names: tuple[SensorName, ...]
    given: tuple[Sensor, ...]
    if isinstance(sensors, Mapping):
        names, given = tuple(map(sensor_name, sensors)), tuple(sensors.values())
    elif isinstance(sensors, Sensor):
        names, given = (0,), (sensors,)
    elif checks.is_listing(sensors) and not isinstance(sensors, str | bytes):
        given = tuple(sensors)
        names = tuple(range(len(given)))
    else:
        raise InvalidValue(f"sensors must be a Sensor, or several, got {shown(sensors)}")
    if not given:
        raise InvalidValue("sensors must have at least one Sensor, got none")
    for name, sensor in zip(names, given, strict=True):
        if not isinstance(sensor, Sensor):
            raise InvalidValue(f"sensors[{name!r}] must be a Sensor, got {shown(sensor)}")
        if sensor.context_dim != given[0].context_dim:
            raise InvalidValue(
                f"sensors must all have one context_dim, but sensors[{name!r}] has "
                f"{sensor.context_dim} and sensors[{names[0]!r}] has {given[0].context_dim}"
            )
    return names, given
