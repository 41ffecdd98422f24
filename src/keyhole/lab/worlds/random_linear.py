"""`RandomLinearWorld`: a recipe for random linear worlds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.core import Seed, Streams, streams
from keyhole.lab.worlds.distributions import Name, draw_of
from keyhole.lab.worlds.linear import LinearWorld

# Larger sizes are typing errors: no machine has the memory.
MAX_SIZE = 10**6


@dataclass(frozen=True, kw_only=True)
class RandomLinearWorld:
    """A recipe for linear worlds: `simulate` draws one from it for each replication.

    Sensing entries and coefficients are standard normal. Covariances are the identity times a scale
    squared.

    Parameters
    ----------
    n_arms : int
        The number of arms.
    context_dim : int
        The length of a hidden context.
    dim : int
        The length of an observation.
    shared_parameter : bool, default False
        Use one mu for all arms.
    shared_context : bool, default False
        Use one context for all arms.
    context_scale, sensing_scale : float, default 1
        The standard deviations of each entry of the context and of the sensing noise.
    reward_scale : float, default 1
        The standard deviation of the reward's noise.
    context_distribution, sensing_distribution, reward_distribution : str, default "normal"
        The distributions of contexts, sensing noise and reward noise; see `LinearWorld`.
    """

    n_arms: int
    context_dim: int
    dim: int
    shared_parameter: bool = False
    shared_context: bool = False
    context_scale: float = 1.0
    sensing_scale: float = 1.0
    reward_scale: float = 1.0
    context_distribution: Name = "normal"
    sensing_distribution: Name = "normal"
    reward_distribution: Name = "normal"

    def __post_init__(self) -> None:
        for name in ("n_arms", "context_dim", "dim"):
            size = checks.integer(name, getattr(self, name), max_value=MAX_SIZE)
            object.__setattr__(self, name, size)
        for name in ("context_scale", "sensing_scale", "reward_scale"):
            object.__setattr__(self, name, checks.real(name, getattr(self, name), min_value=0.0))
        for name in ("shared_parameter", "shared_context"):
            object.__setattr__(self, name, checks.flag(name, getattr(self, name)))
        for name in ("context_distribution", "sensing_distribution", "reward_distribution"):
            draw_of(name, getattr(self, name))

    def draw(self, seed: Seed | Streams = None) -> LinearWorld:
        """Draw one world."""
        rng = streams(seed)["instance"]
        sensing = rng.standard_normal((self.dim, self.context_dim))
        count = 1 if self.shared_parameter else self.n_arms
        coefficients = rng.standard_normal((count, self.context_dim))
        return LinearWorld(
            sensing=sensing,
            coefficients=np.tile(coefficients, (self.n_arms // count, 1)),
            context_covariance=np.eye(self.context_dim) * self.context_scale**2,
            sensing_covariance=np.eye(self.dim) * self.sensing_scale**2,
            reward_scale=self.reward_scale,
            shared_context=self.shared_context,
            context_distribution=self.context_distribution,
            sensing_distribution=self.sensing_distribution,
            reward_distribution=self.reward_distribution,
        )

    def describe(self) -> dict[str, Any]:
        """Return the settings of the recipe."""
        return {"kind": type(self).__name__, **asdict(self)}
