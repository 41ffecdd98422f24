"""`LinearWorld`: hidden contexts, seen through a noisy linear lens (eq:reward, eq:obmodel).

r_i = x_i' mu_i + e_i, and of x_i only y_i = A x_i + xi_i is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    Streams,
    choice_probabilities,
    expected_largest,
)
from keyhole.core.kernels import NormalLaw
from keyhole.errors import InvalidValue
from keyhole.lab.worlds import drawing
from keyhole.lab.worlds.correlated import largest_of
from keyhole.lab.worlds.covariance import covariance, frozen, root, whitening
from keyhole.lab.worlds.distributions import Name, draw_of, is_subgaussian
from keyhole.lab.worlds.identity import digest
from keyhole.lab.worlds.rounds import Rounds, World

# How many rounds an estimate is made from where no closed form is known.
TRIALS = 100_000
# A standard deviation of less than this share of the whole is 0 up to rounding: squares of
# doubles cancel to about 1e-16, and their roots to 1e-8.
ROUNDING = 1e-7


@dataclass(frozen=True, eq=False, init=False, repr=False)
class LinearWorld(World):
    """Arms whose hidden contexts are seen through y = A x + noise.

    sensing: A, (dim, context_dim), with dim below, equal to or above context_dim. parameters: mu,
    (n_arms, context_dim); equal rows make a shared parameter. Covariances may be correlated or
    singular, and a single number means that multiple of the identity; sensing_covariance=0 with
    sensing=I is the fully observed bandit. reward_scale: standard deviation of the reward's noise.
    shared_context: one context for all arms. The distributions, by name, have mean zero and
    exactly the covariance asked for: normal, uniform, rademacher, truncated-normal, mixture,
    student-t (heavy tails, outside the paper's assumptions).

    What is derived: `prediction` (D), `eta`, `observation_covariance`, `noise_scale`, `r1` and
    `r2`, `optimality` (p_i), `best_value`. The linear prediction y'eta is the expectation of
    the reward given y in a normal world. In others it is still the best linear one, and its error
    is uncorrelated with y, but not independent of it: a nonlinear observer could do better, and
    the theory does not apply (`r2`).
    """

    sensing: Floats
    parameters: Floats
    context_covariance: Floats
    sensing_covariance: Floats
    reward_scale: float
    shared_context: bool
    context_distribution: Name
    sensing_distribution: Name
    reward_distribution: Name

    def __init__(
        self,
        *,
        sensing: ArrayLike,
        parameters: ArrayLike,
        context_covariance: ArrayLike = 1.0,
        sensing_covariance: ArrayLike = 1.0,
        reward_scale: float = 1.0,
        shared_context: bool = False,
        context_distribution: Name = "normal",
        sensing_distribution: Name = "normal",
        reward_distribution: Name = "normal",
    ) -> None:
        lens = checks.floats("sensing", sensing)
        mu = checks.floats("parameters", parameters)
        if lens.ndim != 2 or 0 in lens.shape:
            raise InvalidValue(f"sensing must be a matrix (dim, context_dim), got {lens.shape}")
        dim, context_dim = lens.shape
        if mu.ndim != 2 or mu.shape[1:] != (context_dim,) or not len(mu):
            raise InvalidValue(
                f"parameters must have shape (n_arms, {context_dim}), got {mu.shape}"
            )
        settled = {
            "sensing": lens,
            "parameters": mu,
            "context_covariance": covariance("context_covariance", context_covariance, context_dim),
            "sensing_covariance": covariance("sensing_covariance", sensing_covariance, dim),
            "reward_scale": checks.number("reward_scale", reward_scale, least=0.0),
            "shared_context": checks.flag("shared_context", shared_context),
            "context_distribution": context_distribution,
            "sensing_distribution": sensing_distribution,
            "reward_distribution": reward_distribution,
        }
        for name, value in settled.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            if name.endswith("distribution"):
                draw_of(name, value)  # type: ignore[arg-type] # which it is about to check
            object.__setattr__(self, name, value)

    @classmethod
    def random(cls, *, seed: Seed = None, **settings: Any) -> LinearWorld:
        """A world with standard normal sensing and parameters; settings as in `RandomLinearWorld`.

        >>> import keyhole as kh
        >>> world = kh.LinearWorld.random(n_arms=5, context_dim=20, observation_dim=10, seed=1)
        >>> world.eta.shape
        (5, 10)
        """
        from keyhole.lab.worlds.random_linear import RandomLinearWorld

        return RandomLinearWorld(**settings).draw(seed)

    # -- what follows from it ---------------------------------------------------------------------

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return len(self.parameters)

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
        """D = Sx A' (A Sx A' + Sxi)^-1, (context_dim, dim): D y is the best linear guess at x.

        Equal to the paper's (A' Sxi^-1 A + Sx^-1)^-1 A' Sxi^-1 where that exists.
        """
        cross = self.context_covariance @ self.sensing.T
        whiten = whitening(self.observation_covariance)
        return frozen(cross @ whiten.T @ whiten)

    @cached_property
    def eta(self) -> Floats:
        """eta_i = D' mu_i, (n_arms, dim), all of mu_i that can be learned from y (eq:etai)."""
        first, twin = self.distinct
        return frozen((self.parameters[first] @ self.prediction)[twin])

    @cached_property
    def distinct(self) -> tuple[Ints, Ints]:
        """The first arm of each parameter, and for each arm its place among those.

        Arms of one parameter are computed once, or in the same way, so that they tie to the bit.
        """
        _, first, twin = np.unique(self.parameters, axis=0, return_index=True, return_inverse=True)
        if len(first) == self.n_arms:  # in their own order then, so that nothing is moved about
            return np.arange(self.n_arms), np.arange(self.n_arms)
        return first, twin.reshape(-1)

    @cached_property
    def predicted_covariance(self) -> Floats:
        """The covariance of y'eta over arms that share a context, (n_arms, n_arms)."""
        whiten = whitening(self.observation_covariance)
        half = whiten @ self.sensing @ self.context_covariance @ self.parameters.T
        return frozen(half.T @ half)

    @cached_property
    def unseen_context(self) -> Floats:
        """The covariance of x given y, Sx - D A Sx."""
        missed = np.eye(self.context_dim) - self.prediction @ self.sensing
        noise = self.prediction @ self.sensing_covariance @ self.prediction.T
        # As a sum of two squares: nothing cancels, and nothing is below zero.
        return frozen(missed @ self.context_covariance @ missed.T + noise)

    @cached_property
    def unseen_covariance(self) -> Floats:
        """The covariance of x'mu - y'eta over arms, (n_arms, n_arms); diagonal for own contexts."""
        spread = self.parameters @ self.unseen_context @ self.parameters.T
        return frozen(spread if self.shared_context else np.diag(np.diag(spread)))

    @property
    def r1(self) -> float:
        """R1, the sub-Gaussian constant of the reward's noise (eq:r1); infinite for student-t."""
        return self.reward_scale if is_subgaussian(self.reward_distribution) else np.inf

    @cached_property
    def unseen_scale(self) -> float:
        """The largest standard deviation of x'mu - y'eta over arms, whatever the distributions."""
        return float(np.sqrt(np.diag(self.unseen_covariance).max().clip(min=0.0)))

    @cached_property
    def r2(self) -> float:
        """R2, the theory's sub-Gaussian constant of x'mu - y'eta given y (ass:subg).

        In a normal world it is `unseen_scale`, the smallest constant of that assumption. It is 0
        where y tells x'mu exactly. Otherwise it is infinite: a constant exists only if
        E[x'mu - y'eta | y] = 0 for every y, and with other distributions that expectation is in
        general not linear in y. (By symmetry it can be: A = I, and contexts and sensing noise of
        one distribution and scale. Such exceptions are not looked for.)

        A policy that is told a noise scale is told `noise_scale`, which is always finite.
        """
        if self.is_normal or self.unseen_scale <= ROUNDING * self.latent_scale:
            return self.unseen_scale
        return np.inf

    @property
    def latent_scale(self) -> float:
        """The largest standard deviation of x'mu over arms."""
        spread = self.parameters @ self.context_covariance @ self.parameters.T
        return float(np.sqrt(np.diag(spread).max().clip(min=0.0)))

    @cached_property
    def noise_scale(self) -> float:
        """sqrt(reward_scale^2 + unseen_scale^2): what a policy with v="oracle" is told.

        The standard deviation of a reward about its best linear prediction y'eta, the largest over
        arms. In a normal world with sub-Gaussian rewards it is also the theory's R, the lower limit
        for v. In other worlds R is infinite and this number is not.
        """
        return float(np.hypot(self.reward_scale, self.unseen_scale))

    @property
    def is_normal(self) -> bool:
        """Whether contexts and sensing noise are normal, and so all but the reward's own noise."""
        return self.context_distribution == self.sensing_distribution == "normal"

    @property
    def is_subgaussian(self) -> bool:
        """Whether contexts and sensing noise are sub-Gaussian, with their variance as constant."""
        kinds = (self.context_distribution, self.sensing_distribution)
        return all(is_subgaussian(kind) for kind in kinds)

    @property
    def has_independent_normal_values(self) -> bool:
        """Whether the arms' y'eta are independent normals: integrals over them are then exact."""
        return self.is_normal and not self.shared_context

    @cached_property
    def value_scales(self) -> Floats:
        """The standard deviation of each arm's y'eta."""
        return frozen(np.sqrt(np.diag(self.predicted_covariance)))

    @cached_property
    def optimality(self) -> tuple[Floats, Floats]:
        """p_i, the probability that arm i is optimal (def:astar), and its standard error.

        Exact (error 0) for independent normal values, and for up to four different arms of a
        shared normal context, and for a single arm; otherwise counted over 100,000 rounds.
        """
        if self.n_arms == 1:
            return np.ones(1), np.zeros(1)
        if self.has_independent_normal_values:
            exact = choice_probabilities(np.zeros(self.n_arms), self.value_scales)
            return exact, np.zeros(self.n_arms)
        if self.is_normal:
            first, twin = self.distinct
            together = largest_of(self.predicted_covariance[np.ix_(first, first)])
            if together is not None:  # twins of one parameter win by turns
                return (together / np.bincount(twin))[twin], np.zeros(self.n_arms)
        wins = np.zeros(self.n_arms)
        for values in self._trials():
            best = values == values.max(axis=1, keepdims=True)
            wins += (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
        # Divided once: a sum of many quotients may end above 1.
        p = np.minimum(wins / TRIALS, 1.0)
        # An arm that was never seen to win may still win once in so many rounds.
        return p, np.sqrt(p * (1.0 - p) / TRIALS).clip(min=1.0 / TRIALS)

    @cached_property
    def best_value(self) -> tuple[float, float]:
        """The expected value of the best arm, E max_i y_i'eta_i, and its standard error."""
        if self.has_independent_normal_values:
            return expected_largest(np.zeros(self.n_arms), self.value_scales), 0.0
        best = np.concatenate([values.max(axis=1) for values in self._trials()])
        return float(best.mean()), float(best.std() / np.sqrt(TRIALS))

    def _trials(self) -> Iterator[Floats]:
        """The values of TRIALS rounds, a little at a time."""
        state = self.start(Streams(0))
        for _ in range(TRIALS // 1000):
            yield self.rounds(state, 1000).values

    @cached_property
    def roots(self) -> tuple[Floats, Floats]:
        """The roots of the covariances of contexts and of sensing noise."""
        return root(self.context_covariance), root(self.sensing_covariance)

    @cached_property
    def law(self) -> NormalLaw:
        """What rounds are drawn with if contexts and sensing noise are normal."""
        return drawing.normal_law(self)

    def rounds(self, state: Streams, n: int) -> Rounds:
        """Return the next n rounds; see `World.rounds`."""
        make = drawing.normal_rounds if self.is_normal else drawing.drawn_rounds
        return make(self, n, state)

    def describe(self) -> dict[str, Any]:
        """Its sizes and settings, and a digest of its arrays."""
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
