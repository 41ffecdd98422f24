"""OFUL and GreedyFirst: exploration that the theory sizes, and exploration only if it must be."""

import math
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.theory import bounds

CROWD = kh.RandomLinearWorld(n_arms=20, context_dim=10, dim=10)


def run(*policies: kh.Policy, world: Any = CROWD, **settings: Any) -> Any:
    usual: dict[str, Any] = {"horizon": 3000, "replications": 12, "seed": 3, "progress": False}
    named = {str(i): policy for i, policy in enumerate(policies)}
    return kh.simulate(world, named, **{**usual, **settings})


# -- OFUL -----------------------------------------------------------------------------------------


def test_the_radius_by_hand() -> None:
    """One dimension, prior 4, y = 2 seen three times: B = 16, log(16 / 4) = log 4."""
    posterior = kh.Posterior(n_parameters=1, dim=1, prior_precision=4.0)
    for reward in (1.0, 0.0, 2.0):
        posterior.learn(0, np.array([2.0]), reward)
    policy = kh.OFUL(r=0.5, c_eta=3.0, delta=0.1, prior_precision=4.0)
    optimism, dispersion = posterior.explorations(policy.rule)
    expected = 0.5 * math.sqrt(math.log(4.0) + 2 * math.log(10.0)) + 2.0 * 3.0
    assert optimism[0] == pytest.approx(expected, rel=1e-14)
    assert dispersion[0] == 0.0


def test_the_radius_is_within_that_of_the_lemma() -> None:
    """lem:subg with L, any bound on what is seen, is never tighter."""
    rng = np.random.default_rng(1)
    policy = kh.OFUL(r=1.3, c_eta=0.7, delta=0.2)
    c = kh.theory.Constants(n_arms=1, dim=4, r=1.3, c_eta=0.7, longest=2.5, delta=0.2)
    posterior = kh.Posterior(n_parameters=1, dim=4)
    for n in range(1, 200):
        y = rng.standard_normal(4)
        y *= 2.5 / max(float(np.linalg.norm(y)), 2.5)
        posterior.learn(0, y, 1.0)
        printed = bounds.confidence_radius(c, horizon=200, n=n)
        assert posterior.explorations(policy.rule)[0][0] <= printed


def test_the_ellipsoid_covers() -> None:
    """|mean - eta|_B within the radius in all rounds, for each arm with probability 1 - delta."""
    world = kh.LinearWorld.random(n_arms=2, context_dim=3, dim=3, seed=4)
    c_eta = float(np.linalg.norm(world.eta, axis=1).max())
    policy, misses = kh.OFUL(r=world.noise_scale, c_eta=c_eta, delta=0.1), 0
    for seed in range(60):
        rounds, posterior = world.sample(150, seed), kh.Posterior(n_parameters=2, dim=3)
        missed = False
        for t in range(150):
            arm = t % 2
            posterior.learn(arm, rounds.observations[t, arm], float(rounds.rewards[t, arm]))
            miss = posterior.mean - world.eta
            reach = np.sqrt(np.einsum("ij,ijk,ik->i", miss, posterior.precision, miss))
            missed |= bool((reach > posterior.explorations(policy.rule)[0]).any())
        misses += missed
    # Two arms: at most 0.2 of 60, and three standard errors of that.
    assert misses <= 12 + 3 * math.sqrt(60 * 0.2 * 0.8)


def test_oful_loses_no_arm() -> None:
    """Greedy's worst case in a crowd of arms is worse than optimism's."""
    worst = run(kh.OFUL(r="oracle"), kh.Greedy()).regret.isel(time=-1).max("replication")
    assert float(worst[0]) < float(worst[1])


# -- GreedyFirst ----------------------------------------------------------------------------------


def test_a_patient_one_is_greedy_and_a_strict_one_thompson_sampling() -> None:
    """With the same numbers to draw from the same arms; in any state the same dispersion."""
    patient = kh.GreedyFirst(lambda_0=1e6, v=1.5, patience=501)
    pulls = run(patient, kh.Greedy(), horizon=500, replications=3).pulls.values
    np.testing.assert_array_equal(pulls[0], pulls[1])
    strict = kh.GreedyFirst(lambda_0=1e6, v=1.5, patience=0)
    posterior = kh.Posterior(n_parameters=2, dim=2)
    # Before any reward nothing is as diverse as is asked: the first choice is greedy.
    assert posterior.explorations(strict.rule)[1].tolist() == [0.0, 0.0]
    for _ in range(50):
        posterior.learn(0, np.array([1.0, 2.0]), 1.0)
        assert posterior.explorations(strict.rule)[1].tolist() == [1.5, 1.5]
    assert kh.GreedyFirst(lambda_0=0.2, v="oracle").resolve(2.5).v == 2.5


def test_it_explores_when_an_arm_starves() -> None:
    """One arm that is never pulled: after `patience` rewards its data are not diverse."""
    rng = np.random.default_rng(5)
    posterior = kh.Posterior(n_parameters=2, dim=3)
    rule = kh.GreedyFirst(lambda_0=0.2, v=1.0, patience=10).rule
    for n in range(1, 30):
        posterior.learn(0, rng.standard_normal(3), 1.0)
        explores = posterior.explorations(rule)[1][0] == 1.0
        assert explores == (n >= 10)
    # And no longer once the other arm has been seen from all sides.
    for _ in range(60):
        posterior.learn(1, rng.standard_normal(3), 1.0)
    least = min(np.linalg.eigvalsh(B)[0] - 1.0 for B in posterior.precision)
    assert (least >= 0.05 * 89) == (posterior.explorations(rule)[1][0] == 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_test_is_that_of_the_smallest_eigenvalue(seed: int) -> None:
    """Near its limit too, where neither the bound nor the diagonal decides."""
    rng = np.random.default_rng(seed)
    posterior = kh.Posterior(n_parameters=2, dim=4, prior_precision=0.5)
    both = set()
    for _ in range(200):
        posterior.learn(int(rng.integers(2)), rng.standard_normal(4) @ np.diag([1, 1, 1, 0.5]), 1.0)
        t = posterior.count.sum()
        least = min(np.linalg.eigvalsh(B)[0] - 0.5 for B in posterior.precision)
        for factor in (0.999, 1.001):
            if least < 1e-6:  # fewer rewards than dimensions
                continue
            rule = kh.Rule(dispersion=1.0, diversity=float(factor * least / t))
            greedy = posterior.explorations(rule)[1][0] == 0.0
            assert greedy == (factor < 1)
            both.add(greedy)
        # What it keeps as a bound is one.
        largest = np.array([np.linalg.eigvalsh(P)[-1] for P in posterior.covariance])
        assert (posterior.state.bound >= largest * (1 - 1e-12)).all()
    assert both == {True, False}


def test_by_default_it_waits_until_data_can_be_diverse() -> None:
    """Two parameters of dimension 3: 24 rewards."""
    posterior, rule = kh.Posterior(n_parameters=2, dim=3), kh.GreedyFirst(10.0, v=1.0).rule
    for n in range(1, 30):
        posterior.learn(0, np.ones(3), 1.0)
        assert (posterior.explorations(rule)[1][0] == 1.0) == (n >= 24)


def test_greedy_first_is_greedy_where_that_is_enough_and_no_worse_where_it_is_not() -> None:
    first = kh.GreedyFirst(lambda_0=0.1, v="oracle")
    worst = run(first, kh.Greedy()).regret.isel(time=-1).max("replication")
    assert float(worst[0]) < float(worst[1])
    shared = kh.RandomLinearWorld(n_arms=5, context_dim=4, dim=4, shared_parameter=True)
    alike = run(
        kh.GreedyFirst(lambda_0=0.1, v="oracle", sharing="shared", patience=50),
        kh.Greedy(sharing="shared"),
        world=shared,
        horizon=1000,
    )
    np.testing.assert_array_equal(alike.pulls.values[0], alike.pulls.values[1])


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (kh.OFUL, {"r": -1.0}, "r must be"),
        (kh.OFUL, {"r": "learned"}, "a number or 'oracle'"),
        (kh.OFUL, {"c_eta": np.nan}, "c_eta"),
        (kh.OFUL, {"delta": 0.0}, "delta must be above 0"),
        (kh.OFUL, {"delta": 1.5}, "delta"),
        (kh.GreedyFirst, {"lambda_0": 0.0}, "lambda_0"),
        (kh.GreedyFirst, {"patience": -1}, "patience"),
        (kh.GreedyFirst, {"v": "guessed"}, "v must be a number"),
    ],
)
def test_nonsense(kind: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        kind(**settings)


def test_oracle_settings_are_refused_online() -> None:
    for policy in (kh.OFUL(r="oracle"), kh.GreedyFirst(v="oracle")):
        with pytest.raises(kh.InvalidValue, match="outside of a simulation, got 'oracle'"):
            kh.Bandit(policy, arms=2, dim=2, seed=1)
