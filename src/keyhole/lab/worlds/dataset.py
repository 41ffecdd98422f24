"""`DatasetWorld`: the rows of a labelled table as patients, each class an arm (eq:reward22)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import Floats, Seed, Streams
from keyhole.errors import InvalidValue
from keyhole.lab.tables import Dataset
from keyhole.lab.worlds.covariance import frozen, whitening
from keyhole.lab.worlds.describing import digest
from keyhole.lab.worlds.products import product
from keyhole.lab.worlds.rounds import Rounds, World


@dataclass(frozen=True, eq=False, init=False, repr=False)
class DatasetWorld(World):
    """A world of patients drawn with replacement from a table, with a context that all arms share.

    Each round has one patient. The regression oracle is the best observer: `eta` is the least
    squares fit of the rewards on y over the whole table, with the exact average over the noise. No
    constant is fitted, as in the model. `latent` values are x'mu, and unknown (NaN) for 0/1
    rewards.

    Parameters
    ----------
    data : Dataset
        The table, usually `prepared`. Its features are the hidden contexts x. Each of its classes
        is an arm, and the right answer for its rows.
    sensing : array_like of shape (dim, context_dim)
        A in y = A x + noise.
    coefficients : array_like of shape (n_arms, context_dim), optional
        mu in rewards x'mu + noise. Without them a reward is 1 for the right answer and 0 for any
        other, and has no noise of its own.
    sensing_scale : float, default 0.1
        The standard deviation of the noise in y.
    reward_scale : float, default 1
        The standard deviation of the noise in rewards x'mu + noise.

    Raises
    ------
    InvalidValue
        If a setting has the wrong type, shape or range.

    Examples
    --------
    >>> import keyhole as kh
    >>> x = [[-1.0, 0.5], [-1.0, -0.5], [1.0, 0.5], [1.0, -0.5]]
    >>> data = kh.Dataset(features=x, labels=["ill", "ill", "well", "well"])
    >>> world = kh.DatasetWorld(data, sensing=[[1, 0]], sensing_scale=0.0)
    >>> data.classes, world.eta.tolist()
    (('ill', 'well'), [[-0.5], [0.5]])
    """

    data: Dataset
    sensing: Floats
    coefficients: Floats | None
    sensing_scale: float
    reward_scale: float

    shared_context = True

    def __init__(
        self,
        data: Dataset,
        *,
        sensing: ArrayLike,
        coefficients: ArrayLike | None = None,
        sensing_scale: float = 0.1,
        reward_scale: float = 1.0,
    ) -> None:
        check_table(data)
        context_dim, n_arms = data.features.shape[1], len(data.classes)
        lens = checks.floats("sensing", sensing)
        if lens.ndim != 2 or lens.shape[1] != context_dim or not len(lens):
            raise InvalidValue(f"sensing must have shape (dim, {context_dim}), got {lens.shape}")
        mu = None if coefficients is None else checks.floats("coefficients", coefficients)
        if mu is not None and mu.shape != (n_arms, context_dim):
            raise InvalidValue(
                f"coefficients must have a row for each of the {n_arms} classes, of "
                f"{context_dim} numbers, got shape {mu.shape}"
            )
        fields = {
            "data": data,
            "sensing": frozen(lens),
            "coefficients": mu if mu is None else frozen(mu),
            "sensing_scale": checks.real("sensing_scale", sensing_scale, min_value=0.0),
            "reward_scale": checks.real("reward_scale", reward_scale, min_value=0.0),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def random(cls, *, seed: Seed = None, **settings: Any) -> DatasetWorld:
        """Return a world with a random sensing matrix.

        Parameters
        ----------
        seed : int, numpy.random.SeedSequence or None
            The seed of the sensing matrix.
        **settings
            The settings of `RandomDatasetWorld`.
        """
        from keyhole.lab.worlds.random_dataset import RandomDatasetWorld

        return RandomDatasetWorld(**settings).draw(seed)

    @property
    def n_arms(self) -> int:
        """The number of arms: one for each class."""
        return len(self.data.classes)

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return len(self.sensing)

    @cached_property
    def sensed(self) -> Floats:
        """A x of every row, (rows, dim)."""
        return frozen(self.data.features @ self.sensing.T)

    @cached_property
    def expected_rewards(self) -> Floats:
        """The expected reward of each arm for each row, (rows, n_arms)."""
        if self.coefficients is not None:
            return frozen(self.data.features @ self.coefficients.T)
        return frozen(np.eye(self.n_arms)[self.data.labels])

    @cached_property
    def eta(self) -> Floats:
        """The regression oracle: least squares of each arm's rewards on y, (n_arms, dim)."""
        moments = self.sensed.T @ self.sensed / len(self.sensed)
        whiten = whitening(moments + self.sensing_scale**2 * np.eye(self.dim))
        cross = self.expected_rewards.T @ self.sensed / len(self.sensed)
        return frozen(cross @ whiten.T @ whiten)

    @cached_property
    def noise_scale(self) -> float:
        """R, the root mean squared error of the oracle's prediction, the largest over arms."""
        missed = np.mean((self.expected_rewards - self.sensed @ self.eta.T) ** 2, axis=0)
        noise = self.sensing_scale**2 * (self.eta**2).sum(axis=1)
        own = 0.0 if self.coefficients is None else self.reward_scale**2
        return float(np.sqrt((missed + noise).max() + own))

    def rounds(self, state: Streams, n: int) -> Rounds:
        """Return the next n patients; see `World.rounds`.

        Parameters
        ----------
        state : Streams
            The streams that `start` returned.
        n : int
            The number of rounds.
        """
        source = state
        rows = (source["context"].random(n) * len(self.data.features)).astype(np.int64)
        y = source["sensing"].standard_normal(out=source.empty("y", (n, 1, self.dim)))
        y *= self.sensing_scale
        y[:, 0] += self.sensed[rows]
        rewards = self.expected_rewards[rows]
        if self.coefficients is None:
            latent = np.full_like(rewards, np.nan)
        else:
            latent = rewards.copy()
            rewards += self.reward_scale * source["reward"].standard_normal(rewards.shape)
        return Rounds(
            observations=y,
            rewards=rewards,
            values=product(y[:, 0], self.eta.T),
            latent=latent,
            labels=self.data.labels[rows],
        )

    def describe(self) -> dict[str, Any]:
        """Return the sizes and settings of the world, and a digest of its arrays."""
        arrays = [self.sensing] if self.coefficients is None else [self.sensing, self.coefficients]
        return {
            **super().describe(),
            "data": described(self.data),
            "rewards": "0/1" if self.coefficients is None else "x'mu + noise",
            "sensing_scale": self.sensing_scale,
            "reward_scale": self.reward_scale,
            "sha256": digest(*arrays),
        }

    def __repr__(self) -> str:
        return f"DatasetWorld({self.data!r}, dim={self.dim}, noise_scale={self.noise_scale:.3g})"


def check_table(data: object) -> None:
    """Raise InvalidValue unless the argument is a `Dataset`."""
    if not isinstance(data, Dataset):
        raise InvalidValue(
            f"data must be a Dataset, such as Dataset(features=..., labels=...) or "
            f"datasets.load('wine').prepared(), got {type(data).__name__}"
        )


def described(data: Dataset) -> dict[str, Any]:
    """Return the properties that identify a table."""
    rows, context_dim = data.features.shape
    return {
        "name": data.name,
        "rows": rows,
        "context_dim": context_dim,
        "classes": [str(name) for name in data.classes],
        "sha256": digest(data.features, data.labels),
    }
