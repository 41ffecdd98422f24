"""Retracing a log: what a posterior predicted before each round, given the logged choices."""

from __future__ import annotations

import cython
from cython.cimports.libc.math import sqrt

from keyhole.core.kernels.types import Floats, Ints

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.exploring import Explorer
    from cython.cimports.keyhole.core.kernels.pointers import after, start_of
else:
    from keyhole.core.kernels.exploring import Explorer
    from keyhole.core.kernels.pointers import after, start_of


def retrace(
    explorer: Explorer,
    parameter_of: Ints,
    y: Floats,
    chosen: Ints,
    rewards: Floats,
    out: Floats,
) -> None:
    """Predict all arms, then learn the chosen arm's reward, round by round.

    Parameters
    ----------
    explorer : Explorer
        Rule and posterior; the posterior learns every reward.
    parameter_of : ndarray of int of shape (n_arms,)
        Index of the parameter of each arm.
    y : ndarray of shape (n, 1, d) or (n, n_arms, d)
        One observation for all arms of a round, or one for each.
    chosen : ndarray of int of shape (n,)
        Index of the chosen arm.
    rewards : ndarray of shape (n,)
        Its reward.
    out : ndarray of shape (4, n, n_arms)
        Array for mean, width, optimism and dispersion of each arm before each round.
    """
    n_arms: cython.Py_ssize_t = parameter_of.size
    n: cython.Py_ssize_t = chosen.size
    dim: cython.Py_ssize_t = explorer.core.dim
    per_round: cython.Py_ssize_t = y.shape[1]
    shapes = (y.shape == (n, per_round, dim), rewards.shape == (n,), out.shape == (4, n, n_arms))
    if not all(shapes) or per_round not in (1, n_arms):
        raise ValueError(
            f"shapes of y {y.shape}, rewards {rewards.shape} and out {out.shape} must be "
            f"({n}, 1 or {n_arms}, {dim}), ({n},) and (4, {n}, {n_arms})"
        )
    if n and not (chosen.min() >= 0 and chosen.max() < n_arms):
        raise IndexError(f"chosen must be from 0 to {n_arms - 1}")
    explorer.core.check(parameter_of)
    parameters: cython.longlong[::1] = parameter_of
    rows: cython.double[::1] = y.reshape(-1)
    places: cython.longlong[::1] = chosen
    given: cython.double[::1] = rewards
    result: cython.double[:, :, ::1] = out
    start: cython.p_double = start_of(rows)
    stride: cython.Py_ssize_t = dim if per_round > 1 else 0
    with cython.nogil:
        for t in range(n):
            now: cython.p_double = after(start, t * per_round * dim)
            explorer.look()
            for k in range(n_arms):
                i: cython.Py_ssize_t = parameters[k]
                row: cython.p_double = after(now, k * stride)
                value: cython.double = 0.0
                for j in range(dim):
                    value += row[j] * explorer.core.mean[i, j]
                result[0, t, k] = value
                result[1, t, k] = sqrt(explorer.core.quadratic_form_alone(i, row))
                result[2, t, k] = explorer.optimism_of(i)
                result[3, t, k] = explorer.dispersion_of(i)
            chosen_row: cython.p_double = after(now, places[t] * stride)
            explorer.core.update(parameters[places[t]], chosen_row, given[t], 0, False)
