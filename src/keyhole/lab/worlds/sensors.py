"""`SensorWorld`: hidden contexts, each seen through one of several sensors drawn at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import Floats, Ints, Sensor, SensorName, Streams, sensor_name
from keyhole.errors import InvalidValue, shown
from keyhole.lab.worlds.covariance import frozen, root
from keyhole.lab.worlds.describing import digest
from keyhole.lab.worlds.products import product
from keyhole.lab.worlds.rounds import Rounds, World


@dataclass(frozen=True, eq=False, init=False, repr=False)
class SensorWorld(World):
    """A linear world in which every round has one of several sensors, all equally likely.

    `LinearWorld(sensors=[...])` makes one. Contexts and noises are normal, with the covariances
    and means of the sensors. The best observer knows the sensor: values are x_hat'mu, with the
    sensor's belief x_hat = E[x | y]. Measurements of the shorter sensors end with NaN.

    Parameters
    ----------
    sensors : Sensor, or sequence or mapping of Sensor
        The sensors, all with the same mean and covariance of the context. Those of a sequence are
        named 0, 1, and so on.
    coefficients : array_like of shape (n_arms, context_dim)
        mu. Equal rows make a shared parameter.
    reward_scale : float, default 1
        The standard deviation of the reward's noise.
    shared_context : bool, default False
        Whether all arms have one context.

    Raises
    ------
    InvalidValue
        If a setting has the wrong shape or range, or the sensors differ in their context.

    Examples
    --------
    >>> import keyhole as kh
    >>> sensors = [kh.Sensor(sensing=np.eye(2)), kh.Sensor(sensing=[[1.0, 0.0]])]
    >>> world = kh.LinearWorld(sensors=sensors, coefficients=np.eye(2))
    >>> world.sample(5, seed=1).sensors.tolist()
    [0, 1, 0, 0, 1]
    """

    sensors: Mapping[SensorName, Sensor] = field()
    coefficients: Floats
    reward_scale: float
    shared_context: bool

    def __init__(
        self,
        *,
        sensors: Sensor | Sequence[Sensor] | Mapping[Any, Sensor],
        coefficients: ArrayLike,
        reward_scale: float = 1.0,
        shared_context: bool = False,
    ) -> None:
        named = _named(sensors)
        first = next(iter(named.values()))
        mu = checks.floats("coefficients", coefficients)
        if mu.ndim != 2 or mu.shape[1:] != (first.context_dim,) or not len(mu):
            raise InvalidValue(
                f"coefficients must have shape (n_arms, {first.context_dim}), got {mu.shape}"
            )
        checked = {
            "sensors": MappingProxyType(named),
            "coefficients": frozen(mu),
            "reward_scale": checks.real("reward_scale", reward_scale, min_value=0.0),
            "shared_context": checks.flag("shared_context", shared_context),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return len(self.coefficients)

    @property
    def dim(self) -> int:
        """The length of the longest measurement."""
        return max(sensor.dim for sensor in self.sensors.values())

    @property
    def context_dim(self) -> int:
        """The length of a hidden context."""
        return int(self.coefficients.shape[1])

    @cached_property
    def eta(self) -> Floats:
        """The best linear prediction of each arm's reward from y if the sensor is ignored.

        A missing entry counts as 0. Regret does not use it: it is against the best observer, who
        knows the sensor.
        """
        second, cross = np.zeros((self.dim, self.dim)), np.zeros((self.dim, self.context_dim))
        for sensor in self.sensors.values():
            of, mean = slice(0, sensor.dim), sensor.observation_mean
            second[of, of] += sensor.observation_covariance + np.outer(mean, mean)
            cross[of] += sensor.sensing @ sensor.context_covariance + np.outer(mean, sensor.mean)
        return frozen(self.coefficients @ np.linalg.lstsq(second, cross, rcond=None)[0].T)

    @cached_property
    def noise_scales(self) -> Floats:
        """The standard deviation of a reward about its value, (n_sensors, n_arms)."""
        unseen = np.stack([one.view(np.ones(one.dim, bool)).covariance for one in self._list])
        spread = np.einsum("nd,mde,ne->mn", self.coefficients, unseen, self.coefficients)
        return frozen(np.sqrt(self.reward_scale**2 + spread))

    @property
    def noise_scale(self) -> float:
        """The largest of `noise_scales`."""
        return float(self.noise_scales.max())

    @property
    def _list(self) -> list[Sensor]:
        return list(self.sensors.values())

    def rounds(self, state: Streams, n: int) -> Rounds:
        """Return the next n rounds; see `World.rounds`.

        Parameters
        ----------
        state : Streams
            The streams that `start` returned.
        n : int
            The number of rounds.
        """
        sensors, rows = self._list, 1 if self.shared_context else self.n_arms
        which: Ints = (state["sensor"].random(n) * len(sensors)).astype(np.int64)
        drawn = state["context"].standard_normal((n, rows, self.context_dim))
        x = sensors[0].mean + product(drawn, root(sensors[0].context_covariance))
        # As many numbers for each sensor: what one round draws shifts no other.
        noise = state["sensing"].standard_normal((n, rows, self.dim))
        y = np.full((n, rows, self.dim), np.nan)
        belief = np.empty_like(x)
        for j, sensor in enumerate(sensors):
            now, d = which == j, sensor.dim
            spread = product(noise[now][:, :, :d], root(sensor.sensing_covariance))
            seen = sensor.offset + product(x[now], sensor.sensing.T.copy()) + spread
            view = sensor.view(np.ones(d, dtype=bool))
            y[now, :, :d] = seen
            belief[now] = view.constant + product(seen, view.gain.T.copy())
        latent, values = (
            np.einsum("tnd,nd->tn", self._each(u), self.coefficients) for u in (x, belief)
        )
        rewards = latent + self.reward_scale * state["reward"].standard_normal((n, self.n_arms))
        return Rounds(y, rewards, values, latent, sensors=which)

    def _each(self, rows: Floats) -> Floats:
        """Return rows for each arm, (T, n_arms, d)."""
        return np.broadcast_to(rows, (len(rows), self.n_arms, rows.shape[2]))

    def describe(self) -> dict[str, Any]:
        """Return the sizes and settings of the world, and a digest of its arrays."""
        arrays = [
            array
            for one in self._list
            for array in (
                one.sensing,
                one.context_covariance,
                one.sensing_covariance,
                one.mean,
                one.offset,
            )
        ]
        return {
            **super().describe(),
            "context_dim": self.context_dim,
            "reward_scale": self.reward_scale,
            "shared_context": self.shared_context,
            "sensors": list(self.sensors),
            "sha256": digest(self.coefficients, *arrays),
        }

    def __getstate__(self) -> dict[str, Any]:
        kept = ("coefficients", "reward_scale", "shared_context")
        return {"sensors": dict(self.sensors), **{name: getattr(self, name) for name in kept}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        SensorWorld.__init__(self, **state)

    def __repr__(self) -> str:
        shared = ", shared context" if self.shared_context else ""
        sizes = f"{self.n_arms} arms, context_dim={self.context_dim}, dim={self.dim}{shared}"
        count = f"{len(self.sensors)} sensor{'s' if len(self.sensors) > 1 else ''}"
        return f"LinearWorld({count}, {sizes})"


def _named(sensors: object) -> dict[SensorName, Sensor]:
    """Return the sensors by name, all of one context."""
    if isinstance(sensors, Mapping):
        named = {sensor_name(name): sensor for name, sensor in sensors.items()}
    elif isinstance(sensors, Sensor):
        named = {0: sensors}
    elif checks.is_listing(sensors) and not isinstance(sensors, str | bytes):
        named = dict(enumerate(sensors))
    else:
        raise InvalidValue(f"sensors must be a Sensor, or several, got {shown(sensors)}")
    if not named:
        raise InvalidValue("sensors must have at least one Sensor, got none")
    for name, sensor in named.items():
        if not isinstance(sensor, Sensor):
            raise InvalidValue(f"sensors[{name!r}] must be a Sensor, got {shown(sensor)}")
        first_name, first = next(iter(named.items()))
        if sensor.context_dim != first.context_dim:
            raise InvalidValue(
                f"sensors must all have one context_dim, but sensors[{name!r}] has "
                f"{sensor.context_dim} and sensors[{first_name!r}] has {first.context_dim}"
            )
        for name_of in ("mean", "context_covariance"):
            if not np.array_equal(getattr(sensor, name_of), getattr(first, name_of)):
                raise InvalidValue(
                    f"sensors see one context, so that {name_of} must be the same for all, "
                    f"but sensors[{name!r}] has another"
                )
    return named
