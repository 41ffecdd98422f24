"""Worlds with several sensors: one drawn each round, and the best observer who knows it."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import keyhole as kh
from keyhole.core import Draws, Streams
from keyhole.lab.worlds import SensorWorld

N = 40_000


def sensors(context_dim: int = 3) -> dict[Any, kh.Sensor]:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((context_dim, context_dim))
    usual: dict[str, Any] = {
        "context_covariance": root @ root.T + np.eye(context_dim),
        "mean": [1.0, -1.0, 0.5],
    }
    return {
        "fine": kh.Sensor(
            sensing=rng.standard_normal((4, context_dim)), sensing_covariance=0.1, **usual
        ),
        "coarse": kh.Sensor(
            sensing=rng.standard_normal((2, context_dim)),
            sensing_covariance=[[2.0, 0.5], [0.5, 1.0]],
            offset=[3.0, 0.0],
            **usual,
        ),
    }


def a_world(**settings: Any) -> Any:
    mu = np.random.default_rng(2).standard_normal((3, 3))
    usual: dict[str, Any] = {"sensors": sensors(), "coefficients": mu, "reward_scale": 0.5}
    return kh.LinearWorld(**{**usual, **settings})


@pytest.mark.parametrize("shared", [False, True])
def test_values_are_what_the_best_observer_expects(shared: bool) -> None:
    """The error of a value is uncorrelated with y, and has the variance s^2 + mu'S mu."""
    world = a_world(shared_context=shared)
    rounds = world.sample(N, seed=3)
    assert rounds.observations.shape == (N, 1 if shared else 3, 4)
    error = rounds.rewards - rounds.values
    for j, sensor in enumerate(world.sensors.values()):
        now = rounds.sensors == j
        assert abs(now.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(N)
        y = rounds.observations[now][:, 0 if shared else 1, : sensor.dim]
        assert np.isnan(rounds.observations[now][:, :, sensor.dim :]).all()
        assert_allclose(
            rounds.values[now][:20, 1],
            [sensor.belief(row).mean @ world.coefficients[1] for row in y[:20]],
        )
        n = now.sum()
        for column in (np.ones(n), *y.T):
            product = error[now, 1] * column
            assert abs(product.mean()) < 4.5 * product.std() / np.sqrt(n)
        found = error[now].var(axis=0)
        expected = world.noise_scales[j] ** 2
        assert (np.abs(found - expected) < 4.5 * expected * np.sqrt(2.0 / n)).all()
        view = sensor.view(np.ones(sensor.dim, bool))
        mu = world.coefficients
        assert_allclose(expected, 0.25 + np.einsum("nd,de,ne->n", mu, view.covariance, mu))
        assert_allclose(y.mean(axis=0), sensor.observation_mean, atol=4.5 * y.std() / np.sqrt(n))
    assert world.noise_scale == world.noise_scales.max()


def test_eta_is_the_best_prediction_of_one_who_ignores_the_sensor() -> None:
    world = a_world()
    rounds = world.sample(N, seed=4)
    y = np.nan_to_num(rounds.observations[:, 0])
    found, *_ = np.linalg.lstsq(y, rounds.rewards[:, 0], rcond=None)
    residual = rounds.rewards[:, 0] - y @ found
    error = np.sqrt(residual.var() * np.diag(np.linalg.inv(y.T @ y)))
    assert (np.abs(found - world.eta[0]) < 6.0 * error).all()


def test_the_seed_decides_and_pieces_make_the_whole() -> None:
    world = a_world()
    whole, other = world.sample(300, seed=3), world.sample(300, seed=4)
    source = Streams(3)
    pieces = [world.sample(n, source) for n in (1, 99, 200)]
    for name in ("observations", "rewards", "values", "latent", "sensors"):
        joined = np.concatenate([getattr(piece, name) for piece in pieces])
        assert_allclose(joined, getattr(whole, name), atol=1e-12)
    assert not np.array_equal(whole.rewards, other.rewards)


def test_one_sensor_is_the_linear_world_of_it() -> None:
    sensor = kh.Sensor(sensing=[[1.0, 2.0]], sensing_covariance=0.5)
    mu = [[1.0, 0.0], [0.5, 0.5]]
    several = a_world(sensors=[sensor], coefficients=mu)
    one = kh.LinearWorld(
        sensing=[[1.0, 2.0]], sensing_covariance=0.5, coefficients=mu, reward_scale=0.5
    )
    assert_allclose(several.eta, one.eta)
    assert several.noise_scale == pytest.approx(one.noise_scale)


def test_it_is_described_copied_and_shown() -> None:
    world = a_world()
    assert isinstance(world, SensorWorld)
    described = json.loads(json.dumps(world.describe()))
    assert described["sensors"] == ["fine", "coarse"]
    assert described["sha256"] != a_world(coefficients=np.ones((3, 3))).describe()["sha256"]
    twin = pickle.loads(pickle.dumps(world))
    assert_array_equal(twin.sample(5, seed=1).rewards, world.sample(5, seed=1).rewards)
    assert repr(world) == "LinearWorld(2 sensors, 3 arms, context_dim=3, dim=4)"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"sensors": []}, "at least one Sensor"),
        ({"sensors": [np.eye(2)]}, r"sensors\[0\] must be a Sensor"),
        ({"sensors": 3}, "sensors must be a Sensor, or several"),
        ({"sensors": {None: kh.Sensor(sensing=np.eye(3))}}, "a sensor's name must be .* got None"),
        ({"coefficients": np.ones((2, 5))}, r"coefficients must have shape \(n_arms, 3\)"),
        ({"sensing": np.eye(3)}, "sensing is that of the sensors"),
        ({"reward_scale": -1.0}, "reward_scale"),
        (
            {"sensors": [kh.Sensor(sensing=np.eye(3)), kh.Sensor(sensing=np.eye(3), mean=1.0)]},
            "mean must be the same for all",
        ),
        (
            {"sensors": [kh.Sensor(sensing=np.eye(3)), kh.Sensor(sensing=np.eye(2))]},
            r"one context_dim, but sensors\[1\] has 2 and sensors\[0\] has 3",
        ),
    ],
)
def test_worlds_that_cannot_be_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(kh.InvalidValue, match=reason):
        a_world(**settings)


def test_one_sensor_needs_no_list() -> None:
    sensor = sensors()["coarse"]
    alone, listed = a_world(sensors=sensor), a_world(sensors=[sensor])
    assert repr(alone) == "LinearWorld(1 sensor, 3 arms, context_dim=3, dim=2)"
    assert alone.describe() == listed.describe()
    assert_array_equal(alone.sample(5, seed=1).rewards, listed.sample(5, seed=1).rewards)


def test_a_world_without_any_sensing_is_refused() -> None:
    with pytest.raises(kh.InvalidValue, match="sensing must be given, or sensors"):
        kh.LinearWorld(coefficients=np.eye(2))


# -- playing --------------------------------------------------------------------------------------


def test_a_simulation_hands_out_the_sensor() -> None:
    """What `simulate` plays is what a loop over the rounds plays, arm by arm."""
    world = a_world()
    learner = kh.SensorLearner(kh.ThompsonSampling(), sensors())
    runs = kh.simulate(
        world, learner, horizon=150, replications=1, seed=5, checkpoints=150, progress=False
    )
    source = Streams(np.random.SeedSequence(5, spawn_key=(0,)))
    rounds = world.rounds(world.start(source), 150)
    normals, uniforms = source["policy"].standard_normal((150, 3)), source["coin"].random((150, 2))
    state, regret = learner.start(3, 4), 0.0
    names = list(world.sensors)
    for t in range(150):
        name, draws = names[rounds.sensors[t]], Draws(normals[t], uniforms[t])
        arm = learner.choose(state, rounds.observations[t], draws, sensor=name).arm
        row = rounds.observations[t, arm]
        learner.learn(state, arm, row, float(rounds.rewards[t, arm]), sensor=name)
        regret += rounds.values[t].max() - rounds.values[t, arm]
        assert float(runs.regret[0, 0, t]) == pytest.approx(regret, abs=1e-9)


def test_the_worlds_own_sensors_are_an_oracle() -> None:
    world, policy = a_world(), kh.ThompsonSampling(v="oracle")
    learners: dict[str, Any] = {
        "oracle": kh.SensorLearner(policy, "oracle"),
        "given": kh.SensorLearner(policy, sensors()),
    }
    runs = kh.simulate(world, learners, horizon=60, replications=2, seed=1, progress=False)
    assert_array_equal(runs.regret[0], runs.regret[1])
    with pytest.raises(kh.InvalidValue, match="needs a world with sensors"):
        kh.simulate(
            kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1),
            kh.SensorLearner(policy, "oracle"),
            horizon=5,
            replications=1,
        )
    with pytest.raises(kh.InvalidValue, match="is for simulations"):
        kh.SensorLearner(policy, "oracle").start(2, 4)


def test_results_are_kept_for_the_very_sensors(tmp_path: Path) -> None:
    """What is kept belongs to sensors by their numbers, however often they were used before."""
    world, learner = a_world(), kh.SensorLearner(kh.ThompsonSampling(), sensors())

    def run(one: kh.SensorLearner) -> Any:
        return kh.simulate(
            world, {"mu": one}, horizon=20, replications=1, seed=1, resume=tmp_path, progress=False
        )

    first = run(learner)
    assert learner.dim == 4  # which is computed once, and kept in the learner
    assert_array_equal(run(learner).regret, first.regret)
    other = {**sensors(), "coarse": sensors()["fine"]}
    with pytest.raises(kh.InvalidValue):
        run(kh.SensorLearner(kh.ThompsonSampling(), other))


def test_entries_may_be_missing_besides() -> None:
    world = kh.MissingWorld(a_world(), share=0.3)
    runs = kh.simulate(
        world,
        {"mu": kh.SensorLearner(kh.ThompsonSampling(), "oracle")},
        horizon=100,
        replications=2,
        seed=1,
        progress=False,
    )
    assert np.isfinite(runs.regret).all()


class Misnumbered(SensorWorld):
    """A world that names a sensor which is not there."""

    def rounds(self, state: Streams, n: int) -> kh.Rounds:
        rounds = super().rounds(state, n)
        assert rounds.sensors is not None
        rounds.sensors[-1] = 2
        return rounds


def test_a_sensor_that_is_not_there_is_refused() -> None:
    world = Misnumbered(sensors=sensors(), coefficients=np.eye(3))
    with pytest.raises(
        kh.InvalidValue, match="must return sensors as 10 whole numbers from 0 to 1"
    ):
        kh.simulate(
            world,
            kh.SensorLearner(kh.ThompsonSampling(), "oracle"),
            horizon=10,
            replications=1,
            progress=False,
        )


@pytest.mark.parametrize("pairs", [20, 100])
def test_a_calibrated_sensor_is_never_worse_than_learning_eta(pairs: int) -> None:
    """Round by round with the same normals: the mean difference is at most 3 standard errors."""
    rng = np.random.default_rng(6)
    sensor = kh.Sensor(sensing=rng.standard_normal((6, 8)), sensing_covariance=0.25)
    world = kh.LinearWorld(
        sensors=[sensor], coefficients=rng.standard_normal((4, 8)), reward_scale=0.5
    )
    x = rng.standard_normal((pairs, 8))
    y = x @ sensor.sensing.T + 0.5 * rng.standard_normal((pairs, 6))
    calibrated = kh.Sensor.calibrated(x, y, centred=True)
    learners: dict[str, Any] = {
        "eta": kh.Learner(kh.ThompsonSampling()),
        "prior": kh.SensorLearner(kh.ThompsonSampling(), calibrated),
    }
    runs = kh.simulate(world, learners, horizon=400, replications=12, seed=1, progress=False)
    last = runs.regret.isel(time=-1)
    worse = (last.sel(policy="prior") - last.sel(policy="eta")).values
    assert worse.mean() < 3.0 * worse.std(ddof=1) / np.sqrt(12)
    assert float(last.sel(policy="prior").mean()) < 1.1 * float(last.sel(policy="eta").mean())
