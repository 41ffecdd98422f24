"""The rows from the printed theorem 2 to the repaired one, and other papers' bounds."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import keyhole as kh
from keyhole.theory import Constants, Row, bounds, comparison, derivation
from keyhole.theory.derivations import corrected_odds, exact_odds


@pytest.fixture(scope="module")
def instance() -> kh.theory.Instance:
    world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
    return kh.theory.instance(world, trials=20_000)


def test_the_first_and_the_last_row_are_the_theorems(instance: kh.theory.Instance) -> None:
    found = derivation(instance, 10_000, 0.05)
    c = instance.constants(delta=0.05)
    # As printed: 16 c_M for 4 c_M, and 32 for 128, which is not the maximum in tau here.
    pulls = 16 * bounds.c_m(c, horizon=1e4) * c.margin * 3 * math.log(1e4) / math.sqrt(c.p_min)
    chance = math.sqrt(4 * math.log(1e4) * math.log(20))
    late = 2 * bounds.g_1(c, horizon=1e4) * (chance + pulls)
    early = 2 * c.c_eta * bounds.tau(c, horizon=1e4, p=c.p_min)
    assert found.rows[0].value == pytest.approx(bounds.length(c, horizon=1e4) * (early + late))
    assert found.value == bounds.theorem_2_repaired(c, horizon=1e4)
    assert [row.status for row in found.rows] == ["open"] * 5 + ["repaired"]
    assert found.rows[1].value > found.rows[0].value  # to correct slips costs
    assert (np.diff([row.value for row in found.rows[1:]]) < 0.0).all()
    assert found.factors[0] == 1.0
    # Before its time it says no more than the largest gap in every round, and says so.
    assert "the largest gap, 2 c_eta L, in every round" in found.rows[-1].reason
    later = derivation(instance, 10**8)
    assert "in every round" not in later.rows[-1].reason
    assert later.value < 1e8
    assert math.prod(found.factors) == pytest.approx(found.value / found.rows[0].value)


def test_the_rows_between_by_hand(instance: kh.theory.Instance) -> None:
    """With a clear kappa, so that no part of the formula is lost in the others."""
    clear = replace(instance, kappa=replace(instance.kappa, value=60.0, safe=60.0))
    c, T, N, d = clear.constants(delta=0.05), 1e4, 3, 4
    assert (c.n_arms, c.dim) == (N, d)
    p, v, s, log, sqrt = float(c.p_min), float(c.v), 60.0 / (2 * float(c.v)), math.log, math.sqrt
    each = 0.05 / 18  # six steps, three arms
    L = 2 * c.c_y * sqrt(2 * log(2 * T * N * d / each))
    radius = c.r * sqrt(d * log((1 + L**2 * T) / each)) + c.c_eta
    plain = (8 * L**4 * log(T * N / each) / c.lambda_m**2, c.lambda_m, L, radius)
    repaired = (
        bounds.nu_1_repaired(c),
        c.eig_min,
        bounds.length_repaired(c, horizon=T),
        bounds.confidence_radius_repaired(c, horizon=T, n=T),
    )
    middle = (repaired[0], *plain[1:])
    given: list[Any] = [
        (*plain, corrected_odds(s)),
        (*middle, corrected_odds(s)),
        (*middle, exact_odds(s)),
        (*repaired, exact_odds(s)),
    ]
    rows = derivation(clear, 10_000, 0.05).rows[1:5]
    for row, (nu, lam, length, bracket, odds) in zip(rows, given, strict=True):
        nu_2 = max(nu, 64 * v**2 * log(T) / (60.0**2 * lam))
        sure = log(T / each)
        ell = N * (nu_2 * (odds + 2) + 7)
        tau = max(4 * nu / p, 8 * ell / p, 128 * sure / p**2)
        h = sqrt(2 / lam) * bracket
        g = sqrt(8 / (p * lam)) * (v * sqrt(2 * d * log(2 * T * N * T / each)) + bracket)
        c_m = 8 * v * sqrt(math.pi / lam) + 4 * h
        late = sqrt(4 * log(T) * sure) + 4 * c_m * c.margin * N * log(T) / sqrt(p)
        assert row.value == pytest.approx(length * (2 * c.c_eta * tau + 2 * g * late), rel=1e-9)


def test_a_world_does_as_well_as_its_instance() -> None:
    world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
    whole = derivation(kh.theory.instance(world), 500, 0.1)
    assert derivation(world, 500, 0.1) == whole


def test_the_odds() -> None:
    """By the integral of the proof, from its own limit on, and by the exact one."""
    for s in (0.05, 0.5, 2.0):
        whole = quad(lambda x, s=s: (1 + x**2) * math.exp(-s * x), 1, np.inf)[0]
        by_hand = 2 * math.sqrt(2 * math.pi) * (math.exp(0.5) + math.exp(-(s**2) / 2) * whole) - 1
        assert corrected_odds(s) == pytest.approx(by_hand)
        assert exact_odds(s) < corrected_odds(s)
    # A normal X has that tail, so that its odds are at most as large; X = 0 is another.
    normal = quad(lambda x: norm.pdf(x) / norm.sf(x - 0.5), -8, 30)[0] - 1
    assert normal < exact_odds(0.5)
    assert 1 / norm.sf(-0.5) - 1 < exact_odds(0.5)
    # X with exactly the tail exp(-x^2 / 2), for x > 0: the largest.
    rayleigh = quad(lambda x: x * math.exp(-(x**2) / 2) / norm.sf(x - 2.0), 0, 30)[0] - 1
    assert exact_odds(2.0) == pytest.approx(rayleigh, rel=1e-6)
    assert exact_odds(0.0) == corrected_odds(0.0) == np.inf


def test_texts(instance: kh.theory.Instance) -> None:
    more = Row("50% & _", 1.3e4, "repaired", "by a caller")
    found = derivation(instance, 10_000, 0.05, rows=[more])
    lines = found.explain().splitlines()
    assert len(lines) == 8
    assert lines[1].split()[-3:] == [f"{found.rows[0].value:.1e}", "1.0e+00", "open"]
    assert found.value == 1.3e4
    given = json.loads(found.to_json())
    assert given["rows"][-1]["reason"] == "by a caller"
    assert given["rows"][0]["value"] == found.rows[0].value
    latex = found.to_latex()
    assert r"50\% \& \_ & $1.3\cdot10^{4}$" in latex
    assert latex.count(r"\\") == 8
    flat = kh.LinearWorld(sensing=np.eye(2), coefficients=np.eye(2), context_distribution="uniform")
    never = derivation(flat, 100)
    assert json.loads(never.to_json())["rows"][0]["value"] == "inf"
    assert r"$\infty$" in never.to_latex()


def test_a_shared_context_leaves_all_open() -> None:
    world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1, shared_context=True)
    found = derivation(world, 100)
    assert {row.status for row in found.rows} == {"open"}
    assert [row.value for row in found.rows[2:]] == [np.inf] * 4


def test_wrong_arguments(instance: kh.theory.Instance) -> None:
    with pytest.raises(kh.InvalidValue, match=r"rows must be of theory\.Row, got str"):
        derivation(instance, 100, rows=["x"])  # type: ignore[list-item]
    with pytest.raises(kh.InvalidValue, match="horizon"):
        derivation(instance, 1)
    with pytest.raises(kh.InvalidValue, match=r"Row\.status must be .* got 'maybe'"):
        Row("x", 1.0, "maybe", "")  # type: ignore[arg-type]
    with pytest.raises(kh.InvalidValue, match=r"Row\.value"):
        Row("x", -1.0, "open", "")


def test_the_waterfall(instance: kh.theory.Instance) -> None:
    found = derivation(instance, 10_000)
    axes = kh.plots.looseness(found, seen=116.0).axes[0]
    assert axes.get_xscale() == "log"
    bars: list[Any] = list(axes.patches)
    ends = [bar.get_x() for bar in bars], [bar.get_width() for bar in bars]
    values = [row.value for row in found.rows]
    for place, (left, width) in enumerate(zip(*ends, strict=True)):
        before = 1.0 if place == 0 else values[place - 1]
        assert left == pytest.approx(min(before, values[place]))
        assert left + width == pytest.approx(max(before, values[place]))
    assert axes.get_yticklabels()[0].get_text() == "theorem 2 as printed"
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "open",
        "repaired",
        "simulated, 116",
    ]
    infinite = replace(found, rows=(replace(found.rows[0], value=np.inf), *found.rows[1:]))
    assert len(kh.plots.looseness(infinite).axes[0].patches) == 5
    with pytest.raises(kh.InvalidValue, match=r"derivation must be that of theory\.derivation"):
        kh.plots.looseness(3)  # type: ignore[arg-type]
    with pytest.raises(kh.InvalidValue, match="seen"):
        kh.plots.looseness(found, seen=-1.0)


# -- other papers ---------------------------------------------------------------------------------

ONE = Constants(n_arms=2, dim=1, r=0.5, c_eta=0.5, longest=1.0, delta=0.1)


def test_other_bounds_by_hand() -> None:
    T = 100.0
    widths = 4 * math.log(1 + T / 2)
    radius = 0.5 * math.sqrt(2 * math.log(51) + 2 * math.log(10)) + math.sqrt(0.5)
    assert comparison.oful(ONE, horizon=T) == pytest.approx(2 * radius * math.sqrt(T * widths))
    assert comparison.russo_van_roy(ONE, horizon=T) == pytest.approx(
        0.5 * math.sqrt(4 * math.log(2) * 100)
    )
    radius = 0.5 * math.sqrt(2 * math.log(51) + 2 * math.log(20)) + math.sqrt(0.5)
    v = 0.5 * math.sqrt(18 * math.log(1000))
    k = (radius + v * math.sqrt(2 * math.log(200))) * (2 / (norm.sf(radius / v) - 0.01) + 1)
    chance = math.sqrt(50 * math.log(20))
    expected = k * (math.sqrt(T * widths) + chance) + chance + 1
    assert comparison.agrawal_goyal(ONE, horizon=T) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["oful", "agrawal_goyal", "russo_van_roy"])
def test_other_bounds_grow_like_the_root_of_time(name: str) -> None:
    bound = getattr(comparison, name)
    far = np.array([1e290, 1e300])
    slope = np.diff(np.log(bound(ONE, horizon=far)))[0] / math.log(1e10)
    assert 0.5 <= slope + 1e-12 < 0.51
    assert bound(Constants(n_arms=2, dim=1), horizon=10.0) == np.inf
    with pytest.raises(kh.InvalidValue, match="c must be Constants"):
        bound(3, horizon=10.0)
    with pytest.raises(kh.InvalidValue, match="horizon must be"):
        bound(ONE, horizon=0.0)


def test_the_policies_of_other_papers_stay_below_their_bounds() -> None:
    """In the default world, on the bounds' own policies; it says nothing about tightness."""
    world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
    c = kh.theory.instance(world, trials=2000).constants()
    inflated = c.r * math.sqrt(9 * 12 * math.log(2000 / c.delta))
    policies = {"oful": kh.OFUL(), "agrawal_goyal": kh.ThompsonSampling(v=inflated)}
    runs = kh.simulate(world, policies, horizon=2000, replications=8, seed=1, progress=False)
    for name in policies:
        worst = float(runs.regret.sel(policy=name).isel(time=-1).max())
        assert worst < getattr(comparison, name)(c, horizon=2000)
