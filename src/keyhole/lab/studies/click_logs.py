"""Simulated logs with rewards of 0 or 1, their running truths, and normal intervals over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from keyhole.core import Floats, Ints
from keyhole.evaluation import Logged
from keyhole.lab.studies.thompson_logs import (
    FACTORS,
    SimulatedLog,
    fixed_value,
    learning_propensity,
    targets,
)


class ClickLog(NamedTuple):
    """A log with rewards of 0 or 1, and the chances of a reward."""

    log: Logged
    chance: Floats  # (n, K)
    means: Floats  # (K,), chances at a new context
    source: SimulatedLog


def clicks(made: SimulatedLog, rng: np.random.Generator) -> ClickLog:
    """Return a log with the same choices and rewards of 0 or 1.

    The chance of a reward is Phi(value / 2). The posterior is that of the normal rewards, which
    only makes the logged choices: confidence sequences need no right model.

    Parameters
    ----------
    made : SimulatedLog
        A log with normal rewards.
    rng : Generator
        Source of the rewards.
    """
    log = made.log
    chance = ndtr(made.values / 2.0)
    reward = rng.random(log.n_rounds) < chance[np.arange(log.n_rounds), log.chosen]
    clicked = Logged(
        arms=log.arms,
        chosen=log.chosen,
        probability=log.probability,
        reward=reward.astype(float),
        mean=log.mean,
        width=log.width,
        dispersion=1.0,
        epsilon=log.epsilon,
        probabilities=log.propensity,
    )
    # The mean of Phi(a + b z) over a standard normal z is Phi(a / sqrt(1 + b^2)).
    spread = np.sqrt(1.0 + (made.eta[:, 1:] ** 2).sum(axis=1) / 4.0)
    return ClickLog(clicked, chance, ndtr(made.eta[:, 0] / 2.0 / spread), made)


def running_value(made: ClickLog, target: str) -> Floats:
    """Return the mean value of a target over the rounds so far, (n,).

    Parameters
    ----------
    made : ClickLog
        The log.
    target : str
        Name of the target.
    """
    if target in FACTORS:
        return _running((learning_propensity(made.log, target) * made.chance).sum(axis=1))
    return np.full(made.log.n_rounds, fixed_value(made.means, made.source, target))


def running_gain(made: ClickLog, target: str) -> Floats:
    """Return the mean gain of a target over the logged policy in the rounds so far, (n,).

    Parameters
    ----------
    made : ClickLog
        The log.
    target : str
        Name of the target.
    """
    assert made.log.propensity is not None
    gain: Floats = running_value(made, target) - _running(
        (made.log.propensity * made.chance).sum(axis=1)
    )
    return gain


def target_propensity(made: ClickLog, target: str) -> Floats:
    """Return the probability of each arm under a target, (n, K).

    Parameters
    ----------
    made : ClickLog
        The log.
    target : str
        Name of the target.
    """
    log = made.log
    if target in FACTORS:
        return learning_propensity(log, target)
    if target == "uniform":
        return np.full((log.n_rounds, log.n_arms), 1.0 / log.n_arms)
    propensity = np.zeros((log.n_rounds, log.n_arms))
    propensity[:, targets(made.source)[target].arm] = 1.0
    return propensity


def normal_bounds(made: ClickLog, target: str, looks: Ints) -> tuple[Floats, Floats]:
    """Return the ends of the normal 95% interval of IPS at each look, as if it were the only one.

    Parameters
    ----------
    made : ClickLog
        The log.
    target : str
        Name of the target.
    looks : ndarray of int
        Numbers of rounds.
    """
    log, row = made.log, np.arange(made.log.n_rounds)
    weight = target_propensity(made, target)[row, log.chosen] / log.probability
    terms = weight * log.reward
    mean = np.cumsum(terms)[looks - 1] / looks
    square = np.cumsum(terms * terms)[looks - 1] / looks
    reach = 1.96 * np.sqrt(np.maximum(square - mean**2, 0.0) / looks)
    return mean - reach, mean + reach


def _running(terms: Floats) -> Floats:
    mean: Floats = np.cumsum(terms) / np.arange(1, len(terms) + 1)
    return mean
