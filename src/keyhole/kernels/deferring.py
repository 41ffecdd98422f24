"""Learning with matrices that are updated several rewards at a time.

A rank-one step reads and writes two triangles for one multiply-add an entry: with large ones,
memory is what it waits for. Many steps in one pass move it once. Until then P is what the matrix
says, less the vectors that wait.
"""

from typing import NamedTuple

import numpy as np

from keyhole.kernels.algebra import dot, multiply
from keyhole.kernels.jit import kernel, part
from keyhole.kernels.learning import eigenvalue_bound, refresh, settle, step
from keyhole.kernels.tiles import add_squares, subtract_squares
from keyhole.kernels.types import Floats, Ints, State

# Steps that are taken in one pass, and the dimension from which on that is faster.
TOGETHER, LARGE = 16, 40


class Late(NamedTuple):
    """What the matrices of k parameters have yet to be told."""

    n: Ints  # (k,)  how many steps
    y: Floats  # (k, TOGETHER, d)  what B gains the squares of
    w: Floats  # (k, TOGETHER, d)  what P loses the squares of


@kernel
def nothing_late(parameters: int, dim: int) -> Late:
    """Room for steps that wait."""
    shape = (parameters, TOGETHER, dim)
    return Late(np.zeros(parameters, np.int64), np.empty(shape), np.empty(shape))


@part
def subtract_late(late: Late, i: int, y: Floats, out: Floats) -> None:
    """Turn the matrix's P y into what it would be if nothing waited."""
    for m in range(late.n[i] if late.n.size > 0 else 0):
        w = late.w[i, m]
        share = dot(w, y)
        for j in range(y.size):
            out[j] -= share * w[j]


@part
def multiply_now(state: State, late: Late | None, i: int, y: Floats, out: Floats) -> None:
    """out = P y of parameter i, whatever its matrix has yet to be told."""
    multiply(state.matrices[i, 1:], y, out)
    if late is not None:  # a question that the compiler answers
        subtract_late(late, i, y, out)


@kernel
def catch_up(state: State, late: Late, i: int) -> None:
    """Tell the matrices of parameter i what waits, if anything does."""
    if late.n[i] == 0:
        return
    add_squares(state.matrices[i, :-1], late.y[i], late.n[i])
    subtract_squares(state.matrices[i, 1:], late.w[i], late.n[i])
    late.n[i] = 0


@part
def absorb_late(
    state: State, late: Late, i: int, y: Floats, reward: float, w: Floats, known: bool
) -> None:
    """As `absorb`, except that the matrices follow later."""
    if not known:
        multiply_now(state, late, i, y, w)
    share = step(state, i, y, reward, w)
    m, root = late.n[i], np.sqrt(share)
    late.n[i] = m + 1
    for j in range(y.size):
        late.y[i, m, j] = y[j]
    for j in range(y.size):
        late.w[i, m, j] = root * w[j]
    if share == 0.0:
        catch_up(state, late, i)
        settle(state, i)
    elif state.staleness[i] >= 1.0:
        catch_up(state, late, i)
        refresh(state, i)
    elif m + 1 == TOGETHER:
        catch_up(state, late, i)
        if int(state.n[i]) % y.size < TOGETHER:
            bound = eigenvalue_bound(state.matrices[i, 1:], state.trace[i], w)
            state.bound[i] = min(state.bound[i], bound)
