"""`MissingWorld`: another world with observation entries missing at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.core import Floats, Seed, Sensor, SensorName, Streams
from keyhole.errors import InvalidValue, shown
from keyhole.lab.worlds.rounds import Rounds, World


@dataclass(frozen=True, eq=False)
class MissingWorld(World):
    """A world with each entry of an observation missing (NaN) with probability `share`.

    The learner handles missing entries: `Learner(policy, missing="predict")`. Values, and so
    regret, are of the complete observation.

    Parameters
    ----------
    world : World
        The underlying world.
    share : float
        The probability with which each entry is missing.
    centre : float, default 0
        Added to every entry before any is removed, as real features are seldom about zero. A
        learner then needs an intercept.

    Examples
    --------
    >>> import keyhole as kh
    >>> whole = kh.LinearWorld.random(n_arms=3, context_dim=2, dim=6, seed=1)
    >>> kh.MissingWorld(whole, share=0.5).sample(1, seed=2).observations.shape
    (1, 3, 6)
    """

    world: World
    share: float
    centre: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.world, World):
            raise InvalidValue(f"world must be a World, got {type(self.world).__name__}")
        _check(self)

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return self.world.n_arms

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return self.world.dim

    @property
    def eta(self) -> Floats:
        """The coefficients of the best linear prediction from complete observations."""
        return self.world.eta

    @property
    def noise_scale(self) -> float:
        """The noise scale of the underlying world.

        The noise that missing entries add depends on the learner.
        """
        return self.world.noise_scale

    @property
    def shared_context(self) -> bool:  # type: ignore[override]
        """True if all arms have one observation."""
        return self.world.shared_context

    @property
    def sensors(self) -> Mapping[SensorName, Sensor]:  # type: ignore[override]
        """The sensors of the underlying world."""
        return self.world.sensors

    def start(self, source: Streams) -> tuple[Any, Streams]:
        """Return the state of the underlying world, and the streams."""
        return self.world.start(source), source

    def rounds(self, state: tuple[Any, Streams], n: int) -> Rounds:
        """Return the next n rounds; see `World.rounds`.

        Parameters
        ----------
        state : tuple
            The state that `start` returned.
        n : int
            The number of rounds.
        """
        whole, source = state
        made = self.world.rounds(whole, n)
        y = made.observations + self.centre
        y[source["missing"].random(y.shape) < self.share] = np.nan
        return replace(made, observations=y)

    def describe(self) -> dict[str, Any]:
        """Return the description of the underlying world, with the share of missing entries."""
        return _described(self, self.world)


@dataclass(frozen=True)
class RandomMissingWorld:
    """A recipe for worlds with missing entries: each underlying world is drawn from another recipe.

    Parameters
    ----------
    recipe : recipe of worlds
        The recipe of the underlying worlds, such as `RandomLinearWorld`.
    share : float
        The probability with which each entry is missing, as in `MissingWorld`.
    centre : float, default 0
        Added to every entry, as in `MissingWorld`.

    Examples
    --------
    >>> import keyhole as kh
    >>> recipe = kh.RandomLinearWorld(n_arms=3, context_dim=2, dim=6)
    >>> kh.RandomMissingWorld(recipe, share=0.3).draw(1).share
    0.3
    """

    recipe: Any
    share: float
    centre: float = 0.0

    def __post_init__(self) -> None:
        needed = ("draw", "n_arms", "dim", "describe")
        if isinstance(self.recipe, type) or not all(hasattr(self.recipe, name) for name in needed):
            raise InvalidValue(
                f"recipe must have {', '.join(needed)}, as RandomLinearWorld has, "
                f"got {shown(self.recipe)}"
            )
        _check(self)

    @property
    def n_arms(self) -> int:
        """The number of arms in every world of the recipe."""
        return int(self.recipe.n_arms)

    @property
    def dim(self) -> int:
        """The length of an observation in every world of the recipe."""
        return int(self.recipe.dim)

    def draw(self, seed: Seed | Streams = None) -> MissingWorld:
        """Draw one world."""
        world = self.recipe.draw(seed)
        return MissingWorld(world, share=self.share, centre=self.centre)

    def describe(self) -> dict[str, Any]:
        """Return the description of the underlying recipe, with the share of missing entries."""
        return _described(self, self.recipe)


def _check(hidden: MissingWorld | RandomMissingWorld) -> None:
    """Check the settings, and replace them by plain numbers."""
    share = checks.real("share", hidden.share, min_value=0.0, max_value=1.0)
    object.__setattr__(hidden, "share", share)
    object.__setattr__(hidden, "centre", checks.real("centre", hidden.centre))


def _described(hidden: MissingWorld | RandomMissingWorld, source: Any) -> dict[str, Any]:
    inner = source.describe()
    return {
        **inner,
        "kind": f"{type(hidden).__name__} of {inner.get('kind', type(source).__name__)}",
        "missing_share": hidden.share,
        "centre": hidden.centre,
    }
