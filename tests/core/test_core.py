"""Products with one triangle and sums of squares, against NumPy, at every way a size can be odd."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import kernels
from keyhole.core.kernels.core import LARGE, TOGETHER
from keyhole.core.kernels.types import Floats

SMALL = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17, LARGE - 1]
WAITING = [LARGE, LARGE + 1, LARGE + 2, LARGE + 3, 63, 64, 66]


class Known(NamedTuple):
    """A core of one parameter whose B and P have nothing to do with each other."""

    core: kernels.Core
    B: Floats
    P: Floats


def known(dim: int, seed: int = 1) -> Known:
    """P is positive, so that y'Py is; B is anything symmetric. Three rewards made them so."""
    rng = np.random.default_rng([dim, seed])
    half, other = rng.standard_normal((2, dim, dim))
    B, P = half + half.T, other @ other.T / dim
    matrices = np.zeros((1, dim + 1, dim))
    matrices[0, :-1] += np.triu(B)
    matrices[0, 1:] += np.tril(P)
    mean, moment = rng.standard_normal((2, 1, dim))
    state = kernels.State(
        prior=np.ones(1),
        matrices=matrices,
        moment=moment,
        n=np.full(1, 3.0),
        weight=np.full(1, 3.0),
        squares=np.ones(1),
        mean=mean,
        residual=np.ones(1),
        penalty=np.ones(1),
        trace=np.array([np.trace(P)]),
        bound=np.array([np.trace(P)]),
        staleness=np.zeros(1),
    )
    return Known(kernels.Core(state), B, P)


def learn(core: kernels.Core, y: Floats, *, often: bool = False) -> None:
    """Learn rewards of 1."""
    core.learn(np.zeros(len(y), np.int64), y, np.ones(len(y)), np.array([often]))


def width(core: kernels.Core, y: Floats) -> float:
    """The root of y'Py, computed without P y."""
    found = np.empty((1, 1))
    core.predict(np.zeros(1, np.int64), y[None, None], np.empty((1, 1)), found)
    return float(found[0, 0])


def stepped(P: Floats, y: Floats) -> Floats:
    """P after a step for each row of y: less w w' / (1 + y'w), with w = P y."""
    for row in y:
        w = P @ row
        P = P - np.outer(w, w) / (1.0 + row @ w)
    return P


def assert_matrices(core: kernels.Core, B: np.ndarray, P: np.ndarray) -> None:
    """Each triangle is where it belongs, and none is written into the other."""
    core.flush_all()
    np.testing.assert_allclose(np.triu(core.state.precision[0]), np.triu(B), atol=1e-10)
    np.testing.assert_allclose(np.tril(core.state.covariance[0]), np.tril(P), atol=1e-10)


@pytest.mark.parametrize("dim", SMALL + WAITING)
def test_a_product_by_one_triangle(dim: int) -> None:
    """What is not P is not read."""
    core, _, P = known(dim)
    core.state.precision[0][np.triu_indices(dim)] = np.nan
    for y in np.random.default_rng(dim).standard_normal((3, dim)):
        squared, w = core.product(0, y)
        np.testing.assert_allclose(w, P @ y, atol=1e-12 * dim)
        assert squared == pytest.approx(y @ P @ y, abs=1e-12 * dim**2)
        assert width(core, y) ** 2 == pytest.approx(squared, rel=1e-13, abs=1e-13 * dim**2)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("dim", SMALL)
def test_squares_move_both_triangles_at_once(dim: int, n: int) -> None:
    core, B, P = known(dim)
    y = np.random.default_rng(dim).standard_normal((n, dim))
    for row in y:
        learn(core, row[None])
    np.testing.assert_array_equal(core.state.n, [3.0 + n])
    assert_matrices(core, B + y.T @ y, stepped(P, y))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, TOGETHER - 1])
@pytest.mark.parametrize("dim", WAITING)
def test_squares_that_wait_go_into_both_triangles_when_they_are_asked_for(dim: int, n: int) -> None:
    """Until then the matrices are left alone, and products know of them already."""
    core, B, P = known(dim)
    before = core.state.matrices.copy()
    y = np.random.default_rng(dim).standard_normal((n + 1, dim))
    learn(core, y[:n])
    np.testing.assert_array_equal(core.state.matrices, before)
    expected = stepped(P, y[:n])
    for _ in range(2):
        np.testing.assert_allclose(core.product(0, y[n])[1], expected @ y[n], atol=1e-10)
        assert width(core, y[n]) ** 2 == pytest.approx(y[n] @ expected @ y[n], abs=1e-9)
        assert_matrices(core, B + y[:n].T @ y[:n], expected)
    assert n == 0 or (core.state.matrices != before).all()


@pytest.mark.parametrize("more", [0, 1, TOGETHER + 3])
@pytest.mark.parametrize("dim", WAITING)
def test_no_more_squares_wait_than_there_is_room_for(dim: int, more: int) -> None:
    core, B, P = known(dim)
    y = np.random.default_rng(dim).standard_normal((TOGETHER + more, dim))
    learn(core, y)
    # Those that fill the room have been told, without being asked for.
    told = y[: len(y) - len(y) % TOGETHER]
    gained = core.state.precision[0] - B
    np.testing.assert_allclose(np.triu(gained), np.triu(told.T @ told), atol=1e-10)
    assert_matrices(core, B + y.T @ y, stepped(P, y))


@pytest.mark.parametrize("waiting", [0, 3])
@pytest.mark.parametrize("dim", [1, 2, 7, 8, LARGE, LARGE + 3])
def test_squares_that_come_often_are_added_to_the_sums(dim: int, waiting: int) -> None:
    """With what waited before; and P is then the inverse of all of B."""
    core, _, _ = known(dim)
    core.forget()
    y = np.random.default_rng(dim).standard_normal((waiting + 9, dim))
    learn(core, y[:waiting])
    learn(core, y[waiting:], often=True)
    B = np.eye(dim) + y.T @ y
    assert_matrices(core, B, np.linalg.inv(B))
    fit = np.linalg.solve(B, y.sum(axis=0))
    np.testing.assert_allclose(core.state.mean[0], fit, atol=1e-10)
    residual = ((1.0 - y @ fit) ** 2).sum() + fit @ fit
    assert core.state.residual[0] == pytest.approx(residual, abs=1e-9)
    assert core.state.trace[0] == pytest.approx(np.trace(np.linalg.inv(B)), abs=1e-10)


@pytest.mark.parametrize("dim", SMALL + WAITING)
def test_a_refresh_is_an_inverse(dim: int) -> None:
    """Of the upper triangle, whatever the lower one and the caches held."""
    core, _, P = known(dim)
    B = P + np.eye(dim)
    core.state.matrices[0, 1:][np.tril_indices(dim)] = np.nan
    core.state.precision[0][np.triu_indices(dim)] = B[np.triu_indices(dim)]
    core.refresh(0)
    inverse = np.linalg.inv(B)
    assert_matrices(core, B, inverse)
    np.testing.assert_allclose(core.state.mean[0], inverse @ core.state.moment[0], atol=1e-10)
    assert core.state.bound[0] >= np.linalg.eigvalsh(inverse)[-1] * (1 - 1e-12)


@pytest.mark.parametrize("dim", [1, 5, LARGE + 3])
def test_a_parameter_without_rewards_has_a_matrix_that_is_not_read(dim: int) -> None:
    """Not even with steps that wait: P is then the prior's, less those."""
    core, _, _ = known(dim)
    core.forget()
    core.state.prior[0] = 4.0
    core.state.matrices[0, 1:][np.tril_indices(dim)] = np.nan
    y = np.random.default_rng(dim).standard_normal((4, dim))
    np.testing.assert_allclose(core.product(0, y[0])[1], y[0] / 4.0, rtol=1e-15)
    if dim >= LARGE:
        learn(core, y[1:])
        expected = stepped(np.eye(dim) / 4.0, y[1:])
        np.testing.assert_allclose(core.product(0, y[0])[1], expected @ y[0], atol=1e-12)
        assert width(core, y[0]) ** 2 == pytest.approx(y[0] @ expected @ y[0], abs=1e-11)


@pytest.mark.parametrize("dim", [3, LARGE + 1])
def test_two_parameters_have_nothing_in_common(dim: int) -> None:
    """Steps of one wait, or are taken, beside those of the other."""
    core, _, _ = known(dim)
    state = kernels.State(*(np.concatenate([array, array]) for array in core.state))
    both = kernels.Core(state)
    both.forget()
    y = np.random.default_rng(dim).standard_normal((60, dim))
    parameter_of = np.arange(60) % 3 % 2  # two rewards of three go to the first
    both.learn(parameter_of, y, np.ones(60), np.zeros(2, np.bool_))
    both.flush_all()
    for i in (0, 1):
        mine = y[parameter_of == i]
        B = np.eye(dim) + mine.T @ mine
        np.testing.assert_allclose(np.triu(state.precision[i]), np.triu(B), atol=1e-10)
        lower = np.tril(np.linalg.inv(B))
        np.testing.assert_allclose(np.tril(state.covariance[i]), lower, atol=1e-10)
        assert state.n[i] == len(mine)


def test_forgetting_leaves_nothing_that_waits() -> None:
    core, _, _ = known(LARGE)
    learn(core, np.ones((3, LARGE)))
    core.forget()
    assert_matrices(core, np.eye(LARGE), np.eye(LARGE))
    # Nor in the buffer of what waits, of which products take four at a time.
    y = np.random.default_rng(1).standard_normal((2, LARGE))
    learn(core, y[:1])
    expected = stepped(np.eye(LARGE), y[:1])
    np.testing.assert_allclose(core.product(0, y[1])[1], expected @ y[1], atol=1e-12)
    core.forget()
    for name in ("moment", "n", "squares", "mean", "residual", "penalty", "staleness"):
        assert not getattr(core.state, name).any(), name


@pytest.mark.parametrize("parameter", [-1, 2, 10**6])
def test_parameters_that_there_are_not_are_refused(parameter: int) -> None:
    """Compiled code would write beside its arrays."""
    posterior = kh.Posterior(n_parameters=2, dim=3)
    core, parameter_of = posterior.core, np.array([parameter])
    for call in (
        lambda: core.refresh(parameter),
        lambda: core.recompute_caches(parameter),
        lambda: core.product(parameter, np.ones(3)),
        lambda: posterior.learn_rows(parameter_of, np.ones((1, 3)), np.ones(1)),
        lambda: core.predict(parameter_of, np.ones((1, 1, 3)), np.empty((1, 1)), np.empty((1, 1))),
        lambda: kernels.Chooser(core, kernels.Rule(), parameter_of, True),
    ):
        with pytest.raises((IndexError, ValueError)):
            call()


def test_arrays_that_do_not_fit_are_refused() -> None:
    posterior = kh.Posterior(n_parameters=2, dim=3)
    core, parameter_of = posterior.core, np.arange(2)
    with pytest.raises(ValueError, match="moment has shape"):
        kernels.Core(core.state._replace(moment=np.zeros((2, 2))))
    with pytest.raises(ValueError, match=r"must be \(n,\), \(n, 3\)"):
        core.learn(parameter_of, np.ones((2, 2)), np.ones(2), np.zeros(2, bool))
    with pytest.raises(ValueError, match=r"y must have shape \(n, 1, 3\)"):
        core.predict(parameter_of, np.ones((1, 3, 3)), np.empty((1, 2)), np.empty((1, 2)))
    chooser = kernels.Chooser(core, kernels.Rule(), parameter_of, True)
    with pytest.raises(ValueError, match=r"must be \(T, 1 or 2, 3\)"):
        chooser.choose_rounds(np.ones((1, 1, 3)), np.ones((1, 3)), np.ones((1, 2)))


def test_two_threads_may_read_one_posterior() -> None:
    posterior, rng = kh.Posterior(n_parameters=3, dim=30), np.random.default_rng(1)
    y = rng.standard_normal((400, 30))
    posterior.learn_many(np.arange(400) % 3, y, rng.standard_normal(400))
    expected = posterior.predict(np.arange(3), y)[1]
    with ThreadPoolExecutor(2) as pool:
        for _, width in pool.map(lambda _: posterior.predict(np.arange(3), y), range(40)):
            np.testing.assert_array_equal(width, expected)
