"""Why an arm was chosen: terms that sum to what is expected."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.named import OPTIONS, ids, made, recipe, records

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")


def learned(options: dict[str, Any], **policy: Any) -> kh.Bandit:
    told = records(150, missing=0.0 if options.get("missing", "predict") is None else 0.2)
    bandit = made(recipe(**options), arms=["A", "B", "C"], **policy)
    for t, one in enumerate(told):
        decision = bandit.choose(one)
        bandit.learn(decision, float(t % 5) + (decision.arm == "B"))
    return bandit


def expected_rewards(bandit: kh.Bandit, decision: kh.Decision) -> dict[Any, float]:
    observer = bandit._observer
    design = observer.design(decision.observation[None])[0]
    means = bandit.posterior.mean @ design + observer.offset
    return dict(zip(bandit.arms, means.tolist(), strict=True))


@pytest.mark.parametrize("options", OPTIONS, ids=ids)
def test_terms_sum_to_the_expected_reward(options: dict[str, Any]) -> None:
    bandit = learned(options)
    decision = bandit.choose({"age": 50.0, "spent": 1.0, "member": True, "device": "tv"})
    for _ in range(2):
        found, truth = bandit.explain(decision), expected_rewards(bandit, decision)
        assert found.arm == decision.arm
        assert found.runner_up != decision.arm
        assert found.expected[0] == pytest.approx(truth[found.arm])
        assert found.expected[1] == pytest.approx(truth[found.runner_up])
        sums = [sum(pair[k] for pair in found.terms.values()) for k in (0, 1)]
        assert found.expected == pytest.approx(tuple(sums))
        names = ["age", "spent", "member", "device", "age:device", "age:age"]
        assert sorted(found.terms) == sorted(["constant"] * options["intercept"] + names)
        assert found.score == decision.score
        assert sum(found.probabilities.values()) == pytest.approx(1.0)
        others = {arm: p for arm, p in found.probabilities.items() if arm != found.arm}
        assert others[found.runner_up] == max(others.values())  # type: ignore[index]
        bandit.learn(decision, 100.0, again=True)  # it is what is known now


def test_by_hand() -> None:
    """mean = r y / (1 + y'y) after one reward of 3 at (1, 1), for A; nothing of B."""
    features = kh.Features(
        numbers=["x"], booleans=["b"], intercept=False, standardize=False, missing=None
    )
    bandit = kh.Bandit(kh.Learner(kh.Greedy(), features), arms=["A", "B"], seed=1)
    bandit.learn(kh.Decision(arm="A", observation=[1.0, 1.0]), 3.0)
    found = bandit.explain(bandit.choose({"x": 2.0, "b": True}))
    assert (found.arm, found.runner_up) == ("A", "B")
    assert found.terms["x"] == pytest.approx((2.0, 0.0))
    assert found.terms["b"] == pytest.approx((1.0, 0.0))
    assert found.expected == pytest.approx((3.0, 0.0))
    assert found.probabilities == {"A": 1.0, "B": 0.0}
    assert str(found).splitlines() == [
        "                      A     B",
        "x                    +2    +0",
        "b                    +1    +0",
        "expected reward      +3    +0",
        "drawn                +0",
        "probability      100.0%  0.0%",
    ]


def test_one_arm_has_no_runner_up() -> None:
    bandit = kh.Bandit(kh.Greedy(), arms=["A"], dim=1, seed=1)
    found = bandit.explain(bandit.choose([1.0]))
    assert found.runner_up is None
    assert str(found).splitlines()[0].split() == ["A"]


def test_a_row_for_each_arm_is_given_again() -> None:
    bandit = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=2, seed=1)
    bandit.learn(kh.Decision(arm="A", observation=[1.0, 0.0]), 2.0)
    rows = np.array([[1.0, 0.0], [0.0, 5.0]])
    decision = bandit.choose(rows)
    with pytest.raises(kh.InvalidValue, match="what was seen of all"):
        bandit.explain(decision)
    found = bandit.explain(decision, rows)
    assert found.terms == {"0": (1.0, 0.0), "1": (0.0, 0.0)}
    with pytest.raises(kh.UnknownArm, match="none of the arms"):
        bandit.explain(decision, rows[:1], among=["B"])


def test_records_of_arms() -> None:
    features = kh.Features(
        numbers=["age"], arms=kh.Features(numbers=["price"]), standardize=False, intercept=False
    )
    bandit = made(features, arms={"A": {"price": 1.0}, "B": {"price": 2.0}}, sharing="shared")
    decision = bandit.choose({"age": 1.0}, among={"new": {"price": 7.0}, "A": {"price": 1.0}})
    bandit.learn(decision, 3.0)
    arms = {"new": {"price": 7.0}, "A": {"price": 1.0}}
    found = bandit.explain(decision, {"age": 1.0}, among=arms)
    assert set(found.probabilities) == {"new", "A"}
    mean = bandit.posterior.mean[0]
    price = arms[str(decision.arm)]["price"]
    assert found.terms["arm.price"][0] == pytest.approx(price * mean[1])


def test_nothing_changes_even_by_new_levels() -> None:
    bandit, other = learned({}), learned({})
    decision = other.choose({"age": 30.0, "device": "watch"})
    late = bandit.choose({"age": 30.0, "device": "tv"})
    before = bandit.to_bytes()
    found = bandit.explain(kh.Decision.from_dict(decision.to_dict()), {"device": "fridge"})
    assert "device" in found.terms
    bandit.explain(decision)
    bandit.explain(late)
    assert bandit.to_bytes() == before
    assert not any(level == "watch" for _, level in bandit._learned.grown or ())


def test_a_decision_of_fewer_levels() -> None:
    bandit = learned({})
    decision = bandit.choose({"age": 30.0, "device": "tv"})
    first = bandit.explain(decision)
    bandit.choose({"age": 30.0, "device": "watch"})
    again = bandit.explain(decision)
    assert again.expected == pytest.approx(first.expected)
