"""Cressie-Read: values by hand, the regression it is, and its interval by direct optimisation."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import f

import keyhole as kh
from keyhole.evaluation import likelihood
from keyhole.evaluation.estimators import ESTIMATORS, Pieces
from tests.logs import random_columns

Floats = np.ndarray


def drawn(seed: int, *, short: bool, n: int = 12) -> tuple[Floats, Floats]:
    """Return weights with a mean below or above 1, and rewards from 0 to 1."""
    rng = np.random.default_rng(seed)
    w = rng.gamma(0.7, 1.0, n)
    w *= (0.8 if short else 1.2) / w.mean()
    return w, rng.random(n)


def test_values_by_hand() -> None:
    """Weights 0 and 1 lack half a unit, which earns the mean reward.

    Weights 2 and 2 with a point of weight 0: w_bar = 4/3, var = 8/9, (1 - w_bar) / var = -3/8.
    Probabilities (1 - 3/8 (w - 4/3)) / 3 are 1/4, 1/4 and 1/2: the value is 2 (1 + 0) / 4.
    """
    assert likelihood.value(np.array([0.0, 1.0]), np.array([4.0, 2.0])) == pytest.approx(2.5)
    assert likelihood.value(np.array([2.0, 2.0]), np.array([1.0, 0.0])) == pytest.approx(0.5)


def test_weights_of_1_give_the_mean_and_students_interval() -> None:
    """With all weights 1, D is 1 / n, and w r has no part that w explains."""
    r = np.random.default_rng(1).random(200)
    w = np.ones(200)
    assert likelihood.value(w, r) == pytest.approx(r.mean(), abs=1e-14)
    low, high = likelihood.interval(w, r, (0.0, 1.0), 0.95)
    reach = 1.972 * r.std() / np.sqrt(200)
    assert low == pytest.approx(r.mean() - reach, rel=0.01)
    assert high == pytest.approx(r.mean() + reach, rel=0.01)


def test_mirrored_rewards_have_mirrored_values_and_intervals() -> None:
    for short in (True, False):
        w, r = drawn(3, short=short)
        low, high = likelihood.interval(w, r, (0.0, 1.0), 0.9)
        back = likelihood.interval(w, 1.0 - r, (0.0, 1.0), 0.9)
        assert back == pytest.approx((1.0 - high, 1.0 - low), abs=1e-12)
        total = likelihood.value(w, r) + likelihood.value(w, 1.0 - r)
        assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_those_of_direct_optimisation(seed: int, short: bool) -> None:
    """The smallest E_Q[w r] within the divergence, over a missing weight of 0 or a huge one."""
    w, r = drawn(seed, short=short)
    n, level = len(w), 0.8
    huge = 1e4

    def points(missing: float, reward: float) -> tuple[Floats, Floats]:
        return np.append(w, missing), np.append(w * r, missing * reward)

    def smallest(missing: float) -> float:
        x, _ = points(missing, 0.0)
        return float((1.0 - x.mean()) ** 2 / x.var())

    most = smallest(huge if short else 0.0) + f.ppf(level, 1, n) / (n + 1)

    def best(missing: float, sign: float, reward: float) -> float:
        x, terms = points(missing, reward)
        if smallest(missing) > most:
            return np.inf
        rules = [
            {"type": "eq", "fun": lambda d: d.mean() - 1.0},
            {"type": "eq", "fun": lambda d: (d * x).mean() - 1.0},
            {"type": "ineq", "fun": lambda d: most - ((d - 1.0) ** 2).mean()},
        ]
        start = 1.0 + (1.0 - x.mean()) * (x - x.mean()) / x.var()
        found = minimize(
            lambda d: sign * (d * terms).mean(),
            start,
            constraints=rules,
            options={"ftol": 1e-13, "maxiter": 500},
        )
        return float(found.fun)

    low = min(best(0.0, 1.0, 0.0), best(huge, 1.0, 0.0))
    high = -min(best(0.0, -1.0, 1.0), best(huge, -1.0, 1.0))
    assert likelihood.interval(w, r, (0.0, 1.0), level) == pytest.approx(
        (max(low, 0.0), min(high, 1.0)), abs=2e-3
    )


def test_a_higher_level_is_wider_and_the_value_is_inside() -> None:
    for seed in range(20):
        w, r = drawn(seed, short=seed % 2 == 0, n=60)
        narrow, wide = (likelihood.interval(w, r, (0.0, 1.0), level) for level in (0.8, 0.99))
        assert wide[0] <= narrow[0] <= likelihood.value(w, r) <= narrow[1] <= wide[1]


def test_an_estimate_takes_bounds_of_the_rewards() -> None:
    columns = random_columns()
    row = kh.evaluate(columns, "uniform", estimator="cressie-read").rows[0]
    w = 0.25 / columns["probability"]
    assert row.value == likelihood.value(w, columns["reward"])
    assert (row.low, row.high) == likelihood.interval(w, columns["reward"], (0.0, 1.0), 0.95)
    wider = kh.evaluate(columns, "uniform", estimator="cressie-read", bounds=(-1, 3)).rows[0]
    assert wider.low < row.low
    assert wider.high > row.high
    for name, wrong in (("increasing", (1.0, 0.0)), ("from 0 to 0.5", (0.0, 0.5))):
        with pytest.raises(kh.InvalidValue, match=name):
            kh.evaluate(columns, "uniform", estimator="cressie-read", bounds=wrong)


def test_the_error_is_that_of_a_regression_on_the_weights() -> None:
    rng = np.random.default_rng(4)
    w, r = rng.gamma(2.0, 0.5, 4000), rng.random(4000)
    found = ESTIMATORS["cressie-read"](Pieces(w, r))
    residual = w * r - np.polyval(np.polyfit(w, w * r, 1), w)
    assert found.error == pytest.approx(residual.std() / np.sqrt(4000), rel=1e-9)
    low, high = found.interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.96 * found.error, rel=0.1)
    assert ESTIMATORS["cressie-read"](Pieces(np.zeros(9), r[:9])).value == r[:9].mean()
