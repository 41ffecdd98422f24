"""Drawing the rounds of a normal world: normals, and their products with a few fixed matrices.

BLAS is made for larger products. With a few columns this is up to twice as fast, nothing goes back
to Python in between, and no digit depends on which BLAS there is, or on how many threads it has.
"""

from typing import NamedTuple

import numpy as np

from keyhole.kernels.algebra import dot
from keyhole.kernels.jit import kernel, loop, part
from keyhole.kernels.normals import Bits, fill_normals
from keyhole.kernels.tiles import Pair, empty_tile, grow
from keyhole.kernels.types import Floats, Ints
from keyhole.kernels.vectors import load, store


class NormalLaw(NamedTuple):
    """What the rounds of a normal world are drawn with."""

    observation: Floats  # (d, d)  a root of the covariance of y
    eta: Floats  # (n_arms, d)
    unseen: Floats  # (k, n_arms)  k normals times it are x'mu - y'eta; or (1, n_arms), own scales
    reward_scale: float


# So many rows at a time: what is made of normals while they are in a core's own cache.
PIECE = 64


@kernel
def draw_rounds(
    context: Bits,
    hidden: Bits,
    law: NormalLaw,
    y: Floats,
    values: Floats,
    latent: Floats,
    rewards: Floats,
) -> None:
    """Draw y, (T, 1 or n_arms, d), its values y'eta, and then x'mu given y, (T, n_arms).

    `rewards` holds the noise of rewards, of scale 1, and then the rewards.
    """
    rounds, arms = values.shape
    rows, dim = y.shape[1:]
    shared, piece = rows == 1, max(1, PIECE // rows)
    eta = np.ascontiguousarray(law.eta.T)
    used, used_eta = used_rows(law.observation), used_rows(eta)
    used_unseen = used_rows(law.unseen)
    seen = np.empty((piece * rows, dim))
    unseen = np.empty((piece, law.unseen.shape[0] if shared else arms))
    for low in range(0, rounds, piece):
        n = min(piece, rounds - low)
        fill_normals(context, seen[: n * rows].reshape(-1))
        fill_normals(hidden, unseen[:n].reshape(-1))
        now = y[low : low + n].reshape((n * rows, dim))
        product(seen[: n * rows], law.observation, used, now)
        if shared:
            product(now, eta, used_eta, values[low : low + n])
            product(unseen[:n], law.unseen, used_unseen, latent[low : low + n])
        else:
            own_products(now, law, unseen, values[low : low + n], latent[low : low + n])
    add_up(values, latent, rewards, law.reward_scale)


@loop
def own_products(y: Floats, law: NormalLaw, unseen: Floats, values: Floats, latent: Floats) -> None:
    """Where every arm has a context of its own: each row times the parameter of its arm."""
    for t in range(values.shape[0]):
        for k in range(values.shape[1]):
            values[t, k] = dot(y[t * values.shape[1] + k], law.eta[k])
            latent[t, k] = unseen[t, k] * law.unseen[0, k]


@loop
def add_up(values: Floats, latent: Floats, rewards: Floats, scale: float) -> None:
    """What is predicted, what is not, and noise."""
    for t in range(values.shape[0]):
        for k in range(values.shape[1]):
            latent[t, k] += values[t, k]
            rewards[t, k] = latent[t, k] + scale * rewards[t, k]


@loop
def product(rows: Floats, matrix: Floats, used: Ints, out: Floats) -> None:
    """out = rows M, four rows and eight columns at a time, of which the last ones may overlap.

    Every column is added up in the same order: equal columns give equal numbers, to the bit.
    """
    n, columns = out.shape
    if n < 4 or columns < 4:
        for t in range(n):
            for j in range(columns):
                out[t, j] = 0.0
                for i in range(matrix.shape[0]):
                    out[t, j] += rows[t, i] * matrix[i, j]
        return
    for start in range(0, columns, 8):
        a, b = min(start, columns - 4), min(start + 4, columns - 4)
        low, high = used[start // 8, 0], used[start // 8, 1]
        for begin in range(0, n, 4):
            t = min(begin, n - 4)
            row0, row1, row2, row3 = rows[t], rows[t + 1], rows[t + 2], rows[t + 3]
            tile = empty_tile()
            for i in range(low, high):
                pair = load(matrix[i], a), load(matrix[i], b)
                tile = grow(tile, row0[i], row1[i], row2[i], row3[i], pair)
            put(tile[0], out[t], a, b)
            put(tile[1], out[t + 1], a, b)
            put(tile[2], out[t + 2], a, b)
            put(tile[3], out[t + 3], a, b)


@part
def put(pair: Pair, row: Floats, a: int, b: int) -> None:
    """row[a : a + 4], row[b : b + 4] = pair."""
    store(row, a, pair[0])
    store(row, b, pair[1])


@kernel
def used_rows(matrix: Floats) -> Ints:
    """For each eight columns, from which row to which they are not all zero.

    Roots of simple covariances are diagonal, and then these are few.
    """
    columns = matrix.shape[1]
    used = np.zeros(((columns + 7) // 8, 2), np.int64)
    for start in range(0, columns, 8):
        low, high = matrix.shape[0], 0
        for i in range(matrix.shape[0]):
            # As many as a product takes: the last ones overlap with those before.
            for j in range(max(min(start, columns - 4), 0), min(start + 8, columns)):
                if matrix[i, j] != 0.0:
                    low, high = min(low, i), i + 1
        used[start // 8, 0], used[start // 8, 1] = low, high
    return used
