"""The repaired bounds: each step of their proofs by hand, by a closed form and by simulation."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, chi2, norm

import keyhole as kh
from keyhole.theory import Constants, bounds
from keyhole.theory.bounds import repaired
from keyhole.theory.limits import largest_margin, lowest_median, lowest_probability
from tests.worlds import linear

C = Constants(
    n_arms=3, dim=4, delta=0.06, r=1.2, v=1.5, c_eta=0.8, eig_min=0.7, eig_max=3.0, tie_density=1.5
)


def default() -> kh.LinearWorld:
    return kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)


# -- the steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slopes", [(1.0,), (0.1, 5.0), (1.0, 1.0, 1.0), (0.01, 0.3, 2.0, 40.0)])
def test_the_choice_of_an_arm_takes_nothing_from_its_second_moment(slopes: Any) -> None:
    """g(z), the probability that arm i wins where its score is z standard deviations.

    E g >= 2^-(N - 1) and E z^2 g >= E g, since g(z) + g(-z) increases in |z|.
    """

    def g(z: float) -> float:
        return float(np.prod(norm.cdf(np.multiply(slopes, z))))

    def mean(of: Any) -> float:
        return float(sum(quad(lambda z: of(z) * norm.pdf(z), a, a + 1.0)[0] for a in range(-9, 9)))

    chosen, squared = mean(g), mean(lambda z: z**2 * g(z))
    assert chosen >= 0.5 ** len(slopes) * (1 - 1e-9)
    assert squared >= chosen * (1 - 1e-9)
    evens = [g(z) + g(-z) for z in np.linspace(0.0, 8.0, 100)]
    assert (np.diff(evens) >= -1e-12).all()


@pytest.mark.parametrize("n_arms", [1, 2, 3, 5])
def test_cut_off_observations_keep_most_of_the_second_moment(n_arms: int) -> None:
    """E[u u' 1(|u| <= l) | i chosen] >= (1 - 0.05) I, for odd scores that select by y.

    The loss is E[u u' 1(|u| > l)] = P(chi2_{d+2} > l^2) I of all observations, and at most
    2^(N - 2) times as much among those of one arm.
    """
    dim, rng = 3, np.random.default_rng(n_arms)
    cut = chi2.isf(repaired.LOST / max(2.0 ** (n_arms - 2), 1.0), dim + 2)
    u = rng.standard_normal((200_000, dim))
    lost = (u[:, 0] ** 2 * ((u**2).sum(axis=1) > cut)).mean()
    assert abs(lost - chi2.sf(cut, dim + 2)) < 0.002
    scores = 3.0 * u[:, 0]
    others = rng.standard_normal((len(u), n_arms - 1)) * np.geomspace(0.3, 20.0, n_arms - 1)
    won = (scores[:, None] > others).all(axis=1) & ((u**2).sum(axis=1) <= cut)
    chosen = (scores[:, None] > others).all(axis=1).sum()
    moment = u[won].T @ u[won] / chosen
    error = math.sqrt(2.0 / chosen)
    assert np.linalg.eigvalsh(moment)[0] > 1.0 - repaired.LOST - 4 * error


def test_the_matrix_chernoff_bound_of_adapted_matrices() -> None:
    """The next matrix depends on the sum so far: it adds where the sum is largest."""
    runs, n, dim, share = 4000, 60, 2, 0.5
    rng = np.random.default_rng(0)
    sums = np.zeros((runs, dim))
    for _ in range(n):  # diagonal X with E X = I / 2, correlated as the sum says
        first = rng.random(runs) < 0.5
        same = sums[:, 0] > sums[:, 1]
        second = np.where(same, ~first, rng.random(runs) < 0.5)
        sums += np.column_stack([first, second])
    missed = (sums.min(axis=1) <= (1 - share) * n / 2).mean()
    limit = dim * math.exp(-repaired.chernoff(share) * n / 2)
    assert limit == pytest.approx(dim * math.exp(-(0.5 + 0.5 * math.log(0.5)) * 30))
    assert missed <= limit + 3 * math.sqrt(limit / runs)


def test_by_hand() -> None:
    """delta = 0.06 makes each of six steps fail with probability 0.01."""
    T = 100.0
    norm_of = 2.0 + math.sqrt(2 * math.log(T * 3 / 0.01))
    L = math.sqrt(3.0) * norm_of
    assert bounds.length_repaired(C, horizon=T) == pytest.approx(L)
    radius = 1.2 * math.sqrt(4 * math.log(1 + T * L**2 / 4) + 2 * math.log(300)) + 0.8
    assert bounds.confidence_radius_repaired(C, horizon=T, n=T) == pytest.approx(radius)
    h = math.sqrt(2 / 0.7) * radius
    assert bounds.h_repaired(C, horizon=T) == pytest.approx(h)
    cut = chi2.isf(0.025, 6)
    k = 0.95 * (9 / 19 + 10 / 19 * math.log(10 / 19)) / cut
    nu = math.log(4 * 3 / 0.01 / (1 - math.exp(-k))) / k
    assert bounds.nu_1_repaired(C) == pytest.approx(nu)
    assert bounds.covariance_bound_repaired(C, n=10) == pytest.approx(2 / 7)
    assert bounds.tau_repaired(C) == pytest.approx(1 + 8 * nu)
    assert bounds.pulls_repaired(C, t=81) == 10
    assert bounds.theorem_1_repaired(C, horizon=T, t=81) == pytest.approx(h / math.sqrt(10))
    s = 2 * 1.5 * L / math.sqrt(0.7)
    found = bounds.suboptimal_probability_repaired(C, horizon=T, t=81)
    assert found == pytest.approx(1.5 * (2 * L * h + s / math.sqrt(2 * math.pi)) / math.sqrt(10))
    # Before its time, and where the loss of a round has no better bound, it is 2 c_eta L a round.
    assert bounds.theorem_2_repaired(C, horizon=T) == pytest.approx(2 * 0.8 * L * T)


def test_the_regret_late_by_hand() -> None:
    T = 1e12
    L = float(bounds.length_repaired(C, horizon=T))
    h = float(bounds.h_repaired(C, horizon=T))
    b, s = 2 * L * h, 2 * 1.5 * L / math.sqrt(0.7)
    k = 8 * 1.5 * (b**2 / 2 + b * s / math.sqrt(2 * math.pi) + s**2 / 4)
    turn = max(float(bounds.tau_repaired(C)), 1 + k / (1.6 * L))
    logs = math.log(T / (turn - 1))
    g = math.sqrt(2 / 0.7) * (1.5 * L / math.sqrt(3)) + h
    chance = 2 * L * g * math.sqrt(4 * logs * math.log(100))
    assert bounds.theorem_2_repaired(C, horizon=T) == pytest.approx(
        1.6 * L * turn + k * logs + chance
    )


@pytest.mark.parametrize(("b", "s"), [(0.0, 1.0), (1.0, 0.5), (3.0, 2.0)])
def test_the_integrals_over_gaps(b: float, s: float) -> None:
    """Of min(1, Q((x - b) / s)) and of x times it, over x > 0."""

    def lost(x: float) -> float:
        return 1.0 if x < b else float(norm.sf((x - b) / s))

    first, second = (
        quad(lambda x, p=p: x**p * lost(x), 0, b + 12 * s, points=[b])[0] for p in (0, 1)
    )
    assert first == pytest.approx(b + s / math.sqrt(2 * math.pi))
    assert second == pytest.approx(b**2 / 2 + b * s / math.sqrt(2 * math.pi) + s**2 / 4)


# -- against simulation ---------------------------------------------------------------------------


def smallest(world: kh.LinearWorld, policy: kh.Policy, horizon: int, seed: int) -> tuple[Any, Any]:
    """The smallest eigenvalue of B_i over n_i at the end, in units of Sigma_y, and the pulls."""
    runs = kh.simulate(
        world, {"p": policy}, horizon=horizon, replications=1, seed=seed,
        checkpoints=range(1, horizon + 1), progress=False,
    )  # fmt: skip
    pulls = runs.pulls.sel(policy="p").values[0]
    arms = np.diff(pulls, axis=0, prepend=0.0).argmax(axis=1)
    from keyhole.core import Streams, child_seed, seed_sequence

    rounds = world.sample(horizon, Streams(child_seed(seed_sequence(seed), 0)))
    whiten = np.linalg.inv(np.linalg.cholesky(world.observation_covariance))
    least = []
    for i in range(world.n_arms):
        row = 0 if world.shared_context else i
        u = rounds.observations[arms == i, row] @ whiten.T
        least.append(np.linalg.eigvalsh(u.T @ u)[0] / max(len(u), 1))
    return np.array(least), pulls[-1]


def test_eigenvalues_and_pulls_grow_as_repaired() -> None:
    """Also for Greedy, whose samples are its estimates; and not with a shared context."""
    world = default()
    for policy in (kh.ThompsonSampling(v="oracle"), kh.Greedy()):
        for seed in range(4):
            least, pulls = smallest(world, policy, 3000, seed)
            assert (least > 0.5).all()  # nu_1 is 1.3e3 pulls; it is so long before
            assert (pulls >= bounds.pulls_repaired(Constants(n_arms=3, dim=4), t=3001)).all()
    angle = 2 * np.pi * np.arange(12) / 12
    cones = kh.LinearWorld(
        sensing=0.5 * np.eye(2),
        coefficients=np.column_stack([np.cos(angle), np.sin(angle)]),
        shared_context=True,
    )
    least, pulls = smallest(cones, kh.ThompsonSampling(v="oracle"), 6000, 1)
    assert least[pulls.argmax()] < 0.4  # the control


def test_eigenvalues_and_pulls_in_random_worlds() -> None:
    """Any N, dimension, noise and v: B >= n Sigma_y / 2 and n >= t / 2^N, with room to spare."""
    rng = np.random.default_rng(3)
    for seed in range(25):
        n_arms, dim, context_dim = (int(one) for one in rng.integers([2, 1, 1], 6))
        world = kh.LinearWorld.random(
            n_arms=n_arms, context_dim=context_dim, dim=dim, seed=seed,
            sensing_scale=float(rng.choice([0.3, 1.0])),
        )  # fmt: skip
        v = float(rng.choice([0.02, 1.0, 5.0])) * world.noise_scale
        least, pulls = smallest(world, kh.ThompsonSampling(v=v), 4000, seed)
        assert (least[pulls >= 200] > 0.5).all(), seed
        assert (pulls >= 4000 / 2**n_arms).all(), seed


def test_errors_and_regret_stay_below_the_repaired_bounds() -> None:
    """From tau on and before: 12 replications of 40,000 rounds, tau is 1.1e4."""
    world = default()
    constants = kh.theory.instance(world, trials=2000)
    promises = kh.theory.Promises(constants, horizon=40_000)
    runs = kh.simulate(
        world, kh.ThompsonSampling(v="oracle"), horizon=40_000, replications=12, seed=5,
        checkpoints=[20_000, 40_000], progress=False,
    )  # fmt: skip
    error = float(runs.error.isel(time=-1).max())
    bound = promises.named["theorem_1_repaired"].value
    assert bound is not None
    assert error < bound < 10 * error + 1.0  # not vacuous: |eta| is about 1
    regret = promises.named["theorem_2_repaired"].value
    assert regret is not None
    assert float(runs.regret.isel(time=-1).max()) < regret
    assert promises.named["theorem_2_repaired"].status == "repaired"


def test_a_shared_parameter_begins_sooner() -> None:
    assert bounds.shared_nu_1_repaired(C) < bounds.nu_1_repaired(C)
    assert bounds.shared_theorem_repaired(C, horizon=1e8) < bounds.theorem_2_repaired(
        C, horizon=1e8
    )


def test_repaired_bounds_grow_and_fall_as_they_must() -> None:
    horizons = np.geomspace(10.0, 1e15, 60)
    for theorem in (bounds.theorem_2_repaired, bounds.shared_theorem_repaired):
        assert (np.diff(theorem(C, horizon=horizons)) > 0.0).all()
    # Like (log T)^3: the exponent of log T comes down to 3.
    far = np.array([1e100, 1e200, 1e300])
    slope = np.diff(np.log(bounds.theorem_2_repaired(C, horizon=far))) / np.diff(
        np.log(np.log(far))
    )
    assert abs(slope[-1] - 3.0) < 0.15
    assert bounds.nu_1_repaired(replace(C, delta=1e-6)) > bounds.nu_1_repaired(C)
    assert bounds.nu_1_repaired(replace(C, eig_min=0.0)) == np.inf
    assert bounds.theorem_2_repaired(replace(C, n_arms=5000), horizon=100.0) == np.inf
    shared = kh.theory.instance(linear(shared_context=True), trials=2000)
    promises = kh.theory.Promises(shared, horizon=1000)
    assert promises.named["theorem_2_repaired"].start == np.inf
    assert promises.named["theorem_2_repaired"].status == "open"
    uniform = kh.theory.instance(linear(context_distribution="uniform"), trials=2000)
    assert uniform.eig_min.safe == 0.0
    assert uniform.tie_density.safe == uniform.eig_max.safe == np.inf


# -- safe values ----------------------------------------------------------------------------------


def test_safe_values_are_on_the_safe_side() -> None:
    world = kh.LinearWorld(sensing=[[1.0]], coefficients=[[1.0], [-1.0]], sensing_covariance=1.0)
    e = float(world.eta[0, 0])
    found = kh.theory.instance(world, trials=20_000)
    # kappa is e, and C is 1 / (sqrt(2) e): see test_theory.
    assert 0.95 * e < found.kappa.safe < e
    assert found.kappa.safe < found.kappa.value
    assert found.margin.safe == pytest.approx(1 / (math.sqrt(2) * e))
    used = found.constants()
    assert (used.kappa, used.margin) == (found.kappa.safe, found.margin.safe)
    signs = kh.theory.instance(
        kh.LinearWorld(
            sensing=[[1.0]], coefficients=[[1.0], [-1.0]], context_distribution="rademacher"
        ),
        trials=2000,
    )
    assert signs.margin.safe == np.inf
    assert "at least" in signs.margin.meaning
    assert signs.p[0].safe < signs.p[0].value


@pytest.mark.parametrize("shared", [False, True])
def test_the_largest_margin_is_not_exceeded(shared: bool) -> None:
    world = kh.LinearWorld.random(n_arms=3, context_dim=3, dim=3, seed=2, shared_context=shared)
    p, eta, S = world.optimality[0], world.eta, world.observation_covariance
    limit = largest_margin(eta, S, p, shared_context=shared)
    found = kh.theory.instance(world, trials=100_000)
    assert found.margin.value + 3 * found.margin.error < limit < 10 * found.margin.value
    assert largest_margin(eta, S, np.full(3, np.nan), shared_context=shared) == 0.0


def test_limits_of_medians_and_probabilities_cover() -> None:
    rng, runs, miss = np.random.default_rng(1), 4000, 0.05
    low = np.array([lowest_median(rng.exponential(size=41), miss=miss) for _ in range(runs)])
    rank = 15  # P(Binomial(41, 1/2) < 15) = 0.030, and of 16 it is 0.059
    assert binom.cdf(rank - 1, 41, 0.5) <= miss < binom.cdf(rank, 41, 0.5)
    missed = (low > math.log(2)).mean()
    expected = binom.cdf(rank - 1, 41, 0.5)
    assert abs(missed - expected) < 4 * math.sqrt(expected / runs)
    assert lowest_median(np.ones(0)) == lowest_median(np.ones(9)) == 0.0
    assert lowest_median(np.ones(10)) == 1.0  # 2^-10 is below 0.001
    wins = rng.binomial(200, 0.1, size=runs)
    shares = wins / 200
    error = np.maximum(np.sqrt(shares * (1 - shares) / 200), 1 / 200)
    low = np.array([lowest_probability(*one, miss=miss) for one in zip(shares, error, strict=True)])
    assert (low > 0.1).mean() <= miss + 3 * math.sqrt(miss / runs)
    assert (low > 0.1).mean() > miss / 4
    assert lowest_probability(1.0, 1e-5) == pytest.approx(1e-3 ** (1 / 1e5))
