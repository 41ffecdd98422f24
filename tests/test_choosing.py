"""Pruning changes nothing, and ties are broken alike."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keyhole as kh
from keyhole import kernels
from keyhole.kernels.deferring import LARGE
from keyhole.kernels.surveying import MANY


def play(
    policy: kh.Policy,
    *,
    n_arms: int,
    dim: int,
    rounds: int,
    seed: int,
    prune: bool,
    one_context: bool = False,
) -> tuple[np.ndarray, kh.Posterior]:
    rng = np.random.default_rng(seed)
    spread = 10.0 ** rng.uniform(-2, 2, dim)
    y = rng.standard_normal((rounds, 1 if one_context else n_arms, dim)) * spread
    eta = rng.standard_normal((n_arms, dim)) / spread
    rewards = (y * eta).sum(2) + rng.standard_normal((rounds, n_arms))
    shared = policy.parameters == "shared"
    posterior = kh.Posterior(
        n_parameters=1 if shared else n_arms, dim=dim, prior_precision=policy.prior_precision
    )
    owner = np.zeros(n_arms, np.int64) if shared else np.arange(n_arms)
    chosen = np.empty(rounds, np.int64)
    z, uniforms = rng.standard_normal((rounds, n_arms)), rng.random((rounds, 2))
    block = kernels.Block(y, rewards, z, uniforms)
    kernels.play(posterior.state, policy.rule, owner, block, prune, chosen)
    return chosen, posterior


policies = st.one_of(
    st.floats(0, 10).map(lambda v: kh.ThompsonSampling(v=v)),
    st.just(kh.ThompsonSampling(v="learned", prior_precision=0.3)),
    st.just(kh.ThompsonSampling(v="learned", parameters="shared")),
    st.floats(0, 10).map(lambda alpha: kh.LinUCB(alpha=alpha)),
    st.just(kh.EpsilonGreedy(epsilon=0.3)),
    st.just(kh.Greedy(parameters="shared")),
)


@settings(max_examples=60, deadline=None)
@given(policies, st.integers(1, 30), st.integers(1, 12), st.integers(0, 10_000), st.booleans())
def test_pruned_and_unpruned_choose_the_same_arms(
    policy: kh.Policy, n_arms: int, dim: int, seed: int, one_context: bool
) -> None:
    """To the bit: both go through one compiled score, whose bound holds after rounding too."""
    (chosen, posterior), (again, other) = (
        play(
            policy,
            n_arms=n_arms,
            dim=dim,
            rounds=200,
            seed=seed,
            prune=prune,
            one_context=one_context,
        )
        for prune in (True, False)
    )
    np.testing.assert_array_equal(chosen, again)
    np.testing.assert_array_equal(posterior.covariance, other.covariance)


@pytest.mark.parametrize("dim", [1, 3, LARGE])
@pytest.mark.parametrize(
    "policy",
    [kh.ThompsonSampling(v=9.0), kh.ThompsonSampling(v=0.01), kh.ThompsonSampling(v="learned")],
    ids=str,
)
def test_a_glance_at_very_many_arms_changes_nothing(policy: kh.Policy, dim: int) -> None:
    """Whether there is much to know, or next to nothing."""
    rng = np.random.default_rng(dim)
    n, rounds = MANY + 5, 80
    eta = np.vstack([3.0 * rng.standard_normal((6, dim)), np.zeros((n - 6, dim))])
    y, before = rng.standard_normal((rounds, 1, dim)), rng.standard_normal((6, 3 * dim, dim))
    block = kernels.Block(
        y,
        y[:, 0] @ eta.T + rng.standard_normal((rounds, n)),
        rng.standard_normal((rounds, n)),
        rng.random((rounds, 2)),
    )
    found = []
    for prune in (True, False):
        posterior, chosen = kh.Posterior(n_parameters=n, dim=dim), np.empty(rounds, np.int64)
        for i in range(6):  # some arms are known well
            for each in before[i]:
                posterior.learn(i, each, float(each @ eta[i]))
        kernels.play(posterior.state, policy.plain_rule(), np.arange(n), block, prune, chosen)
        found.append(chosen)
    np.testing.assert_array_equal(found[0], found[1])
    assert len(set(found[0])) > 1


def test_a_glance_knows_what_large_matrices_have_yet_to_be_told() -> None:
    """After 9 rewards that wait, an arm's width is 1 / sqrt(10): its z = 10 is less than a 5."""
    n, rounds = MANY + 5, 10
    y, z = np.zeros((rounds, 1, LARGE)), np.zeros((rounds, n))
    y[:, :, 0], z[:, 0], z[9, 1] = 1.0, 10.0, 5.0
    block = kernels.Block(y, np.zeros((rounds, n)), z, np.full((rounds, 2), 0.5))
    posterior, chosen = kh.Posterior(n_parameters=n, dim=LARGE), np.empty(rounds, np.int64)
    rule = kh.ThompsonSampling(v=1.0).plain_rule()
    kernels.play(posterior.state, rule, np.arange(n), block, True, chosen)
    assert chosen.tolist() == [0] * 9 + [1]


@pytest.mark.parametrize("dim", [3, 6, 20])
def test_after_a_glance_scores_are_the_same_to_the_bit(dim: int) -> None:
    """Sums of as many numbers in another order would be others."""
    rng, n = np.random.default_rng(dim), MANY + 5
    logged, pruned = (
        kh.Bandit(kh.LinUCB(alpha=4.0), arms=n, dim=dim, seed=1, probabilities=probabilities)
        for probabilities in (True, False)
    )
    # All but the first arms are known too well in every direction to be asked.
    owner = np.concatenate([np.arange(8), np.repeat(np.arange(8, n), dim)])
    y = np.vstack([rng.standard_normal((8, dim)), np.tile(9.0 * np.eye(dim), (n - 8, 1))])
    rewards = np.where(owner < 8, rng.standard_normal(owner.size), 0.0)
    for bandit in (logged, pruned):
        for _ in range(dim + 1):  # their bounds are looked at again after so many
            kernels.absorb_many(bandit._learned.posterior.state, owner, y, rewards)
    for y in rng.standard_normal((300, dim)):
        one, other = logged.choose(y), pruned.choose(y)
        assert (one.arm, one.score) == (other.arm, other.score)
        assert one.arm in range(8)


@pytest.mark.parametrize("scale", [0.0, 1e-320, 1e-163, 1e-100, 1e-40, 1e40])
def test_a_glance_at_hardly_anything(scale: float) -> None:
    """Squares that underflow rule nobody out."""
    n = MANY + 5
    logged, pruned = (
        kh.Bandit(kh.LinUCB(alpha=50.0), arms=n, dim=2, seed=1, probabilities=probabilities)
        for probabilities in (True, False)
    )
    for bandit in (logged, pruned):
        rewards = np.linspace(1e9, 1e10, n)
        kernels.absorb_many(bandit._learned.posterior.state, np.arange(n), np.ones((n, 2)), rewards)
    for y in scale * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 0.5]]):
        assert logged.choose(y).arm == pruned.choose(y).arm


def test_of_very_many_arms_those_that_cannot_win_are_not_even_read() -> None:
    """Poisoned means of arms whose z is small enough do no harm, and of one that might win they do.

    The last arm's 9 is out of reach for a mean of length 0 if 2 z^2 < 81, and for one of length 5
    if 2 (25 + z^2) < 81.
    """
    n = MANY + 5
    posterior = kh.Posterior(n_parameters=n, dim=2)
    for arm in (0, 1):
        posterior.learn(arm, np.array([1.0, 0.0]), 10.0)
    z = np.full(n, 6.3)
    z[:2], z[-1] = 3.9, 9.0
    posterior.state.mean[:-1] = np.nan
    owner, y, law, w = np.arange(n), np.array([[0.0, 1.0]]), np.empty((3, n)), np.empty((2, 2))
    numbers: tuple[Any, ...] = (*kh.ThompsonSampling(v=1.0).rule, *posterior.state)
    assert kernels.choose(owner, y, z, np.full(2, 0.5), True, law, w, *numbers)[0] == n - 1
    assert law[2, -1] == 9.0
    for place, enough in ((1, 4.0), (2, 6.4)):
        z[place] = enough
        kernels.choose(owner, y, z, np.full(2, 0.5), True, law, w, *numbers)
        assert np.isnan(law[2, place])
        z[place] = 0.0


def test_pruning_spares_most_of_the_work() -> None:
    """Behind the bound there is a real saving: poisoned covariances of hopeless arms go unread."""
    posterior = kh.Posterior(n_parameters=3, dim=2)
    owner, y = np.arange(3), np.array([[1.0, 0.0]])
    for _ in range(200):
        posterior.learn(0, y[0], 5.0)
        posterior.learn(1, y[0], 0.0)
        posterior.learn(2, y[0], -5.0)
    below = np.tril_indices(2)
    posterior.state.covariance[1:, below[0], below[1]] = np.nan
    law, z = np.empty((3, 3)), np.array([0.5, 1.0, 1.0])
    numbers: tuple[Any, ...] = (*kh.ThompsonSampling(v=1.0).rule, *posterior.state)
    assert (
        kernels.choose(owner, y, z, np.full(2, 0.5), True, law, np.empty((2, 2)), *numbers)[0] == 0
    )
    kernels.choose(owner, y, z, np.full(2, 0.5), False, law, np.empty((2, 2)), *numbers)
    assert np.isnan(law[2]).any()


@pytest.mark.parametrize("policy", [kh.Greedy(), kh.ThompsonSampling(v=1.0), kh.LinUCB(alpha=1.0)])
def test_ties_are_broken_uniformly(policy: kh.Policy) -> None:
    """At y = 0 every score is zero: each of 4 arms comes up with probability 1/4, and says so."""
    bandit = kh.Bandit(policy, arms=4, dim=2, seed=3)
    rounds = 4000
    wins = np.zeros(4)
    for _ in range(rounds):
        decision = bandit.choose(np.zeros(2))
        wins[int(decision.arm)] += 1
    assert decision.probability == pytest.approx(0.25, abs=1e-15)
    error = np.sqrt(0.25 * 0.75 / rounds)
    assert (np.abs(wins / rounds - 0.25) <= 4 * error).all()


@pytest.mark.parametrize("probabilities", [True, False])
@pytest.mark.parametrize("dim", [1, 3, 4, 6, 21])
@pytest.mark.parametrize("n_arms", [2, 5, 7])
def test_arms_that_know_the_same_are_tied_to_the_bit(
    n_arms: int, dim: int, probabilities: bool
) -> None:
    """Wherever they are among the four that are predicted at a time."""
    rng = np.random.default_rng(dim)
    bandit = kh.Bandit(kh.Greedy(), arms=n_arms, dim=dim, seed=3, probabilities=probabilities)
    for y in rng.standard_normal((5, dim)):
        for arm in range(n_arms):
            bandit.learn(kh.Decision(arm=arm, observation=y), reward=float(y[0]))
    y = rng.standard_normal(dim)
    assert {bandit.choose(y).arm for _ in range(100)} == set(range(n_arms))


def test_a_tie_between_some_arms_leaves_the_others_out() -> None:
    bandit = kh.Bandit(kh.Greedy(), arms=["low", "a", "b"], dim=1, seed=3)
    bandit.learn(kh.Decision(arm="low", observation=[1.0]), reward=-1.0)
    chosen = [bandit.choose([1.0]).arm for _ in range(400)]
    assert "low" not in chosen
    assert abs(chosen.count("a") / 400 - 0.5) <= 4 * np.sqrt(0.25 / 400)
    assert bandit.choice_probabilities([1.0]) == {"low": 0.0, "a": 0.5, "b": 0.5}


def test_an_arm_picked_by_the_coin_or_a_tie_learns_from_its_own_width() -> None:
    """With a coin and a dispersion, the P y kept for the best arm is not the picked one's.

    What the schedule of refreshes allows: d eps 1e7 times the condition of the scaled B.
    """

    class Both(kh.Policy):
        @property
        def rule(self) -> kh.Rule:
            return kh.Rule(dispersion=1.0, epsilon=0.5)

    _, posterior = play(Both(), n_arms=4, dim=5, rounds=300, seed=1, prune=True)
    for precision, covariance in zip(posterior.precision, posterior.covariance, strict=True):
        scale = np.sqrt(np.diag(covariance))
        error = np.abs(covariance - np.linalg.inv(precision)) / np.outer(scale, scale)
        spread = np.sqrt(np.diag(precision))
        condition = np.linalg.cond(precision / np.outer(spread, spread))
        assert error.max() <= 5 * np.finfo(float).eps * 1e7 * condition
