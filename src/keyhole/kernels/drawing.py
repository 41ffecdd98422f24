"""Drawing the rounds of a normal world: normals, and their products with a few fixed matrices.

BLAS is made for larger products. With a few columns this is up to twice as fast, nothing goes back
to Python in between, and no digit depends on which BLAS there is, or on how many threads it has.
"""

from typing import NamedTuple

import numpy as np

from keyhole.kernels.algebra import dot
from keyhole.kernels.jit import kernel, loop, part
from keyhole.kernels.normals import Bits, fill_normals
from keyhole.kernels.types import Floats
from keyhole.kernels.vectors import load, multiply_add, spread, store


class Lens(NamedTuple):
    """What the rounds of a normal world are drawn with."""

    observation: Floats  # (d, d)  a root of the covariance of y
    eta: Floats  # (n_arms, d)
    unseen: Floats  # (k, n_arms)  k normals times it are x'mu - y'eta; or (1, n_arms), own scales
    reward_scale: float


class Drawn(NamedTuple):
    """T rounds, and what they are made from. A row is a round, or an arm's own part of one."""

    seen: Floats  # (rows, d)  normals
    hidden: Floats  # (T, k)  normals; (T, n_arms) for own contexts
    y: Floats  # (rows, d)
    values: Floats  # (T, n_arms)  y'eta
    latent: Floats  # (T, n_arms)  x'mu
    rewards: Floats  # (T, n_arms)  the reward's noise, of scale 1, and then the reward


@kernel
def draw_rounds(context: Bits, hidden: Bits, lens: Lens, drawn: Drawn) -> None:
    """Draw y, then x'mu given y, and then add the reward's noise."""
    fill_normals(context, drawn.seen.reshape(-1))
    fill_normals(hidden, drawn.hidden.reshape(-1))
    product(drawn.seen, lens.observation, drawn.y)
    if drawn.y.shape[0] == drawn.values.shape[0]:
        product(drawn.y, np.ascontiguousarray(lens.eta.T), drawn.values)
        product(drawn.hidden, lens.unseen, drawn.latent)
    else:
        own_products(drawn, lens)
    add_up(drawn, lens.reward_scale)


@loop
def own_products(drawn: Drawn, lens: Lens) -> None:
    """Where every arm has a context of its own: each row times the parameter of its arm."""
    for t in range(drawn.values.shape[0]):
        for k in range(drawn.values.shape[1]):
            drawn.values[t, k] = dot(drawn.y[t * drawn.values.shape[1] + k], lens.eta[k])
            drawn.latent[t, k] = drawn.hidden[t, k] * lens.unseen[0, k]


@loop
def add_up(drawn: Drawn, scale: float) -> None:
    """What is predicted, what is not, and noise."""
    values, latent, rewards = drawn.values, drawn.latent, drawn.rewards
    for t in range(values.shape[0]):
        for k in range(values.shape[1]):
            latent[t, k] += values[t, k]
            rewards[t, k] = latent[t, k] + scale * rewards[t, k]


@loop
def product(rows: Floats, matrix: Floats, out: Floats) -> None:
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
        low, high = used_rows(matrix, a, b)
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


@part
def used_rows(matrix: Floats, a: int, b: int) -> tuple[int, int]:
    """From which row to which the columns from a and from b on are not all zero.

    Roots of simple covariances are diagonal, and then these are few.
    """
    low, high = matrix.shape[0], 0
    for i in range(matrix.shape[0]):
        for j in range(4):
            if matrix[i, a + j] != 0.0 or matrix[i, b + j] != 0.0:
                low, high = min(low, i), i + 1
    return low, high
