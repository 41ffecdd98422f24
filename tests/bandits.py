"""Bandits with the settings of a learner."""

from typing import Any

import keyhole as kh


def bandit_of(
    policy: kh.Policy,
    *,
    arms: Any,
    dim: int,
    seed: int | None = None,
    probabilities: bool = True,
    **options: Any,
) -> kh.Bandit:
    """Return a bandit of a policy; the options are those of `Learner`."""
    learner = kh.Learner(policy, **options)
    return kh.Bandit(learner, arms=arms, dim=dim, seed=seed, probabilities=probabilities)
