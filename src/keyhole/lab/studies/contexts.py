"""Recipes that change one thing about a `RandomDatasetWorld`: its constant, or its contexts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from keyhole.core import Floats, Seed, Streams
from keyhole.lab.worlds import (
    DatasetWorld,
    LinearWorld,
    RandomDatasetWorld,
    Rounds,
    World,
    product,
)


def changed(recipe: RandomDatasetWorld, **settings: Any) -> RandomDatasetWorld:
    """Return a recipe with other sensing and the same rewards, which are not fitted again."""
    made = replace(recipe, **settings)
    vars(made)["parameters"] = recipe.parameters  # where `cached_property` would put them
    return made


@dataclass(frozen=True, eq=False)
class ConstantWorld(World):
    """A data set whose observations end with a 1, for policy and oracle alike.

    The table must be centred, as `Dataset.prepared` leaves it: the least squares fit on (y, 1) is
    then that on y, with the mean reward as its constant.
    """

    world: DatasetWorld

    shared_context = True

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return self.world.n_arms

    @property
    def dim(self) -> int:
        """The length of an observation, with the constant."""
        return self.world.dim + 1

    @cached_property
    def eta(self) -> Floats:
        """The regression oracle with a constant."""
        return np.column_stack([self.world.eta, self.world.expected_rewards.mean(axis=0)])

    @cached_property
    def noise_scale(self) -> float:
        """R: the root of the mean squared error of the oracle's prediction, the largest arm's."""
        world = self.world
        # The constant explains the mean of what the oracle without one leaves over.
        left = world.expected_rewards - world.sensed @ world.eta.T
        noise = world.sensing_scale**2 * (world.eta**2).sum(axis=1)
        own = 0.0 if world.parameters is None else world.reward_scale**2
        return float(np.sqrt((left.var(axis=0) + noise).max() + own))

    def rounds(self, state: Streams, n: int) -> Rounds:
        """Return the next n rounds; see `World.rounds`."""
        made = self.world.rounds(state, n)
        y = np.concatenate([made.observations, np.ones((n, 1, 1))], axis=2)
        return replace(made, observations=y, values=product(y[:, 0], self.eta.T))


@dataclass(frozen=True)
class WithConstant:
    """The worlds of a recipe, with a constant beside what is seen."""

    recipe: RandomDatasetWorld

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return self.recipe.n_arms

    @property
    def dim(self) -> int:
        """The length of an observation, with the constant."""
        return self.recipe.dim + 1

    def draw(self, seed: Seed | Streams = None) -> ConstantWorld:
        """One world."""
        return ConstantWorld(self.recipe.draw(seed))

    def describe(self) -> dict[str, Any]:
        """The recipe's settings, and what was changed."""
        return {**self.recipe.describe(), "kind": type(self).__name__}


@dataclass(frozen=True)
class NormalContexts:
    """The worlds of a recipe, with normal contexts of the table's covariance in place of its rows.

    Sensing, parameters and noises are the recipe's. Rewards must be logistic: 0/1 rewards belong
    to rows.
    """

    recipe: RandomDatasetWorld

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return self.recipe.n_arms

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return self.recipe.dim

    def draw(self, seed: Seed | Streams = None) -> LinearWorld:
        """One world."""
        world = self.recipe.draw(seed)
        assert world.parameters is not None
        return LinearWorld(
            sensing=world.sensing,
            parameters=world.parameters,
            context_covariance=np.cov(world.data.features.T, bias=True),
            sensing_covariance=world.sensing_scale**2,
            reward_scale=world.reward_scale,
            shared_context=True,
        )

    def describe(self) -> dict[str, Any]:
        """The recipe's settings, and what was changed."""
        return {**self.recipe.describe(), "kind": type(self).__name__}
