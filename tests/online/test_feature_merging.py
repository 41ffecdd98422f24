"""Bandits with units, missing entries and zeros of their own are merged exactly."""

from pathlib import Path

import numpy as np
import pytest

import keyhole as kh
from keyhole.core.observers.observer import REWARDS
from keyhole.core.observers.units import MIN_SEEN
from tests.featured import ALL, learned, made, observations


@pytest.mark.parametrize(("one", "two"), [(10, 10), (60, 10), (10, 60), (60, 60), (20, 20)])
def test_merged_bandits_know_what_both_learned(one: int, two: int) -> None:
    """In the units of one of them: as if one bandit of those units had learned all of it."""
    first, second = made(**ALL, clip=None), made(**ALL, clip=None)
    a, b = observations(one, seed=11), 2.0 * observations(two, seed=12) + 1.0
    learned(first, a)
    learned(second, b)
    units = first._observer.units or second._observer.units
    first.merge(second)
    units = units or first._observer.units
    both = np.vstack([a, b])
    np.testing.assert_allclose(first._observer.moments.mean, both.mean(axis=0))
    assert sum(first.counts.values()) + sum(first.waiting.values()) == one + two
    if units is None:
        assert one + two < MIN_SEEN
        return
    arms = np.concatenate([np.arange(one) % 3, np.arange(two) % 3])
    rewards = np.concatenate([np.arange(one) % 7, np.arange(two) % 7]) - first._observer.zero
    x = np.column_stack([np.ones(len(both)), (both - units.middle) / units.scale])
    for arm in range(3):
        own = x[arms == arm]
        np.testing.assert_allclose(
            first.posterior.precision[arm], np.eye(5) + own.T @ own, rtol=1e-9, atol=1e-8
        )
        np.testing.assert_allclose(
            first.posterior.moment[arm], own.T @ rewards[arms == arm], rtol=1e-9, atol=1e-8
        )


@pytest.mark.parametrize("shared", [10, 50])
def test_merged_from_a_common_base(tmp_path: Path, shared: int) -> None:
    base = made(**ALL)
    learned(base, observations(shared, seed=20))
    base.save(tmp_path / "base.npz")
    one, two = (kh.Bandit.load(tmp_path / "base.npz", seed=k) for k in range(2))
    learned(one, observations(60, seed=21))
    learned(two, observations(60, seed=22))
    one.merge(two, base=base)
    assert sum(one.counts.values()) == shared + 120
    assert one._observer.moments.seen.max() == shared + 120


def test_a_base_that_is_not_one_is_refused() -> None:
    """While rewards wait for units, too: nothing is lost in silence."""
    base = made(standardize=True)
    learned(base, observations(10, seed=20))
    one, other = made(standardize=True), made(standardize=True)
    for bandit in (one, other):
        learned(bandit, observations(10, seed=20))
    other.remove_arms([0])
    other.add_arms([0])
    with pytest.raises(kh.InvalidValue, match="all that their base has"):
        one.merge(other, base=base)
    assert sum(one.waiting.values()) == 10


def test_merging_takes_over_units_that_only_the_other_knows() -> None:
    blind, sighted = made(**ALL), made(**ALL)
    ys = observations(80, seed=30)
    hidden = ys.copy()
    hidden[:, 3] = np.nan
    for t, y in enumerate(hidden):
        decision = blind.choose(y)
        blind.learn(decision, float(t % 3))
    learned(sighted, ys)
    blind.merge(sighted)
    units = blind._observer.units
    assert units is not None
    assert units.known.all()
    assert sum(blind.counts.values()) == 160


def test_bandits_that_treat_features_differently_are_not_merged() -> None:
    with pytest.raises(kh.InvalidValue, match="same learner and dim"):
        made(intercept=True).merge(made())


@pytest.mark.parametrize("rounds", [(100, 100), (100, 3), (3, 100), (3, 4), (5, 5)])
def test_bandits_with_different_zeros_are_merged(rounds: tuple[int, int]) -> None:
    """As one that learned all of it, with the first one's units and zero, or those of both."""
    first, second = made(intercept=True), made(intercept=True)
    rows, rng = observations(sum(rounds)), np.random.default_rng(6)
    rewards = np.concatenate([rng.normal(10.0, size=rounds[0]), rng.normal(-90.0, size=rounds[1])])
    arms = rng.integers(0, 3, len(rows))
    told = [kh.Decision(arm=int(a), observation=y) for a, y in zip(arms, rows, strict=True)]
    first.learn_many(told[: rounds[0]], rewards[: rounds[0]])
    second.learn_many(told[rounds[0] :], rewards[rounds[0] :])
    first.merge(second)
    assert sum(first.counts.values()) + sum(first.waiting.values()) == len(rows)
    if len(rows) < REWARDS:
        assert first.posterior.count.sum() == 0
        return
    zero = first._observer.zero
    assert zero is not None
    design = first._observer.design(rows)
    for arm in range(3):
        x, r = design[arms == arm], rewards[arms == arm] - zero
        precision = np.eye(5) + x.T @ x
        np.testing.assert_allclose(first.posterior.precision[arm], precision, rtol=1e-9, atol=1e-8)
        np.testing.assert_allclose(
            first.posterior.mean[arm], np.linalg.solve(precision, x.T @ r), rtol=1e-8, atol=1e-8
        )
