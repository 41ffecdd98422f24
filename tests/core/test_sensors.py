"""Sensors: beliefs, the posterior over mu, its weights, EM, and truth that arrives late."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import keyhole as kh
from keyhole.core import Draws, Floats, SensorState
from keyhole.core.learners.sensor_configurations import configured
from keyhole.core.learners.sensor_sums import em_step, reward_variance


def spd(rng: np.random.Generator, d: int, scale: float = 1.0) -> Floats:
    root = rng.standard_normal((d, d + 2))
    return scale * (root @ root.T / (d + 2) + 0.1 * np.eye(d))


def a_sensor(
    rng: np.random.Generator, dim: int, context_dim: int, *, mean: Any = None, noise: float = 1.0
) -> kh.Sensor:
    return kh.Sensor(
        sensing=rng.standard_normal((dim, context_dim)),
        context_covariance=spd(np.random.default_rng(99), context_dim),
        sensing_covariance=spd(rng, dim, noise),
        mean=rng.standard_normal(context_dim) if mean is None else mean,
    )


def some_draws(rng: np.random.Generator, n_arms: int) -> Draws:
    return Draws(rng.standard_normal(n_arms), rng.random(2))


# -- beliefs --------------------------------------------------------------------------------------


def test_a_belief_by_hand() -> None:
    # x ~ N(1, 4), y = 2 x + N(0, 9): D = 8 / 25, S = 4 - 64 / 25.
    sensor = kh.Sensor(sensing=[[2.0]], context_covariance=4.0, sensing_covariance=9.0, mean=[1.0])
    belief = sensor.belief([7.0])
    assert_allclose(belief.mean, [1.0 + 8.0 / 25.0 * 5.0])
    assert_allclose(belief.covariance, [[4.0 - 64.0 / 25.0]])


@pytest.mark.parametrize(("dim", "context_dim"), [(3, 5), (5, 3), (4, 4)])
def test_a_belief_is_the_dense_conditional(dim: int, context_dim: int) -> None:
    rng = np.random.default_rng(dim)
    sensor = a_sensor(rng, dim, context_dim)
    y = rng.standard_normal(dim)
    a, sx = sensor.sensing, sensor.context_covariance
    sy = a @ sx @ a.T + sensor.sensing_covariance
    belief = sensor.belief(y)
    gain = sx @ a.T @ np.linalg.inv(sy)
    assert_allclose(belief.mean, sensor.mean + gain @ (y - a @ sensor.mean), rtol=1e-10)
    assert_allclose(belief.covariance, sx - gain @ a @ sx, atol=1e-12)
    # The information form, which is another formula for the same.
    precision = np.linalg.inv(sx) + a.T @ np.linalg.inv(sensor.sensing_covariance) @ a
    assert_allclose(belief.covariance, np.linalg.inv(precision), atol=1e-11)


def test_a_missing_entry_is_a_missing_row() -> None:
    rng = np.random.default_rng(4)
    whole = a_sensor(rng, 4, 3)
    kept = [0, 3]
    part = kh.Sensor(
        sensing=whole.sensing[kept],
        context_covariance=whole.context_covariance,
        sensing_covariance=whole.sensing_covariance[np.ix_(kept, kept)],
        mean=whole.mean,
    )
    found, expected = whole.belief(np.array([0.3, None, np.nan, -2.0])), part.belief([0.3, -2.0])
    assert_allclose(found.mean, expected.mean, rtol=1e-12)
    assert_allclose(found.covariance, expected.covariance, rtol=1e-12)
    nothing = whole.belief([np.nan] * 4)
    assert_allclose(nothing.mean, whole.mean)
    assert_allclose(nothing.covariance, whole.context_covariance)


def test_a_perfect_sensor_believes_what_it_sees() -> None:
    sensor = kh.Sensor(sensing=np.eye(2), sensing_covariance=0.0)
    belief = sensor.belief([1.0, -2.0])
    assert_allclose(belief.mean, [1.0, -2.0])
    assert_allclose(belief.covariance, 0.0, atol=1e-15)


def test_calibration_finds_the_sensor_within_its_standard_errors() -> None:
    rng = np.random.default_rng(5)
    sensor = a_sensor(rng, 2, 3)
    n = 20_000
    x = rng.multivariate_normal(sensor.mean, sensor.context_covariance, n)
    noise = rng.multivariate_normal(np.zeros(2), sensor.sensing_covariance, n)
    found = kh.Sensor.calibrated(x, x @ sensor.sensing.T + noise)
    assert found.doubt is not None
    true = sensor.view(np.ones(2, bool))
    gain = found.view(np.ones(2, bool))
    # Cov(D_hat' mu) = mu'S mu Sy^-1 / n for mu = e_j: the doubt that the sensor states.
    inverse = np.linalg.inv(sensor.observation_covariance)
    error = np.sqrt(np.outer(np.diag(true.covariance), np.diag(inverse)) / n)
    assert (np.abs(gain.gain - true.gain) < 4.5 * error).all()
    assert_allclose(
        np.sqrt(np.outer(np.diag(found.doubt.spread), np.diag(np.linalg.inv(found.doubt.gram)))),
        error,
        rtol=0.05,
    )
    assert_allclose(gain.covariance, true.covariance, atol=4.5 * 2.0 * np.sqrt(2.0 / n))


def test_calibration_does_not_depend_on_units() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((12, 2)), rng.standard_normal((12, 3))
    plain, scaled = kh.Sensor.calibrated(x, y), kh.Sensor.calibrated(x * 1e-3, y * 1e4)
    assert_allclose(scaled.belief(y[0] * 1e4).mean, plain.belief(y[0]).mean * 1e-3, rtol=1e-9)


def test_repeats_find_the_sensor() -> None:
    rng = np.random.default_rng(7)
    context, noise, n = spd(rng, 3), spd(rng, 3), 20_000
    x = rng.multivariate_normal([1.0, 0.0, -1.0], context, n)
    y1, y2 = (x + rng.multivariate_normal(np.zeros(3), noise, n) for _ in range(2))
    found = kh.Sensor.from_repeats(y1, y2)
    # An entry of a covariance of n rows has a standard error of at most (s_i s_j sqrt 2) / sqrt n.
    total = context + noise
    error = np.sqrt(2.0 * np.outer(np.diag(total), np.diag(total)) / n)
    assert (np.abs(found.context_covariance - context) < 4.5 * error).all()
    assert (np.abs(found.sensing_covariance - noise) < 4.5 * error).all()
    assert_allclose(found.mean, [1.0, 0.0, -1.0], atol=4.5 * np.sqrt(total.max() / n))


def test_a_shift_between_the_sessions_of_repeats_changes_no_covariance() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(5.0, 1.0, size=(400, 2))
    y1, y2 = (x + rng.standard_normal(x.shape) for _ in range(2))
    plain, shift = kh.Sensor.from_repeats(y1, y2), np.array([1.5, -30.0])
    moved = kh.Sensor.from_repeats(y1, y2 + shift)
    assert_allclose(moved.context_covariance, plain.context_covariance, rtol=1e-10, atol=1e-12)
    assert_allclose(moved.sensing_covariance, plain.sensing_covariance, rtol=1e-10, atol=1e-12)
    assert_allclose(moved.mean, plain.mean + shift / 2.0, rtol=1e-12)
    assert not moved.offset.any()
    # By the definition of a covariance, each about its own mean.
    cross = np.cov(y1.T, y2.T)[:2, 2:]
    assert_allclose(moved.context_covariance, 0.5 * (cross + cross.T), rtol=1e-10)


# -- one configuration ----------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "context_dim"), [(3, 6), (4, 4), (6, 3)])
def test_one_configuration_is_eta_space_with_the_transformed_prior(
    dim: int, context_dim: int
) -> None:
    """mu-space with prior L equals eta-space with prior covariance D'L^-1 D, normal by normal."""
    rng = np.random.default_rng(dim)
    sensor, n_arms, v = a_sensor(rng, dim, context_dim, mean=np.zeros(context_dim)), 4, 0.7
    policy = kh.ThompsonSampling(v=v, prior_precision=2.0)
    learner = kh.SensorLearner(policy, sensor)
    state = learner.start(n_arms, dim)
    gain = sensor.view(np.ones(dim, bool)).gain
    covariance = np.array([gain.T @ gain / 2.0] * n_arms)  # of eta, over v^2
    mean = np.zeros((n_arms, dim))
    mu = rng.standard_normal((n_arms, context_dim))
    for _ in range(300):
        y = rng.standard_normal((n_arms, dim)) @ np.linalg.cholesky(sensor.observation_covariance).T
        draws = some_draws(rng, n_arms)
        arm = learner.choose(state, y, draws).arm
        width = np.sqrt(np.einsum("nd,nde,ne->n", y, covariance, y))
        assert arm == np.argmax((y * mean).sum(axis=1) + v * width * draws.normals)
        reward = float(gain @ y[arm] @ mu[arm] + rng.standard_normal())
        learner.learn(state, arm, y[arm], reward)
        step = covariance[arm] @ y[arm]
        spread = 1.0 + y[arm] @ step
        mean[arm] += step * (reward - y[arm] @ mean[arm]) / spread
        covariance[arm] -= np.outer(step, step) / spread
    assert_allclose(state.posterior.mean @ gain, mean, atol=1e-9)
    assert (state.weights[1] == 1.0).all()


def test_one_configuration_is_the_plain_learner_on_beliefs() -> None:
    rng = np.random.default_rng(3)
    sensor, n_arms = a_sensor(rng, 3, 4), 3
    learner, plain = (
        kh.SensorLearner(kh.ThompsonSampling(), sensor),
        kh.Learner(kh.ThompsonSampling()),
    )
    state, other = learner.start(n_arms, 3), plain.start(n_arms, 4)
    for _ in range(200):
        y, draws = rng.standard_normal(3), some_draws(rng, n_arms)
        belief = sensor.belief(y).mean
        chosen, expected = learner.choose(state, y, draws), plain.choose(other, belief, draws)
        assert chosen.arm == expected.arm
        assert chosen.probability == pytest.approx(expected.probability, abs=1e-12)
        reward = float(rng.standard_normal())
        learner.learn(state, chosen.arm, y, reward)
        plain.learn(other, chosen.arm, belief, reward)
    assert_allclose(state.posterior.mean, other.posterior.mean, rtol=1e-12)


# -- weights --------------------------------------------------------------------------------------


def unequal(rng: np.random.Generator, context_dim: int = 4, n: int = 3) -> list[kh.Sensor]:
    noises = (0.05, 1.0, 20.0)[:n]
    mean = rng.standard_normal(context_dim)
    return [a_sensor(rng, 3, context_dim, mean=mean, noise=noise) for noise in noises]


def played(
    learner: kh.SensorLearner,
    rng: np.random.Generator,
    rounds: int,
    n_arms: int = 2,
    late: float = 0.0,
    missing: float = 0.0,
) -> tuple[SensorState, list[Any]]:
    """Return a state that learned random rounds, and the rows: (arm, sensor, y, x or None, r)."""
    state, rows = learner.start(n_arms, learner.dim), []
    mu = rng.standard_normal((n_arms, learner.context_dim))
    for _ in range(rounds):
        arm, j = int(rng.integers(n_arms)), int(rng.integers(len(learner.sensors)))
        sensor = learner.sensors[j]
        x = rng.multivariate_normal(sensor.mean, sensor.context_covariance)
        y = sensor.sensing @ x + rng.multivariate_normal(
            np.zeros(sensor.dim), sensor.sensing_covariance
        )
        y[rng.random(sensor.dim) < missing] = np.nan
        reward = float(x @ mu[arm] + 0.5 * rng.standard_normal())
        known = x if rng.random() < late else None
        learner.learn(state, arm, y, reward, sensor=learner.names[j], context=known)
        rows.append((arm, j, y, known, reward))
    return state, rows


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_reweighted_sums_are_weighted_least_squares(intercept: bool, missing: float) -> None:
    rng = np.random.default_rng(8)
    learner = kh.SensorLearner(kh.ThompsonSampling(), unequal(rng), intercept=intercept)
    state, rows = played(learner, rng, 150, missing=missing, late=0.2)
    state.refresh_all()
    for arm in range(2):
        design, rewards, weights = [], [], []
        for of, j, y, x, reward in rows:
            if of != arm:
                continue
            sensor = learner.sensors[j]
            place = 0 if x is not None else state.configuration(j, ~np.isnan(y))
            row = sensor.belief(y).mean if x is None else x
            # With a constant, contexts count from their mean and rewards from their first ones.
            row = row - sensor.mean if intercept else row
            # The constant has a unit of its own, which makes its prior wide.
            design.append(np.concatenate([state.units[arm, :1] if intercept else [], row]))
            rewards.append(reward - state.zero)
            weights.append(state.weights[place, arm])
        u, r, w = np.array(design), np.array(rewards), np.array(weights)
        precision = np.eye(u.shape[1]) + (u * w[:, None]).T @ u
        mean = np.linalg.solve(precision, u.T @ (w * r))
        assert_allclose(state.posterior.precision[arm], precision, rtol=1e-9, atol=1e-9)
        assert_allclose(state.posterior.mean[arm], mean, rtol=1e-8, atol=1e-10)
        assert_allclose(state.posterior.squares[arm], (w * r * r).sum(), rtol=1e-10)
        assert state.posterior.count[arm] == len(r)
        assert w.mean() == pytest.approx(1.0, abs=1e-12)
        assert w.max() > 1.5 * w.min()


def test_weights_are_one_over_the_variance_of_a_reward() -> None:
    rng = np.random.default_rng(9)
    learner = kh.SensorLearner(kh.ThompsonSampling(), unequal(rng), reward_scale=0.5)
    state, _ = played(learner, rng, 400)
    seconds = [state._second_moment(arm) for arm in range(2)]
    state.refresh_all()
    for arm, second in enumerate(seconds):
        variance = [
            0.25 + np.trace(s.view(np.ones(3, bool)).covariance @ second) for s in learner.sensors
        ]
        found = state.weights[1:, arm]
        order = [c.sensor for c in state.configurations[1:]]
        expected = 1.0 / np.array(variance)[order]
        # The other arm's refresh moves the noise that arms share by a little.
        assert_allclose(found / found[0], expected / expected[0], rtol=1e-5)


def test_the_reward_variance_is_found_where_most_of_the_error_is_unseen_context() -> None:
    rng = np.random.default_rng(10)
    n, unseen, s2 = np.array([4000.0, 4000.0]), np.array([0.0, 50.0]), 0.25
    errors = np.array([(rng.standard_normal(4000) ** 2).sum() * (s2 + a) for a in unseen])
    found = reward_variance(n, errors, unseen)
    # The first group alone has a standard error of s^2 sqrt(2 / n).
    assert abs(found - s2) < 4.5 * s2 * np.sqrt(2.0 / 4000.0) + 2.0 / 4000.0 * 50.0
    # Without unseen context it is the mean square error, whatever the groups.
    assert reward_variance(n, errors, np.zeros(2)) == pytest.approx(errors.sum() / n.sum())


def test_rewards_without_noise_are_learned() -> None:
    learner = kh.SensorLearner(kh.ThompsonSampling(), unequal(np.random.default_rng(2)))
    state = learner.start(2, 3)
    for k in range(20):
        learner.learn(state, 0, np.ones(3), 0.0, sensor=k % 3)
    assert np.isfinite(state.posterior.mean).all()
    assert np.isfinite(state.posterior.covariance).all()


# -- constants ------------------------------------------------------------------------------------


def test_a_constant_is_that_of_the_plain_learner_on_centred_beliefs() -> None:
    """Rewards count from the median of the first 8, and the constant's column has a unit."""
    rng = np.random.default_rng(30)
    sensor = a_sensor(rng, 3, 2, mean=np.array([1e4, -50.0]))
    learner = kh.SensorLearner(kh.ThompsonSampling(), sensor, intercept=True)
    state, rewards, seen = learner.start(3, 3), [], []
    for k in range(200):
        y, arm = sensor.observation_mean + rng.standard_normal(3), int(rng.integers(3))
        belief = sensor.belief(y).mean - sensor.mean
        rewards.append(float(1e5 + 30.0 * arm + belief.sum() + rng.standard_normal()))
        learner.learn(state, arm, y, rewards[-1])
        seen.append((arm, belief))
        assert state.zero == np.median(rewards[: min(k + 1, 8)])
    unit = state.units[0, 0]
    plain = kh.Posterior(n_parameters=3, dim=3)
    for (arm, belief), reward in zip(seen, rewards, strict=True):
        plain.learn(arm, np.array([unit, *belief]), reward - state.zero)
    assert_allclose(state.posterior.mean, plain.mean, rtol=1e-7, atol=1e-9)
    assert_allclose(state.posterior.covariance, plain.covariance, rtol=1e-7, atol=1e-12)
    for _ in range(20):
        y, draws = sensor.observation_mean + rng.standard_normal(3), some_draws(rng, 3)
        row = np.array([[unit, *(sensor.belief(y).mean - sensor.mean)]])
        location, scale = plain.scores(state.rule, state.arms.parameter_of, row)
        chance = kh.choice_probabilities(location, scale)[0]
        chosen = learner.choose(state, y, draws)
        assert chosen.arm == np.argmax(location[0] + scale[0] * draws.normals)
        assert chosen.probability == pytest.approx(chance[chosen.arm], abs=1e-6)


def apart(distance: float, n: int = 200, policy: Any = None) -> SensorState:
    """Return what is learned of two arms with constants at +- distance and a slope of 1."""
    rng = np.random.default_rng(33)
    sensor = kh.Sensor(sensing=[[1.0]], sensing_covariance=0.01)
    learner = kh.SensorLearner(policy or kh.Uniform(), sensor, intercept=True)
    state = learner.start(2, 1)
    for k in range(n):
        x, sign = rng.standard_normal(), 1.0 if k % 2 else -1.0
        reward = sign * distance + x + 0.3 * rng.standard_normal()
        learner.learn(state, k % 2, np.array([x + 0.1 * rng.standard_normal()]), float(reward))
    return state


def test_arms_far_apart_are_estimated_as_arms_that_are_close() -> None:
    close, distant = apart(1.0), apart(1000.0)
    (constants, errors), (mean, covariance) = distant.constants(), distant.estimates()
    # Standard errors are those of close arms, and 4.5 of them cover.
    assert_allclose(errors, close.constants()[1], rtol=1e-6)
    assert_allclose(covariance, close.estimates()[1], rtol=1e-6)
    assert (np.abs(constants - [-1000.0, 1000.0]) < 4.5 * errors).all()
    assert (np.abs(mean[:, 0] - 1.0) < 4.5 * np.sqrt(covariance[:, 0, 0])).all()
    # The residuals of the posterior that choices are made by are noise, s^2 + mu'S mu = 0.1.
    left = distant.posterior.state.residual - distant.posterior.state.penalty
    assert_allclose(left / 98.0, 0.1, rtol=4.5 * np.sqrt(2.0 / 98.0))


def test_estimates_are_weighted_least_squares_without_the_prior() -> None:
    """A prior of precision 1 would halve coefficients of contexts in units this small."""
    rng = np.random.default_rng(34)
    sensors = [
        kh.Sensor(sensing=np.eye(2), context_covariance=1e-4, sensing_covariance=noise)
        for noise in (1e-6, 1e-4)
    ]
    learner = kh.SensorLearner(kh.Uniform(), sensors, intercept=True)
    state, rows, rewards, weights = learner.start(1, 2), [], [], []
    for k in range(150):
        x = 1e-2 * rng.standard_normal(2)
        y = x + np.sqrt((1e-6, 1e-4)[k % 2]) * rng.standard_normal(2)
        rewards.append(float(7.0 + 100.0 * x[0] - 50.0 * x[1] + 0.1 * rng.standard_normal()))
        learner.learn(state, 0, y, rewards[-1], sensor=k % 2)
        rows.append([1.0, *sensors[k % 2].belief(y).mean])
        weights.append(state.configuration(k % 2, np.ones(2, bool)))
    u, r, w = np.array(rows), np.array(rewards), state.weights[weights, 0]
    gram = (u * w[:, None]).T @ u
    expected = np.linalg.solve(gram, u.T @ (w * r))
    noise = (w * (r - u @ expected) ** 2).sum() / (len(r) - 3)
    covariance = noise * np.linalg.inv(gram)
    (mean,), (found,) = state.estimates()
    (constant,), (error,) = state.constants()
    assert_allclose(mean, expected[1:], rtol=1e-7)
    assert_allclose(found, covariance[1:, 1:], rtol=1e-6)
    assert_allclose([constant, error], [expected[0], np.sqrt(covariance[0, 0])], rtol=1e-7)


def test_what_no_reward_has_shown_has_the_variance_of_the_prior() -> None:
    sensor = kh.Sensor(sensing=[[1.0, 0.0]], sensing_covariance=0.25)  # x[1] is never seen
    learner = kh.SensorLearner(kh.Uniform(prior_precision=4.0), sensor)
    rng, state = np.random.default_rng(35), learner.start(1, 1)
    for _ in range(50):
        y = rng.standard_normal(1)
        learner.learn(state, 0, y, float(y[0] + 0.1 * rng.standard_normal()))
    (mean,), (covariance,) = state.estimates()
    assert mean[1] == 0.0
    assert covariance[0, 1] == 0.0
    assert covariance[1, 1] == pytest.approx(state.posterior.noise_scale()[0] ** 2 / 4.0)
    assert covariance[0, 0] < 0.1 * covariance[1, 1]


def test_the_best_of_arms_far_apart_is_tried() -> None:
    """Constants are many times the noise apart, which a prior in units of the noise rules out."""
    sensor = kh.Sensor(sensing=[[1.0]], sensing_covariance=0.01)
    learner = kh.SensorLearner(kh.ThompsonSampling(), sensor, intercept=True)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        constants, state = 2.0 * rng.permutation(12), learner.start(12, 1)
        for _ in range(100):
            y = rng.standard_normal(1)
            arm = learner.choose(state, y, some_draws(rng, 12)).arm
            learner.learn(state, arm, y, float(constants[arm] + 0.3 * rng.standard_normal()))
        assert state.n[np.argmax(constants)] > 50


def far(mean: float, n: int = 400, **settings: Any) -> tuple[kh.SensorLearner, SensorState]:
    """Return a learner of r = 0.3 x + 10 + noise, with contexts about a mean."""
    rng = np.random.default_rng(31)
    x = mean + rng.standard_normal(n)
    y = (x + 0.5 * rng.standard_normal(n))[:, None]
    rewards = 0.3 * x + 10.0 + 0.1 * rng.standard_normal(n)
    kinds = {
        "known": lambda: kh.Sensor(sensing=[[1.0]], sensing_covariance=0.25, mean=mean),
        "calibrated": lambda: kh.Sensor.calibrated(x[:30, None], y[:30]),
        "unknown": lambda: kh.Sensor.calibrated(np.empty((0, 1)), np.empty((0, 1))),
    }
    kind, late = settings.pop("kind", "known"), settings.pop("late", 0)
    learner = kh.SensorLearner(
        kh.ThompsonSampling(), kinds[kind](), intercept=True, reward_scale=0.1, **settings
    )
    state = learner.start(1, 1)
    for k in range(n):
        context = x[k : k + 1] if late and k % late == 0 else None
        learner.learn(state, 0, y[k], float(rewards[k]), context=context)
    return learner, state


@pytest.mark.parametrize(("kind", "late"), [("known", 0), ("calibrated", 3), ("unknown", 2)])
@pytest.mark.parametrize("mean", [0.0, 1e3, 1e6])
def test_contexts_and_rewards_may_be_about_any_number(mean: float, kind: str, late: int) -> None:
    """The slope is found within its stated error, and so is the constant at a context of 0."""
    _, state = far(mean, kind=kind, late=late)
    (estimate,), (covariance,) = state.estimates()
    error = float(np.sqrt(covariance[0, 0]))
    assert abs(estimate[0] - 0.3) < 4.0 * error < 0.2
    (constant,), (constant_error,) = state.constants()
    assert abs(constant - 10.0) < 4.0 * constant_error
    assert constant_error == pytest.approx(mean * error, rel=0.1) if mean else True


def test_a_number_added_to_all_rewards_and_contexts_changes_no_choice() -> None:
    rng = np.random.default_rng(32)
    first = [a_sensor(rng, 2, 2, mean=np.zeros(2)) for _ in range(2)]
    moved = [
        kh.Sensor(
            sensing=one.sensing,
            context_covariance=one.context_covariance,
            sensing_covariance=one.sensing_covariance,
            mean=np.full(2, 2.0**12),
            offset=-one.sensing @ np.full(2, 2.0**12),
        )
        for one in first
    ]
    here, there = (
        kh.SensorLearner(kh.ThompsonSampling(), sensors, intercept=True)
        for sensors in (first, moved)
    )
    state, other = here.start(3, 2), there.start(3, 2)
    for k in range(150):
        y, draws, reward = rng.standard_normal(2), some_draws(rng, 3), float(rng.integers(-9, 9))
        x = rng.integers(-3, 4, size=2) if k % 5 == 0 else None
        chosen = here.choose(state, y, draws, sensor=k % 2)
        assert chosen.arm == there.choose(other, y, draws, sensor=k % 2).arm
        here.learn(state, chosen.arm, y, reward, sensor=k % 2, context=x)
        later = None if x is None else x + 2.0**12
        there.learn(other, chosen.arm, y, reward + 2.0**20, sensor=k % 2, context=later)
    assert other.zero == state.zero + 2.0**20
    assert_allclose(state.estimates()[0], other.estimates()[0], rtol=1e-6, atol=1e-9)


# -- EM -------------------------------------------------------------------------------------------


def test_em_from_sums_is_em_on_rows() -> None:
    rng = np.random.default_rng(11)
    d, s2, mu = 3, 0.3, rng.standard_normal(3)
    prior, unseen = spd(rng, d), np.array([spd(rng, d), np.zeros((d, d)), spd(rng, d, 0.2)])
    rows, rewards = rng.standard_normal((3, 7, d)), rng.standard_normal((3, 7))
    left, right = prior.copy(), np.zeros(d)
    for S, xs, rs in zip(unseen, rows, rewards, strict=True):
        for x_hat, r in zip(xs, rs, strict=True):
            # Condition (x, r) on r: dense, row by row.
            gain = S @ mu / (s2 + mu @ S @ mu)
            mean = x_hat + gain * (r - x_hat @ mu)
            covariance = S - np.outer(gain, mu @ S)
            left += (covariance + np.outer(mean, mean)) / s2
            right += r * mean / s2
    sums = (
        np.einsum("mtd,mte->mde", rows, rows),
        np.einsum("mt,mtd->md", rewards, rows),
        np.full(3, 7.0),
        (rewards**2).sum(axis=1),
    )
    assert_allclose(em_step(mu, s2, unseen, sums, prior), np.linalg.solve(left, right), rtol=1e-11)


def test_em_has_a_larger_likelihood_than_least_squares() -> None:
    rng = np.random.default_rng(12)
    sensors = unequal(rng)
    state, rows = played(kh.SensorLearner(kh.ThompsonSampling(), sensors), rng, 300)
    rng = np.random.default_rng(12)
    unequal(rng)
    learner = kh.SensorLearner(kh.ThompsonSampling(), sensors, em=True)
    other, same = played(learner, rng, 300)
    assert [row[-1] for row in rows] == [row[-1] for row in same]
    state.refresh_all()
    other.refresh_all()
    s2 = other.reward_variance

    def objective(mu: Floats, v2: float, arm: int) -> float:
        total: Any = -0.5 * mu @ mu / v2
        for of, j, y, _, r in rows:
            belief = sensors[j].belief(y)
            if of == arm:
                variance = s2 + mu @ belief.covariance @ mu
                total -= 0.5 * (np.log(variance) + (r - belief.mean @ mu) ** 2 / variance)
        return float(total)

    for arm in range(2):
        em, plain = other.posterior.mean[arm], state.posterior.mean[arm]
        v2 = other.numerators[arm]
        assert objective(em, v2, arm) > objective(plain, v2, arm)
        # And it is a maximum: no small step helps.
        for step in 1e-3 * np.concatenate([np.eye(4), -np.eye(4)]):
            assert objective(em, v2, arm) > objective(em + step, v2, arm) - 1e-9


# -- truth that arrives late ----------------------------------------------------------------------


@pytest.mark.parametrize("late", [True, False])
def test_a_perfect_sensor_or_late_truth_is_the_fully_observed_bandit(late: bool) -> None:
    """Contexts that arrive with every reward, and those seen at once, give the same choices."""
    rng = np.random.default_rng(13)
    d, n_arms = 4, 3
    sensor = kh.Sensor(sensing=np.eye(d), context_covariance=spd(rng, d), sensing_covariance=0.0)
    learner, plain = (
        kh.SensorLearner(kh.ThompsonSampling(), sensor),
        kh.Learner(kh.ThompsonSampling()),
    )
    state, other = learner.start(n_arms, d), plain.start(n_arms, d)
    mu = rng.standard_normal((n_arms, d))
    for _ in range(200):
        x, draws = rng.standard_normal((n_arms, d)), some_draws(rng, n_arms)
        arm = learner.choose(state, x, draws).arm
        assert arm == plain.choose(other, x, draws).arm
        reward = float(x[arm] @ mu[arm] + rng.standard_normal())
        learner.learn(state, arm, x[arm], reward, context=x[arm] if late else None)
        plain.learn(other, arm, x[arm], reward)
    assert_allclose(state.posterior.mean, other.posterior.mean, rtol=1e-9)


def test_late_truth_in_some_rounds_is_exact() -> None:
    """Rows with a known context count with s^2, the others with s^2 + mu'S mu: dense check above.

    Here: half of the rounds with the truth leave a smaller covariance than none.
    """
    rng = np.random.default_rng(14)
    sensors = unequal(rng)[2:]
    some, none = (
        played(
            kh.SensorLearner(kh.ThompsonSampling(), sensors), np.random.default_rng(1), 400, late=p
        )
        for p in (0.5, 0.0)
    )
    for arm in range(2):
        with_truth, without = (s[0].estimates()[1][arm] for s in (some, none))
        assert np.trace(with_truth) < 0.5 * np.trace(without)


def test_late_truth_refines_a_calibrated_sensor_and_what_was_learned_before() -> None:
    rng = np.random.default_rng(15)
    true = a_sensor(rng, 3, 2, mean=np.zeros(2))

    def pairs(n: int) -> tuple[Floats, Floats]:
        x = rng.multivariate_normal(true.mean, true.context_covariance, n)
        noise = rng.multivariate_normal(np.zeros(3), true.sensing_covariance, n)
        return x, x @ true.sensing.T + noise

    x0, y0 = pairs(5)
    learner = kh.SensorLearner(kh.ThompsonSampling(), kh.Sensor.calibrated(x0, y0))
    state = learner.start(1, 3)
    x, y = pairs(60)
    rewards = x @ [1.0, -1.0] + 0.3 * rng.standard_normal(60)
    for k in range(60):
        learner.learn(state, 0, y[k], float(rewards[k]), context=x[k] if k >= 20 else None)
    # The sums of (x, y) are those of all pairs.
    together = kh.Sensor.calibrated(np.vstack([x0, x[20:]]), np.vstack([y0, y[20:]]))
    assert together.pairs is not None
    assert_allclose(state.pairs[0].covariance, together.pairs.covariance, rtol=1e-9)
    state.estimate_sensor(0)
    state.refresh_all()
    # Rewards that came before the truth count at beliefs of the sensor as it is known now.
    beliefs = np.array([together.belief(row).mean for row in y[:20]])
    place = state.configuration(0, np.ones(3, bool))
    found = state.sums[place].times(state.configurations[place].columns)
    assert_allclose(found.gram[0, :2, :2], beliefs.T @ beliefs, rtol=1e-8)
    assert_allclose(found.moment[0, :2], beliefs.T @ rewards[:20], rtol=1e-8)


# -- calibrated sensors ---------------------------------------------------------------------------


def test_an_estimated_sensor_has_the_prior_that_its_doubt_says() -> None:
    """Before any reward the coefficients of y are D'mu + delta, delta ~ N(0, a gram^-1)."""
    rng = np.random.default_rng(16)
    x = rng.standard_normal((15, 2))
    y = x @ rng.standard_normal((2, 3)) + rng.standard_normal((15, 3))
    sensor = kh.Sensor.calibrated(x, y)
    assert sensor.doubt is not None
    learner = kh.SensorLearner(kh.ThompsonSampling(v=1.0, prior_precision=4.0), sensor)
    state = learner.start(1, 3)
    view, mid = sensor.view(np.ones(3, bool)), sensor.observation_mean
    a = np.trace(sensor.doubt.spread) / 4.0  # E[mu'S mu] with mu ~ N(0, I / 4), below v^2 = 1
    assert a < 1.0
    for at in (mid, y[0], y[1] * 3.0):
        place = state.configuration(0, np.ones(3, bool))
        row = state.rows(state.configurations[place].design(at)[None], state.arms)[0]
        x_hat = view.constant + view.gain @ at
        doubt = a * ((at - mid) @ np.linalg.inv(sensor.doubt.gram) @ (at - mid) + 1 / 16.0)
        assert row @ row / 4.0 == pytest.approx(x_hat @ x_hat / 4.0 + doubt, rel=1e-9)


@pytest.mark.parametrize("v", ["learned", 0.5])
def test_a_sensor_calibrated_from_no_pairs_is_learning_eta(v: Any) -> None:
    """The same normals give the same choices: doubt about everything is the plain prior."""
    rng = np.random.default_rng(19)
    unknown = kh.Sensor.calibrated(np.empty((0, 5)), np.empty((0, 3)), centred=True)
    policy = kh.ThompsonSampling(v)
    learner, plain = kh.SensorLearner(policy, unknown), kh.Learner(policy)
    state, other = learner.start(3, 3), plain.start(3, 3)
    for _ in range(200):
        y, draws = rng.standard_normal((3, 3)), some_draws(rng, 3)
        chosen, expected = learner.choose(state, y, draws), plain.choose(other, y, draws)
        assert chosen.arm == expected.arm
        assert chosen.probability == pytest.approx(expected.probability, abs=1e-9)
        reward = float(y[chosen.arm].sum() + rng.standard_normal())
        learner.learn(state, chosen.arm, y[chosen.arm], reward)
        plain.learn(other, chosen.arm, y[chosen.arm], reward)
    assert state.posterior.dim == 3
    assert_allclose(state.posterior.noise_scale(), other.posterior.noise_scale(), rtol=1e-9)


def test_late_truth_after_rewards_through_estimated_sensors_keeps_what_they_taught() -> None:
    """The first known context needs all columns: nothing that was learned before is lost."""
    rng = np.random.default_rng(20)
    x = rng.standard_normal((25, 2))
    sensor = kh.Sensor.calibrated(x, x @ rng.standard_normal((2, 4)))
    learner = kh.SensorLearner(kh.ThompsonSampling(), sensor)
    state = learner.start(2, 4)
    for k in range(40):
        learner.learn(state, k % 2, rng.standard_normal(4), float(rng.standard_normal()))
    assert state.posterior.dim == 5
    y = rng.standard_normal(4)
    place = state.configuration(0, np.ones(4, bool))

    def predicted() -> Floats:
        rows = state.rows(state.configurations[place].design(y)[None], state.arms)
        return np.concatenate(state.posterior.predict(np.arange(2), rows[None]))

    before = predicted()
    learner.learn(state, 0, y, 0.0, context=np.zeros(2))  # of which nothing follows for mu
    assert state.posterior.dim == 7
    assert state.posterior.count.tolist() == [21, 20]
    assert_allclose(predicted(), before, rtol=0.2)


def test_a_wrong_sensor_is_corrected_by_rewards() -> None:
    """A sensor calibrated from a handful of pairs predicts as well as least squares in the end."""
    rng = np.random.default_rng(17)
    true = a_sensor(rng, 3, 2, mean=np.zeros(2))
    mu = np.array([1.5, -1.0])

    def drawn(n: int) -> tuple[Floats, Floats]:
        x = rng.multivariate_normal(true.mean, true.context_covariance, n)
        noise = rng.multivariate_normal(np.zeros(3), true.sensing_covariance, n)
        return x, x @ true.sensing.T + noise

    rough = kh.Sensor.calibrated(*drawn(6))
    learner = kh.SensorLearner(kh.ThompsonSampling(), rough)
    state = learner.start(1, 3)
    x, y = drawn(3000)
    rewards = x @ mu + 0.3 * rng.standard_normal(3000)
    for k in range(3000):
        learner.learn(state, 0, y[k], float(rewards[k]))
    place = state.configuration(0, np.ones(3, bool))
    test_y = drawn(200)[1]
    rows = state.rows(
        np.array([state.configurations[place].design(row) for row in test_y]), state.arms
    )
    eta = true.view(np.ones(3, bool)).gain.T @ mu
    error = np.sqrt(np.mean((rows @ state.posterior.mean[0] - test_y @ eta) ** 2))
    noise = np.sqrt(0.09 + mu @ true.view(np.ones(3, bool)).covariance @ mu)
    # Least squares on y has a root mean square error of noise sqrt(3 / n).
    assert error < 2.0 * noise * np.sqrt(4.0 / 3000.0)


def calibrated(rng: np.random.Generator, n: int = 12, dim: int = 3) -> kh.Sensor:
    x = rng.standard_normal((n, 2))
    return kh.Sensor.calibrated(
        x, x @ rng.standard_normal((2, dim)) + rng.standard_normal((n, dim))
    )


@pytest.mark.parametrize("rebuilt", [False, True])
def test_weights_follow_from_the_posterior_in_the_basis_that_it_was_built_in(rebuilt: bool) -> None:
    """A refresh that changes units and bases reads the mean and covariance from before."""
    rng = np.random.default_rng(21)
    learner = kh.SensorLearner(
        kh.ThompsonSampling(), [calibrated(rng), calibrated(rng)], reward_scale=0.5
    )
    state = learner.start(1, 3)
    for k in range(31):
        y = rng.standard_normal(3)
        learner.learn(state, 0, y, float(3.0 * y.sum() + rng.standard_normal()), sensor=k % 2)
    assert state.bases is not None
    # A basis is any orthonormal one: flip a direction, and the posterior with it.
    state.bases[0, :, 0] *= -1.0
    state._rebuild(0)
    second = state._second_moment(0)[:2, :2]
    unseen = [sensor.view(np.ones(3, bool)).covariance for sensor in learner.sensors]
    expected = 1.0 / np.array([0.25 + (one * second).sum() for one in unseen])
    first: list[Floats] = []
    original = state._refresh

    def watched(i: int, **settings: Any) -> None:
        original(i, **settings)
        first.append(state.weights[1:, 0].copy())

    state._refresh = watched  # type: ignore[method-assign]
    if rebuilt:
        state.rebuild()
    else:
        state.refresh_all()
    assert_allclose(first[0] / first[0][0], expected / expected[0], rtol=1e-9)


def test_columns_that_are_kept_in_number_are_not_kept_in_meaning() -> None:
    """As many directions as columns: the first known context still changes what they are."""
    rng = np.random.default_rng(22)
    sensors = [
        kh.Sensor.calibrated(*(rng.standard_normal((9, 1)) for _ in range(2)), centred=True)
        for _ in range(2)
    ]
    learner = kh.SensorLearner(kh.ThompsonSampling(), sensors, intercept=True, reward_scale=0.5)
    state = learner.start(1, 1)
    for k in range(20):
        learner.learn(state, 0, rng.standard_normal(1), float(rng.standard_normal()), sensor=k % 2)
    assert state.posterior.dim == learner.n_columns == 4
    former = state.posterior
    learner.learn(state, 0, np.ones(1), 1.0, sensor=0, context=np.ones(1))
    assert state.bases is None
    assert state.posterior is not former


def test_an_estimated_sensor_may_have_entries_in_units_far_apart() -> None:
    """The same normals give the same choices, whatever the units of an entry."""
    rng = np.random.default_rng(23)
    x = rng.standard_normal((12, 2))
    y = x @ rng.standard_normal((2, 3)) + rng.standard_normal((12, 3))
    units = np.array([1.0, 1e9, 1e-3])
    plain, scaled = (
        kh.SensorLearner(kh.ThompsonSampling(), kh.Sensor.calibrated(x, y * by))
        for by in (np.ones(3), units)
    )
    state, other = plain.start(2, 3), scaled.start(2, 3)
    for _ in range(60):
        row, draws = rng.standard_normal(3), some_draws(rng, 2)
        chosen, expected = (
            scaled.choose(other, row * units, draws),
            plain.choose(state, row, draws),
        )
        assert chosen.arm == expected.arm
        assert chosen.probability == pytest.approx(expected.probability, abs=1e-6)
        reward = float(row.sum() + rng.standard_normal())
        plain.learn(state, chosen.arm, row, reward)
        scaled.learn(other, chosen.arm, row * units, reward)


# -- all or nothing -------------------------------------------------------------------------------


def everything(state: SensorState) -> list[Any]:
    """Return copies of all numbers of a state."""
    arrays = [array for sums in state.sums for array in sums]
    arrays += [array for pairs in state.pairs.values() for array in pairs]
    arrays += [array for one in state.configurations for array in (one.columns, one.unseen)]
    arrays += [*state.posterior.state, state.weights, state.numerators, state.units]
    arrays += [state.refreshed, np.array([state.reward_variance, state.estimated])]
    arrays += [np.zeros(0) if state.bases is None else state.bases]
    return [np.array(array) for array in arrays]


def test_choosing_adds_no_configuration() -> None:
    rng = np.random.default_rng(24)
    learner = kh.SensorLearner(kh.ThompsonSampling(), a_sensor(rng, 10, 3))
    state = learner.start(2, 10)
    for _ in range(300):
        y = rng.standard_normal(10)
        y[rng.random(10) < 0.5] = np.nan
        learner.choose(state, y, some_draws(rng, 2))
    assert len(state.configurations) == len(state.sums) == len(state.weights) == 1
    assert len(state._glimpses) <= 64
    learner.learn(state, 0, y, 1.0)
    assert len(state.configurations) == 2


def test_a_first_reward_of_a_configuration_looks_at_no_other() -> None:
    """Where entries drop out at random, most rewards are such, and configurations many."""
    rng = np.random.default_rng(36)
    learner = kh.SensorLearner(kh.Uniform(), a_sensor(rng, 6, 6), reward_scale=0.5)
    state = learner.start(1, 6)
    for k in range(40):
        y = rng.standard_normal(6)
        y[[bool(k & 2**j) for j in range(6)]] = np.nan
        due = state.n[0] + 1.0 >= 1.25 * state.refreshed[0]
        weight = state.reward_variance + np.einsum(
            "cd,cd->", learner.sensors[0].view(~np.isnan(y)).covariance, state._second_moment(0)
        )
        learner.learn(state, 0, y, float(rng.standard_normal()))
        if not due:
            assert state._unseen is None  # that of all configurations was not needed
            assert state.weights[-1, 0] == pytest.approx(state.numerators[0] / weight, rel=1e-12)
    assert len(state.configurations) == 41


def test_choices_follow_a_sensor_that_was_estimated_anew() -> None:
    """A configuration that was chosen by before, without any reward, is that of the sensor now."""
    rng = np.random.default_rng(25)
    learner = kh.SensorLearner(kh.ThompsonSampling(), calibrated(rng))
    state = learner.start(2, 3)
    y, draws = np.array([0.5, np.nan, 1.0]), some_draws(rng, 2)
    learner.choose(state, y, draws)
    for _ in range(20):
        x = rng.standard_normal(2)
        learner.learn(state, 0, 3.0 * x[[0, 1, 1]], float(x.sum()), context=x)
    seen = ~np.isnan(y)
    fresh = configured(learner, state.sensors, state.centre, 0, seen)
    assert_allclose(state.glimpsed(0, seen).design(y), fresh.design(y), rtol=1e-12)


@pytest.mark.parametrize("failing", ["Sums.empty", "np.full"])
def test_an_interrupted_configuration_is_not_there(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(26)
    learner = kh.SensorLearner(kh.ThompsonSampling(), a_sensor(rng, 2, 3))
    state = learner.start(2, 2)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"keyhole.core.learners.sensor_fit.{failing}", interrupt)
    with pytest.raises(KeyboardInterrupt):
        state.configuration(0, np.array([True, False]))
    monkeypatch.undo()
    for seen in ([True, True], [True, False]):
        place = state.configuration(0, np.array(seen))
        assert state.configurations[place].seen.tolist() == seen
    assert len(state.sums) == len(state.configurations) == len(state.weights) == 3


def test_a_plain_reward_that_fails_is_in_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(28)
    learner = kh.SensorLearner(kh.ThompsonSampling(), a_sensor(rng, 3, 2))
    state = learner.start(1, 3)
    for _ in range(30):
        learner.learn(state, 0, rng.standard_normal(3), float(rng.standard_normal()))
    twin = state.copy()

    def fail(*_: Any) -> None:
        raise MemoryError

    for y in (np.ones(3), np.array([1.0, np.nan, 1.0])):  # the second is a new configuration
        monkeypatch.setattr("keyhole.core.posterior.Posterior.learn_rows", fail)
        with pytest.raises(MemoryError):
            learner.learn(state, 0, y, 1.0)
        monkeypatch.undo()
        assert sum(sums.n.sum() for sums in state.sums) == twin.n.sum()
        for each in (state, twin):
            learner.learn(each, 0, y, 1.0)
        for mine, theirs in zip(everything(state), everything(twin), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    "failing", ["refresh", "rebuild", "see_pair", "estimate_sensor", "refresh_all", "_rebuild"]
)
def test_a_reward_that_fails_changes_nothing(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(27)
    learner = kh.SensorLearner(kh.ThompsonSampling(), calibrated(rng))
    state, failures = learner.start(2, 3), 0
    original = getattr(SensorState, failing)

    def fail(*given: Any, **more: Any) -> None:
        original(*given, **more)
        raise np.linalg.LinAlgError("made to fail")

    for k in range(40):
        y = rng.standard_normal(3)
        x = rng.standard_normal(2) if k >= 20 else None
        reward, before = float(rng.standard_normal()), everything(state)
        monkeypatch.setattr(SensorState, failing, fail)
        try:
            learner.learn(state, k % 2, y, reward, context=x)
        except np.linalg.LinAlgError:
            failures += 1
            monkeypatch.undo()
            for mine, theirs in zip(everything(state), before, strict=True):
                np.testing.assert_array_equal(mine, theirs)
            learner.learn(state, k % 2, y, reward, context=x)
        monkeypatch.undo()
        assert state.n.sum() == k + 1
    assert failures > 0


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"context_covariance": [[1.0, 1.0], [1.0, 1.0]]}, "context_covariance is singular"),
        ({"context_covariance": np.eye(3)}, "context_covariance must be"),
        ({"context_covariance": -1.0}, "context_covariance must have no negative"),
        ({"context_covariance": [[1.0, 0.5], [0.0, 1.0]]}, "context_covariance must be symmetric"),
        ({"sensing": np.ones((3, 2)), "sensing_covariance": 0.0}, "sensing_covariance must make"),
        ({"sensing_covariance": [1.0, 2.0]}, "sensing_covariance must be"),
        ({"sensing": [1.0, 2.0]}, "sensing must be a matrix"),
        ({"sensing": [[np.nan, 1.0]]}, "sensing must be finite"),
        ({"mean": [1.0, 2.0, 3.0]}, "mean must be"),
        ({"offset": [1.0, 2.0, 3.0]}, "offset must be"),
    ],
)
def test_a_sensor_that_cannot_be_names_the_field(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(kh.InvalidValue, match=field):
        kh.Sensor(**{"sensing": np.eye(2), **settings})


def test_calibration_from_unusable_pairs_names_the_field() -> None:
    with pytest.raises(kh.InvalidValue, match="a row for each pair"):
        kh.Sensor.calibrated(np.ones((3, 2)), np.ones((4, 2)))
    with pytest.raises(kh.InvalidValue, match="x must have shape"):
        kh.Sensor.calibrated(np.ones(3), np.ones((3, 2)))
    with pytest.raises(kh.InvalidValue, match="y1 and y2 need at least 4 rows"):
        kh.Sensor.from_repeats(np.ones((3, 2)), np.ones((3, 2)))
    with pytest.raises(kh.InvalidValue, match=r"covariance of entry 0 with itself is -0\.25"):
        kh.Sensor.from_repeats(
            [[1.0], [0.0], [1.0], [0.0], [0.5]], [[0.0], [1.0], [0.0], [1.0], [0.6]]
        )
    rng = np.random.default_rng(3)
    y, more = rng.normal(5.0, 1.0, size=(2, 40, 2))
    for other in (y, y + 1.5, np.column_stack([more[:, 0], y[:, 1]])):
        with pytest.raises(kh.InvalidValue, match=r"is the same in all rows of entr.* 1: "):
            kh.Sensor.from_repeats(y, other)
    with pytest.raises(kh.InvalidValue, match="constant in some combination"):
        kh.Sensor.from_repeats(y, y + more[:, :1])


def test_refused_rounds_change_nothing() -> None:
    rng = np.random.default_rng(18)
    learner = kh.SensorLearner(
        kh.ThompsonSampling(), {"a": a_sensor(rng, 2, 3), "b": a_sensor(rng, 4, 3)}
    )
    state = learner.start(2, 4)
    learner.learn(state, 0, np.ones(2), 1.0, sensor="a")
    before = [array.copy() for sums in state.sums for array in sums]
    draws = some_draws(rng, 2)
    refusals: list[tuple[Callable[[], Any], str]] = [
        (lambda: learner.choose(state, np.ones(2), draws), "sensor must be given"),
        (lambda: learner.choose(state, np.ones(2), draws, sensor="c"), "there is no sensor 'c'"),
        (lambda: learner.choose(state, np.ones(2), draws, sensor=True), "there is no sensor True"),
        (lambda: learner.choose(state, np.ones(3), draws, sensor="a"), "y must have shape"),
        (lambda: learner.choose(state, np.ones(4), draws, sensor="a"), "y must have shape"),
        (lambda: learner.learn(state, 0, np.ones(2), np.nan, sensor="a"), "reward"),
        (lambda: learner.learn(state, 2, np.ones(2), 1.0, sensor="a"), "arm"),
        (lambda: learner.learn(state, 0, np.ones((2, 2)), 1.0, sensor="a"), "one measurement"),
        (
            lambda: learner.learn(state, 0, np.ones(2), 1.0, sensor="a", context=np.ones(2)),
            "context must have shape",
        ),
        (
            lambda: learner.learn(state, 0, np.ones(2), 1.0, sensor="a", context=[1, np.nan, 0]),
            "context must be finite",
        ),
    ]
    for refused, reason in refusals:
        with pytest.raises(kh.InvalidValue, match=reason):
            refused()
    after = [array for sums in state.sums for array in sums]
    assert all(map(np.array_equal, before, after))
    # A padded measurement of the shorter sensor is its measurement.
    padded = np.array([1.0, 1.0, np.nan, np.nan])
    short, long = (learner.choose(state, y, draws, sensor="a") for y in (np.ones(2), padded))
    assert short == long


@pytest.mark.parametrize(
    ("sensors", "reason"),
    [
        ([], "at least one Sensor"),
        ([1], r"sensors\[0\] must be a Sensor"),
        ("abc", "sensors must be a Sensor"),
        ({None: kh.Sensor(sensing=np.eye(2))}, "a sensor's name must be .* got None"),
        ({"": kh.Sensor(sensing=np.eye(2))}, "a sensor's name must be .* got ''"),
        ({True: kh.Sensor(sensing=np.eye(2))}, "a sensor's name must be .* got True"),
        (
            {"a": kh.Sensor(sensing=np.eye(2)), "b": kh.Sensor(sensing=np.eye(3))},
            "sensors must all have one context_dim",
        ),
    ],
)
def test_sensors_that_do_not_fit_are_refused(sensors: Any, reason: str) -> None:
    with pytest.raises(kh.InvalidValue, match=reason):
        kh.SensorLearner(kh.ThompsonSampling(), sensors)


def test_hybrid_parameters_are_refused() -> None:
    with pytest.raises(kh.InvalidValue, match="sharing must be 'per-arm' or 'shared' with"):
        kh.SensorLearner(kh.ThompsonSampling(sharing="hybrid"), kh.Sensor(sensing=np.eye(2)))


def test_sensors_are_equal_by_what_they_are() -> None:
    first, second = (kh.Sensor(sensing=np.eye(2), mean=[0.0, m]) for m in (0.0, 1.0))
    assert first == kh.Sensor(sensing=np.eye(2)) != second
    assert len({first, kh.Sensor(sensing=np.eye(2)), second}) == 2
    doubted = first.doubted(np.eye(2), np.eye(2), 5.0)
    assert doubted != first
    assert doubted.digest != first.digest
    assert doubted == kh.Sensor(sensing=np.eye(2)).doubted(np.eye(2), np.eye(2), 5.0)


def test_a_sensor_is_found_by_itself_or_by_one_that_equals_it() -> None:
    first, same, other = (kh.Sensor(sensing=np.eye(2), mean=m) for m in (0.0, 0.0, 1.0))
    learner = kh.SensorLearner(kh.ThompsonSampling(), {"a": first, "b": same, "c": other})
    assert [learner.place(one) for one in (first, same, other)] == [0, 1, 2]
    assert learner.place(copy.deepcopy(other)) == 2
    with pytest.raises(kh.InvalidValue, match="there is no sensor"):
        learner.place(kh.Sensor(sensing=np.eye(2), mean=2.0))
