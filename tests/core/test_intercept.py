"""The constant of each arm, and the zero from which rewards are counted."""

import numpy as np
import pytest

import keyhole as kh
from keyhole.core.observers.observer import REWARDS
from keyhole.core.observers.units import MIN_SEEN
from tests.bandits import bandit_of
from tests.featured import played


def test_a_constant_is_learned() -> None:
    """Rewards that depend on the arm alone: without a constant zero contexts tell nothing."""
    bandit = bandit_of(kh.ThompsonSampling(), arms=3, dim=2, seed=1, intercept=True)
    rng = np.random.default_rng(2)
    for _ in range(300):
        decision = bandit.choose([0.0, 0.0])
        bandit.learn(
            decision, float([0.0, 1.0, 3.0][int(decision.arm)] + 0.5 * rng.standard_normal())
        )
    assert bandit.choice_probabilities([0.0, 0.0])[2] > 0.99
    assert bandit.effects[2].estimate[0] == pytest.approx(3.0, abs=0.2)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_number_added_to_all_rewards_changes_no_decision(standardize: bool) -> None:
    """With a constant: only what is said of it, and of scores, moves along."""
    arms, scores, near = played(0.0, intercept=True, standardize=standardize)
    others, moved, far = played(1e4, intercept=True, standardize=standardize)
    assert arms == others
    uniform = MIN_SEEN if standardize else REWARDS
    np.testing.assert_allclose(np.array(moved[uniform:]) - scores[uniform:], 1e4, atol=1e-5)
    for arm in near.arms:
        one, other = near.effects[arm], far.effects[arm]
        np.testing.assert_allclose(other.estimate - one.estimate, [1e4, 0, 0, 0, 0], atol=1e-6)
        np.testing.assert_allclose(other.error, one.error, rtol=1e-6)
    many = far.choose_many(np.ones((3, 4)))
    assert (np.abs(many.scores - 1e4) < 100).all()


def test_without_a_constant_it_does() -> None:
    assert played(0.0)[0] != played(1e4)[0]


def test_rewards_from_another_zero() -> None:
    """The sums of r + 3 follow from those of r where the first entry of y is 1."""
    rng = np.random.default_rng(4)
    y = np.column_stack([np.ones(40), rng.standard_normal((40, 2))])
    rewards, parameter_of = rng.standard_normal(40), rng.integers(0, 2, 40)
    moved, expected = (kh.Posterior(n_parameters=2, dim=3, prior_precision=2.0) for _ in range(2))
    moved.learn_many(parameter_of, y, rewards)
    moved.move_rewards(3.0)
    expected.learn_many(parameter_of, y, rewards + 3.0)
    for name, array in expected.state._asdict().items():
        np.testing.assert_allclose(getattr(moved.state, name), array, rtol=1e-9, atol=1e-9)
