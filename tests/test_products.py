"""Four numbers at a time, tiles and products, against NumPy, at every way a size can be odd."""

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from keyhole.kernels import vectors
from keyhole.kernels.algebra import dots, most, move_squares, multiply, place_of_most
from keyhole.kernels.tiles import add_squares, subtract_squares
from keyhole.kernels.vectors import (
    first,
    larger,
    largest,
    load,
    multiply_add,
    number,
    spread,
    store,
    total,
    totals,
)

DIMS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17, 63, 64, 66]


@numba.njit
def every_function(a: np.ndarray, b: np.ndarray, n: int, out: np.ndarray) -> float:
    x, y = load(a, 1), load(b, 0)
    store(out[0], 0, multiply_add(x, y, spread(0.5)))
    store(out[1], 0, totals(x, y, spread(2.0), multiply_add(x, x, y)))
    store(out[2], 0, first(n, x, y))
    store(out[3], 0, larger(x, y))
    return total(x) + largest(y) + number(x, 2)


@pytest.mark.parametrize("n", [-3, 0, 1, 3, 4, 9])
def test_registers_do_what_the_functions_say(n: int) -> None:
    """Small whole numbers: every sum is exact, in whatever order."""
    a, b = np.arange(2.0, 8.0), np.array([5.0, -1.0, 3.0, 7.0])
    compiled, plain = np.full((4, 5), np.nan), np.full((4, 5), np.nan)
    assert every_function(a, b, n, compiled) == every_function.py_func(a, b, n, plain) == 30.0
    np.testing.assert_array_equal(compiled, plain)
    # One number beyond the four is left alone.
    assert np.isnan(compiled[:, 4]).all()
    assert not np.isnan(compiled[:, :4]).any()


@pytest.mark.parametrize(
    "row",
    [np.zeros(8)[::2], np.zeros(8, np.int64), np.zeros(8, np.float32), np.zeros((2, 8))],
    ids=["apart", "whole numbers", "single precision", "rows"],
)
def test_anything_but_a_row_of_floats_is_refused(row: np.ndarray) -> None:
    """Compiled code would read it as if it were one."""
    with pytest.raises(TypingError, match="side by side"):
        numba.njit(lambda a: vectors.total(vectors.load(a, 0)))(row)


def test_nothing_is_stored_in_what_is_read_only() -> None:
    row = np.zeros(8)
    row.flags.writeable = False
    with pytest.raises(TypingError, match="read-only"):
        numba.njit(lambda a: vectors.store(a, 0, vectors.spread(1.0)))(row)
    assert not row.any()


@pytest.mark.parametrize("dim", DIMS)
def test_the_largest_number_and_where_it_is(dim: int) -> None:
    for place in range(dim):
        row = -np.arange(1.0, dim + 1.0)
        row[place] = 2.0
        assert most(row) == 2.0
        assert place_of_most(row) == place


@pytest.mark.parametrize("dim", DIMS)
def test_four_products_with_one_vector(dim: int) -> None:
    rows = np.random.default_rng(dim).standard_normal((5, dim))
    out = np.empty(4)
    numba.njit(lambda rows, out: store(out, 0, dots(rows[0], rows[1], rows[2], rows[3], rows[4])))(
        rows, out
    )
    np.testing.assert_allclose(out, rows[:4] @ rows[4], atol=1e-12)


@pytest.mark.parametrize("dim", DIMS)
def test_a_product_by_one_triangle(dim: int) -> None:
    rng = np.random.default_rng(dim)
    matrix, y, out = rng.standard_normal((dim, dim)), rng.standard_normal(dim), np.full(dim, np.nan)
    below = np.tril(matrix)
    multiply(np.where(np.tri(dim) > 0, matrix, np.nan), y, out)
    np.testing.assert_allclose(out, (below + np.tril(below, -1).T) @ y, atol=1e-12)


@pytest.mark.parametrize("dim", DIMS)
def test_one_square_moves_both_triangles(dim: int) -> None:
    rng = np.random.default_rng(dim)
    both, (y, w) = rng.standard_normal((dim + 1, dim)), rng.standard_normal((2, dim))
    expected = both.copy()
    expected[:-1] += np.triu(np.outer(y, y))
    expected[1:] -= np.tril(0.3 * np.outer(w, w))
    move_squares(both, y, w, 0.3)
    np.testing.assert_allclose(both, expected, atol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 5, 16])
@pytest.mark.parametrize("dim", DIMS)
def test_many_squares_by_tiles(dim: int, n: int) -> None:
    """Each goes into its own triangle; the other, and whatever is beyond n, is left alone."""
    rng = np.random.default_rng(dim)
    both, v = rng.standard_normal((dim + 1, dim)), rng.standard_normal((16, dim))
    v[n:] = np.nan
    more, less = both.copy(), both.copy()
    add_squares(more[:-1], v, n)
    subtract_squares(less[1:], v, n)
    squares = v[:n].T @ v[:n]
    np.testing.assert_allclose(more[:-1], both[:-1] + np.triu(squares), atol=1e-12)
    np.testing.assert_allclose(less[1:], both[1:] - np.tril(squares), atol=1e-12)
    np.testing.assert_array_equal(more[-1], both[-1])
    np.testing.assert_array_equal(less[0], both[0])
