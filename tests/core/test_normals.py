"""The ziggurat's normals against their distribution, and its streams against each other."""

import copy
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import keyhole as kh
from keyhole.core.kernels import normals

N = 4_000_000


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    sample: np.ndarray = kh.Streams(1)["test"].standard_normal(N)
    return sample


def test_the_strips_cover_the_curve() -> None:
    """All strips have one area, and the last one ends at the top of the curve."""
    edges, curve = normals.EDGES, normals.CURVE
    areas = edges[1:-1] * np.diff(curve[1:])
    np.testing.assert_allclose(areas, areas[0], rtol=1e-11)
    whole = areas[0] * normals.STRIPS
    assert whole == pytest.approx(math.sqrt(math.pi / 2), rel=0.01)  # and a little beyond the curve
    assert edges[0] * curve[1] == pytest.approx(areas[0], rel=1e-12)


def test_the_distribution(drawn: np.ndarray) -> None:
    """Kolmogorov and Smirnov, and equal shares of 1,000 cells: with 4 million numbers."""
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    cells = np.floor(stats.norm.cdf(drawn) * 1000).astype(int)
    assert stats.chisquare(np.bincount(cells, minlength=1000)).pvalue > 1e-3


@pytest.mark.parametrize("power", range(1, 9))
def test_moments(drawn: np.ndarray, power: int) -> None:
    expected, square = (stats.norm.moment(k) for k in (power, 2 * power))
    error = math.sqrt((square - expected**2) / N)
    assert abs((drawn**power).mean() - expected) < 4.5 * error


def test_the_tail(drawn: np.ndarray) -> None:
    """Beyond the last strip numbers are made in another way: as many, and distributed alike."""
    beyond = np.abs(drawn[np.abs(drawn) > normals.TAIL])
    expected = 2 * stats.norm.sf(normals.TAIL) * N
    assert abs(len(beyond) - expected) < 4.5 * math.sqrt(expected)
    law = stats.truncnorm(normals.TAIL, np.inf)
    assert stats.kstest(beyond, law.cdf).pvalue > 1e-3
    assert 0.4 < (drawn > normals.TAIL).sum() / len(beyond) < 0.6


def test_every_strip_has_its_share(drawn: np.ndarray) -> None:
    """Numbers between two neighbouring edges: a wrong wedge would show in one of them."""
    edges = normals.EDGES[1:]
    counts = np.histogram(np.abs(drawn), bins=edges[::-1])[0]
    shares = np.diff(2 * stats.norm.cdf(edges[::-1]))
    assert stats.chisquare(counts, counts.sum() * shares / shares.sum()).pvalue > 1e-3


def test_neighbours_are_uncorrelated(drawn: np.ndarray) -> None:
    for lag in (1, 2, 3, 4, 64):
        for power in (1, 2):
            x = drawn**power - (power == 2)
            x /= x.std()
            assert abs((x[lag:] * x[:-lag]).mean()) < 4.5 / math.sqrt(N)


def test_streams_differ_and_are_repeated() -> None:
    """By name and by seed; and the same however many are taken at a time."""
    one = kh.Streams(3)["a"].standard_normal(1000)
    assert (one == kh.Streams(3)["a"].standard_normal(1000)).all()
    pieces = kh.Streams(3)["a"]
    parts = [pieces.standard_normal(n) for n in (1, 499, 500)]
    assert (one == np.concatenate(parts)).all()
    for other in (kh.Streams(3)["b"], kh.Streams(4)["a"]):
        assert abs(np.corrcoef(one, other.standard_normal(1000))[0, 1]) < 4.5 / math.sqrt(1000)


def test_a_state_is_saved_and_restored() -> None:
    """Four words are all there is, also in between."""
    stream = kh.Streams(8)["a"]
    stream.standard_normal(77)
    words = stream.state.tolist()
    assert len(words) == 4
    expected = stream.standard_normal(500), stream.random(5)
    other = kh.Streams(9)["b"]
    other.state[:] = np.array(words, np.uint64)
    assert (other.standard_normal(500) == expected[0]).all()
    assert (other.random(5) == expected[1]).all()


def test_bits_are_those_of_sfc64() -> None:
    """NumPy has the same generator: from one state come the same bits, and it ends in the same."""
    state = normals.stream_state(np.array([3, 2**63, 2**64 - 1], np.uint64), 7)
    reference = np.random.SFC64()
    reference.state = {
        "bit_generator": "SFC64",
        "state": {"state": state.copy()},
        "has_uint32": 0,
        "uinteger": 0,
    }
    bits = np.empty(100_000, np.uint64)
    normals.fill_bits(state, bits)
    assert (bits == reference.random_raw(100_000)).all()
    after: dict[str, Any] = dict(reference.state)
    assert (after["state"]["state"] == state).all()
    uniforms = np.empty(1000)
    normals.fill_uniforms(state, uniforms)
    assert (uniforms == np.random.Generator(reference).random(1000)).all()


def test_uniforms() -> None:
    x = kh.Streams(5)["u"].random(N)
    assert 0.0 <= x.min() < 1e-5
    assert 1.0 - 1e-5 < x.max() < 1.0
    assert stats.kstest(x, "uniform").pvalue > 1e-3


def test_a_stream_is_a_generator_for_all_else() -> None:
    stream = kh.Streams(6)["x"]
    assert isinstance(stream.standard_normal(), float)
    assert stream.standard_normal((2, 3)).shape == (2, 3)
    assert stream.integers(0, 10, 5).shape == (5,)
    assert kh.Streams(6)["x"].gamma(2.0) == kh.Streams(6)["x"].gamma(2.0)
    twin = copy.deepcopy(stream)
    assert twin.standard_normal() == stream.standard_normal()
    assert not hasattr(stream, "no_such_distribution")
    with pytest.raises(kh.InvalidValue, match="contiguous"):
        stream.standard_normal(out=np.empty((4, 4))[:, 0])
