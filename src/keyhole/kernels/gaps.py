"""Sums over pairs of entries that are seen together, and the prediction of those that are not."""

import numpy as np

from keyhole.kernels.jit import kernel
from keyhole.kernels.types import Floats, Ints


@kernel
def add_rows(pairs: Floats, total: Floats, product: Floats, origin: Floats, rows: Floats) -> None:
    """Add rows, NaN where an entry is not seen: (d, d) sums over the rows that have both entries.

    pairs: how many; total[j, k]: of entry j; product: of entry j times entry k. Entries are counted
    from the first value that was seen of each, their origin: far from zero sums would cancel.
    """
    for t in range(rows.shape[0]):
        row = rows[t]
        for j in range(row.size):
            if pairs[j, j] == 0.0 and not np.isnan(row[j]):
                origin[j] = row[j]
        for j in range(row.size):
            if not np.isnan(row[j]):
                for k in range(row.size):
                    if not np.isnan(row[k]):
                        pairs[j, k] += 1.0
                        total[j, k] += row[j] - origin[j]
                        product[j, k] += (row[j] - origin[j]) * (row[k] - origin[k])


@kernel
def pair_covariance(pairs: Floats, total: Floats, product: Floats, j: int, k: int) -> float:
    """The covariance of two entries over the rows that have both; 0 before there are two."""
    n = pairs[j, k]
    if n < 2.0:
        return 0.0
    spread: float = (product[j, k] - total[j, k] * total[k, j] / n) / n
    return spread


@kernel
def fill_rows(pairs: Floats, total: Floats, product: Floats, origin: Floats, rows: Floats) -> None:
    """Put the best linear predictions from the seen entries of each row in place of its NaN.

    Rows with the same missing entries share the one costly step, an eigendecomposition.
    """
    n, dim = rows.shape
    done, same = np.zeros(n, np.bool_), np.empty(n, np.int64)
    for t in range(n):
        if done[t]:
            continue
        n_same = 0
        for other in range(t, n):
            alike = not done[other]
            for j in range(dim):
                alike = alike and np.isnan(rows[t, j]) == np.isnan(rows[other, j])
            if alike:
                same[n_same] = other
                n_same += 1
                done[other] = True
        fill_pattern(pairs, total, product, origin, rows, same[:n_same])


@kernel
def fill_pattern(
    pairs: Floats, total: Floats, product: Floats, origin: Floats, rows: Floats, same: Ints
) -> None:
    """Fill the rows of the places `same`, which have the same missing entries.

    mean_m + C_ms (C_ss + ridge I)^-1 z_s in standard units, with the means, standard deviations
    and correlations C of the sums. Of n complete rows the ridge is 1/n: a prior worth one row, of
    entries that know nothing of each other. Pairs that were seen in different rows need not fit
    together: C may then have eigenvalues below zero, and all of them are noise up to about
    sqrt(seen entries / rows of a pair), which is added, by how many rows have gaps. A prediction
    that would explain more than all of an entry's variance is scaled down to that.

    An entry of which nothing was ever seen stays NaN, and one that never varied tells nothing.
    """
    dim, first = rows.shape[1], same[0]
    seen, gaps = np.empty(dim, np.int64), np.empty(dim, np.int64)
    n_seen, n_gaps = 0, 0
    for j in range(dim):
        if np.isnan(rows[first, j]):
            gaps[n_gaps] = j
            n_gaps += 1
        elif pair_covariance(pairs, total, product, j, j) > 0.0:
            seen[n_seen] = j
            n_seen += 1
    if n_gaps == 0:
        return
    scale = np.empty(n_seen)
    for a in range(n_seen):
        scale[a] = np.sqrt(pair_covariance(pairs, total, product, seen[a], seen[a]))
    weights, vectors = directions(pairs, total, product, seen[:n_seen], scale)
    shared, cross, gain = np.empty(n_seen), np.empty(n_seen), np.empty(n_seen)
    for m in range(n_gaps):
        j = gaps[m]
        if pairs[j, j] == 0.0:
            continue
        own = np.sqrt(max(pair_covariance(pairs, total, product, j, j), 0.0))
        explained = 0.0
        for a in range(n_seen):
            covariance = pair_covariance(pairs, total, product, j, seen[a])
            shared[a] = covariance / (own * scale[a]) if own > 0.0 else 0.0
        for k in range(n_seen):
            cross[k] = 0.0
            for a in range(n_seen):
                cross[k] += shared[a] * vectors[a, k]
            explained += cross[k] * cross[k] / weights[k]
        # No entry can be explained by more than all of its variance.
        factor = own / max(explained, 1.0)
        for a in range(n_seen):
            gain[a] = 0.0
            for k in range(n_seen):
                gain[a] += vectors[a, k] * cross[k] / weights[k]
            gain[a] *= factor / scale[a]
        for t in same:
            guess = origin[j] + total[j, j] / pairs[j, j]
            for a in range(n_seen):
                i = seen[a]
                guess += gain[a] * (rows[t, i] - origin[i] - total[i, i] / pairs[i, i])
            rows[t, j] = guess


@kernel
def directions(
    pairs: Floats, total: Floats, product: Floats, seen: Ints, scale: Floats
) -> tuple[Floats, Floats]:
    """The eigenvalues of the correlations of what is seen, with their ridge, and eigenvectors."""
    n = seen.size
    if n == 0:
        return np.empty(0), np.empty((0, 0))
    correlation, rows, fewest = np.empty((n, n)), 0.0, np.inf
    for a in range(n):
        for b in range(n):
            together = pair_covariance(pairs, total, product, seen[a], seen[b])
            correlation[a, b] = together / (scale[a] * scale[b])
            rows = max(rows, pairs[seen[a], seen[b]])
            fewest = min(fewest, pairs[seen[a], seen[b]])
    values, vectors = np.linalg.eigh(correlation)
    fewest = max(fewest, 1.0)
    ridge = 1.0 / rows + 2.0 * max(-values[0], 0.0)
    ridge += (1.0 - fewest / rows) * np.sqrt(n / fewest)
    return np.maximum(values, 0.0) + ridge, vectors


@kernel
def fill_rounds(
    pairs: Floats, total: Floats, product: Floats, origin: Floats, rounds: Floats
) -> None:
    """Fill (T, n, d) round by round, each from all rows of the rounds before it."""
    for t in range(rounds.shape[0]):
        rows = rounds[t].copy()
        fill_rows(pairs, total, product, origin, rounds[t])
        add_rows(pairs, total, product, origin, rows)


@kernel
def sample_rows(values: Floats, seen: Ints, stride: Ints, rows: Floats) -> None:
    """Keep every stride-th value of each entry, (size, d), skipping NaN; size is even.

    When there is no room left, every second one goes, and the stride doubles: the sample is spread
    evenly over all that was seen. seen: (d,) how many values there were of each entry.
    """
    size = values.shape[0]
    for t in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if np.isnan(rows[t, j]):
                continue
            if seen[j] % stride[j] == 0:
                place = seen[j] // stride[j]
                if place == size:
                    for k in range(size // 2):
                        values[k, j] = values[2 * k, j]
                    stride[j] *= 2
                    place = size // 2
                values[place, j] = rows[t, j]
            seen[j] += 1
