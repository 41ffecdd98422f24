"""Matrices that are updated several rewards at a time, against NumPy one reward at a time."""

import numpy as np
import pytest

import keyhole as kh
from keyhole import kernels
from keyhole.kernels.deferring import LARGE


@pytest.mark.parametrize("rounds", [1, 3, 150])
def test_large_matrices_follow_the_textbook(rounds: int) -> None:
    """The same arms, and in the end the same B and P, whatever number of steps was left waiting."""
    n_arms, dim = 3, LARGE + 8
    rng = np.random.default_rng(1)
    y, z = rng.standard_normal((rounds, 1, dim)), rng.standard_normal((rounds, n_arms))
    rewards = rng.standard_normal((rounds, n_arms))
    posterior, chosen = kh.Posterior(n_parameters=n_arms, dim=dim), np.empty(rounds, np.int64)
    block = kernels.Block(y, rewards, z, np.full((rounds, 2), 0.5))
    rule = kh.ThompsonSampling(v=1.0).rule.plain()
    kernels.play(posterior.state, rule, np.arange(n_arms), block, True, chosen)

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
