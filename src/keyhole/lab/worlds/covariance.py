"""Covariance matrices: what may be one, and its root."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole import checks
from keyhole.errors import InvalidValue

Floats = NDArray[np.float64]


def covariance(name: str, value: ArrayLike, dim: int) -> Floats:
    """A symmetric positive semidefinite matrix; a number is that multiple of the identity."""
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
    # Rounding puts eigenvalues of a singular matrix within dim eps of zero, times the largest.
    if (least := np.linalg.eigvalsh(matrix).min()) < -1e-12 * dim * size:
        raise InvalidValue(f"{name} must have no negative eigenvalue, but one is {least:.3g}")
    return matrix


def root(matrix: Floats) -> Floats:
    """The symmetric root of a covariance, singular or not: root z has the covariance root^2."""
    values, vectors = np.linalg.eigh(matrix)
    result: Floats = (vectors * np.sqrt(values.clip(min=0.0))) @ vectors.T
    return result


def whitening(matrix: Floats) -> Floats:
    """W with W M W' = I on all that M reaches, so that W'W is its (pseudo-)inverse.

    Scales are taken out first: features in very different units are not mistaken for rounding.
    """
    scale = np.sqrt(np.diag(matrix))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    # Eigenvalues this small next to the largest are the rounding of zero.
    kept = values > len(matrix) * np.finfo(np.float64).eps * values.max(initial=0.0)
    result: Floats = (vectors[:, kept] / np.sqrt(values[kept])).T / scale
    return result


def frozen(array: Floats) -> Floats:
    """The array, from now on read-only."""
    array.flags.writeable = False
    return array
