"""Logs of a bandit, for the tests of evaluation."""

from typing import Any

import numpy as np

import keyhole as kh
from keyhole.evaluation import Logged


def online_columns(
    policy: kh.Policy, *, n_arms: int = 3, rounds: int = 200, dim: int = 2, seed: int = 1
) -> dict[str, Any]:
    """Play a bandit online, and return the columns of its log."""
    rng = np.random.default_rng(seed)
    eta = rng.normal(size=(n_arms, dim))
    bandit = kh.Bandit(policy, arms=n_arms, dim=dim, seed=seed)
    rows: dict[str, list[Any]] = {
        name: []
        for name in (
            *("chosen", "probability", "reward", "mean", "width"),
            *("optimism", "dispersion", "observation"),
        )
    }
    parameter_of = np.arange(n_arms) if policy.sharing == "per-arm" else np.zeros(n_arms, np.int64)
    for _ in range(rounds):
        y = rng.normal(size=dim)
        mean, width = bandit.posterior.predict(parameter_of, y[None])
        optimism, dispersion = bandit.posterior.explorations(policy.rule)
        decision = bandit.choose(y)
        reward = float(y @ eta[int(decision.arm)] + rng.normal())
        values = (decision.arm, decision.probability, reward, mean[0], width[0])
        more = (optimism[parameter_of], dispersion[parameter_of], y)
        for name, value in zip(rows, (*values, *more), strict=True):
            rows[name].append(value)
        bandit.learn(decision, reward)
    return {
        "arms": tuple(range(n_arms)),
        **{name: np.array(column) for name, column in rows.items()},
        "epsilon": policy.rule.epsilon,
        "sharing": policy.sharing,
        "prior_precision": policy.prior_precision,
    }


def random_columns(rounds: int = 400, n_arms: int = 4, seed: int = 1) -> dict[str, Any]:
    """Return columns with known probabilities, a model and rewards 0 or 1."""
    rng = np.random.default_rng(seed)
    propensity = rng.dirichlet(np.full(n_arms, 3.0), rounds)
    chosen = (rng.random((rounds, 1)) > propensity.cumsum(axis=1)).sum(axis=1).clip(max=n_arms - 1)
    return {
        "arms": tuple("ABCDEFGH"[:n_arms]),
        "chosen": chosen,
        "probability": propensity[np.arange(rounds), chosen],
        "reward": (rng.random(rounds) < 0.2 + 0.15 * chosen).astype(float),
        "mean": rng.random((rounds, n_arms)),
        "probabilities": propensity,
    }


def small() -> Logged:
    """Return three rounds that are computed by hand in the tests."""
    return Logged(
        arms=["A", "B"],
        chosen=[0, 1, 1],
        probability=[0.5, 0.25, 0.8],
        reward=[1.0, 0.0, 2.0],
        mean=[[0.5, 1.0], [0.0, 0.5], [1.0, 1.0]],
        probabilities=[[0.5, 0.5], [0.75, 0.25], [0.2, 0.8]],
    )
