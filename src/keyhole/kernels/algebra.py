"""Products with symmetric matrices, and the inverse of one, on plain arrays.

Of a symmetric matrix one triangle is read or written: that is half the memory to hold and to move,
and symmetric to the bit whatever rounding does. Rows are taken two or four at a time, so that what
is loaded once serves all of them. Loops are written out rather than handed to BLAS: at these sizes
a call costs more than the work, and the result does not depend on how many threads BLAS has.
"""

import numpy as np

from keyhole.kernels.jit import kernel, part
from keyhole.kernels.types import Floats

EPSILON = float(np.finfo(np.float64).eps)


@part
def dot(a: Floats, b: Floats) -> float:
    """a'b."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@part
def multiply(matrix: Floats, y: Floats, out: Floats) -> None:
    """out = M y by the lower triangle of M: an entry serves its mirror image too."""
    grouped = y.size - y.size % 4
    for i in range(0, grouped, 4):
        y0, y1, y2, y3 = y[i], y[i + 1], y[i + 2], y[i + 3]
        sum0, sum1, sum2, sum3 = 0.0, 0.0, 0.0, 0.0
        for j in range(i):
            m0, m1, m2, m3 = matrix[i, j], matrix[i + 1, j], matrix[i + 2, j], matrix[i + 3, j]
            sum0 += m0 * y[j]
            sum1 += m1 * y[j]
            sum2 += m2 * y[j]
            sum3 += m3 * y[j]
            out[j] += m0 * y0 + m1 * y1 + m2 * y2 + m3 * y3
        m10, m20, m30 = matrix[i + 1, i], matrix[i + 2, i], matrix[i + 3, i]
        m21, m31, m32 = matrix[i + 2, i + 1], matrix[i + 3, i + 1], matrix[i + 3, i + 2]
        out[i] = sum0 + matrix[i, i] * y0 + m10 * y1 + m20 * y2 + m30 * y3
        out[i + 1] = sum1 + m10 * y0 + matrix[i + 1, i + 1] * y1 + m21 * y2 + m31 * y3
        out[i + 2] = sum2 + m20 * y0 + m21 * y1 + matrix[i + 2, i + 2] * y2 + m32 * y3
        out[i + 3] = sum3 + m30 * y0 + m31 * y1 + m32 * y2 + matrix[i + 3, i + 3] * y3
    for i in range(grouped, y.size):
        total = matrix[i, i] * y[i]
        for j in range(i):
            total += matrix[i, j] * y[j]
            out[j] += matrix[i, j] * y[i]
        out[i] = total


@part
def add_outer(matrix: Floats, y: Floats) -> None:
    """M += y y' in the upper triangle."""
    paired = y.size - y.size % 2
    for i in range(0, paired, 2):
        y0, y1 = y[i], y[i + 1]
        matrix[i, i] += y0 * y0
        for j in range(i + 1, y.size):
            matrix[i, j] += y0 * y[j]
            matrix[i + 1, j] += y1 * y[j]
    if paired < y.size:
        matrix[paired, paired] += y[paired] * y[paired]


@part
def subtract_outer(matrix: Floats, w: Floats) -> None:
    """M -= w w' in the lower triangle."""
    paired = w.size - w.size % 2
    for i in range(0, paired, 2):
        w0, w1 = w[i], w[i + 1]
        for j in range(i + 1):
            matrix[i, j] -= w0 * w[j]
            matrix[i + 1, j] -= w1 * w[j]
        matrix[i + 1, i + 1] -= w1 * w1
    if paired < w.size:
        for j in range(w.size):
            matrix[paired, j] -= w[paired] * w[j]


@kernel
def factorize(matrix: Floats, ridge: float, lower: Floats) -> bool:
    """Cholesky: lower lower' = M with its diagonal times 1 + ridge. False if it is not positive.

    M is given by its upper triangle.

    Rounding in Cholesky follows the scale of each row, so features of very different units cost
    no digits: only the condition of the correlation-like matrix M_ij / sqrt(M_ii M_jj) does.
    """
    dim = matrix.shape[0]
    for i in range(dim):
        for j in range(i):
            lower[i, j] = (matrix[j, i] - dot(lower[i, :j], lower[j, :j])) / lower[j, j]
        pivot = matrix[i, i] * (1.0 + ridge) - dot(lower[i, :i], lower[i, :i])
        if not pivot > 0.0:
            return False
        lower[i, i] = np.sqrt(pivot)
    return True


@kernel
def invert_triangle(lower: Floats) -> None:
    """Replace a lower triangular matrix by its inverse."""
    for i in range(lower.shape[0]):
        pivot = 1.0 / lower[i, i]
        for k in range(i):
            # Row i of the inverse gathers -L_ik times row k; its own entry k is still L_ik here.
            factor = lower[i, k]
            lower[i, k] = 0.0
            for j in range(k + 1):
                lower[i, j] -= factor * lower[k, j]
        for j in range(i):
            lower[i, j] *= pivot
        lower[i, i] = pivot


@part
def fill_lower(matrix: Floats, value: float) -> None:
    """Every entry of the lower triangle becomes `value`."""
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            matrix[i, j] = value


@kernel
def invert(matrix: Floats, out: Floats) -> None:
    """out = M^-1 of a symmetric positive definite M; NaN if M is far from that.

    M is given by its upper triangle, and its inverse by its lower one.
    """
    dim = matrix.shape[0]
    root = np.zeros((dim, dim))
    ridge = 0.0
    while not factorize(matrix, ridge, root):
        # M is singular in float64. With d (d + 1) eps on the diagonal the factorisation succeeds
        # if M is a rounded positive matrix (Demmel; Higham, Accuracy and Stability, 10.7). M is a
        # sum of many such, each rounded again: a few times more may be needed, and d is enough.
        ridge = max(4.0 * ridge, dim * (dim + 1.0) * EPSILON)
        if ridge > 4.0 * dim:
            fill_lower(out, np.nan)
            return
    invert_triangle(root)
    fill_lower(out, 0.0)
    for k in range(dim):
        for i in range(k + 1):
            for j in range(i + 1):
                out[i, j] += root[k, i] * root[k, j]
