"""The error of an estimate from a log with exact propensities, beside one with those of 8 draws.

A service decides for 5 arms in dim 10 by Thompson sampling, and its rewards wait for their end: a
log of decisions by one state, as a day of an experiment is. What would arms drawn at random have
earned? Inverse propensity scoring (IPS) divides by the probabilities of the log. The other estimate
takes the same decisions and rewards, and the share of 8 draws in which the chosen arm has won; the
first of them is the decision itself, as in BanditDB, so that no share is zero.

With p the exact probability, E[1 / share] = (1 - (1 - p)^8) / p: rare choices count too little,
however long the log is. The noise of rewards, contexts and choices is common to both and falls with
the number of rounds n, so that the ratio of the errors is about s / (|b| sqrt(n)).

The log begins after 20 rounds: arms differ in their probabilities, and few of these are tiny. After
100 rounds, and for another policy that takes the best arm with probability 0.8, they go down to
1e-6; a few rounds then make up much of the exact estimate's error, too, and the ratio was 0.50 at
1,000 rounds, 0.23 at 5,000, 0.11 at 20,000 (5 repetitions) and 0.22 +- 0.09 at 50,000 (20).
"""

from __future__ import annotations

import math
import tempfile
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.serving import LOOP
from keyhole.core import choice_probabilities
from keyhole.online import rows
from keyhole.service import DecideRequest, Service

Floats = NDArray[np.float64]

DRAWS = 8
# Rounds that are learned before the log begins, until arms differ in their probabilities.
WARM_UP = 20
DAY = 86_400.0
REWARD = {"default": 0.0, "wait": "P1D", "learn": "at_end"}
# The other policy: any arm.
POLICY = 0.2
TARGET = 0.1
WORLDS = 5


class World:
    """Clicks of 5 arms: P(r = 1 | y, arm) is logistic in y.

    Parameters
    ----------
    seed : int
        Seed of the arms' coefficients, the contexts and the clicks.
    """

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.coefficients = self.random.standard_normal((5, 10)) / math.sqrt(10)

    def contexts(self, n: int) -> Floats:
        """Return n contexts, (n, 10)."""
        return self.random.standard_normal((n, 10))

    def chances(self, y: Floats) -> Floats:
        """Return the probability of a click of each arm, (n, 5)."""
        chances: Floats = 1.0 / (1.0 + np.exp(-y @ self.coefficients.T))
        return chances

    def value(self, n: int = 2_000_000) -> float:
        """Return the mean reward of the other policy."""
        total = 0.0
        for _ in range(20):
            chances = self.chances(self.contexts(n // 20))
            total += float((POLICY * chances).sum(axis=1).mean())
        return total / 20


class Logged(NamedTuple):
    """A log as columns: chosen arm, exact probability, reward, and what scores are made of."""

    y: Floats  # (n, 10)
    chosen: NDArray[np.int64]
    probability: Floats
    reward: Floats
    mean: Floats  # (n, 5)
    width: Floats  # (n, 5), that of a draw


class Clock:
    """A clock that is set by hand."""

    time = 1e9

    def __call__(self) -> float:
        """Return the time."""
        return self.time


def logged(world: World, n: int) -> Logged:
    """Return n rounds out of the log of a service, in which one state has decided.

    Parameters
    ----------
    world : World
        Where contexts and rewards come from.
    n : int
        How many rounds.
    """
    clock = Clock()
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(folder, synchronous="OFF", now=clock) as service,
    ):
        with mock.patch("secrets.token_bytes", bytes):  # the key of the draws, here fixed
            loop = service.create("home", {**LOOP, "reward": REWARD})
        _play(service, world, 0, WARM_UP)
        clock.time += 2 * DAY
        service.tick()
        before = loop.version
        _play(service, world, WARM_UP, n)
        return _columns([rows.decoded(body) for _, _, body in service.store.rows(1, before)])


def _play(service: Service, world: World, first: int, n: int) -> None:
    """Decide n rounds, and send their rewards."""
    loop, y = service.loop("home"), world.contexts(n)
    chances, uniforms = world.chances(y), world.random.random(n)
    for k in range(n):
        event = f"event-{first + k}"
        made = service.decide("home", DecideRequest(context=y[k].tolist(), event_id=event))
        place = LOOP["arms"].index(made.answer.action)
        loop.reward(event, float(uniforms[k] < chances[k, place]))
    service.wait(loop.unit)


def _columns(found: list[Any]) -> Logged:
    """Return the rows of decisions and rewards as columns."""
    decisions = [row for row in found if isinstance(row, rows.Decision)]
    came = {row.event: row.value for row in found if isinstance(row, rows.Outcome)}
    if len(came) != len(decisions) or any(isinstance(row, rows.Reward) for row in found):
        raise RuntimeError("every decision of the log must have a reward that was not learned")
    dispersion = np.array([row.dispersion for row in decisions], dtype=np.float64)
    return Logged(
        np.array([row.y[0] for row in decisions], dtype=np.float64),
        np.array([LOOP["arms"].index(row.arm) for row in decisions]),
        np.array([row.probability for row in decisions], dtype=np.float64),
        np.array([came[row.event] for row in decisions]),
        np.array([row.mean for row in decisions], dtype=np.float64),
        np.array([row.width for row in decisions], dtype=np.float64) * dispersion,
    )


def shares(log: Logged, seed: int) -> Floats:
    """Return the share of `DRAWS` draws in which the chosen arm has won, the decision among them.

    Parameters
    ----------
    log : Logged
        The log.
    seed : int
        Seed of the draws.
    """
    random, wins = np.random.default_rng(seed), np.ones(len(log.chosen))
    for _ in range(DRAWS - 1):
        scores = log.mean + log.width * random.standard_normal(log.mean.shape)
        wins += scores.argmax(axis=1) == log.chosen
    return wins / DRAWS


class Errors(NamedTuple):
    """Errors of both estimates.

    Parameters
    ----------
    exact, drawn : float
        Root mean squared errors at n rounds, over repetitions.
    ratio, error : float
        Their ratio, and its standard error (jackknife).
    bias : float
        The error of the estimate with draws that stays at any n.
    rounds : float
        The number of rounds at which the ratio is `TARGET`.
    """

    exact: float
    drawn: float
    ratio: float
    error: float
    bias: float
    rounds: float


def measure(total: int, n: int) -> Errors:
    """Return the errors of both estimates from logs of n rounds, over `WORLDS` worlds.

    Parameters
    ----------
    total : int
        The rounds of all logs. Those of a world are parts of one.
    n : int
        The rounds of each.
    """
    each = max(total // WORLDS, n) // n * n
    found = [_in_world(World(seed), each, n) for seed in range(1, WORLDS + 1)]
    errors = np.concatenate([one for one, _, _ in found], axis=1)  # (2, repetitions)
    bias = math.sqrt(np.mean([one**2 for _, one, _ in found]))
    parts, ratio = errors.shape[1], _ratio(errors)
    left_out = np.array([_ratio(np.delete(errors, k, axis=1)) for k in range(parts)])
    spread = float(np.square(left_out - left_out.mean()).sum()) * (parts - 1) / parts
    exact, drawn = np.sqrt(np.square(errors).mean(axis=1)).tolist()
    rounds = float(np.mean([one for _, _, one in found])) / (TARGET * bias) ** 2
    return Errors(exact, drawn, ratio, math.sqrt(spread), bias, rounds)


def _in_world(world: World, total: int, n: int) -> tuple[Floats, float, float]:
    """Return errors, (2, total / n), the bias of draws, and the variance of a round.

    Bias and variance are those that follow from the world and the exact probabilities of all arms,
    and not those of a sample, whose tails are long: with p and the other policy's q, mean reward m
    of each arm, they are the means of sum q m (1 - p)^8 and of sum q^2 m / p, less the value's
    square. The variance is less by TARGET^2 times that with draws, since the ratio is `TARGET` at n
    where s^2 / n = TARGET^2 (b^2 + t^2 / n).
    """
    log = logged(world, total)
    means, value = world.chances(log.y), world.value()
    chances = choice_probabilities(log.mean, log.width)
    own = np.arange(total), log.chosen
    if not np.allclose(chances[own], log.probability, rtol=0.0, atol=1e-12):
        raise RuntimeError("logged probabilities are not those of the logged scores")
    counted = POLICY * log.reward
    estimates = np.stack([counted / log.probability, counted / shares(log, total)])
    bias = float((POLICY * means * (1.0 - chances) ** DRAWS).sum(axis=1).mean())
    variance = float((POLICY**2 * means / chances).sum(axis=1).mean()) - value**2
    errors = estimates.reshape(2, -1, n).mean(axis=2) - value
    return errors, bias, variance - TARGET**2 * float(estimates[1].var())


def _ratio(errors: Floats) -> float:
    exact, drawn = np.square(errors).mean(axis=1)
    return math.sqrt(exact / drawn)
