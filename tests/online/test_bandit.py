"""The online object: arms by name, late rewards, batches, merging."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Arms

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
        policy = kh.ThompsonSampling(v=1.0, sharing=parameters)
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
    assert bandit.counts == {"A": 0, "B": 30, "C": 0, "D": 0}
    late = bandit.choose(y[0], among=["A"])
    bandit.remove_arms(["A", "C"])
    assert list(bandit.arms) == ["B", "D"]
    np.testing.assert_array_equal(bandit.posterior.mean[0], known)
    np.testing.assert_array_equal(bandit.posterior.mean[1], 0.0)
    assert {bandit.choose(row).arm for row in y} <= {"B", "D"}
    with pytest.raises(kh.UnknownArm, match="'A'"):
        bandit.learn(late, 1.0)


def test_arms_of_a_shared_parameter_come_and_go() -> None:
    bandit = kh.Bandit(kh.Greedy(sharing="shared"), arms=["A", "B"], dim=3, seed=1)
    bandit.learn(bandit.choose(np.ones(3)), 1.0)
    bandit.add_arms(["C"])
    bandit.remove_arms(["A"])
    assert bandit.arms == ("B", "C")
    assert bandit.counts == {"B": 1, "C": 1}


@pytest.mark.parametrize("parameters", ["per-arm", "shared"])
def test_merging_two_bandits_that_ran_apart(parameters: str) -> None:
    policy = kh.ThompsonSampling(v=1.0, sharing=parameters)  # type: ignore[arg-type]
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
    assert left.counts == {"A": 0, "B": 40, "C": 1}


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


def test_yes_and_no_are_one_and_zero() -> None:
    """Clicks: True and False, one at a time or many, NumPy's or Python's."""
    decision = kh.Decision(arm=0, observation=[1.0, 2.0, 3.0])
    bandits = [kh.Bandit(POLICY, arms=1, dim=3) for _ in range(3)]
    bandits[0].learn(decision, 1.0)
    bandits[1].learn(decision, bool(np.True_))
    bandits[2].learn_many([decision], [True])
    for bandit in bandits[1:]:
        same(bandit, bandits[0])


def test_records_of_a_later_version_still_make_a_decision() -> None:
    decision = kh.Decision(arm=0, observation=[1.0])
    assert kh.Decision.from_dict({**decision.to_dict(), "experiment": "x"}) == decision
    assert kh.Decision.from_dict({"arm": 0, "observation": [1.0]}) == decision


def test_the_score_of_an_arm_picked_by_the_coin_is_its_own() -> None:
    """With and without probabilities, for every policy that tosses one."""
    y = np.array([1.0, 2.0, 3.0])
    for policy in (kh.Uniform(), kh.EpsilonGreedy(0.5)):
        for probabilities in (True, False):
            bandit = kh.Bandit(policy, arms=4, dim=3, seed=1, probabilities=probabilities)
            for arm in range(4):
                bandit.learn(kh.Decision(arm=arm, observation=y), float(arm))
            for _ in range(50):
                decision = bandit.choose(y)
                mean = bandit.posterior.mean[int(decision.arm)]
                assert decision.score == pytest.approx(y @ mean, rel=1e-12)


def test_one_of_many_decisions_has_the_probability_that_the_batch_has() -> None:
    decisions = kh.Bandit(POLICY, arms=3, dim=3, seed=1).choose_many(np.ones((500, 3)))
    assert decisions.probabilities is not None
    for k in (0, 3, 499):
        assert decisions[k].probability == pytest.approx(decisions.probabilities[k], abs=1e-14)


def test_repr_and_equality_do_not_integrate() -> None:
    """A probability is shown, and compared, once somebody has read it."""
    bandit = kh.Bandit(POLICY, arms=3, dim=3, seed=1)
    decision, other = bandit.choose(np.ones(3)), bandit.choose(np.ones(3))
    assert decision == decision
    assert decision != other
    assert "probability" not in repr(decision)
    assert decision._probability is None
    twin = kh.Decision.from_dict(decision.to_dict())
    assert f"probability={decision.probability!r}" in repr(decision)
    assert decision == twin
    off = kh.Decision.from_dict({**decision.to_dict(), "probability": 0.123})
    assert decision != off


def test_arms_among_others_keep_their_parameters() -> None:
    arms = Arms(["A", "B", "C"], shared=False)
    assert arms.among(["C", "A"]).parameter("C") == arms.parameter("C") == 2
    assert Arms(["A", "B"], shared=True).among(["B"]).parameter("B") == 0


def test_every_decision_can_be_written_down_and_read_again() -> None:
    """Also those whose probability is 1 to rounding, and those of extreme observations."""
    rng = np.random.default_rng(0)
    bandit = kh.Bandit(kh.ThompsonSampling(0.1), arms=3, dim=2, seed=0)
    bandit.learn_many(bandit.choose_many(rng.standard_normal((50, 2))), rng.standard_normal(50))
    for decision in bandit.choose_many(rng.standard_normal((500, 2))):
        assert kh.Decision.from_dict(decision.to_dict()) == decision
    for size in (9e49, 1e-300):
        decision = bandit.choose(np.full(2, size))
        assert kh.Decision.from_dict(decision.to_dict()) == decision


def test_any_iterable_of_decisions_will_do() -> None:
    bandit = kh.Bandit(POLICY, arms=1, dim=1)
    bandit.learn_many((kh.Decision(arm=0, observation=[1.0]) for _ in range(3)), [1, 2, 3])
    assert bandit.counts == {0: 3}
    three: Any = np.int64(3)
    assert kh.Bandit(POLICY, arms=three, dim=three).arms == (0, 1, 2)


def test_what_a_person_sees() -> None:
    bandit = kh.Bandit(kh.Greedy(), arms=2, dim=3)
    assert repr(bandit) == "Bandit(Greedy(), 2 arms, dim=3, 0 rewards learned)"
    decision = kh.Decision(arm="A", observation=[1.0], probability=0.5, score=2.0)
    assert repr(decision) == (
        "Decision(id=None, arm='A', probability=0.5, score=2.0, observation=[1.0])"
    )
    assert repr(bandit.choose_many(np.ones((4, 3)), among=[1])) == "Decisions(4 of arms [1])"


@pytest.mark.parametrize(
    "between", ["nothing", "a reward", "a decision", "other arms", "the same arm", "a merge"]
)
@pytest.mark.parametrize("n_rewards", [0, 30])
def test_a_reward_counts_alike_whatever_came_in_between(between: str, n_rewards: int) -> None:
    """What the choice computed serves the update, unless it is no longer true."""

    def made() -> kh.Bandit:
        bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["a", "b"], dim=3, seed=1)
        rng = np.random.default_rng(2)
        for _ in range(n_rewards):
            bandit.learn(bandit.choose(rng.standard_normal(3)), float(rng.standard_normal()))
        return bandit

    bandit, other = made(), made()
    y = np.array([0.3, -1.0, 2.0])
    decision = bandit.choose(y)
    again = kh.Decision(arm=decision.arm, observation=y)
    for each, learned in ((bandit, decision), (other, again)):
        if between == "a reward":
            each._learned.posterior.learn(0, np.array([1.0, 1.0, 0.0]), 5.0)
            each._learned.posterior.learn(1, np.array([0.0, 1.0, 1.0]), 5.0)
        elif between == "a decision":
            each.choose(-y)
        elif between == "other arms":
            each.remove_arms([arm for arm in each.arms if arm != decision.arm])
            each.add_arms(["c"])
        elif between == "the same arm":  # gone, and back with as many rewards, but others
            n = each.counts[decision.arm]
            each.remove_arms([decision.arm])
            each.add_arms([decision.arm])
            for _ in range(n):
                one = kh.Decision(arm=decision.arm, observation=[1.0, 0.5, -1.0])
                each.learn(one, 1.0)
        elif between == "a merge":
            more = kh.Bandit(each.policy, arms=["a", "b"], dim=3, seed=5)
            more.learn(kh.Decision(arm=decision.arm, observation=[1.0, 0.0, 2.0]), 1.0)
            each.merge(more)
        each.learn(learned, 1.5)
    np.testing.assert_allclose(bandit.posterior.mean, other.posterior.mean, rtol=1e-12)
    np.testing.assert_allclose(bandit.posterior.covariance, other.posterior.covariance, rtol=1e-12)
    expected = np.linalg.inv(bandit.posterior.precision)
    np.testing.assert_allclose(bandit.posterior.covariance, expected, atol=1e-12)


def test_what_the_choice_computed_is_used() -> None:
    """The control to the test above: with another P y in its place, P comes out wrong."""
    bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=2, dim=2, seed=1)
    decision = bandit.choose([1.0, 2.0])
    assert bandit._everyday is not None
    np.asarray(bandit._everyday.chooser.core.products)[:] *= 1.1
    bandit.learn(decision, 1.0)
    assert not np.allclose(
        bandit.posterior.covariance, np.linalg.inv(bandit.posterior.precision), atol=1e-3
    )


def test_an_interrupted_choice_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after the kernel has written: the decision before must not be taken for that one."""
    bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=2, dim=2, seed=1)
    decision = bandit.choose([1.0, 2.0])

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kh.Decision, "made", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bandit.choose((-5, 3))
    bandit.learn(decision, 1.0)
    expected = np.linalg.inv(bandit.posterior.precision)
    np.testing.assert_allclose(bandit.posterior.covariance, expected, atol=1e-12)
