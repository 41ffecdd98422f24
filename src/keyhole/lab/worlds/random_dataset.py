"""`RandomDatasetWorld`: a labelled table with a new sensing matrix in each replication."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from keyhole import checks
from keyhole.core import Floats, Seed, Streams, streams
from keyhole.errors import InvalidValue, MissingExtra, install_line, shown
from keyhole.lab.tables import Dataset
from keyhole.lab.worlds.covariance import frozen
from keyhole.lab.worlds.dataset import DatasetWorld, check_table, described
from keyhole.lab.worlds.describing import digest

Rewards = Literal["logistic", "linear"]
Sensing = Literal["bernoulli", "coordinates"]


@dataclass(frozen=True)
class RandomDatasetWorld:
    """A recipe for `DatasetWorld`s over one table, each with another 0/1 sensing matrix.

    Parameters
    ----------
    data : Dataset
        The table.
    dim : int
        The length of an observation.
    rewards : {"logistic", "linear"}, default "logistic"
        "logistic" is x'mu_i plus noise, with mu_i from a logistic regression of class i against the
        rest (eq:reward22). "linear" is 1 for the right answer and 0 for any other.
    sensing : {"bernoulli", "coordinates"}, default "bernoulli"
        "bernoulli" is a matrix of entries 0 or 1 with probability 1/2. "coordinates" is a selection
        of `dim` features, unchanged.
    sensing_scale : float, default 0.1
        The standard deviation of the sensing noise.
    reward_scale : float, default 1
        The standard deviation of the noise in logistic rewards.

    Examples
    --------
    >>> import keyhole as kh
    >>> wine = kh.datasets.load("wine").prepared()
    >>> recipe = kh.RandomDatasetWorld(wine, dim=6, sensing="coordinates")
    >>> recipe.draw(seed=1).eta.shape
    (3, 6)
    """

    data: Dataset
    dim: int
    rewards: Rewards = "logistic"
    sensing: Sensing = "bernoulli"
    sensing_scale: float = 0.1
    reward_scale: float = 1.0

    def __post_init__(self) -> None:
        check_table(self.data)
        for name in ("sensing_scale", "reward_scale"):
            object.__setattr__(self, name, checks.real(name, getattr(self, name), min_value=0.0))
        for name, kinds in {"rewards": get_args(Rewards), "sensing": get_args(Sensing)}.items():
            given = getattr(self, name)
            if not isinstance(given, str) or given not in kinds:
                allowed = " or ".join(map(repr, kinds))
                raise InvalidValue(f"{name} must be {allowed}, got {shown(given)}")
        dim = checks.integer("dim", self.dim)
        if self.sensing == "coordinates":
            checks.integer("dim", dim, max_value=self.data.features.shape[1])
        object.__setattr__(self, "dim", dim)

    @property
    def n_arms(self) -> int:
        """The number of arms: one for each class."""
        return len(self.data.classes)

    @cached_property
    def coefficients(self) -> Floats | None:
        """mu, (n_arms, context_dim), of the logistic rewards."""
        return logistic_parameters(self.data) if self.rewards == "logistic" else None

    def draw(self, seed: Seed | Streams = None) -> DatasetWorld:
        """Draw a world: the table with one random sensing matrix."""
        rng, context_dim = streams(seed)["instance"], self.data.features.shape[1]
        if self.sensing == "coordinates":
            lens: Floats = np.eye(context_dim)[rng.permutation(context_dim)[: self.dim]]
        else:
            lens = np.rint(rng.random((self.dim, context_dim)))
        return DatasetWorld(
            self.data,
            sensing=lens,
            coefficients=self.coefficients,
            sensing_scale=self.sensing_scale,
            reward_scale=self.reward_scale,
        )

    def describe(self) -> dict[str, Any]:
        """Return the settings of the recipe, and digests of its table and its fit."""
        names = ("dim", "rewards", "sensing", "sensing_scale", "reward_scale")
        settings = {name: getattr(self, name) for name in names}
        if self.coefficients is not None:
            settings["coefficients_sha256"] = digest(self.coefficients)
        return {"kind": type(self).__name__, **settings, "data": described(self.data)}


def logistic_parameters(data: Dataset) -> Floats:
    """Return mu_i, (n_classes, features), from logistic regressions of a class against the rest.

    The regression has a constant, as is usual. A reward x'mu_i leaves it out.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ModuleNotFoundError:
        raise MissingExtra(
            "logistic rewards need scikit-learn, which is not installed: " + install_line("lab")
        ) from None
    fits = [
        LogisticRegression(tol=1e-6, max_iter=1000).fit(data.features, data.labels == i).coef_[0]
        for i in range(len(data.classes))
    ]
    return frozen(np.array(fits))
