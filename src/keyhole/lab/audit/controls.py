"""Controls: a scope in which a claim is broken on purpose, and its test must contradict it.

A control simulates a world that is not the one that is assumed, or takes constants of a world that
is not the one that is simulated. Sizes are those of the audit, so that a control shows its power.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from keyhole.core import EpsilonGreedy, Greedy, ThompsonSampling, Uniform
from keyhole.lab.audit.scope import Scope
from keyhole.lab.worlds import LinearWorld


@dataclass(frozen=True)
class Control:
    """A way to break a claim.

    Parameters
    ----------
    name : str
        The property that is broken.
    broken : callable
        Returns the broken scope of a scope.
    """

    name: str
    broken: Callable[[Scope], Scope]


def _elsewhere(scope: Scope, world: LinearWorld) -> Scope:
    """Return the scope of the same claims and policy in another world."""
    return replace(scope, world=world, assumed=scope.stated, outside=False, policy=scope.learner)


def _claiming(scope: Scope, assumed: LinearWorld) -> Scope:
    """Return the scope of other claims in the same world, with the same policy."""
    return replace(scope, assumed=assumed, outside=False, policy=scope.learner)


def _noisier(factor: float) -> Callable[[Scope], Scope]:
    def broken(scope: Scope) -> Scope:
        rest = (factor * scope.world.noise_scale) ** 2 - scope.world.unseen_scale**2
        return _elsewhere(scope, replace(scope.world, reward_scale=float(np.sqrt(rest))))

    return broken


def _heavy(scope: Scope) -> Scope:
    heavy = replace(scope.world, context_distribution="student-t", sensing_distribution="student-t")
    return _elsewhere(scope, heavy)


def _heavy_rewards(scope: Scope) -> Scope:
    scale = scope.world.noise_scale
    heavy = replace(scope.world, reward_distribution="student-t", reward_scale=scale)
    return _elsewhere(scope, heavy)


def _signs(scope: Scope) -> Scope:
    signs = replace(
        scope.world, context_distribution="rademacher", sensing_distribution="rademacher"
    )
    return _elsewhere(scope, signs)


def _blind(scope: Scope) -> Scope:
    """Leave a fifth of the sensing noise, and no signal, in the direction with the least of it."""
    values, vectors = np.linalg.eigh(scope.world.sensing_covariance)
    seen = np.eye(scope.world.dim) - np.outer(vectors[:, 0], vectors[:, 0])
    less = 0.96 * values[0] * np.outer(vectors[:, 0], vectors[:, 0])
    blind = replace(
        scope.world,
        sensing=seen @ scope.world.sensing,
        sensing_covariance=scope.world.sensing_covariance - less,
    )
    return _elsewhere(scope, blind)


def _reversed(scope: Scope) -> Scope:
    return _claiming(scope, replace(scope.stated, coefficients=-scope.stated.coefficients))


def _shifted(scope: Scope) -> Scope:
    """Stretch every eta by three standard errors of its estimate at the end."""
    errors = np.sqrt((scope.traced.errors[:, -1] ** 2).mean(axis=0))  # (parameters,)
    lengths = np.linalg.norm(scope.stated.eta, axis=1)
    # Arms of one parameter stay arms of one parameter.
    factors = 1.0 + 3.0 * errors / np.maximum(lengths, 1e-12)
    stretched = scope.stated.coefficients * factors[:, None]
    return _claiming(scope, replace(scope.stated, coefficients=stretched))


def _random_choices(scope: Scope) -> Scope:
    return replace(scope, policy=EpsilonGreedy(0.5, sharing=scope.learner.sharing))


def _with_v(factor: float) -> Callable[[Scope], Scope]:
    def broken(scope: Scope) -> Scope:
        v = factor * scope.stated.noise_scale
        return replace(scope, policy=ThompsonSampling(v=v, sharing=scope.learner.sharing))

    return broken


def _crowd(scope: Scope) -> Scope:
    crowd = LinearWorld.random(n_arms=20, context_dim=10, dim=10, seed=scope.seed)
    return replace(scope, world=crowd, assumed=None, outside=False, policy=Greedy())


HEAVY = Control("Student t contexts and sensing noise", _heavy)
HEAVY_REWARDS = Control("Student t reward noise of scale R", _heavy_rewards)
SIGNS = Control("contexts and sensing noise of random signs", _signs)
TRIPLE_NOISE = Control("rewards with three times the noise R", _noisier(3.0))
LOUDEST = Control("rewards with ten times the noise R", _noisier(10.0))
LOUD = Control("rewards with four times the noise R", _noisier(4.0))
BLIND = Control("a direction with 1/25 of the sensing noise's variance, and no signal", _blind)
REVERSED = Control("eta of the opposite sign", _reversed)
SHIFTED = Control("eta longer by three standard errors", _shifted)
EPSILON = Control("epsilon-greedy, half of the choices at random", _random_choices)
RANDOM = Control("arms chosen at random", lambda s: replace(s, policy=Uniform()))
TIMID = Control("Thompson sampling with v = R / 100", _with_v(0.01))
BOLD = Control("Thompson sampling with v = 50 R", _with_v(50.0))
CROWD = Control("Greedy among 20 arms in 10 dimensions", _crowd)
