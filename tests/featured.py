"""Bandits whose learner has an intercept, units or missing entries, and rows for them."""

from typing import Any

import numpy as np

import keyhole as kh
from tests.bandits import bandit_of

RNG = np.random.default_rng(1)
MIX = RNG.standard_normal((4, 4))
EFFECTS = RNG.standard_normal((3, 4))
ALL: dict[str, Any] = {"intercept": True, "standardize": True, "missing": "predict"}


def observations(n: int, seed: int = 2) -> np.ndarray:
    """Correlated, far from zero, and in very different units."""
    x: np.ndarray = np.random.default_rng(seed).standard_normal((n, 4)) @ MIX.T
    return x * [1.0, 10.0, 0.1, 1.0] + [5.0, -20.0, 0.0, 1.0]


def with_missing(y: np.ndarray, share: float, seed: int = 3) -> np.ndarray:
    missing = np.random.default_rng(seed).random(y.shape) < share
    return np.where(missing, np.nan, y)


def made(**options: Any) -> kh.Bandit:
    return bandit_of(kh.ThompsonSampling(v=1.0), arms=3, dim=4, seed=8, **options)


def play(bandit: kh.Bandit, ys: np.ndarray, scale: Any = 1.0) -> list[Any]:
    """Arms chosen when the same features come in other units; rewards are those of the features."""
    noise, arms = np.random.default_rng(5).standard_normal(len(ys)), []
    for t, y in enumerate(ys):
        decision = bandit.choose(y * scale)
        arms.append(decision.arm)
        whole = np.nan_to_num(y) / [1.0, 10.0, 0.1, 1.0]
        bandit.learn(decision, float(whole @ EFFECTS[int(decision.arm)] + noise[t]))
    return arms


def learned(bandit: kh.Bandit, ys: np.ndarray) -> None:
    for t, y in enumerate(ys):
        bandit.learn(bandit.choose(y, among=[t % 3]), float(t % 7))


def played(added: float, **options: Any) -> tuple[list[Any], list[float], kh.Bandit]:
    """Arms and scores where a number is added to every reward, and the bandit at the end."""
    bandit, rng = made(**options), np.random.default_rng(8)
    arms, scores = [], []
    for y in rng.normal([1.0, -2.0, 0.0, 5.0], [1.0, 0.3, 2.0, 1.0], size=(150, 4)):
        decision = bandit.choose(y)
        reward = y @ [0.5, 1.0, -0.2, 0.1] * int(decision.arm) + rng.standard_normal()
        bandit.learn(decision, float(reward) + added)
        arms.append(decision.arm)
        scores.append(decision.score or 0.0)
    return arms, scores, bandit
