"""Confidence sequences: the boundary by mathematics, coverage by simulation, and the stop rule."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

import keyhole as kh
from keyhole.evaluation import ConfidenceSequence, gain_sequence, value_sequence
from keyhole.evaluation.boundary import log_wealth, lower_bounds, reach
from tests.logs import online_columns, random_columns


@pytest.mark.parametrize(("s", "v"), [(0.0, 0.0), (2.0, 1.0), (10.0, 30.0), (40.0, 200.0)])
def test_the_mixture_is_an_integral_over_bets(s: float, v: float) -> None:
    """With l = 1 - y, the density of y is gamma's of shape and rate 1 cut to [0, 1], times 1 / y.

    The integrand exp(l s - v (-log(1 - l) - l)) is 1 at s = v = 0, so that the integral is then 1.
    """
    mass = gamma.cdf(1.0, 1.0)

    def integrand(y: float) -> float:
        bet = 1.0 - y
        return float(np.exp(bet * s + v * (np.log(y) + bet)) * np.exp(-y) / mass)

    expected, _ = quad(integrand, 0.0, 1.0, epsabs=0.0, epsrel=1e-11)
    found = float(log_wealth(np.array(s), np.array(v)))
    assert found == pytest.approx(np.log(expected), abs=1e-8)


def test_the_reach_is_where_the_wealth_is_one_over_alpha() -> None:
    v = np.array([0.0, 0.3, 5.0, 400.0, 1e5])
    s = reach(v, 0.05)
    np.testing.assert_allclose(log_wealth(s, v), np.log(20.0), rtol=1e-9, atol=1e-6)
    assert (np.diff(s) > 0).all()


def test_a_lower_bound_by_hand() -> None:
    """Three numbers: guesses 1/2, 3/4 and 5/6; sum 2.5 less the reach of 1/4 + 1/16 + (1/3)^2."""
    x = np.array([1.0, 1.0, 0.5])
    v = 0.25 + 0.0625 + (0.5 - 2.5 / 3) ** 2
    found = lower_bounds(x, 0.5, np.array([3]), 0.05)
    assert found[0] == pytest.approx((2.5 - reach(np.array([v]), 0.05)[0]) / 3)


def test_sequences_hardly_ever_miss_where_normal_intervals_do() -> None:
    """Weights up to 10, watched at 20 looks in 250 logs; the bound is 5% and 4 standard errors."""
    rng = np.random.default_rng(7)
    n, logs = 600, 250
    looks = np.unique(np.geomspace(10, n, 20).astype(int))
    missed, normal = 0, 0
    for _ in range(logs):
        e = rng.uniform(0.1, 0.9, n)
        on = rng.random(n) < e
        reward = (rng.random(n) < 0.3) * 1.0
        log = {
            "arms": ("A", "B"),
            "chosen": np.where(on, 0, 1),
            "probability": np.where(on, e, 1.0 - e),
            "reward": reward,
        }
        found = value_sequence(log, "A", looks=looks, check=False)
        missed += bool(((found.low > 0.3) | (found.high < 0.3)).any())
        x = on / e * reward
        mean = np.cumsum(x)[looks - 1] / looks
        spread = np.sqrt((np.cumsum(x * x)[looks - 1] / looks - mean**2) / looks)
        normal += bool((np.abs(mean - 0.3) > 1.96 * spread).any())
    assert missed / logs <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / logs)
    assert normal / logs > 0.2


def test_bounds_mirror_when_rewards_do() -> None:
    columns = random_columns()
    found = value_sequence(columns, "uniform", cap=1.0)
    turned = {**columns, "reward": 1.0 - columns["reward"], "mean": 1.0 - columns["mean"]}
    other = value_sequence(turned, "uniform", cap=1.0)
    np.testing.assert_allclose(found.low, 1.0 - other.high, atol=1e-12)
    np.testing.assert_allclose(found.high, 1.0 - other.low, atol=1e-12)
    gain, less = gain_sequence(columns, "uniform"), gain_sequence(turned, "uniform")
    np.testing.assert_allclose(gain.low, -less.high, atol=1e-12)
    np.testing.assert_allclose(gain.estimate, -less.estimate, atol=1e-12)


def test_units_do_not_matter() -> None:
    columns = random_columns()
    scaled = {**columns, "reward": 3.0 * columns["reward"] - 1.0, "mean": 3.0 * columns["mean"] - 1}
    for make, shift in ((value_sequence, -1.0), (gain_sequence, 0.0)):
        one, other = make(columns, "B"), make(scaled, "B", bounds=(-1.0, 2.0))
        np.testing.assert_allclose(other.low, 3.0 * one.low + shift, atol=1e-12)
        np.testing.assert_allclose(other.high, 3.0 * one.high + shift, atol=1e-12)


def test_terms_with_a_model_keep_the_mean_and_stay_above_minus_k() -> None:
    """Averaged over every arm with its logged probability, a term is the value, whatever q is."""
    from keyhole.evaluation.logged import Logged
    from keyhole.evaluation.sequences import _terms
    from keyhole.evaluation.targets import Tracks

    columns = random_columns(50)
    rewards = np.random.default_rng(3).random((50, 4))
    total, target = np.zeros(50), np.random.default_rng(4).dirichlet(np.ones(4), 50)
    for arm in range(4):
        e = columns["probabilities"][:, arm]
        one = {**columns, "chosen": np.full(50, arm), "probability": e, "reward": rewards[:, arm]}
        log = Logged(**one)
        propensities = Tracks(log).propensities(target)
        weight = target[:, arm] / e
        terms = _terms(
            log, propensities, weight, rewards[:, arm], (0.0, 1.0), 2.0, is_mirrored=False
        )
        total += e * 3.0 * terms
    np.testing.assert_allclose(total, (target * rewards).sum(axis=1), atol=1e-12)


def test_a_term_is_at_least_minus_k_also_where_a_table_is_rounded() -> None:
    """Worst case: w = 1000, a reward of 0 and a model of 1; the table says 0.001005, not 0.001."""
    from keyhole.evaluation.logged import Logged
    from keyhole.evaluation.sequences import _terms
    from keyhole.evaluation.targets import Tracks

    log = Logged(
        arms=["A", "B"],
        chosen=[0, 0],
        probability=[0.001, 0.5],
        probabilities=[[0.001005, 0.998995], [0.5, 0.5]],
        reward=[0.0, 0.0],
        mean=[[1.0, 0.0], [1.0, 0.0]],
    )
    propensities = Tracks(log).propensities("A")
    weight = np.array([1000.0, 2.0])
    terms = _terms(log, propensities, weight, log.reward, (0.0, 1.0), 0.5, is_mirrored=False)
    # phi = w (0 - k / w) + k / w in the first round; 2 (0 - 1/4) + 1/4 in the second.
    np.testing.assert_allclose(1.5 * terms, [-0.5 + 0.0005, -0.5 + 0.25], atol=1e-15)


def test_only_the_value_of_a_target_that_stays_keeps_earlier_bounds() -> None:
    columns = online_columns(kh.ThompsonSampling(v=1.0), rounds=300)
    columns["reward"] = (columns["reward"] > 0) * 1.0
    fixed = value_sequence(columns, kh.Uniform(), check=False)
    assert (np.diff(fixed.low) >= 0).all()
    assert (np.diff(fixed.high) <= 0).all()
    moving = value_sequence(columns, kh.Greedy(), check=False)
    assert (np.diff(moving.high) > 0).any()


def test_the_stop_rule() -> None:
    looks = np.array([10, 20, 30])
    mean = np.array([0.1, 0.1, 0.1])
    found = ConfidenceSequence(
        "B", "gain", 0.95, looks, mean, np.array([-0.5, -0.1, 0.02]), mean + 0.3
    )
    assert (found.advice(), found.decided_at()) == ("deploy", 30)
    assert (found.advice(0.05), found.decided_at(0.05)) == ("not yet", None)
    assert (found.advice(0.5), found.decided_at(0.5)) == ("drop", 10)
    assert str(found) == "gain of B after 30 rounds: 0.1000 [0.0200, 0.4000]: deploy"


def test_a_better_arm_is_deployed_and_a_worse_one_dropped() -> None:
    rng = np.random.default_rng(8)
    chosen = rng.integers(0, 2, 3000)
    log = {
        "arms": ("A", "B"),
        "chosen": chosen,
        "probability": np.full(3000, 0.5),
        "probabilities": np.full((3000, 2), 0.5),
        "mean": np.full((3000, 2), 0.5),
        "reward": (rng.random(3000) < 0.3 + 0.4 * chosen) * 1.0,
    }
    for bounds in ((0.0, 1.0), None):
        assert gain_sequence(log, "B", bounds=bounds).advice() == "deploy"
        assert gain_sequence(log, "A", bounds=bounds).advice() == "drop"
        same = gain_sequence(log, "as logged", bounds=bounds)
        assert same.advice() == "not yet"


def test_the_asymptotic_sequence_by_hand() -> None:
    columns = random_columns(100)
    found = value_sequence(columns, "as logged", bounds=None, looks=[100], check=False)
    row = np.arange(100)
    q = columns["mean"]
    terms = (columns["probabilities"] * q).sum(axis=1) + columns["reward"]
    terms -= q[row, columns["chosen"]]
    rho2 = (-2 * np.log(0.05) + np.log(1 - 2 * np.log(0.05))) / 1000
    inner = 100 * terms.var() * rho2 + 1
    width = np.sqrt(2 * inner / (100**2 * rho2) * np.log(np.sqrt(inner) / 0.05))
    assert found.estimate[0] == pytest.approx(terms.mean())
    assert found.high[0] - found.low[0] == pytest.approx(2 * width)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"bounds": (0.0, 0.5)}, r"reward\[\d+\] must be from 0 to 0.5, got 1"),
    ({"bounds": (1.0, 0.0)}, "bounds must be increasing"),
    ({"bounds": 1.0}, "bounds must be two numbers"),
    ({"looks": [5, 5]}, "looks must be increasing"),
    ({"looks": [500]}, "looks must be increasing whole numbers from 1 to 400"),
    ({"level": 1.0}, "level must be"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    for make in (value_sequence, gain_sequence):
        with pytest.raises(kh.InvalidValue, match=message):
            make(random_columns(), "uniform", **change)


def test_what_a_sequence_needs_is_named() -> None:
    columns = random_columns()
    with pytest.raises(kh.InvalidValue, match="cap must be"):
        value_sequence(columns, "uniform", cap=-1.0)
    with pytest.raises(kh.InvalidValue, match="needs a gain, got a value"):
        value_sequence(columns, "uniform").advice()
    with pytest.raises(kh.InvalidValue, match="50 rounds before its first missing reward, got 40"):
        value_sequence(random_columns(40), "uniform", bounds=None)
    del columns["mean"]
    with pytest.raises(kh.InvalidValue, match="for a cap above 0"):
        value_sequence(columns, "uniform", cap=1.0)
