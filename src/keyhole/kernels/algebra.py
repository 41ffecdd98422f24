"""Products with rows and symmetric matrices, the inverse of one, and the most of a row.

Of a symmetric matrix one triangle is read or written: that is half the memory to hold and to move,
and symmetric to the bit whatever rounding does. Rows are taken four at a time, so that what is
loaded once serves all of them. Loops are written out rather than handed to BLAS: at these sizes
a call costs more than the work, and the result does not depend on how many threads BLAS has.
"""

import numpy as np

from keyhole.kernels.jit import kernel, part
from keyhole.kernels.types import Floats
from keyhole.kernels.vectors import (
    Four,
    first,
    larger,
    largest,
    load,
    multiply_add,
    spread,
    store,
    total,
    totals,
)

EPSILON = float(np.finfo(np.float64).eps)
# From here on, rows are long enough for the compiler's own loops.
LONG = 64


@part
def dot(a: Floats, b: Floats) -> float:
    """a'b."""
    result = 0.0
    for j in range(a.size):
        result += a[j] * b[j]
    return result


@part
def dots(a: Floats, b: Floats, c: Floats, d: Floats, y: Floats) -> Four:
    """a'y, b'y, c'y and d'y, each rounded in the same way: equal rows give equal numbers."""
    end, zeros = y.size - 4, spread(0.0)
    sum0 = sum1 = sum2 = sum3 = zeros
    if end < 0:
        for j in range(y.size):
            at = first(1, spread(y[j]), zeros)
            sum0, sum1 = multiply_add(spread(a[j]), at, sum0), multiply_add(spread(b[j]), at, sum1)
            sum2, sum3 = multiply_add(spread(c[j]), at, sum2), multiply_add(spread(d[j]), at, sum3)
        return totals(sum0, sum1, sum2, sum3)
    for j in range(0, end, 4):
        at = load(y, j)
        sum0, sum1 = multiply_add(load(a, j), at, sum0), multiply_add(load(b, j), at, sum1)
        sum2, sum3 = multiply_add(load(c, j), at, sum2), multiply_add(load(d, j), at, sum3)
    # The last four overlap with those before, which are not counted again.
    at = first((4 - y.size % 4) % 4, zeros, load(y, end))
    sum0, sum1 = multiply_add(load(a, end), at, sum0), multiply_add(load(b, end), at, sum1)
    sum2, sum3 = multiply_add(load(c, end), at, sum2), multiply_add(load(d, end), at, sum3)
    return totals(sum0, sum1, sum2, sum3)


@part
def most(row: Floats) -> float:
    """The largest number of a row; some number of it if there is NaN."""
    end, result = row.size - 8, float(row[0])
    if end < 0:
        for j in range(1, row.size):
            result = row[j] if row[j] > result else result  # no branch, which would guess wrong
        return result
    a, b = load(row, end), load(row, end + 4)
    for j in range(0, end, 8):
        a, b = larger(load(row, j), a), larger(load(row, j + 4), b)
    return largest(larger(a, b))


@part
def place_of_most(row: Floats) -> int:
    """The first place of the largest number of a row; some place if there is NaN."""
    limit, place = most(row), 0
    while row[place] < limit:
        place += 1
    return place


@part
def multiply(matrix: Floats, y: Floats, out: Floats) -> None:
    """out = M y by the lower triangle of M: an entry serves its mirror image too."""
    whole, zeros = y.size - y.size % 4, spread(0.0)
    for i in range(0, whole, 4):
        row0, row1, row2, row3 = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        f0, f1, f2, f3 = spread(y[i]), spread(y[i + 1]), spread(y[i + 2]), spread(y[i + 3])
        sum0 = sum1 = sum2 = sum3 = zeros
        for j in range(0, i, 4):
            at, gained = load(y, j), load(out, j)
            m0, m1, m2, m3 = load(row0, j), load(row1, j), load(row2, j), load(row3, j)
            sum0, sum1 = multiply_add(m0, at, sum0), multiply_add(m1, at, sum1)
            sum2, sum3 = multiply_add(m2, at, sum2), multiply_add(m3, at, sum3)
            gained = multiply_add(m0, f0, multiply_add(m1, f1, gained))
            store(out, j, multiply_add(m2, f2, multiply_add(m3, f3, gained)))
        # On the diagonal, an entry below it serves its mirror image, and one on it does not.
        at, m0, m1, m2, m3 = load(y, i), load(row0, i), load(row1, i), load(row2, i), load(row3, i)
        sum1 = multiply_add(first(1, m1, zeros), at, sum1)
        sum2 = multiply_add(first(2, m2, zeros), at, sum2)
        sum3 = multiply_add(first(3, m3, zeros), at, sum3)
        gained = multiply_add(first(1, m0, zeros), f0, totals(sum0, sum1, sum2, sum3))
        gained = multiply_add(first(2, m1, zeros), f1, gained)
        store(out, i, multiply_add(first(3, m2, zeros), f2, multiply_add(m3, f3, gained)))
    for i in range(whole, y.size):
        row, factor, summed = matrix[i], spread(y[i]), zeros
        for j in range(0, whole, 4):
            m = load(row, j)
            summed = multiply_add(m, load(y, j), summed)
            store(out, j, multiply_add(m, factor, load(out, j)))
        out[i] = total(summed) + row[i] * y[i]
        for j in range(whole, i):
            out[i] += row[j] * y[j]
            out[j] += row[j] * y[i]


@part
def move_squares(matrices: Floats, y: Floats, w: Floats, share: float) -> None:
    """B += y y' and P -= share w w', of which each row of `matrices` has a part."""
    dim, short = y.size, 4 <= y.size < LONG
    for i in range(dim + 1):
        row, loss, gain = matrices[i], -share * w[max(i - 1, 0)], y[min(i, dim - 1)]
        if short:
            move_row(row, i, loss, w, gain, y)
            continue
        before, after, rest = row[:i], row[i:], y[i:]
        for j in range(before.size):
            before[j] += loss * w[j]
        for j in range(after.size):
            after[j] += gain * rest[j]


@part
def move_row(row: Floats, n: int, loss: float, w: Floats, gain: float, y: Floats) -> None:
    """Add loss w to the first n numbers of a row, and gain y to the others.

    The last four overlap with those before: they are computed from what was there.
    """
    end = row.size - 4
    losses, gains, last = spread(loss), spread(gain), load(row, end)
    for j in range(0, end, 4):
        now = load(row, j)
        less, more = multiply_add(losses, load(w, j), now), multiply_add(gains, load(y, j), now)
        store(row, j, first(n - j, less, more))
    less, more = multiply_add(losses, load(w, end), last), multiply_add(gains, load(y, end), last)
    store(row, end, first(n - end, less, more))


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
