"""A shared part and one for each arm, whose sum is an arm's parameter: `sharing="hybrid"`.

The parameter of arm i is beta + delta_i. All of them are one vector (beta, delta_1, ..., delta_N),
of which an observation of arm i sees beta and delta_i: its row is (y, 0, ..., y, ..., 0). Sums over
such rows are a posterior of the shared kind in 1 + N times as many coordinates, and everything
else, choices, merging and files, is the same. It is exact; a choice takes N (1 + N)^2 times as long
as with a shared parameter alone.
"""

from __future__ import annotations

import numpy as np

from keyhole.core.kernels import Floats, Ints


def placed(design: Floats, blocks: Ints, n_blocks: int) -> Floats:
    """Return rows as the joint parameter sees them, (n, (1 + n_blocks) c).

    Parameters
    ----------
    design : ndarray of shape (n, c), or (1, c) for all
        The rows.
    blocks : ndarray of int of shape (n,)
        The arm that each row is of.
    n_blocks : int
        The number of arms.
    """
    rows = np.broadcast_to(design, (len(blocks), design.shape[1]))
    wide = np.zeros((len(blocks), 1 + n_blocks, design.shape[1]))
    wide[:, 0] = rows
    wide[np.arange(len(blocks)), 1 + blocks] = rows
    return wide.reshape(len(blocks), (1 + n_blocks) * design.shape[1])


def in_every_block(matrix: Floats, n_blocks: int) -> Floats:
    """Return the matrix that applies a given one to every part of the joint parameter.

    Parameters
    ----------
    matrix : ndarray of shape (c, c)
        The matrix.
    n_blocks : int
        The number of arms.
    """
    result: Floats = np.asarray(np.kron(np.eye(1 + n_blocks), matrix), dtype=np.float64)
    return result


def places(blocks: Ints, columns: Ints, width: int) -> Ints:
    """Return the indices of the coordinates of the shared part and of some arms.

    Parameters
    ----------
    blocks : ndarray of int of shape (n,)
        The arms.
    columns : ndarray of int of shape (c,)
        The columns of a part.
    width : int
        The number of coordinates of a part.
    """
    starts = width * np.concatenate([[0], 1 + np.asarray(blocks, dtype=np.int64)])
    result: Ints = (starts[:, None] + columns).reshape(-1)
    return result
