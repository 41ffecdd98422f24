"""Identities of choice probabilities.

`TOLERANCE` of the kernel bounds the error of an integral by 5e-13, and rounding adds 1e-13: two
results that should be equal differ by less than `NEAR`, and a sum over n arms is off by n halves.
"""

from random import Random

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import keyhole as kh

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
NEAR = 1.2e-12


@st.composite
def scores(draw: st.DrawFn) -> tuple[Array, Array]:
    """Locations within reach of each other, and scales that differ by up to 10^6; some are 0."""
    n = draw(st.integers(1, 12))
    location = draw(st.lists(st.floats(-4, 4), min_size=n, max_size=n))
    power = draw(st.lists(st.floats(-6, 0), min_size=n, max_size=n))
    certain = draw(st.lists(st.sampled_from([1.0, 1.0, 1.0, 0.0]), min_size=n, max_size=n))
    return np.array(location), 10.0 ** np.array(power) * np.array(certain)


@settings(max_examples=150, deadline=None)
@given(scores(), st.floats(0, 1))
def test_they_are_probabilities(given_scores: tuple[Array, Array], epsilon: float) -> None:
    p = kh.choice_probabilities(*given_scores, epsilon=epsilon)
    assert abs(p.sum() - 1.0) <= p.size * NEAR / 2
    assert (p >= epsilon / p.size - EPS).all()
    assert (p <= 1.0 - epsilon + epsilon / p.size + EPS).all()


@settings(max_examples=150, deadline=None)
@given(scores(), st.integers(0, 11), st.floats(0, 3))
def test_a_higher_location_wins_more_and_takes_from_all_others(
    given_scores: tuple[Array, Array], arm: int, by: float
) -> None:
    location, scale = given_scores
    arm %= location.size
    higher = location.copy()
    higher[arm] += by
    p, q = kh.choice_probabilities(location, scale), kh.choice_probabilities(higher, scale)
    others = np.arange(p.size) != arm
    if p.size == 1:
        assert p[0] == q[0] == 1.0
        return
    assert q[arm] >= p[arm] - NEAR
    assert (q[others] <= p[others] + NEAR).all()


@settings(max_examples=150, deadline=None)
@given(scores(), st.integers(-400, 400), st.randoms(use_true_random=False))
def test_a_common_factor_and_the_order_of_arms_change_nothing(
    given_scores: tuple[Array, Array], power: int, random: Random
) -> None:
    """By powers of two to the bit, as only ratios are used, while no square is out of range of
    float64. Other orders of arms sum in other orders.
    """
    location, scale = given_scores
    p = kh.choice_probabilities(location, scale)
    factor = 2.0**power
    # A subnormal number times a power of two may be rounded, and is then another one.
    assume((location * factor / factor == location).all())
    np.testing.assert_array_equal(kh.choice_probabilities(location * factor, scale * factor), p)
    order = list(range(p.size))
    random.shuffle(order)
    again = kh.choice_probabilities(location[order], scale[order])
    np.testing.assert_allclose(again, p[order], rtol=0, atol=NEAR)


@settings(max_examples=150, deadline=None)
@given(scores(), st.floats(-1e3, 1e3))
def test_a_common_shift_changes_nothing(given_scores: tuple[Array, Array], shift: float) -> None:
    """A shifted location is rounded by eps |shift|, which moves a probability by the density of a
    difference of scores, at most 0.4 over the smallest scale, for each of the others. Certain
    scores that tie are told apart by rounding, so all are apart here or equal.
    """
    location, scale = given_scores
    location = np.round(location * 2.0**20) / 2.0**20
    shift = float(np.round(shift * 2.0**20) / 2.0**20)
    np.testing.assert_array_equal((location + shift) - shift, location)  # exact, so no rounding
    p = kh.choice_probabilities(location, scale)
    narrowest = scale[scale > 0].min(initial=1.0)
    rounding = location.size * 0.4 * 2 * EPS * abs(shift) / narrowest
    again = kh.choice_probabilities(location + shift, scale)
    np.testing.assert_allclose(again, p, rtol=0, atol=NEAR + rounding)
