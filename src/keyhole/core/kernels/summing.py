"""Sums of squares of many rows by group: what posteriors are fitted from.

Rows are taken in blocks that fit into the cache. Within a block they are sorted by group, copied
side by side, and added to the sums of their group up to 64 at a time, in registers. The order of
additions follows from the rows alone: BLAS would be as fast, and its last digits may depend on
the number of its threads.
"""

from __future__ import annotations

import cython
import numpy as np

from keyhole.core.kernels.types import Floats, Ints, aligned_zeros

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.pointers import row_of, start_of
    from cython.cimports.keyhole.core.kernels.triangles import add_squares
else:
    from keyhole.core.kernels.pointers import row_of, start_of
    from keyhole.core.kernels.triangles import add_squares

# Rows that are added at a time. At dim 20 they take 12 kB, a third of the fastest cache.
TOGETHER = cython.declare(cython.Py_ssize_t, 64)
# Rows of a block, at least: 700 kB at dim 20. Of many groups a block has 16 rows for each, so
# that their sums are read and written once for 16 rows.
BLOCK, PER_GROUP = 4096, 16
# `add_squares` takes tiles of 4 by 8 entries.
TILE = 8


def padded(width: int) -> int:
    """Return the width of matrices that hold sums of rows of this width, a multiple of a tile."""
    return -(-width // TILE) * TILE


def sum_rows(groups: Ints, rows: Floats, rewards: Floats, out: Floats) -> None:
    """Add u u' of every row u = (x, reward) to the upper triangle of its group's matrix.

    Parameters
    ----------
    groups : ndarray of int of shape (n,)
        Group of each row; a row of a negative group is left out.
    rows : ndarray of shape (n, d)
        The rows x, with any strides.
    rewards : ndarray of shape (n,)
        The rewards.
    out : ndarray of shape (m, w, w)
        The sums of each of m groups, which are changed; w is `padded(d + 1)`.
    """
    n: cython.Py_ssize_t = rows.shape[0]
    m: cython.Py_ssize_t = out.shape[0]
    width: cython.Py_ssize_t = padded(rows.shape[1] + 1)
    if (
        groups.shape != (n,)
        or rewards.shape != (n,)
        or out.shape != (m, width, width)
        or not out.flags.carray
    ):
        raise ValueError(
            f"shapes of groups {groups.shape}, rewards {rewards.shape} and out {out.shape} must be "
            f"({n},), ({n},) and (m, {width}, {width}), in C order"
        )
    if n and groups.max() >= m:
        raise IndexError(f"groups must be below {m}, got {groups.max()}")
    size: cython.Py_ssize_t = max(BLOCK, PER_GROUP * m)
    group_of: cython.longlong[::1] = groups
    starts: cython.longlong[::1] = np.empty(m + 1, np.int64)
    order: cython.longlong[::1] = np.empty(min(size, n), np.int64)
    # Arrays of Arrow's are read-only.
    values: cython.const[cython.double][:, :] = rows  # type: ignore[valid-type]
    given: cython.const[cython.double][:] = rewards  # type: ignore[valid-type]
    near: cython.double[::1] = aligned_zeros((TOGETHER * width,))
    by_column: cython.bint = rows.strides[1] > rows.strides[0]
    sums: cython.double[:, ::1] = out.reshape(m, width * width)
    first: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        while first < n:
            sort_block(group_of, first, min(first + size, n), starts, order)
            for i in range(m):
                add_group(
                    values,
                    given,
                    by_column,
                    order,
                    starts[i],
                    starts[i + 1],
                    near,
                    width,
                    row_of(sums, i),
                )
            first += size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sort_block(
    groups: cython.longlong[::1],
    first: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    starts: cython.longlong[::1],
    order: cython.longlong[::1],
) -> cython.void:
    """Sort the rows from `first` to `end` by group, in the order in which they came.

    Parameters
    ----------
    groups : array of int of shape (n,)
        Group of each row, negative if it is left out.
    first, end : int
        First row, and the row after the last.
    starts : array of int of shape (m + 1,)
        Array for the place in `order` of each group's first row; of the last, where it ends.
    order : array of int
        Array for the rows.
    """
    m: cython.Py_ssize_t = starts.shape[0] - 1
    t: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for i in range(m + 1):
        starts[i] = 0
    for t in range(first, end):
        if groups[t] >= 0:
            starts[groups[t]] += 1
    total: cython.longlong = 0
    for i in range(m):
        total += starts[i]
        starts[i] = total
    starts[m] = total
    # From the last row on, each group is filled from its end: its start is left.
    for t in range(end - 1, first - 1, -1):
        if groups[t] >= 0:
            starts[groups[t]] -= 1
            order[starts[groups[t]]] = t


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_group(
    rows: cython.const[cython.double][:, :],  # type: ignore[valid-type]
    rewards: cython.const[cython.double][:],  # type: ignore[valid-type]
    by_column: cython.bint,
    order: cython.longlong[::1],
    first: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    near: cython.double[::1],
    width: cython.Py_ssize_t,
    out: cython.p_double,
) -> cython.void:
    """Add the rows of one group of a block to its sums.

    Parameters
    ----------
    rows : array of shape (n, d)
        All rows.
    rewards : array of shape (n,)
        All rewards.
    by_column : bool
        Whether the entries of a row are further apart in memory than those of a column.
    order : array of int
        Rows of the block, by group.
    first, end : int
        Places in `order` of the group's first row, and after its last.
    near : array of shape (64 * width,)
        Workspace for rows side by side; columns after the first d + 1 are zeros.
    width : int
        Width of the matrix.
    out : pointer to double
        The group's matrix, w by w.
    """
    dim: cython.Py_ssize_t = rows.shape[1]
    t: cython.Py_ssize_t
    j: cython.Py_ssize_t
    row: cython.Py_ssize_t
    start: cython.Py_ssize_t = first
    while start < end:
        n: cython.Py_ssize_t = min(TOGETHER, end - start)
        if by_column:
            for j in range(dim):
                for t in range(n):
                    near[t * width + j] = rows[order[start + t], j]
        else:
            for t in range(n):
                row = order[start + t]
                for j in range(dim):
                    near[t * width + j] = rows[row, j]
        for t in range(n):
            near[t * width + dim] = rewards[order[start + t]]
        add_squares(out, start_of(near), 1.0, n, width, False)
        start += n
