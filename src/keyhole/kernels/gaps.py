"""Sums over pairs of entries that are seen together, and the prediction of those that are not."""

import numpy as np

from keyhole.kernels.algebra import dot, factorize
from keyhole.kernels.jit import kernel
from keyhole.kernels.types import Floats


@kernel
def add_rows(pairs: Floats, total: Floats, product: Floats, rows: Floats) -> None:
    """Add rows, NaN where an entry is not seen: (d, d) sums over the rows that have both entries.

    pairs: how many; total[j, k]: of entry j; product: of entry j times entry k.
    """
    for t in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if not np.isnan(rows[t, j]):
                for k in range(rows.shape[1]):
                    if not np.isnan(rows[t, k]):
                        pairs[j, k] += 1.0
                        total[j, k] += rows[t, j]
                        product[j, k] += rows[t, j] * rows[t, k]


@kernel
def covariance_of(pairs: Floats, total: Floats, product: Floats, j: int, k: int) -> float:
    """The covariance of two entries over the rows that have both; 0 before there are two."""
    n = pairs[j, k]
    if n < 2.0:
        return 0.0
    spread: float = (product[j, k] - total[j, k] * total[k, j] / n) / n
    return spread


@kernel
def fill_row(pairs: Floats, total: Floats, product: Floats, row: Floats) -> None:
    """Put the best linear prediction from the seen entries of a row in place of its NaN.

    mean_m + S_ms (S_ss + diag(S_ss) / n)^-1 (y_s - mean_s), with the mean and covariance of the
    sums. The part with 1/n is a prior worth one row, of entries that know nothing of each other:
    it vanishes as rows come, and makes a few rows tell little. An entry of which nothing was ever
    seen is 0, and one that never varied says nothing about others.
    """
    dim = row.size
    seen, gaps = np.empty(dim, np.int64), np.empty(dim, np.int64)
    n_seen, n_gaps, rows = 0, 0, 0.0
    for j in range(dim):
        if np.isnan(row[j]):
            gaps[n_gaps] = j
            n_gaps += 1
        elif covariance_of(pairs, total, product, j, j) > 0.0:
            seen[n_seen] = j
            n_seen += 1
            rows = max(rows, pairs[j, j])
    if n_gaps == 0:
        return
    known, root = np.empty((n_seen, n_seen)), np.zeros((n_seen, n_seen))
    surprise = np.empty(n_seen)
    for a in range(n_seen):
        surprise[a] = row[seen[a]] - total[seen[a], seen[a]] / pairs[seen[a], seen[a]]
        for b in range(a + 1):
            known[a, b] = covariance_of(pairs, total, product, seen[a], seen[b])
    if n_seen > 0:
        ridge = 1.0 / rows
        while not factorize(known, ridge, root):
            # Pairs that were seen in different rows need not fit together: less is then believed.
            ridge *= 4.0
        substitute(root, surprise)
    for m in range(n_gaps):
        j = gaps[m]
        row[j] = total[j, j] / pairs[j, j] if pairs[j, j] > 0.0 else 0.0
        for a in range(n_seen):
            row[j] += covariance_of(pairs, total, product, j, seen[a]) * surprise[a]


@kernel
def substitute(lower: Floats, x: Floats) -> None:
    """Replace x by the solution of lower lower' s = x."""
    n = x.size
    for i in range(n):
        x[i] = (x[i] - dot(lower[i, :i], x[:i])) / lower[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= lower[k, i] * x[k]
        x[i] /= lower[i, i]


@kernel
def fill_rounds(pairs: Floats, total: Floats, product: Floats, rounds: Floats) -> None:
    """Fill (T, n, d) round by round, each from all rows of the rounds before it."""
    for t in range(rounds.shape[0]):
        rows = rounds[t].copy()
        for i in range(rounds.shape[1]):
            fill_row(pairs, total, product, rounds[t, i])
        add_rows(pairs, total, product, rows)
