"""Certificates: each step by hand and by simulation, what they depend on, what they refuse."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom, chi2

import keyhole as kh
from keyhole.lab.simulation import endings
from keyhole.theory.certificates import confusion, deviation, ellipsoid
from keyhole.theory.certificates.derivation import Shares, derive
from keyhole.theory.certificates.ellipsoid import Ellipsoid, spectrum
from keyhole.theory.certificates.exploration import (
    Information,
    best_moments,
    chernoff_rates,
    exploration,
)
from keyhole.theory.certificates.setting import Setting, setting_of
from tests.worlds import linear, patients

Floats = NDArray[np.float64]
OWN = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
SHARED = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1, shared_context=True)
THOMPSON = kh.ThompsonSampling(v="oracle")
# Little noise: bounds become informative within a few hundred rounds.
QUIET = kh.LinearWorld(
    sensing=[[1.0, 0.3], [0.0, 1.0]],
    coefficients=[[1.0, 0.0], [0.3, 0.8]],
    sensing_covariance=0.01,
    reward_scale=0.1,
)


def standard(h: Any, *, v: float = 0.0, shared: bool = False, noise: float = 1.0) -> Setting:
    """A setting whose observations are standard normal."""
    h = np.asarray(h, dtype=float)
    n, d = h.shape
    return Setting(h, h, np.ones(d), np.eye(d), np.full(n, noise), 1.0, v, shared, "")


# -- exploration ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_arms", [2, 3, 5])
@pytest.mark.parametrize("v", [0.0, 0.7])
def test_every_arm_is_explored_whatever_was_learned(n_arms: int, v: float) -> None:
    """E[f(u_i) 1(a = i)] >= 2^-(N-1) E f(u_i), for the past that is worst for an arm and others."""
    rng = np.random.default_rng(n_arms)
    size, d = 40_000, 3
    u, z = rng.standard_normal((size, n_arms, d)), rng.standard_normal((size, n_arms))
    for scale in (0.0, 0.01, 1.0):  # the first arm's estimate is shorter than the others'
        means = rng.standard_normal((n_arms, d)) * np.append(scale, np.ones(n_arms - 1))[:, None]
        widths = np.append(scale, np.ones(n_arms - 1)) * v * np.linalg.norm(u, axis=2)
        chosen = (np.einsum("tnd,nd->tn", u, means) + widths * z).argmax(axis=1)
        for i in range(n_arms):
            for direction in (means[i] + 1e-9, rng.standard_normal(d)):
                f = (u[:, i] @ direction) ** 2 * np.exp(-0.1 * (u[:, i] ** 2).sum(axis=1))
                seen = f * (chosen == i)
                off = seen - exploration(n_arms) * f
                assert off.mean() >= -4.0 * off.std() / math.sqrt(size)


def test_an_arm_without_an_estimate_is_explored_exactly_that_much() -> None:
    """Where one arm's score is 0, all others are below it with probability 2^-(N-1)."""
    rng = np.random.default_rng(1)
    size, n_arms = 400_000, 4
    others = rng.standard_normal((size, n_arms - 1))
    share = float((others.max(axis=1) < 0.0).mean())
    q = exploration(n_arms)
    assert q == 0.125
    assert abs(share - q) < 4.0 * math.sqrt(q * (1 - q) / size)


def test_the_laplace_transform_by_hand_and_by_simulation() -> None:
    """E exp(-theta u u' 1(a = i)) where an arm is chosen with probability q, whatever u."""
    assert chernoff_rates(0.5, 2, np.array([0.5]))[0] == pytest.approx(math.log(8 / 7))
    assert chernoff_rates(1.0, 1, np.array([1.5]))[0] == pytest.approx(math.log(2))  # 1 / sqrt(4)
    rng = np.random.default_rng(2)
    size, d, q, theta = 400_000, 3, 0.25, 0.8
    u, chosen = rng.standard_normal((size, d)), rng.random(size) < q
    r = (u**2).sum(axis=1)
    entry = 1.0 - (1.0 - np.exp(-theta * r)) / r * u[:, 0] ** 2 * chosen
    c = math.exp(-chernoff_rates(q, d, np.array([theta]))[0])
    assert abs(entry.mean() - c) < 4.0 * entry.std() / math.sqrt(size)


def test_small_theta_counts_every_pull() -> None:
    """log(1 / c) / theta tends to q."""
    assert chernoff_rates(0.25, 4, np.array([1e-7]))[0] / 1e-7 == pytest.approx(0.25, rel=1e-5)


def test_an_arm_is_explored_where_it_is_best() -> None:
    """p_i, and moments of V_i: two equal arms have p = 1/2 and E[z 1(best)] = 1 / (2 sqrt(pi))."""
    found = best_moments(standard([[1.0, 0.0], [0.0, 1.0]]))
    assert found.lead == pytest.approx([0.5, 0.5], abs=1e-7)
    assert found.first == pytest.approx([0.5 / math.sqrt(math.pi)] * 2, abs=1e-7)
    # E z^4 / 2 + (d - 1) E z^2 / 2 = 3/2 + 1/2, and E z^2 / 2 + (d + 1) / 2 = 2.
    assert found.fourth == pytest.approx([2.0, 2.0], abs=1e-6)


def test_moments_where_an_arm_is_best() -> None:
    """The fourth moments of four arms, along h and aside; p_i is below E[(z'u)^2 1(best)]."""
    lengths = np.array([1.0, 1.3, 0.7, 1.0])
    found = best_moments(standard(lengths[:, None] * [1.0, 0.0, 0.0]))
    u = np.random.default_rng(3).standard_normal((200_000, 4, 3))
    best = (lengths * u[:, :, 0]).argmax(axis=1)
    for i in range(4):
        mine = u[:, i] * (best == i)[:, None]
        fourth = (mine**2).sum(axis=1)[:, None] * mine**2  # (size, direction)
        mean, error = fourth.mean(axis=0), fourth.std(axis=0) / math.sqrt(len(u))
        assert abs(mean.max() - found.fourth[i]) < 4.0 * error[mean.argmax()]
        first = mine[:, 0]
        assert abs(first.mean() - found.first[i]) < 4.0 * first.std() / math.sqrt(len(u))
        assert ((mine**2).mean(axis=0) > found.lead[i] - 0.005).all()


# -- each step along simulated runs ---------------------------------------------------------------


def play(
    world: kh.LinearWorld, v: float, rounds: int, runs: int, visit: Callable[..., None]
) -> None:
    """The textbook on many runs at once; `visit` sees S, B, the means and the losses of a round."""
    rng = np.random.default_rng(7)
    setting = setting_of(world, kh.ThompsonSampling(v=v))
    n, d = world.eta.shape
    root = np.linalg.cholesky(world.observation_covariance)
    noise = np.sqrt(world.r1**2 + np.diag(world.unseen_covariance))
    b, moment = np.tile(np.eye(d), (runs, n, 1, 1)), np.zeros((runs, n, d))
    each = np.arange(runs)
    for t in range(1, rounds + 1):
        mean = np.linalg.solve(b, moment[..., None])[..., 0]
        y = rng.standard_normal((runs, n, d)) @ root.T
        width = np.sqrt(np.einsum("rnd,rnd->rn", y, np.linalg.solve(b, y[..., None])[..., 0]))
        score = (y * mean).sum(axis=2) + v * width * rng.standard_normal((runs, n))
        arm = (score + 1e-12 * rng.random((runs, n))).argmax(axis=1)
        values = (y * world.eta).sum(axis=2)
        visit(t, setting, b, mean, values.max(axis=1) - values[each, arm])
        row = y[each, arm]
        reward = values[each, arm] + noise[arm] * rng.standard_normal(runs)
        b[each, arm] += row[:, :, None] * row[:, None, :]
        moment[each, arm] += reward[:, None] * row


@pytest.mark.parametrize("v", [0.0, 0.15])
def test_every_step_holds_along_simulated_runs(v: float) -> None:
    """Information, spectrum, radius and expected loss, in every round of 200 runs."""
    rounds, runs = 400, 200
    setting = setting_of(QUIET, kh.ThompsonSampling(v=v))
    gap = deviation.mean_gap(setting)
    shares = Shares(0.01, 0.01, 0.01, 0.01, 0.01)
    found = derive(
        setting, first=1, horizon=rounds, start=np.zeros(2), shares=shares, gap=gap, shared=None
    )
    assert found.losses[-1] < 0.25 * gap  # there is something to test
    failed = np.zeros(runs, dtype=bool)
    far = np.zeros(runs, dtype=bool)
    mean_losses = []

    def visit(t: int, one: Setting, b: Floats, mean: Floats, losses: Floats) -> None:
        nonlocal failed, far
        k = int(np.searchsorted(found.starts, t, side="right")) - 1
        half = one.vectors / np.sqrt(one.scales)
        s = np.linalg.eigvalsh(half.T @ (b - np.eye(2)) @ half)
        off = mean - QUIET.eta
        reach = np.sqrt(np.einsum("rni,rnij,rnj->rn", off, b, off))
        failed |= (s[..., 0] < found.information[k] - 1e-9).any(axis=1)
        failed |= (s[..., -1] > found.omega[k]).any(axis=1)
        failed |= (reach > found.radii[k]).any(axis=1)
        far |= (reach > 0.25 * found.radii[k]).any(axis=1)
        mean_losses.append((losses.mean(), losses.std() / math.sqrt(runs), found.losses[k]))

    play(QUIET, v, rounds, runs, visit)
    assert not failed.any()
    assert far.mean() > 0.5  # a quarter of the noise would be found out
    seen, error, bound = np.array(mean_losses).T
    assert (seen - 4.5 * error <= bound).all()


def test_twice_the_exploration_is_found_out() -> None:
    """With two arms it would be 1: each would have to be pulled in every round."""
    setting = setting_of(QUIET, kh.Greedy())
    information = Information(setting, 400, 0.05, np.zeros(2))
    right = Information(setting, 400, 0.05, np.zeros(2))
    information.least = chernoff_rates(1.0, 2, information.thetas)
    for one in (information, right):
        one.add(400, np.zeros(2), np.zeros(2))
    ends = endings(QUIET, kh.Greedy(), horizon=400, replications=40, seed=3)
    least = setting.information(ends.precision)
    assert (least >= right.value).all()
    assert (least < information.value).any(axis=1).all()


def test_information_grows_like_the_pulls() -> None:
    """In the long run the bound comes to q t, from below."""
    setting = standard(np.eye(2))
    found = Information(setting, 10**8, 0.05, np.array([0.0, 5.0]))
    assert found.value.tolist() == [0.0, 5.0]
    found.add(10**8, np.zeros(2), np.zeros(2))
    share = (found.value - [0.0, 5.0]) / 10**8
    assert (share < 0.5).all()
    assert (share > 0.495).all()


def test_spectrum_of_wishart_matrices() -> None:
    """It fails with at most its share, and a bound without the deviation does not."""
    rng = np.random.default_rng(4)
    u = rng.standard_normal((2000, 50, 4))
    largest = np.linalg.norm(u, ord=2, axis=(1, 2)) ** 2
    assert spectrum(100, 4, math.exp(-2.0)) == pytest.approx((10 + 2 + 2) ** 2)
    assert (largest > spectrum(50, 4, 0.05)).mean() < 0.05
    assert (largest > 50.0).mean() > 0.5


def test_radius_by_hand() -> None:
    """d = 1, prior 1, no information: R sqrt(log(1 + omega) + 2 log(1 / share)) + |eta|."""
    setting = standard([[0.5], [2.0]], noise=3.0)
    found = Ellipsoid(setting, np.zeros(2), omega=math.e**2 - 1.0, share=math.exp(-1.0))
    assert found.radii(np.zeros(2)) == pytest.approx([3.0 * 2.0 + 0.5, 3.0 * 2.0 + 2.0])
    # With information m the prior's part is |eta| / sqrt(1 + m).
    assert found.radii(np.full(2, 3.0)) == pytest.approx([6.0 + 0.25, 6.0 + 1.0])


def test_gamma_shrinks_the_radius() -> None:
    """The usual ellipsoid has gamma = 0, whose log det grows with log t."""
    setting, m = standard(np.eye(4), noise=1.0), np.full(4, 1e4)
    usual = Ellipsoid(setting, np.zeros(4), omega=1e5, share=1e-3).radii(m)
    assert (Ellipsoid(setting, m, omega=1e5, share=1e-3).radii(m) < 0.85 * usual).all()


def test_the_best_gamma_by_hand() -> None:
    """prior 1, m = 99: k = 1 + gamma / 100 pays for d log(1 + omega / (1 + gamma))."""
    m, omega, share = np.full(2, 99.0), 200.0, 0.5
    gammas = 99.0 * ellipsoid.GAMMAS
    setting = standard(np.zeros((2, 8)), noise=2.0)
    inner = 8.0 * np.log1p(omega / (1.0 + gammas)) + 2.0 * math.log(2.0)
    squares = (1.0 + gammas / 100.0) * inner
    assert squares.argmin() > 0
    assert Ellipsoid(setting, m, omega, share).radii(m) == pytest.approx(
        [2.0 * math.sqrt(squares.min())] * 2
    )


def test_what_gamma_costs() -> None:
    """B + gamma Sigma <= k B for B >= prior I + m Sigma, with equality along the longest axis."""
    rng, prior, m, gamma = np.random.default_rng(14), 0.5, 2.0, 3.0
    sigma = np.diag([4.0, 1.0, 0.1])
    k = 1.0 + gamma * 4.0 / (prior + m * 4.0)
    b = prior * np.eye(3) + m * sigma
    assert np.linalg.eigvalsh(k * b - (b + gamma * sigma)).min() == pytest.approx(0.0, abs=1e-12)
    for root in rng.standard_normal((20, 3, 3)):
        more = b + root @ root.T
        assert np.linalg.eigvalsh(k * more - (more + gamma * sigma)).min() > 0.0


# -- confusion ------------------------------------------------------------------------------------


def sampled(h: Floats, e: Floats, size: int = 100_000, seed: int = 5) -> tuple[Floats, Floats]:
    """Values and scores of arms with own contexts, whose samples are off by e."""
    u = np.random.default_rng(seed).standard_normal((size, *h.shape))
    return np.einsum("tnd,nd->tn", u, h), np.einsum("tnd,nd->tn", u, h + e)


def test_the_angle_is_attained() -> None:
    """At the worst error of a given length a pair loses s (1 - sqrt(1 - Y)) / sqrt(2 pi)."""
    h, y = np.array([[1.0, 0.0], [0.0, 2.0]]), 0.3
    s = math.sqrt(5.0)
    # D + Delta orthogonal to Delta: the part along (h_1, -h_2) is -Y s, the rest is orthogonal.
    along = -y * np.array([[1.0, 0.0], [0.0, 2.0]])
    aside = math.sqrt(y - y * y) * s * np.array([[0.0, 1.0], [0.0, 0.0]])
    e = along + aside
    assert (e**2).sum() / 5.0 == pytest.approx(y)
    values, scores = sampled(h, e)
    d, d_tilde = values[:, 0] - values[:, 1], scores[:, 0] - scores[:, 1]
    loss = np.abs(d) * (d * d_tilde < 0)
    exact = s * (1.0 - math.sqrt(1.0 - y)) / math.sqrt(2.0 * math.pi)
    assert abs(loss.mean() - exact) < 4.0 * loss.std() / math.sqrt(len(loss))
    # No other error of this length costs more.
    rng = np.random.default_rng(6)
    for _ in range(10):
        other = rng.standard_normal((2, 2))
        other *= math.sqrt(y * 5.0 / (other**2).sum())
        values, scores = sampled(h, other, 20_000)
        d, d_tilde = values[:, 0] - values[:, 1], scores[:, 0] - scores[:, 1]
        seen = np.abs(d) * (d * d_tilde < 0)
        assert seen.mean() <= exact + 4.0 * seen.std() / math.sqrt(len(seen))


def test_the_cone_is_attained() -> None:
    """lambda_max E[u u' 1(D > 0, D~ <= 0)] = (phi + sin phi) / (2 pi), with a shared context."""
    phi = 0.7
    u = np.random.default_rng(8).standard_normal((400_000, 2))
    inside = u[(u[:, 0] > 0) & (u @ [math.cos(phi), math.sin(phi)] <= 0)]
    largest = np.linalg.eigvalsh(inside.T @ inside / len(u))[-1]
    assert largest == pytest.approx((phi + math.sin(phi)) / (2 * math.pi), rel=0.02)
    y = math.sin(phi) ** 2
    one = confusion.Errors(
        np.full((2, 2), y), (y > confusion.SPLITS)[:, None, None] * np.ones((2, 2))
    )
    cone = confusion.cones(one)
    assert largest <= cone[0, 1] <= 1.25 * largest
    assert cone[0, 0] == 0.0


@pytest.mark.parametrize("y", [0.004, 0.05, 0.3])
def test_best_arms_are_confused_at_most_as_often(y: float) -> None:
    """E[D 1(i best, j beats i)] <= slope s Y in all directions of the error, and not far below."""
    h = np.diag([1.0, 1.2, 0.8, 1.0])
    found = confusion.best_slopes(np.linalg.norm(h, axis=1))
    split = int(np.searchsorted(confusion.SPLITS, y))
    s = math.hypot(1.0, 1.2)
    rng, largest = np.random.default_rng(9), 0.0
    directions = [np.array([[-1.0, 0, 0, 0], [0, 1.0, 0, 0]]), np.array([[0, 0, 1.0, 0], [0] * 4])]
    for direction in [*directions, *rng.standard_normal((3, 2, 4))]:
        e = np.zeros((4, 4))
        e[:2] = direction * math.sqrt(y) * s / math.sqrt((direction**2).sum())
        values, scores = sampled(h, e)
        lost = (values[:, 0] - values[:, 1]) * (values.argmax(axis=1) == 0)
        lost *= scores[:, 1] >= scores[:, 0]
        bound = found[split, 0, 1] * s * y
        assert lost.mean() <= bound + 4.0 * lost.std() / math.sqrt(len(lost))
        largest = max(largest, float(lost.mean()))
    assert largest > 0.2 * found[split, 0, 1] * s * y


def test_two_arms_without_others_have_a_closed_form() -> None:
    """As Y tends to 0 and H is 1: E_w (w^2 / 2 + 1/4) / sqrt(2 pi) = 0.75 / sqrt(2 pi)."""
    found = confusion.best_slopes(np.array([1.0, 1.0]))[0, 0, 1]
    assert 0.75 / math.sqrt(2 * math.pi) <= found <= 1.1 * 0.75 / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("v", [0.0, 0.5])
@pytest.mark.parametrize("shared", [False, True])
def test_the_expected_loss_of_a_round(v: float, shared: bool) -> None:
    """All pairs together, and the bound for far estimates, exceed what is lost on average."""
    rng = np.random.default_rng(10)
    h = rng.standard_normal((3, 3)) * 1.5
    setting = standard(h, v=v, shared=shared)
    for m in (3.0, 20.0, 200.0):
        information, radii = np.full(3, m), np.array([1.0, 2.0, 1.5])
        found = confusion.errors(setting, information, radii)
        pairs = confusion.pair_losses(setting, found, confusion.slopes(setting)).sum()
        far = confusion.FarLoss(setting, best_moments(setting).first)(information, radii)
        for _ in range(4):
            off = rng.standard_normal((3, 3))
            off *= (radii / np.linalg.norm(off, axis=1) / math.sqrt(m + 1.0))[:, None]
            size = 20_000
            u = rng.standard_normal((size, 1 if shared else 3, 3))
            values = (u * h).sum(axis=2)
            widths = v * np.linalg.norm(u, axis=2) / math.sqrt(m + 1.0)
            scores = (u * (h + off)).sum(axis=2) + widths * rng.standard_normal((size, 3))
            lost = values.max(axis=1) - values[np.arange(size), scores.argmax(axis=1)]
            limit = lost.mean() - 4.0 * lost.std() / math.sqrt(size)
            assert limit <= pairs
            assert limit <= far


def test_far_estimates_by_hand() -> None:
    """Two arms whose estimates are -h: the worst is always chosen, at a cost of 2 / sqrt(pi)."""
    setting = standard(np.eye(2))
    far = confusion.FarLoss(setting, best_moments(setting).first)
    # rho = 2: 2 x 2 E[z 1(best)] + 2 E max g = 2 / sqrt(pi) + 2 / sqrt(pi).
    bound = far(np.zeros(2), np.full(2, 2.0))
    assert bound == pytest.approx(4.0 / math.sqrt(math.pi), rel=1e-6)
    values, scores = sampled(np.eye(2), -2.0 * np.eye(2))
    lost = np.ptp(values, axis=1) * (scores.argmax(axis=1) == values.argmin(axis=1))
    assert lost.mean() == pytest.approx(2.0 / math.sqrt(math.pi), rel=0.02)
    # v adds v sqrt(c) M, and M bounds E max |u_k| z_k.
    sampling = confusion.FarLoss(standard(np.eye(2), v=3.0), np.zeros(2))
    rng = np.random.default_rng(15)
    u, z = rng.standard_normal((200_000, 2, 2)), rng.standard_normal((200_000, 2))
    seen = float((np.linalg.norm(u, axis=2) * z).max(axis=1).mean())
    assert sampling(np.full(2, 3.0), np.zeros(2)) == pytest.approx(1.5 * sampling.widest)
    assert seen < sampling.widest < 3.0 * seen


def test_relative_errors_by_hand() -> None:
    """Two arms at right angles, m = 3, prior 1: c = 1/4, tr C = d / 4."""
    m, radii = np.full(2, 3.0), np.array([1.0, 2.0])
    own = confusion.errors(standard(np.eye(2), v=2.0), m, radii)
    assert own.mean[0, 1] == pytest.approx((0.25 + 1.0 + 4.0 * (0.5 + 0.5)) / 2.0)
    shared = confusion.errors(standard(np.eye(2), v=2.0, shared=True), m, radii)
    assert shared.mean[0, 1] == pytest.approx(((0.5 + 1.0) ** 2 + 4.0) / 2.0)
    greedy = confusion.errors(standard(np.eye(2)), m, 0.1 * radii)
    assert greedy.mean[0, 1] == pytest.approx(0.0125 / 2.0)
    assert greedy.tails[:, 0, 1].tolist() == (confusion.SPLITS <= 0.00625).astype(float).tolist()
    tails = confusion.errors(standard(np.eye(2), v=0.2), m, 0.1 * radii).tails[:, 0, 1]
    left = np.sqrt(2.0 * confusion.SPLITS) - math.sqrt(0.0125)
    exact = np.where(left > 0, chi2.sf(left**2 / (0.04 * 0.25), 4), 1.0)
    assert tails == pytest.approx(exact)


# -- from expected to realised regret -------------------------------------------------------------


def test_the_trivial_bound() -> None:
    """Two equal arms: E G = 2 / sqrt(pi); the policy that always takes the worst arm keeps it."""
    setting = standard([[1.0, 0.0], [0.0, 1.0]])
    gap = deviation.mean_gap(setting)
    assert gap == pytest.approx(2.0 / math.sqrt(math.pi))
    bound = float(deviation.trivial(setting, gap, 100, math.exp(-2.0)))
    assert bound == pytest.approx(100.0 * gap + math.sqrt(2.0) * 20.0)
    values = np.random.default_rng(11).standard_normal((4000, 100, 2))
    total = np.ptp(values, axis=2).sum(axis=1)
    assert (total > deviation.trivial(setting, gap, 100, 0.05)).mean() < 0.05
    assert (total > 100.0 * gap).mean() > 0.3
    largest = np.ptp(values, axis=2).max(axis=1)
    assert (largest > deviation.largest_gap(setting, gap, 100, 0.05)).mean() < 0.05


def test_the_deviation_of_losses() -> None:
    """Losses of b with probability r / b, the worst case: exceeded seldom, and half of it often."""
    rng, rounds, r, b, share = np.random.default_rng(12), 1000, 0.05, 2.0, 0.01
    total = b * rng.binomial(rounds, r / b, size=20_000)
    beyond = float(deviation.excess(rounds * r, b, share))
    e = beyond / (rounds * r)
    assert (1 + e) * math.log1p(e) - e == pytest.approx(b * math.log(1 / share) / (rounds * r))
    assert (total > rounds * r + beyond).mean() <= share
    assert (total > rounds * r + 0.5 * beyond).mean() > share
    assert float(deviation.excess(0.0, b, share)) == 0.0


def test_shared_contexts_are_bounded_from_the_right_side() -> None:
    """Two opposite arms: each is best in a half-space, and E[u u' 1(best)] = I / 2."""
    found = deviation.shared_bounds(standard([[1.0, 0.0], [-1.0, 0.0]], shared=True), 0.01)
    assert (found.lead < 0.5).all()
    assert (found.lead > 0.47).all()
    exact = 2.0 * math.sqrt(2.0 / math.pi)
    assert exact < found.gap < 1.01 * exact


# -- the burn-in ----------------------------------------------------------------------------------


def test_wilks_numbers() -> None:
    """93 runs for two numbers at 95/95, and the exact binomial tail for others."""
    assert kh.theory.runs_needed(1, share=0.05) == 93
    for arms, share in ((2, 0.025), (20, 0.025), (5, 0.3)):
        n = kh.theory.runs_needed(arms, share=share)
        assert binom.cdf(arms, n, share) <= 0.05 < binom.cdf(arms, n - 1, share)
        first = burned(runs=n, information=(1.0,) * arms)
        assert first.failure() <= share
        assert burned(runs=n - 1, information=(1.0,) * arms).failure() > share
    assert burned(runs=2).failure() == 1.0


def burned(**changes: Any) -> kh.theory.BurnIn:
    usual: dict[str, Any] = {"rounds": 10, "runs": 300, "regret": 5.0, "information": (1.0, 2.0)}
    return kh.theory.BurnIn(**{**usual, "digest": "", **changes})


def test_the_box_of_extremes_covers_a_further_run() -> None:
    """Three dependent numbers: the box misses more than its share in at most 5% of samples."""
    rng, n = np.random.default_rng(13), kh.theory.runs_needed(2, share=0.1)
    shared = rng.standard_normal((1500, n, 1))
    x = 0.5 * shared + rng.standard_normal((1500, n, 3))
    scale = math.sqrt(1.25)
    fresh = 0.5 * rng.standard_normal((20_000, 1)) + rng.standard_normal((20_000, 3))
    missed = np.array([(fresh > top).any(axis=1).mean() for top in x.max(axis=1)])
    assert (missed > 0.1 + 0.01).mean() < 0.05 + 4.0 * math.sqrt(0.05 * 0.95 / 1500)
    assert (ndtr(-x.max(axis=1) / scale).sum(axis=1) > 0.02).mean() > 0.5  # it is not always safe


def test_endings_are_those_of_simulate() -> None:
    ends = endings(OWN, THOMPSON, horizon=50, replications=3, seed=4)
    runs = kh.simulate(OWN, THOMPSON, horizon=50, replications=3, seed=4, checkpoints=50)
    assert ends.regret.tolist() == runs.regret[0, :, -1].values.tolist()
    arms = np.diff(runs.pulls[0].values, axis=1, prepend=0.0).argmax(axis=2)
    for k, run in enumerate(arms):
        rounds = OWN.sample(50, seed=np.random.SeedSequence(4, spawn_key=(k,)))
        for i in range(3):
            y = rounds.observations[run == i, i]
            assert ends.precision[k, i] == pytest.approx(np.eye(4) + y.T @ y)


def test_information_is_that_of_standard_normal_observations() -> None:
    """B = prior I + Sigma^1/2 S Sigma^1/2, also where observations do not vary in a direction."""
    flat = kh.LinearWorld(sensing=[[1.0], [2.0]], coefficients=[[1.0], [2.0]], sensing_covariance=0)
    setting = setting_of(flat, kh.Greedy(prior_precision=0.5))
    y = np.array([1.0, 2.0])
    precision = 0.5 * np.eye(2) + 7.0 * np.outer(y, y)
    assert setting.dim == 1
    assert setting.information(precision[None]) == pytest.approx([7.0])


# -- certificates ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> kh.theory.Certificate:
    return kh.theory.certificate(OWN, THOMPSON, 10_000)


def test_it_is_below_the_trivial_bound(found: kh.theory.Certificate) -> None:
    assert found.value < 0.2 * found.trivial
    assert not found.is_vacuous
    assert found.ratio == found.value / found.trivial
    assert found.v == OWN.noise_scale
    assert kh.theory.certificate(OWN, THOMPSON, 100).is_vacuous


@pytest.mark.parametrize("policy", [THOMPSON, kh.Greedy(), kh.ThompsonSampling(v=0.2)], ids=repr)
def test_no_run_exceeds_it(policy: kh.Policy) -> None:
    bound = kh.theory.certificate(OWN, policy, 5_000)
    check = kh.audit.check_certificate(OWN, policy, bound, runs=100)
    assert check.violations == 0
    assert 5.0 < check.slack < 200.0
    # The curve holds at each time.
    worst = check.curves.regret[0].max("replication")
    limits = np.interp(worst.time, bound.times, bound.values)
    assert (worst.values <= limits).all()


def test_a_bound_that_is_too_low_is_found_out(found: kh.theory.Certificate) -> None:
    """A certificate of another world is refused, and runs above a value are counted."""
    with pytest.raises(kh.InvalidValue, match="another world or policy"):
        kh.audit.check_certificate(OWN, kh.Greedy(), found, runs=2)
    with pytest.raises(kh.InvalidValue, match="another world or policy"):
        kh.audit.check_certificate(OWN, THOMPSON, replace(found, value=20.0), runs=2)
    right = kh.theory.certificate(OWN, THOMPSON, 200)
    check = kh.audit.check_certificate(OWN, THOMPSON, right, runs=20)
    final = check.curves.regret[0, :, -1].values
    assert check.violations == 0
    assert check.worst == final.max()
    assert check.mean == pytest.approx(final.mean())
    assert check.slack == right.value / final.max()


def test_delta_is_split_and_every_part_is_shown(found: kh.theory.Certificate) -> None:
    assert sum(step.share for step in found.steps) == pytest.approx(0.05)
    names = [step.name for step in found.steps]
    assert names == [
        *("exploration", "information", "spectrum", "ellipsoid", "confusion", "sum"),
        *("largest gap", "deviation", "regret"),
    ]
    value = {step.name: step.value for step in found.steps}
    assert value["exploration"] == 0.25
    assert value["regret"] == pytest.approx(value["sum"] + value["deviation"])
    assert found.value == pytest.approx(value["regret"])


def test_it_grows_as_it_must() -> None:
    """With the horizon, with certainty and with noise."""

    def at(world: kh.LinearWorld = OWN, policy: kh.Policy = THOMPSON, *, t: int = 5_000,
           delta: float = 0.05) -> float:  # fmt: skip
        return kh.theory.certificate(world, policy, t, delta).value

    horizons = [at(t=t) for t in (2, 3_000, 20_000, 10**6)]
    assert horizons == sorted(horizons)
    assert horizons[-1] < 2.0 * horizons[-2]  # it grows like log T in the end
    deltas = [at(delta=delta) for delta in (0.5, 0.05, 1e-9)]
    assert deltas == sorted(deltas)
    dispersions = [at(policy=kh.ThompsonSampling(v=v)) for v in (0.0, 0.1, 3.0)]
    assert dispersions == sorted(dispersions)
    noises = [at(linear(reward_scale=scale), kh.Greedy()) for scale in (0.0, 2.0)]
    assert noises == sorted(noises)


def test_greedy_is_the_limit_of_small_v() -> None:
    greedy = kh.theory.certificate(OWN, kh.Greedy(), 10_000).value
    assert kh.theory.certificate(OWN, kh.ThompsonSampling(v=0.0), 10_000).value == greedy
    assert kh.theory.certificate(OWN, kh.ThompsonSampling(v=1e-6), 10_000).value == pytest.approx(
        greedy, rel=1e-3
    )


def test_any_prior_and_any_units() -> None:
    """In other units, with the prior in them, the certificate is the same number."""
    usual = kh.theory.certificate(linear(), kh.Greedy(), 5_000)
    scaled = kh.LinearWorld(
        sensing=10.0 * linear().sensing,
        coefficients=linear().coefficients,
        context_covariance=linear().context_covariance,
        sensing_covariance=50.0,
        reward_scale=0.7,
    )
    other = kh.theory.certificate(scaled, kh.Greedy(prior_precision=100.0), 5_000)
    assert other.value == pytest.approx(usual.value, rel=1e-6)
    strong = kh.theory.certificate(linear(), kh.Greedy(prior_precision=50.0), 5_000)
    assert strong.value > usual.value


def test_full_observation_needs_no_sensing_noise() -> None:
    """lambda_m is 0 there, and the theorems promise nothing; a certificate does."""
    full = kh.LinearWorld(
        sensing=np.eye(2), coefficients=[[1.0, 0.0], [0.0, 1.0]], sensing_covariance=0.0
    )
    assert kh.theory.unmet(full)
    assert kh.theory.certificate(full, THOMPSON, 10_000).ratio < 0.3


def test_text_latex_and_json(found: kh.theory.Certificate) -> None:
    text, table = found.explain(), found.to_latex()
    assert str(found) in text
    assert max(map(len, text.splitlines())) <= 100
    for step in found.steps:
        assert step.name in text
        assert step.latex in table
    assert table.count(r"\begin{tabular}") == table.count(r"\end{tabular}") == 1
    assert len(re.findall(r"(?<!\\)&", table)) == 4 * (len(found.steps) + 1)
    for open_one, closed in ("{}", "[]"):
        assert table.count(open_one) == table.count(closed)
    again = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert again["value"] == found.value
    assert again["steps"][1]["name"] == "information"
    assert again["burn_in"] is None
    assert len(again["times"]) == len(again["values"]) == len(again["trivials"])
    assert again["times"][-1] == found.horizon
    assert again["values"][-1] == found.value


def test_the_hybrid_with_a_shared_context() -> None:
    first = kh.audit.burn_in(SHARED, THOMPSON, rounds=2_000, seed=5)
    assert first.runs == kh.theory.runs_needed(3, share=0.025)
    found = kh.theory.certificate(SHARED, THOMPSON, 20_000, burn_in=first)
    assert found.ratio < 0.6
    assert found.confidence == 0.95
    assert "95% confidence" in str(found)
    assert sum(step.share for step in found.steps) == pytest.approx(0.05)
    value = {step.name: step.value for step in found.steps}
    assert value["burn-in"] == first.regret
    assert found.value == pytest.approx(first.regret + value["sum"] + value["deviation"])
    assert found.values[found.times.index(2_000)] == pytest.approx(first.regret)
    check = kh.audit.check_certificate(SHARED, THOMPSON, found, runs=30, seed=6)
    assert check.violations == 0
    with pytest.raises(kh.InvalidValue, match="another world or with another policy"):
        kh.theory.certificate(SHARED, kh.Greedy(), 20_000, burn_in=first)
    with pytest.raises(kh.InvalidValue, match="another world"):
        kh.theory.certificate(OWN, THOMPSON, 20_000, burn_in=first)
    with pytest.raises(kh.InvalidValue, match="fewer rounds than the horizon 2,000, got 2,000"):
        kh.theory.certificate(SHARED, THOMPSON, 2_000, burn_in=first)
    with pytest.raises(kh.InvalidValue, match=r"measure it with .* runs, got 308"):
        kh.theory.certificate(SHARED, THOMPSON, 20_000, 0.01, burn_in=first)


def test_the_hybrid_helps_with_many_arms() -> None:
    many = kh.LinearWorld.random(n_arms=10, context_dim=3, dim=3, seed=2)
    first = kh.audit.burn_in(many, THOMPSON, rounds=3_000, delta=0.2)
    alone = kh.theory.certificate(many, THOMPSON, 20_000, 0.2)
    found = kh.theory.certificate(many, THOMPSON, 20_000, 0.2, burn_in=first)
    assert alone.is_vacuous
    assert found.ratio < 0.8


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (kh.EpsilonGreedy(), "uniformly with a fixed probability"),
        (kh.Uniform(), "uniformly with a fixed probability"),
        (kh.LinUCB(), "adds optimism"),
        (kh.OFUL(r="oracle"), "adds optimism"),
        (kh.GreedyFirst(v=1.0), "changes between two rules"),
        (kh.ThompsonSampling(), "v must be a number or 'oracle', got 'learned'"),
        (kh.ThompsonSampling(v=1.0, sharing="shared"), "sharing='per-arm', got 'shared'"),
        (kh.ThompsonSampling(v=1.0, sharing="hybrid"), "sharing='per-arm', got 'hybrid'"),
        ("thompson", "policy must be a Policy, got 'thompson'"),
    ],
    ids=repr,
)
def test_policies_outside_its_reach(policy: Any, reason: str) -> None:
    with pytest.raises(kh.InvalidValue, match=reason):
        kh.theory.certificate(OWN, policy, 100)


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        (linear(context_distribution="uniform"), "normal contexts"),
        (linear(sensing_distribution="rademacher"), "normal contexts"),
        (linear(reward_distribution="student-t"), "sub-Gaussian noise"),
        (linear(shared_context=True), "give burn_in"),
        (kh.MissingWorld(linear(), share=0.1), "nothing missing, got MissingWorld"),
        (patients(), "got DatasetWorld"),
        (linear(coefficients=np.ones((1, 4))), "two arms or more"),
        (linear(sensing=np.zeros((2, 4)), sensing_covariance=0.0), "observations that vary"),
    ],
)
def test_worlds_outside_its_reach(world: Any, reason: str) -> None:
    with pytest.raises(kh.InvalidValue, match=reason):
        kh.theory.certificate(world, kh.Greedy(), 100)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"horizon": 1}, "horizon must be a whole number of at least 2, got 1"),
        ({"delta": 0.0}, "delta must be above 0"),
        ({"delta": 1.0}, "delta must be"),
        ({"burn_in": 3}, "burn_in must be a BurnIn, got 3"),
        ({"burn_in": burned(), "confidence": 2.0}, "another world"),
    ],
)
def test_numbers_that_cannot_be(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(kh.InvalidValue, match=reason):
        kh.theory.certificate(OWN, kh.Greedy(), **{"horizon": 100, **changes})


@pytest.mark.parametrize(
    "changes",
    [{"rounds": 0}, {"runs": 0}, {"regret": -1.0}, {"information": (1.0,)},
     {"information": (1.0, -1.0)}, {"regret": math.nan}],
)  # fmt: skip
def test_a_burn_in_that_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(kh.InvalidValue, match=f"BurnIn.{next(iter(changes))}"):
        burned(**changes)


def test_a_burn_in_of_other_shapes() -> None:
    with pytest.raises(kh.InvalidValue, match=r"\(runs, 3, 4, 4\), got \(2,\) and \(2, 3, 3, 3\)"):
        kh.theory.BurnIn.measured(
            OWN, kh.Greedy(), rounds=5, regret=[1.0, 2.0], precision=np.zeros((2, 3, 3, 3))
        )
    with pytest.raises(kh.InvalidValue, match="adds optimism"):
        kh.audit.burn_in(OWN, kh.LinUCB(), rounds=10)
    with pytest.raises(kh.InvalidValue, match="LinearWorld, got MissingWorld"):
        kh.audit.burn_in(kh.MissingWorld(OWN, share=0.1), kh.Greedy(), rounds=10)  # type: ignore[arg-type]


def test_units_that_hide_a_direction_are_refused() -> None:
    """With entries in units 1e7 apart, the small one carries most of the values."""
    sensing = np.diag([1.0, 1e-7])
    world = kh.LinearWorld(
        sensing=sensing,
        sensing_covariance=sensing @ sensing / 4.0,
        coefficients=[[0.5, 2.0], [0.5, -2.0]],
    )
    with pytest.raises(kh.InvalidValue, match="comparable units"):
        kh.theory.certificate(world, kh.Greedy(), 2_000)
    # Without any variance in a direction there is nothing to hide.
    flat = kh.LinearWorld(
        sensing=np.diag([1.0, 0.0]),
        sensing_covariance=np.diag([0.25, 0.0]),
        coefficients=[[0.5, 2.0], [-0.5, -2.0]],
    )
    assert kh.theory.certificate(flat, kh.Greedy(), 2_000).value > 0.0


def test_a_subclass_with_rounds_of_its_own_is_refused() -> None:
    class Negated(kh.LinearWorld):
        def rounds(self, state: Any, n: int) -> Any:
            made = super().rounds(state, n)
            return replace(made, rewards=-made.rewards)

    world = Negated(sensing=np.eye(2), coefficients=[[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(kh.InvalidValue, match="has rounds of its own"):
        kh.theory.certificate(world, THOMPSON, 1_000)


def test_a_burn_in_with_other_rewards_is_refused() -> None:
    burned = kh.audit.burn_in(OWN, kh.Greedy(), rounds=50, runs=500, seed=1)
    other = replace(OWN, reward_distribution="rademacher")
    with pytest.raises(kh.InvalidValue, match="another world"):
        kh.theory.certificate(other, kh.Greedy(), 1_000, burn_in=burned)
