"""Moments of rows with missing entries are sums: order, parts and merging do not matter."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from keyhole.core.observers.moments import Moments

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


@st.composite
def rows(draw: st.DrawFn) -> Array:
    """Rows of any share of missing entries, about any offset, at any scale."""
    n, dim = draw(st.integers(0, 40)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 10.0 ** draw(st.integers(-20, 20))
    made: Array = scale * (rng.standard_normal((n, dim)) + draw(st.sampled_from([0.0, 3.0, 1e4])))
    made[rng.random((n, dim)) < draw(st.sampled_from([0.0, 0.3, 0.9]))] = np.nan
    return made


def moments_of(some: Array) -> Moments:
    made = Moments.empty(some.shape[1])
    made.add(some)
    return made


def assert_same(a: Moments, b: Moments, some: Array) -> None:
    """Assert that two sums of the same rows agree.

    Sums are of distances from an origin, the first value seen, so of at most twice the range R of
    the rows: n additions and a change of the origin round a product by less than 16 n eps R^2, and
    the mean, of offset and sum, by n eps R and eps times its size.
    """
    np.testing.assert_array_equal(a.pairs, b.pairs)
    seen = some[~np.isnan(some)]
    spread = float(np.ptp(seen)) if seen.size else 0.0
    # Values themselves are rounded when they are counted from an origin: eps times their size.
    size = float(np.abs(seen).max(initial=0.0))
    rounding = 16 * (1 + len(some)) * EPS
    off = rounding * (spread + EPS * size)
    np.testing.assert_allclose(a.mean, b.mean, rtol=0, atol=off + 4 * EPS * size)
    np.testing.assert_allclose(
        a.covariance, b.covariance, rtol=0, atol=off * spread + 4 * EPS * size * spread
    )


@settings(max_examples=60, deadline=None)
@given(rows(), st.integers(0, 40), st.integers(0, 40))
def test_merged_moments_are_those_of_all_rows(some: Array, cut: int, shared: int) -> None:
    """From nothing, and from a base that both have seen."""
    whole = moments_of(some)
    merged = moments_of(some[:cut])
    merged.merge(moments_of(some[cut:]), Moments.empty(some.shape[1]))
    assert_same(merged, whole, some)
    shared = min(shared, cut)
    base, one = moments_of(some[:shared]), moments_of(some[:cut])
    other = base.copy()
    other.add(some[cut:])
    one.merge(other, base)
    assert_same(one, whole, some)


@settings(max_examples=60, deadline=None)
@given(rows(), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_the_order_of_rows_and_their_batches_do_not_matter(
    some: Array, cut: int, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(some))
    parts = moments_of(some[order[:cut]])
    for row in some[order[cut:]]:
        parts.add(row[None])
    assert_same(parts, moments_of(some), some)
    for j in range(some.shape[1]):  # by NumPy, from the rows themselves
        own = some[~np.isnan(some[:, j]), j]
        np.testing.assert_allclose(parts.mean[j], own.mean() if own.size else 0.0, rtol=1e-12,
                                   atol=1e-12 * np.abs(own).max(initial=0.0))  # fmt: skip
