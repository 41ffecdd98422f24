"""Learners that standardize decide alike in any units."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core.observers.observer import REWARDS
from keyhole.core.observers.units import MIN_SEEN, Units, robust_unit
from tests.bandits import bandit_of
from tests.featured import ALL, made, observations, play, with_missing


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("missing", ["predict", None])
@pytest.mark.parametrize("scale", [1000.0, 1e-6, [1.0, 1e-3, 1e3, 1e5]])
def test_metres_and_millimetres_decide_alike(intercept: bool, missing: Any, scale: Any) -> None:
    ys = observations(400)
    if missing:
        ys = with_missing(ys, 0.2)
    options = {"intercept": intercept, "missing": missing, "standardize": True}
    metres, other = made(**options), made(**options)
    assert play(metres, ys) == play(other, ys, np.array(scale))
    np.testing.assert_allclose(metres.posterior.mean, other.posterior.mean, rtol=1e-5, atol=1e-7)


def test_without_standardize_units_matter() -> None:
    """The test above can fail."""
    ys = observations(400)
    assert play(made(), ys) != play(made(), ys, 1e-3)


def test_the_posterior_is_the_sum_of_rows_in_fixed_units() -> None:
    """B = I + sum x x' and b = sum r x, of x = (1, (y - middle) / scale) by the first 32 rows, and
    r from the first 8 rewards' median on."""
    ys, bandit = observations(100), made(intercept=True, standardize=True)
    rewards, rows = np.random.default_rng(3).standard_normal(100), []
    for y, reward in zip(ys, rewards, strict=True):
        decision = bandit.choose(y)
        bandit.learn(decision, float(reward))
        rows.append((int(decision.arm), y, reward))
    units = Units(*np.array([robust_unit(column) for column in ys[:MIN_SEEN].T]).T)
    for arm in range(3):
        own = np.array([(y - units.middle) / units.scale for k, y, _ in rows if k == arm])
        x = np.column_stack([np.ones(len(own)), own])
        r = np.array([reward for k, _, reward in rows if k == arm]) - np.median(rewards[:REWARDS])
        np.testing.assert_allclose(bandit.posterior.precision[arm], np.eye(5) + x.T @ x, atol=1e-9)
        np.testing.assert_allclose(bandit.posterior.moment[arm], x.T @ r, atol=1e-9)
    assert sum(bandit.counts.values()) == 100


def test_before_units_are_known_arms_are_picked_uniformly() -> None:
    bandit = made(standardize=True)
    decision = bandit.choose(observations(1)[0])
    assert decision.probability == pytest.approx(1 / 3)
    bandit.learn(decision, 1.0)
    assert (bandit.counts[decision.arm], bandit.waiting[decision.arm]) == (0, 1)
    assert repr(bandit).endswith("0 rewards learned, 1 waiting)")
    bandit.observe(observations(MIN_SEEN))
    assert bandit.posterior.count.sum() == 1
    assert bandit.choose(observations(1, seed=8)[0]).probability != pytest.approx(1 / 3, abs=1e-9)


def test_features_that_never_vary_do_no_harm() -> None:
    ys = np.column_stack([np.ones(200), np.zeros(200), observations(200)[:, :2]])
    for intercept in (False, True):
        play(made(standardize=True, intercept=intercept), ys)


def test_a_feature_that_comes_late_has_its_own_unit() -> None:
    """Never seen in the first 50 rounds: until its unit is known the posterior sees 0 of it."""
    ys = observations(300)
    ys[:50, 2] = np.nan
    options: dict[str, Any] = {"missing": "predict", "standardize": True, "intercept": True}
    metres, other = made(**options), made(**options)
    assert play(metres, ys) == play(other, ys, np.array([1.0, 1.0, 1e4, 1.0]))
    units = metres._observer.units
    assert units is not None
    assert units.known.all()


def test_a_late_reward_at_an_entry_never_seen_then_teaches_nothing_of_it() -> None:
    """A feature near 1000 that was missing at the decision is not taken for 0 by its units."""
    bandit = bandit_of(kh.ThompsonSampling(v=1.0), arms=1, dim=2, seed=1, **ALL)
    early = bandit.choose([1.0, np.nan])
    rng = np.random.default_rng(1)
    bandit.observe(np.column_stack([rng.standard_normal(100), 1000.0 + rng.standard_normal(100)]))
    bandit.learn(early, 1.0)
    assert np.abs(bandit.posterior.moment[0]).max() < 5.0
    assert bandit.posterior.moment[0, 2] == 0.0


def test_probabilities_are_those_of_the_next_choice() -> None:
    """Also around the observation that fixes the units."""
    bandit = made(standardize=True, intercept=True)
    for t, y in enumerate(observations(MIN_SEEN + 5)):
        chances = bandit.choice_probabilities(y)
        decision = bandit.choose(y)
        assert decision.probability == pytest.approx(chances[decision.arm])
        bandit.learn(decision, float(t % 5))
