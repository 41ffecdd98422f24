"""Learning with matrices that are updated four rewards at a time.

A rank-one step reads and writes two triangles for one multiply-add an entry: with large ones,
memory is what it waits for. Four steps in one pass move a quarter of it. Until then P is what the
matrix says, less the vectors that wait.
"""

from typing import NamedTuple

import numpy as np

from keyhole.kernels.algebra import dot, multiply
from keyhole.kernels.jit import kernel, part
from keyhole.kernels.learning import eigenvalue_bound, refresh, settle, step
from keyhole.kernels.types import Floats, Ints, State

# Steps that are taken in one pass, and the dimension from which on that is faster.
TOGETHER, LARGE = 4, 40


class Late(NamedTuple):
    """What the matrices of k parameters have yet to be told."""

    n: Ints  # (k,)  how many steps
    y: Floats  # (k, TOGETHER, d)  what B gains the squares of
    w: Floats  # (k, TOGETHER, d)  what P loses the squares of


@kernel
def nothing_late(parameters: int, dim: int) -> Late:
    """Room for steps that wait."""
    shape = (parameters, TOGETHER, dim)
    return Late(np.zeros(parameters, np.int64), np.zeros(shape), np.zeros(shape))


@part
def subtract_late(late: Late, i: int, y: Floats, out: Floats) -> None:
    """Turn the matrix's P y into what it would be if nothing waited."""
    for m in range(late.n[i] if late.n.size > 0 else 0):
        w = late.w[i, m]
        share = dot(w, y)
        for j in range(y.size):
            out[j] -= share * w[j]


@kernel
def catch_up(state: State, late: Late, i: int) -> None:
    """Tell the matrices of parameter i what waits."""
    if late.n[i] == 0:
        return
    # What is not there of the four is zero.
    late.y[i, late.n[i] :] = 0.0
    late.w[i, late.n[i] :] = 0.0
    add_outers(state.matrices[i, :-1], late.y[i])
    subtract_outers(state.matrices[i, 1:], late.w[i])
    late.n[i] = 0


@part
def add_outers(matrix: Floats, y: Floats) -> None:
    """M += y_0 y_0' + ... + y_3 y_3' in the upper triangle."""
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    for i in range(matrix.shape[0]):
        f0, f1, f2, f3 = y0[i], y1[i], y2[i], y3[i]
        for j in range(i, matrix.shape[0]):
            matrix[i, j] += f0 * y0[j] + f1 * y1[j] + f2 * y2[j] + f3 * y3[j]


@part
def subtract_outers(matrix: Floats, w: Floats) -> None:
    """M -= w_0 w_0' + ... + w_3 w_3' in the lower triangle."""
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for i in range(matrix.shape[0]):
        f0, f1, f2, f3 = w0[i], w1[i], w2[i], w3[i]
        for j in range(i + 1):
            matrix[i, j] -= f0 * w0[j] + f1 * w1[j] + f2 * w2[j] + f3 * w3[j]


@part
def absorb_late(
    state: State, late: Late, i: int, y: Floats, reward: float, w: Floats, known: bool
) -> None:
    """As `absorb`, except that the matrices follow later."""
    if not known:
        multiply(state.matrices[i, 1:], y, w)
        subtract_late(late, i, y, w)
    staler = step(state, i, y, reward, w)
    m = late.n[i]
    late.n[i] = m + 1
    for j in range(y.size):
        late.y[i, m, j] = y[j]
    for j in range(y.size):
        late.w[i, m, j] = w[j]
    if staler < 0.0:
        catch_up(state, late, i)
        settle(state, i)
        return
    state.staleness[i] += staler
    if state.staleness[i] >= 1.0:
        catch_up(state, late, i)
        refresh(state, i)
    elif m + 1 == TOGETHER:
        catch_up(state, late, i)
        if int(state.n[i]) % y.size < TOGETHER:
            bound = eigenvalue_bound(state.matrices[i, 1:], state.trace[i])
            state.bound[i] = min(state.bound[i], bound)
