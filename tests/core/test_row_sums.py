"""Sums of rows by group: by hand, against NumPy, in any layout, and as posteriors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Floats, PairwiseSums, RowSums, Summing, add_sums, kernels

# Half of the distance from 1 to the next float64.
UNIT = 2.0**-53


def sums_of(groups: Any, rows: Floats, rewards: Floats, n_groups: int) -> Floats:
    width = kernels.padded(rows.shape[1] + 1)
    out = np.zeros((n_groups, width, width))
    kernels.sum_rows(np.asarray(groups, np.int64), rows, rewards, out)
    return out


def test_two_rows_by_hand() -> None:
    out = sums_of([1, 1, -1], np.array([[1.0, 2.0], [3.0, 0.5], [9.0, 9.0]]), np.ones(3) * 2, 2)
    assert not out[0].any()
    # Of (1, 2, 2) and (3, 0.5, 2); the third row is left out.
    assert out[1, :3, :3].tolist() == [[10.0, 3.5, 8.0], [0.0, 4.25, 5.0], [0.0, 0.0, 8.0]]
    assert not out[1, 3:].any()
    assert not out[1, :, 3:].any()


@pytest.mark.parametrize("dim", [1, 3, 7, 8, 20, 41])
@pytest.mark.parametrize("n_groups", [1, 4, 700])
def test_sums_are_numpys_in_any_layout(dim: int, n_groups: int) -> None:
    """An entry of n products, each rounded, is within n + 1 roundings of sum |u_i u_j|."""
    rng = np.random.default_rng(dim)
    n = 15_000  # more than one block, the last of them in part
    rows, rewards = rng.standard_normal((n, dim)), rng.standard_normal(n)
    groups = rng.integers(-1, n_groups, n)
    found = sums_of(groups, rows, rewards, n_groups)
    full = np.column_stack([rows, rewards])
    for i in rng.choice(n_groups, min(n_groups, 4), replace=False):
        own = full[groups == i]
        exact, size = np.triu(own.T @ own), np.triu(np.abs(own).T @ np.abs(own))
        assert (np.abs(found[i, : dim + 1, : dim + 1] - exact) <= 2 * (n + 1) * UNIT * size).all()
    columns = np.asfortranarray(rows)
    columns.flags.writeable = rewards.flags.writeable = False
    assert (sums_of(groups, columns, rewards, n_groups) == found).all()
    wide = np.repeat(rows, 2, axis=0)[::2]
    assert (sums_of(groups, wide, rewards, n_groups) == found).all()


def test_shapes_and_groups_are_checked() -> None:
    rows, rewards = np.ones((2, 3)), np.ones(2)
    with pytest.raises(IndexError, match="below 1"):
        sums_of([0, 1], rows, rewards, 1)
    with pytest.raises(ValueError, match="shapes of groups"):
        sums_of([0], rows, rewards, 1)
    with pytest.raises(ValueError, match="shapes of groups"):
        kernels.sum_rows(np.zeros(2, np.int64), rows, rewards, np.zeros((1, 4, 4)))


def summed(groups: Any, rows: Floats, rewards: Floats, n_groups: int) -> RowSums:
    summing = Summing(n_groups, rows.shape[1])
    summing.add(np.asarray(groups, np.int64), rows, rewards)
    return summing.result()


def test_sums_add_up_over_different_groups() -> None:
    rng = np.random.default_rng(3)
    rows, rewards = rng.standard_normal((6, 2)), rng.standard_normal(6)
    one, other = (
        summed([0, 3, 3], rows[:3], rewards[:3], 5),
        summed([3, 1, -1], rows[3:], rewards[3:], 5),
    )
    both = one.plus(other)
    assert both.groups.tolist() == [0, 1, 3]
    assert both.counts.tolist() == [1.0, 1.0, 3.0]
    np.testing.assert_allclose(
        both.squares[2, :2, :2], np.triu(rows[1:4].T @ rows[1:4]), rtol=0, atol=1e-15
    )
    assert (both.squares[0] == one.squares[0]).all()


def test_groups_may_come_in_any_order() -> None:
    """Batch after batch, new ones before and after those that were there."""
    rng = np.random.default_rng(8)
    groups, rows, rewards = rng.integers(-1, 9, 200), rng.standard_normal((200, 2)), np.ones(200)
    batches = [np.flatnonzero(groups == k) for k in (5, 2, 8)] + [np.arange(200)]
    summing = Summing(9, 2)
    for at in batches:
        summing.add(groups[at], rows[at], rewards[at])
    found = summing.result()
    assert found.groups.tolist() == list(range(9))
    for k in range(9):
        own = rows[groups == k]
        times = 2 if k in (5, 2, 8) else 1
        assert found.counts[k] == times * len(own)
        np.testing.assert_allclose(
            found.squares[k, :2, :2], times * np.triu(own.T @ own), rtol=1e-13, atol=1e-13
        )


@pytest.mark.parametrize("depth", [1, 3, 64])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 100])
def test_any_number_of_sums_is_added_up(n: int, depth: int) -> None:
    total = PairwiseSums(1, depth)
    values = np.arange(1.0, n + 1)
    for value in values:
        total.add(summed([0], np.array([[np.sqrt(value)]]), np.zeros(1), 1))
        assert len(total._parts) <= depth
    found = total.result()
    if n == 0:
        assert found.groups.size == 0
        return
    assert found.counts.tolist() == [n]
    assert found.squares[0, 0, 0] == pytest.approx(values.sum(), rel=1e-14)


def test_rounding_grows_with_the_logarithm() -> None:
    """2^16 times 0.1^2 in pairs is off by at most 16 roundings; one after another by far more."""
    row, n = np.array([[0.1]]), 2**16
    one = summed([0], row, np.zeros(1), 1)
    total, running = PairwiseSums(1), 0.0
    for _ in range(n):
        total.add(one)
        running += float(one.squares[0, 0, 0])
    exact = n * float(one.squares[0, 0, 0])  # a power of two: no rounding
    assert abs(total.result().squares[0, 0, 0] - exact) <= 16 * UNIT * exact
    assert abs(running - exact) > 16 * UNIT * exact


@pytest.mark.parametrize("sharing", ["per-arm", "shared", "hybrid"])
def test_a_posterior_of_sums_is_that_of_the_rows(sharing: Any) -> None:
    """B is within rounding; mean and P within rounding times the condition of B."""
    rng = np.random.default_rng(5)
    n, dim = 500, 3
    rows, rewards, arms = (
        rng.standard_normal((n, dim)),
        rng.standard_normal(n),
        rng.integers(0, 4, n),
    )
    learner = kh.Learner(kh.ThompsonSampling(sharing=sharing))
    state, twin = learner.start(4, dim), learner.start(4, dim)
    twin.add(arms.tolist(), rows, rows, rewards, "")
    one, four = sharing == "shared", sharing != "shared"
    add_sums(state, summed(np.zeros(n) if one else arms, rows, rewards, 4 if four else 1))
    found, wanted = state.posterior, twin.posterior
    assert found.count.tolist() == wanted.count.tolist()
    tolerance = 2 * (n + 1) * UNIT
    for name in ("precision", "moment", "squares", "weight"):
        size = np.abs(getattr(wanted, name)).max() + n
        assert np.abs(getattr(found, name) - getattr(wanted, name)).max() <= tolerance * size
    condition = np.linalg.cond(wanted.precision).max()
    for name in ("mean", "covariance"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(wanted, name), rtol=0, atol=tolerance * condition
        )
    np.testing.assert_allclose(found.state.residual, wanted.state.residual, rtol=1e-10)


def test_sums_that_cannot_be_are_refused() -> None:
    posterior = kh.Posterior(n_parameters=2, dim=1)
    good: dict[str, Any] = {
        "parameters": np.array([0]),
        "squares": np.ones((1, 1, 1)),
        "moment": np.ones((1, 1)),
        "count": np.ones(1),
        "of_rewards": np.ones(1),
    }
    for name, value in {
        "parameters": np.array([2]),
        "squares": np.ones((1, 2, 2)),
        "moment": np.full((1, 1), np.nan),
        "count": -np.ones(1),
        "of_rewards": np.full(1, np.inf),
    }.items():
        with pytest.raises(kh.InvalidValue, match=name):
            posterior.add_sums(**{**good, name: value})
    with pytest.raises(kh.InvalidValue, match="different"):
        posterior.add_sums(*(np.repeat(one, 2, axis=0) for one in good.values()))
    assert posterior.count.tolist() == [0, 0]
    posterior.add_sums(**good)
    assert posterior.mean.tolist() == [[pytest.approx(0.5)], [0.0]]
