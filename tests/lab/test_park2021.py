"""The earlier paper's figures: the joint draw, the known sensor, and what is accepted."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import keyhole as kh
from keyhole.lab.studies import STUDIES, Settings
from keyhole.lab.studies.joint import JointThompson
from keyhole.lab.studies.park2021 import ARMS, DIMENSIONS, KnownSensor


def test_the_posterior_by_hand() -> None:
    """One reward 3 of y = (1, 0): B = diag(2, 1), mean = (1.5, 0)."""
    learner = JointThompson()
    state = learner.start(2, 2)
    learner.learn(state, 1, np.array([1.0, 0.0]), 3.0)
    assert state.precision.tolist() == [[2.0, 0.0], [0.0, 1.0]]
    np.testing.assert_allclose(learner.coefficients(state), [[1.5, 0.0]] * 2)


def test_one_draw_scores_all_arms() -> None:
    """Of an arm, its double and its opposite, under one draw the first never wins.

    With a draw per arm it would now and then.
    """
    rng = np.random.default_rng(1)
    learner, y = JointThompson(v=0.5), rng.standard_normal(3)
    rows = np.array([y, 2 * y, -y])
    state = learner.start(len(rows), 3)
    chosen = [
        learner.choose(state, rows, kh.Draws(rng.standard_normal(len(rows)), rng.random(2)))
        for _ in range(2_000)
    ]
    counts = np.bincount(chosen, minlength=len(rows)) / 2_000
    assert counts[0] == 0.0
    # A share of 1/2 has a standard error of 0.011 over 2,000 rounds.
    assert abs(counts[1] - 0.5) < 4 * 0.0112


@pytest.mark.parametrize("n_arms", [2, 5])
def test_draws_have_the_posteriors_law(n_arms: int) -> None:
    """How often one arm beats another: a normal distribution function of the mean over the width.

    With fewer arms than dimensions the normals come from a generator.
    """
    rng = np.random.default_rng(2)
    learner = JointThompson(v=0.7)
    state = learner.start(n_arms, 3)
    for y in rng.standard_normal((6, 3)):
        learner.learn(state, 0, y, float(y.sum() * 0.2))
    rows = np.zeros((n_arms, 3))
    rows[:2] = rng.standard_normal((2, 3))
    gap = rows[0] - rows[1]
    mean = learner.coefficients(state)[0]
    width = 0.7 * np.sqrt(gap @ np.linalg.solve(state.precision, gap))
    wins = [
        learner.choose(state, rows[:2], kh.Draws(rng.standard_normal(n_arms), rng.random(2))) == 0
        for _ in range(4_000)
    ]
    expected = norm.cdf(gap @ mean / width)
    assert 0.05 < expected < 0.95
    assert abs(np.mean(wins) - expected) < 4 * np.sqrt(expected * (1 - expected) / 4_000)


@pytest.mark.parametrize("dim", [4, 10])
def test_it_is_the_librarys_policy(dim: int) -> None:
    """Same arms and same estimates on the same numbers, where both draw from a generator."""
    rng, n_arms = np.random.default_rng(3), 3
    policy = kh.ThompsonSampling(v=1.0, sharing="shared", draw="joint")
    fast, usual = JointThompson(), kh.Learner(policy)
    state, other = fast.start(n_arms, dim), usual.start(n_arms, dim)
    chosen = []
    for _ in range(300):
        rows = rng.standard_normal((n_arms, dim))
        draws = kh.Draws(rng.standard_normal(n_arms), rng.random(2))
        arm = fast.choose(state, rows, draws)
        assert usual.choose(other, rows, draws).arm == arm
        reward = float(rows[arm].sum() + rng.standard_normal())
        fast.learn(state, arm, rows[arm], reward)
        usual.learn(other, arm, rows[arm], reward)
        chosen.append(arm)
    assert set(chosen) == set(range(n_arms))
    np.testing.assert_allclose(fast.coefficients(state)[0], other.posterior.mean[0], rtol=1e-9)


def test_a_known_sensor_shows_the_prediction_of_x() -> None:
    """Then the parameter of the prediction is mu itself, and regret is that of the world of y."""
    recipe = kh.RandomLinearWorld(n_arms=3, context_dim=4, dim=4, shared_parameter=True)
    before, after = recipe.draw(3), KnownSensor(recipe).draw(3)
    np.testing.assert_allclose(after.eta, before.coefficients, atol=1e-8)
    np.testing.assert_allclose(after.prediction, np.eye(4), atol=1e-8)
    assert after.noise_scale == pytest.approx(before.noise_scale, rel=1e-9)
    np.testing.assert_allclose(
        after.observation_covariance,
        before.prediction @ before.observation_covariance @ before.prediction.T,
        atol=1e-10,
    )


def test_the_papers_settings() -> None:
    cells = STUDIES["park2021"].cells(Settings())
    pairs = {(cell.world.dim, cell.world.n_arms) for cell in cells}
    assert pairs == {(d, n) for d in (10, 30) for n in (5, 10, 20, 50)}
    assert {cell.horizon for cell in cells} == {8_000}


def grown(power: float, rate: float, arms_power: float, dim_power: float) -> xr.Dataset:
    """A table of curves of known growth, with 1% of scatter between 16 replications."""
    rng = np.random.default_rng(4)
    time = np.unique(np.geomspace(10, 8_000, 80).round().astype(int))
    scatter = 1.0 + 0.01 * rng.standard_normal((8, 1, 16, 1))
    pairs = [(d, n) for d in DIMENSIONS for n in ARMS]
    level = np.array([d**dim_power * np.log(n) ** arms_power for d, n in pairs])[:, None]
    regret = (level * np.log(time) ** power)[:, None, None] * scatter
    error = (np.ones((8, 1)) * time**rate)[:, None, None] * scatter
    return xr.Dataset(
        {
            "regret": (("cell", "policy", "replication", "time"), regret),
            "error": (("cell", "policy", "replication", "time", "arm"), error[..., None]),
        },
        coords={
            "cell": [f"d = {d}, N = {n}" for d, n in pairs],
            "dim": ("cell", [d for d, _ in pairs]),
            "n_arms": ("cell", [n for _, n in pairs]),
            "policy": ["Thompson sampling"],
            "time": time,
        },
    )


@pytest.mark.parametrize(
    ("growth", "outcomes"),
    [
        ((1.0, -0.5, 0.5, 1.0), ["holds"] * 4),
        ((2.0, -0.4, 1.0, 1.4), ["does not hold"] * 4),
        ((1.0, -0.5, 1.0, 1.0), ["holds", "holds", "does not hold", "holds"]),
    ],
)
def test_what_the_study_accepts_and_refuses(
    growth: tuple[float, float, float, float], outcomes: list[str]
) -> None:
    found = [v.outcome for v in STUDIES["park2021"].verdicts(grown(*growth))]
    assert found == outcomes
