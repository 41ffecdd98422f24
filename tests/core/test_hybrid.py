"""`sharing="hybrid"`: a shared part and one of each arm, exactly over the same sums."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh

N, D, ROUNDS = 4, 3, 60
OPTIONS: list[dict[str, Any]] = [{}, {"intercept": True, "standardize": True, "missing": "predict"}]


def hybrid(seed: int = 1, arms: Any = N, **options: Any) -> kh.Bandit:
    policy = kh.ThompsonSampling(v=1.0, sharing="hybrid", prior_precision=0.5)
    return kh.Bandit(kh.Learner(policy, **options), arms=arms, dim=D, seed=seed)


def played(bandit: kh.Bandit, rounds: int = ROUNDS, seed: int = 2) -> list[tuple[Any, Any, float]]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(rounds):
        y = rng.standard_normal((len(bandit.arms), D))
        decision, reward = bandit.choose(y), float(rng.standard_normal())
        bandit.learn(decision, reward)
        rows.append((decision.arm, decision.observation.copy(), reward))
    return rows


def schur(rows: list[tuple[Any, Any, float]], arms: Any, y: np.ndarray) -> tuple[Any, Any]:
    """Means and widths by the block elimination of Li et al. (2010), with z = x = y.

    A_i = prior + sum y y' of arm i and A_0 = prior + sum y y' - sum_i B_i'A_i^-1 B_i, where B_i is
    the sum of y z'.
    """
    prior = 0.5 * np.eye(D)
    own = {arm: prior.copy() for arm in arms}
    cross = {arm: np.zeros((D, D)) for arm in arms}
    moment, shared, shared_moment = {a: np.zeros(D) for a in arms}, prior.copy(), np.zeros(D)
    for arm, seen, reward in rows:
        own[arm] += np.outer(seen, seen)
        cross[arm] += np.outer(seen, seen)
        moment[arm] += reward * seen
        shared += np.outer(seen, seen)
        shared_moment += reward * seen
    for arm in arms:
        shared -= cross[arm].T @ np.linalg.solve(own[arm], cross[arm])
        shared_moment -= cross[arm].T @ np.linalg.solve(own[arm], moment[arm])
    beta = np.linalg.solve(shared, shared_moment)
    means, widths = [], []
    for arm, row in zip(arms, y, strict=True):
        delta = np.linalg.solve(own[arm], moment[arm] - cross[arm] @ beta)
        rest = row - cross[arm].T @ np.linalg.solve(own[arm], row)
        squared = row @ np.linalg.solve(own[arm], row) + rest @ np.linalg.solve(shared, rest)
        means.append(row @ (beta + delta))
        widths.append(np.sqrt(squared))
    return np.array(means), np.array(widths)


def test_it_is_the_block_elimination_of_the_hybrid_model() -> None:
    bandit = hybrid()
    rows = played(bandit)
    y = np.random.default_rng(3).standard_normal((N, D))
    means, widths = schur(rows, bandit.arms, y)
    expected = kh.choice_probabilities(means[None], widths[None])[0]
    found = list(bandit.choice_probabilities(y).values())
    np.testing.assert_allclose(found, expected, atol=1e-9)
    # Neither of its limits: arms alone, or one parameter for all, would choose otherwise.
    alone = kh.Bandit(kh.ThompsonSampling(v=1.0, prior_precision=0.5), arms=N, dim=D)
    alone.learn_many([kh.Decision(arm=a, observation=s) for a, s, _ in rows], [r for *_, r in rows])
    other = list(alone.choice_probabilities(y).values())
    assert np.abs(np.array(other) - expected).max() > 1e-3


@pytest.mark.parametrize("options", OPTIONS)
def test_a_new_arm_begins_with_what_the_others_know(options: dict[str, Any]) -> None:
    """And one that was there from the beginning, but never pulled, knows the same."""
    late, early = hybrid(**options), hybrid(arms=[*range(N), "new"], **options)
    rng = np.random.default_rng(4)
    for _ in range(ROUNDS):
        y, arm, reward = rng.standard_normal(D), int(rng.integers(N)), float(rng.standard_normal())
        for bandit in (late, early):
            bandit.learn(bandit.choose(y, among=[arm]), reward)
    late.add_arms(["new"])
    y = rng.standard_normal(D)
    mine, theirs = late.choice_probabilities(y), early.choice_probabilities(y)
    assert mine == pytest.approx(theirs, abs=1e-9)
    assert late.effects["new"].estimate.shape == (D + bool(options),)


def test_a_removed_arm_has_taught_the_shared_part() -> None:
    bandit = hybrid()
    rows = played(bandit)
    y = np.random.default_rng(5).standard_normal((N, D))
    means, widths = schur(rows, bandit.arms, y)
    before = bandit.posterior.noise_scale()
    bandit.remove_arms([1])
    kept = [0, 2, 3]
    expected = kh.choice_probabilities(means[None, kept], widths[None, kept])[0]
    found = list(bandit.choice_probabilities(y[kept]).values())
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert bandit.posterior.dim == (1 + 3) * D
    # The residual sum of squares stays, over the degrees of freedom of fewer parameters.
    assert np.isfinite(before).all()
    assert np.isfinite(bandit.posterior.noise_scale()).all()


@pytest.mark.parametrize("options", OPTIONS)
def test_files_and_merges(options: dict[str, Any]) -> None:
    bandit = hybrid(**options)
    played(bandit, 90)
    again = kh.Bandit.load(bandit.to_bytes(), resume=True)
    y = np.random.default_rng(6).standard_normal((N, D))
    assert again.choice_probabilities(y) == bandit.choice_probabilities(y)
    one, two = kh.Bandit.load(bandit.to_bytes(), seed=1), kh.Bandit.load(bandit.to_bytes(), seed=2)
    rows = played(one, 20, seed=7), played(two, 20, seed=8)
    both = kh.Bandit.load(bandit.to_bytes(), seed=3)
    for arm, seen, reward in rows[0] + rows[1]:
        both.learn(kh.Decision(arm=arm, observation=seen), reward)
    one.merge(two, base=bandit)
    if not options:  # with them, all rows of a round are seen, and not only that of the arm
        found, expected = one.choice_probabilities(y), both.choice_probabilities(y)
        assert found == pytest.approx(expected, abs=1e-9)
    assert sum(one.counts.values()) / N == 130


@pytest.mark.parametrize("options", OPTIONS)
def test_what_is_simulated_is_what_is_deployed(options: dict[str, Any]) -> None:
    world = kh.LinearWorld.random(n_arms=N, context_dim=4, dim=D, seed=1)
    policy = kh.ThompsonSampling(v=1.0, sharing="hybrid")
    learner = kh.Learner(policy, **options)
    runs = kh.simulate(
        world, learner, horizon=80, replications=1, seed=3, checkpoints=[80], progress=False
    )
    own = np.random.SeedSequence(3, spawn_key=(0,))
    bandit = kh.Bandit(learner, arms=N, dim=D, seed=own)
    rounds = world.sample(80, own)
    pulls = np.zeros(N)
    for t in range(80):
        decision = bandit.choose(rounds.observations[t])
        pulls[int(decision.arm)] += 1
        bandit.learn(decision, float(rounds.rewards[t, int(decision.arm)]))
    assert runs.pulls.isel(policy=0, replication=0, time=-1).values.tolist() == pulls.tolist()


def test_explaining_and_many() -> None:
    bandit = hybrid(intercept=True)
    played(bandit, 40)
    y = np.array([0.5, -1.0, 2.0])
    decision = bandit.choose(y)
    told = bandit.explain(decision)
    assert sum(chosen for chosen, _ in told.terms.values()) == pytest.approx(told.expected[0])
    many = bandit.choose_many(np.tile(y, (500, 1)))
    share = np.mean([arm == decision.arm for arm in many.arms])
    chance = bandit.choice_probabilities(y)[decision.arm]
    assert share == pytest.approx(chance, abs=5 * np.sqrt(0.25 / 500))
    assert decision.probability == pytest.approx(chance, abs=1e-9)


def test_no_rewards_change_nothing() -> None:
    bandit = kh.Bandit(kh.Greedy(sharing="hybrid"), arms=3, dim=2)
    bandit.learn_many([], [])
    assert bandit.counts == {0: 0, 1: 0, 2: 0}
