"""Drawing of rounds: its products against NumPy's, at every way a size can be odd."""

import copy
import pickle

import numpy as np
import pytest

import keyhole as kh
from keyhole.core.kernels.drawing import multiply_rows


def multiplied(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    out = np.full((len(rows), matrix.shape[1]), np.nan)
    multiply_rows(rows, matrix, out)
    return out


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 6, 9])
def test_rows_times_a_matrix(n: int, columns: int) -> None:
    rng = np.random.default_rng(columns)
    for inner in (1, 7, columns):
        rows, full = rng.standard_normal((n, inner)), rng.standard_normal((inner, columns))
        for matrix in (full, np.triu(full), np.tril(full), full * np.eye(inner, columns), 0 * full):
            np.testing.assert_allclose(multiplied(rows, matrix), rows @ matrix, atol=1e-12)


@pytest.mark.parametrize("columns", [2, 7, 9, 30])
def test_equal_columns_give_equal_numbers(columns: int) -> None:
    """To the bit, wherever they are: twin arms must tie."""
    rng = np.random.default_rng(columns)
    matrix = np.repeat(rng.standard_normal((13, 1)), columns, axis=1)
    out = multiplied(rng.standard_normal((11, 13)), matrix)
    np.testing.assert_array_equal(out, np.repeat(out[:, :1], columns, axis=1))


@pytest.mark.parametrize("columns", [3, 8, 13])
def test_a_row_is_the_same_among_any_others(columns: int) -> None:
    """To the bit: a block of rounds may be drawn in pieces of any size."""
    rng = np.random.default_rng(columns)
    rows, matrix = rng.standard_normal((9, 10)), rng.standard_normal((10, columns))
    whole = multiplied(rows, matrix)
    for size in (1, 2, 3, 5):
        pieces = [multiplied(rows[low : low + size], matrix) for low in range(0, 9, size)]
        np.testing.assert_array_equal(np.concatenate(pieces), whole)


@pytest.mark.parametrize("n_arms", [5, 1100])
@pytest.mark.parametrize("shared_context", [True, False])
def test_rewards_are_values_and_what_is_unseen_and_noise(n_arms: int, shared_context: bool) -> None:
    """However many rounds are drawn at a time, which with many arms are fewer."""
    coefficients = np.random.default_rng(1).standard_normal((n_arms, 3))
    world = kh.LinearWorld(
        sensing=np.diag([1.0, 2.0, 0.5]),
        coefficients=coefficients,
        reward_scale=0.5,
        shared_context=shared_context,
    )
    made, source = world.sample(70, 4), kh.Streams(4)
    values = np.einsum("tnd,nd->tn", np.broadcast_to(made.observations, (70, n_arms, 3)), world.eta)
    np.testing.assert_allclose(made.values, values, atol=1e-12)
    assert made.latent is not None
    noise = made.rewards - made.latent
    np.testing.assert_allclose(
        noise, 0.5 * source["reward"].standard_normal(noise.shape), atol=1e-9
    )


def test_a_world_that_has_drawn_is_copied_and_pickled() -> None:
    world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=5, seed=1)
    expected = world.sample(10, 2).rewards
    for other in (pickle.loads(pickle.dumps(world)), copy.deepcopy(world)):
        np.testing.assert_array_equal(other.sample(10, 2).rewards, expected)
