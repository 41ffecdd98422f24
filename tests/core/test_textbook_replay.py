"""The kernels replay the textbook arm for arm, on the same normals."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import choice_streams, kernels
from tests.policies import every_policy
from tests.textbook import Textbook

N_ARMS, DIM, ROUNDS = 4, 5, 2000


PRIORS = (0.1, 1.0, 10.0)
POLICIES = [p for prior in PRIORS for p in every_policy(prior_precision=prior)]


def owner_of(policy: kh.Policy) -> Any:
    return np.zeros(N_ARMS, np.int64) if policy.sharing == "shared" else np.arange(N_ARMS)


def posterior_of(policy: kh.Policy) -> kh.Posterior:
    n = 1 if policy.sharing == "shared" else N_ARMS
    return kh.Posterior(n_parameters=n, dim=DIM, prior_precision=policy.prior_precision)


@pytest.mark.parametrize("shared_context", [False, True], ids=["own context", "shared context"])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_kernel_replays_the_textbook(policy: kh.Policy, shared_context: bool) -> None:
    rng = np.random.default_rng(5)
    eta = rng.standard_normal((N_ARMS, DIM))
    rows = 1 if shared_context else N_ARMS
    y = rng.standard_normal((ROUNDS, rows, DIM)) * np.linspace(0.3, 3.0, DIM)
    seen = np.broadcast_to(y, (ROUNDS, N_ARMS, DIM))
    rewards = np.einsum("tnd,nd->tn", seen, eta) + rng.standard_normal((ROUNDS, N_ARMS))
    uniforms = rng.random((ROUNDS, 2))

    book, arms, z = Textbook(policy, N_ARMS, DIM), np.empty(ROUNDS, np.int64), []
    for t in range(ROUNDS):
        normals = rng.standard_normal((N_ARMS, DIM))
        turn = book.choose(seen[t], normals, *uniforms[t])
        book.learn(turn.arm, seen[t, turn.arm], rewards[t, turn.arm])
        arms[t] = turn.arm
        z.append(turn.z)

    for keeps in (True, False):
        posterior, chosen = posterior_of(policy), np.empty(ROUNDS, np.int64)
        chooser = kernels.Chooser(posterior.core, policy.plain_rule(), owner_of(policy), keeps)
        kernels.play(chooser, kernels.Block(y, rewards, np.array(z), uniforms), chosen)
        np.testing.assert_array_equal(chosen, arms)
        # The sums are the same additions in the same order; fused multiply-adds may differ by one
        # rounding each, so n of them by n eps relative to the largest.
        bound = ROUNDS * np.finfo(float).eps * np.abs(book.B).max()
        np.testing.assert_allclose(posterior.precision, book.B, rtol=0, atol=bound)


def test_a_bandit_replays_the_textbook_online() -> None:
    """`Bandit` draws N normals and two uniforms a round from its seed; the rest is the kernel's.

    The kernel is that of the simulation, and the textbook itself, on normals along its directions.
    """
    policy = kh.ThompsonSampling(v=0.7)
    bandit = kh.Bandit(policy, arms=N_ARMS, dim=DIM, seed=11)
    posterior, book = posterior_of(policy), Textbook(policy, N_ARMS, DIM)
    chooser = kernels.Chooser(posterior.core, policy.plain_rule(), owner_of(policy), keeps=False)
    data, streams = np.random.default_rng(3), choice_streams(11)
    z, uniforms, chosen = np.empty((1, N_ARMS)), np.empty((1, 2)), np.empty(1, np.int64)
    for _ in range(200):
        y, reward = data.standard_normal((N_ARMS, DIM)), float(data.standard_normal())
        kernels.fill_normals(streams[0], z[0])
        kernels.fill_uniforms(streams[1], uniforms[0])
        decision = bandit.choose(y)
        bandit.learn(decision, reward)
        kernels.play(
            chooser, kernels.Block(y[None], np.full((1, N_ARMS), reward), z, uniforms), chosen
        )
        assert decision.arm == chosen[0]
        directions = np.array(
            [np.linalg.cholesky(np.linalg.inv(B)).T @ row for B, row in zip(book.B, y, strict=True)]
        )
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        assert decision.arm == book.choose(y, z.T * directions, *uniforms[0]).arm
        book.learn(int(chosen[0]), y[chosen[0]], reward)
    np.testing.assert_array_equal(bandit.posterior.precision, posterior.precision)


def test_a_wrong_textbook_is_noticed() -> None:
    """The negative control: drawing from the precision instead of the covariance differs."""
    rng = np.random.default_rng(5)
    policy = kh.ThompsonSampling(v=1.0)
    book, differs = Textbook(policy, N_ARMS, DIM), 0
    for _ in range(300):
        y, normals = rng.standard_normal((2, N_ARMS, DIM))
        right = book.choose(y, normals, 0.5, 0.5).arm
        wrong = np.argmax(
            [
                y[i] @ (np.linalg.solve(book.B[i], book.b[i]) + np.linalg.cholesky(book.B[i]) @ g)
                for i, g in enumerate(normals)
            ]
        )
        differs += int(right != wrong)
        book.learn(right, y[right], float(rng.standard_normal()))
    assert differs > 50
