"""Matrices that are updated several rewards at a time, against NumPy one reward at a time."""

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import kernels
from keyhole.core.kernels.core import LARGE, TOGETHER

# As in kernels.core, where they are numbers of C.
CANCELLATION, EPSILON = 1e-6, 2.0**-52


@pytest.mark.parametrize("dim", [LARGE, LARGE + 3, LARGE + 8])
@pytest.mark.parametrize("rounds", [1, 3, 150])
@pytest.mark.parametrize("keeps", [False, True])
def test_large_matrices_follow_the_textbook(keeps: bool, rounds: int, dim: int) -> None:
    """The same arms, and in the end the same B and P, whatever number of steps was left waiting."""
    n_arms = 3
    rng = np.random.default_rng(1)
    y, z = rng.standard_normal((rounds, 1, dim)), rng.standard_normal((rounds, n_arms))
    rewards = rng.standard_normal((rounds, n_arms))
    posterior, chosen = kh.Posterior(n_parameters=n_arms, dim=dim), np.empty(rounds, np.int64)
    block = kernels.Block(y, rewards, z, np.full((rounds, 2), 0.5))
    rule = kh.ThompsonSampling(v=1.0).plain_rule()
    kernels.play(kernels.Chooser(posterior.core, rule, np.arange(n_arms), keeps), block, chosen)

    B, b = np.tile(np.eye(dim), (n_arms, 1, 1)), np.zeros((n_arms, dim))
    for t in range(rounds):
        P, now = np.linalg.inv(B), y[t, 0]
        scores = [b[i] @ P[i] @ now + np.sqrt(now @ P[i] @ now) * z[t, i] for i in range(n_arms)]
        arm = int(np.argmax(scores))
        assert chosen[t] == arm
        B[arm] += np.outer(now, now)
        b[arm] += rewards[t, arm] * now
    np.testing.assert_allclose(posterior.precision, B, atol=1e-10)
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(B), atol=1e-10)


@pytest.mark.parametrize("trusted", [True, False])
def test_late_steps_give_way_to_the_sums(trusted: bool) -> None:
    """Caches are computed anew, with steps waiting, when one reward at a time would do it.

    Large observations in all directions lose digits until a refresh is due; in one direction and
    larger still, their squares cancel, and no step is to be trusted.
    """
    dim, rounds = LARGE + 3, 40
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((rounds, 1, dim))
    y = 300.0 * noise if trusted else 3e4 * (1.0 + 1e-6 * noise)
    rewards = rng.standard_normal((rounds, 1))
    late, now = (kh.Posterior(n_parameters=1, dim=dim) for _ in range(2))
    block = kernels.Block(y, rewards, np.zeros((rounds, 1)), np.full((rounds, 2), 0.5))
    chooser = kernels.Chooser(late.core, kh.Greedy().plain_rule(), np.zeros(1, np.int64), False)
    kernels.play(chooser, block, np.empty(rounds, np.int64))

    anew, cancelled = [], 0
    for t in range(rounds):
        state, each = now.state, y[t, 0]
        q = max(float(each @ now.covariance[0] @ each), 0.0)
        terms = float(each**2 @ np.diag(now.covariance[0]))
        cancelled += terms > CANCELLATION / EPSILON * (1.0 + q)
        now.learn(0, each, float(rewards[t, 0]))
        if state.staleness[0] == 0.0:
            anew.append(t + 1)
    assert (cancelled == 0) == trusted
    assert any(n % TOGETHER for n in anew)
    size = np.sqrt(np.diag(now.covariance[0]))
    np.testing.assert_allclose(late.precision, now.precision, rtol=1e-12)
    off = (late.covariance[0] - now.covariance[0]) / np.outer(size, size)
    # B is inverted either way, and has a condition number of 1e7, or 1.5e12 in one direction.
    tolerance = 1e-8 if trusted else 1e-3
    assert np.abs(off).max() < tolerance
    np.testing.assert_allclose(late.mean, now.mean, atol=tolerance * np.abs(now.mean).max())
