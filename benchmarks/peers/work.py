"""The work that all libraries are given: streams of rounds, and histories of known posteriors."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, cast

import numpy as np

import keyhole as kh

CELLS = [(5, 10), (5, 20), (5, 80), (30, 20), (100, 20), (1000, 20), (10, 200)]
ALONE = [(10_000, 50), (100_000, 20)]
HORIZON, REPLICATIONS, REGRET_CELL = 2000, 50, (5, 20)
DRAWS, HISTORIES = 4000, (6, 40, 200)


def world(n_arms: int, dim: int) -> kh.LinearWorld:
    """Return a world of one shared context, each entry observed with noise of the same variance.

    R, and so v, is 1, which is given to every library.
    """
    rng = np.random.default_rng(1)
    coefficients = rng.standard_normal((n_arms, dim))
    # x given y has half the variance: |mu|^2 / 2 + reward noise = 1, half of it each.
    coefficients /= np.linalg.norm(coefficients, axis=1, keepdims=True)
    # Earlier versions, which are measured too, call them parameters.
    known = inspect.signature(kh.LinearWorld.__init__).parameters
    name = "coefficients" if "coefficients" in known else "parameters"
    return kh.LinearWorld(
        sensing=np.eye(dim),
        **cast(Any, {name: coefficients}),
        reward_scale=float(np.sqrt(0.5)),
        shared_context=True,
    )


def sampled(world: Any, n: int, seed: int) -> Any:
    """Return the first n rounds of a seed, in this version and in earlier ones."""
    return world.sample(n, seed) if hasattr(world, "sample") else world.rounds(n, seed)


def stream(n_arms: int, dim: int, rounds: int, seed: int = 1) -> dict[str, Any]:
    """Return rounds of that world."""
    made = sampled(world(n_arms, dim), rounds, seed)
    return {"y": made.observations[:, 0], "rewards": made.rewards, "values": made.values}


def replications() -> dict[str, Any]:
    """Return the rounds of all replications."""
    made = [stream(*REGRET_CELL, HORIZON, seed) for seed in range(REPLICATIONS)]
    return {key: np.stack([one[key] for one in made]) for key in made[0]}


def histories() -> tuple[dict[str, Any], list[Any]]:
    """Histories of a few lengths, an observation after each, and the exact choice probabilities."""
    rng, n_arms, dim = np.random.default_rng(3), 4, 5
    given: dict[str, Any] = {"cases": len(HISTORIES), "n_arms": n_arms, "draws": DRAWS}
    exact = []
    for case, length in enumerate(HISTORIES):
        made = sampled(world(n_arms, dim), length, 10 + case)
        ys, arms = made.observations[:, 0], rng.integers(0, n_arms, length)
        # Distinctly unequal scales: a covariance mistaken for its inverse must show.
        ys = ys * np.array([0.3, 0.6, 1.0, 1.5, 2.0])
        rewards, now = made.rewards[np.arange(length), arms], rng.standard_normal(dim)
        for key, value in (("y", ys), ("arms", arms), ("rewards", rewards), ("now", now)):
            given[f"{key}{case}"] = value
        mean, scale = np.empty((2, n_arms))
        for arm in range(n_arms):
            own = arms == arm
            covariance = np.linalg.inv(np.eye(dim) + ys[own].T @ ys[own])
            mean[arm] = now @ covariance @ ys[own].T @ rewards[own]
            scale[arm] = np.sqrt(now @ covariance @ now)
        exact.append(kh.choice_probabilities(mean, scale))
    return given, exact


def save(folder: Path, name: str, arrays: dict[str, Any]) -> Path:
    """Write a file that any environment can read, and return its path."""
    path = folder / f"{name}.npz"
    np.savez(path, **arrays)
    return path
