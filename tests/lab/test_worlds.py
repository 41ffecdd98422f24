"""Worlds: what they derive by hand and by closed form, and what they hand out."""

import dataclasses
import json
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from scipy import stats

import keyhole as kh
from keyhole.core.seeds import Streams
from keyhole.lab.worlds import drawing
from keyhole.lab.worlds.distributions import DRAWS, Name, is_subgaussian
from tests.worlds import WORLDS, linear

every = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
N = 40_000


def within(estimate: Any, truth: Any, error: Any, k: float = 4.5) -> None:
    """Every estimate within k standard errors; k = 4.5 leaves room for a thousand of them."""
    np.testing.assert_array_less(np.abs(np.asarray(estimate) - truth), k * np.asarray(error) + 1e-9)


def mean_within(samples: np.ndarray, truth: Any) -> None:
    within(samples.mean(axis=0), truth, samples.std(axis=0) / np.sqrt(len(samples)))


# -- one contract for every world -----------------------------------------------------------------


@every
def test_shapes(world: kh.World) -> None:
    rounds = world.sample(7, seed=1)
    n, d = world.n_arms, world.dim
    assert rounds.observations.shape in ((7, n, d), (7, 1, d))
    assert rounds.rewards.shape == rounds.values.shape == rounds.latent.shape == (7, n)
    assert world.eta.shape == (n, d)
    assert len(rounds) == 7
    assert len(world.sample(0, seed=1)) == 0


@every
def test_the_seed_decides_and_pieces_make_the_whole(world: kh.World) -> None:
    """Products of differently sized blocks may round differently: to 1e-12 of the largest."""
    whole, again, other = (world.sample(300, seed=seed) for seed in (3, 3, 4))
    state = world.start(Streams(3))
    pieces = [world.rounds(state, n) for n in (1, 99, 200)]
    names = {field.name for field in dataclasses.fields(kh.Rounds)}
    for name in ("labels", "sensors"):
        if getattr(whole, name) is None:
            assert all(getattr(piece, name) is None for piece in pieces)
            names.remove(name)
    for name in names:
        np.testing.assert_array_equal(getattr(whole, name), getattr(again, name))
        joined = np.concatenate([getattr(piece, name) for piece in pieces])
        expected = getattr(whole, name)
        np.testing.assert_allclose(joined, expected, atol=1e-12 * np.abs(expected).max())
    assert not np.array_equal(whole.rewards, other.rewards)


@every
def test_values_are_the_observations_times_eta(world: kh.World) -> None:
    rounds = world.sample(50, seed=2)
    y = np.broadcast_to(rounds.observations, (50, world.n_arms, world.dim))
    expected = np.einsum("tnd,nd->tn", y, world.eta)
    np.testing.assert_allclose(rounds.values, expected, atol=1e-12 * (1 + np.abs(expected).max()))


@every
def test_the_error_of_the_prediction_is_uncorrelated_with_what_is_seen(world: kh.World) -> None:
    """E (r - y'eta) y = 0, of any world, normal or not: y'eta is the best linear prediction."""
    rounds = world.sample(N, seed=3)
    y = np.broadcast_to(rounds.observations, (N, world.n_arms, world.dim))
    mean_within((rounds.rewards - rounds.values)[:, :, None] * y, 0.0)
    if isinstance(world, kh.LinearWorld):
        mean_within(rounds.rewards, 0.0)


@every
def test_the_noise_scale_is_the_largest_error_of_the_prediction(world: kh.World) -> None:
    rounds = world.sample(N, seed=4)
    squares = (rounds.rewards - rounds.values) ** 2
    largest = squares.mean(axis=0).argmax()
    mean_within(squares[:, largest], world.noise_scale**2)


@every
def test_it_describes_itself(world: kh.World) -> None:
    described = world.describe()
    assert described["n_arms"] == world.n_arms
    assert described["kind"] == type(world).__name__


# -- the linear world -----------------------------------------------------------------------------


def test_one_arm_by_hand() -> None:
    """x of variance 4 seen as y = 3 x + noise of variance 1: D = 4 3 / (9 4 + 1) = 12/37."""
    world = kh.LinearWorld(
        sensing=[[3.0]], coefficients=[[2.0]], context_covariance=4.0, reward_scale=0.5
    )
    assert world.observation_covariance.tolist() == [[37.0]]
    np.testing.assert_allclose(world.prediction, [[12 / 37]], rtol=1e-14)
    np.testing.assert_allclose(world.eta, [[24 / 37]], rtol=1e-14)
    assert world.r1 == 0.5
    assert world.r2 == pytest.approx(np.sqrt(4 * (4 - 12 / 37 * 3 * 4)), rel=1e-12)
    assert world.noise_scale == pytest.approx(np.hypot(world.r1, world.r2), rel=1e-14)
    assert world.optimality[0].tolist() == pytest.approx([1.0])


def test_the_prediction_is_the_papers() -> None:
    """D = (A' Sxi^-1 A + Sx^-1)^-1 A' Sxi^-1, where those inverses exist."""
    world = linear(dim=6)
    inverse = np.linalg.inv
    A, Sx, Sxi = world.sensing, world.context_covariance, world.sensing_covariance
    paper = inverse(A.T @ inverse(Sxi) @ A + inverse(Sx)) @ A.T @ inverse(Sxi)
    np.testing.assert_allclose(world.prediction, paper, atol=1e-10)


def test_full_observation_learns_mu_itself() -> None:
    world = linear(sensing=np.eye(4), sensing_covariance=0.0)
    np.testing.assert_allclose(world.eta, world.coefficients, atol=1e-10)
    assert world.r2 == pytest.approx(0.0, abs=1e-12)
    rounds = world.sample(100, seed=1)
    np.testing.assert_allclose(rounds.values, rounds.latent, atol=1e-6)


def test_features_in_very_different_units() -> None:
    """Scales are no ranks: a small feature is not taken for rounding, with or without noise."""
    exact = kh.LinearWorld(
        sensing=np.eye(2),
        coefficients=[[1e4, 0.0], [0.0, 1e-4]],
        context_covariance=np.diag([1e-8, 1e8]),
        sensing_covariance=0.0,
    )
    np.testing.assert_allclose(exact.eta, exact.coefficients, rtol=1e-12)
    assert exact.r2 <= 1e-7
    np.testing.assert_allclose(exact.value_scales, [1.0, 1.0], rtol=1e-12)
    plain, units = linear(dim=3), np.array([1e-6, 1.0, 1e6])
    scaled = linear(
        sensing=plain.sensing * units[:, None],
        sensing_covariance=plain.sensing_covariance * np.outer(units, units),
    )
    np.testing.assert_allclose(scaled.eta * units, plain.eta, rtol=1e-9)
    assert scaled.r2 == pytest.approx(plain.r2, rel=1e-9)


def test_an_ill_conditioned_covariance() -> None:
    """Condition 1e12, rotated, and all of it seen: y'eta has the variance of x'mu."""
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    spread = (turn * np.geomspace(1e-12, 1.0, 4)) @ turn.T
    mu = rng.standard_normal((3, 4))
    world = linear(
        sensing=np.eye(4), coefficients=mu, context_covariance=spread, sensing_covariance=0.0
    )
    expected = np.sqrt(np.diag(mu @ world.context_covariance @ mu.T))
    np.testing.assert_allclose(world.value_scales, expected, rtol=1e-6)
    assert world.r2 <= 1e-6


def test_arms_of_one_parameter_and_one_context_tie_to_the_bit() -> None:
    settings = {"n_arms": 5, "context_dim": 80, "dim": 80, "shared_parameter": True}
    for distribution in ("normal", "uniform"):
        world = kh.LinearWorld.random(
            **settings, shared_context=True, context_distribution=distribution, seed=1
        )
        rounds = world.sample(200, seed=1)
        assert (rounds.values == rounds.values[:, :1]).all()
        assert (rounds.latent == rounds.latent[:, :1]).all()
    np.testing.assert_allclose(world.optimality[0], 0.2, rtol=1e-12)


def test_rounds_of_very_many_arms_need_no_matrix_over_arms() -> None:
    world = linear(shared_context=True)
    world.sample(2, seed=1)
    assert not {"unseen_covariance", "predicted_covariance"} & set(vars(world))


@pytest.mark.parametrize("shared", [False, True])
def test_what_is_seen_wholly_leaves_nothing(shared: bool) -> None:
    """A covariance of low rank, without noise: rounding puts what is unseen on either side of 0."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        thin = rng.standard_normal((4, 2))
        world = kh.LinearWorld(
            sensing=np.eye(4),
            coefficients=rng.standard_normal((3, 4)),
            context_covariance=thin @ thin.T,
            sensing_covariance=0.0,
            shared_context=shared,
        )
        rounds = world.sample(20, seed=1)
        np.testing.assert_allclose(rounds.latent, rounds.values, atol=1e-6)


def test_what_is_derived_cannot_be_changed_either() -> None:
    world = linear()
    for name in ("eta", "prediction", "observation_covariance", "value_scales"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(world, name)[...] = 0.0


def test_the_normal_shortcut_has_the_models_distribution() -> None:
    """y and then x'mu given y, against x and then y: all second moments agree."""
    for shared in (False, True):
        world = linear(shared_context=shared)
        shortcut = world.sample(N, seed=1)
        general = drawing.drawn_rounds(world, N, Streams(2))
        moments = []
        for rounds in (shortcut, general):
            y = np.broadcast_to(rounds.observations, (N, 3, world.dim)).reshape(N, -1)
            joint = np.concatenate([y, rounds.latent, rounds.values], axis=1)
            moments.append(np.einsum("ti,tj->tij", joint, joint))
        error = np.sqrt(sum(m.var(axis=0) / N for m in moments))
        within(moments[0].mean(axis=0), moments[1].mean(axis=0), error)


def test_observations_have_their_covariance() -> None:
    for world in (world for world in WORLDS.values() if isinstance(world, kh.LinearWorld)):
        y = world.sample(N, seed=6).observations[:, 0]
        mean_within(np.einsum("ti,tj->tij", y, y), world.observation_covariance)


def test_unseen_covariances() -> None:
    for shared in (False, True):
        world = linear(shared_context=shared)
        rounds = world.sample(N, seed=7)
        gap = rounds.latent - rounds.values
        mean_within(np.einsum("ti,tj->tij", gap, gap), world.unseen_covariance)


@pytest.mark.parametrize(
    "name", ["less seen than there is", "shared context", "uniform, own context"]
)
def test_optimality_and_best_value_against_counting(name: str) -> None:
    world = WORLDS[name]
    assert isinstance(world, kh.LinearWorld)
    values = world.sample(N, seed=8).values
    p, error = world.optimality
    wins = values.argmax(axis=1)[:, None] == np.arange(3)
    within(wins.mean(axis=0), p, np.hypot(error, np.sqrt(p * (1 - p) / N)))
    assert p.sum() == pytest.approx(1.0, abs=1e-10)
    best, best_error = world.best_value
    counted = values.max(axis=1)
    within(counted.mean(), best, np.hypot(best_error, counted.std() / np.sqrt(N)))
    assert (best_error == 0.0) == (name == "less seen than there is")
    assert (error == 0.0).all() == (name != "uniform, own context")


def test_optimality_of_a_shared_context_in_the_plane() -> None:
    """Arms whose coefficients are unit vectors: each wins within the middle of its neighbours."""
    degrees = np.array([0.0, 100.0, 160.0, 250.0])
    mu = np.column_stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    world = kh.LinearWorld(
        sensing=np.eye(2), coefficients=mu, sensing_covariance=0.0, shared_context=True
    )
    p, error = world.optimality
    np.testing.assert_allclose(p, np.array([105.0, 80.0, 75.0, 100.0]) / 360.0, rtol=1e-9)
    assert not error.any()
    # A twin shares the first's wins; an arm inside the others' hull never wins.
    twins = replace(world, coefficients=np.vstack([mu[[0, 0, 1, 3]], [[-0.01, 0.02]]]))
    p, error = twins.optimality
    np.testing.assert_allclose(p, np.array([52.5, 52.5, 125, 130, 0]) / 360.0, atol=1e-9)
    assert p[4] == 0.0
    five = replace(world, coefficients=np.vstack([mu, [[-2.0, 0.0]]]))
    assert five.optimality[1].all()  # counted: no closed form


def test_best_value_in_closed_form() -> None:
    """The largest of three independent standard normals has mean 3 / (2 sqrt(pi))."""
    world = kh.LinearWorld(sensing=np.eye(1), coefficients=np.ones((3, 1)), sensing_covariance=0.0)
    assert world.best_value[0] == pytest.approx(1.5 / np.sqrt(np.pi), rel=1e-9)
    np.testing.assert_allclose(world.optimality[0], 1 / 3, rtol=1e-9)


def test_a_recipe_passes_every_setting_on() -> None:
    two: Any = np.int64(2)
    half: Any = np.float32(0.5)
    recipe = kh.RandomLinearWorld(
        n_arms=two,
        context_dim=3,
        dim=4,
        shared_context=True,
        context_scale=2,
        sensing_scale=3.0,
        reward_scale=half,
        context_distribution="uniform",
        sensing_distribution="mixture",
        reward_distribution="rademacher",
    )
    world = recipe.draw(seed=1)
    np.testing.assert_array_equal(world.context_covariance, 4.0 * np.eye(3))
    np.testing.assert_array_equal(world.sensing_covariance, 9.0 * np.eye(4))
    assert world.reward_scale == 0.5
    assert world.shared_context
    assert world.context_distribution == "uniform"
    assert world.sensing_distribution == "mixture"
    assert world.reward_distribution == "rademacher"
    json.dumps(recipe.describe())


def test_a_recipe_draws_standard_normal_instances() -> None:
    recipe = kh.RandomLinearWorld(n_arms=30, context_dim=40, dim=50)
    world = recipe.draw(seed=1)
    for entries in (world.sensing.ravel(), world.coefficients.ravel()):
        assert stats.kstest(entries, "norm").pvalue > 1e-4
    assert world.describe() == recipe.draw(seed=1).describe() != recipe.draw(seed=2).describe()
    shared = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=2, shared_parameter=True, seed=1)
    assert (shared.coefficients == shared.coefficients[0]).all()


# -- distributions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", get_args(Name))
def test_mean_zero_and_variance_one(name: str) -> None:
    x = DRAWS[name](kh.Streams(1)["x"], np.empty(200_000))
    mean_within(x, 0.0)
    mean_within(x**2, 1.0)


@pytest.mark.parametrize("name", [n for n in get_args(Name) if is_subgaussian(n)])
@pytest.mark.parametrize("s", [-2.0, -0.5, 1.0, 2.0])
def test_strictly_sub_gaussian(name: str, s: float) -> None:
    """E exp(s X) <= exp(s^2 / 2), with 4.5 standard errors for the estimate of the left side."""
    x = DRAWS[name](kh.Streams(2)["x"], np.empty(200_000))
    moment = np.exp(s * x)
    assert moment.mean() <= np.exp(s * s / 2) + 4.5 * moment.std() / np.sqrt(x.size)


def test_the_distributions_are_what_their_names_say() -> None:
    rng = kh.Streams(3)["x"]
    draws = {name: draw(rng, np.empty(20_000)) for name, draw in DRAWS.items()}
    root = np.sqrt(3)
    cut = stats.truncnorm(-2, 2)
    laws: dict[str, Any] = {
        "normal": stats.norm().cdf,
        "uniform": stats.uniform(-root, 2 * root).cdf,
        "truncated-normal": stats.truncnorm(-2, 2, scale=1 / cut.std()).cdf,
        "student-t": stats.t(5, scale=np.sqrt(3 / 5)).cdf,
        "mixture": lambda x: sum(stats.norm(m, np.sqrt(0.19)).cdf(x) / 2 for m in (-0.9, 0.9)),
    }
    for name, law in laws.items():
        assert stats.kstest(draws[name], law).pvalue > 1e-4, name
        # The negative control: the test tells it from a slightly wider one.
        assert stats.kstest(1.1 * draws[name], law).pvalue < 1e-4, name
    assert set(draws["rademacher"]) == {-1.0, 1.0}
    assert not is_subgaussian("student-t")


def test_heavy_tails_are_said_to_be_outside_the_theory() -> None:
    assert linear(reward_distribution="student-t").r1 == np.inf
    assert np.isfinite(linear(reward_distribution="student-t").noise_scale)


# -- guards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sensing": np.ones(4)}, "sensing"),
        ({"sensing": np.ones((0, 4))}, "sensing"),
        ({"sensing": [[np.nan] * 4]}, "sensing"),
        ({"coefficients": np.ones((3, 5))}, "coefficients"),
        ({"coefficients": np.ones(4)}, "coefficients"),
        ({"coefficients": np.ones((0, 4))}, "coefficients"),
        ({"context_covariance": np.ones((3, 3))}, "context_covariance"),
        ({"context_covariance": -1.0}, "negative eigenvalue"),
        ({"context_covariance": np.triu(np.ones((4, 4)))}, "symmetric"),
        ({"sensing_covariance": -np.eye(3)}, "negative eigenvalue"),
        ({"reward_scale": -1.0}, "reward_scale"),
        ({"context_distribution": "gaussian"}, "normal, uniform"),
        ({"reward_distribution": "cauchy"}, "reward_distribution"),
        ({"shared_context": "no"}, "shared_context"),
        ({"reward_distribution": np.array("normal")}, "reward_distribution"),
        ({"context_distribution": np.array(["normal", "uniform"])}, "context_distribution"),
        ({"sensing_distribution": ["normal"]}, "sensing_distribution"),
        ({"reward_distribution": 10**5000}, "reward_distribution"),
        ({"reward_scale": np.timedelta64(1, "s")}, "reward_scale"),
    ],
)
def test_nonsense_worlds(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        linear(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_arms": 0},
        {"context_dim": 1.5},
        {"sensing_scale": -1.0},
        {"sensing_distribution": "x"},
        {"sensing_distribution": np.array(["normal", "uniform"])},
        {"n_arms": 10**9},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_nonsense_recipes(settings: dict[str, Any]) -> None:
    usual = {"n_arms": 2, "context_dim": 3, "dim": 4}
    with pytest.raises(kh.InvalidValue, match=next(iter(settings))):
        kh.RandomLinearWorld(**{**usual, **settings})


@pytest.mark.parametrize("kind", [np.longdouble, np.float32, np.float64, np.int64, int])
def test_the_centre_of_a_missing_world_may_be_any_number(kind: Any) -> None:
    """It becomes a plain float: a longdouble made observations that no kernel takes."""
    world = kh.MissingWorld(linear(), share=np.float32(0.5), centre=kind(2))  # type: ignore[arg-type] # numbers
    assert type(world.centre) is type(world.share) is float
    expected = kh.MissingWorld(linear(), share=0.5, centre=2.0).sample(50, seed=1)
    np.testing.assert_array_equal(world.sample(50, seed=1).observations, expected.observations)
    recipe = kh.RandomLinearWorld(n_arms=2, context_dim=2, dim=2)
    random = kh.RandomMissingWorld(recipe, share=0.5, centre=kind(2))
    assert json.loads(json.dumps(random.describe()))["centre"] == 2.0


@pytest.mark.parametrize(
    "settings",
    [
        {"centre": np.timedelta64(1, "s")},
        {"centre": 10**5000},
        {"centre": np.longdouble("nan")},
        {"share": np.array([0.5, 0.5])},
        {"share": 2.0},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_nonsense_about_what_is_missing(settings: dict[str, Any]) -> None:
    recipe = kh.RandomLinearWorld(n_arms=2, context_dim=2, dim=2)
    for make in (
        lambda **given: kh.MissingWorld(linear(), **given),
        lambda **given: kh.RandomMissingWorld(recipe, **given),
    ):
        with pytest.raises(kh.InvalidValue, match=next(iter(settings))):
            make(**{"share": 0.5, **settings})


@pytest.mark.parametrize("recipe", [None, kh.RandomLinearWorld, object(), [10**5000]])
def test_what_is_no_recipe(recipe: Any) -> None:
    with pytest.raises(kh.InvalidValue, match="recipe"):
        kh.RandomMissingWorld(recipe, share=0.5)


def test_words_about_a_table() -> None:
    data = kh.Dataset(features=np.eye(4), labels=["a", "a", "b", "b"])
    for name in ("rewards", "sensing"):
        for given in (np.array(["linear", "bernoulli"]), ["linear"], None, 10**5000):
            with pytest.raises(kh.InvalidValue, match=name):
                kh.RandomDatasetWorld(data, dim=2, **{name: given})  # type: ignore[arg-type]


def test_a_world_cannot_be_changed() -> None:
    world = linear()
    with pytest.raises(dataclasses.FrozenInstanceError):
        world.reward_scale = 2.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        world.sensing[0, 0] = 1.0
