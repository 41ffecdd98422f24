"""Estimators: values by hand, identities between them, and their standard errors."""

import numpy as np
import pytest

import keyhole as kh
from keyhole.evaluation.estimators import ESTIMATORS, Pieces, effective_size
from tests.logs import online_columns, random_columns, small

# The target of the three rounds, and what follows: w = 0.4, 2, 1.
TARGET = np.array([[0.2, 0.8], [0.5, 0.5], [0.2, 0.8]])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ips", (0.4 * 1 + 2 * 0 + 1 * 2) / 3),
        ("snips", (0.4 * 1 + 2 * 0 + 1 * 2) / 3.4),
        ("dm", (0.9 + 0.25 + 1.0) / 3),
        ("dr", (0.9 + 0.4 * 0.5 + 0.25 - 2 * 0.5 + 1.0 + 1.0) / 3),
        ("sndr", (0.9 + 0.25 + 1.0) / 3 + (0.4 * 0.5 - 2 * 0.5 + 1.0) / 3.4),
        ("switch", (0.9 + 0.4 * 0.5 + 0.25 + 1.0 + 1.0) / 3),
        ("dros", (0.9 + 0.8 / 2.16 * 0.5 + 0.25 - 4 / 6 * 0.5 + 1.0 + 2 / 3) / 3),
    ],
)
def test_values_by_hand(name: str, value: float) -> None:
    found = kh.evaluate(
        small(), TARGET, estimator=name, threshold=1.5, shrinkage=2.0, min_size=0.0, check=False
    )
    assert found.rows[0].value == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_logged_policy_itself_has_weights_of_1(name: str) -> None:
    columns = random_columns()
    row = kh.evaluate(columns, "as logged", estimator=name).rows[0]
    assert row.mean_weight == pytest.approx(1.0, abs=1e-15)
    assert row.max_weight == pytest.approx(1.0, abs=1e-15)
    assert row.effective_size == pytest.approx(400)
    mean = columns["reward"].mean()
    q = (columns["probabilities"] * columns["mean"]).sum(axis=1)
    if name in ("ips", "snips", "cressie-read"):
        assert row.value == pytest.approx(mean, abs=1e-14)
        assert row.gain == pytest.approx(0.0, abs=1e-14)
        assert row.gain_high - row.gain_low == pytest.approx(0.0, abs=1e-14)
    elif name != "dm" and name != "dros":
        chosen = columns["mean"][np.arange(400), columns["chosen"]]
        assert row.value == pytest.approx((q + columns["reward"] - chosen).mean(), abs=1e-13)


def pieces() -> Pieces:
    rng = np.random.default_rng(2)
    w, r, q, t = rng.gamma(0.5, 2.0, (4, 300))
    return Pieces(w, r, q, t, variance=rng.gamma(1.0, 1.0, 300) + 1.0)


def test_doubly_robust_is_direct_plus_weighted_residuals() -> None:
    given = pieces()
    assert given.q_chosen is not None
    residual = given._replace(reward=given.reward - given.q_chosen)
    total = ESTIMATORS["dm"](given).value + ESTIMATORS["ips"](residual).value
    assert ESTIMATORS["dr"](given).value == pytest.approx(total, abs=1e-13)
    total = ESTIMATORS["dm"](given).value + ESTIMATORS["snips"](residual).value
    assert ESTIMATORS["sndr"](given).value == pytest.approx(total, abs=1e-13)


def test_estimators_meet_at_the_ends_of_their_parameters() -> None:
    given = pieces()
    plain, direct = ESTIMATORS["dr"](given), ESTIMATORS["dm"](given)
    assert ESTIMATORS["switch"](given._replace(threshold=1e9)).value == plain.value
    assert ESTIMATORS["dros"](given._replace(shrinkage=0.0)).value == direct.value
    near = ESTIMATORS["dros"](given._replace(shrinkage=1e15)).value
    assert near == pytest.approx(plain.value, abs=1e-9)
    equal = given._replace(variance=np.full(300, 7.0))
    for name in ("minvar", "stablevar"):
        assert ESTIMATORS[name](equal).value == pytest.approx(plain.value, abs=1e-13)
        assert ESTIMATORS[name](equal).error == pytest.approx(plain.error, abs=1e-13)


def test_standard_errors_have_their_closed_forms() -> None:
    given = pieces()
    w, r, n = given.weight, given.reward, 300
    assert ESTIMATORS["ips"](given).error == pytest.approx((w * r).std() / np.sqrt(n))
    v = (w * r).sum() / w.sum()
    expected = np.sqrt((w**2 * (r - v) ** 2).sum()) / w.sum()
    assert ESTIMATORS["snips"](given).error == pytest.approx(expected)
    assert given.variance is not None
    h, g = 1.0 / given.variance, given.outcomes()
    v = (h * g).sum() / h.sum()
    expected = np.sqrt((h**2 * (g - v) ** 2).sum()) / h.sum()
    assert ESTIMATORS["minvar"](given).value == pytest.approx(v)
    assert ESTIMATORS["minvar"](given).error == pytest.approx(expected)


def test_self_normalised_errors_are_those_of_the_jackknife() -> None:
    """Leaving out one round in turn agrees to the order 1/n of its own correction."""
    given = pieces()
    for name in ("snips", "sndr", "minvar"):
        full = ESTIMATORS[name](given)
        keep = [np.arange(300) != t for t in range(300)]
        left = np.array(
            [
                ESTIMATORS[name](Pieces(*(one[k] for one in given[:5] if one is not None))).value
                for k in keep
            ]
        )
        jackknife = np.sqrt(299 / 300 * ((left - left.mean()) ** 2).sum())
        assert full.error == pytest.approx(jackknife, rel=0.05)


def test_an_interval_has_the_normal_quantile_unless_few_rounds_dominate() -> None:
    normal = np.random.default_rng(5).normal(size=300)
    given = pieces()._replace(weight=np.ones(300), reward=normal)
    found = ESTIMATORS["ips"](given)
    low, high = found.interval(0.95)
    assert (high - low) / 2 / found.error == pytest.approx(1.96, abs=0.05)
    weight = np.full(300, 1e-6)
    weight[:2] = 100.0
    few = ESTIMATORS["ips"](given._replace(weight=weight))
    low, high = few.interval(0.95)
    assert few.freedom < 3
    assert (high - low) / 2 / few.error > 3.0


def test_the_effective_size_counts_equal_weights() -> None:
    assert effective_size(np.array([2.0, 2.0, 0.0])) == 2.0
    assert effective_size(np.zeros(3)) == 0.0


def test_a_difference_has_the_error_of_the_difference() -> None:
    given = pieces()
    a, b = ESTIMATORS["dr"](given), ESTIMATORS["ips"](given)
    terms = given.outcomes() - given.weight * given.reward
    assert a.minus(b).value == pytest.approx(terms.mean(), abs=1e-13)
    assert a.minus(b).error == pytest.approx(terms.std() / np.sqrt(300))


def test_what_is_missing_is_named() -> None:
    columns = random_columns()
    del columns["mean"]
    with pytest.raises(kh.InvalidValue, match="must have the column 'mean', the reward model"):
        kh.evaluate(columns, "uniform", estimator="dr")
    del columns["probabilities"]
    with pytest.raises(kh.InvalidValue, match="probability of every arm"):
        kh.evaluate(columns, "uniform", estimator="minvar")
    [row] = kh.evaluate(columns, "uniform").rows
    assert (row.estimator, row.effective_size > 30) == ("snips", True)
    with pytest.raises(kh.InvalidValue, match="Did you mean minvar"):
        kh.evaluate(columns, "uniform", estimator="minvarr")
    with pytest.raises(kh.InvalidValue, match="weights of 0 only"):
        ESTIMATORS["snips"](pieces()._replace(weight=np.zeros(300)))
    with pytest.raises(kh.InvalidValue, match="variance must be given"):
        ESTIMATORS["minvar"](pieces()._replace(variance=None))


@pytest.mark.parametrize("name", ["dr", "minvar", "stablevar"])
def test_deviations_of_a_target_that_learns_are_those_of_the_rounds(name: str) -> None:
    given = pieces()
    assert given.q_chosen is not None
    assert given.variance is not None
    h = {"dr": given.variance**0, "minvar": 1 / given.variance, "stablevar": given.variance**-0.5}
    share = h[name] / h[name].sum()
    fixed, moving = (ESTIMATORS[name](given._replace(moves=moves)) for moves in (False, True))
    assert moving.value == fixed.value
    residual = share * given.weight * (given.reward - given.q_chosen)
    assert moving.error == pytest.approx(np.sqrt((residual**2).sum()), rel=1e-12)


def test_errors_of_targets_that_learn_are_those_that_are_seen() -> None:
    # Rewards of a log depend on contexts more than on chance: an error that counts both is too
    # large for the value over these contexts.
    policy, ratios = kh.ThompsonSampling(v=1.0), []
    for seed in range(120):
        columns = online_columns(policy, n_arms=2, rounds=120, dim=2, seed=seed)
        eta = np.random.default_rng(seed).normal(size=(2, 2))
        row = kh.evaluate(columns, kh.ThompsonSampling(v=0.5), estimator="dr").rows[0]
        chance = kh.choice_probabilities(columns["mean"], 0.5 * columns["width"])
        value = (chance * (columns["observation"] @ eta.T)).sum(axis=1).mean()
        ratios.append((row.value - value) / row.error)
    # The mean of n squares of standard normals has a standard deviation of sqrt(2 / n).
    assert abs(np.mean(np.square(ratios)) - 1.0) < 3.5 * np.sqrt(2 / 120)


def test_spreads_of_adaptive_estimates_have_their_closed_form() -> None:
    """Two rounds: g = 2/3, 1/3 and w = 0, 3, residuals 1 and 2, E[w^2] = 2 and 4."""
    given = Pieces(
        weight=np.array([0.0, 3.0]),
        reward=np.array([1.0, 2.0]),
        q_chosen=np.zeros(2),
        q_target=np.array([0.5, 1.1]),
        variance=np.array([1.0, 2.0]),
        mean_square=np.array([2.0, 4.0]),
    )
    found = ESTIMATORS["minvar"](given)
    assert found.value == pytest.approx((2 * 0.5 + 1.1 + 3 * 2.0) / 3)
    chance = 4.0 * (4 / 9 * 2.0 + 1 / 9 * 4.0)  # the mean square of residuals under w is 4
    contexts = (2 / 3 * 0.2) ** 2 + (1 / 3 * 0.4) ** 2  # about the mean 0.7
    assert found.error == pytest.approx(np.sqrt(chance + contexts))
    moving = ESTIMATORS["minvar"](given._replace(moves=True))
    assert moving.error == pytest.approx(3.0 * 2.0 / 3)  # the only term that is not 0
    low, high = found.interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.959964 * found.error)
    # Without a chosen round of the target, residuals of all rounds stand in.
    none = ESTIMATORS["minvar"](given._replace(weight=np.zeros(2)))
    assert none.error == pytest.approx(np.sqrt(2.5 * (4 / 9 * 2.0 + 1 / 9 * 4.0) + contexts))


def test_spreads_are_the_errors_that_are_seen_where_rewards_vary_unequally() -> None:
    """Residuals of arm 0 vary three times as much as those of arm 1, and arm 0 is rare."""
    rng = np.random.default_rng(7)
    n, e = 400, np.array([0.05, 0.95])
    ratios = []
    for _ in range(300):
        chosen = (rng.random(n) > e[0]).astype(int)
        reward = rng.normal(size=n) * np.array([3.0, 1.0])[chosen]
        log = {
            "arms": [0, 1],
            "chosen": chosen,
            "probability": e[chosen],
            "probabilities": np.tile(e, (n, 1)),
            "mean": np.zeros((n, 2)),
            "reward": reward,
        }
        row = kh.evaluate(log, "uniform", min_size=0.0).rows[0]
        ratios.append(row.value / row.error)
    # The mean of n squares of standard normals has a standard deviation of sqrt(2 / n).
    assert abs(np.mean(np.square(ratios)) - 1.0) < 4 * np.sqrt(2 / 300)
