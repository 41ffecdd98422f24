"""`MissingWorld`: another world, some entries of whose observations are hidden at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.core import Floats, Seed, Streams
from keyhole.errors import InvalidValue, shown
from keyhole.lab.worlds.rounds import Rounds, World


@dataclass(frozen=True, eq=False)
class MissingWorld(World):
    """A world each entry of whose observations is hidden (NaN) with probability `share`.

    What is done about hidden entries is the learner's: `Learner(policy, missing="predict")`.
    Values, and so regret, are of the whole observation.

    Parameters
    ----------
    world : World
        The world that is seen in part.
    share : float
        The probability with which each entry is hidden.
    centre : float, default 0
        Added to every entry before any is hidden, as real features are seldom about zero. A
        learner needs an intercept then.

    Examples
    --------
    >>> import keyhole as kh
    >>> whole = kh.LinearWorld.random(n_arms=3, context_dim=2, observation_dim=6, seed=1)
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
        """How many arms there are."""
        return self.world.n_arms

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return self.world.dim

    @property
    def eta(self) -> Floats:
        """The coefficients of the best linear prediction from whole observations."""
        return self.world.eta

    @property
    def noise_scale(self) -> float:
        """That of the world itself: what hidden entries add depends on the learner."""
        return self.world.noise_scale

    @property
    def shared_context(self) -> bool:  # type: ignore[override]
        """Whether all arms see one observation."""
        return self.world.shared_context

    def start(self, source: Streams) -> tuple[Any, Streams]:
        """Return the state of the world that is seen in part, and the streams."""
        return self.world.start(source), source

    def rounds(self, state: tuple[Any, Streams], n: int) -> Rounds:
        """Return the next n rounds; see `World.rounds`."""
        whole, source = state
        made = self.world.rounds(whole, n)
        y = made.observations + self.centre
        y[source["missing"].random(y.shape) < self.share] = np.nan
        return replace(made, observations=y)

    def describe(self) -> dict[str, Any]:
        """The world's, and what is hidden of it."""
        return _described(self, self.world)


@dataclass(frozen=True)
class RandomMissingWorld:
    """A recipe for worlds with hidden entries: each is drawn from another recipe.

    Parameters
    ----------
    recipe : recipe of worlds
        Such as `RandomLinearWorld`.
    share, centre : float
        As in `MissingWorld`.

    Examples
    --------
    >>> import keyhole as kh
    >>> recipe = kh.RandomLinearWorld(n_arms=3, context_dim=2, observation_dim=6)
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
                f"recipe must be one that worlds are drawn from, with {', '.join(needed)}, "
                f"got {shown(self.recipe)}"
            )
        _check(self)

    @property
    def n_arms(self) -> int:
        """How many arms every world of it has."""
        return int(self.recipe.n_arms)

    @property
    def dim(self) -> int:
        """The length of an observation in every world of it."""
        return int(self.recipe.dim)

    def draw(self, seed: Seed | Streams = None) -> MissingWorld:
        """One world."""
        world = self.recipe.draw(seed)
        return MissingWorld(world, share=self.share, centre=self.centre)

    def describe(self) -> dict[str, Any]:
        """The recipe's, and what is hidden."""
        return _described(self, self.recipe)


def _check(hidden: MissingWorld | RandomMissingWorld) -> None:
    """Check the settings, and put plain numbers in their place."""
    share = checks.number("share", hidden.share, least=0.0, most=1.0)
    object.__setattr__(hidden, "share", share)
    object.__setattr__(hidden, "centre", checks.number("centre", hidden.centre))


def _described(hidden: MissingWorld | RandomMissingWorld, source: Any) -> dict[str, Any]:
    inner = source.describe()
    return {
        **inner,
        "kind": f"{type(hidden).__name__} of {inner.get('kind', type(source).__name__)}",
        "missing_share": hidden.share,
        "centre": hidden.centre,
    }
