"""Products with one triangle of a symmetric matrix, and sums of squares added to one.

Matrices are flat arrays of rows of `dim` numbers. Rows are processed four at a time: each load
serves all four, and sums stay in registers.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.triangles import Numbers
else:
    from keyhole.core.kernels.types import Floats as Numbers


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def lower_times(matrix: Numbers, y: Numbers, out: Numbers, dim: cython.Py_ssize_t) -> cython.void:
    """Set out to the product of a symmetric matrix and y, by its lower triangle.

    An entry below the diagonal serves its mirror image too.

    Parameters
    ----------
    matrix : pointer to double
        Symmetric matrix, dim by dim; only its lower triangle is read.
    y, out : pointer to double
        Vectors of dim numbers.
    dim : int
        Dimension.
    """
    whole: cython.Py_ssize_t = dim - dim % 4
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for r in range(0, whole, 4):
        a: cython.Py_ssize_t = r * dim
        b: cython.Py_ssize_t = a + dim
        c: cython.Py_ssize_t = b + dim
        d: cython.Py_ssize_t = c + dim
        y0: cython.double = y[r]
        y1: cython.double = y[r + 1]
        y2: cython.double = y[r + 2]
        y3: cython.double = y[r + 3]
        sum0: cython.double = 0.0
        sum1: cython.double = 0.0
        sum2: cython.double = 0.0
        sum3: cython.double = 0.0
        for j in range(r):
            sum0 += matrix[a + j] * y[j]
            sum1 += matrix[b + j] * y[j]
            sum2 += matrix[c + j] * y[j]
            sum3 += matrix[d + j] * y[j]
            out[j] += (
                matrix[a + j] * y0 + matrix[b + j] * y1 + matrix[c + j] * y2 + matrix[d + j] * y3
            )
        p10: cython.double = matrix[b + r]
        p20: cython.double = matrix[c + r]
        p21: cython.double = matrix[c + r + 1]
        p30: cython.double = matrix[d + r]
        p31: cython.double = matrix[d + r + 1]
        p32: cython.double = matrix[d + r + 2]
        out[r] = sum0 + matrix[a + r] * y0 + p10 * y1 + p20 * y2 + p30 * y3
        out[r + 1] = sum1 + p10 * y0 + matrix[b + r + 1] * y1 + p21 * y2 + p31 * y3
        out[r + 2] = sum2 + p20 * y0 + p21 * y1 + matrix[c + r + 2] * y2 + p32 * y3
        out[r + 3] = sum3 + p30 * y0 + p31 * y1 + p32 * y2 + matrix[d + r + 3] * y3
    for r in range(whole, dim):
        a = r * dim
        y0 = y[r]
        sum0 = matrix[a + r] * y0
        for j in range(r):
            sum0 += matrix[a + j] * y[j]
        for j in range(r):
            out[j] += matrix[a + j] * y0
        out[r] = sum0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def lower_form(matrix: Numbers, y: Numbers, dim: cython.Py_ssize_t) -> cython.double:
    """Return y'My of a symmetric matrix, by its lower triangle, in two thirds of the time of My.

    Parameters
    ----------
    matrix : pointer to double
        Symmetric matrix, dim by dim; only its lower triangle is read.
    y : pointer to double
        Vector of dim numbers.
    dim : int
        Dimension.
    """
    whole: cython.Py_ssize_t = dim - dim % 4
    below: cython.double = 0.0  # the sum over entries below the diagonal
    total: cython.double = 0.0
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for r in range(0, whole, 4):
        a: cython.Py_ssize_t = r * dim
        b: cython.Py_ssize_t = a + dim
        c: cython.Py_ssize_t = b + dim
        d: cython.Py_ssize_t = c + dim
        y0: cython.double = y[r]
        y1: cython.double = y[r + 1]
        y2: cython.double = y[r + 2]
        y3: cython.double = y[r + 3]
        for j in range(r):
            below += y[j] * (
                matrix[a + j] * y0 + matrix[b + j] * y1 + matrix[c + j] * y2 + matrix[d + j] * y3
            )
        below += matrix[b + r] * y0 * y1
        below += (matrix[c + r] * y0 + matrix[c + r + 1] * y1) * y2
        below += (matrix[d + r] * y0 + matrix[d + r + 1] * y1 + matrix[d + r + 2] * y2) * y3
        total += matrix[a + r] * y0 * y0 + matrix[b + r + 1] * y1 * y1
        total += matrix[c + r + 2] * y2 * y2 + matrix[d + r + 3] * y3 * y3
    for r in range(whole, dim):
        a = r * dim
        row: cython.double = 0.0
        for j in range(r):
            row += matrix[a + j] * y[j]
        below += row * y[r]
        total += matrix[a + r] * y[r] * y[r]
    return total + 2.0 * below


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_square(
    matrices: Numbers, y: Numbers, w: Numbers, share: cython.double, dim: cython.Py_ssize_t
) -> cython.void:
    """Add y y' to B and -share w w' to P, which share an array as in `State.matrices`.

    Parameters
    ----------
    matrices : pointer to double
        B and P in one array, dim + 1 by dim.
    y, w : pointer to double
        Vectors of dim numbers.
    share : float
        Factor of w w'.
    dim : int
        Dimension.
    """
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for r in range(dim):
        upper: cython.Py_ssize_t = r * dim
        lower: cython.Py_ssize_t = upper + dim
        gain: cython.double = y[r]
        loss: cython.double = -share * w[r]
        for j in range(r, dim):
            matrices[upper + j] += gain * y[j]
        for j in range(r + 1):
            matrices[lower + j] += loss * w[j]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def tile(
    rows: Numbers,
    n: cython.Py_ssize_t,
    dim: cython.Py_ssize_t,
    r: cython.Py_ssize_t,
    c: cython.Py_ssize_t,
    out: Numbers,
) -> cython.void:
    """Set out to a 4 by 8 tile of the sum of w w' over n rows w.

    All of its sums stay in registers.

    Parameters
    ----------
    rows : pointer to double
        Rows, n by dim.
    n, dim : int
        Number of rows and their length.
    r, c : int
        First row and first column of the tile.
    out : pointer to double
        Array for the 32 entries of the tile.
    """
    sum0 = cython.declare(cython.double[8])
    sum1 = cython.declare(cython.double[8])
    sum2 = cython.declare(cython.double[8])
    sum3 = cython.declare(cython.double[8])
    j: cython.Py_ssize_t
    m: cython.Py_ssize_t
    for j in range(8):
        sum0[j] = sum1[j] = sum2[j] = sum3[j] = 0.0
    for m in range(n):
        at: cython.Py_ssize_t = m * dim
        for j in range(8):
            sum0[j] += rows[at + r] * rows[at + c + j]
            sum1[j] += rows[at + r + 1] * rows[at + c + j]
            sum2[j] += rows[at + r + 2] * rows[at + c + j]
            sum3[j] += rows[at + r + 3] * rows[at + c + j]
    for j in range(8):
        out[j] = sum0[j]
    for j in range(8):
        out[8 + j] = sum1[j]
    for j in range(8):
        out[16 + j] = sum2[j]
    for j in range(8):
        out[24 + j] = sum3[j]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_squares(
    matrix: Numbers,
    rows: Numbers,
    factor: cython.double,
    n: cython.Py_ssize_t,
    dim: cython.Py_ssize_t,
    is_lower: cython.bint,
) -> cython.void:
    """Add factor times the sum of w w' over n rows w to one triangle of a matrix.

    Tiles at the edges overlap their neighbours; only new entries of them are added.

    Parameters
    ----------
    matrix : pointer to double
        Matrix, dim by dim.
    rows : pointer to double
        Rows, n by dim.
    factor : float
        Factor of the sum.
    n, dim : int
        Number of rows and their length; dim must be at least 8.
    is_lower : bool
        Whether the lower triangle is changed, diagonal included, or the upper one.
    """
    sums = cython.declare(cython.double[32])
    if not cython.compiled:
        sums = [0.0] * 32
    first: cython.Py_ssize_t
    left: cython.Py_ssize_t
    k: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for first in range(0, dim, 4):
        r: cython.Py_ssize_t = min(first, dim - 4)
        start: cython.Py_ssize_t = 0 if is_lower else r - r % 8
        end: cython.Py_ssize_t = r + 4 if is_lower else dim
        for left in range(start, end, 8):
            c: cython.Py_ssize_t = min(left, dim - 8)
            tile(rows, n, dim, r, c, sums)
            for k in range(first, r + 4):
                low: cython.Py_ssize_t = left if is_lower else max(left, k)
                high: cython.Py_ssize_t = min(left + 8, k + 1 if is_lower else dim)
                for j in range(low, high):
                    matrix[k * dim + j] += factor * sums[8 * (k - r) + j - c]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def project_out(
    out: Numbers, rows: Numbers, y: Numbers, n: cython.Py_ssize_t, dim: cython.Py_ssize_t
) -> cython.void:
    """Subtract (w'y) w from out for each of n rows w, four at a time.

    Parameters
    ----------
    out, y : pointer to double
        Vectors of dim numbers.
    rows : pointer to double
        Rows w, n by dim. Up to the next multiple of four, the rows after them must be zeros.
    n, dim : int
        Number of rows and their length.
    """
    j: cython.Py_ssize_t
    m: cython.Py_ssize_t
    for m in range(0, n, 4):
        a: cython.Py_ssize_t = m * dim
        b: cython.Py_ssize_t = a + dim
        c: cython.Py_ssize_t = b + dim
        d: cython.Py_ssize_t = c + dim
        share0: cython.double = 0.0
        share1: cython.double = 0.0
        share2: cython.double = 0.0
        share3: cython.double = 0.0
        for j in range(dim):
            share0 += rows[a + j] * y[j]
            share1 += rows[b + j] * y[j]
            share2 += rows[c + j] * y[j]
            share3 += rows[d + j] * y[j]
        for j in range(dim):
            out[j] -= (
                share0 * rows[a + j]
                + share1 * rows[b + j]
                + share2 * rows[c + j]
                + share3 * rows[d + j]
            )
