"""What docs/paper.md says of the paper, each point by a value, an identity or a counterexample.

Points with tests elsewhere: R2 outside normal worlds, a shared context, one tail, eq:term2 and
lem:subg in one dimension are in test_theory; the repairs are in test_repaired.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import chi2, nbinom, norm

import keyhole as kh
from keyhole.theory import Constants, bounds

C = Constants(
    n_arms=3, dim=4, r=1.0, v=1.0, c_eta=0.5, c_y=1.0, kappa=0.1, margin=2.0, lambda_m=1.0,
    p_min=0.3,
)  # fmt: skip


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_ass_subg_cannot_hold_for_every_eta() -> None:
    """x = y = 1 for certain: x mu - y eta is the number mu - eta, sub-Gaussian about 0 only if 0.

    exp(l c) <= exp(l^2 R^2 / 2) for all l needs c = 0.
    """
    c, R = 0.1, 10.0
    at = c / R**2  # where l c - l^2 R^2 / 2 is largest
    assert math.exp(at * c) > math.exp(at**2 * R**2 / 2)


def test_the_sign_of_eq_r() -> None:
    """E exp(nu w) of a normal w is exp(nu^2 R^2 / 2): above 1, and exp(-nu^2 R^2 / 2) is below."""
    found = quad(lambda w: math.exp(0.7 * w) * norm.pdf(w, scale=1.3), -20, 20)[0]
    assert found == pytest.approx(math.exp(0.7**2 * 1.3**2 / 2))
    assert found > 1.0 > math.exp(-(0.7**2) * 1.3**2 / 2)


def test_the_prior_adds_a_term_to_lem_subg(rng: np.random.Generator) -> None:
    """mean - eta = B^-1 (S - eta), where B^-1 S is printed."""
    y, eta, noise = rng.standard_normal((9, 3)), np.array([0.4, -1.0, 2.0]), rng.standard_normal(9)
    B, S = np.eye(3) + y.T @ y, y.T @ noise
    mean = np.linalg.solve(B, y.T @ (y @ eta + noise))
    np.testing.assert_allclose(mean - eta, np.linalg.solve(B, S - eta), rtol=1e-10)
    assert np.linalg.norm(mean - eta - np.linalg.solve(B, S)) > 0.01
    # So |mean - eta|_B <= |S|_{B^-1} + |eta|, since B^-1 <= I.
    left = math.sqrt((mean - eta) @ B @ (mean - eta))
    assert left <= math.sqrt(S @ np.linalg.solve(B, S)) + np.linalg.norm(eta)


def test_the_mixture_of_lem_subg_has_covariance_1() -> None:
    """The integral over a free vector of covariance 1 gives det B; v^2 gives det(1 + v^2 V)."""
    S, V, R = 1.7, 3.0, 1.3

    def mixed(variance: float) -> float:
        def at(u: float) -> float:
            density = norm.pdf(u, scale=math.sqrt(variance))
            return float(math.exp(u * S / R - u**2 * V / 2) * density)

        return float(quad(at, -30, 30)[0])

    assert mixed(1.0) == pytest.approx((1 + V) ** -0.5 * math.exp(S**2 / (1 + V) / (2 * R**2)))
    v = 2.0
    other = (1 + v * V) ** -0.5 * math.exp(S**2 / (V + 1 / v) / (2 * R**2))
    assert mixed(v) == pytest.approx(other)


def test_the_choice_selects_the_sensing_noise() -> None:
    """eq:vt: E[y_1^2 | x, arm 1 chosen] is 0.61, where 1, the variance of the noise, is claimed.

    x_1 = -1, x_2 = 0.5, y_i = x_i + noise, and the arm with the larger y is chosen.
    """

    def weight(y: float) -> float:
        return float(norm.pdf(y + 1.0) * norm.cdf(y - 0.5))

    mean = quad(lambda y: y**2 * weight(y), -12, 12)[0] / quad(weight, -12, 12)[0]
    assert mean == pytest.approx(0.6088, abs=1e-4)


def test_one_direction_is_not_all(rng: np.random.Generator) -> None:
    """50 directions, 100 observations: z'B z / n is near 1 for one z, and 0.12 for the worst."""
    y = rng.standard_normal((40, 100, 50))
    fixed = (y[:, :, 0] ** 2).mean(axis=1)
    worst = np.linalg.eigvalsh(np.einsum("rni,rnj->rij", y, y) / 100)[:, 0]
    assert (fixed > 0.5).all()
    assert (worst < 0.2).all()


def test_cut_off_observations_have_a_smaller_second_moment(rng: np.random.Generator) -> None:
    y = rng.standard_normal((400_000, 3))
    kept = ((y**2).sum(axis=1) <= 9.0) * y[:, 0] ** 2
    assert abs(kept.mean() - chi2.cdf(9.0, 5)) < 4 * kept.std() / math.sqrt(len(kept))
    assert chi2.cdf(9.0, 5) < 0.9


def test_the_comparison_in_lem_eta1_is_false_and_its_end_is_true() -> None:
    """P(|g| > e) <= P(sqrt(d) |Z| > e) fails for short e; P(|g| > e) <= 2 exp(-e^2 / (2 d)) not."""
    assert chi2.sf(0.02, 2) > 2 * norm.sf(math.sqrt(0.01))
    e = np.linspace(0.0, 30.0, 3001)
    for d in (1, 2, 3, 10, 100):
        assert (chi2.sf(e**2, d) <= 2 * np.exp(-(e**2) / (2 * d)) * (1 + 1e-12)).all()


def test_the_integral_before_eq_prob1_is_half_of_what_is_printed() -> None:
    """With P(gap < u) = C u: 4 v C sqrt(pi / (lambda t)), where 8 is printed."""
    v, C, lam, t = 1.3, 0.4, 0.7, 50.0
    a = t * lam / (64 * v**2)
    whole = quad(lambda u: 2 * a * u * math.exp(-a * u**2) * C * u, 0, np.inf)[0]
    assert whole == pytest.approx(4 * v * C * math.sqrt(math.pi / (lam * t)))


def test_lem_nineq_is_of_no_one_tail_and_of_no_two() -> None:
    """Two tails: the upper bound is false from z = 1.184 on. One: the lower, up to there."""

    def upper(z: float) -> float:
        return float(2 * norm.sf(z) - math.exp(-(z**2) / 2) / (math.sqrt(math.pi) * z))

    assert brentq(upper, 1.0, 3.0) == pytest.approx(1.184, abs=1e-3)
    assert upper(2.0) > 0.0
    z = np.linspace(1.0, 30.0, 2000)  # what is true of one tail, and enough for eq:phiinv
    assert (norm.sf(z) >= np.exp(-(z**2) / 2) / (2 * math.sqrt(2 * math.pi) * z)).all()
    # 1 / Phi(-1) - 1 is 5.3, below 7, where 63 is printed.
    assert 1 / norm.cdf(-1) - 1 == pytest.approx(5.30, abs=0.01)


def test_eq_cdfhat_is_false_before_any_pull() -> None:
    """mean = 0 and B = I: y'(eta - mean) is the number y'eta, and a tail below 1 is claimed."""
    eta, v = np.array([3.0, 4.0]), 1.0
    y = eta / 5.0
    theta = 4.99
    assert y @ eta > theta  # with probability 1
    assert math.exp(-(theta**2) / (2 * (y @ y) * v**2)) < 1e-5


def test_eq_cdfhat_ignores_that_choices_depend_on_rewards(rng: np.random.Generator) -> None:
    """Arm 1 is pulled once, and not in the next 20 rounds: so its reward was low, 0.38 times in 1.

    Both arms are worth 0, y = 10 always, R = v = 1. P(estimate 2 widths too low | arms) <= exp(-2)
    = 0.135 is claimed.
    """
    runs, y = 200_000, 10.0
    B1 = 1 + y**2
    first = y * rng.standard_normal(runs) / B1
    B2, moment, so = 1.0, np.zeros(runs), np.ones(runs, dtype=bool)
    for _ in range(20):
        one = first + rng.standard_normal(runs) / math.sqrt(B1)
        two = moment / B2 + rng.standard_normal(runs) / math.sqrt(B2)
        so &= two > one
        moment, B2 = moment + y * rng.standard_normal(runs), B2 + y**2
    low = -first[so] * math.sqrt(B1) > 2.0
    error = math.sqrt(low.mean() * (1 - low.mean()) / len(low))
    assert low.mean() - 4 * error > math.exp(-2)
    assert low.mean() == pytest.approx(0.38, abs=4 * error)


def test_pulls_given_a_clearly_best_arm_are_more() -> None:
    """Arm i is pulled where A happens, P(A) = 0.2: sum of P(a = i, n_i < 5 | A) is 5 / 0.2.

    The sum over rounds of P(n_i < 5) is the expected number of rounds until the fifth pull.
    """
    p, nu = 0.2, 5
    rounds = np.arange(2000)
    few = nbinom.sf(rounds - nu, nu, p)  # the fifth pull comes after these rounds
    assert few.sum() == pytest.approx(nu / p)


def test_events_of_lem_term2_need_a_quarter() -> None:
    """With half of the gap, (E1)^c and E2 leave sample - mean > 0 and not a quarter of the gap."""
    value, gap = 1.0, 0.4
    mean, sample = value + 0.5 * gap, value + 0.51 * gap
    assert mean <= value + 0.5 * gap  # E2
    assert sample > value + 0.5 * gap  # not E1
    assert sample - mean < gap / 4


def test_lem_ni_needs_128() -> None:
    p, delta = 0.3, 0.05
    for factor, enough in ((128.0, True), (32.0, False)):
        t = factor / p**2 * math.log(1 / delta)
        assert (math.sqrt(2 * t * math.log(1 / delta)) <= p * t / 8 * (1 + 1e-12)) is enough


def test_theorem_2_is_not_linear_in_v() -> None:
    """By its own constants it grows like v^5: v^2 of nu_2 and v^3 of the odds."""
    values = [bounds.theorem_2(replace(C, v=v), horizon=1e4) for v in (1e6, 1e7)]
    assert math.log10(values[1] / values[0]) == pytest.approx(5.0, abs=0.01)


def test_4_c_m_is_the_step_before() -> None:
    """16 C / sqrt(p) (2 v sqrt(pi / lambda) + h) = 4 C c_M / sqrt(p), where 16 is printed."""
    h = bounds.h(C, horizon=1e4)
    step = 16 * (2 * C.v * math.sqrt(math.pi / C.lambda_m) + h)
    assert step == pytest.approx(4 * bounds.c_m(C, horizon=1e4))


def test_a_margin_does_not_exclude_ties() -> None:
    """Two equal arms of a shared context satisfy ass:mar with any C, and eq:kappa with no kappa."""
    twins = kh.LinearWorld(
        sensing=np.eye(2), coefficients=[[1.0, 0.0], [1.0, 0.0]], shared_context=True
    )
    found = kh.theory.instance(twins, trials=2000)
    assert (found.margin.value, found.margin.safe, found.kappa.value) == (0.0, 0.0, 0.0)
