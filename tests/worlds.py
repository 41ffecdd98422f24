"""One of every kind of world, for the tests that run over all of them."""

from typing import Any, get_args

import numpy as np

import keyhole as kh
from keyhole.lab.worlds import CohortWorld
from keyhole.lab.worlds.distributions import Name

RNG = np.random.default_rng(12)
MIX = RNG.standard_normal((4, 4))
SINGULAR = np.outer([1.0, 2.0, 0.0, -1.0], [1.0, 2.0, 0.0, -1.0])


def linear(dim: int = 3, **settings: Any) -> kh.LinearWorld:
    """Three arms with contexts of 4 numbers."""
    rng = np.random.default_rng(5)
    usual: dict[str, Any] = {
        "sensing": rng.standard_normal((dim, 4)),
        "coefficients": rng.standard_normal((3, 4)),
        "context_covariance": MIX @ MIX.T,
        "sensing_covariance": 0.5,
        "reward_scale": 0.7,
    }
    return kh.LinearWorld(**{**usual, **settings})


def patients(**settings: Any) -> kh.DatasetWorld:
    """Three classes in four features, of which the features say something."""
    rng = np.random.default_rng(8)
    labels = rng.integers(3, size=300)
    features = rng.standard_normal((300, 4)) + np.eye(3, 4)[labels]
    data = kh.Dataset(features=features, labels=np.array(["a", "b", "c"])[labels])
    usual: dict[str, Any] = {"sensing": rng.integers(2, size=(3, 4)), "sensing_scale": 0.3}
    return kh.DatasetWorld(data, **{**usual, **settings})


def cohort() -> CohortWorld:
    """Rows and rewards about zero, so that the oracle's constant is 0."""
    rng = np.random.default_rng(9)
    rows = rng.standard_normal((500, 4))
    rewards = rows @ rng.standard_normal((4, 3)) + rng.standard_normal((500, 3))
    return CohortWorld(rows - rows.mean(axis=0), rewards - rewards.mean(axis=0))


WORLDS: dict[str, kh.World] = {
    "a cohort": cohort(),
    "patients, 0/1 rewards": patients(),
    "patients, rewards of their own": patients(coefficients=RNG.standard_normal((3, 4))),
    "patients, one number seen twice": patients(
        sensing=[[1, 0, 0, 1], [1, 0, 0, 1]], sensing_scale=0.0
    ),
    "less seen than there is": linear(dim=2),
    "as much": linear(dim=4),
    "more": linear(dim=6),
    "shared context": linear(shared_context=True),
    "shared parameter": kh.LinearWorld.random(
        n_arms=3, context_dim=4, dim=3, shared_parameter=True, seed=1
    ),
    "singular contexts": linear(context_covariance=SINGULAR),
    "singular sensing noise": linear(dim=4, sensing_covariance=SINGULAR),
    "noise-free, more seen than there is": linear(dim=6, sensing_covariance=0.0),
    "fully observed": linear(sensing=np.eye(4), sensing_covariance=0.0),
    "nothing seen": linear(sensing=np.zeros((3, 4))),
    "no reward noise": linear(reward_scale=0.0),
    **{
        f"{name}, {'shared' if shared else 'own'} context": linear(
            context_distribution=name,
            sensing_distribution=name,
            reward_distribution=name,
            shared_context=shared,
        )
        for name in get_args(Name)
        for shared in (False, True)
    },
}
