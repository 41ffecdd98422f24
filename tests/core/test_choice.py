"""The exact probability of each arm being chosen."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import keyhole as kh
from keyhole.core.choice import expected_largest


def two_arms(location: list[float], scale: list[float]) -> float:
    """P(N(m0, s0^2) > N(m1, s1^2)) in closed form."""
    return float(ndtr((location[0] - location[1]) / math.hypot(*scale)))


@pytest.mark.parametrize("gap", [0.0, 0.3, 1.0, -4.0, 8.0])
@pytest.mark.parametrize("ratio", [1.0, 1e-3, 1e-6, 1e6, 1e-9, 1e-12])
@pytest.mark.parametrize("centre", [0.0, 1000.0])
def test_two_arms_have_the_normal_formula(gap: float, ratio: float, centre: float) -> None:
    location, scale = [centre + gap, centre], [1.0, ratio]
    p = kh.choice_probabilities(location, scale)
    assert p[0] == pytest.approx(two_arms(location, scale), abs=1e-12)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)


def test_equal_arms_share_alike() -> None:
    for n in (1, 3, 100):
        np.testing.assert_allclose(kh.choice_probabilities([5.0] * n, [2.0] * n), 1 / n, rtol=1e-12)


def test_three_arms_against_quadrature_in_30_digits() -> None:
    location, scale = [0.2, -0.5, 1.0], [1.0, 3.0, 0.1]

    def integrand(i: int) -> Any:
        def at(x: Any) -> Any:
            t = [(x - m) / s for m, s in zip(location, scale, strict=True)]
            others = mpmath.fprod(mpmath.ncdf(t[j]) for j in range(3) if j != i)
            return mpmath.npdf(t[i]) / scale[i] * others

        return at

    with mpmath.workdps(30):
        panels = mpmath.linspace(-30, 30, 121)
        expected = [float(mpmath.quad(integrand(i), panels)) for i in range(3)]
    np.testing.assert_allclose(kh.choice_probabilities(location, scale), expected, atol=1e-13)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-5, 5), st.floats(-6, 0).map(lambda e: 10.0**e)), min_size=1, max_size=8
    )
)
def test_they_sum_to_one_and_ignore_units_and_order(scores: list[tuple[float, float]]) -> None:
    location, scale = np.array(scores).T
    p = kh.choice_probabilities(location, scale)
    assert p.sum() == pytest.approx(1.0, abs=1e-10)
    assert (p >= 0).all()
    np.testing.assert_allclose(
        kh.choice_probabilities(location[::-1], scale[::-1])[::-1], p, atol=1e-12
    )
    np.testing.assert_allclose(kh.choice_probabilities(64 * location, 64 * scale), p, atol=1e-12)


@pytest.mark.parametrize("kind", ["alike", "scales over 1e6"])
def test_ten_thousand_arms(kind: str) -> None:
    rng = np.random.default_rng(1)
    location = rng.standard_normal(10_000)
    scale = np.ones(10_000) if kind == "alike" else 10.0 ** rng.uniform(-6, 0, 10_000)
    p = kh.choice_probabilities(location, scale)
    assert p.sum() == pytest.approx(1.0, abs=1e-10)
    draws = 2000
    wins = np.bincount(
        [np.argmax(location + scale * rng.standard_normal(10_000)) for _ in range(draws)],
        minlength=10_000,
    )
    # In ten groups by probability: each count is binomial.
    for group in np.array_split(np.argsort(p), 10):
        chance = p[group].sum()
        error = np.sqrt(chance * (1 - chance) / draws)
        assert abs(wins[group].sum() / draws - chance) <= 4 * error + 1e-12


def test_frequencies_agree_within_four_standard_errors() -> None:
    rng = np.random.default_rng(2)
    location, scale = rng.standard_normal(20), rng.uniform(0.1, 2.0, 20)
    p = kh.choice_probabilities(location, scale)
    draws = 200_000
    wins = np.bincount(
        (location + scale * rng.standard_normal((draws, 20))).argmax(axis=1), minlength=20
    )
    assert (np.abs(wins / draws - p) <= 4 * np.sqrt(p * (1 - p) / draws)).all()
    # The negative control: the same test tells a wrong scale apart.
    wrong = kh.choice_probabilities(location, 1.1 * scale)
    assert (np.abs(wins / draws - wrong) > 4 * np.sqrt(p * (1 - p) / draws)).any()


def test_certain_scores() -> None:
    zeros = [0.0, 0.0, 0.0]
    np.testing.assert_array_equal(kh.choice_probabilities([1.0, 3.0, 2.0], zeros), [0, 1, 0])
    np.testing.assert_array_equal(kh.choice_probabilities([3.0, 3.0, 2.0], zeros), [0.5, 0.5, 0])
    # A certain score against a normal one is the normal's distribution function.
    p = kh.choice_probabilities([1.5, 1.5, 0.0], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(p, [ndtr(1.5) / 2, ndtr(1.5) / 2, ndtr(-1.5)], atol=1e-15)
    p = kh.choice_probabilities([100.0, 0.0], [0.0, 1.0])
    np.testing.assert_array_equal(p, [1.0, 0.0])
    p = kh.choice_probabilities([-100.0, 0.0], [0.0, 1.0])
    np.testing.assert_allclose(p, [0.0, 1.0], atol=1e-15)


def test_two_narrow_scores_beside_a_wide_one_still_compete() -> None:
    """Their contest is invisible at the wide one's scale, and must not be lost."""
    for narrow in (1e-3, 1e-6, 1e-9, 1e-13):
        p = kh.choice_probabilities([0.0, narrow, 0.2], [narrow, narrow, 1.0])
        assert p[0] / (p[0] + p[1]) == pytest.approx(ndtr(-1 / np.sqrt(2)), abs=2 * narrow + 1e-9)
        assert p[2] == pytest.approx(ndtr(0.2), abs=2 * narrow)


def test_scores_narrower_than_the_rounding_of_their_location() -> None:
    np.testing.assert_allclose(
        kh.choice_probabilities([2e7, 1e7], [1e-10, 0.05]), [1, 0], atol=1e-12
    )
    np.testing.assert_allclose(kh.choice_probabilities([1.0, 1.0], [1e-18, 0.0]), 0.5, atol=1e-12)


@pytest.mark.parametrize("size", [5e-324, 1e-308, 1e-300, 1e-160, 1e160, 1e298])
def test_scores_of_any_size(size: float) -> None:
    """From the smallest number there is."""
    p = kh.choice_probabilities([0.0, 0.0, 0.0], [size, size, size])
    np.testing.assert_allclose(p, 1 / 3, atol=1e-12)


def test_no_probability_is_above_one() -> None:
    rng = np.random.default_rng(3)
    p = kh.choice_probabilities(4 * rng.standard_normal((2000, 3)), np.ones((2000, 3)))
    assert (p <= 1.0).all()
    assert (p == 1.0).any()


def test_a_case_in_which_only_the_halves_tell() -> None:
    """Totals agree with the growth of the product here while the single integrals are off."""
    location, scale = [-0.46123239, 3.62312743], [0.02827329, 0.6392894]
    p = kh.choice_probabilities(location, scale)
    assert p[0] == pytest.approx(two_arms(location, scale), abs=1e-14)


def test_small_probabilities_keep_their_digits() -> None:
    p = kh.choice_probabilities([0.0, 9.0], [1.0, 1.0])
    assert p[0] == pytest.approx(float(ndtr(-9 / np.sqrt(2))), rel=1e-9)


def test_epsilon_mixes_with_a_uniform_choice() -> None:
    p = kh.choice_probabilities([[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]], epsilon=0.1)
    np.testing.assert_allclose(p, [[0.95, 0.05], [0.5, 0.5]], atol=1e-15)


def test_the_expected_largest() -> None:
    """max(c, Z) has mean c Phi(c) + phi(c); the larger of two standard normals 1 / sqrt(pi)."""
    for c in (-2.0, 0.0, 0.7):
        density = math.exp(-c * c / 2) / math.sqrt(2 * math.pi)
        expected = c * float(ndtr(c)) + density
        assert expected_largest([c, 0.0], [0.0, 1.0]) == pytest.approx(expected, abs=1e-10)
    assert expected_largest([5.0, 5.0], [2.0, 2.0]) == pytest.approx(5 + 2 / math.sqrt(math.pi))
    assert expected_largest([1.0, 3.0], [0.0, 0.0]) == 3.0
    rng = np.random.default_rng(4)
    location, scale = rng.standard_normal(6), 10.0 ** rng.uniform(-4, 1, 6)
    draws = (location + scale * rng.standard_normal((200_000, 6))).max(axis=1)
    error = draws.std() / math.sqrt(200_000)
    assert abs(draws.mean() - expected_largest(location, scale)) <= 4 * error


@pytest.mark.parametrize(
    ("location", "scale", "epsilon"),
    [
        ([], [], 0.0),
        ([1.0], [1.0, 2.0], 0.0),
        ([np.nan], [1.0], 0.0),
        ([1.0], [-1.0], 0.0),
        ([1.0], [np.inf], 0.0),
        (1.0, 1.0, 0.0),
        ([1.0], [1.0], 1.5),
        (["a"], [1.0], 0.0),
    ],
)
def test_bad_input(location: Any, scale: Any, epsilon: float) -> None:
    with pytest.raises(kh.InvalidValue):
        kh.choice_probabilities(location, scale, epsilon=epsilon)
