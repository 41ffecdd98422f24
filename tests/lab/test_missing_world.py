"""Worlds that hide entries of observations, and what learners do about them."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh

WORLD = kh.LinearWorld.random(n_arms=3, context_dim=2, dim=4, seed=1)
FILLS = ["predict", "mean", "zero", "drop"]


def test_entries_are_hidden_and_nothing_else_changes() -> None:
    whole = WORLD.sample(50, 5)
    made = kh.MissingWorld(WORLD, share=0.3, centre=7.0).sample(50, 5)
    hidden = kh.Streams(5)["missing"].random(whole.observations.shape) < 0.3
    expected = np.where(hidden, np.nan, whole.observations + 7.0)
    np.testing.assert_array_equal(made.observations, expected)
    for name in ("rewards", "values", "latent"):
        np.testing.assert_array_equal(getattr(made, name), getattr(whole, name))
    none = kh.MissingWorld(WORLD, share=0.0).sample(30, 5).observations
    np.testing.assert_array_equal(none, WORLD.sample(30, 5).observations)


def test_blocks_of_any_size_give_the_same_rounds() -> None:
    world = kh.MissingWorld(WORLD, share=0.3)
    state = world.start(kh.Streams(5))
    parts = [world.rounds(state, n).observations for n in (1, 15, 24)]
    np.testing.assert_array_equal(world.sample(40, 5).observations, np.concatenate(parts))


def test_a_learner_must_say_what_to_do_about_missing_entries() -> None:
    world = kh.MissingWorld(WORLD, share=0.3)
    with pytest.raises(
        kh.InvalidValue, match=r"learner Greedy\(\) does not accept.*missing='predict'"
    ):
        kh.simulate(world, kh.Greedy(), horizon=20, replications=1, seed=1)


@pytest.mark.parametrize("fill", FILLS)
def test_what_a_learner_sees_of_missing_entries(fill: Any) -> None:
    """The constant first; of a dropped observation not even that."""
    learner = kh.Learner(kh.Greedy(), missing=fill, intercept=True)
    state, rows = learner.start(2, 2), np.array([[1.0, 10.0], [3.0, 30.0], [5.0, 80.0]])
    for row in rows:
        state.see(row[None])
    for reward in range(8):  # as many as the zero of rewards needs
        learner.learn(state, 0, rows[0], float(reward))
    design = state.prepared(np.array([[2.0, np.nan]]))[1][0]
    expected = {"predict": [1.0, 2.0], "mean": [1.0, 2.0, 40.0], "zero": [1.0, 2.0, 0.0]}
    if fill == "predict":
        slope = np.cov(rows.T)[0, 1] / np.var(rows[:, 0], ddof=1)
        expected["predict"] += [40.0 + slope * (2.0 - 3.0)]
    # With three observations the prediction is drawn towards the mean.
    tolerance = 8.0 if fill == "predict" else 1e-12
    np.testing.assert_allclose(design, expected.get(fill, [0.0, 0.0, 0.0]), atol=tolerance)


def test_dropped_observations_are_not_learned() -> None:
    learner = kh.Learner(kh.Greedy(), missing="drop")
    state = learner.start(2, 2)
    learner.learn(state, 0, np.array([1.0, np.nan]), 5.0)
    learner.learn(state, 1, np.array([1.0, 2.0]), 5.0)
    assert state.posterior.count.tolist() == [0, 1]


def test_missing_entries_cost_regret_and_prediction_saves_most_of_it() -> None:
    whole = kh.LinearWorld.random(n_arms=5, context_dim=3, dim=9, seed=1)

    def regret(world: kh.World, learner: Any) -> np.ndarray:
        runs = kh.simulate(world, learner, horizon=800, replications=12, seed=1)
        last: np.ndarray = runs.regret.isel(time=-1, policy=0).values
        return last

    none = regret(whole, kh.ThompsonSampling())
    hidden = kh.MissingWorld(whole, share=0.3)
    predicted, zero = (
        regret(hidden, kh.Learner(kh.ThompsonSampling(), missing=fill))
        for fill in ("predict", "zero")
    )
    assert none.mean() < predicted.mean()
    saved = zero - predicted
    assert saved.mean() > 4 * saved.std(ddof=1) / np.sqrt(12)


def test_a_recipe_of_worlds_with_missing_entries() -> None:
    recipe = kh.RandomLinearWorld(n_arms=3, context_dim=2, dim=4)
    hidden = kh.RandomMissingWorld(recipe, share=0.3)
    learner = kh.Learner(kh.ThompsonSampling(), missing="zero")
    runs = kh.simulate(hidden, learner, horizon=50, replications=4, seed=1)
    assert dict(runs.sizes)["arm"] == hidden.n_arms == 3
    shown = hidden.describe()
    assert shown["kind"] == "RandomMissingWorld of RandomLinearWorld"
    assert shown["missing_share"] == 0.3
    assert hidden.draw(1).dim == hidden.dim == 4
    with pytest.raises(kh.InvalidValue, match=r"recipe must have draw, n_arms.*got LinearWorld"):
        kh.RandomMissingWorld(WORLD, share=0.1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"world": "w"}, "must be a World"),
        ({"share": 1.5}, "share must be at least 0 and at most 1"),
        ({"centre": np.inf}, "centre must be"),
    ],
)
def test_nonsense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        kh.MissingWorld(**{"world": WORLD, "share": 0.1, **settings})
