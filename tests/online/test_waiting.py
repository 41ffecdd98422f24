"""Rewards that wait until units, and the zero of rewards, are fixed."""

import numpy as np

import keyhole as kh
from keyhole.core.observers.observer import REWARDS
from keyhole.core.observers.units import MIN_SEEN
from tests.bandits import bandit_of
from tests.featured import ALL, learned, made, observations


def test_rewards_wait_for_their_zero() -> None:
    bandit = made(intercept=True)
    for n, y in enumerate(observations(REWARDS), start=1):
        bandit.learn(bandit.choose(y), 50.0 + n)
        assert sum(bandit.waiting.values()) == (0 if n == REWARDS else n)
        assert bandit.posterior.count.sum() == (REWARDS if n == REWARDS else 0)
    assert bandit._observer.zero == 50.0 + (REWARDS + 1) / 2


def test_rewards_that_waited_teach_features_with_a_few_missing_entries() -> None:
    bandit, ys = made(**ALL), observations(MIN_SEEN)
    ys[3, 1] = np.nan
    learned(bandit, np.where(np.isnan(ys), 0.0, ys))
    fresh = made(**ALL)
    for t, y in enumerate(ys):
        fresh.choose(y)
        fresh.learn(kh.Decision(arm=t % 3, observation=ys[0]), 1.0)
    units = fresh._observer.units
    assert units is not None
    assert units.known.all()


def test_a_shared_parameter_keeps_what_waits_when_arms_go() -> None:
    policy = kh.ThompsonSampling(v=1.0, sharing="shared")
    bandit = bandit_of(policy, arms=3, dim=4, seed=7, standardize=True)
    learned(bandit, observations(9))
    bandit.remove_arms([1])
    bandit.observe(observations(MIN_SEEN))
    assert bandit.posterior.count.tolist() == [9]


def test_removed_arms_take_their_waiting_rewards_along() -> None:
    bandit = made(standardize=True)
    learned(bandit, observations(9))
    bandit.remove_arms([1])
    assert bandit.waiting == {0: 3, 2: 3}
    bandit.observe(observations(MIN_SEEN))
    assert bandit.posterior.count.tolist() == [3, 3]
