"""Pointers for kernels that are not compiled, as arrays; `pointers.pxd` is for compiled ones."""

from keyhole.core.kernels.types import Floats


def start_of(numbers: Floats) -> Floats:
    """Return the array itself, in place of a pointer to its first number."""
    return numbers


def row_of(rows: Floats, i: int) -> Floats:
    """Return the numbers from a row of a matrix on, in place of a pointer to its first number.

    Parameters
    ----------
    rows : array of shape (n, d)
        The matrix.
    i : int
        Index of the row.
    """
    numbers: Floats = rows.reshape(-1)[i * rows.shape[1] :]
    return numbers


def after(numbers: Floats, n: int) -> Floats:
    """Return all but the first n numbers, in place of a pointer to the next one.

    Parameters
    ----------
    numbers : array of shape (m,)
        The numbers.
    n : int
        Number of entries to skip.
    """
    return numbers[n:]
