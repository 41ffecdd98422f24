"""The online object: arms by name, late rewards, batches, merging."""

import numpy as np
import pytest

import keyhole as kh

POLICY = kh.ThompsonSampling(v=1.0)


def data(n: int, seed: int = 0, dim: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, dim)), rng.standard_normal(n)


def same(a: kh.Bandit, b: kh.Bandit) -> None:
    assert a.arms == b.arms
    np.testing.assert_array_equal(a.posterior.count, b.posterior.count)
    for name in ("precision", "moment", "covariance", "mean"):
        x, y = getattr(a.posterior, name), getattr(b.posterior, name)
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12, err_msg=name)


def test_one_context_for_all_arms_is_a_row_for_each() -> None:
    y, rewards = data(50)
    one, rows = (kh.Bandit(POLICY, arms=3, dim=3, seed=5) for _ in range(2))
    for row, reward in zip(y, rewards, strict=True):
        a, b = one.choose(row), rows.choose(np.tile(row, (3, 1)))
        assert a.arm == b.arm
        assert a.score == pytest.approx(b.score, abs=1e-13)
        np.testing.assert_array_equal(a.observation, b.observation)
        one.learn(a, reward)
        rows.learn(b, reward)


def test_a_decision_holds_the_chosen_arms_own_observation() -> None:
    bandit = kh.Bandit(POLICY, arms=["A", "B"], dim=2, seed=1)
    y = np.array([[1.0, 2.0], [3.0, 4.0]])
    decision = bandit.choose(y)
    y[:] = 99.0  # the caller may use its array again
    assert decision.observation.tolist() == ([1.0, 2.0] if decision.arm == "A" else [3.0, 4.0])
    with pytest.raises(ValueError, match="read-only"):
        decision.observation[0] = 0.0


def test_lists_and_other_dtypes_are_welcome() -> None:
    for y in ([1, 2], (1.0, 2.0), np.array([1, 2], np.int8), np.array([1, 2], np.float32)):
        decision = kh.Bandit(POLICY, arms=2, dim=2, seed=1).choose(y)
        assert decision.observation.tolist() == [1.0, 2.0]
    strided = np.arange(8.0)[::4]
    strided.flags.writeable = False
    assert kh.Bandit(POLICY, arms=2, dim=2).choose(strided).observation.tolist() == [0.0, 4.0]


def test_among_looks_at_those_arms_only() -> None:
    bandit = kh.Bandit(POLICY, arms=["A", "B", "C"], dim=3, seed=2)
    chosen = {bandit.choose(np.ones(3), among=["C", "A"]).arm for _ in range(100)}
    assert chosen == {"A", "C"}
    # Rows are theirs, in the order given.
    rows = np.array([[1.0, 0, 0], [2.0, 0, 0]])
    for _ in range(20):
        decision = bandit.choose(rows, among=["C", "A"])
        assert decision.observation[0] == {"C": 1.0, "A": 2.0}[str(decision.arm)]
    assert bandit.choose(np.ones(3), among=["B"]).probability == pytest.approx(1.0)
    assert set(bandit.choose_many(np.ones((50, 3)), among=["C", "A"]).arms) == {"A", "C"}
    assert set(bandit.choice_probabilities(np.ones(3), among=["C", "A"])) == {"A", "C"}


def test_rewards_may_come_late_and_in_any_order() -> None:
    y, rewards = data(40)
    early, late = (kh.Bandit(kh.Uniform(), arms=3, dim=3, seed=9) for _ in range(2))
    waiting = []
    for row, reward in zip(y, rewards, strict=True):
        early.learn(early.choose(row), reward)
        waiting.append((late.choose(row), reward))
    for decision, reward in reversed(waiting):
        late.learn(decision, reward)
    same(early, late)


def test_learning_many_is_learning_each() -> None:
    y, rewards = data(200)
    for parameters in ("per-arm", "shared"):
        policy = kh.ThompsonSampling(v=1.0, parameters=parameters)
        one, batch, listed = (kh.Bandit(policy, arms=3, dim=3, seed=9) for _ in range(3))
        decisions = batch.choose_many(y)
        for decision, reward in zip(decisions, rewards, strict=True):
            one.learn(decision, reward)
        batch.learn_many(decisions, rewards)
        listed.learn_many(list(decisions), rewards.tolist())
        same(one, batch)
        same(one, listed)
    batch.learn_many([], [])
    same(one, batch)


def test_choosing_many_is_choosing_each_from_the_same_posterior() -> None:
    """The same normals lead to the same arms, by matrix products or one by one."""
    y, rewards = data(100)
    bandit = kh.Bandit(kh.LinUCB(alpha=0.5), arms=3, dim=3, seed=9)
    bandit.learn_many(bandit.choose_many(y), rewards)
    fresh, _ = data(300, seed=4)
    decisions = bandit.choose_many(fresh)
    assert decisions.arms == [bandit.choose(row).arm for row in fresh]
    assert len(decisions) == 300
    assert decisions[-1] == decisions[299]
    assert [d.arm for d in decisions[:3]] == decisions.arms[:3]
    first = kh.Bandit(POLICY, arms=3, dim=3, seed=1).choose_many(fresh[:1])[0]
    assert first.arm == kh.Bandit(POLICY, arms=3, dim=3, seed=1).choose(fresh[0]).arm


def test_arms_come_and_go() -> None:
    bandit = kh.Bandit(POLICY, arms=["A", "B"], dim=3, seed=1)
    y, rewards = data(30)
    bandit.learn_many([kh.Decision(arm="B", observation=row) for row in y], rewards)
    known = bandit.posterior.mean[1].copy()
    bandit.add_arms(["C", "D"])
    assert list(bandit.arms) == ["A", "B", "C", "D"]
    assert bandit.pulls == {"A": 0, "B": 30, "C": 0, "D": 0}
    late = bandit.choose(y[0], among=["A"])
    bandit.remove_arms(["A", "C"])
    assert list(bandit.arms) == ["B", "D"]
    np.testing.assert_array_equal(bandit.posterior.mean[0], known)
    np.testing.assert_array_equal(bandit.posterior.mean[1], 0.0)
    assert {bandit.choose(row).arm for row in y} <= {"B", "D"}
    with pytest.raises(kh.UnknownArm, match="'A'"):
        bandit.learn(late, 1.0)


def test_arms_of_a_shared_parameter_come_and_go() -> None:
    bandit = kh.Bandit(kh.Greedy(parameters="shared"), arms=["A", "B"], dim=3, seed=1)
    bandit.learn(bandit.choose(np.ones(3)), 1.0)
    bandit.add_arms(["C"])
    bandit.remove_arms(["A"])
    assert bandit.arms == ("B", "C")
    assert bandit.pulls == {"B": 1, "C": 1}


@pytest.mark.parametrize("parameters", ["per-arm", "shared"])
def test_merging_two_bandits_that_ran_apart(parameters: str) -> None:
    policy = kh.ThompsonSampling(v=1.0, parameters=parameters)  # type: ignore[arg-type]
    y, rewards = data(60)
    log = [
        kh.Decision(arm=arm, observation=row) for arm, row in zip(list("ABC") * 20, y, strict=True)
    ]
    whole = kh.Bandit(policy, arms=["A", "B", "C"], dim=3, seed=1)
    whole.learn_many(log, rewards)
    left = kh.Bandit(policy, arms=["A", "B", "C"], dim=3, seed=2)
    right = kh.Bandit(policy, arms=["C", "A", "B"], dim=3, seed=3)
    left.learn_many(log[:25], rewards[:25])
    right.learn_many(log[25:], rewards[25:])
    left.merge(right)
    same(left, whole)


def test_merging_brings_new_arms_along() -> None:
    y, rewards = data(20)
    left = kh.Bandit(POLICY, arms=["A", "B"], dim=3, seed=2)
    right = kh.Bandit(POLICY, arms=["C", "B"], dim=3, seed=3)
    for bandit in (left, right):
        bandit.learn_many([kh.Decision(arm="B", observation=row) for row in y], rewards)
    right.learn(kh.Decision(arm="C", observation=y[0]), 1.0)
    left.merge(right)
    assert left.pulls == {"A": 0, "B": 40, "C": 1}


def test_merging_workers_that_started_from_one_file(tmp_path: object) -> None:
    y, rewards = data(60)
    log = [kh.Decision(arm=int(i % 2), observation=row) for i, row in enumerate(y)]
    start = kh.Bandit(POLICY, arms=2, dim=3, seed=2)
    start.learn_many(log[:20], rewards[:20])
    start.save(f"{tmp_path}/start.npz")
    one, two = (kh.Bandit.load(f"{tmp_path}/start.npz") for _ in range(2))
    one.learn_many(log[20:40], rewards[20:40])
    two.learn_many(log[40:], rewards[40:])
    one.merge(two, base=start)
    whole = kh.Bandit(POLICY, arms=2, dim=3)
    whole.learn_many(log, rewards)
    same(one, whole)


def test_what_a_person_sees() -> None:
    bandit = kh.Bandit(kh.Greedy(), arms=2, dim=3)
    assert repr(bandit) == "Bandit(Greedy(), 2 arms, dim=3, 0 rewards learned)"
    decision = kh.Decision(arm="A", observation=[1.0], probability=0.5, score=2.0)
    assert repr(decision) == "Decision(arm='A', probability=0.5, score=2.0, observation=[1.0])"
    assert repr(bandit.choose_many(np.ones((4, 3)), among=[1])) == "Decisions(4 of arms [1])"
