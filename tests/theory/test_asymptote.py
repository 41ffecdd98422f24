"""The constant of the regret: values by hand, identities, closed forms, and simulation."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

import keyhole as kh
from keyhole.core import expected_largest
from keyhole.theory import asymptote, exploration, sensor_rows
from keyhole.theory.asymptotics import (
    cones,
    first_rounds,
    grids,
    information,
    models,
    own_contexts,
    pairs,
    scores,
    shared_context,
)
from keyhole.theory.asymptotics.own_contexts import spread_after

ORACLE = kh.ThompsonSampling(v="oracle")
Floats = np.ndarray[Any, np.dtype[np.float64]]


def a_world(n_arms: int = 4, dim: int = 3, seed: int = 1, **settings: Any) -> kh.LinearWorld:
    return kh.LinearWorld.random(n_arms=n_arms, context_dim=4, dim=dim, seed=seed, **settings)


def rotation(dim: int, seed: int = 3) -> Floats:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0])


# -- by hand --------------------------------------------------------------------------------------


def test_two_arms_of_one_dimension_by_hand() -> None:
    """y ~ N(0, 1), eta = 1 for both: f f = exp(-x^2) / 2 pi, p = 1/2, E[y^2 1(best)] = 1/2.

    So c = 1/2 int exp(-x^2) / (2 pi) 2 (R^2 + v^2) 2 x^2 dx = (R^2 + v^2) / (2 sqrt(pi)).
    """
    world = kh.LinearWorld(
        sensing=[[1.0]], coefficients=[[1.0], [1.0]], sensing_covariance=0.0, reward_scale=0.5
    )
    # A prior precision of 1 would have no curve.
    found = asymptote(world, kh.ThompsonSampling(v=2.0, prior_precision=0.1), horizon=10)
    assert found.constant == pytest.approx((0.25 + 4.0) / (2.0 * np.sqrt(np.pi)), rel=1e-12)
    assert found.error == 0.0
    assert found.regret(1) == pytest.approx(1.0 / np.sqrt(np.pi))  # E max of two normals


def test_two_arms_of_a_shared_context_by_hand() -> None:
    """M_k is half of the covariance, so that c = (d - 1) sum(R_k^2 + v^2) / (tau sqrt(2 pi))."""
    world = kh.LinearWorld(
        sensing=np.eye(3),
        coefficients=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        sensing_covariance=0.0,
        shared_context=True,
    )
    found = asymptote(world, kh.ThompsonSampling(v=1.0), horizon=10)
    tau = np.sqrt(2.0)
    assert found.constant == pytest.approx(2.0 * 2.0 * 2.0 / (tau * np.sqrt(2.0 * np.pi)))
    assert found.error == 0.0


def test_a_greedy_shared_parameter_by_hand() -> None:
    """Given the estimate, regret is E max of N normals times s (1 - cos of its angle to eta).

    The angle has the mean square R^2 (d - 1) / (s^2 t), so that c = e_N R^2 (d - 1) / (2 s).
    """
    mu = np.array([0.6, 0.8, 0.0])
    world = kh.LinearWorld(sensing=np.eye(3), coefficients=[mu] * 4, sensing_covariance=0.0)
    largest = expected_largest(np.zeros(4), np.ones(4))
    found = asymptote(world, kh.Greedy(sharing="shared"), horizon=10)
    assert found.constant == pytest.approx(largest, rel=1e-9)
    joint = kh.ThompsonSampling(v=1.0, sharing="shared", draw="joint")
    assert asymptote(world, joint, horizon=10).constant == pytest.approx(2.0 * largest, rel=1e-9)
    # Draws of their own also differ along eta.
    apart = asymptote(world, kh.ThompsonSampling(v=1.0, sharing="shared"), horizon=10)
    assert apart.constant > 2.0 * largest


# -- identities -----------------------------------------------------------------------------------


def test_the_constant_is_linear_in_v_squared_and_its_price_at_least_2() -> None:
    world = a_world()
    at = [asymptote(world, kh.ThompsonSampling(v=v), horizon=2).constant for v in (0.0, 1.0, 3.0)]
    assert at[2] - at[0] == pytest.approx(9.0 * (at[1] - at[0]), rel=1e-12)
    assert asymptote(world, kh.Greedy(), horizon=2).constant == at[0]
    assert exploration(world, horizon=20).price >= 2.0


@pytest.mark.parametrize("shared", [False, True])
def test_neither_the_order_of_arms_nor_a_rotation_of_y_matters(shared: bool) -> None:
    world = a_world(n_arms=2 if shared else 4, shared_context=shared)
    first = asymptote(world, ORACLE, horizon=300)
    order = np.arange(world.n_arms)[::-1]
    turned = rotation(3)
    others = (
        replace(world, coefficients=world.coefficients[order]),
        replace(world, sensing=turned @ world.sensing),  # its noise is a multiple of I
    )
    for other, terms in zip(others, (first.terms[np.ix_(order, order)], first.terms), strict=True):
        again = asymptote(other, ORACLE, horizon=300)
        assert again.constant == pytest.approx(first.constant, rel=1e-9)
        np.testing.assert_allclose(again.terms, terms, rtol=1e-8, atol=1e-12)
        if not shared:  # which is drawn in the first rounds
            np.testing.assert_allclose(again.rates, first.rates, rtol=1e-6)


def test_units_of_y_do_not_matter_for_the_constant() -> None:
    world = a_world()
    units = np.diag([1e-6, 1.0, 1e4])
    other = replace(
        world,
        sensing=units @ world.sensing,
        sensing_covariance=units @ world.sensing_covariance @ units,
    )
    expected = asymptote(world, ORACLE, horizon=2).constant
    assert asymptote(other, ORACLE, horizon=2).constant == pytest.approx(expected, rel=1e-8)


def test_rewards_in_other_units_scale_the_constant() -> None:
    """Values and noise times a: c is a squared variance over a gap, and grows by a."""
    world = a_world()
    other = replace(world, coefficients=7.0 * world.coefficients, reward_scale=7.0)
    expected = 7.0 * asymptote(world, ORACLE, horizon=2).constant
    assert asymptote(other, ORACLE, horizon=2).constant == pytest.approx(expected, rel=1e-9)


def test_a_direction_that_y_never_takes_does_not_count() -> None:
    world = replace(a_world(), sensing_covariance=np.zeros((3, 3)))
    wide = np.vstack([world.sensing, world.sensing[:1]])  # a copy of a row
    other = replace(world, sensing=wide, sensing_covariance=np.zeros((4, 4)))
    expected = asymptote(world, ORACLE, horizon=2).constant
    assert asymptote(other, ORACLE, horizon=2).constant == pytest.approx(expected, rel=1e-9)


# -- closed forms against integration -------------------------------------------------------------


def test_the_moments_of_the_best_arm_against_integration() -> None:
    model = models.model_of(a_world(), ORACLE)
    across, along = pairs.wins(model)
    scales = model.scales

    def moment(k: int, power: int) -> float:
        def inside(z: float) -> float:
            rest = np.prod([ndtr(scales[k] * z / s) for j, s in enumerate(scales) if j != k])
            return float(z**power * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) * rest)

        return float(quad(inside, -12.0, 12.0, epsabs=1e-13)[0])

    for k in range(model.n_arms):
        assert across[k] == pytest.approx(moment(k, 0), rel=1e-10)
        assert along[k] == pytest.approx(moment(k, 2), rel=1e-10)
    np.testing.assert_allclose(across, a_world().optimality[0], rtol=1e-9)


def test_M_k_and_the_conditional_form_against_draws() -> None:
    """E[y y' 1(k best)] and E[y'M^-1 y | y'eta = x], from 200,000 rounds, to 5 standard errors."""
    world, k = a_world(), 1
    model = models.model_of(world, ORACLE)
    rounds = world.sample(200_000, seed=4)
    best = rounds.values.argmax(axis=1) == k
    y = rounds.observations[:, k]
    across, along = (moments[k] for moments in pairs.wins(model))
    S, eta = world.observation_covariance, world.eta[k]
    g = S @ eta / model.scales[k]
    M = across * (S - np.outer(g, g)) + along * np.outer(g, g)
    products = y[:, :, None] * y[:, None, :] * best[:, None, None]
    error = products.std(axis=0) / np.sqrt(len(y))
    assert (np.abs(products.mean(axis=0) - M) < 5.0 * error).all()
    # Regression of y'M^-1 y on z^2 has the intercept (d - 1) / p and the slope 1 / E[z^2 1(best)].
    z = y @ eta / model.scales[k]
    design = np.stack([np.ones_like(z), z**2], axis=1)
    form = np.einsum("na,ab,nb->n", y, np.linalg.inv(M), y)
    fitted, residuals, _, _ = np.linalg.lstsq(design, form, rcond=None)
    spread = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * residuals / len(z))
    expected = [(world.dim - 1) / across, 1.0 / along]
    # Residuals are independent of z but not normal: their variance is all that counts here.
    assert (np.abs(fitted - expected) < 5.0 * spread + 1e-9).all()


def test_scores_that_do_not_err_choose_the_best_arm() -> None:
    model = models.model_of(a_world(), ORACLE)
    exact = scores.Spread(model.scales, 1e-12 * model.scales**2, np.zeros(4))
    pulled, _, second = scores.chosen_moments(exact)
    across, along = pairs.wins(model)
    np.testing.assert_allclose(pulled, across, atol=1e-7)
    np.testing.assert_allclose(second, along, atol=1e-7)


def test_scores_with_a_constant_error_are_those_of_normals() -> None:
    """With bent = 0 value and score are jointly normal: E[Z | score] is a multiple of the score."""
    slope, flat = np.array([1.0, 0.3, 2.0]), np.array([0.5, 2.0, 0.1])
    pulled, first, _ = scores.chosen_moments(scores.Spread(slope, flat, np.zeros(3)))
    widths = np.sqrt(slope**2 + flat)
    np.testing.assert_allclose(pulled, kh.choice_probabilities(np.zeros(3), widths), atol=1e-8)
    largest = expected_largest(np.zeros(3), widths)
    assert (widths**2 / slope * first).sum() == pytest.approx(largest, rel=1e-7)


def test_scores_of_changing_spread_against_draws() -> None:
    slope, flat, bent = np.array([1.0, 0.5, 0.8]), np.array([0.3, 1.0, 0.05]), np.full(3, 0.6)
    found = scores.chosen_moments(scores.Spread(slope, flat, bent))
    rng = np.random.default_rng(5)
    z, noise = rng.standard_normal((2, 400_000, 3))
    chosen = (slope * z + np.sqrt(flat + bent * z**2) * noise).argmax(axis=1)
    for k in range(3):
        for power in range(3):
            drawn = z[:, k] ** power * (chosen == k)
            assert abs(found[power, k] - drawn.mean()) < 4.5 * drawn.std() / np.sqrt(len(z))


@pytest.mark.parametrize("flat", [1e-18, 1e-4])
def test_scores_that_peak_at_zero_against_draws(flat: float) -> None:
    """In one dimension a score is Z times a normal number: its density is infinite at 0."""
    slope, bent = np.array([0.5, 0.005, 0.3]), np.array([1.0, 0.4, 0.01])
    found = scores.chosen_moments(scores.Spread(slope, np.full(3, flat), bent))
    rng = np.random.default_rng(5)
    z, noise = rng.standard_normal((2, 400_000, 3))
    chosen = (slope * z + np.sqrt(flat + bent * z**2) * noise).argmax(axis=1)
    for k in range(3):
        for power in range(3):
            drawn = z[:, k] ** power * (chosen == k)
            assert abs(found[power, k] - drawn.mean()) < 4.5 * drawn.std() / np.sqrt(len(z))


def test_both_rules_for_scores_agree_where_both_hold() -> None:
    slope, flat, bent = np.full((1, 1), 1.0), np.full((1, 1), 0.3), np.full((1, 1), 0.1)
    x = np.linspace(-4.0, 4.0, 41)
    np.testing.assert_allclose(
        scores._peaked_moments(slope, flat, bent, x), scores._moments(slope, flat, bent, x),
        rtol=1e-3, atol=1e-7,
    )  # fmt: skip


def test_the_mean_of_an_inverse_precision_against_draws() -> None:
    """Few pulls, where the inverse of the mean is far off."""
    rng, d, n = np.random.default_rng(6), 4, 6
    prior = np.diag([0.2, 0.5, 1.0, 1.0])
    y = rng.standard_normal((20_000, n, d))
    drawn = np.linalg.inv(prior + np.einsum("tna,tnb->tab", y, y)).mean(axis=0)
    found = information.mean_covariance(prior, n * np.eye(d)[None], np.array([float(n)]))[0]
    naive = np.linalg.inv(prior + n * np.eye(d))
    assert np.trace(found) == pytest.approx(np.trace(drawn), rel=0.15)
    assert np.trace(naive) < 0.65 * np.trace(drawn)


def test_products_of_others() -> None:
    rows = np.random.default_rng(1).uniform(0.5, 1.0, (5, 7))
    np.testing.assert_allclose(grids.others(rows), rows.prod(axis=0) / rows)


# -- a shared context -----------------------------------------------------------------------------


def test_drawn_cones_of_three_arms_against_the_plane() -> None:
    """Three arms at 120 degrees in a plane: cones of angle 2 pi / 3, ties on three rays.

    By symmetry M_k = (1/3) I + (sin(2 pi / 3) / 2 pi) diag(1, -1) along its own axis, and a ray
    at 60 degrees to the axis of either arm has half of the line's E[u u'].
    """
    angles = 2.0 * np.pi * np.arange(3) / 3.0
    gains = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    world = kh.LinearWorld(
        sensing=np.eye(2), coefficients=gains, sensing_covariance=0.0, shared_context=True
    )
    bulge = np.sin(2.0 * np.pi / 3.0) / (2.0 * np.pi)
    along, across = 1.0 / 3.0 + bulge, 1.0 / 3.0 - bulge
    form = np.cos(np.pi / 3.0) ** 2 / along + np.sin(np.pi / 3.0) ** 2 / across
    density = 1.0 / (np.sqrt(3.0) * np.sqrt(2.0 * np.pi))
    expected = 3.0 * 0.5 * density * 0.5 * 2.0 * (1.0 + 4.0) * form
    found = asymptote(world, kh.ThompsonSampling(v=2.0), horizon=2)
    assert found.error > 0.0
    assert abs(found.constant - expected) < 4.0 * found.error
    assert found.error < 0.01 * expected


def test_drawn_cones_of_two_arms_are_those_by_hand() -> None:
    """A third arm far below the others is best too seldom; without it, draws meet the formula."""
    model = models.model_of(a_world(n_arms=2, shared_context=True), ORACLE)
    u = np.random.default_rng(2).standard_normal((100_000, 3))
    exact = cones.cones_of(model)
    drawn = cones._face(model, 0, 1, u)
    np.testing.assert_allclose(drawn, exact.faces[0, 0, 1], atol=5e-3 * np.abs(drawn).max())


# -- the finite-time form -------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
def test_the_slope_tends_to_the_constant(shared: bool) -> None:
    found = asymptote(a_world(shared_context=shared), ORACLE, horizon=10**9)
    off = [abs(float(found.slope(t)) / found.constant - 1.0) for t in (10**3, 10**5, 10**9)]
    assert off[0] > off[2]
    assert off[2] < 2e-3 + 4.0 * found.error / found.constant
    gain = float(found.regret(10**9) - found.regret(10**8)) / np.log(10.0)
    assert gain == pytest.approx(found.constant, rel=5e-3)


def test_finer_steps_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    coarse = asymptote(a_world(), ORACLE, horizon=1000)
    monkeypatch.setattr("keyhole.theory.asymptotics.clock.FACTOR", 1.03)
    monkeypatch.setattr("keyhole.theory.asymptotics.grids.NODES", 801)
    fine = asymptote(a_world(), ORACLE, horizon=1000)
    assert fine.constant == pytest.approx(coarse.constant, rel=1e-10)
    np.testing.assert_allclose(
        coarse.regret([10, 100, 1000]), fine.regret([10, 100, 1000]), rtol=5e-3
    )


def test_what_was_seen_narrows_scores() -> None:
    model = models.model_of(a_world(), ORACLE)
    few, many = (spread_after(model, np.full(4, n), np.full(4, n)) for n in (10.0, 1e6))
    assert (many.flat < 1e-3 * few.flat).all()
    np.testing.assert_allclose(many.slope, model.scales, rtol=1e-5)


# -- simulation, and a control --------------------------------------------------------------------


@pytest.mark.parametrize("policy", [ORACLE, kh.Greedy()])
@pytest.mark.parametrize("shared", [False, True])
def test_simulated_slopes_are_the_predicted_ones(policy: kh.Policy, shared: bool) -> None:
    world, horizon = a_world(n_arms=3, seed=8, shared_context=shared), 10_000
    runs = kh.simulate(
        world, policy, horizon=horizon, replications=40, seed=3, checkpoints=[1000, horizon]
    )
    gains = (runs.regret.isel(time=1) - runs.regret.isel(time=0)).values[0]
    found = asymptote(world, policy, horizon=horizon)
    expected = float(found.regret(horizon) - found.regret(1000))
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    assert abs(gains.mean() - expected) < 4.0 * error + 0.03 * expected
    # The control: v = 2 R is told apart from what was simulated.
    wrong = asymptote(world, kh.ThompsonSampling(v=2.0 * world.noise_scale), horizon=horizon)
    assert abs(gains.mean() - float(wrong.regret(horizon) - wrong.regret(1000))) > 10.0 * error


def one_dimension(*coefficients: float, **settings: Any) -> kh.LinearWorld:
    return kh.LinearWorld(sensing=[[1.0]], coefficients=[[mu] for mu in coefficients], **settings)


@pytest.mark.parametrize(
    ("world", "share"),
    [
        (one_dimension(1.0, 0.01), 0.1),
        (one_dimension(1.0, -1.0, 1e-4, reward_scale=10.0), 0.0),
        (one_dimension(1.0, -1.3, -0.4, 0.8), 0.1),
    ],
)
def test_regret_in_one_dimension_is_simulated(world: kh.LinearWorld, share: float) -> None:
    """To 4 standard errors, and a share for the first rounds; it was 13 and 500 times too large."""
    horizon = 10_000
    runs = kh.simulate(
        world, ORACLE, horizon=horizon, replications=60, seed=1, checkpoints=[horizon]
    )
    found = runs.regret.values.ravel()
    error = found.std(ddof=1) / np.sqrt(len(found))
    expected = float(asymptote(world, ORACLE, horizon=horizon).regret(horizon))
    assert abs(found.mean() - expected) < 4.0 * error + share * expected
    assert expected < 0.5 * horizon * asymptote(world, ORACLE, horizon=1).rates[0]


def test_no_round_costs_more_than_a_choice_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where a rule fails: moments of the wrong sign, or the first order at once."""
    monkeypatch.setattr(
        own_contexts, "chosen_moments", lambda spread: -scores.chosen_moments(spread)
    )
    monkeypatch.setattr(shared_context, "RARE", 1.0)
    for shared in (False, True):
        world = a_world(shared_context=shared, reward_scale=1000.0)
        found = asymptote(world, ORACLE, horizon=3)
        assert (found.rates == found.rates[0]).all()


# -- uses -----------------------------------------------------------------------------------------


def test_exploration_finds_the_v_that_costs_the_tolerance() -> None:
    found = exploration(a_world(), horizon=200, tolerance=0.1)
    assert 0.0 < found.best_v < found.r
    assert found.best == pytest.approx(1.1 * found.least, rel=1e-3)
    assert found.oracle > found.best
    assert exploration(a_world(), horizon=200, tolerance=100.0).best_v == pytest.approx(found.r)


def test_a_row_of_noise_is_worth_nothing_and_costs_regret() -> None:
    """The last row sees nothing of x: without it c is smaller, and no reward is lost."""
    world = kh.LinearWorld(
        sensing=[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        coefficients=[[1.0, 0.2], [-0.5, 1.0], [0.3, -1.0]],
    )
    rows = sensor_rows(world, ORACLE, horizon=300)
    assert [row.row for row in rows][-1] == 2
    idle = rows[-1]
    assert idle.without.value == pytest.approx(0.0, abs=1e-9)
    assert idle.without.constant < asymptote(world, ORACLE, horizon=2).constant
    assert idle.without.total > 0.0
    assert idle.halved.total == pytest.approx(0.0, abs=0.05 * abs(rows[0].halved.total))
    assert rows[0].without.value < 0.0 < rows[0].halved.value


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "policy", "reason"),
    [
        ({"context_distribution": "uniform"}, ORACLE, "normal contexts"),
        ({}, kh.LinUCB(), "derived for ThompsonSampling and Greedy"),
        ({}, kh.ThompsonSampling(), "got 'learned'"),
        ({}, kh.Greedy(sharing="hybrid"), "hybrid"),
        ({}, kh.Greedy(sharing="shared"), "arms of this world differ"),
        ({"coefficients": np.ones((2, 4)), "shared_context": True}, ORACLE, "never the only best"),
        (
            {"coefficients": np.ones((2, 4)), "shared_context": True},
            kh.Greedy(sharing="shared"),
            "alike",
        ),
        ({"coefficients": [[0.0] * 4, [1.0] * 4]}, ORACLE, "arm 1 is always 0"),
        ({"coefficients": [[1.0] * 4]}, ORACLE, "at least 2 arms"),
    ],
)
def test_what_is_not_derived_is_refused(
    changes: dict[str, Any], policy: kh.Policy, reason: str
) -> None:
    with pytest.raises(kh.InvalidValue, match=reason):
        asymptote(replace(a_world(), **changes), policy)


def test_other_mistakes_are_named() -> None:
    with pytest.raises(kh.InvalidValue, match="LinearWorld with one sensor, got int"):
        asymptote(3, ORACLE)
    with pytest.raises(kh.InvalidValue, match="policy must be a Policy"):
        asymptote(a_world(), "greedy")  # type: ignore[arg-type]
    found = asymptote(a_world(), ORACLE, horizon=10)
    for t in (0, 11, [1, 12]):
        with pytest.raises(kh.InvalidValue, match="from 1 to the horizon 10"):
            found.regret(t)
    with pytest.raises(kh.InvalidValue, match="at least 2 rows"):
        sensor_rows(a_world(dim=1), ORACLE)


def test_an_arm_that_is_hardly_ever_best_is_refused_in_a_shared_context() -> None:
    gains = [[1.0, 0.0], [1.0, 1e-5], [1.0, -1e-5], [-1.0, 0.0]]
    world = kh.LinearWorld(
        sensing=np.eye(2), coefficients=gains, sensing_covariance=0.0, shared_context=True
    )
    with pytest.raises(kh.InvalidValue, match="arm 1 is never the only best"):
        asymptote(world, ORACLE)
    gains[0] = [1.0 + 1e-9, 0.0]
    with pytest.raises(kh.InvalidValue, match="arm 1 is best with a probability of about"):
        asymptote(replace(world, coefficients=np.array(gains)), ORACLE)


@pytest.mark.parametrize(
    ("changes", "policy", "reason"),
    [
        ({"reward_scale": 1e-4, "sensing_covariance": 0.0}, ORACLE, r"kappa >= 0.3 \(v >= R\)"),
        ({}, replace(ORACLE, prior_precision=1000.0), "smaller prior_precision"),
        ({}, kh.Greedy(prior_precision=10.0), r"kappa >= 2 \(v < R\), got"),
        ({}, kh.ThompsonSampling(v=0.2, prior_precision=100.0), r"kappa >= 2 \(v < R\)"),
    ],
)
def test_a_curve_is_refused_where_first_rounds_decide(
    changes: dict[str, Any], policy: kh.Policy, reason: str
) -> None:
    """The constant stays, which does not depend on the prior."""
    settings: dict[str, Any] = {
        "sensing": np.eye(2),
        "coefficients": [[1.0, 0.0], [0.0, 2.0]],
    } | changes
    world = kh.LinearWorld(**settings)
    found = asymptote(world, policy, horizon=100)
    assert found.constant > 0.0
    assert np.isnan(found.rates).all()
    for curve in (found.regret, found.slope):
        with pytest.raises(kh.InvalidValue, match=reason):
            curve(10)
    other = asymptote(world, replace(policy, prior_precision=1e-12), horizon=10)
    assert other.refusal == ""
    assert found.constant == pytest.approx(other.constant, rel=1e-12)


def test_kappa_by_hand() -> None:
    """y = x + noise, both N(0, I): E[y'y] = 4, eta = mu / 2, Var(y'eta) = mu'mu / 2.

    R_k^2 = 1 + mu'mu / 2, so that arms with mu'mu of 1 and 4 have 1.5 * 4 / 0.5 = 12 and
    3 * 4 / 2 = 6; the lesser, by a prior precision of 5, is 1.2.
    """
    world = kh.LinearWorld(sensing=np.eye(2), coefficients=[[1.0, 0.0], [0.0, 2.0]])
    model = models.model_of(world, kh.Greedy(prior_precision=5.0))
    assert first_rounds.kappa(model) == pytest.approx(1.2, rel=1e-12)


def test_exploration_is_refused_with_the_curve_of_greedy() -> None:
    world = one_dimension(5.0, -5.0, sensing_covariance=0.0)
    with pytest.raises(kh.InvalidValue, match="kappa"):
        exploration(world, horizon=100)


def test_one_dimension_with_one_context_or_parameter_has_no_curve() -> None:
    shared = asymptote(one_dimension(1.0, -0.7, shared_context=True), ORACLE, horizon=10)
    one = asymptote(one_dimension(1.0, 1.0), replace(ORACLE, sharing="shared"), horizon=10)
    for found in (shared, one):
        with pytest.raises(kh.InvalidValue, match="one dimension"):
            found.regret(10)
    assert shared.constant == 0.0
    assert one.constant > 0.0
