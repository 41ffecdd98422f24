"""Identities of the posterior's sums and caches, at any prior precision and any scale.

Two ways to the same sums B = prior I + sum y y' round each of their n additions relative to the
largest partial sum, S: they differ by at most n eps S in each entry, so by d n eps S in norm. The
caches follow: P = B^-1 moves by |P|^2 d n eps S. A rank-one update subtracts from a P that may be
as large as that of the prior, which adds up to d n eps / prior. Where P moves by so
much, mean = P b moves by that times sum |r y|. `SLACK` is for the constants.
"""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import keyhole as kh

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
SLACK = 16.0

# The second kind of dimension has pending updates, which are applied several at a time.
dims = st.one_of(st.integers(1, 6), st.integers(40, 43))
seeds = st.integers(0, 2**32 - 1)
# Scales of features, in powers of ten. Prior precisions are of the order of their squares, and may
# be from 1e-50 to 1e50.
powers = st.integers(-20, 20)


class Data(NamedTuple):
    """Rewards of some of two parameters, and the prior precision."""

    parameters: NDArray[np.int64]
    y: Array
    rewards: Array
    prior: float

    def part(self, which: Any) -> "Data":
        return Data(self.parameters[which], self.y[which], self.rewards[which], self.prior)

    def posterior(self) -> kh.Posterior:
        """Return a posterior that has learned these rewards one by one."""
        made = self.empty()
        for i, y, reward in zip(self.parameters, self.y, self.rewards, strict=True):
            made.learn(int(i), y, float(reward))
        return made

    def empty(self) -> kh.Posterior:
        return kh.Posterior(n_parameters=2, dim=self.y.shape[1], prior_precision=self.prior)


@st.composite
def data(draw: st.DrawFn) -> Data:
    """Rows whose features differ a hundredfold about any scale."""
    dim, n = draw(dims), draw(st.integers(0, 60))
    rng, scale = np.random.default_rng(draw(seeds)), 10.0 ** draw(powers)
    spread = scale * 10.0 ** rng.uniform(-1, 1, dim)
    rewards = 10.0 ** draw(st.integers(-20, 20)) * rng.standard_normal(n)
    prior = scale**2 * 10.0 ** draw(st.integers(-3, 3))
    return Data(rng.integers(0, 2, n), rng.standard_normal((n, dim)) * spread, rewards, prior)


def assert_same(a: kh.Posterior, b: kh.Posterior, *passed: Data) -> None:
    """Assert that two posteriors agree to the rounding of all rewards that passed through them."""
    np.testing.assert_array_equal(a.count, b.count)
    for i in range(a.n_parameters):
        own = [each.part(each.parameters == i) for each in passed]
        n = 1 + sum(len(each.y) for each in own)
        largest = a.prior_precision + sum(float((each.y**2).sum()) for each in own)
        pull = sum(float(np.abs(each.rewards) @ np.linalg.norm(each.y, axis=1)) for each in own)
        energy = sum(float(each.rewards @ each.rewards) for each in own)
        rounding = SLACK * n * a.dim * EPS
        np.testing.assert_allclose(a.precision[i], b.precision[i], rtol=0, atol=rounding * largest)
        np.testing.assert_allclose(a.moment[i], b.moment[i], rtol=0, atol=rounding * pull)
        np.testing.assert_allclose(a.squares[i], b.squares[i], rtol=0, atol=rounding * energy)
        size = 1.0 / np.linalg.eigvalsh(a.precision[i])[0]
        off = rounding * (largest * size**2 + 1.0 / a.prior_precision)
        np.testing.assert_allclose(a.covariance[i], b.covariance[i], rtol=0, atol=off)
        np.testing.assert_allclose(a.mean[i], b.mean[i], rtol=0, atol=2 * off * pull)


@settings(max_examples=60, deadline=None)
@given(data(), st.integers(0, 60))
def test_steps_batches_and_merges_agree(given_data: Data, cut: int) -> None:
    """One by one, all at once, and two halves merged, with what they have in common or without."""
    steps, batch = given_data.posterior(), given_data.empty()
    batch.learn_many(given_data.parameters, given_data.y, given_data.rewards)
    assert_same(steps, batch, given_data)
    first, second = given_data.part(slice(cut)), given_data.part(slice(cut, None))
    merged = first.posterior()
    merged.merge(second.posterior())
    assert_same(steps, merged, given_data)
    base, one = first.posterior(), first.posterior()
    other = base.copy()
    half = len(second.y) // 2
    one.learn_many(second.parameters[:half], second.y[:half], second.rewards[:half])
    other.learn_many(second.parameters[half:], second.y[half:], second.rewards[half:])
    one.merge(other, base=base)
    assert_same(steps, one, given_data, first)


@settings(max_examples=40, deadline=None)
@given(data(), seeds)
def test_the_order_of_rewards_does_not_matter(given_data: Data, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(given_data.y))
    assert_same(given_data.posterior(), given_data.part(order).posterior(), given_data)


@settings(max_examples=40, deadline=None)
@given(data(), seeds)
def test_other_units_are_those_that_were_always_there_and_back_again(
    given_data: Data, seed: int
) -> None:
    """Of M y in place of y, M lower triangular with a diagonal from 1/2 to 2."""
    dim = given_data.y.shape[1]
    rng = np.random.default_rng(seed)
    matrix = np.tril(rng.uniform(-1, 1, (dim, dim)), -1) / dim
    matrix += np.diag(2.0 ** rng.uniform(-1, 1, dim))
    converted, native = given_data.posterior(), given_data._replace(y=given_data.y @ matrix.T)
    converted.change_units(matrix)
    # What passed is at most |M|^2 times as large.
    size = float(np.linalg.norm(matrix, 2))
    passed = given_data._replace(y=given_data.y * size)
    assert_same(converted, native.posterior(), passed, passed)
    inverse = np.linalg.inv(matrix)
    converted.change_units(inverse)
    both = given_data._replace(y=given_data.y * size * float(np.linalg.norm(inverse, 2)))
    assert_same(converted, given_data.posterior(), both, both)


@settings(max_examples=40, deadline=None)
@given(data(), seeds)
def test_an_exchanged_row_is_as_if_it_had_been_learned(given_data: Data, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(given_data.y)
    which = rng.random(n) < 0.5
    new = np.where(which[:, None], given_data.y[rng.permutation(n)] * rng.uniform(-1, 1, (n, 1)),
                   given_data.y)  # fmt: skip
    exchanged, right = given_data.posterior(), given_data._replace(y=new)
    exchanged.exchange(
        given_data.parameters[which], given_data.y[which], new[which], given_data.rewards[which]
    )
    assert_same(exchanged, right.posterior(), given_data, right)


@settings(max_examples=40, deadline=None)
@given(data(), st.floats(-1e3, 1e3))
def test_moved_rewards_are_as_if_they_had_come_so_and_back_again(
    given_data: Data, share: float
) -> None:
    """Where the first entry of every row is 1; they are moved by a share of their own size."""
    y = given_data.y / np.abs(given_data.y).max(initial=1e-300)
    y[:, 0] = 1.0
    by = share * float(np.abs(given_data.rewards).max(initial=1.0))
    start = given_data._replace(y=y, prior=1.0)
    moved, native = start.posterior(), start._replace(rewards=start.rewards + by)
    moved.move_rewards(by)
    size = start._replace(rewards=np.abs(start.rewards) + abs(by))
    assert_same(moved, native.posterior(), size)
    moved.move_rewards(-by)
    assert_same(moved, start.posterior(), size, size)


@settings(max_examples=40, deadline=None)
@given(data(), st.integers(-10, 10), st.integers(-60, 60))
def test_powers_of_two_are_carried_through_to_the_bit(
    given_data: Data, features: int, rewards: int
) -> None:
    """Of y 2^k, prior 4^k and r 2^m the mean is 2^(m - k), P is 4^-k, the noise scale 2^m.

    No number but 0 is rounded otherwise, so nothing may depend on a size by itself.
    """
    k, m = 2.0**features, 2.0**rewards
    plain = given_data.posterior()
    scaled = Data(
        given_data.parameters, given_data.y * k, given_data.rewards * m, given_data.prior * k * k
    ).posterior()
    np.testing.assert_array_equal(scaled.precision, plain.precision * k * k)
    np.testing.assert_array_equal(scaled.moment, plain.moment * (m * k))
    np.testing.assert_array_equal(scaled.covariance, plain.covariance / (k * k))
    np.testing.assert_array_equal(scaled.mean, plain.mean * (m / k))
    if given_data.rewards.any():  # the noise scale is 1 before any reward
        np.testing.assert_array_equal(scaled.noise_scale(), plain.noise_scale() * m)


@settings(max_examples=40, deadline=None)
@given(data(), st.permutations(range(4)), st.integers(1, 4))
def test_parameters_that_come_and_go_leave_the_others_alone(
    given_data: Data, order: list[int], kept: int
) -> None:
    """To the bit, and so does what they learn afterwards."""
    learned, alone = given_data.posterior(), given_data.posterior()
    learned.extend(2)
    learned.keep(order[:kept])
    fresh = given_data.empty()
    for _ in range(2):
        for place, i in enumerate(order[:kept]):
            before, row = (alone, i) if i < 2 else (fresh, i - 2)
            for array, expected in zip(learned.state, before.state, strict=True):
                np.testing.assert_array_equal(array[place], expected[row])
            if len(given_data.y):
                y, reward = given_data.y[-1], float(given_data.rewards[-1])
                learned.learn(place, y, reward)
                before.learn(row, y, reward)
