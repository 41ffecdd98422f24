"""Products of many rows with a small matrix."""

from __future__ import annotations

import numpy as np

from keyhole.core import Floats
from keyhole.core.kernels import multiply_rows


def product(rows: Floats, matrix: Floats) -> Floats:
    """Return every row times a matrix: (..., d) and (d, e) give (..., e).

    BLAS is not used: no digit depends on the installed BLAS or on its threads, and its threads do
    not compete with ours.

    Parameters
    ----------
    rows : ndarray of shape (..., d)
        The rows.
    matrix : ndarray of shape (d, e)
        The matrix.

    Returns
    -------
    ndarray of shape (..., e)
        The products.
    """
    flat = np.ascontiguousarray(rows, dtype=np.float64).reshape(-1, len(matrix))
    result = np.empty((len(flat), matrix.shape[1]))
    if len(flat):
        multiply_rows(flat, np.asarray(matrix, dtype=np.float64), result)
    return result.reshape(*rows.shape[:-1], matrix.shape[1])
