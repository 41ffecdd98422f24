"""The paper's bounds against numbers worked out by hand and at high precision, and their shapes."""

import itertools
import math
from dataclasses import fields, replace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import norm

import keyhole as kh
from keyhole.theory import STATEMENTS, Constants, bounds
from tests.worlds import linear

# An instance whose numbers are easy: T N d_y / delta and the like are powers of e or small.
BASE: dict[str, Any] = {
    "horizon": 1000.0,
    "n_arms": 4,
    "dim": 3,
    "v": 1.5,
    "r": 1.2,
    "c_eta": 0.8,
    "c_y": 1.1,
    "kappa": 0.3,
    "margin": 2.0,
    "lambda_m": 0.5,
    "p": 0.2,
    "p_min": 0.1,
    "delta": 0.05,
    "eig_min": 0.7,
    "eig_max": 3.0,
    "tie_density": 1.5,
    "longest": 7.0,
    "largest": 5.0,
    "t": 500.0,
    "n": 90.0,
}
REPAIRED = [name for name in bounds.__all__ if name.endswith("_repaired")]
FUNCTIONS = [name for name in bounds.__all__ if name not in REPAIRED]
FIELDS = [field.name for field in fields(Constants)]


def value(name: str, **changes: Any) -> Any:
    """A bound at the base instance, with some of its constants and arguments changed."""
    given = {**BASE, **changes}
    if name == "length" and "longest" not in changes:
        given["longest"] = None  # the formula, and not what stands in its place
    c = Constants(**{field: given[field] for field in FIELDS})
    return getattr(bounds, name)(c, **{each: given[each] for each in STATEMENTS[name].takes})


def test_every_bound_says_what_it_takes() -> None:
    for name, one in STATEMENTS.items():
        shown = getattr(bounds, name).__doc__
        assert one.bound is getattr(bounds, name)
        for argument in ("c", *one.takes):
            assert f"\n{argument} : " in shown, name


# -- by hand --------------------------------------------------------------------------------------


def test_truncation_by_hand() -> None:
    """2 T N d / delta = e^8 makes sqrt(2 log) 4."""
    delta = 2 * 10 * 3 * 2 / math.exp(8)
    c = Constants(n_arms=3, dim=2, c_y=0.5, delta=delta)
    assert bounds.truncation(c, horizon=10) == pytest.approx(2.0)
    assert bounds.length(c, horizon=10) == pytest.approx(2.0 * math.sqrt(2))
    known = replace(c, longest=0.7)
    assert bounds.length(known, horizon=[10, 20]).tolist() == [0.7, 0.7]


def test_the_radius_by_hand() -> None:
    """(1 + 4 x 1) / delta = e^2 and d = 8 make R sqrt(16) + c_eta."""
    delta = 5 / math.exp(2)
    c = Constants(n_arms=1, dim=8, r=0.5, c_eta=0.25, longest=2.0, delta=delta)
    assert bounds.confidence_radius(c, horizon=1, n=1) == pytest.approx(2.25)


def test_the_radius_covers_in_one_dimension_too() -> None:
    """y = 1, so |mean - eta|_B = |sum of noise - eta| / sqrt(1 + n): covered for all n at once."""
    n, runs, delta = 1000, 2000, 0.05
    noise = np.random.default_rng(1).standard_normal((runs, n)).cumsum(axis=1)
    seen = np.abs(noise) / np.sqrt(1.0 + np.arange(1, n + 1))
    c = Constants(n_arms=1, dim=1, r=1.0, c_eta=0.0, longest=1.0, delta=delta)
    radius = bounds.confidence_radius(c, horizon=n, n=np.arange(1, n + 1))
    missed = (seen > radius).any(axis=1).mean()
    assert missed <= delta + 3 * math.sqrt(delta * (1 - delta) / runs)
    printed = np.sqrt(np.log((1.0 + np.arange(1, n + 1)) / delta))
    assert (seen > printed).any(axis=1).mean() > 2 * delta


def test_eigenvalues_by_hand() -> None:
    c = Constants(n_arms=2, dim=1, longest=2.0, lambda_m=4.0, delta=10 / math.e**3)
    assert bounds.nu_1(c, horizon=5) == pytest.approx(3 * 8 * 16 / 16)
    assert bounds.covariance_bound(replace(c, lambda_m=0.5), n=10) == pytest.approx(0.4)


# -- at 30 digits, written out from the paper ------------------------------------------------------


def written_out(b: dict[str, Any]) -> dict[str, Any]:
    """All bounds, line by line as the appendices have them, slips corrected as the notes say."""
    mp.mp.dps = 30
    T, N, d, v, R = (mp.mpf(b[k]) for k in ("horizon", "n_arms", "dim", "v", "r"))
    ce, cy, ka, C, lm = (mp.mpf(b[k]) for k in ("c_eta", "c_y", "kappa", "margin", "lambda_m"))
    p, pm, de, L, t, n = (mp.mpf(b[k]) for k in ("p", "p_min", "delta", "longest", "t", "n"))
    log, sqrt, pi = mp.log, mp.sqrt, mp.pi
    nu1 = 8 * L**4 * log(T * N / de) / lm**2
    nu2 = max(nu1, 64 * v**2 / (ka**2 * lm) * log(T))
    inner = 16 * v**4 / ka**3 + ce * sqrt(1 + L**2 * nu2) / 2
    ell = N * (nu2 * (2 * sqrt(pi) / v * inner + 65) + 7)
    h = sqrt(2 / lm) * (R * sqrt(d * log((1 + T * L**2) / de)) + ce)
    spread = v * sqrt(2 * d * log(2 * T * N / de)) + R * sqrt(d * log((1 + T * L**2) / de)) + ce
    cm = 8 * v * sqrt(pi / lm) + 4 * h
    chance = sqrt(4 * log(T) * log(1 / de))

    def tau(share: Any) -> Any:
        return max(4 / share * nu1, 4 * ell, 128 / share**2 * log(1 / de))

    g1 = sqrt(8 / (pm * lm)) * spread
    g = 2 * sqrt(2 / lm) * spread
    odds = 2 * sqrt(pi) / v * (16 * v**4 / ka**3 + ce * sqrt(1 + L**2 * n) / 2) + 63
    # Observations that are never longer than 5, whatever the horizon.
    bounded = {} if b["longest"] == b["largest"] else written_out({**b, "longest": b["largest"]})
    return {
        "bounded_corollary": bounded.get("theorem_2"),
        "truncation": cy * sqrt(2 * log(2 * T * N * d / de)),
        "length": sqrt(d) * cy * sqrt(2 * log(2 * T * N * d / de)),
        "confidence_radius": R * sqrt(d * log((1 + L**2 * n) / de)) + ce,
        "nu_1": nu1,
        "covariance_bound": 2 / (lm * n),
        "h": h,
        "estimation_error": h / sqrt(n),
        "sampling_error": sqrt(2 / lm) * spread / sqrt(n),
        "nu_2": nu2,
        "missed_odds": odds,
        "term_1": nu2 * (2 * sqrt(pi) / v * inner + 63) + 4,
        "term_2": nu2 + 2,
        "term_3": nu2 + 1,
        "ell": ell,
        "expected_pulls": p / 2 * (t - ell),
        "tau": tau(p),
        "theorem_1": sqrt(8 / (lm * p)) * (R * sqrt(d * log((1 + T * L**2) / de)) + ce) / sqrt(t),
        "g_1": g1,
        "c_m": cm,
        "suboptimal_probability": N * 16 * C / sqrt(pm) * (2 * v * sqrt(pi / lm) + h) / sqrt(t),
        "theorem_2": 2 * ce * L * tau(pm)
        + 2 * L * g1 * (chance + 4 * cm * C * N / sqrt(pm) * log(T)),
        "g": g,
        "shared_suboptimal_probability": 2 * cm * C * N / sqrt(t),
        "shared_theorem": 2 * ce * L * nu1 + L * g * (chance + 2 * cm * C * N * log(T)),
    }


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lambda_m": 5.0, "longest": 0.6, "kappa": 0.05},
        {"p": 1e-4, "p_min": 1e-4, "longest": 1.0},
    ],
)
def test_every_bound_against_its_formula(name: str, changes: dict[str, Any]) -> None:
    expected = written_out({**BASE, **changes})
    assert set(expected) == set(FUNCTIONS)
    if name == "length":
        changes = {**changes, "longest": None}
    assert float(value(name, **changes)) == pytest.approx(float(expected[name]), rel=1e-12)


def test_each_branch_of_the_maxima_is_met() -> None:
    """The instances above are not all on one side of nu_2 and tau."""
    assert value("nu_2") == value("nu_1")
    assert value("nu_2", lambda_m=5.0, longest=0.6, kappa=0.05) > value(
        "nu_1", lambda_m=5.0, longest=0.6
    )
    small = {"p": 1e-4, "longest": 1.0}
    assert value("tau", **small) == pytest.approx(128 * math.log(20) / 1e-8)


# -- shapes ---------------------------------------------------------------------------------------

RISING = {
    "horizon": [
        n
        for n in FUNCTIONS
        if n not in ("covariance_bound", "confidence_radius", "missed_odds", "expected_pulls")
    ],
    "n": ["missed_odds"],
    "c_eta": ["confidence_radius", "h", "ell", "tau", "theorem_1", "theorem_2", "shared_theorem"],
    "r": ["confidence_radius", "estimation_error", "theorem_1", "theorem_2", "shared_theorem"],
    "longest": ["nu_1", "nu_2", "ell", "tau", "theorem_2", "shared_theorem"],
    "n_arms": ["truncation", "nu_1", "ell", "theorem_2", "shared_theorem"],
}
FALLING = {
    "delta": [
        n for n in FUNCTIONS if n not in ("covariance_bound", "missed_odds", "expected_pulls")
    ],
    "lambda_m": ["covariance_bound", "nu_1", "h", "theorem_1", "theorem_2", "shared_theorem"],
    "kappa": ["ell", "tau", "theorem_2"],
    "p": ["theorem_1"],
    "p_min": ["g_1", "theorem_2", "suboptimal_probability"],
    "n": ["covariance_bound", "estimation_error", "sampling_error"],
    "t": ["theorem_1", "suboptimal_probability"],
}


@pytest.mark.parametrize(
    ("argument", "name", "sign"),
    [(a, n, 1) for a, names in RISING.items() for n in names]
    + [(a, n, -1) for a, names in FALLING.items() for n in names],
)
def test_monotone(argument: str, name: str, sign: int) -> None:
    steps = [value(name, **{argument: BASE[argument] * factor}) for factor in (1, 1.5, 2, 4)]
    assert (sign * np.diff(steps) > 0).all()


def test_vectorised_over_time() -> None:
    t = np.array([10.0, 100.0, 1000.0])
    np.testing.assert_allclose(
        value("theorem_1", t=t), [value("theorem_1", t=one) for one in t], rtol=1e-14
    )
    horizons = np.array([100.0, 1e6])
    found = value("theorem_2", horizon=horizons, longest=None)
    singly = [value("theorem_2", horizon=one, longest=None) for one in horizons]
    np.testing.assert_allclose(found, singly, rtol=1e-14)


def test_rates() -> None:
    """Regret's bound grows like (log T)^5.5 with the L of the theorem, and (log T)^2 without."""
    far = np.array([1e100, 1e200, 1e300])
    theorem = np.log(value("theorem_2", horizon=far, longest=None))
    corollary = np.log(value("bounded_corollary", horizon=far, largest=1.0, kappa=1e-3))
    powers = np.diff(np.log(np.log(far)))
    # As T grows the slope comes to the power from either side; at these T it is within 0.1.
    assert abs(np.diff(theorem)[-1] / powers[-1] - 5.5) < 0.1
    assert np.diff(corollary)[-1] / powers[-1] < 2.05
    np.testing.assert_allclose(
        value("theorem_1", t=400.0) / value("theorem_1", t=100.0), 0.5, rtol=1e-12
    )


def test_what_is_not_given_promises_nothing() -> None:
    """A constant's default is such that the bounds that depend on it are infinite."""
    bare = Constants(n_arms=4, dim=3)
    point = {name: BASE[name] for name in ("horizon", "t", "n", "p", "largest")}
    found = {name: one.at(bare, **point) for name, one in STATEMENTS.items()}
    assert found.pop("expected_pulls") == -np.inf
    assert found.pop("pulls_repaired") == (BASE["t"] - 1) / 16
    assert set(found.values()) == {np.inf}
    whole = {name: BASE[name] for name in FIELDS}
    for name in ("p_min", "kappa", "margin", "lambda_m", "c_eta", "r", "v"):
        without = Constants(**{field: one for field, one in whole.items() if field != name})
        assert bounds.theorem_2(without, horizon=1000.0) == np.inf, name


def test_without_sensing_noise_nothing_is_promised() -> None:
    for name in ("nu_1", "h", "theorem_1", "theorem_2", "shared_theorem", "covariance_bound"):
        assert value(name, lambda_m=0.0) == np.inf


# -- the constants of an instance ------------------------------------------------------------------


def test_constants_that_have_formulas() -> None:
    world = linear()
    found = kh.theory.instance(world, trials=2000)
    assert found.lambda_m.value == pytest.approx(0.5)
    assert found.c_eta.value == pytest.approx(np.linalg.norm(world.eta, axis=1).max())
    assert found.c_y.value**2 == pytest.approx(np.diag(world.observation_covariance).max())
    assert found.r.value == pytest.approx(world.noise_scale)
    assert [one.value for one in found.p] == pytest.approx(world.optimality[0].tolist())
    assert all(one.error == 0.0 for one in found.p)
    assert found.p_min.value == min(world.optimality[0])
    assert found.named["p_2"] is found.p[1]
    for one in found.named.values():
        assert one.label
        assert one.meaning


def test_kappa_and_the_margin_of_two_arms_on_a_line() -> None:
    """One number is seen of each arm, eta_1 = -eta_2 = e: the gap is e |y1 + y2| / |(y1, y2)|.

    Its angle is uniform, so it is sqrt(2) e |cos a|: the median is e, and the density at 0,
    which is also the steepest P(gap <= u) / u can be near 0, is sqrt(2) / (pi e); at the far end
    u = sqrt(2) e the share is 1 and the ratio 1 / (sqrt(2) e), which is larger.
    """
    world = kh.LinearWorld(sensing=[[1.0]], coefficients=[[1.0], [-1.0]], sensing_covariance=1.0)
    e = float(world.eta[0, 0])
    found = kh.theory.instance(world)
    assert abs(found.kappa.value - e) < 4 * found.kappa.error
    assert found.kappa.error == pytest.approx(
        # Of a median: 1 / (2 density sqrt(n)), here for one of two equal halves.
        0.5 / (math.sqrt(2) / (math.pi * e) * math.sqrt(2)) / math.sqrt(100_000),
        rel=0.2,
    )
    # Of 50,000 gaps a few are between the far end as seen by the other half, and the true one.
    assert found.margin.value == pytest.approx(1 / (math.sqrt(2) * e), rel=1e-4)


@pytest.mark.parametrize("dim", [2, 5])
def test_the_margin_of_two_arms_is_the_density_of_gaps_at_zero(dim: int) -> None:
    """y is isotropic, so the gap over |y| is |w| times a coordinate of a point on a sphere.

    w = (eta_1, -eta_2) and the sphere is in m = 2 dim dimensions. The density of that coordinate,
    given that it is positive, falls from 2 Gamma(m / 2) / (sqrt(pi) Gamma((m - 1) / 2)) at 0.
    """
    world = kh.LinearWorld(
        sensing=np.eye(dim), coefficients=np.eye(dim)[:2] * [[1.0], [2.0]], sensing_covariance=1.0
    )
    m = 2 * dim
    peak = 2 * math.gamma(m / 2) / (math.sqrt(math.pi) * math.gamma((m - 1) / 2))
    expected = peak / float(np.linalg.norm(world.eta))
    found = kh.theory.instance(world).margin
    # Shares of up to u are a little less steep than the density at 0, and the larger of two arms'
    # ratios is taken.
    assert abs(found.value - expected) < 4 * found.error
    assert 0.005 < found.error / expected < 0.1


def test_arms_that_are_seldom_best_are_named() -> None:
    world = kh.LinearWorld(sensing=np.eye(2), coefficients=[[1.0, 0.0], [0.0, 1.0], [1e-3, 0.0]])
    found = kh.theory.instance(
        replace(
            world, shared_context=True, coefficients=np.array([[1, 0], [0, 1], [0.5, 0.5 - 1e-4]])
        )
    )
    assert found.p[2].error == 0.0
    assert found.p[2].value < 1e-3
    assert "without arms 3, best too seldom" in found.kappa.meaning
    assert "without arms 3" in found.margin.meaning
    assert "without" not in kh.theory.instance(world, trials=20_000).kappa.meaning


def test_worlds_outside_the_assumptions_say_so() -> None:
    heavy = kh.theory.instance(
        linear(context_distribution="student-t", reward_distribution="student-t"), trials=2000
    )
    assert heavy.c_y.value == np.inf
    assert heavy.r.value == np.inf
    # What is infinite promises nothing: no value, and no horizon from which there is one.
    promises = kh.theory.Promises(heavy, horizon=100)
    assert {(one.value, one.start) for one in promises.named.values()} == {(None, np.inf)}
    assert promises.rounds_until(0, 0.1) == np.inf
    assert [reason.split(":")[0] for reason in heavy.unmet] == [
        "R2 is infinite (ass",
        "R1 is infinite (eq",
        "c_y is infinite (eq",
    ]
    silent = kh.theory.instance(linear(reward_scale=0.0), trials=2000)
    assert silent.r1.value == 0.0
    uniform = kh.theory.instance(linear(context_distribution="uniform"), trials=2000)
    assert uniform.r2.value == uniform.r.value == np.inf
    assert "E[x'mu - y'eta | y]" in uniform.unmet[0]
    assert uniform.p[0].error > 0.0
    assert kh.theory.instance(linear(), trials=2000).unmet == ()
    blind = kh.theory.instance(linear(sensing_covariance=0.0), trials=2000)
    assert blind.lambda_m.value == 0.0
    assert "sensing noise in every direction" in blind.unmet[0]
    # The repaired bounds need no sensing noise.
    assert kh.theory.Promises(blind, horizon=10**6).named["theorem_2_repaired"].start is None


# -- where there is an R2 --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["uniform", "rademacher", "truncated-normal", "mixture"])
@pytest.mark.parametrize("which", ["context_distribution", "sensing_distribution"])
def test_r2_is_infinite_outside_normal_worlds(name: str, which: str) -> None:
    settings: dict[str, Any] = {which: name}
    normal, other = linear(), linear(**settings)
    assert normal.r2 == normal.unseen_scale
    assert other.r2 == np.inf
    # What policies are told does not depend on the distribution.
    assert other.noise_scale == normal.noise_scale < np.inf
    assert other.unseen_scale == normal.unseen_scale
    with pytest.raises(kh.InvalidValue, match=r"at least R = inf, got 5; R2 is infinite"):
        kh.theory.Promises(kh.theory.instance(other, trials=2000), horizon=100, v=5.0)


def test_r2_is_zero_where_nothing_is_unseen() -> None:
    whole = linear(sensing=np.eye(4), sensing_covariance=0.0, context_distribution="uniform")
    assert whole.r2 <= 1e-7


def test_the_expectation_given_y_is_not_linear() -> None:
    """x = 1 or -1 and normal noise of variance 1: E[x | y] = tanh(y), and y'eta = y / 2."""
    world = kh.LinearWorld(
        sensing=[[1.0]], coefficients=[[1.0]], context_distribution="rademacher", reward_scale=0.0
    )
    rounds = world.sample(200_000, 1)
    y, miss = rounds.observations[:, 0, 0], (rounds.rewards - rounds.values)[:, 0]
    for low in (-2.0, -0.5, 0.5, 2.0):
        near = np.abs(y - low) < 0.05
        error = miss[near].std() / math.sqrt(near.sum())
        expected = (np.tanh(y[near]) - y[near] / 2).mean()
        assert abs(miss[near].mean() - expected) < 4 * error
    # The same of a normal world is 0 everywhere: the control.
    normal = replace(world, context_distribution="normal").sample(200_000, 1)
    y, miss = normal.observations[:, 0, 0], (normal.rewards - normal.values)[:, 0]
    near = np.abs(y - 0.5) < 0.05
    assert abs(miss[near].mean()) < 4 * miss[near].std() / math.sqrt(near.sum()) < 0.1


def test_regret_is_linear_in_a_world_of_signs() -> None:
    """Estimates tend to the regression given that an arm is chosen, and regret to a line.

    Contexts and noise are signs, so that each arm has 256 equally likely (x, y): the fixed point
    b_i = E[y y' | i chosen]^-1 E[y r | i chosen] and the regret of choosing by b are exact.
    """
    world = kh.LinearWorld.random(
        n_arms=3, context_dim=4, dim=4, seed=1,
        context_distribution="rademacher", sensing_distribution="rademacher",
    )  # fmt: skip
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))
    x, y = signs[:, :4], signs[:, :4] @ world.sensing.T + signs[:, 4:]
    estimate = world.eta.copy()
    for _ in range(20):
        scores = estimate @ y.T  # (arm, state)
        for i in range(3):
            below = [(scores[i][:, None] > scores[k]).mean(axis=1) for k in range(3) if k != i]
            weighted = y * (below[0] * below[1])[:, None]
            estimate[i] = np.linalg.solve(weighted.T @ y, weighted.T @ (x @ world.coefficients[i]))
    values, scores = world.eta @ y.T, estimate @ y.T
    rate = 0.0
    for k in range(256):
        worth = np.stack(np.broadcast_arrays(values[0, k], values[1][:, None], values[2][None, :]))
        seen = np.stack(np.broadcast_arrays(scores[0, k], scores[1][:, None], scores[2][None, :]))
        chosen = np.take_along_axis(worth, seen.argmax(axis=0)[None], axis=0)[0]
        rate += float((worth.max(axis=0) - chosen).mean()) / 256
    assert rate == pytest.approx(1.53e-3, rel=0.01)

    def slope(one: kh.LinearWorld) -> tuple[float, float]:
        runs = kh.simulate(
            one, kh.ThompsonSampling(v="oracle"), horizon=400_000, replications=8, seed=1,
            checkpoints=[200_000, 400_000], progress=False,
        )  # fmt: skip
        regret = runs.regret.isel(policy=0).transpose("replication", "time").values
        slopes = (regret[:, 1] - regret[:, 0]) / 200_000
        return float(slopes.mean()), float(slopes.std(ddof=1) / math.sqrt(8))

    found, error = slope(world)
    usual, usual_error = slope(
        replace(world, context_distribution="normal", sensing_distribution="normal")
    )
    # What a normal world's logarithm still adds in these rounds is added here too, at most.
    assert rate - 4 * error < found < rate + usual + 4 * math.hypot(error, usual_error)
    assert usual + 4 * usual_error < rate / 5


def test_one_arm_is_always_best() -> None:
    for name in ("normal", "uniform", "rademacher"):
        world = kh.LinearWorld(
            sensing=np.eye(2), coefficients=[[1.0, 0.0]], context_distribution=name
        )
        p, error = world.optimality
        assert (p.tolist(), error.tolist()) == ([1.0], [0.0])


# -- what is proved --------------------------------------------------------------------------------


def test_every_bound_has_a_statement_and_gaps_that_exist() -> None:
    assert sorted(kh.theory.STATEMENTS) == sorted(bounds.__all__)
    used = {gap for one in kh.theory.STATEMENTS.values() for gap in one.gaps}
    assert used | {"shared-context"} == set(kh.theory.GAPS)
    words = {name: kh.theory.status_of(name).word for name in bounds.__all__}
    assert [name for name, word in words.items() if word == "proved"] == ["length", "truncation"]
    repaired = {name for name, word in words.items() if word == "repaired"}
    assert repaired == {"confidence_radius", *REPAIRED}
    for name, one in kh.theory.STATEMENTS.items():
        assert set(one.rests_on) | {one.starts} <= {*bounds.__all__, ""}, name
        assert bool(one.replaces) == (name in REPAIRED)
        assert one.replaces in {*FUNCTIONS, ""}


def test_a_bound_rests_on_what_its_formula_uses() -> None:
    """Gaps come down from the steps before: whatever depends on lambda_m rests on lem:eig."""
    depends = {name for name in FUNCTIONS if value(name, lambda_m=0.1) != value(name)}
    assert set(FUNCTIONS) - depends == {"confidence_radius", "length", "missed_odds", "truncation"}
    for name in FUNCTIONS:
        if name in depends:
            assert {"selection", "direction"} <= set(kh.theory.status_of(name).gaps), name
            shared = kh.theory.status_of(name, shared_context=True)
            assert shared.word == "open"
            assert "shared-context" in shared.gaps
    assert kh.theory.status_of("length", shared_context=True).word == "proved"
    assert "128 / p_i^2" in " ".join(kh.theory.status_of("tau").repairs)
    # With a shared context the repair of lem:eig does not hold either.
    for name in REPAIRED:
        word = kh.theory.status_of(name, shared_context=True).word
        alone = ("length_repaired", "confidence_radius_repaired")
        assert word == ("repaired" if name in alone else "open"), name
    with pytest.raises(kh.InvalidValue, match="no bound 'nope'; there are bounded_corollary"):
        kh.theory.status_of("nope")


@pytest.mark.parametrize("arms", [4, 12])
def test_lem_eig_is_false_with_a_shared_context(arms: int) -> None:
    """Arms at even angles in a plane: arm i is best in a cone of half-angle a = pi / arms.

    y is isotropic with variance s, so the smaller eigenvalue of E[y y' | arm i best] is
    2 s (1/2 - sin(2 a) / (4 a)). The lemma needs lambda_m / 2.
    """
    angle = 2 * np.pi * np.arange(arms) / arms
    world = kh.LinearWorld(
        sensing=0.5 * np.eye(2),
        coefficients=np.column_stack([np.cos(angle), np.sin(angle)]),
        shared_context=True,
    )
    a, s, lambda_m = np.pi / arms, 1.25, 1.0
    smallest = 2 * s * (0.5 - np.sin(2 * a) / (4 * a))
    assert smallest < lambda_m / 2
    rounds = world.sample(200_000, 1)
    y = rounds.observations[rounds.values.argmax(axis=1) == 0, 0]
    squares = (y @ [0.0, 1.0]) ** 2  # across the cone of the first arm
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - smallest) < 4 * error
    # With own contexts the same arms are chosen at random of y's direction: nothing is lost.
    own = replace(world, shared_context=False).sample(200_000, 1)
    y = own.observations[own.values.argmax(axis=1) == 0, 0]
    assert np.linalg.eigvalsh(y.T @ y / len(y))[0] > s * 0.95


def test_lem_nineq_is_false_for_one_tail_below_1_18() -> None:
    z = np.array([1.0, 1.1, 1.18, 1.19, 2.0, 5.0])
    lower = np.exp(-(z**2) / 2) / (2 * math.sqrt(math.pi) * z)
    assert (norm.sf(z) >= lower).tolist() == [False, False, False, True, True, True]


def test_eq_term2_is_false() -> None:
    """kappa_ijt / sigma_it has no limit: y_i short, y_j long, no pull yet, so that B_i = I."""
    eta_i, eta_j, c_eta = np.array([0.0]), np.array([-1.0]), 1.0
    y_i, y_j = np.array([1e-3]), np.array([1.0])
    ratio = 0.5 * (y_i @ eta_i - y_j @ eta_j) / np.linalg.norm(y_i)
    assert ratio == pytest.approx(500.0)
    assert ratio > 2 * c_eta  # which eq:term2 says it does not exceed at n_i = 0


# -- before their time -----------------------------------------------------------------------------


def test_bounds_have_no_value_before_their_time() -> None:
    constants = kh.theory.instance(linear(), trials=20_000)
    promises = kh.theory.Promises(constants, horizon=10_000)
    always = {"truncation", "length", "confidence_radius", "nu_1", "nu_2", "ell", "missed_odds"}
    speaking = {name for name, one in promises.named.items() if one.value is not None}
    assert speaking - set(REPAIRED) == always
    of_arm = {name for name, one in promises.of_arm(0).items() if one.value is not None}
    assert of_arm - set(REPAIRED) == {"tau"}
    for name, one in {**promises.named, **promises.of_arm(0)}.items():
        assert (one.value is None) != (one.start is None), name
    p, c = constants.p[0].value, promises.constants
    found = promises.of_arm(0)
    # The first horizon that reaches its own start: nu_1 and tau grow with the horizon.
    start = found["theorem_1"].start
    assert start is not None
    assert start == pytest.approx(float(bounds.tau(c, horizon=start, p=p)), rel=1e-6)
    assert start > promises.tau(0)
    start = found["covariance_bound"].start
    assert start is not None
    assert start == pytest.approx(4 / p * float(bounds.nu_1(c, horizon=start)), rel=1e-6)
    start = promises.named["term_1"].start
    assert start is not None
    assert start == pytest.approx(float(bounds.term_1(c, horizon=start)), rel=1e-6)


def test_bounds_have_values_in_their_time() -> None:
    """Short observations and clear gaps make every minimum time short."""
    constants = kh.theory.instance(linear(), trials=20_000)
    easy = replace(
        constants,
        c_y=replace(constants.c_y, value=1e-3, safe=1e-3),
        kappa=replace(constants.kappa, value=100.0, safe=100.0),
    )
    promises = kh.theory.Promises(easy, horizon=10**6)
    for found in (promises.named, promises.of_arm(0)):
        assert {one.start for one in found.values()} == {None}
    p, c = easy.p[0].value, promises.constants
    assert promises.of_arm(0)["theorem_1"].value == bounds.theorem_1(c, horizon=1e6, t=1e6, p=p)
    assert promises.named["theorem_2"].value == bounds.theorem_2(c, horizon=1e6)
    before = kh.theory.Promises(easy, horizon=100).of_arm(0)["theorem_1"]
    assert before.value is None
    assert 100 < before.start < 10**6  # type: ignore[operator]


def test_an_arm_that_is_never_best_has_no_promise() -> None:
    never = kh.LinearWorld(
        sensing=np.eye(2), coefficients=[[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], shared_context=True
    )
    constants = kh.theory.instance(never, trials=20_000)
    assert constants.p[2].value == 0.0
    assert constants.shared_context
    found = kh.theory.Promises(constants, horizon=1000).of_arm(2)
    for name in ("tau", "theorem_1", "covariance_bound", "estimation_error"):
        assert (found[name].value, found[name].start) == (None, np.inf), name


# -- guards ----------------------------------------------------------------------------------------

NOT_POSITIVE: list[Any] = [-1.0, math.nan, "a", 1j, [0.5, 1.0]]
WRONG_CONSTANTS: dict[str, list[Any]] = {
    "n_arms": [0, 2.5, -3, [2, 3], True, 10**400],
    "dim": [0, 1.5],
    "tie_density": NOT_POSITIVE,
    "delta": [0.0, 1.0, -1, 2, math.nan, [0.1, 0.2]],
    "p_min": [-0.1, 1.5],
    **dict.fromkeys(
        ("c_eta", "c_y", "kappa", "margin", "lambda_m", "r", "v", "longest", "eig_min", "eig_max"),
        NOT_POSITIVE,
    ),
}
WRONG: dict[str, list[Any]] = {
    "horizon": [0, -5, math.inf, math.nan, "ten", None, [1.0, 0.0], [[1.0], [1.0, 2.0]]],
    "t": [0, math.nan],
    "n": [-1, math.nan],
    "p": [-0.1, 1.5],
    "largest": [-1.0],
}


def test_wrong_constants_are_refused() -> None:
    assert set(WRONG_CONSTANTS) == set(FIELDS)
    for name, values in WRONG_CONSTANTS.items():
        for wrong in values:
            with pytest.raises(kh.InvalidValue, match=rf"Constants\.{name} must be .* got"):
                value("nu_1", **{name: wrong})


@pytest.mark.parametrize("name", bounds.__all__)
def test_wrong_arguments_are_refused_by_every_bound(name: str) -> None:
    for argument in STATEMENTS[name].takes:
        for wrong in WRONG[argument]:
            with pytest.raises(kh.InvalidValue, match=f"{name}: {argument} must be .* got"):
                value(name, **{argument: wrong})
    with pytest.raises(
        kh.InvalidValue, match=rf"{name}: c must be Constants, such as theory.*got 3"
    ):
        getattr(bounds, name)(3, **{each: BASE[each] for each in STATEMENTS[name].takes})


def test_arguments_that_a_bound_does_not_take_are_errors() -> None:
    c = Constants(n_arms=2, dim=2)
    with pytest.raises(TypeError, match="missing 2 required keyword-only arguments: 't' and 'p'"):
        bounds.theorem_1(c, horizon=10)
    with pytest.raises(TypeError, match="unexpected keyword argument 'kapa'"):
        bounds.nu_1(c, horizon=10, kapa=1.0)


def test_a_refusal_says_what_is_allowed() -> None:
    with pytest.raises(
        kh.InvalidValue, match=r"Constants\.delta must be a number above 0 and below 1, got 2$"
    ):
        value("nu_1", delta=2)
    with pytest.raises(
        kh.InvalidValue,
        match=r"tau: p must be a number or an array of them, of at least 0 and at most 1, got 7$",
    ):
        value("tau", p=7)
    with pytest.raises(kh.InvalidValue, match=r"shapes that broadcast, got \(3,\), \(2,\)"):
        value("theorem_1", t=np.ones(3), p=np.full(2, 0.5))
    with pytest.raises(kh.InvalidValue, match="masked"):
        value("theorem_1", t=np.ma.masked_array([1.0, 2.0], [True, False]))


def test_infinite_constants_give_infinity_and_not_nan() -> None:
    assert value("theorem_2", c_eta=0.0, lambda_m=0.0) == np.inf
    assert value("missed_odds", v=0.0, kappa=0.0) == np.inf
    assert value("estimation_error", n=0.0) == np.inf


def test_a_plan_holds_at_its_own_horizon() -> None:
    """The round that the planner names is late enough by the bounds of a horizon that long."""
    constants = kh.theory.instance(linear(), trials=20_000)
    promises = kh.theory.Promises(constants, horizon=1000)
    found = promises.rounds_until(0, 0.05)
    p, c = constants.p[0].value, promises.constants
    assert found >= bounds.tau(c, horizon=found, p=p) * (1 - 1e-6)
    assert bounds.theorem_1(c, horizon=found, t=found, p=p) <= 0.05 * (1 + 1e-6)
    assert found > bounds.tau(c, horizon=1000, p=p)
    easy = kh.theory.Promises(constants, horizon=1000).rounds_until(0, 1e9)
    assert easy >= promises.tau(0)


def test_degenerate_worlds_give_infinite_bounds_and_no_errors() -> None:
    one = kh.theory.instance(
        kh.LinearWorld(sensing=np.eye(2), coefficients=[[1.0, 0.0]]), trials=2000
    )
    assert one.kappa.value == np.inf
    assert one.margin.value == 0.0
    twins = kh.LinearWorld(
        sensing=np.eye(2), coefficients=[[1.0, 0.0], [1.0, 0.0]], shared_context=True
    )
    constants = kh.theory.instance(twins, trials=2000)
    assert constants.kappa.value == 0.0
    assert bounds.theorem_2(constants.constants(), horizon=100) == np.inf


def test_nonsense() -> None:
    constants = kh.theory.instance(linear(), trials=2000)
    with pytest.raises(kh.InvalidValue, match="at least R"):
        kh.theory.Promises(constants, horizon=100, v=0.01)
    with pytest.raises(kh.InvalidValue, match=r"delta must be above 0 and at most 0\.999, got 2"):
        kh.theory.Promises(constants, horizon=100, delta=2)
    promises = kh.theory.Promises(constants, horizon=100)
    with pytest.raises(kh.InvalidValue, match="arm must be below 3"):
        promises.tau(3)
    with pytest.raises(kh.InvalidValue, match="at least 0"):
        promises.rounds_until(-1, 0.1)
    with pytest.raises(kh.InvalidValue, match=r"theory\.instance\(world\), got LinearWorld"):
        kh.theory.Promises(linear(), horizon=10)  # type: ignore[arg-type]
    with pytest.raises(kh.InvalidValue, match="linear worlds such as LinearWorld, got str"):
        kh.theory.instance("world")  # type: ignore[arg-type]
    with pytest.raises(kh.InvalidValue, match="trials"):
        kh.theory.instance(linear(), trials=10)


def test_no_bound_on_a_probability_is_printed_above_1() -> None:
    world = kh.LinearWorld.random(n_arms=2, context_dim=1, dim=1, seed=1)
    promises = kh.theory.Promises(kh.theory.instance(world), horizon=10_000)
    found = promises.named["suboptimal_probability_repaired"]
    assert found.value == 1.0
    with pytest.raises(kh.InvalidValue, match="linear worlds"):
        kh.theory.unmet(None)  # type: ignore[arg-type]
