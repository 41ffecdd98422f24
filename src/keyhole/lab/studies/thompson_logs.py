"""Simulated logs of Thompson sampling with exact propensities, and the truth about them.

A world has a constant and two normal features, normal rewards of variance 1, and coefficients that
are normal with a given standard deviation. Thompson sampling with v = 1 plays it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from keyhole.core import (
    Floats,
    Ints,
    Posterior,
    Rule,
    ThompsonSampling,
    choice_probabilities,
    kernels,
)
from keyhole.evaluation import FixedArm, Logged

DIM = 3
# The targets, in words.
TARGETS = {
    "fixed arm": "the first arm in every round",
    "best arm": "the arm with the largest mean reward in every round",
    "uniform": "every arm with the same probability",
    "v/2": "Thompson sampling with half of v",
    "2v": "Thompson sampling with twice v",
}
FACTORS = {"v/2": 0.5, "2v": 2.0}


class SimulatedLog(NamedTuple):
    """A log of Thompson sampling, and the truth about it."""

    log: Logged
    values: Floats  # (n, K), expected rewards
    eta: Floats  # (K, d), coefficients


@dataclass(frozen=True, kw_only=True)
class ThompsonLogs:
    """A recipe of logs; each log has coefficients of its own.

    Parameters
    ----------
    n_arms : int
        Number of arms.
    signal : float
        Standard deviation of each coefficient.
    epsilon : float
        Probability of a uniform choice, the floor of the logged policy.
    """

    n_arms: int
    signal: float
    epsilon: float

    def describe(self) -> dict[str, Any]:
        """Return the settings by name."""
        return {"kind": type(self).__name__, "dim": DIM, **asdict(self)}

    def draw(self, rng: np.random.Generator, rounds: int) -> SimulatedLog:
        """Return a log.

        Parameters
        ----------
        rng : Generator
            Source of all random numbers.
        rounds : int
            Number of rounds.
        """
        y = np.ones((rounds, DIM))
        y[:, 1:] = rng.normal(size=(rounds, DIM - 1))
        eta = self.signal * rng.normal(size=(self.n_arms, DIM))
        values = y @ eta.T
        rewards = values + rng.normal(size=values.shape)
        rule = Rule(dispersion=1.0, epsilon=self.epsilon)
        chosen = np.empty(rounds, np.int64)
        posterior = Posterior(n_parameters=self.n_arms, dim=DIM)
        block = kernels.Block(
            y[:, None], rewards, rng.normal(size=values.shape), rng.random((rounds, 2))
        )
        chooser = kernels.Chooser(posterior.core, rule, np.arange(self.n_arms), False)
        kernels.play(chooser, block, chosen)
        reward = rewards[np.arange(rounds), chosen]
        return SimulatedLog(_logged(y, chosen, reward, rule, self.n_arms), values, eta)


def _logged(y: Floats, chosen: Ints, reward: Floats, rule: Rule, n_arms: int) -> Logged:
    """Return the log: scores before each round, and the exact probabilities they imply."""
    posterior = Posterior(n_parameters=n_arms, dim=DIM)
    out = np.empty((4, len(y), n_arms))
    explorer = kernels.Explorer(posterior.core, rule)
    kernels.retrace(explorer, np.arange(n_arms), y[:, None], chosen, reward, out)
    propensity = choice_probabilities(out[0], out[1], epsilon=rule.epsilon)
    return Logged(
        arms=range(n_arms),
        chosen=chosen,
        probability=propensity[np.arange(len(y)), chosen],
        reward=reward,
        mean=out[0],
        width=out[1],
        dispersion=1.0,
        epsilon=rule.epsilon,
        probabilities=propensity,
        observation=y,
    )


def targets(made: SimulatedLog) -> dict[str, Any]:
    """Return the targets by name, as `evaluate` takes them."""
    return {
        "fixed arm": FixedArm(0),
        "best arm": FixedArm(int(made.eta[:, 0].argmax())),
        "uniform": "uniform",
        **{name: ThompsonSampling(v=factor) for name, factor in FACTORS.items()},
    }


def truth(made: SimulatedLog, target: str) -> float:
    """Return the value of a target: at a new context, or over these rounds if it learns.

    Parameters
    ----------
    made : SimulatedLog
        The log.
    target : str
        Name of the target.
    """
    if target in FACTORS:
        return float((learning_propensity(made.log, target) * made.values).sum(axis=1).mean())
    return fixed_value(made.eta[:, 0], made, target)


def learning_propensity(log: Logged, target: str) -> Floats:
    """Return the probabilities of Thompson sampling with another v, (n, K).

    Parameters
    ----------
    log : Logged
        The log.
    target : str
        Name of the target, of `FACTORS`.
    """
    assert log.mean is not None
    assert log.width is not None
    return choice_probabilities(log.mean, FACTORS[target] * log.width)


def fixed_value(means: Floats, made: SimulatedLog, target: str) -> float:
    """Return the value of a target that does not learn.

    Parameters
    ----------
    means : ndarray of shape (K,)
        Mean reward of each arm.
    made : SimulatedLog
        The log.
    target : str
        Name of the target.
    """
    if target == "uniform":
        return float(means.mean())
    return float(means[targets(made)[target].arm])
