"""Recipes that change one property of a `RandomDatasetWorld`: its constant, or its contexts."""

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
    """Return a recipe with other sensing and the same rewards, which are not fitted again.

    Parameters
    ----------
    recipe : RandomDatasetWorld
        The recipe to change.
    **settings
        The settings to replace.

    Returns
    -------
    RandomDatasetWorld
        The changed recipe.
    """
    made = replace(recipe, **settings)
    vars(made)["coefficients"] = recipe.coefficients  # where `cached_property` would store them
    return made


@dataclass(frozen=True, eq=False)
class ConstantWorld(World):
    """A data set with a 1 at the end of each observation, for policy and oracle alike.

    Parameters
    ----------
    world : DatasetWorld
        The underlying world. Its table must be centred, as by `Dataset.prepared`: the least squares
        fit on (y, 1) is then that on y, with the mean reward as its constant.
    """

    world: DatasetWorld

    shared_context = True

    @property
    def n_arms(self) -> int:
        """The number of arms."""
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
        """R, the root mean squared error of the oracle's prediction, the largest over arms."""
        world = self.world
        # The constant explains the mean of the residuals of the oracle without one.
        left = world.expected_rewards - world.sensed @ world.eta.T
        noise = world.sensing_scale**2 * (world.eta**2).sum(axis=1)
        own = 0.0 if world.coefficients is None else world.reward_scale**2
        return float(np.sqrt((left.var(axis=0) + noise).max() + own))

    def rounds(self, state: Streams, n: int) -> Rounds:
        """Return the next n rounds; see `World.rounds`.

        Parameters
        ----------
        state : Streams
            The streams that `start` returned.
        n : int
            The number of rounds.
        """
        made = self.world.rounds(state, n)
        y = np.concatenate([made.observations, np.ones((n, 1, 1))], axis=2)
        return replace(made, observations=y, values=product(y[:, 0], self.eta.T))


@dataclass(frozen=True)
class WithConstant:
    """A recipe that adds a constant to the observations of another recipe's worlds.

    Parameters
    ----------
    recipe : RandomDatasetWorld
        The recipe of the underlying worlds.
    """

    recipe: RandomDatasetWorld

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return self.recipe.n_arms

    @property
    def dim(self) -> int:
        """The length of an observation, with the constant."""
        return self.recipe.dim + 1

    def draw(self, seed: Seed | Streams = None) -> ConstantWorld:
        """Draw one world."""
        return ConstantWorld(self.recipe.draw(seed))

    def describe(self) -> dict[str, Any]:
        """Return the settings of the underlying recipe, with the kind of this one."""
        return {**self.recipe.describe(), "kind": type(self).__name__}


@dataclass(frozen=True)
class NormalContexts:
    """A recipe with normal contexts of the table's covariance in place of the table's rows.

    Sensing, coefficients and noises are those of the underlying recipe.

    Parameters
    ----------
    recipe : RandomDatasetWorld
        The underlying recipe. Its rewards must be logistic: 0/1 rewards belong to rows.
    """

    recipe: RandomDatasetWorld

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return self.recipe.n_arms

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return self.recipe.dim

    def draw(self, seed: Seed | Streams = None) -> LinearWorld:
        """Draw one world."""
        world = self.recipe.draw(seed)
        assert world.coefficients is not None
        return LinearWorld(
            sensing=world.sensing,
            coefficients=world.coefficients,
            context_covariance=np.cov(world.data.features.T, bias=True),
            sensing_covariance=world.sensing_scale**2,
            reward_scale=world.reward_scale,
            shared_context=True,
        )

    def describe(self) -> dict[str, Any]:
        """Return the settings of the underlying recipe, with the kind of this one."""
        return {**self.recipe.describe(), "kind": type(self).__name__}
