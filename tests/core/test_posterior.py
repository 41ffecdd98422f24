"""The posterior is sums: hand values, identities, closed forms, and a million updates."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import keyhole as kh
from keyhole.core import kernels

EPS = float(np.finfo(np.float64).eps)
# As in kernels.core, where it is a number of C.
REFRESH_STEPS = 4096
Array = NDArray[np.float64]


def learned(
    y: Array, rewards: Array, *, prior: float = 1.0, dim: int | None = None
) -> kh.Posterior:
    posterior = kh.Posterior(n_parameters=1, dim=dim or y.shape[1], prior_precision=prior)
    for row, reward in zip(y, rewards, strict=True):
        posterior.learn(0, row, reward)
    return posterior


def learn_each(posterior: kh.Posterior, y: Array, rewards: Array) -> None:
    """Take a step for each reward of the first parameter, however many there are."""
    parameter_of, never = np.zeros(len(y), np.int64), np.zeros(posterior.n_parameters, np.bool_)
    posterior.core.learn(parameter_of, y, rewards, never)


def assert_same(a: kh.Posterior, b: kh.Posterior, *, digits: float = 1e-9) -> None:
    """The same sums to rounding, and the same caches as far as their conditioning allows."""
    np.testing.assert_array_equal(a.count, b.count)
    for name in ("precision", "moment", "squares", "covariance", "mean"):
        x, y = getattr(a, name), getattr(b, name)
        # Below the smallest normal number, float64 has fewer digits.
        least = digits * np.abs(y).max() + np.finfo(np.float64).tiny
        np.testing.assert_allclose(x, y, rtol=digits, atol=least, err_msg=name)


# -- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.1, 1.0, 10.0])
def test_one_reward_by_hand(prior: float) -> None:
    """B = prior I + (3,4)(3,4)', so P = (I - (3,4)(3,4)'/(prior + 25)) / prior."""
    posterior = learned(np.array([[3.0, 4.0]]), np.array([2.0]), prior=prior)
    covariance = (np.eye(2) - np.array([[9.0, 12.0], [12.0, 16.0]]) / (prior + 25)) / prior
    np.testing.assert_allclose(posterior.precision[0], prior * np.eye(2) + [[9, 12], [12, 16]])
    np.testing.assert_allclose(posterior.covariance[0], covariance, rtol=1e-13)
    np.testing.assert_allclose(posterior.mean[0], np.array([6.0, 8.0]) / (prior + 25), rtol=1e-13)
    assert posterior.moment[0].tolist() == [6.0, 8.0]
    assert posterior.squares[0] == 4.0
    assert posterior.count[0] == 1


def test_before_any_reward() -> None:
    posterior = kh.Posterior(n_parameters=2, dim=3, prior_precision=4.0)
    np.testing.assert_array_equal(posterior.covariance, np.broadcast_to(np.eye(3) / 4, (2, 3, 3)))
    np.testing.assert_array_equal(posterior.mean, np.zeros((2, 3)))
    np.testing.assert_array_equal(posterior.noise_scale(), [1.0, 1.0])


# -- identities -----------------------------------------------------------------------------------

rows = st.integers(1, 12)
entries = st.floats(-10, 10, allow_subnormal=False)


@st.composite
def data(draw: Any) -> tuple[Array, Array, float]:
    n, d = draw(rows), draw(st.integers(1, 6))
    y = draw(hnp.arrays(np.float64, (n, d), elements=entries))
    r = draw(hnp.arrays(np.float64, n, elements=entries))
    return y, r, draw(st.sampled_from([0.1, 1.0, 10.0]))


@settings(max_examples=150, deadline=None)
@given(data())
def test_it_is_ridge_regression(given_data: tuple[Array, Array, float]) -> None:
    y, rewards, prior = given_data
    posterior = learned(y, rewards, prior=prior)
    B = prior * np.eye(y.shape[1]) + y.T @ y
    scale = np.abs(posterior.covariance[0]).max()
    np.testing.assert_allclose(posterior.covariance[0], np.linalg.inv(B), atol=1e-9 * scale)
    fit = np.linalg.solve(B, y.T @ rewards)
    np.testing.assert_allclose(posterior.mean[0], fit, atol=1e-9 * (1 + np.abs(fit).max()))
    penalty = float(prior * fit @ fit)
    residual = ((rewards - y @ fit) ** 2).sum() + penalty
    np.testing.assert_allclose(posterior.state.residual[0], residual, atol=1e-7 * (1 + residual))
    assert posterior.state.penalty[0] == pytest.approx(penalty, abs=1e-7 * (1 + penalty))


@settings(max_examples=100, deadline=None)
@given(data(), st.randoms(use_true_random=False))
def test_order_batches_and_merging_do_not_matter(
    given_data: tuple[Array, Array, float], random: Any
) -> None:
    y, rewards, prior = given_data
    n, d = y.shape
    one_by_one = learned(y, rewards, prior=prior)

    order = list(range(n))
    random.shuffle(order)
    assert_same(learned(y[order], rewards[order], prior=prior), one_by_one)

    batch = kh.Posterior(n_parameters=1, dim=d, prior_precision=prior)
    batch.learn_many(np.zeros(n, np.int64), y, rewards)
    assert_same(batch, one_by_one)

    cut = random.randint(0, n)
    left = learned(y[:cut], rewards[:cut], prior=prior, dim=d)
    left.merge(learned(y[cut:], rewards[cut:], prior=prior, dim=d))
    assert_same(left, one_by_one)


def test_a_batch_goes_to_the_right_parameters() -> None:
    """Some parameters get more rewards than dimensions (products), some fewer (steps)."""
    rng = np.random.default_rng(0)
    parameter_of = np.array([0] * 7 + [2] * 2 + [1] * 4 + [0] * 3)
    y, rewards = rng.standard_normal((16, 4)), rng.standard_normal(16)
    batch = kh.Posterior(n_parameters=4, dim=4)
    single = kh.Posterior(n_parameters=4, dim=4)
    batch.learn_many(parameter_of, y, rewards)
    for i, row, reward in zip(parameter_of, y, rewards, strict=True):
        single.learn(int(i), row, reward)
    assert_same(batch, single)
    assert batch.count.tolist() == [10, 4, 2, 0]


def test_merging_from_a_common_base_counts_it_once() -> None:
    rng = np.random.default_rng(1)
    y, rewards = rng.standard_normal((30, 3)), rng.standard_normal(30)
    base = learned(y[:10], rewards[:10])
    a, b = base.copy(), base.copy()
    zeros = np.zeros(10, np.int64)
    a.learn_many(zeros, y[10:20], rewards[10:20])
    b.learn_many(zeros, y[20:], rewards[20:])
    twice = a.copy()
    twice.merge(b)
    assert twice.count[0] == 40
    a.merge(b, base=base)
    assert_same(a, learned(y, rewards))


def test_the_width_shrinks_and_its_bound_holds() -> None:
    """P only ever shrinks in the Loewner order, and the kept bound is above its eigenvalues."""
    rng = np.random.default_rng(2)
    posterior = kh.Posterior(n_parameters=1, dim=6, prior_precision=0.5)
    before = posterior.covariance[0].copy()
    for _ in range(300):
        posterior.learn(0, rng.standard_normal(6) * 3, 1.0)
        now = posterior.covariance[0]
        assert np.linalg.eigvalsh(before - now).min() > -1e-12
        assert np.linalg.eigvalsh(now).max() <= posterior.state.bound[0] * (1 + 1e-12)
        before = now.copy()
    # And it is worth something: within a factor of the dimension.
    assert posterior.state.bound[0] <= 6 * np.linalg.eigvalsh(before).max()


# -- numerics -------------------------------------------------------------------------------------


def exact_inverse(B: Array) -> Array:
    """The inverse in 60 digits, rounded once."""
    with mpmath.workdps(60):
        inverse = mpmath.matrix(B.tolist()) ** -1
        return np.array([[float(x) for x in row] for row in inverse.tolist()])


def error(posterior: kh.Posterior) -> float:
    """The largest error of a covariance entry, in units of the standard deviations it joins."""
    exact = exact_inverse(posterior.precision[0])
    scale = np.sqrt(np.diag(exact))
    return float(np.abs((posterior.covariance[0] - exact) / np.outer(scale, scale)).max())


def condition(B: Array) -> float:
    """The condition number of B with its scales taken out: B_ij / sqrt(B_ii B_jj)."""
    scale = np.sqrt(np.diag(B))
    return float(np.linalg.cond(B / np.outer(scale, scale)))


@pytest.mark.parametrize("mixing", ["independent", "correlated"])
def test_a_million_updates_with_scales_from_1e_minus_4_to_1e4(mixing: str) -> None:
    """The tolerance: a step rounds d products, each relative to the scales of its two features,
    so errors are a multiple of eps times d times the number of steps since the last refresh,
    seen through the condition number of the scaled B. Nothing depends on the scales themselves:
    the condition number of B is 1e14 here."""
    rng = np.random.default_rng(3)
    n, d = 1_000_000, 9
    y = rng.standard_normal((n, d))
    if mixing == "correlated":
        y = y @ rng.standard_normal((d, d))
    y *= 10.0 ** np.linspace(-4, 4, d)
    posterior = kh.Posterior(n_parameters=1, dim=d)
    rewards = rng.standard_normal(n)
    learn_each(posterior, y, rewards)

    B, P = posterior.precision[0], posterior.covariance[0]
    assert np.linalg.cond(B) > 1e13
    assert error(posterior) <= d * EPS * REFRESH_STEPS * condition(B)
    np.testing.assert_array_equal(P, P.T)
    _, width = posterior.predict(np.array([0]), y[-1000:])
    assert np.isfinite(width).all()
    assert (width > 0).all()
    # n additions of one rounding each: the count is exact, the sums to n eps.
    assert posterior.count[0] == n
    np.testing.assert_allclose(posterior.moment[0], y.T @ rewards, atol=n * EPS * np.abs(y).max())


@pytest.mark.parametrize("seed", range(5))
def test_the_first_large_steps_lose_no_more_than_the_schedule_allows(seed: int) -> None:
    """The first rewards at features of scale 1e4 shrink P by 1e8 at once. Between refreshes a
    step loses d eps (1 + q); the schedule lets these add up to staleness times 1e7."""
    rng = np.random.default_rng(seed)
    posterior = kh.Posterior(n_parameters=1, dim=9)
    for _ in range(40):
        posterior.learn(0, rng.standard_normal(9) * 10.0 ** np.linspace(-4, 4, 9), 1.0)
        lost = REFRESH_STEPS + 1e7 * posterior.state.staleness[0]
        assert error(posterior) <= 9 * EPS * lost * condition(posterior.precision[0])


def test_without_the_schedule_large_steps_lose_their_digits() -> None:
    """The negative control: at scales up to 1e8, bare Sherman-Morrison is off by a hundred times
    what the scheduled steps are allowed."""
    rng = np.random.default_rng(0)
    P, posterior = np.eye(4), kh.Posterior(n_parameters=1, dim=4)
    for _ in range(40):
        y = rng.standard_normal(4) * 10.0 ** np.linspace(-4, 8, 4)
        posterior.learn(0, y, 1.0)
        u = P @ y
        P = P - np.outer(u, u) / (1 + y @ u)
    lost = REFRESH_STEPS + 1e7 * posterior.state.staleness[0]
    tolerance = 4 * EPS * lost * condition(posterior.precision[0])
    assert error(posterior) <= tolerance
    posterior.state.covariance[0][np.tril_indices(4)] = P[np.tril_indices(4)]
    assert error(posterior) > 100 * tolerance


@pytest.mark.parametrize("direction", [[1, 1, 1, 1, 1], [1, 1 / 3, 0.7, np.pi, -2.7182818]])
@pytest.mark.parametrize("size", [3e4, 1e8, 1e12])
@pytest.mark.parametrize("seed", range(3))
def test_observations_that_make_B_singular_in_float64_give_no_nan(
    direction: list[float], size: float, seed: int
) -> None:
    """One direction at a large scale: next to it the prior is below rounding, whatever one does.
    Entries of a direction like the second all round differently, so B may even turn indefinite.
    """
    rng = np.random.default_rng(seed)
    posterior = kh.Posterior(n_parameters=1, dim=5)
    y = np.outer(size * rng.standard_normal(50_000), direction)
    learn_each(posterior, y, np.ones(len(y)))
    for _ in range(2):
        _, width = posterior.predict(np.array([0]), rng.standard_normal((1000, 5)))
        assert np.isfinite(width).all()
        assert (width >= 0).all()
        assert np.isfinite(posterior.mean).all()
        largest = posterior.covariance[0].max()
        assert np.linalg.eigvalsh(posterior.covariance[0]).min() >= -1e-12 * largest
        posterior.refresh()


def test_what_is_not_a_precision_has_no_inverse() -> None:
    posterior = kh.Posterior(n_parameters=1, dim=2)
    posterior.state.precision[0, 0, 0] = -1.0
    posterior.refresh()
    assert np.isnan(posterior.covariance).all()


def test_rounding_below_zero_is_cut_off() -> None:
    """A covariance that rounding has made indefinite: no width, no step and no residual is less
    than nothing."""
    posterior = learned(np.array([[1.0, 2.0]]), np.ones(1))
    posterior.state.covariance[0][np.diag_indices(2)] = -1.0
    y, zero = np.ones((1, 2)), np.zeros((1, 1))
    _, width = posterior.predict(np.array([0]), y)
    assert width.tolist() == [[0.0]]
    assert posterior.core.product(0, y[0])[0] == 0.0
    rule = kh.LinUCB(alpha=1.0).plain_rule()
    chooser = kernels.Chooser(posterior.core, rule, np.zeros(1, np.int64), keeps=True)
    _, score, location, scale = chooser.choose_rounds(y[None], zero, np.zeros((1, 2)))
    assert score[0] == location[0, 0] == pytest.approx(posterior.mean.sum())
    assert scale[0, 0] == 0.0
    learn_each(posterior, np.array([[1.0, 2.0]]), np.ones(1))
    assert np.isfinite(posterior.state.mean).all()
    posterior.state.penalty[0] = 5.0
    assert np.isfinite(posterior.noise_scale()).all()


def test_a_step_that_cannot_be_trusted_still_counts_its_reward() -> None:
    """Where the sums are asked instead, the residual has that reward in it too."""
    posterior = kh.Posterior(n_parameters=1, dim=2)
    for reward in (1.0, 3.0, 2.0):
        posterior.learn(0, np.array([1e9, 1e9]), reward)
    misfit = posterior.state.residual[0] - posterior.state.penalty[0]
    # 1, 3 and 2 about their mean make 2; at this condition float64 knows the mean to a few parts
    # in ten, and without them it would be nothing.
    assert 1.0 < misfit < 3.0


def test_a_scheduled_refresh_comes_after_so_many_steps() -> None:
    """And replaces whatever the caches held by what the sums say, the bound included."""
    posterior = kh.Posterior(n_parameters=1, dim=2)
    y = np.random.default_rng(1).standard_normal((4095, 2)) * 1e-3
    learn_each(posterior, y, np.ones(4095))
    assert posterior.state.staleness[0] == pytest.approx(4095 / 4096, abs=1e-6)
    posterior.state.covariance[0][np.tril_indices(2)] *= 1.5
    posterior.state.bound[0] = 1e-9
    posterior.learn(0, y[0], 1.0)
    assert posterior.state.staleness[0] == 0.0
    assert error(posterior) < 1e-12
    largest = np.linalg.eigvalsh(posterior.covariance[0]).max()
    assert posterior.state.bound[0] >= largest * (1 - 1e-12)


# -- the noise scale ------------------------------------------------------------------------------


def test_the_noise_scale_by_hand() -> None:
    """Two parameters, dim 1, prior 1. One reward 3 at y=1: mean 3/2, misfit (3/2)^2, freedom
    1 - 1 + (1/2)^2. Two rewards 2 at y=1: mean 4/3, misfit 2 (2/3)^2, freedom 2 - 1 + (1/3)^2."""
    posterior = kh.Posterior(n_parameters=2, dim=1)
    one = np.array([[1.0]])
    posterior.learn_many(np.array([0]), one, np.array([3.0]))
    posterior.learn_many(np.array([1, 1]), np.ones((2, 1)), np.array([2.0, 2.0]))
    misfit, freedom = np.array([9 / 4, 8 / 9]), np.array([1 / 4, 10 / 9])
    mean_square = (9 + 4 + 4) / 3
    weight = 16 / (4 + freedom.sum())
    pooled = (weight * mean_square + misfit.sum()) / (weight + freedom.sum())
    own = (4 * pooled + misfit) / (4 + freedom)
    trust = misfit / (4 * pooled + misfit)
    expected = np.sqrt((1 - trust) * pooled + trust * own)
    np.testing.assert_allclose(posterior.noise_scale(), expected, rtol=1e-12)


def test_misfit_and_freedom_have_the_right_ratio() -> None:
    """With nothing but noise, E misfit = sigma^2 (n - d + prior^2 trace P^2); what is used for the
    freedom is never more than that."""
    rng = np.random.default_rng(8)
    for n, prior in ((3, 1.0), (8, 1.0), (8, 50.0), (40, 10.0)):
        y = rng.standard_normal((n, 6))
        P = np.linalg.inv(prior * np.eye(6) + y.T @ y)
        freedom = n - 6 + prior**2 * np.trace(P @ P)
        used = n - 6 + (prior * np.trace(P)) ** 2 / 6
        assert used <= freedom + 1e-12
        noise = rng.standard_normal((20_000, n))
        misfit = ((noise - noise @ y @ P @ y.T) ** 2).sum(axis=1)
        assert abs(misfit.mean() - freedom) <= 4 * misfit.std() / np.sqrt(20_000)


def test_the_noise_scale_does_not_collapse_on_lucky_residuals() -> None:
    """Rewards that a plane fits exactly: up to n = d there is hardly a degree of freedom, and the
    scale is the rewards' own."""
    rng = np.random.default_rng(5)
    y = rng.standard_normal((30, 10))
    rewards = y @ rng.standard_normal(10)
    for n in (1, 2, 5, 10, 12, 20, 30):
        some = learned(y[:n], rewards[:n])
        spread = np.sqrt((rewards[:n] ** 2).mean())
        freedom = max(n - 10 + np.trace(some.covariance[0]) ** 2 / 10, 0)
        # The start's weight fades as 16 / (4 + f), beside f residuals of zero; own and pooled are
        # one thing here, and own adds at least 4 / (4 + f) of the pooled.
        start = 16 / (4 + freedom)
        least = start / (start + freedom) * 4 / (4 + freedom)
        assert some.noise_scale()[0] >= spread * np.sqrt(least)
        assert n > 10 or some.noise_scale()[0] >= spread / 2


def test_a_large_mean_of_the_rewards_does_not_pass_for_noise() -> None:
    """Reward 100 + N(0, 1) at a constant feature. The start adds (16 / n) 100^2 / n to the pooled
    variance; what the prior holds back of the mean, 100 / n, its square; four standard errors
    1/sqrt(2n) for the rest."""
    rng = np.random.default_rng(9)
    for n in (400, 1_000, 20_000):
        posterior = learned(np.ones((n, 1)), 100 + rng.standard_normal(n))
        v = posterior.noise_scale()[0]
        assert abs(v - 1) <= 8 * 100**2 / n**2 + (100 / n) ** 2 + 4 / np.sqrt(2 * n)


def test_a_high_signal_to_noise_ratio() -> None:
    """Noise of 1e-3 under rewards of size 1, three parameters: the start has faded to 16 / n^2."""
    rng, n = np.random.default_rng(10), 3000
    posterior = kh.Posterior(n_parameters=3, dim=4)
    y = rng.standard_normal((n, 4))
    rewards = y @ rng.standard_normal(4) + 1e-3 * rng.standard_normal(n)
    posterior.learn_many(np.arange(n) % 3, y, rewards)
    start = 16 / n**2 * (rewards**2).mean() / 1e-6
    assert (abs(posterior.noise_scale() / 1e-3 - 1) <= start + 4 / np.sqrt(2 * n / 3)).all()


def test_an_arm_that_has_seen_no_rare_reward_yet_is_not_sure_of_it() -> None:
    """A hundred zeros beside an arm with a few ones: its scale is still that of the others."""
    posterior = kh.Posterior(n_parameters=2, dim=1)
    ones = np.ones((100, 1))
    posterior.learn_many(np.zeros(100, np.int64), ones, np.zeros(100))
    posterior.learn_many(np.ones(100, np.int64), ones, (np.arange(100) < 3).astype(float))
    v = posterior.noise_scale()
    assert v[0] > 0.9 * v[1] * np.sqrt(1 / 2)


def test_rewards_that_are_all_zero_leave_a_scale() -> None:
    posterior = learned(np.ones((20, 2)), np.zeros(20))
    assert posterior.noise_scale()[0] == 1.0


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_the_noise_scale_has_the_rewards_unit(factor: float) -> None:
    rng = np.random.default_rng(6)
    y, rewards = rng.standard_normal((50, 4)), rng.standard_normal(50)
    here, there = learned(y, rewards), learned(y, factor * rewards)
    np.testing.assert_allclose(there.noise_scale(), factor * here.noise_scale(), rtol=1e-9)


def test_the_noise_scale_converges_to_each_parameters_standard_deviation() -> None:
    """The sd of an estimated sd is sigma / sqrt(2n); four of those. With k = pooled / sigma^2 the
    pull of the pooled variance, 4 k / (4 k + n) of it, adds up to 2 k^2 / n, relative to sigma."""
    rng = np.random.default_rng(7)
    n, sigma = 20_000, np.array([0.5, 2.0, 7.0])
    posterior = kh.Posterior(n_parameters=3, dim=6)
    for i in range(3):
        y = rng.standard_normal((n, 6)) * 3
        rewards = y @ rng.standard_normal(6) + sigma[i] * rng.standard_normal(n)
        posterior.learn_many(np.full(n, i), y, rewards)
    relative = np.abs(posterior.noise_scale() / sigma - 1)
    k = (sigma**2).mean() / sigma**2
    assert (relative <= 4 / np.sqrt(2 * n) + 2 * k * (k + 2) / n).all()


# -- guards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_parameters": 0, "dim": 2}, "n_parameters"),
        ({"n_parameters": 1, "dim": 2.5}, "dim"),
        ({"n_parameters": 1, "dim": True}, "dim"),
        ({"n_parameters": 1, "dim": 2, "prior_precision": 0.0}, "prior_precision"),
        ({"n_parameters": 1, "dim": 2, "prior_precision": -1.0}, "prior_precision"),
        ({"n_parameters": 1, "dim": 2, "prior_precision": 1e-309}, "prior_precision"),
        ({"n_parameters": 1, "dim": 2, "prior_precision": 10**400}, "prior_precision"),
        ({"n_parameters": 1, "dim": 2, "prior_precision": float("nan")}, "prior_precision"),
    ],
)
def test_nonsense_settings(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        kh.Posterior(**arguments)


@pytest.mark.parametrize(
    ("parameter_of", "y", "rewards"),
    [
        ([0], [[1.0, np.nan]], [1.0]),
        ([0], [[1.0, np.inf]], [1.0]),
        ([0], [[1.0, 1e60]], [1.0]),
        ([0], [[1.0, 1.0]], [np.nan]),
        ([0], [[1.0, 1.0, 1.0]], [1.0]),
        ([0, 1], [[1.0, 1.0]], [1.0]),
        ([2], [[1.0, 1.0]], [1.0]),
        ([-1], [[1.0, 1.0]], [1.0]),
        ([0.0], [[1.0, 1.0]], [1.0]),
        ([0, 1], [[1.0, 1.0], [1.0, np.nan]], [1.0, 1.0]),
    ],
)
def test_bad_data_changes_nothing(parameter_of: Any, y: Any, rewards: Any) -> None:
    posterior = kh.Posterior(n_parameters=2, dim=2)
    posterior.learn(1, np.array([1.0, 2.0]), 3.0)
    before = posterior.copy()
    with pytest.raises(kh.InvalidValue):
        posterior.learn_many(np.array(parameter_of), np.array(y), np.array(rewards))
    for name, array in before.state._asdict().items():
        np.testing.assert_array_equal(getattr(posterior.state, name), array, err_msg=name)


def test_merging_guards() -> None:
    posterior = kh.Posterior(n_parameters=2, dim=2)
    with pytest.raises(kh.InvalidValue, match="sizes"):
        posterior.merge(kh.Posterior(n_parameters=1, dim=2))
    with pytest.raises(kh.InvalidValue, match="prior_precision"):
        posterior.merge(kh.Posterior(n_parameters=2, dim=2, prior_precision=2.0))
    base = posterior.copy()
    base.learn(0, np.ones(2), 1.0)
    with pytest.raises(kh.InvalidValue, match="base"):
        posterior.merge(kh.Posterior(n_parameters=2, dim=2), base=base)
    np.testing.assert_array_equal(posterior.count, [0, 0])


def test_what_is_read_cannot_be_written() -> None:
    posterior = kh.Posterior(n_parameters=1, dim=2)
    for name in ("precision", "moment", "squares", "covariance", "mean"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(posterior, name)[...] = 0.0
