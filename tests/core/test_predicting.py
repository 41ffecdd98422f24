"""Predictions of missing entries against their formula, whether or not correlations fit."""

import numpy as np
import pytest

from keyhole.core.observers.moments import Moments


def predicted(moments: Moments, row: np.ndarray) -> np.ndarray:
    """Return mean_m + C_ms (C_ss + ridge I)^-1 z_s of one row, by eigenvectors."""
    scale, mean = np.sqrt(np.diag(moments.covariance)), moments.mean
    missing = np.isnan(row)
    correlation = moments.covariance / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(correlation[np.ix_(~missing, ~missing)])
    # The smallest power of two that makes all positive; 2^-40 is rounding.
    lack = 2.0 ** max(np.floor(np.log2(-values[0])) + 1.0, -40.0) if values[0] < 0.0 else 0.0
    pairs = moments.pairs[np.ix_(~missing, ~missing)]
    ridge = 1.0 / pairs.max() + 2.0 * lack
    fewest = max(pairs.min(), 1.0)
    ridge += (1.0 - fewest / pairs.max()) * np.sqrt(len(pairs) / fewest)
    weights = values + ridge
    result = row.copy()
    for j in np.flatnonzero(missing):
        cross = correlation[j, ~missing] @ vectors
        gain = vectors @ (cross / weights) / max((cross**2 / weights).sum(), 1.0)
        result[j] = mean[j] + scale[j] * gain @ ((row - mean) / scale)[~missing]
    return result


@pytest.mark.parametrize(
    ("n", "share", "is_positive"),
    [(400, 0.0, True), (400, 0.1, True), (12, 0.5, False), (5, 0.0, False)],
)
def test_predictions_are_those_of_the_formula(n: int, share: float, is_positive: bool) -> None:
    """Whether all correlations fit together or, seen in different rows or too few, do not."""
    rng = np.random.default_rng(n)
    dim = 8
    rows = rng.standard_normal((n, dim)) @ rng.standard_normal((dim, dim)) + 3.0
    now = rows[:3].copy()
    rows[rng.random(rows.shape) < share] = np.nan
    moments = Moments.empty(dim)
    moments.add(rows)
    now[0, 2] = now[1, [0, 5]] = now[2, [0, 5]] = np.nan
    seen = ~np.isnan(now[0])
    spread = moments.covariance[np.ix_(seen, seen)]
    # A singular matrix has eigenvalues of about 0, which rounding may put on either side.
    assert (np.linalg.eigvalsh(spread)[0] > 1e-6) == is_positive
    expected = np.array([predicted(moments, row) for row in now])
    moments.fill(now)
    np.testing.assert_allclose(now, expected, rtol=1e-9, atol=1e-9)
