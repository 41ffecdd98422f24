"""Rows as the posterior sees them: the compiled part beside NumPy."""

from typing import Any

import numpy as np
import pytest

from keyhole.core import Moments, kernels
from keyhole.core.observers.units import Sample

CROSSES = np.array([[0, 0], [0, 2], [1, 3]])
SCALE = (
    np.array([-1.0, -np.inf, -2.0, -1.5]),
    np.array([1.0, np.inf, 2.0, 1.5]),
    np.array([0.5, 0.0, 0.0, 0.25]),
    np.array([2.0, 1.0, 0.0, 4.0]),
)


def observer(fill: str | None = None, **given: Any) -> kernels.RowObserver:
    moments = Moments.empty(4) if fill in ("predict", "mean") else None
    snapshot = Moments.empty(4) if fill == "predict" else None
    settings = {"intercept": True, "scale": None, "sampled": None, "crosses": CROSSES, **given}
    return kernels.RowObserver(
        4,
        settings["intercept"],
        kernels.FILLS[fill],
        moments,
        snapshot,
        settings["scale"],
        settings["sampled"],
        settings["crosses"],
    )


def test_a_row_by_hand() -> None:
    """Clipped to 1, from 0.5, times 2: 1. NaN is 0, and so is what it is crossed with."""
    row = np.array([[3.0, 7.0, np.nan, 0.5]])
    found = observer(scale=SCALE).converted(row)
    assert found.tolist() == [[1.0, 1.0, 7.0, 0.0, 1.0, 1.0, 0.0, 7.0]]
    plain = observer(intercept=False).converted(row)
    assert plain.tolist() == [[3.0, 7.0, 0.0, 0.5, 9.0, 0.0, 3.5]]


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_are_those_of_numpy(intercept: bool) -> None:
    rows = 2.0 * np.random.default_rng(1).standard_normal((100, 4))
    low, high, origin, inverse = SCALE
    expected = (np.clip(rows, low, high) - origin) * inverse
    crossed = expected[:, CROSSES[:, 0]] * expected[:, CROSSES[:, 1]]
    constant = np.ones((100, int(intercept)))
    found = observer(scale=SCALE, intercept=intercept).converted(rows)
    np.testing.assert_allclose(found, np.hstack([constant, expected, crossed]), rtol=1e-14)


def test_crosses_of_columns_that_are_not_there_are_refused() -> None:
    for pair in ([0, 4], [-1, 0]):
        with pytest.raises(IndexError, match="from 0 to 3"):
            observer(crosses=np.array([pair]))


@pytest.mark.parametrize("fill", ["predict", "mean", "zero"])
def test_rounds_are_single_rows(fill: str) -> None:
    """Each is filled from those before it: sums, samples and designs are the same."""
    rng = np.random.default_rng(2)
    rounds = rng.standard_normal((300, 2, 4)) @ rng.standard_normal((4, 4))
    rounds[rng.random(rounds.shape) < 0.25] = np.nan
    rounds[:50, :, 3] = np.nan
    samples = [Sample.empty(4), Sample.empty(4)]
    one, other = (observer(fill, sampled=sample) for sample in samples)
    designs = []
    for rows in rounds:
        designs.append(one.converted(one.filled(rows)))
        one.see_rows(rows)
    np.testing.assert_array_equal(designs, other.see_rounds(rounds))
    for mine, theirs in zip(*samples, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert one.seen == other.seen


def test_what_was_never_seen_stays_missing_and_zero_is_zero() -> None:
    row = np.array([[1.0, np.nan, 2.0, np.nan]])
    for fill in ("predict", "mean"):
        assert np.isnan(observer(fill).filled(row)).tolist() == [[False, True, False, True]]
    assert observer("zero").filled(row).tolist() == [[1.0, 0.0, 2.0, 0.0]]
    assert np.isnan(observer(None).filled(row)).sum() == 2


def test_predictions_with_patterns_kept_are_those_made_anew() -> None:
    """More patterns than are kept, in turns; predictions follow from a snapshot of the sums."""
    rng = np.random.default_rng(3)
    dim = 10
    mix = rng.standard_normal((dim, dim))
    moments, snapshot = Moments.empty(dim), Moments.empty(dim)
    none = np.empty((0, 2), dtype=np.int64)
    rows = kernels.RowObserver(
        dim, False, kernels.FILLS["predict"], moments, snapshot, None, None, none
    )
    patterns = rng.random((400, dim)) < 0.4
    for t in range(1200):
        row = rng.standard_normal(dim) @ mix
        row[patterns[t % 400]] = np.nan
        expected = row[None].copy()
        snapshot.fill(expected)
        np.testing.assert_array_equal(rows.filled(row[None]), expected)
        rows.see_rows(row[None])
        assert moments.seen.max() < (1 + 1 / 16) * snapshot.seen.max() + 1
