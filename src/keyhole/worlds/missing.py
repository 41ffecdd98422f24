"""`MissingWorld`: another world, some entries of whose observations are hidden at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from keyhole import checks
from keyhole.errors import InvalidValue, shown
from keyhole.moments import Moments
from keyhole.seeds import Seed, Streams, streams
from keyhole.worlds.rounds import Floats, Rounds, World

Fill: TypeAlias = Literal["predict", "mean", "zero", "drop"]


@dataclass(frozen=True, eq=False)
class MissingWorld(World):
    """A world each entry of whose observations is hidden with probability `share`.

    fill: what is put in its place. "predict": the best linear prediction from the entries that are
    seen, by the mean and covariance of all rounds before, as `Bandit(missing="predict")` does.
    "mean": their mean. "zero": 0. "drop": an observation with a gap is not used at all; it becomes
    0, which tells arms nothing of each other. Values, and so regret, are of the whole observation.

    centre: added to every entry before any is hidden, as real features are seldom about zero. A
    constant, which is never hidden, then comes before them: `dim` is larger by one.

    >>> import keyhole as kh
    >>> whole = kh.LinearWorld.random(n_arms=3, context_dim=2, observation_dim=6, seed=1)
    >>> kh.MissingWorld(whole, share=0.3).dim
    6
    """

    world: World
    share: float
    fill: Fill = "predict"
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
        return self.world.dim + (self.centre != 0.0)

    @property
    def eta(self) -> Floats:
        """The parameter of the best linear prediction from whole observations."""
        eta = self.world.eta
        if self.centre == 0.0:
            return eta
        return np.column_stack([-self.centre * eta.sum(axis=1), eta])

    @property
    def noise_scale(self) -> float:
        """R of the world itself: what gaps add to it depends on how they are filled."""
        return self.world.noise_scale

    @property
    def shared_context(self) -> bool:  # type: ignore[override]
        """Whether all arms see one observation."""
        return self.world.shared_context

    def rounds(self, n: int, seed: Seed | Streams = None) -> Rounds:
        """The next n rounds of some streams, or the first n of a seed."""
        source = streams(seed)
        made = self.world.rounds(n, source)
        y = made.observations + self.centre
        y[source["missing"].random(y.shape) < self.share] = np.nan
        used = np.ones((*y.shape[:2], 1))
        # What was seen in earlier blocks of these streams.
        seen: Moments = source.kept.setdefault(self, Moments.empty(self.world.dim))
        if self.fill == "predict":
            seen.fill_rounds(y)
            np.nan_to_num(y, copy=False, nan=0.0)  # what was never seen
        elif self.fill == "mean":
            _fill_means(seen, y)
        elif self.fill == "zero":
            np.nan_to_num(y, copy=False, nan=0.0)
        else:
            dropped = np.isnan(y).any(axis=2)
            y[dropped], used[dropped] = 0.0, 0.0
        if self.centre != 0.0:
            y = np.concatenate([used, y], axis=2)
        return replace(made, observations=y)

    def describe(self) -> dict[str, Any]:
        """The world's, and what is hidden of it."""
        return _described(self, self.world)


@dataclass(frozen=True)
class RandomMissingWorld:
    """A recipe for worlds with gaps: a world is drawn from another recipe for each replication.

    >>> import keyhole as kh
    >>> recipe = kh.RandomLinearWorld(n_arms=3, context_dim=2, observation_dim=6)
    >>> kh.RandomMissingWorld(recipe, share=0.3).draw(1).fill
    'predict'
    """

    recipe: Any
    share: float
    fill: Fill = "predict"
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
        return int(self.recipe.dim) + (self.centre != 0.0)

    def draw(self, seed: Seed | Streams = None) -> MissingWorld:
        """One world."""
        world = self.recipe.draw(seed)
        return MissingWorld(world, share=self.share, fill=self.fill, centre=self.centre)

    def describe(self) -> dict[str, Any]:
        """The recipe's, and what is hidden."""
        return _described(self, self.recipe)


def _check(gaps: MissingWorld | RandomMissingWorld) -> None:
    """Check the settings, and put plain numbers in their place."""
    share = checks.number("share", gaps.share, least=0.0, most=1.0)
    object.__setattr__(gaps, "share", share)
    object.__setattr__(gaps, "centre", checks.number("centre", gaps.centre))
    if not isinstance(gaps.fill, str) or gaps.fill not in get_args(Fill):
        kinds = ", ".join(get_args(Fill))
        raise InvalidValue(f"fill must be one of {kinds}, got {shown(gaps.fill)}")


def _described(gaps: MissingWorld | RandomMissingWorld, source: Any) -> dict[str, Any]:
    inner = source.describe()
    return {
        **inner,
        "kind": f"{type(gaps).__name__} of {inner.get('kind', type(source).__name__)}",
        "dim": gaps.dim,
        "missing_share": gaps.share,
        "missing_fill": gaps.fill,
        "centre": gaps.centre,
    }


def _fill_means(seen: Moments, y: Floats) -> None:
    """Put the mean of all rounds before in place of each NaN of (T, n, d)."""
    for rows in y:
        before = seen.mean
        seen.add(rows)
        np.copyto(rows, before, where=np.isnan(rows))
