"""The recipes of `variants`: a constant beside what is seen, and normal contexts."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.lab.studies.contexts import NormalContexts, WithConstant, changed


@pytest.fixture(scope="module")
def recipe() -> kh.RandomDatasetWorld:
    return kh.RandomDatasetWorld(kh.datasets.load("wine").prepared(), 6)


@pytest.mark.parametrize("rewards", ["logistic", "linear"])
def test_the_oracle_with_a_constant_is_least_squares(rewards: str) -> None:
    """On y without noise, and a column of ones."""
    data = kh.datasets.load("wine").prepared()
    plain = kh.RandomDatasetWorld(data, 6, rewards=rewards, sensing_scale=0.0)  # type: ignore[arg-type]
    world = WithConstant(plain).draw(1)
    design = np.column_stack([world.world.sensed, np.ones(len(data.features))])
    fit, *_ = np.linalg.lstsq(design, world.world.expected_rewards, rcond=None)
    np.testing.assert_allclose(world.eta, fit.T, atol=1e-10)
    left = ((world.world.expected_rewards - design @ fit) ** 2).mean(axis=0).max()
    own = 1.0 if rewards == "logistic" else 0.0
    assert world.noise_scale == pytest.approx(np.sqrt(left + own))


def test_rounds_with_a_constant(recipe: kh.RandomDatasetWorld) -> None:
    world = WithConstant(recipe).draw(1)
    made, plain = world.sample(50, 3), recipe.draw(1).sample(50, 3)
    assert made.observations.shape == (50, 1, world.dim) == (50, 1, 7)
    assert (made.observations[..., -1] == 1.0).all()
    np.testing.assert_array_equal(made.observations[..., :-1], plain.observations)
    np.testing.assert_array_equal(made.rewards, plain.rewards)
    np.testing.assert_allclose(made.values, made.observations[:, 0] @ world.eta.T)
    assert (WithConstant(recipe).n_arms, WithConstant(recipe).dim) == (3, 7)


def test_normal_contexts_have_the_tables_covariance_and_its_oracle(
    recipe: kh.RandomDatasetWorld,
) -> None:
    normal, rows = NormalContexts(recipe).draw(1), recipe.draw(1)
    np.testing.assert_array_equal(normal.sensing, rows.sensing)
    # The features are centred, so that the best linear prediction is that of the rows.
    np.testing.assert_allclose(normal.eta, rows.eta, atol=1e-8)
    assert normal.shared_context
    assert normal.is_normal


def test_every_recipe_can_be_simulated_and_is_told_apart(recipe: kh.RandomDatasetWorld) -> None:
    recipes: list[Any] = [recipe, WithConstant(recipe), NormalContexts(recipe)]
    assert len({str(one.describe()) for one in recipes}) == 3
    for one in recipes[1:]:
        runs = kh.simulate(
            one, kh.ThompsonSampling(v="oracle"), horizon=30, replications=2, seed=1, progress=False
        )
        assert (runs.regret >= 0).all()


def test_another_sensing_has_the_same_rewards(recipe: kh.RandomDatasetWorld) -> None:
    other = changed(recipe, sensing="coordinates", dim=13)
    assert other.coefficients is recipe.coefficients
    assert other.describe()["sensing"] == "coordinates"
    assert recipe.describe()["sensing"] == "bernoulli"
