"""Observations as they come: with gaps, in any units, with a constant. All against closed forms."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core.observers.moments import Moments
from keyhole.core.observers.observer import REWARDS
from keyhole.core.observers.units import MIN_SEEN, Units, robust_unit
from tests.bandits import bandit_of

RNG = np.random.default_rng(1)
MIX = RNG.standard_normal((4, 4))
EFFECTS = RNG.standard_normal((3, 4))


ALL: dict[str, Any] = {"intercept": True, "standardize": True, "missing": "predict"}


def observations(n: int, seed: int = 2) -> np.ndarray:
    """Correlated, far from zero, and in very different units."""
    x: np.ndarray = np.random.default_rng(seed).standard_normal((n, 4)) @ MIX.T
    return x * [1.0, 10.0, 0.1, 1.0] + [5.0, -20.0, 0.0, 1.0]


def with_gaps(y: np.ndarray, share: float, seed: int = 3) -> np.ndarray:
    gaps = np.random.default_rng(seed).random(y.shape) < share
    return np.where(gaps, np.nan, y)


def made(**options: Any) -> kh.Bandit:
    return bandit_of(kh.ThompsonSampling(v=1.0), arms=3, dim=4, seed=8, **options)


def play(bandit: kh.Bandit, ys: np.ndarray, scale: Any = 1.0) -> list[Any]:
    """Arms chosen when the same features come in other units; rewards are those of the features."""
    noise, arms = np.random.default_rng(5).standard_normal(len(ys)), []
    for t, y in enumerate(ys):
        decision = bandit.choose(y * scale)
        arms.append(decision.arm)
        whole = np.nan_to_num(y) / [1.0, 10.0, 0.1, 1.0]
        bandit.learn(decision, float(whole @ EFFECTS[int(decision.arm)] + noise[t]))
    return arms


# -- gaps ------------------------------------------------------------------------------------------


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
def test_gaps_are_filled_by_the_best_linear_prediction(missing: list[int]) -> None:
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
    moments, rows = Moments.empty(4), with_gaps(observations(60, seed=9), 0.3)
    moments.add(with_gaps(observations(200), 0.2))
    rows[10:20, 1] = rows[40, 1] = np.nan
    alone = np.array([row.copy() for row in rows])
    for k in range(60):
        moments.fill(alone[k : k + 1])
    moments.fill(rows)
    np.testing.assert_array_equal(rows, alone)


def test_moments_of_rows_with_gaps_are_those_of_pairs() -> None:
    rows = with_gaps(observations(200), 0.3)
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
def test_predictions_from_rows_with_gaps_are_near_the_best(
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


def test_masked_entries_and_none_are_gaps_and_nothing_else_is() -> None:
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
    for y in with_gaps(observations(60), 0.2):
        bandit.learn(bandit.choose(y), 1.0)
    seen = bandit._observer.moments.pairs.copy()
    chances = bandit.choice_probabilities([np.nan, 1.0, 2.0, 3.0])
    assert sum(chances.values()) == pytest.approx(1.0)
    assert (bandit._observer.moments.pairs == seen).all()


def test_many_at_once() -> None:
    bandit, ys = made(missing="predict", intercept=True), with_gaps(observations(30), 0.3)
    bandit.observe(observations(40, seed=4))
    decisions = bandit.choose_many(ys)
    assert np.isfinite(decisions.observations).all()
    bandit.learn_many(decisions, np.ones(30))
    assert sum(bandit.counts.values()) == 30


def test_without_the_option_a_gap_is_an_error() -> None:
    with pytest.raises(kh.InvalidValue, match="must be finite"):
        made().choose([np.nan, 1.0, 2.0, 3.0])
    with pytest.raises(kh.InvalidValue, match="must be finite"):
        made(missing="predict").choose([np.inf, 1.0, 2.0, 3.0])
    with pytest.raises(kh.InvalidValue, match="real numbers"):
        made(missing="predict").choose(["a", "b", "c", "d"])
    with pytest.raises(kh.InvalidValue, match="missing must be one of 'predict'"):
        made(missing="guess")


# -- units and the constant ------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("missing", ["predict", None])
@pytest.mark.parametrize("scale", [1000.0, 1e-6, [1.0, 1e-3, 1e3, 1e5]])
def test_metres_and_millimetres_decide_alike(intercept: bool, missing: Any, scale: Any) -> None:
    ys = observations(400)
    if missing:
        ys = with_gaps(ys, 0.2)
    options = {"intercept": intercept, "missing": missing, "standardize": True}
    metres, other = made(**options), made(**options)
    assert play(metres, ys) == play(other, ys, np.array(scale))
    np.testing.assert_allclose(metres.posterior.mean, other.posterior.mean, rtol=1e-5, atol=1e-7)


def test_without_standardize_units_matter() -> None:
    """The test above can fail."""
    ys = observations(400)
    assert play(made(), ys) != play(made(), ys, 1e-3)


def test_the_posterior_is_the_sum_of_settled_rows() -> None:
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


def test_rewards_that_waited_are_told_of_features_with_a_few_gaps() -> None:
    bandit, ys = made(**ALL), observations(MIN_SEEN)
    ys[3, 1] = np.nan
    learned(bandit, np.where(np.isnan(ys), 0.0, ys))
    fresh = made(**ALL)
    for t, y in enumerate(ys):
        fresh.choose(y)
        fresh.learn(kh.Decision(arm=t % 3, observation=ys[0]), 1.0)
    units = fresh._observer.units
    assert units is not None
    assert units.known.all()


def test_probabilities_are_those_of_the_next_choice() -> None:
    """Also around the observation that settles the units."""
    bandit = made(standardize=True, intercept=True)
    for t, y in enumerate(observations(MIN_SEEN + 5)):
        chances = bandit.choice_probabilities(y)
        decision = bandit.choose(y)
        assert decision.probability == pytest.approx(chances[decision.arm])
        bandit.learn(decision, float(t % 5))


# -- files and merging -----------------------------------------------------------------------------


@pytest.mark.parametrize("before", [5, 60])
def test_saved_and_loaded_it_goes_on_to_the_bit(tmp_path: Path, before: int) -> None:
    """Before the units are fixed, and after."""
    ys = with_gaps(observations(200), 0.2)
    whole, first = made(**ALL), made(**ALL)
    play(whole, ys[:before])
    play(first, ys[:before])
    first.save(tmp_path / "bandit.npz")
    second = kh.Bandit.load(tmp_path / "bandit.npz", resume=True)
    assert second.counts == whole.counts
    assert play(second, ys[before:]) == play(whole, ys[before:])
    assert (second.posterior.mean == whole.posterior.mean).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seen_pairs", np.full((4, 4), -1.0)),
        ("units_scale", np.full(4, -1.0)),
        ("units_middle", np.full(4, np.nan)),
        ("seen_total", np.zeros(3)),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, name: str, value: np.ndarray) -> None:
    bandit = made(**ALL)
    play(bandit, observations(50))
    bandit.save(tmp_path / "bandit.npz")
    with np.load(tmp_path / "bandit.npz") as file:
        arrays = {**file, name: value}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(kh.FileError):
        kh.Bandit.load(tmp_path / "bad.npz")


def test_counts_that_would_overflow_are_refused(tmp_path: Path) -> None:
    """They fit each other, but the next value would be counted below zero."""
    bandit = made(**ALL)
    play(bandit, observations(50))
    bandit.save(tmp_path / "bandit.npz")
    with np.load(tmp_path / "bandit.npz") as file:
        counts = {"sample_seen": np.full(4, 2**63 - 1), "sample_stride": np.full(4, 2**62)}
        np.savez(tmp_path / "bad.npz", **{**file, **counts})
    with pytest.raises(kh.FileError, match="samples do not fit"):
        kh.Bandit.load(tmp_path / "bad.npz")


def learned(bandit: kh.Bandit, ys: np.ndarray) -> None:
    for t, y in enumerate(ys):
        bandit.learn(bandit.choose(y, among=[t % 3]), float(t % 7))


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


def test_a_shared_parameter_keeps_what_waits_when_arms_go() -> None:
    policy = kh.ThompsonSampling(v=1.0, sharing="shared")
    bandit = bandit_of(policy, arms=3, dim=4, seed=7, standardize=True)
    learned(bandit, observations(9))
    bandit.remove_arms([1])
    bandit.observe(observations(MIN_SEEN))
    assert bandit.posterior.count.tolist() == [9]


def test_removed_arms_take_their_waiting_rewards_along() -> None:
    bandit = made(standardize=True)
    learned(bandit, observations(9))
    bandit.remove_arms([1])
    assert bandit.waiting == {0: 3, 2: 3}
    bandit.observe(observations(MIN_SEEN))
    assert bandit.posterior.count.tolist() == [3, 3]


# -- the rewards' zero -----------------------------------------------------------------------------


def played(added: float, **options: Any) -> tuple[list[Any], list[float], kh.Bandit]:
    """Arms and scores where a number is added to every reward, and the bandit at the end."""
    bandit, rng = made(**options), np.random.default_rng(8)
    arms, scores = [], []
    for y in rng.normal([1.0, -2.0, 0.0, 5.0], [1.0, 0.3, 2.0, 1.0], size=(150, 4)):
        decision = bandit.choose(y)
        reward = y @ [0.5, 1.0, -0.2, 0.1] * int(decision.arm) + rng.standard_normal()
        bandit.learn(decision, float(reward) + added)
        arms.append(decision.arm)
        scores.append(decision.score or 0.0)
    return arms, scores, bandit


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


def test_rewards_wait_for_their_zero() -> None:
    bandit = made(intercept=True)
    for n, y in enumerate(observations(REWARDS), start=1):
        bandit.learn(bandit.choose(y), 50.0 + n)
        assert sum(bandit.waiting.values()) == (0 if n == REWARDS else n)
        assert bandit.posterior.count.sum() == (REWARDS if n == REWARDS else 0)
    assert bandit._observer.zero == 50.0 + (REWARDS + 1) / 2


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


def test_the_zero_is_in_the_file(tmp_path: Path) -> None:
    _, _, bandit = played(100.0, intercept=True)
    bandit.save(tmp_path / "bandit.npz")
    again = kh.Bandit.load(tmp_path / "bandit.npz", resume=True)
    assert again._observer.zero == bandit._observer.zero
    assert again.choose(np.ones(4)).score == bandit.choose(np.ones(4)).score
    with np.load(tmp_path / "bandit.npz") as file:
        arrays = dict(file)
    header = json.loads(str(arrays["header"]))
    for zero in (None, "x", float("nan")):
        arrays["header"] = np.array(json.dumps({**header, "zero": zero}))
        np.savez(tmp_path / "bad.npz", **arrays)
        with pytest.raises(kh.FileError):
            kh.Bandit.load(tmp_path / "bad.npz")
