"""Regression given the choice: by hand, by enumeration, in normal worlds; and its cure's cost."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Floats, expected_largest
from keyhole.theory import selected_regression, weighted_cost

SIGNS: dict[str, Any] = {
    "context_distribution": "rademacher",
    "sensing_distribution": "rademacher",
}


class TwoArms(kh.World):
    """Arm 0 has y = 1 or 2 and r = 0 or 3; arm 1 has y = 1 and r = 1.4."""

    n_arms, dim, noise_scale = 2, 1, 1.0
    eta = np.array([[1.2], [1.4]])  # E[y r] / E[y^2] = 3 / 2.5

    def rounds(self, state: kh.Streams, n: int) -> kh.Rounds:
        y = np.ones((n, 2, 1))
        y[:, 0, 0] += state["context"].random(out=np.empty(n)) < 0.5
        rewards = np.column_stack([3.0 * (y[:, 0, 0] - 1.0), np.full(n, 1.4)])
        return kh.Rounds(y, rewards, y[:, :, 0] * self.eta[:, 0], rewards)


def test_a_fixed_point_by_hand() -> None:
    """If arm 0 is chosen at y = 2 alone, b = 3/2 beats 1.4 at y = 1; if always, b = 1.2 does not.

    So both tie at y = 1, b = 1.4, and arm 0 is chosen there with probability q, for which
    6 / (4 + q) = 1.4: q = 2/7. The floor is q/2 (1.4 - 1.2), the loss q/2 (1.4 - 0).
    """
    (limit,) = selected_regression(TwoArms(), trials=16_000)
    assert limit.coefficients[:, 0] == pytest.approx([1.4, 1.4], abs=0.02)
    q = 2 / 7
    # One of 48 averaged steps more or less is a 48th of q's rounds.
    assert limit.floor.value == pytest.approx(q / 2 * 0.2, abs=0.1 / 48 + 4 * limit.floor.error)
    assert limit.loss.value == pytest.approx(q / 2 * 1.4, abs=0.7 / 48 + 4 * limit.loss.error)
    assert limit.observer_floor is None
    assert limit.pulls.sum() == pytest.approx(1.0, abs=1e-12)


def exact(world: kh.LinearWorld) -> tuple[Floats, float]:
    """Enumerate the atoms of a Rademacher world: the fixed point and the floor, by iteration."""
    sizes = (world.context_dim, world.dim)
    signs = [np.array(list(product([-1.0, 1.0], repeat=size))) for size in sizes]
    x, noise = (part @ root.T for part, root in zip(signs, world.roots, strict=True))
    y = ((x @ world.sensing.T)[:, None] + noise).reshape(-1, world.dim)
    rewards = np.repeat(x @ world.coefficients.T, len(noise), axis=0)

    def wins(b: Floats) -> Floats:
        """The probability of each atom of each arm to be above all others, (atoms, n_arms)."""
        scores = y @ b.T
        below = [
            np.array([np.searchsorted(np.sort(scores[:, k]), column) for column in scores.T]).T
            for k in range(len(b))
        ]
        chances = np.array(below) / len(y)  # (other arm, atom, arm)
        for k in range(len(b)):
            chances[k, :, k] = 1.0
        won: Floats = chances.prod(axis=0)
        return won

    b = np.array(world.eta)
    for _ in range(30):
        won = wins(b)
        b = np.array(
            [
                np.linalg.solve((y * w[:, None]).T @ y, (y * w[:, None]).T @ r)
                for w, r in zip(won.T, rewards.T, strict=True)
            ]
        )
    values = y @ world.eta.T / len(y)
    return b, float((values * wins(world.eta)).sum() - (values * wins(b)).sum())


def test_a_sample_finds_what_enumeration_does() -> None:
    world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1, **SIGNS)
    b, floor = exact(world)
    assert floor == pytest.approx(0.00153, abs=1e-5)
    (limit,) = selected_regression(world, trials=100_000, starts=2)
    assert abs(limit.floor.value - floor) < 4 * limit.floor.error
    assert limit.floor.error < 0.1 * floor
    # Coefficients of arms that win a third of 100,000 rounds, with residuals of about 1.
    np.testing.assert_allclose(limit.coefficients, b, atol=4 * 1.5 / np.sqrt(30_000))
    assert limit.observer_floor is not None
    assert limit.linear_floor is not None
    assert limit.observer_floor.value > limit.linear_floor.value


def test_prices_are_those_of_the_coefficients_where_steps_overshoot() -> None:
    """In this world steps that replace all sums wander for ever; another fixed point is rare."""
    world = kh.LinearWorld(
        sensing=[[2.1, 0.0, 0.6], [2.5, 0.8, -0.1]],
        coefficients=[[0.1, -0.7, 1.1], [-0.3, 1.8, -0.3], [-0.4, -0.4, 0.6], [0.2, 1.4, -0.6]],
        sensing_covariance=0.25,
        context_distribution="rademacher",
        shared_context=True,
    )
    limits = selected_regression(world, trials=50_000)
    assert [limit.floor.value for limit in limits] == pytest.approx([0.0201, 0.120], rel=0.1)
    assert limits[0].floor.error < 0.04 * limits[0].floor.value
    rounds = world.sample(200_000, seed=7)
    y = np.broadcast_to(rounds.observations, (200_000, 4, 2))
    for limit in limits:
        chosen = np.einsum("nid,id->ni", y, limit.coefficients).argmax(axis=1)
        regret = rounds.values.max(axis=1) - rounds.values[np.arange(len(y)), chosen]
        error = np.hypot(limit.floor.error, regret.std() / np.sqrt(len(y)))
        assert abs(limit.floor.value - regret.mean()) < 4 * error
        # Shares of 50,000 rounds and of 200,000.
        shares = np.bincount(chosen, minlength=4) / len(y)
        np.testing.assert_allclose(limit.pulls, shares, atol=4 * 0.5 / np.sqrt(40_000))


@pytest.mark.parametrize("shared_context", [False, True])
def test_a_normal_world_has_one_fixed_point_and_no_floor(shared_context: bool) -> None:
    world = kh.LinearWorld.random(
        n_arms=3, context_dim=4, dim=4, seed=1, shared_context=shared_context
    )
    (limit,) = selected_regression(world, trials=40_000)
    assert abs(limit.floor.value) < 4 * limit.floor.error
    assert limit.floor.error < 0.001
    assert (limit.bias < 4 * 1.8 * np.sqrt(4 / 8_000)).all()


def test_one_arm_is_not_selected() -> None:
    world = kh.LinearWorld.random(n_arms=1, context_dim=2, dim=2, seed=1, **SIGNS)
    (limit,) = selected_regression(world, trials=16_000)
    assert limit.floor.value == pytest.approx(0.0, abs=1e-15)
    assert limit.pulls.tolist() == [1.0]


@pytest.mark.parametrize("settings", [{"trials": 100}, {"starts": 0}])
def test_settings_that_are_refused(settings: dict[str, int]) -> None:
    (name,) = settings
    with pytest.raises(kh.InvalidValue, match=name):
        selected_regression(TwoArms(), **settings)


def test_the_cost_of_uniform_choices_is_known_in_closed_form() -> None:
    world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
    cost = weighted_cost(world, time=9_999, epsilon=1.0, decay=0.5)
    expected = 0.01 * expected_largest(np.zeros(3), world.value_scales)
    assert abs(cost.exploration.value - expected) < 4 * cost.exploration.error
    assert cost.total == cost.exploration.value + cost.estimation.value


def test_four_times_the_rounds_halve_the_errors() -> None:
    world = kh.LinearWorld.random(n_arms=3, context_dim=2, dim=2, seed=1, **SIGNS)
    few, many = (
        weighted_cost(world, time=t, epsilon=0.1, decay=0.0, trials=2_000)
        for t in (100_000, 400_000)
    )
    np.testing.assert_allclose(few.errors / many.errors, 2.0, rtol=0.01)
    assert few.exploration == many.exploration
    assert many.estimation.value < few.estimation.value


def test_the_best_observer_of_signs_is_a_hyperbolic_tangent() -> None:
    world = kh.LinearWorld(
        sensing=[[1.0]], coefficients=[[1.0], [2.0]], context_distribution="rademacher"
    )
    y = np.linspace(-3.0, 3.0, 7).reshape(-1, 1, 1).repeat(2, axis=1)
    expected = np.tanh(y[:, :, 0]) * [1.0, 2.0]
    found = world.expected_values(y)
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_best_observer_of_a_normal_world_is_linear() -> None:
    world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=2, seed=1)
    rounds = world.sample(100, seed=1)
    found = world.expected_values(rounds.observations)
    assert found is not None
    np.testing.assert_allclose(found, rounds.values, atol=1e-9)


def test_the_best_observer_of_a_mixture_leaves_residuals_without_a_regression() -> None:
    kinds: dict[str, Any] = {
        "context_distribution": "mixture",
        "sensing_distribution": "rademacher",
    }
    world = kh.LinearWorld.random(n_arms=1, context_dim=2, dim=2, seed=1, **kinds)
    rounds = world.sample(20_000, seed=1)
    y, values = rounds.observations[:, 0], world.expected_values(rounds.observations)
    assert values is not None
    left = rounds.latent - values
    # Uncorrelated with y, with its cubes, and with the expectation itself.
    for each in (*y.T, *(y**3).T, values[:, 0]):
        product_ = left[:, 0] * each
        assert abs(product_.mean()) < 4 * product_.std() / np.sqrt(len(y))
    assert (left**2).mean() < (rounds.latent - rounds.values).var()


def test_the_best_observer_of_uniform_contexts_has_no_formula() -> None:
    world = kh.LinearWorld.random(
        n_arms=2, context_dim=2, dim=2, seed=1, context_distribution="uniform"
    )
    assert world.expected_values(np.zeros((1, 2, 2))) is None
