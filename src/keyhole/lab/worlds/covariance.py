"""Covariance matrices: checks, symmetric roots and whitening."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole import checks
from keyhole.errors import InvalidValue

Floats = NDArray[np.float64]


def covariance(name: str, value: ArrayLike, dim: int) -> Floats:
    """Return a symmetric positive semidefinite matrix.

    Parameters
    ----------
    name : str
        The name of the setting, for error messages.
    value : array_like
        A matrix, or a number for that multiple of the identity.
    dim : int
        The number of rows and columns.

    Returns
    -------
    ndarray of shape (dim, dim)
        The matrix.

    Raises
    ------
    InvalidValue
        If the value has another shape, is not symmetric or has a negative eigenvalue.
    """
    matrix = checks.floats(name, value)
    if matrix.ndim == 0:
        matrix = matrix * np.eye(dim)
    if matrix.shape != (dim, dim):
        raise InvalidValue(
            f"{name} must be a number or a ({dim}, {dim}) matrix, got {matrix.shape}"
        )
    size = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > 1e-12 * size:
        raise InvalidValue(f"{name} must be symmetric")
    matrix = 0.5 * (matrix + matrix.T)
    # Rounding moves zero eigenvalues of a singular matrix by up to dim eps times the largest.
    if (least := np.linalg.eigvalsh(matrix).min()) < -1e-12 * dim * size:
        raise InvalidValue(f"{name} must have no negative eigenvalue, got {least:.3g}")
    return matrix


def root(matrix: Floats) -> Floats:
    """Return the symmetric root of a covariance, singular or not.

    If z has the covariance I, root z has the covariance root^2.
    """
    values, vectors = np.linalg.eigh(matrix)
    result: Floats = (vectors * np.sqrt(values.clip(min=0.0))) @ vectors.T
    return result


def whitening(matrix: Floats) -> Floats:
    """Return W with W M W' = I on the range of M, so that W'W is the (pseudo-)inverse of M.

    Scales are removed first, so that features in very different units are not mistaken for
    rounding.
    """
    scale = np.sqrt(np.diag(matrix))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    # Eigenvalues this small relative to the largest are zero up to rounding.
    kept = values > len(matrix) * np.finfo(np.float64).eps * values.max(initial=0.0)
    result: Floats = (vectors[:, kept] / np.sqrt(values[kept])).T / scale
    return result


def frozen(array: Floats) -> Floats:
    """Make the array read-only and return it."""
    array.flags.writeable = False
    return array
