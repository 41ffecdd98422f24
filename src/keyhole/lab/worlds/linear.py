"""`LinearWorld`: hidden contexts, observed through a noisy linear map (eq:reward, eq:obmodel).

r_i = x_i' mu_i + e_i, and only y_i = A x_i + xi_i is observed of x_i.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import (
    Floats,
    Ints,
    Seed,
    Sensor,
    Streams,
    choice_probabilities,
    expected_largest,
)
from keyhole.core.kernels import NormalModel
from keyhole.errors import InvalidValue
from keyhole.lab.worlds import best_observer, drawing
from keyhole.lab.worlds.correlated import largest_of
from keyhole.lab.worlds.covariance import covariance, frozen, root, whitening
from keyhole.lab.worlds.describing import digest
from keyhole.lab.worlds.distributions import Name, draw_of, is_subgaussian
from keyhole.lab.worlds.rounds import Rounds, World
from keyhole.lab.worlds.sensors import SensorWorld

# The number of rounds of a Monte Carlo estimate, used where no closed form is known.
ROUNDS = 100_000
# A standard deviation below this share of the total is 0 up to rounding: squares of doubles cancel
# to about 1e-16, and their roots to 1e-8.
ROUNDING = 1e-7


@dataclass(frozen=True, eq=False, init=False, repr=False)
class LinearWorld(World):
    """A world of arms with hidden contexts, observed through y = A x + noise.

    Derived attributes are `prediction` (D), `eta`, `observation_covariance`, `noise_scale`, `r1`,
    `r2`, `optimality` (p_i) and `best_value`. In a normal world the linear prediction y'eta is the
    expectation of the reward given y. In others it is still the best linear prediction, and its
    error is uncorrelated with y but not independent of it: a nonlinear observer could do better,
    and the theory does not apply (`r2`).

    With `sensors` in place of `sensing`, every round has one of several sensors, drawn at random:
    the world is then a `SensorWorld`, which takes besides only `coefficients`, `reward_scale` and
    `shared_context`.

    The distributions are normal, uniform, rademacher, truncated-normal, mixture and student-t
    (heavy tails, outside the paper's assumptions). They have mean zero and exactly the given
    covariance.

    Parameters
    ----------
    sensing : array_like of shape (dim, context_dim)
        A, with dim below, equal to or above context_dim.
    coefficients : array_like of shape (n_arms, context_dim)
        mu. Equal rows make a shared parameter.
    context_covariance : array_like, default 1
        The covariance of x, possibly correlated or singular. A number is that multiple of the
        identity.
    sensing_covariance : array_like, default 1
        The covariance of the noise in y, given in the same way. 0 with sensing=I is the fully
        observed bandit.
    reward_scale : float, default 1
        The standard deviation of the reward's noise.
    shared_context : bool, default False
        Whether all arms have one context.
    context_distribution, sensing_distribution, reward_distribution : str, default "normal"
        The distributions of contexts, sensing noise and reward noise, by name.
    sensors : Sensor, or sequence or mapping of Sensor, optional
        One or several sensors, each with its sensing matrix and covariances.

    Raises
    ------
    InvalidValue
        If a setting has the wrong shape or range, or a distribution is unknown.
    """

    sensing: Floats
    coefficients: Floats
    context_covariance: Floats
    sensing_covariance: Floats
    reward_scale: float
    shared_context: bool
    context_distribution: Name
    sensing_distribution: Name
    reward_distribution: Name

    def __new__(cls, **settings: Any) -> Any:
        """Return a world of one sensor or, with `sensors`, of several."""
        if settings.get("sensors") is None:
            return object.__new__(cls)
        allowed = ("sensors", "coefficients", "reward_scale", "shared_context")
        if other := [name for name in settings if name not in allowed]:
            raise InvalidValue(f"{other[0]} is that of the sensors, and is not given beside them")
        return SensorWorld(**settings)

    def __init__(
        self,
        *,
        sensing: ArrayLike | None = None,
        coefficients: ArrayLike,
        context_covariance: ArrayLike = 1.0,
        sensing_covariance: ArrayLike = 1.0,
        reward_scale: float = 1.0,
        shared_context: bool = False,
        context_distribution: Name = "normal",
        sensing_distribution: Name = "normal",
        reward_distribution: Name = "normal",
        sensors: Sensor | Sequence[Sensor] | Mapping[Any, Sensor] | None = None,  # noqa: ARG002
    ) -> None:
        if sensing is None:
            raise InvalidValue("sensing must be given, or sensors in place of it")
        lens = checks.floats("sensing", sensing)
        mu = checks.floats("coefficients", coefficients)
        if lens.ndim != 2 or 0 in lens.shape:
            raise InvalidValue(f"sensing must be a matrix (dim, context_dim), got {lens.shape}")
        dim, context_dim = lens.shape
        if mu.ndim != 2 or mu.shape[1:] != (context_dim,) or not len(mu):
            raise InvalidValue(
                f"coefficients must have shape (n_arms, {context_dim}), got {mu.shape}"
            )
        checked = {
            "sensing": lens,
            "coefficients": mu,
            "context_covariance": covariance("context_covariance", context_covariance, context_dim),
            "sensing_covariance": covariance("sensing_covariance", sensing_covariance, dim),
            "reward_scale": checks.real("reward_scale", reward_scale, min_value=0.0),
            "shared_context": checks.flag("shared_context", shared_context),
            "context_distribution": context_distribution,
            "sensing_distribution": sensing_distribution,
            "reward_distribution": reward_distribution,
        }
        for name, value in checked.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            if name.endswith("distribution"):
                draw_of(name, value)  # type: ignore[arg-type] # which it is about to check
            object.__setattr__(self, name, value)

    @classmethod
    def random(cls, *, seed: Seed = None, **settings: Any) -> LinearWorld:
        """Return a world with standard normal sensing and coefficients.

        Parameters
        ----------
        seed : int, numpy.random.SeedSequence or None
            The seed of sensing and coefficients.
        **settings
            The settings of `RandomLinearWorld`.

        Examples
        --------
        >>> import keyhole as kh
        >>> world = kh.LinearWorld.random(n_arms=5, context_dim=20, dim=10, seed=1)
        >>> world.eta.shape
        (5, 10)
        """
        from keyhole.lab.worlds.random_linear import RandomLinearWorld

        return RandomLinearWorld(**settings).draw(seed)

    # -- derived quantities -----------------------------------------------------------------------

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return len(self.coefficients)

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return len(self.sensing)

    @property
    def context_dim(self) -> int:
        """The length of a hidden context."""
        return int(self.sensing.shape[1])

    @cached_property
    def observation_covariance(self) -> Floats:
        """The covariance of y, A Sx A' + Sxi."""
        spread = self.sensing @ self.context_covariance @ self.sensing.T
        return frozen(spread + self.sensing_covariance)

    @cached_property
    def prediction(self) -> Floats:
        """D = Sx A' (A Sx A' + Sxi)^-1, (context_dim, dim): D y is the best linear prediction of x.

        Equal to the paper's (A' Sxi^-1 A + Sx^-1)^-1 A' Sxi^-1 where that exists.
        """
        cross = self.context_covariance @ self.sensing.T
        whiten = whitening(self.observation_covariance)
        return frozen(cross @ whiten.T @ whiten)

    @cached_property
    def eta(self) -> Floats:
        """eta_i = D' mu_i, (n_arms, dim), the part of mu_i that can be learned from y (eq:etai)."""
        first, twin = self.distinct
        return frozen((self.coefficients[first] @ self.prediction)[twin])

    @cached_property
    def distinct(self) -> tuple[Ints, Ints]:
        """The first arm of each distinct parameter, and each arm's index among those.

        Arms with equal coefficients are computed once, or alike, so that they tie exactly.
        """
        _, first, twin = np.unique(
            self.coefficients, axis=0, return_index=True, return_inverse=True
        )
        if len(first) == self.n_arms:  # keep their order, so that no array is permuted
            return np.arange(self.n_arms), np.arange(self.n_arms)
        return first, twin.reshape(-1)

    @cached_property
    def predicted_covariance(self) -> Floats:
        """The covariance of y'eta over arms that share a context, (n_arms, n_arms)."""
        whiten = whitening(self.observation_covariance)
        half = whiten @ self.sensing @ self.context_covariance @ self.coefficients.T
        return frozen(half.T @ half)

    @cached_property
    def unseen_context(self) -> Floats:
        """The covariance of x given y, Sx - D A Sx."""
        missed = np.eye(self.context_dim) - self.prediction @ self.sensing
        noise = self.prediction @ self.sensing_covariance @ self.prediction.T
        # As a sum of two squares nothing cancels, and no variance is negative.
        return frozen(missed @ self.context_covariance @ missed.T + noise)

    @cached_property
    def unseen_covariance(self) -> Floats:
        """The covariance of x'mu - y'eta over arms, (n_arms, n_arms); diagonal for own contexts."""
        spread = self.coefficients @ self.unseen_context @ self.coefficients.T
        return frozen(spread if self.shared_context else np.diag(np.diag(spread)))

    @property
    def r1(self) -> float:
        """R1, the sub-Gaussian constant of the reward's noise (eq:r1); infinite for student-t."""
        return self.reward_scale if is_subgaussian(self.reward_distribution) else np.inf

    @cached_property
    def unseen_scale(self) -> float:
        """The largest standard deviation of x'mu - y'eta over arms, for any distributions."""
        return float(np.sqrt(np.diag(self.unseen_covariance).max().clip(min=0.0)))

    @cached_property
    def r2(self) -> float:
        """R2, the theory's sub-Gaussian constant of x'mu - y'eta given y (ass:subg).

        In a normal world it is `unseen_scale`, the smallest constant of that assumption. It is 0
        where y determines x'mu exactly. Otherwise it is infinite: a constant exists only if
        E[x'mu - y'eta | y] = 0 for every y, and with other distributions that expectation is in
        general not linear in y. (By symmetry it can be: A = I, and contexts and sensing noise of
        one distribution and scale. Such exceptions are not detected.)

        A policy with v="oracle" uses `noise_scale`, which is always finite.
        """
        if self.is_normal or self.unseen_scale <= ROUNDING * self.latent_scale:
            return self.unseen_scale
        return np.inf

    @property
    def latent_scale(self) -> float:
        """The largest standard deviation of x'mu over arms."""
        spread = self.coefficients @ self.context_covariance @ self.coefficients.T
        return float(np.sqrt(np.diag(spread).max().clip(min=0.0)))

    @cached_property
    def noise_scale(self) -> float:
        """sqrt(reward_scale^2 + unseen_scale^2), the noise scale of a policy with v="oracle".

        This is the standard deviation of a reward about its best linear prediction y'eta, the
        largest over arms. In a normal world with sub-Gaussian rewards it is also the theory's R,
        the lower limit for v. In other worlds R is infinite, and this number is finite.
        """
        return float(np.hypot(self.reward_scale, self.unseen_scale))

    @property
    def is_normal(self) -> bool:
        """True if contexts and sensing noise, and so all but the reward's own noise, are normal."""
        return self.context_distribution == self.sensing_distribution == "normal"

    @property
    def is_subgaussian(self) -> bool:
        """True if contexts and sensing noise are sub-Gaussian with their variance as constant."""
        kinds = (self.context_distribution, self.sensing_distribution)
        return all(is_subgaussian(kind) for kind in kinds)

    @property
    def has_independent_normal_values(self) -> bool:
        """True if the arms' y'eta are independent normals, and integrals over them are exact."""
        return self.is_normal and not self.shared_context

    @cached_property
    def value_scales(self) -> Floats:
        """The standard deviation of each arm's y'eta."""
        return frozen(np.sqrt(np.diag(self.predicted_covariance)))

    @cached_property
    def optimality(self) -> tuple[Floats, Floats]:
        """p_i, the probability that arm i is optimal (def:astar), and its standard error.

        Exact (error 0) for a single arm, for independent normal values, and for up to four
        different arms of a shared normal context. Otherwise counted over 100,000 rounds.
        """
        if self.n_arms == 1:
            return np.ones(1), np.zeros(1)
        if self.has_independent_normal_values:
            exact = choice_probabilities(np.zeros(self.n_arms), self.value_scales)
            return exact, np.zeros(self.n_arms)
        if self.is_normal:
            first, twin = self.distinct
            together = largest_of(self.predicted_covariance[np.ix_(first, first)])
            if together is not None:  # arms of one parameter share its probability equally
                return (together / np.bincount(twin))[twin], np.zeros(self.n_arms)
        wins = np.zeros(self.n_arms)
        for values in self._value_blocks():
            best = values == values.max(axis=1, keepdims=True)
            wins += (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
        # Divide once: a sum of many quotients may exceed 1.
        p = np.minimum(wins / ROUNDS, 1.0)
        # An arm without a win may still have a probability of about 1 / ROUNDS.
        return p, np.sqrt(p * (1.0 - p) / ROUNDS).clip(min=1.0 / ROUNDS)

    @cached_property
    def best_value(self) -> tuple[float, float]:
        """The expected value of the best arm, E max_i y_i'eta_i, and its standard error."""
        if self.has_independent_normal_values:
            return expected_largest(np.zeros(self.n_arms), self.value_scales), 0.0
        best = np.concatenate([values.max(axis=1) for values in self._value_blocks()])
        return float(best.mean()), float(best.std() / np.sqrt(ROUNDS))

    def _value_blocks(self) -> Iterator[Floats]:
        """Yield the values of ROUNDS rounds in blocks."""
        state = self.start(Streams(0))
        for _ in range(ROUNDS // 1000):
            yield self.rounds(state, 1000).values

    def expected_values(self, y: Floats) -> Floats | None:
        """Return E[x_i | y_i]'mu_i, the best observer's expectation of each arm, (n, n_arms).

        In a normal world it is y'eta. It has a formula if contexts and sensing noise are normal,
        rademacher or mixture, and is None otherwise.

        Parameters
        ----------
        y : ndarray of shape (n, n_arms, dim)
            The observations.
        """
        return best_observer.expected_values(self, y)

    @cached_property
    def roots(self) -> tuple[Floats, Floats]:
        """The roots of the covariances of contexts and of sensing noise."""
        return root(self.context_covariance), root(self.sensing_covariance)

    @cached_property
    def normal_model(self) -> NormalModel:
        """The matrices that draw rounds if contexts and sensing noise are normal."""
        return drawing.normal_model(self)

    def rounds(self, state: Streams, n: int) -> Rounds:
        """Return the next n rounds; see `World.rounds`.

        Parameters
        ----------
        state : Streams
            The streams that `start` returned.
        n : int
            The number of rounds.
        """
        make = drawing.normal_rounds if self.is_normal else drawing.drawn_rounds
        return make(self, n, state)

    def describe(self) -> dict[str, Any]:
        """Return the sizes and settings of the world, and a digest of its arrays."""
        settings = {f.name: getattr(self, f.name) for f in fields(self)}
        arrays = {k: v for k, v in settings.items() if isinstance(v, np.ndarray)}
        plain = {k: v for k, v in settings.items() if k not in arrays}
        sizes = {"context_dim": self.context_dim}
        return {
            **super().describe(),
            **sizes,
            **plain,
            "sha256": digest(*(arrays[name] for name in sorted(arrays))),
        }

    def __repr__(self) -> str:
        shared = ", shared context" if self.shared_context else ""
        sizes = f"{self.n_arms} arms, context_dim={self.context_dim}, dim={self.dim}{shared}"
        return f"LinearWorld({sizes}, noise_scale={self.noise_scale:.3g})"
