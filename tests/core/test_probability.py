"""The probability of one score being the largest, against quadrature in 30 digits."""

import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from keyhole.core import kernels
from keyhole.core.kernels import probability

REACH = 9.5


class Laws(NamedTuple):
    location: list[float]
    scale: list[float]
    n: list[float]


def chance(laws: Laws, place: int) -> float:
    location, scale, count = (np.array(column, float) for column in laws)
    return float(kernels.chance_of(location, scale, count, place))


def panels(laws: Laws, place: int) -> list[Any]:
    """Ends of intervals that are short next to every score that is not certain there."""
    scores = [(mpmath.mpf(m), mpmath.mpf(s)) for m, s in zip(*laws[:2], strict=True)]
    low = max(m - 12 * s for m, s in scores)
    high = scores[place][0] + 12 * scores[place][1]
    ends = {m + k * s for m, s in scores for k in range(-12, 13, 2)}
    return [low, *sorted(end for end in ends if low < end < high), high]


def textbook(laws: Laws, place: int) -> float:
    """The integral of phi_p Phi_p^(n_p - 1) prod_j Phi_j^n_j, in 30 digits, if s_p > 0."""
    nodes, weights = GAUSS
    total = mpmath.mpf(0)
    ends = panels(laws, place)
    if ends[0] >= ends[-1]:
        return 0.0
    for a, b in pairwise(ends):
        for node, weight in zip(nodes, weights, strict=True):
            x = (a + b) / 2 + (b - a) / 2 * node
            value = (b - a) / 2 * weight / laws.scale[place]
            for j, (m, s, n) in enumerate(zip(*laws, strict=True)):
                if j == place:
                    value *= mpmath.npdf((x - m) / s)
                if s > 0 and (times := n - (j == place)):
                    value *= mpmath.ncdf((x - m) / s) ** times
            total += value
    return float(total)


def gauss_legendre(n: int) -> tuple[list[Any], list[Any]]:
    """Nodes and weights on [-1, 1], by Newton's method from those of float64."""
    nodes, weights = [], []
    for start in np.polynomial.legendre.leggauss(n)[0]:
        x = mpmath.mpf(start)
        for _ in range(3):
            p, before = mpmath.legendre(n, x), mpmath.legendre(n - 1, x)
            slope = n * (before - x * p) / (1 - x * x)
            x -= p / slope
        nodes.append(x)
        slope = n * mpmath.legendre(n - 1, x) / (1 - x * x)
        weights.append(2 / ((1 - x * x) * slope**2))
    return nodes, weights


mpmath.mp.dps = 30
GAUSS = gauss_legendre(24)


def ones(location: list[float], scale: list[float]) -> Laws:
    return Laws(location, scale, [1.0] * len(location))


ADVERSARIAL = {
    "equal": Laws([0.0], [1.0], [5.0]),
    "three equal": ones([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]),
    "one wide": ones([0.0, 0.3, -0.2, 0.1], [1.0, 0.1, 0.1, 0.1]),
    "one narrow": ones([0.0, 0.3, -0.2, 0.1], [0.1, 1.0, 1.0, 1.0]),
    "far below": ones([0.0, 7.0, 7.5], [1.0, 1.0, 1.0]),
    "far above": ones([0.0, -17.0, -18.5, -19.1], [1.0, 1.0, 1.0, 1.0]),
    "a thousand rivals": Laws([1.0, 0.0], [1.0, 1.0], [1.0, 1000.0]),
    "a million rivals": Laws([1.0, 0.0, 0.0], [1.0, 1.0, 0.5], [1.0, 1e6, 3.0]),
    "of a hundred thousand": Laws([0.0, 0.1], [1.0, 1.1], [1e5, 1e5]),
    "narrow crowd": Laws([0.0, 0.5], [1.0, 0.02], [1.0, 1e5]),
    "ratio 1e6": ones([0.3, 0.0, 0.1], [1.0, 1e-6, 1.0]),
    "ratio 1e6, twice": ones([0.3, 0.0, 1e-6], [1.0, 1e-6, 2e-6]),
    "narrow at the top": ones([0.0, 3.0, 0.5], [1.0, 1e-3, 1.0]),
    "cascade": ones([0.0] * 7, [10.0**-k for k in range(7)]),
    "slow cascade": ones([0.0] * 8, [3.0**-k for k in range(8)]),
    "cascade upwards": ones([2 * 0.1**k for k in range(6)], [0.1**k for k in range(6)]),
    "beside a certain one": ones([0.0, 0.5, 0.2], [1.0, 0.0, 0.7]),
    "beside many certain ones": Laws([0.0, 0.5, 0.2], [1.0, 0.0, 1e-4], [3.0, 7.0, 2.0]),
    "narrower than rounding": ones([1e7, 1e7, 1e7], [1e-12, 2e-12, 0.01]),
    "huge": ones([0.0, 3e299, -1e299], [1e300, 5e299, 2e299]),
    "tiny": ones([0.0, 1e-300, 0.0], [1e-300, 2e-300, 1e-301]),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_laws_against_30_digits(name: str) -> None:
    laws = ADVERSARIAL[name]
    for place, scale in enumerate(laws.scale):
        if scale > 0:
            assert chance(laws, place) == pytest.approx(textbook(laws, place), abs=1e-12)


def random_laws(seed: int) -> Laws:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    decades = rng.choice([0.0, 0.5, 1.0, 2.0, 6.0])
    spread = rng.choice([0.3, 1.0, 4.0])
    count = rng.choice([1, 1, 1, 2, 30, 1000, 100_000], n).astype(float)
    scale = 10.0 ** rng.uniform(-decades, 0.0, n)
    return Laws((spread * rng.standard_normal(n)).tolist(), scale.tolist(), count.tolist())


@pytest.mark.parametrize("seed", range(40))
def test_random_laws_against_30_digits(seed: int) -> None:
    laws = random_laws(seed)
    place = seed % len(laws.location)
    assert chance(laws, place) == pytest.approx(textbook(laws, place), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 30, 200, 1000])
@pytest.mark.parametrize("decades", [0.0, 1.0, 6.0])
def test_one_score_is_one_of_all(n: int, decades: float) -> None:
    """The sibling for all scores agrees, and so do laws that are counted and written out."""
    rng = np.random.default_rng(n)
    location, scale = rng.standard_normal(n), 10.0 ** rng.uniform(-decades, 0.0, n)
    count = rng.integers(1, 4, n).astype(float)
    one = np.ones(n)
    (row,) = kernels.winning_rows(location[None], scale[None])
    assert row.sum() == pytest.approx(1.0, abs=2e-12 * math.sqrt(n))
    written_out = [np.repeat(column, count.astype(int)) for column in (location, scale)]
    (many,) = kernels.winning_rows(*(column[None] for column in written_out))
    first = np.cumsum(count).astype(int) - count.astype(int)
    for place in {0, n // 2, n - 1, int(row.argmax()), int(scale.argmax())}:
        assert kernels.chance_of(location, scale, one, place) == pytest.approx(
            row[place], abs=2e-12
        )
        assert kernels.chance_of(location, scale, count, place) == pytest.approx(
            many[first[place]], abs=2e-12
        )


def test_equal_scores_share_alike() -> None:
    for n in (1.0, 2.0, 7.0, 1e5):
        assert chance(Laws([3.0], [2.0], [n]), 0) == 1 / n
        assert chance(Laws([3.0, 3.0], [2.0, 2.0], [n, n]), 1) == pytest.approx(0.5 / n, abs=1e-12)


def test_certain_scores_tie_and_share() -> None:
    laws = Laws([2.0, 2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [2.0, 3.0, 9.0, 1.0])
    assert chance(laws, 0) == chance(laws, 1) == pytest.approx(float(ndtr(2.0)) / 5, abs=1e-15)
    assert chance(laws, 2) == 0.0
    assert chance(laws, 3) == pytest.approx(float(ndtr(-2.0)), rel=1e-14)
    # Against many, the digits that Phi lacks to 1 count.
    laws = Laws([6.0, 0.0], [0.0, 1.0], [1.0, 1e5])
    assert chance(laws, 0) == pytest.approx(math.exp(1e5 * math.log1p(-ndtr(-6.0))), rel=1e-14)
    assert chance(laws, 1) == pytest.approx((1 - chance(laws, 0)) / 1e5, abs=1e-12)


def test_scales_that_differ_by_any_factor() -> None:
    wide, narrow = 1e300, 1e-300
    laws = ones([0.0, 0.0, 0.0], [wide, narrow, narrow])
    assert [chance(laws, i) for i in range(3)] == pytest.approx([0.5, 0.25, 0.25], abs=1e-12)
    laws = ones([wide, -wide, 0.0, wide], [narrow, wide, 0.0, narrow])
    half = float(ndtr(2.0)) / 2
    expected = [half, 1 - 2 * half, 0.0, half]
    assert [chance(laws, i) for i in range(4)] == pytest.approx(expected, abs=1e-12)
    laws = ones([0.0, 0.0, 0.0], [wide, wide, narrow])
    assert [chance(laws, i) for i in range(3)] == pytest.approx([3 / 8, 3 / 8, 1 / 4], abs=1e-12)


@pytest.mark.parametrize("gap", [0.0, -9.0, -30.0, 5.0])
@pytest.mark.parametrize("scale", [[1.0, 1.0], [1.0, 0.0], [1e-3, 1.0], [1e300, 1e300]])
def test_two_scores_keep_every_digit_of_the_tail(gap: float, scale: list[float]) -> None:
    width = math.hypot(*scale)
    expected = float(mpmath.ncdf(gap))
    assert chance(ones([gap * width, 0.0], scale), 0) == pytest.approx(expected, rel=1e-12)


def test_small_probabilities_among_few_keep_digits() -> None:
    """By (3), steps that are good enough for 1 are so for a small probability too."""
    laws = ones([0.0, 5.0, 4.0], [1.0, 1.0, 1.0])
    assert 1e-7 < chance(laws, 0) < 1e-4
    assert chance(laws, 0) == pytest.approx(textbook(laws, 0), rel=1e-9)


# How the numbers in `tail` and `bell` came about.


def interpolate(rows: list[list[Any]], values: list[Any]) -> list[float]:
    return [float(c) for c in mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix(values))]


def chebyshev(n: int) -> list[Any]:
    return [-mpmath.cos(mpmath.pi * (2 * i + 1) / (2 * n)) for i in range(n)]


def ratio_coefficients(p: int, q: int) -> tuple[list[float], list[float]]:
    """P / Q = Phi(-x) exp(x^2 / 2) at Chebyshev points of (x - 4) / (x + 4), Q(0) = 1."""
    end = (mpmath.mpf(REACH) - 4) / (mpmath.mpf(REACH) + 4)
    y = [-1 + (u + 1) / 2 * (end + 1) for u in chebyshev(p + q + 1)]
    x = [4 * (1 + each) / (1 - each) for each in y]
    values = [mpmath.ncdf(-each) * mpmath.exp(each * each / 2) for each in x]
    rows = [
        [each**k for k in range(p + 1)] + [-v * each**k for k in range(1, q + 1)]
        for each, v in zip(x, values, strict=True)
    ]
    both = interpolate(rows, values)
    return both[: p + 1], [1.0, *both[p + 1 :]]


def bell_coefficients(degree: int) -> list[float]:
    """exp(-s / 128) at Chebyshev points of s = x^2 between 0 and REACH^2."""
    s = [mpmath.mpf(REACH) ** 2 / 2 * (1 + u) for u in chebyshev(degree + 1)]
    rows = [[each**k for k in range(degree + 1)] for each in s]
    return interpolate(rows, [mpmath.exp(-each / 128) for each in s])


def numbers_in(name: str) -> list[float]:
    source = (Path(kernels.__file__).parent / "probability.py").read_text()
    body = source.split(f"def {name}(")[1].split('"""')[2].split("return")[0]
    return [
        float(sign.replace("=", "") + number)
        for sign, number in re.findall(r"([=+-]) ?(\d[\d.e-]*)", body)
    ]


def test_the_coefficients_are_those_of_the_fit() -> None:
    with mpmath.workdps(60):
        upper, lower = ratio_coefficients(7, 8)
        assert numbers_in("tail") == [*upper[::-1], *lower[::-1]]
        assert min(upper + lower) > 0
        assert numbers_in("bell") == bell_coefficients(10)[::-1]


def test_the_tail_is_right_to_5e14() -> None:
    for x in np.linspace(0.0, REACH, 2001):
        assert probability.tail(x) == pytest.approx(float(mpmath.ncdf(-x)), rel=5e-14, abs=0.0)


def growth(y: float) -> Any:
    """sup_x log |Phi(x + iy)|. The maximum is where x y is near pi / 2, or less if y > 1."""

    def height(x: float) -> Any:
        return mpmath.log(abs(mpmath.erfc(-mpmath.mpc(x, y) / mpmath.sqrt(2)) / 2))

    x = max(np.arange(-1.0, 9.0, 0.25), key=height)
    for step in (0.05, 0.01, 0.002):
        x = max(x + step * np.arange(-6, 7), key=height)
    return height(x)


def test_the_bounds_of_the_distribution_function_hold() -> None:
    with mpmath.workdps(25):
        for y, bound in probability.STRIPS:
            assert 0.98 * bound < growth(y) <= bound
        heights = [growth(y) / y**2 for y in np.arange(0.2, 4.0, 0.2)]
        assert heights == sorted(heights)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("alike", [False, True])
def test_candidates_of_a_row_have_the_probabilities_of_their_scores(
    n: int, epsilon: float, alike: bool
) -> None:
    rng = np.random.default_rng(n)
    mean, width = rng.standard_normal(n), 10.0 ** rng.uniform(-2.0, 0.0, n)
    optimism, dispersion = rng.standard_normal((2, 1 if alike else n)) ** 2
    (row,) = kernels.winning_rows(
        (mean + width * optimism)[None], np.broadcast_to(width * dispersion, n)[None].copy()
    )
    chances = kernels.Chances(n)
    for _ in range(2):  # its memory keeps nothing
        found = chances.of(
            mean.tolist(), width.tolist(), optimism.tolist(), dispersion.tolist(), epsilon
        )
        assert found == pytest.approx((1 - epsilon) * row + epsilon / n, abs=1e-14)


def test_rows_of_another_size_are_refused() -> None:
    chances = kernels.Chances(3)
    with pytest.raises(ValueError, match="3 numbers"):
        chances.of([0.0] * 2, [1.0] * 2, [0.0], [1.0], 0.0)
    with pytest.raises(ValueError, match="1 or 3"):
        chances.of([0.0] * 3, [1.0] * 3, [0.0] * 2, [1.0], 0.0)
