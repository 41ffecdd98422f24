"""Many squares at once into a triangle, a tile of four rows and eight columns at a time.

A tile stays in registers while all of the squares are added up, as in a product of matrices. What
sticks out of the triangle is cut off. Rows that fill no tile are few, and taken one by one.
"""

from typing import TypeAlias

from keyhole.kernels.jit import part
from keyhole.kernels.types import Floats
from keyhole.kernels.vectors import Four, first, load, multiply_add, spread, store

# Eight numbers of a row, and those of four rows.
Pair: TypeAlias = tuple[Four, Four]
Tile: TypeAlias = tuple[Pair, Pair, Pair, Pair]


@part
def empty_tile() -> Tile:
    """Zeros."""
    pair = spread(0.0), spread(0.0)
    return pair, pair, pair, pair


@part
def grow(tile: Tile, a: float, b: float, c: float, d: float, pair: Pair) -> Tile:
    """The rows of a tile, and a, b, c and d times a pair."""
    return (
        add_to(tile[0], a, pair),
        add_to(tile[1], b, pair),
        add_to(tile[2], c, pair),
        add_to(tile[3], d, pair),
    )


@part
def add_to(sums: Pair, factor: float, pair: Pair) -> Pair:
    """A pair, and a factor times another."""
    f = spread(factor)
    return multiply_add(f, pair[0], sums[0]), multiply_add(f, pair[1], sums[1])


@part
def tile_of(v: Floats, n: int, i: int, j: int) -> Tile:
    """Of v_0 v_0' + ... + v_{n-1} v_{n-1}' the entries of rows i to i + 3, columns j to j + 7."""
    tile = empty_tile()
    for m in range(n):
        row = v[m]
        pair = load(row, j), load(row, j + 4)
        tile = grow(tile, row[i], row[i + 1], row[i + 2], row[i + 3], pair)
    return tile


@part
def add_after(n: int, pair: Pair, row: Floats, j: int) -> None:
    """row[j : j + 8] += pair, except for the first n entries of the row."""
    one, zeros = spread(1.0), spread(0.0)
    store(row, j, multiply_add(one, first(n - j, zeros, pair[0]), load(row, j)))
    store(row, j + 4, multiply_add(one, first(n - j - 4, zeros, pair[1]), load(row, j + 4)))


@part
def subtract_before(n: int, pair: Pair, row: Floats, j: int) -> None:
    """row[j : j + 8] -= pair, for the first n entries of the row only."""
    minus, zeros = spread(-1.0), spread(0.0)
    store(row, j, multiply_add(minus, first(n - j, pair[0], zeros), load(row, j)))
    store(row, j + 4, multiply_add(minus, first(n - j - 4, pair[1], zeros), load(row, j + 4)))


@part
def add_squares(matrix: Floats, y: Floats, n: int) -> None:
    """M += y_0 y_0' + ... in the upper triangle, by tiles from its lower right corner."""
    dim = matrix.shape[0]
    odd = dim % 8
    for i in range(odd):
        row = matrix[i, i:]
        for m in range(n):
            factor, after = y[m, i], y[m, i:]
            for j in range(row.size):
                row[j] += factor * after[j]
    for i in range(odd, dim, 4):
        for j in range(i - (i - odd) % 8, dim, 8):
            sum0, sum1, sum2, sum3 = tile_of(y, n, i, j)
            add_after(i, sum0, matrix[i], j)
            add_after(i + 1, sum1, matrix[i + 1], j)
            add_after(i + 2, sum2, matrix[i + 2], j)
            add_after(i + 3, sum3, matrix[i + 3], j)


@part
def subtract_squares(matrix: Floats, w: Floats, n: int) -> None:
    """M -= w_0 w_0' + ... in the lower triangle, by tiles from its upper left corner."""
    dim = matrix.shape[0]
    whole = dim - dim % 8
    for i in range(0, whole, 4):
        for j in range(0, i + 4, 8):
            sum0, sum1, sum2, sum3 = tile_of(w, n, i, j)
            subtract_before(i + 1, sum0, matrix[i], j)
            subtract_before(i + 2, sum1, matrix[i + 1], j)
            subtract_before(i + 3, sum2, matrix[i + 2], j)
            subtract_before(i + 4, sum3, matrix[i + 3], j)
    for i in range(whole, dim):
        row = matrix[i, : i + 1]
        for m in range(n):
            factor, before = w[m, i], w[m]
            for j in range(row.size):
                row[j] -= factor * before[j]
