"""Draws of the rounds of a normal world: normals, and their products with a few fixed matrices.

BLAS is made for larger products. With a few columns these kernels are up to twice as fast, nothing
returns to Python in between, and no digit depends on the BLAS library or its number of threads.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy as np

from keyhole.core.kernels.normals import Bits
from keyhole.core.kernels.types import Floats

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.normals import draw_normals
else:
    from keyhole.core.kernels.normals import draw_normals

# Rows that are drawn at a time: the products are computed while the normals are in a core's own
# cache, where the products, for each arm, have to fit too.
PIECE = cython.declare(cython.Py_ssize_t, 64)
FEWEST = cython.declare(cython.Py_ssize_t, 16)
FITS = cython.declare(cython.Py_ssize_t, 2**13)


@cython.final
@cython.cclass
class Panels:
    """A matrix stored for products: in panels of eight columns, or as its diagonal.

    The last panel overlaps with the one before; a matrix of fewer than eight columns is padded with
    zeros.

    Parameters
    ----------
    matrix : array of shape (n_rows, n_columns)
        The matrix, which is copied.
    """

    n_rows: cython.Py_ssize_t
    n_columns: cython.Py_ssize_t
    cells: cython.double[:, :, ::1]  # (panels, n_rows, 8)
    diagonal: cython.double[::1]
    is_diagonal: cython.bint  # as roots of simple covariances are: a fifth less time in all

    def __init__(self, matrix: Floats) -> None:
        self.n_rows, self.n_columns = matrix.shape
        starts = np.arange(0, self.n_columns, 8).clip(max=max(self.n_columns - 8, 0))
        cells = np.zeros((len(starts), self.n_rows, 8))
        for panel, start in zip(cells, starts.tolist(), strict=True):
            panel[:, : self.n_columns] = matrix[:, start : start + 8]
        self.cells, self.diagonal = cells, np.diagonal(matrix).copy()
        self.is_diagonal = self.n_rows == self.n_columns and np.array_equal(
            matrix, np.diag(np.diagonal(matrix))
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def multiply(
        self,
        rows: cython.double[::1],
        first: cython.Py_ssize_t,
        n: cython.Py_ssize_t,
        out: cython.double[::1],
        into: cython.Py_ssize_t,
    ) -> cython.void:
        """Write n rows times the matrix.

        Every column is summed in the same order: equal columns give bitwise equal numbers.

        Parameters
        ----------
        rows : array of shape (m * n_rows,)
            Rows, flat.
        first, n : int
            Index of the first row to multiply, and the number of rows.
        out : array of shape (l * n_columns,)
            Array for the products, flat.
        into : int
            Index of the first row of `out` to write.
        """
        t: cython.Py_ssize_t
        j: cython.Py_ssize_t
        if self.is_diagonal:
            for t in range(n):
                for j in range(self.n_rows):
                    out[(into + t) * self.n_rows + j] = (
                        rows[(first + t) * self.n_rows + j] * self.diagonal[j]
                    )
        else:
            for j in range(self.cells.shape[0]):
                self.multiply_panel(j, rows, first, n, out, into)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def multiply_panel(
        self,
        panel: cython.Py_ssize_t,
        rows: cython.double[::1],
        first: cython.Py_ssize_t,
        n: cython.Py_ssize_t,
        out: cython.double[::1],
        into: cython.Py_ssize_t,
    ) -> cython.void:
        """Write the columns of a panel, for four rows at a time, with sums in registers.

        If fewer than four rows are left, the last one is repeated.

        Parameters
        ----------
        panel : int
            Index of the panel.
        rows, first, n, out, into
            As in `multiply`.
        """
        rank: cython.Py_ssize_t = self.n_rows
        width: cython.Py_ssize_t = self.n_columns
        start: cython.Py_ssize_t = max(min(8 * panel, width - 8), 0)
        sum0 = cython.declare(cython.double[8])
        sum1 = cython.declare(cython.double[8])
        sum2 = cython.declare(cython.double[8])
        sum3 = cython.declare(cython.double[8])
        t: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for t in range(0, n, 4):
            a: cython.Py_ssize_t = (first + t) * rank
            b: cython.Py_ssize_t = (first + min(t + 1, n - 1)) * rank
            c: cython.Py_ssize_t = (first + min(t + 2, n - 1)) * rank
            d: cython.Py_ssize_t = (first + min(t + 3, n - 1)) * rank
            for j in range(8):
                sum0[j] = sum1[j] = sum2[j] = sum3[j] = 0.0
            for i in range(rank):
                for j in range(8):
                    sum0[j] += rows[a + i] * self.cells[panel, i, j]
                    sum1[j] += rows[b + i] * self.cells[panel, i, j]
                    sum2[j] += rows[c + i] * self.cells[panel, i, j]
                    sum3[j] += rows[d + i] * self.cells[panel, i, j]
            a = (into + t) * width + start
            b = (into + min(t + 1, n - 1)) * width + start
            c = (into + min(t + 2, n - 1)) * width + start
            d = (into + min(t + 3, n - 1)) * width + start
            if width >= 8:
                for j in range(8):
                    out[a + j] = sum0[j]
                for j in range(8):
                    out[b + j] = sum1[j]
                for j in range(8):
                    out[c + j] = sum2[j]
                for j in range(8):
                    out[d + j] = sum3[j]
            else:
                for j in range(width):
                    out[a + j] = sum0[j]
                    out[b + j] = sum1[j]
                    out[c + j] = sum2[j]
                    out[d + j] = sum3[j]


class NormalModel:
    """Parameters of the distribution of the rounds of a normal world.

    Parameters
    ----------
    observation : array of shape (d, d)
        Root of the covariance of y.
    eta : array of shape (n_arms, d)
        Parameters of the best linear prediction.
    unseen : array of shape (k, n_arms) or (1, n_arms)
        k normals times this matrix are x'mu - y'eta; or, with a context for each arm, the scales of
        x'mu - y'eta.
    reward_scale : float
        Scale of the noise of rewards.
    """

    def __init__(
        self, *, observation: Floats, eta: Floats, unseen: Floats, reward_scale: float
    ) -> None:
        self.observation, self.eta, self.unseen = observation, eta, unseen
        self.reward_scale = reward_scale
        self.panels = tuple(Panels(matrix) for matrix in (observation, eta.T, unseen))

    def __reduce__(self) -> tuple[Any, ...]:
        return _normal_model, (self.observation, self.eta, self.unseen, self.reward_scale)


def _normal_model(
    observation: Floats, eta: Floats, unseen: Floats, reward_scale: float
) -> NormalModel:
    """Return a model from a pickle or a copy; the panels are recomputed."""
    return NormalModel(observation=observation, eta=eta, unseen=unseen, reward_scale=reward_scale)


def draw_rounds(
    context: Bits,
    hidden: Bits,
    model: NormalModel,
    y: Floats,
    values: Floats,
    latent: Floats,
    rewards: Floats,
) -> None:
    """Draw y, its values y'eta, and then x'mu given y and the rewards.

    Parameters
    ----------
    context, hidden : array of shape (4,)
        States of the streams of y, and of x'mu given y.
    model : NormalModel
        Distribution of the rounds.
    y : array of shape (T, 1 or n_arms, d)
        Array for the observations, one for all arms or one for each.
    values, latent : array of shape (T, n_arms)
        Arrays for y'eta and x'mu.
    rewards : array of shape (T, n_arms)
        The noise of rewards, of scale 1; afterwards the rewards.
    """
    draw = draw_shared if y.shape[1] == 1 else draw_own
    flat = (array.reshape(-1) for array in (y, values, latent, rewards))
    draw(context, hidden, model, len(y), *flat)


def draw_shared(
    context: cython.ulonglong[::1],
    hidden: cython.ulonglong[::1],
    model: NormalModel,
    rounds: cython.Py_ssize_t,
    y: cython.double[::1],
    values: cython.double[::1],
    latent: cython.double[::1],
    rewards: cython.double[::1],
) -> None:
    """Draw rounds with one y for all arms.

    Parameters
    ----------
    context, hidden : array of shape (4,)
        States of the streams of y, and of x'mu given y.
    model : NormalModel
        Distribution of the rounds.
    rounds : int
        Number of rounds, T.
    y : array of shape (T * d,)
        Array for the observations.
    values, latent : array of shape (T * n_arms,)
        Arrays for y'eta and x'mu.
    rewards : array of shape (T * n_arms,)
        The noise of rewards, of scale 1; afterwards the rewards.
    """
    root: Panels
    eta: Panels
    unseen: Panels
    root, eta, unseen = model.panels
    noise_scale: cython.double = model.reward_scale
    piece: cython.Py_ssize_t = max(FEWEST, min(PIECE, FITS // eta.n_columns))
    workspace: cython.double[::1] = np.empty(piece * max(root.n_rows, unseen.n_rows))
    low: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t
    with cython.nogil:
        while low < rounds:
            n = min(piece, rounds - low)
            draw_normals(context, workspace, n * root.n_rows)
            root.multiply(workspace, 0, n, y, low)
            eta.multiply(y, low, n, values, low)
            draw_normals(hidden, workspace, n * unseen.n_rows)
            unseen.multiply(workspace, 0, n, latent, low)
            add_up(values, latent, rewards, noise_scale, low * eta.n_columns, n * eta.n_columns)
            low += n


def draw_own(
    context: cython.ulonglong[::1],
    hidden: cython.ulonglong[::1],
    model: NormalModel,
    rounds: cython.Py_ssize_t,
    y: cython.double[::1],
    values: cython.double[::1],
    latent: cython.double[::1],
    rewards: cython.double[::1],
) -> None:
    """Draw rounds with a separate y for every arm.

    Parameters
    ----------
    context, hidden : array of shape (4,)
        States of the streams of y, and of x'mu given y.
    model : NormalModel
        Distribution of the rounds.
    rounds : int
        Number of rounds, T.
    y : array of shape (T * n_arms * d,)
        Array for the observations.
    values, latent : array of shape (T * n_arms,)
        Arrays for y'eta and x'mu.
    rewards : array of shape (T * n_arms,)
        The noise of rewards, of scale 1; afterwards the rewards.
    """
    root: Panels = model.panels[0]
    eta: cython.double[:, ::1] = np.array(model.eta)  # a read-only array has no such view
    scale: cython.double[:, ::1] = np.array(model.unseen)
    noise_scale: cython.double = model.reward_scale
    arms: cython.Py_ssize_t = eta.shape[0]
    dim: cython.Py_ssize_t = eta.shape[1]
    piece: cython.Py_ssize_t = max(1, PIECE // arms)
    workspace: cython.double[::1] = np.empty(piece * arms * dim)
    low: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t
    t: cython.Py_ssize_t
    k: cython.Py_ssize_t
    j: cython.Py_ssize_t
    row: cython.Py_ssize_t
    total: cython.double
    with cython.nogil:
        while low < rounds:
            n = min(piece, rounds - low)
            draw_normals(context, workspace, n * arms * dim)
            root.multiply(workspace, 0, n * arms, y, low * arms)
            draw_normals(hidden, workspace, n * arms)
            for t in range(n):
                for k in range(arms):
                    row = (low + t) * arms + k
                    total = 0.0
                    for j in range(dim):
                        total += y[row * dim + j] * eta[k, j]
                    values[row] = total
                    latent[row] = workspace[t * arms + k] * scale[0, k]
            add_up(values, latent, rewards, noise_scale, low * arms, n * arms)
            low += n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_up(
    values: cython.double[::1],
    latent: cython.double[::1],
    rewards: cython.double[::1],
    noise_scale: cython.double,
    start: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
) -> cython.void:
    """Set latent to x'mu and rewards to x'mu plus noise.

    Parameters
    ----------
    values : array
        y'eta.
    latent : array
        x'mu - y'eta; afterwards x'mu.
    rewards : array
        Noise of scale 1; afterwards the rewards.
    noise_scale : float
        Scale of the noise.
    start, n : int
        First index, and the number of entries.
    """
    k: cython.Py_ssize_t
    for k in range(start, start + n):
        latent[k] += values[k]
        rewards[k] = latent[k] + noise_scale * rewards[k]


def multiply_rows(rows: Floats, matrix: Floats, out: Floats) -> None:
    """Write rows times a matrix into `out`, with the kernel that draws rounds.

    Parameters
    ----------
    rows : array of shape (n, n_rows)
        The rows.
    matrix : array of shape (n_rows, n_columns)
        The matrix.
    out : array of shape (n, n_columns)
        Array for the products.
    """
    Panels(matrix).multiply(rows.reshape(-1), 0, len(rows), out.reshape(-1), 0)
