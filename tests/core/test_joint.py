"""`draw="joint"`: one sample of a shared parameter for all arms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import keyhole as kh
from keyhole.core import Draws, choose_jointly, joint_probability

JOINT = kh.ThompsonSampling(v=0.8, sharing="shared", draw="joint")


def taught(n: int = 30, d: int = 3) -> kh.Posterior:
    rng = np.random.default_rng(1)
    posterior = kh.Posterior(n_parameters=1, dim=d)
    posterior.learn_many(np.zeros(n, int), rng.standard_normal((n, d)), rng.standard_normal(n))
    return posterior


def test_scores_are_those_of_one_sample() -> None:
    rng = np.random.default_rng(2)
    posterior, rows = taught(), rng.standard_normal((5, 3))
    draws = Draws(rng.standard_normal(5), rng.random(2))
    chosen, score = choose_jointly(posterior, JOINT.plain_rule(), rows, 5, draws)
    z = draws.generator().standard_normal(3)
    root = np.linalg.cholesky(np.array(posterior.precision[0]))
    theta = posterior.mean[0] + 0.8 * np.linalg.inv(root.T) @ z
    assert chosen.arm == np.argmax(rows @ theta)
    assert score == pytest.approx((rows @ theta).max())
    assert chosen.probability is None


def test_the_sample_has_the_covariance_of_the_posterior() -> None:
    rng = np.random.default_rng(3)
    posterior, n = taught(), 20_000
    picked = np.empty(n)
    rows = rng.standard_normal((2, 3))
    rows[1] = -rows[0]  # the larger score is the size of one normal number
    for k in range(n):
        draws = Draws(rng.standard_normal(2), rng.random(2))
        picked[k] = choose_jointly(posterior, JOINT.plain_rule(), rows, 2, draws)[0].arm
    p = joint_probability(posterior, 0.8, rows, 2, 1)
    assert p is not None
    assert abs(picked.mean() - p) < 4.5 * np.sqrt(p * (1 - p) / n)
    assert 0.02 < p < 0.98


def test_independent_samples_choose_otherwise() -> None:
    """With nearly equal rows independent samples toss a coin; a joint one hardly doubts."""
    posterior = taught()
    rows = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    rows[1] += 0.01 * posterior.mean[0] / np.linalg.norm(posterior.mean[0])
    joint = joint_probability(posterior, 0.01, rows, 2, 1)
    mean, width = posterior.predict(np.zeros(2, int), rows[None])
    apart = kh.choice_probabilities(mean[0], 0.01 * width[0])[1]
    assert joint is not None
    assert joint > 0.99
    assert apart < 0.75


@pytest.mark.parametrize("n_arms", [1, 2, 4])
def test_one_row_for_all_arms_ties(n_arms: int) -> None:
    rng, posterior = np.random.default_rng(4), taught()
    chosen = [
        choose_jointly(
            posterior,
            JOINT.plain_rule(),
            np.ones((1, 3)),
            n_arms,
            Draws(rng.standard_normal(n_arms), rng.random(2)),
        )[0]
        for _ in range(200)
    ]
    assert {one.arm for one in chosen} == set(range(n_arms))
    assert {one.probability for one in chosen} == {1.0 / n_arms}


def test_certain_scores_have_certain_probabilities() -> None:
    posterior = taught()
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    better = int(np.argmax(rows @ posterior.mean[0]))
    assert joint_probability(posterior, 0.0, rows, 2, better) == 1.0
    assert joint_probability(posterior, 0.0, rows, 2, 1 - better) == 0.0
    assert joint_probability(posterior, 0.0, rows[[0, 0]], 2, 1) == 0.5


def test_a_simulation_plays_joint_draws() -> None:
    world = kh.LinearWorld.random(n_arms=10, context_dim=4, dim=4, shared_parameter=True, seed=1)
    runs = kh.simulate(
        world,
        {
            "joint": kh.ThompsonSampling(v="oracle", sharing="shared", draw="joint"),
            "random": kh.Uniform(sharing="shared"),
        },
        horizon=300,
        replications=4,
        seed=2,
        progress=False,
    )
    last = runs.regret.isel(time=-1).mean("replication")
    assert float(last[0]) < 0.5 * float(last[1])
    assert np.isfinite(runs.error.sel(policy="joint")).all()
    again = kh.simulate(
        world,
        kh.ThompsonSampling(v="oracle", sharing="shared", draw="joint"),
        horizon=300,
        replications=4,
        seed=2,
        progress=False,
    )
    assert_allclose(again.regret[0], runs.regret[0])


def test_a_sensor_learner_draws_jointly() -> None:
    rng = np.random.default_rng(5)
    sensor = kh.Sensor(sensing=np.eye(2))
    learner = kh.SensorLearner(JOINT, sensor)
    state = learner.start(3, 2)
    draws = Draws(rng.standard_normal(3), rng.random(2))
    y = rng.standard_normal((3, 2))
    chosen = learner.choose(state, y, draws)
    expected = choose_jointly(state.posterior, JOINT.plain_rule(), y / 2.0, 3, draws)[0]
    assert chosen == expected


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"draw": "joint"}, "give sharing='shared'"),
        ({"draw": "both"}, "draw must be 'per-arm' or 'joint'"),
        ({"draw": None}, "draw must be 'per-arm' or 'joint'"),
    ],
)
def test_draws_that_cannot_be_are_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(kh.InvalidValue, match=reason):
        kh.ThompsonSampling(**settings)  # type: ignore[arg-type]


def test_a_kernel_refuses_to_draw_jointly() -> None:
    from keyhole.core import kernels

    with pytest.raises(ValueError, match="choose_jointly"):
        kernels.Chooser(taught().core, JOINT.plain_rule(), np.zeros(2, np.int64), True)
