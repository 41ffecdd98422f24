"""Worlds made of labelled tables: their oracle, their rewards, their right answers."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.worlds import patients

N = 40_000


def table(rows: int = 400, seed: int = 3) -> kh.Dataset:
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=rows)
    features = rng.standard_normal((rows, 5)) + 2.0 * np.outer(labels - 0.5, [1, 0, 0, 1, 0])
    return kh.Dataset(features=features, labels=labels, name="two clouds").prepared()


def test_the_oracle_by_hand() -> None:
    """x = -1 and 1, rewards 0 and 1 for arm 1: least squares through 0 gives 1/2 for it."""
    data = kh.Dataset(features=[[-1.0], [1.0]], labels=[0, 1])
    world = kh.DatasetWorld(data, sensing=[[1.0]], sensing_scale=0.0)
    assert world.eta.tolist() == [[-0.5], [0.5]]
    assert world.noise_scale == pytest.approx(0.5)
    # With noise of variance 3 the moment of y is 4, and its cross moment is still 1/2.
    noisy = kh.DatasetWorld(data, sensing=[[1.0]], sensing_scale=np.sqrt(3.0))
    np.testing.assert_allclose(noisy.eta, [[-0.125], [0.125]])


@pytest.mark.parametrize("coefficients", [None, np.random.default_rng(1).standard_normal((2, 5))])
def test_the_oracle_is_least_squares_on_the_whole_table(coefficients: Any) -> None:
    data, lens = table(), np.random.default_rng(2).integers(2, size=(3, 5))
    world = kh.DatasetWorld(data, sensing=lens, coefficients=coefficients, sensing_scale=0.0)
    rewards = (
        np.eye(2)[data.labels]
        if coefficients is None
        else data.features @ np.asarray(coefficients).T
    )
    expected, *_ = np.linalg.lstsq(data.features @ lens.T, rewards, rcond=None)
    np.testing.assert_allclose(world.eta, expected.T, atol=1e-12)


def test_rewards_and_right_answers() -> None:
    world = patients()
    rounds = world.sample(500, seed=1)
    assert rounds.labels is not None
    np.testing.assert_array_equal(rounds.rewards, np.eye(3)[rounds.labels])
    assert np.isnan(rounds.latent).all()
    own = patients(coefficients=np.ones((3, 4)), reward_scale=0.0).sample(500, seed=1)
    np.testing.assert_array_equal(own.rewards, own.latent)


def test_every_row_is_drawn_as_often() -> None:
    world = patients()
    labels = world.sample(N, seed=2).labels
    shares = np.bincount(np.asarray(labels)) / N
    expected = np.bincount(world.data.labels) / len(world.data.labels)
    error = np.sqrt(expected * (1 - expected) / N)
    assert (np.abs(shares - expected) < 4 * error).all()


def test_correct_decisions_are_counted_against_the_labels() -> None:
    """Against a replay by hand: the policy's choices, and the oracle's."""
    world = patients(coefficients=np.random.default_rng(4).standard_normal((3, 4)))
    times = [1, 10, 77, 200]
    runs = kh.simulate(
        world, kh.Uniform(), horizon=200, replications=1, seed=6, checkpoints=times, progress=False
    )
    each = kh.simulate(
        world, kh.Uniform(), horizon=200, replications=1, seed=6, checkpoints=range(1, 201),
        progress=False,
    )  # fmt: skip
    arms = np.diff(each.pulls.values[0, 0], axis=0, prepend=0.0).argmax(axis=1)
    rounds = world.sample(200, kh.Streams(np.random.SeedSequence(6, spawn_key=(0,))))
    right = np.cumsum(arms == rounds.labels) / np.arange(1, 201)
    best = np.cumsum(rounds.values.argmax(axis=1) == rounds.labels) / np.arange(1, 201)
    at = np.array(times) - 1
    np.testing.assert_allclose(runs.correct.values[0, 0], right[at])
    np.testing.assert_allclose(runs.best_correct.values[0], best[at])
    assert runs.best_correct.dims == ("replication", "time")


def test_worlds_without_right_answers_have_no_such_variables() -> None:
    world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
    runs = kh.simulate(world, kh.Greedy(), horizon=5, replications=1, seed=1, progress=False)
    assert "correct" not in runs
    assert "best_correct" not in runs


def test_learning_comes_to_the_oracles_rate() -> None:
    """Two clouds seen whole: in the end as right as the regression is, which Uniform is not."""
    recipe = kh.RandomDatasetWorld(table(), 5, rewards="linear", sensing="coordinates")
    runs = kh.simulate(
        recipe,
        {"thompson": kh.ThompsonSampling(v="oracle"), "uniform": kh.Uniform()},
        horizon=2000,
        replications=20,
        seed=1,
        checkpoints=[1000, 2000],
        progress=False,
    )
    late = kh.summary.rate_between(runs.correct).isel(time=-1)
    best = kh.summary.rate_between(runs.best_correct).isel(time=-1)
    behind = (best - late).mean("replication")
    error = (best - late).std("replication") / np.sqrt(20)
    assert float(behind.sel(policy="thompson")) < 0.01 + 3 * float(error.sel(policy="thompson"))
    assert float(behind.sel(policy="uniform")) > 0.2


# -- the recipe -----------------------------------------------------------------------------------


def test_sensing_matrices() -> None:
    for kind in ("bernoulli", "coordinates"):
        recipe = kh.RandomDatasetWorld(table(), 3, rewards="linear", sensing=kind)
        lenses = np.array([recipe.draw(seed).sensing for seed in range(400)])
        assert set(np.unique(lenses)) == {0.0, 1.0}
        if kind == "coordinates":
            assert (lenses.sum(axis=2) == 1).all()
            assert (lenses.sum(axis=1) <= 1).all()
        share = 0.5 if kind == "bernoulli" else 0.2
        error = np.sqrt(share * (1 - share) / 400)
        assert np.abs(lenses.mean(axis=0) - share).max() < 4.5 * error


def test_a_draw_follows_from_its_seed() -> None:
    recipe = kh.RandomDatasetWorld(table(), 3)
    np.testing.assert_array_equal(recipe.draw(5).sensing, recipe.draw(5).sensing)
    assert not np.array_equal(recipe.draw(5).sensing, recipe.draw(6).sensing)
    assert kh.DatasetWorld.random(data=table(), dim=3, seed=5).dim == 3


def test_logistic_parameters_are_at_the_top_of_the_penalised_likelihood() -> None:
    """The gradient of the log-likelihood less half the squared norm vanishes, constant included."""
    from scipy.optimize import brentq

    data = table()
    mu = kh.RandomDatasetWorld(data, 3).coefficients
    assert mu is not None
    for i, weights in enumerate(mu):
        hit, scores = data.labels == i, data.features @ weights

        def left(constant: float, hit: Any = hit, scores: Any = scores) -> float:
            return float((hit - 1 / (1 + np.exp(-scores - constant))).sum())

        constant = brentq(left, -20, 20)
        shares = 1 / (1 + np.exp(-scores - constant))
        np.testing.assert_allclose((hit - shares) @ data.features, weights, atol=0.005)
    # Of two classes, one against the rest is the other with its sign changed.
    np.testing.assert_allclose(mu[0], -mu[1], atol=1e-3)


def test_different_recipes_describe_themselves_differently() -> None:
    recipes = [
        kh.RandomDatasetWorld(table(), 3),
        kh.RandomDatasetWorld(table(), 4),
        kh.RandomDatasetWorld(table(), 3, rewards="linear"),
        kh.RandomDatasetWorld(table(), 3, sensing="coordinates"),
        kh.RandomDatasetWorld(table(seed=4), 3),
        kh.RandomDatasetWorld(table(), 3, sensing_scale=0.2),
    ]
    assert len({str(recipe.describe()) for recipe in recipes}) == len(recipes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 0}, "dim"),
        ({"dim": 6, "sensing": "coordinates"}, "at most 5"),
        ({"dim": 3, "rewards": "quadratic"}, "'logistic' or 'linear'"),
        ({"dim": 3, "sensing": "random"}, "'bernoulli' or 'coordinates'"),
        ({"dim": 3, "sensing_scale": -1.0}, "sensing_scale"),
        ({"dim": 3, "reward_scale": np.nan}, "reward_scale"),
        ({"dim": 3, "data": [[1.0]]}, "data must be a Dataset"),
    ],
)
def test_nonsense_recipes(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        kh.RandomDatasetWorld(**{"data": table(), **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sensing": np.ones((2, 4))}, "sensing must have shape"),
        ({"sensing": np.ones((2, 5)), "coefficients": np.ones((3, 5))}, "a row for each"),
        ({"sensing": [[np.inf] * 5]}, "sensing must be finite"),
    ],
)
def test_nonsense_worlds(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        kh.DatasetWorld(table(), **settings)


def test_labels_of_a_world_of_somebody_elses_are_checked() -> None:
    class Mine(kh.World):
        n_arms, dim, noise_scale, eta = 2, 1, 1.0, np.zeros((2, 1))

        def rounds(self, state: Any, n: int) -> kh.Rounds:  # noqa: ARG002
            zeros = np.zeros((n, 2))
            return kh.Rounds(np.zeros((n, 1, 1)), zeros, zeros, zeros, labels=np.full(n, 2))

    with pytest.raises(kh.InvalidValue, match="labels as 10 whole numbers from 0 to 1"):
        kh.simulate(Mine(), kh.Greedy(), horizon=10, replications=1, seed=1, progress=False)
