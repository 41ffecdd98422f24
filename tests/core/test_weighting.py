"""Propensity weights: identities, unbiasedness, the cure and its control, and what is refused."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Floats, kernels
from keyhole.lab.studies.non_normal import world_of


def taught(policy: kh.Policy, n: int = 300, seed: int = 3) -> kh.Bandit:
    bandit, rng = kh.Bandit(policy, arms=3, dim=2, seed=seed), np.random.default_rng(4)
    for _ in range(n):
        decision = bandit.choose(rng.standard_normal((3, 2)))
        bandit.learn(decision, float(rng.standard_normal() + decision.observation[0]))
    return bandit


def test_with_uniform_choices_alone_every_weight_is_1() -> None:
    weighted = taught(kh.WeightedThompsonSampling(1.0, decay=0.0))
    plain = taught(kh.Uniform())
    for mine, theirs in zip(weighted.posterior.state, plain.posterior.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_weights_by_hand() -> None:
    """B = 1 + sum w y^2 with w = (epsilon / n_arms) / p, and the estimate is sum w r y / B."""
    policy = kh.WeightedThompsonSampling(0.3, decay=0.5, v=1.0)
    bandit = kh.Bandit(policy, arms=["A", "B"], dim=1, seed=1)
    sums = {arm: np.array([1.0, 0.0, 0.0]) for arm in "AB"}
    for t in range(50):
        y, reward = 1.0 + t % 3, 0.5 * t
        decision = bandit.choose([y])
        epsilon = 0.3 * (1 + t) ** -0.5
        assert decision.probability is not None
        assert decision.probability >= epsilon / 2
        w = epsilon / 2 / decision.probability
        sums[str(decision.arm)] += [w * y**2, w * reward * y, w]
        bandit.learn(decision, reward)
    posterior = bandit.posterior
    for i, arm in enumerate("AB"):
        assert posterior.precision[i, 0, 0] == pytest.approx(sums[arm][0], rel=1e-12)
        assert posterior.mean[i, 0] == pytest.approx(sums[arm][1] / sums[arm][0], rel=1e-12)
        assert posterior.weight[i] == pytest.approx(sums[arm][2], rel=1e-12)
    assert posterior.count.sum() == 50


def test_weighted_sums_are_unbiased_and_the_weights_at_most_1() -> None:
    """The mean of w y y' over rounds in which an arm is chosen is epsilon / n_arms E[y y']."""
    bandit, n = taught(kh.WeightedThompsonSampling(0.2, decay=0.0, v=1.0)), 40_000
    y = np.random.default_rng(1).standard_normal((n, 3, 2))
    decisions = bandit.choose_many(y)
    arms, chances = np.array(decisions.arms), decisions.probabilities
    assert chances is not None
    weights = np.array([kernels.propensity_weight(0.2, 3, p) for p in chances.tolist()])
    assert weights.max() <= 1.0
    assert chances.min() < 0.5  # there is something to weigh
    for arm in range(3):
        terms = (arms == arm) * weights
        for j, k in ((0, 0), (0, 1), (1, 1)):
            off = terms * y[:, arm, j] * y[:, arm, k] - 0.2 / 3 * (j == k)
            assert abs(off.mean()) < 4 * off.std() / np.sqrt(n)
    # The negative control: without weights the arm's own choices are selected.
    off = (arms == 0) * (y[:, 0, 0] ** 2 - 1.0)
    assert abs(off.mean()) > 6 * off.std() / np.sqrt(n)


@dataclass(frozen=True, repr=False)
class Miscounted(kh.Policy):
    """Thompson sampling with the same uniform choices, each propensity taken for 1 / n_arms."""

    @property
    def rule(self) -> kh.Rule:
        return kh.Rule(dispersion=1.7, epsilon=0.05)


def test_the_cure_of_a_rademacher_world_and_its_control() -> None:
    """Weighted estimates tend to eta; others, and those by wrong propensities, do not."""
    world = world_of("rademacher")
    policies: dict[str, Any] = {
        "weighted": kh.WeightedThompsonSampling(0.05, decay=0.0, v=1.7),
        "plain": kh.ThompsonSampling(v=1.7),
        "miscounted": Miscounted(),
    }
    runs = kh.simulate(world, policies, horizon=40_000, replications=8, seed=1)
    squares = (runs.error.isel(time=-1) ** 2).mean("arm").transpose("policy", "replication").values
    weighted, plain, miscounted = np.sqrt(squares)
    predicted = kh.theory.weighted_cost(world, time=40_000, epsilon=0.05, decay=0.0, v=1.7).errors
    error = weighted.std(ddof=1) / np.sqrt(8)
    assert weighted.mean() < np.sqrt((predicted**2).mean()) + 4 * error
    for other in (plain, miscounted):
        difference = other - weighted
        assert difference.mean() > 4 * difference.std(ddof=1) / np.sqrt(8)
        assert other.mean() > 2 * weighted.mean()


def test_bandits_that_ran_apart_have_all_weights() -> None:
    first, second = (
        taught(kh.WeightedThompsonSampling(), seed=1),
        taught(kh.WeightedThompsonSampling(), seed=2),
    )
    expected = first.posterior.weight + second.posterior.weight
    first.merge(second)
    np.testing.assert_allclose(first.posterior.weight, expected, rtol=1e-12)


def test_a_decision_through_json_has_its_weight() -> None:
    here, there = (taught(kh.WeightedThompsonSampling(0.3, decay=0.3)) for _ in range(2))
    for _ in range(20):
        y: Floats = np.ones((3, 2))
        decision, twin = here.choose(y), there.choose(y)
        here.learn(decision, 1.0)
        there.learn(kh.Decision.from_dict(twin.to_dict()), 1.0)
    for mine, theirs in zip(here.posterior.state, there.posterior.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_batch_has_the_weights_of_its_rewards_one_by_one() -> None:
    one, many = (taught(kh.WeightedThompsonSampling(0.3, decay=0.5), 30) for _ in range(2))
    y = np.random.default_rng(2).standard_normal((10, 3, 2))
    first, second = one.choose_many(y), many.choose_many(y)
    for decision in first:
        one.learn(decision, 1.0)
    many.learn_many(second, np.ones(10))
    np.testing.assert_allclose(one.posterior.weight, many.posterior.weight, rtol=1e-12)
    np.testing.assert_allclose(one.posterior.precision, many.posterior.precision, rtol=1e-12)


def test_a_file_whose_rewards_count_more_than_once_is_refused() -> None:
    arrays = dict(np.load(io.BytesIO(taught(kh.WeightedThompsonSampling()).to_bytes())))
    kh.Bandit.load(_file(arrays))
    with pytest.raises(kh.FileError, match="weight must be at most n"):
        kh.Bandit.load(_file({**arrays, "weight": arrays["n"] + 0.5}))


def _file(arrays: dict[str, Any]) -> io.BytesIO:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file


@pytest.mark.parametrize("probability", [None, 0.0])
def test_a_decision_without_a_propensity_is_refused_and_nothing_changes(
    probability: float | None,
) -> None:
    bandit = taught(kh.WeightedThompsonSampling())
    before = bandit.to_bytes()
    decision = kh.Decision(arm=0, observation=[1.0, 1.0], probability=probability)
    with pytest.raises(kh.InvalidValue, match="needs the probability of each decision"):
        bandit.learn(decision, 1.0)
    with pytest.raises(kh.InvalidValue, match="needs the probability of each decision"):
        bandit.learn_many([decision], [1.0])
    assert bandit.to_bytes() == before


def test_a_learner_by_hand_needs_the_last_choice() -> None:
    learner = kh.Learner(kh.WeightedThompsonSampling(v=1.0))
    state = learner.start(2, 1)
    draws = kh.Draws(np.zeros(2), np.array([0.5, 0.5]))
    chosen = learner.choose(state, np.array([1.0]), draws)
    with pytest.raises(kh.InvalidValue, match="is not the last choice"):
        learner.learn(state, 1 - chosen.arm, np.array([1.0]), 1.0)
    assert state.posterior.count.sum() == 0
    learner.learn(state, chosen.arm, np.array([1.0]), 1.0)
    assert state.posterior.weight.sum() == 1.0  # the first choice is uniform


@pytest.mark.parametrize(
    "options", [{"intercept": True}, {"standardize": True}, {"missing": "predict"}]
)
def test_observers_whose_rewards_wait_are_refused(options: dict[str, Any]) -> None:
    learner = kh.Learner(kh.WeightedThompsonSampling(), **options)
    with pytest.raises(kh.InvalidValue, match="takes observations as they are"):
        kh.Bandit(learner, arms=2, dim=2)


def test_an_open_set_of_arms_is_refused() -> None:
    features = kh.Features(
        numbers=["age"],
        arms=kh.Features(numbers=["price"]),
        intercept=False,
        standardize=False,
        missing=None,
    )
    learner = kh.Learner(kh.WeightedThompsonSampling(sharing="shared"), features)
    with pytest.raises(kh.InvalidValue, match="no features of arms"):
        kh.Bandit(learner, arms=[])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1.1}, "epsilon"),
        ({"decay": -0.1}, "decay"),
        ({"v": -1.0}, "v must be"),
        ({"sharing": "hybrid"}, "per-arm"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        kh.WeightedThompsonSampling(**settings)


def test_a_rule_without_propensities_cannot_be_weighted() -> None:
    with pytest.raises(kh.InvalidValue, match="epsilon above 0"):
        kh.Rule(dispersion=1.0, weighted=True).plain()


def test_sensors_have_no_weights() -> None:
    learner = kh.SensorLearner(kh.WeightedThompsonSampling(v=1.0), [kh.Sensor(sensing=np.eye(2))])
    with pytest.raises(kh.InvalidValue, match="without weights"):
        kh.Bandit(learner, arms=2, seed=1).choose([1.0, 2.0])
