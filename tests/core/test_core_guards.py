"""Guards of the core that no bandit trips, each with the state unchanged, and learning by index."""

import os

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Moments, expected_largest
from keyhole.core.posterior import _memory
from tests.featured import observations


def learned(*rewards: float) -> kh.Posterior:
    posterior = kh.Posterior(n_parameters=1, dim=2)
    for reward in rewards:
        posterior.learn(0, np.ones(2), reward)
    return posterior


def test_a_base_that_has_learned_more_is_refused() -> None:
    """Whichever of the two lacks its rewards; and by squares, where other sums do not tell."""
    base = learned(1.0)
    for one, other in ((learned(), learned(1.0, 2.0)), (learned(1.0, 2.0), learned())):
        before = one.precision.copy()
        with pytest.raises(kh.InvalidValue, match="all data of base"):
            one.merge(other, base=base)
        np.testing.assert_array_equal(one.precision, before)
    foreign = learned(0.0, 0.0)
    with pytest.raises(kh.InvalidValue, match="merged sums are not valid"):
        foreign.merge(learned(0.0, 0.0), base=learned(5.0), is_sure=True)
    np.testing.assert_array_equal(foreign.squares, [0.0])


def test_moments_of_a_base_that_has_seen_more_are_refused() -> None:
    base, empty = Moments.empty(4), Moments.empty(4)
    base.add(observations(3))
    for one, other in ((empty, base.copy()), (base.copy(), empty)):
        before = one.copy()
        with pytest.raises(kh.InvalidValue, match="all that their base has"):
            one.merge(other, base)
        for array, old in zip(one, before, strict=True):
            np.testing.assert_array_equal(array, old)


def test_what_is_no_rule_is_refused() -> None:
    class Ruleless(kh.Greedy):
        rule = "the best"  # type: ignore[assignment]

    with pytest.raises(kh.InvalidValue, match="must be a Rule, got 'the best'"):
        kh.Bandit(Ruleless(), arms=2, dim=2)
    with pytest.raises(kh.InvalidValue, match="rule must be a Rule, got 'the best'"):
        learned().explorations("the best")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("location", "scale"), [([0.0], [-1.0]), ([0.0], [1.0, 1.0]), ([[0.0]], [[1.0]])]
)
def test_scores_without_a_largest_are_refused(location: list[float], scale: list[float]) -> None:
    with pytest.raises(kh.InvalidValue, match="a number for each arm"):
        expected_largest(location, scale)


def test_where_memory_is_not_known_a_terabyte_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, which has no sysconf."""
    monkeypatch.delattr(os, "sysconf")
    assert _memory() == 2**40
    with pytest.raises(kh.InvalidValue, match="this machine has 1,024"):
        kh.Posterior(n_parameters=10**6, dim=10**4)


def test_a_learner_fills_in_an_observation_that_it_did_not_choose_by() -> None:
    """By what it knows now; one of another shape is refused, and nothing is learned of it."""
    learner = kh.Learner(kh.Greedy(), missing="predict")
    state = learner.start(2, 4)
    state.see(observations(50))
    row = observations(1, seed=9)[0]
    row[1] = np.nan
    expected = state.observer.filled(row[None])[0]
    learner.learn(state, 1, row, 2.0)
    np.testing.assert_array_equal(state.posterior.moment[1], 2.0 * expected)
    for wrong in (row[:3], np.ones((2, 4))):
        with pytest.raises(kh.InvalidValue, match="observation must have shape"):
            learner.learn(state, 0, wrong, 1.0)
    assert state.posterior.count.tolist() == [0, 1]
