"""Identities of bandits: files, units and JSON change no choice, at any point of a run."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import keyhole as kh

Array = NDArray[np.float64]
DIM, ARMS = 3, 3
seeds = st.integers(0, 2**32 - 1)
learners = st.builds(
    lambda policy, options: kh.Learner(policy, **options),
    st.sampled_from(
        [kh.ThompsonSampling(), kh.ThompsonSampling(v=1.0, sharing="shared"), kh.OFUL(),
         kh.EpsilonGreedy(epsilon=0.3), kh.GreedyFirst(lambda_0=0.3, v=0.7, patience=20)]
    ),
    st.fixed_dictionaries(
        {
            "intercept": st.booleans(),
            "standardize": st.booleans(),
            "missing": st.sampled_from([None, "predict", "mean", "zero", "drop"]),
        }
    ),
)  # fmt: skip
quiet = pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")


def observed(rounds: int, learner: kh.Learner, seed: int) -> Array:
    rng = np.random.default_rng([seed, 1])
    scale, middle = np.array([[1.0, 20.0, 0.3], [0.0, -20.0, 3.0]])
    y: Array = scale * rng.standard_normal((rounds, DIM)) + middle
    return y if learner.missing is None else np.where(rng.random(y.shape) < 0.2, np.nan, y)


def play(bandit: kh.Bandit, ys: Array, first: int, carried: Any = lambda one: one) -> list[Any]:
    """Return arms, scores and probabilities; a reward depends on the round and the arm alone."""
    made = []
    for t, y in enumerate(ys, start=first):
        decision = bandit.choose(y)
        made.append((decision.arm, decision.score, decision.probability))
        reward = np.random.default_rng([t, int(decision.arm)]).standard_normal()
        bandit.learn(carried(decision), float(reward))
    return made


def assert_same(one: kh.Bandit, other: kh.Bandit) -> None:
    for mine, its in zip(one.posterior.state, other.posterior.state, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert (one.counts, one.waiting) == (other.counts, other.waiting)


@quiet
@settings(max_examples=25, deadline=None)
@given(learners, st.integers(0, 70), seeds, st.booleans())
def test_a_file_at_any_point_of_a_run_resumes_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory,
    learner: kh.Learner,
    before: int,
    seed: int,
    probabilities: bool,
) -> None:
    """Before and after units, zeros and early predictions are fixed, and with a reward due."""
    path = tmp_path_factory.mktemp("any") / "bandit.npz"
    ys = observed(before + 170, learner, seed)  # so that units are looked at again on the way
    bandit = kh.Bandit(learner, arms=ARMS, dim=DIM, seed=seed, probabilities=probabilities)
    play(bandit, ys[:before], 0)
    due = bandit.choose(ys[before])
    bandit.save(path)
    again = kh.Bandit.load(path, resume=True)
    assert_same(bandit, again)
    carried = kh.Decision.from_dict(due.to_dict())
    bandit.learn(due, 1.0)
    again.learn(carried, 1.0)
    rest = ys[before + 1 :]
    assert play(again, rest, before + 1) == play(bandit, rest, before + 1)
    assert_same(bandit, again)


@quiet
@settings(max_examples=25, deadline=None)
@given(learners, seeds)
def test_decisions_through_json_teach_the_same(learner: kh.Learner, seed: int) -> None:
    def carried(decision: kh.Decision) -> kh.Decision:
        return kh.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))

    one, other = (kh.Bandit(learner, arms=ARMS, dim=DIM, seed=seed) for _ in range(2))
    ys = observed(60, learner, seed)
    assert play(one, ys, 0) == play(other, ys, 0, carried)
    assert_same(one, other)


@quiet
@settings(max_examples=25, deadline=None)
@given(
    learners.map(lambda one: kh.Learner(one.policy, **{**one.options, "standardize": True})),
    st.lists(st.integers(-60, 60), min_size=DIM, max_size=DIM),
    seeds,
)
def test_features_in_units_of_powers_of_two_decide_alike_to_the_bit(
    learner: kh.Learner, powers: list[int], seed: int
) -> None:
    """Arms, scores and probabilities: quartiles, moments and units take such factors exactly."""
    one, other = (kh.Bandit(learner, arms=ARMS, dim=DIM, seed=seed) for _ in range(2))
    ys = observed(90, learner, seed)
    assert play(one, ys, 0) == play(other, ys * 2.0 ** np.array(powers), 0)
    assert_same(one, other)


@quiet
@settings(max_examples=25, deadline=None)
@given(learners, st.permutations(range(60)), st.integers(0, 60), seeds)
def test_late_rewards_in_any_order_and_in_batches_are_the_same_rewards(
    learner: kh.Learner, order: list[int], cut: int, seed: int
) -> None:
    """A bandit that plays on without them learns the same sums, whenever they come.

    Units and predictions follow from observations, all of which came before. The zero of rewards
    and the limit of the first ones follow from those that come first, so that they are left out.
    Numbers are of order 10: sums of 60 agree to 1e-9.
    """
    plain = kh.Learner(learner.policy, missing=learner.missing)
    one, other = (kh.Bandit(plain, arms=ARMS, dim=DIM, seed=seed) for _ in range(2))
    ys = observed(60, plain, seed)
    for bandit in (one, other):
        bandit.observe(observed(600, plain, seed + 1))
    rewards = np.random.default_rng([seed, 2]).standard_normal(60)
    for bandit, places in ((one, list(range(60))), (other, order)):
        decisions = list(bandit.choose_many(ys))
        bandit.learn_many([decisions[k] for k in places[:cut]], rewards[places[:cut]])
        for k in places[cut:]:
            bandit.learn(decisions[k], float(rewards[k]))
    assert one.counts == other.counts
    for name in ("precision", "moment", "squares"):
        np.testing.assert_allclose(
            getattr(one.posterior, name), getattr(other.posterior, name), rtol=1e-9, atol=1e-9
        )
