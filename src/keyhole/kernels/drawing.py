"""Drawing the rounds of a normal world: normals, and their products with a few fixed matrices.

BLAS is made for larger products. With a few columns this is up to twice as fast, nothing goes back
to Python in between, and no digit depends on which BLAS there is, or on how many threads it has.
"""

from typing import NamedTuple

import numpy as np

from keyhole.kernels.algebra import dot
from keyhole.kernels.jit import kernel, loop
from keyhole.kernels.normals import Bits, fill_normals
from keyhole.kernels.types import Floats, Ints
from keyhole.kernels.vectors import load, multiply_add, spread, store


class Lens(NamedTuple):
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
    lens: Lens,
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
    eta = np.ascontiguousarray(lens.eta.T)
    used, used_eta = used_rows(lens.observation), used_rows(eta)
    used_unseen = used_rows(lens.unseen)
    seen = np.empty((piece * rows, dim))
    unseen = np.empty((piece, lens.unseen.shape[0] if shared else arms))
    for low in range(0, rounds, piece):
        n = min(piece, rounds - low)
        fill_normals(context, seen[: n * rows].reshape(-1))
        fill_normals(hidden, unseen[:n].reshape(-1))
        now = y[low : low + n].reshape((n * rows, dim))
        product(seen[: n * rows], lens.observation, used, now)
        if shared:
            product(now, eta, used_eta, values[low : low + n])
            product(unseen[:n], lens.unseen, used_unseen, latent[low : low + n])
        else:
            own_products(now, lens, unseen, values[low : low + n], latent[low : low + n])
    add_up(values, latent, rewards, lens.reward_scale)


@loop
def own_products(y: Floats, lens: Lens, unseen: Floats, values: Floats, latent: Floats) -> None:
    """Where every arm has a context of its own: each row times the parameter of its arm."""
    for t in range(values.shape[0]):
        for k in range(values.shape[1]):
            values[t, k] = dot(y[t * values.shape[1] + k], lens.eta[k])
            latent[t, k] = unseen[t, k] * lens.unseen[0, k]


@loop
def add_up(values: Floats, latent: Floats, rewards: Floats, scale: float) -> None:
    """What is predicted, what is not, and noise."""
    for t in range(values.shape[0]):
        for k in range(values.shape[1]):
            latent[t, k] += values[t, k]
            rewards[t, k] = latent[t, k] + scale * rewards[t, k]


@loop
def product(rows: Floats, matrix: Floats, used: Ints, out: Floats) -> None:
    """out = rows M, four rows and eight columns at a time, of which the last ones may overlap."""
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
            s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = spread(0.0)
            for i in range(low, high):
                left, right = load(matrix[i], a), load(matrix[i], b)
                f0, f1, f2, f3 = spread(row0[i]), spread(row1[i]), spread(row2[i]), spread(row3[i])
                s0, t0 = multiply_add(f0, left, s0), multiply_add(f0, right, t0)
                s1, t1 = multiply_add(f1, left, s1), multiply_add(f1, right, t1)
                s2, t2 = multiply_add(f2, left, s2), multiply_add(f2, right, t2)
                s3, t3 = multiply_add(f3, left, s3), multiply_add(f3, right, t3)
            store(out[t], a, s0)
            store(out[t], b, t0)
            store(out[t + 1], a, s1)
            store(out[t + 1], b, t1)
            store(out[t + 2], a, s2)
            store(out[t + 2], b, t2)
            store(out[t + 3], a, s3)
            store(out[t + 3], b, t3)


@kernel
def used_rows(matrix: Floats) -> Ints:
    """For each eight columns, from which row to which they are not all zero.

    Roots of simple covariances are diagonal, and then these are few.
    """
    columns = matrix.shape[1]
    used = np.zeros((columns // 8 + 1, 2), np.int64)
    for start in range(0, columns, 8):
        low, high = matrix.shape[0], 0
        for i in range(matrix.shape[0]):
            # As many as a product takes: the last ones overlap with those before.
            for j in range(max(min(start, columns - 4), 0), min(start + 8, columns)):
                if matrix[i, j] != 0.0:
                    low, high = min(low, i), i + 1
        used[start // 8, 0], used[start // 8, 1] = low, high
    return used
