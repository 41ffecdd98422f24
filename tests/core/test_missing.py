"""Missing entries of observations: predicted by the best linear prediction, or refused."""

import json
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core.observers.moments import Moments
from keyhole.core.observers.units import robust_unit
from tests.bandits import bandit_of
from tests.featured import ALL, MIX, made, observations, with_missing


def best_prediction(past: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Of complete past rows: mean_m + S_ms (S_ss + diag(S_ss) / n)^-1 (y_s - mean_s)."""
    mean, spread = past.mean(axis=0), np.cov(past.T, ddof=0)
    seen = ~np.isnan(row)
    known = spread[np.ix_(seen, seen)]
    known = known + np.diag(np.diag(known)) / len(past)
    filled = row.copy()
    gain = spread[np.ix_(~seen, seen)] @ np.linalg.inv(known)
    filled[~seen] = mean[~seen] + gain @ (row[seen] - mean[seen])
    return filled


@pytest.mark.parametrize("missing", [[0], [1, 3], [0, 1, 2], [0, 1, 2, 3]])
def test_missing_entries_are_filled_by_the_best_linear_prediction(missing: list[int]) -> None:
    past, now = observations(50), observations(1, seed=9)[0]
    now[missing] = np.nan
    bandit = made(missing="predict")
    bandit.observe(past)
    np.testing.assert_allclose(bandit.choose(now).observation, best_prediction(past, now))


def test_the_prediction_is_the_conditional_expectation_in_the_long_run() -> None:
    """Normal rows, one entry hidden: E[y_0 | rest], with the true covariance, to a percent."""
    past = observations(100_000)
    scaled = MIX * np.array([1.0, 10.0, 0.1, 1.0])[:, None]
    spread, now = scaled @ scaled.T, observations(1, seed=9)
    expected = 5.0 + spread[0, 1:] @ np.linalg.solve(spread[1:, 1:], now[0, 1:] - [-20.0, 0.0, 1.0])
    moments = Moments.empty(4)
    moments.add(past)
    now[0, 0] = np.nan
    moments.fill(now)
    assert now[0, 0] == pytest.approx(expected, abs=0.03 * np.sqrt(spread[0, 0]))


def test_rows_of_one_pattern_are_filled_as_each_alone() -> None:
    """One eigendecomposition serves all rows that miss the same entries, in any order."""
    moments, rows = Moments.empty(4), with_missing(observations(60, seed=9), 0.3)
    moments.add(with_missing(observations(200), 0.2))
    rows[10:20, 1] = rows[40, 1] = np.nan
    alone = np.array([row.copy() for row in rows])
    for k in range(60):
        moments.fill(alone[k : k + 1])
    moments.fill(rows)
    np.testing.assert_array_equal(rows, alone)


def test_moments_of_rows_with_missing_are_those_of_pairs() -> None:
    rows = with_missing(observations(200), 0.3)
    moments = Moments.empty(4)
    moments.add(rows)
    np.testing.assert_allclose(moments.mean, np.nanmean(rows, axis=0))
    for j in range(4):
        for k in range(4):
            both = rows[~np.isnan(rows[:, [j, k]]).any(axis=1)]
            expected = np.cov(both[:, j], both[:, k], ddof=0)[0, 1]
            assert moments.covariance[j, k] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_first_rows_and_entries_never_seen() -> None:
    bandit = made(missing="predict")
    first = bandit.choose([np.nan, 1.0, np.nan, 2.0])
    np.testing.assert_array_equal(first.observation, [np.nan, 1.0, np.nan, 2.0])
    assert first.to_dict()["observation"] == [None, 1.0, None, 2.0]
    again = kh.Decision.from_dict(json.loads(json.dumps(first.to_dict())))
    bandit.learn(again, 1.0)
    np.testing.assert_array_equal(bandit.posterior.moment[int(first.arm)], [0.0, 1.0, 0.0, 2.0])
    second = bandit.choose([np.nan, 3.0, np.nan, np.nan])
    np.testing.assert_array_equal(second.observation, [np.nan, 3.0, np.nan, 2.0])
    nothing: Any = [None, 3.0, 1.0, None]
    assert bandit.choose(nothing).observation[2] == 1.0
    with pytest.raises(kh.InvalidValue, match="missing entries, which need missing='predict'"):
        made().learn(again, 1.0)


def test_pairs_that_do_not_fit_together_are_believed_less() -> None:
    """Three entries, each pair seen in rows of its own, with correlations that cannot be."""
    rng, rows = np.random.default_rng(1), []
    for j, k, sign in ((0, 1, 1), (1, 2, 1), (0, 2, -1)):
        for x in rng.standard_normal(200):
            row = np.full(3, np.nan)
            row[[j, k]] = x, sign * x
            rows.append(row)
    moments = Moments.empty(3)
    moments.add(np.array(rows))
    now = np.array([[1.0, np.nan, 1.0]])
    moments.fill(now)
    assert abs(now[0, 1]) < 3.0


@pytest.mark.parametrize(
    ("dim", "n", "share", "noise"),
    [(20, 5000, 0.5, 0.3), (20, 50, 0.5, 0.3), (5, 5000, 0.1, 0.05), (12, 2000, 0.3, 0.5)],
)
def test_predictions_from_rows_with_missing_are_near_the_best(
    dim: int, n: int, share: float, noise: float
) -> None:
    """One hidden number behind all entries: the error is near that of the true covariance."""
    rng = np.random.default_rng(0)

    def rows(count: int) -> np.ndarray:
        made: np.ndarray = rng.standard_normal((count, 1)) + noise * rng.standard_normal(
            (count, dim)
        )
        return made

    moments, truth = Moments.empty(dim), rows(400)
    past = rows(n)
    past[rng.random(past.shape) < share] = np.nan
    moments.add(past)
    hidden = rng.random(truth.shape) < share
    filled, best = np.where(hidden, np.nan, truth), np.where(hidden, np.nan, truth)
    moments.fill(filled)
    for row in best:
        seen = ~np.isnan(row)
        # Given k of them, the hidden number is their sum over k + noise^2.
        row[~seen] = row[seen].sum() / (seen.sum() + noise**2)

    def error(guess: np.ndarray) -> float:
        return float(np.sqrt(((guess - truth)[hidden] ** 2).mean()))

    assert error(filled) < 1.25 * error(best) + (0.15 if n == 50 else 0.0)
    assert error(filled) < 0.6 * error(np.zeros_like(truth))


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8, 1.7e9])
def test_features_far_from_zero_lose_no_digits(offset: float) -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((2000, 2))
    z[:, 1] = z[:, 0] + 0.1 * z[:, 1]
    bandit = bandit_of(kh.ThompsonSampling(), arms=2, dim=2, seed=1, **ALL)
    bandit.observe(z + offset)
    filled = bandit.choose([offset + 1.0, np.nan]).observation[1] - offset
    assert filled == pytest.approx(1.0, abs=0.02)
    units = bandit._observer.units
    assert units is not None
    for j in range(2):  # 2000 values, of which every 32nd is kept
        middle, scale = robust_unit(z[::32, j] + offset)
        np.testing.assert_allclose(units.scale[j], scale, rtol=1e-5)
        np.testing.assert_allclose(units.middle[j], middle)


def test_masked_entries_and_none_are_missing_and_nothing_else_is() -> None:
    bandit = made(missing="predict")
    bandit.observe(observations(50))
    masked = np.ma.array([1.0, 999.0, 2.0, 3.0], mask=[False, True, False, False])
    expected = bandit._observer.filled(np.array([[1.0, np.nan, 2.0, 3.0]]))[0]
    np.testing.assert_allclose(bandit.choose(masked).observation, expected)
    whole = np.ma.array([1, 999, 2, 3], mask=[False, True, False, False])
    assert np.isfinite(bandit.choose(whole).observation).all()
    for strange in (["1", "2", "3", "4"], np.array(["NaT"] * 4, dtype="datetime64[s]")):
        with pytest.raises(kh.InvalidValue, match="real numbers"):
            bandit.choose(strange)


def test_every_arm_counts_pulled_or_not() -> None:
    bandit = made(missing="predict")
    rows = observations(3)
    bandit.choose(rows)
    later = bandit.choose([np.nan, np.nan, np.nan, np.nan])
    np.testing.assert_allclose(later.observation, rows.mean(axis=0))


def test_asking_for_probabilities_leaves_no_trace() -> None:
    bandit = made(missing="predict", standardize=True)
    for y in with_missing(observations(60), 0.2):
        bandit.learn(bandit.choose(y), 1.0)
    seen = bandit._observer.moments.pairs.copy()
    chances = bandit.choice_probabilities([np.nan, 1.0, 2.0, 3.0])
    assert sum(chances.values()) == pytest.approx(1.0)
    assert (bandit._observer.moments.pairs == seen).all()


def test_many_at_once() -> None:
    bandit, ys = made(missing="predict", intercept=True), with_missing(observations(30), 0.3)
    bandit.observe(observations(40, seed=4))
    decisions = bandit.choose_many(ys)
    assert np.isfinite(decisions.observations).all()
    bandit.learn_many(decisions, np.ones(30))
    assert sum(bandit.counts.values()) == 30


def test_without_the_option_a_missing_entry_is_an_error() -> None:
    with pytest.raises(kh.InvalidValue, match="must be finite"):
        made().choose([np.nan, 1.0, 2.0, 3.0])
    with pytest.raises(kh.InvalidValue, match="must be finite"):
        made(missing="predict").choose([np.inf, 1.0, 2.0, 3.0])
    with pytest.raises(kh.InvalidValue, match="real numbers"):
        made(missing="predict").choose(["a", "b", "c", "d"])
    with pytest.raises(kh.InvalidValue, match="missing must be one of 'predict'"):
        made(missing="guess")
