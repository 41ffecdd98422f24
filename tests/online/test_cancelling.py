"""Rewards that cancel: their sum is 0, and what was summed has rounded."""

from itertools import product

import pytest

import keyhole as kh


@pytest.mark.parametrize(
    "rewards", [(0.5, 0.5, -1.0), (0.1, 0.2, -0.3), (1e6, -1e6), (1e-6, -1e-6)]
)
def test_a_bandit_whose_rewards_cancel_can_be_saved(rewards: tuple[float, ...]) -> None:
    """The saved mean is 1e-17 and not 0, and follows from the sums all the same."""
    bandit = kh.Bandit(kh.ThompsonSampling(), arms=["A"], dim=2, seed=1)
    for reward in rewards:
        bandit.learn(bandit.choose([1.0, 1.0]), reward)
    again = kh.Bandit.load(bandit.to_bytes(), resume=True)
    assert again.to_bytes() == bandit.to_bytes()


def test_any_three_rewards_can_be_saved() -> None:
    for rewards in product((-1.0, -0.5, 0.25, 0.5, 1.0), repeat=3):
        bandit = kh.Bandit(kh.ThompsonSampling(), arms=["A"], dim=2, seed=1)
        for k, reward in enumerate(rewards):
            bandit.learn(bandit.choose([1.0, 1.0 if k else 0.5]), reward)
        bandit.to_bytes()
