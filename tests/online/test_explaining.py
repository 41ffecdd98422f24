"""Why an arm was chosen: terms that sum to what is expected."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.online.explaining import Explanation
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
    digest = features.start().digest
    bandit.learn(kh.Decision(arm="A", observation=[1.0, 1.0], recipe=digest), 3.0)
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
    with pytest.raises(kh.InvalidValue, match="give the observation of all arms"):
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
    record = {"age": 30.0, "device": "watch"}
    found = bandit.explain(kh.Decision.from_dict(decision.to_dict()), record)
    assert "device" in found.terms
    with pytest.raises(kh.InvalidValue, match=r"device \(device=watch\) was 1, got 0"):
        bandit.explain(decision, {"age": 30.0, "device": "fridge"})
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


def test_another_observation_is_refused() -> None:
    bandit = learned({})
    record = {"age": 30.0, "spent": 1.0, "member": True, "device": "tv"}
    decision = bandit.choose(record)
    before = bandit.to_bytes()
    bandit.explain(decision, record)
    for other, message in (
        ({**record, "age": 31.0}, "age was 30, got 31"),
        ({**record, "member": None}, "member was 1, got missing"),
        ({**record, "device": "mobile"}, "device .* was [01], got [01]"),
    ):
        with pytest.raises(kh.InvalidValue, match=f"must be the observation.*{message}"):
            bandit.explain(decision, other)
    with pytest.raises(kh.InvalidValue, match="made among 3 arms, not 2"):
        bandit.explain(decision, record, among=["A", "B", "C"][: 2 + (decision.arm == "C")][-2:])
    assert bandit.to_bytes() == before
    plain = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=2, seed=1)
    with pytest.raises(kh.InvalidValue, match="entry 1 was 2, got 3"):
        plain.explain(plain.choose([1.0, 2.0]), [1.0, 3.0])


def test_other_records_of_arms_are_refused() -> None:
    features = kh.Features(numbers=["age"], arms=kh.Features(numbers=["price"]), standardize=False)
    bandit = made(features, arms=[], sharing="shared")
    arms: dict[str | int, dict[str, float]] = {"new": {"price": 7.0}, "old": {"price": 1.0}}
    decision = bandit.choose({"age": 1.0}, among=arms)
    bandit.explain(decision, {"age": 1.0}, among=arms)
    other = {name: {"price": one["price"] + 1.0} for name, one in arms.items()}
    with pytest.raises(kh.InvalidValue, match=r"arm\.price was [71], got [82]"):
        bandit.explain(decision, {"age": 1.0}, among=other)
    with pytest.raises(kh.InvalidValue, match="made among 2 arms, not 3"):
        bandit.explain(decision, {"age": 1.0}, among={**arms, "third": {"price": 2.0}})


def test_predictions_are_told() -> None:
    bandit = learned({})
    decision = bandit.choose({"age": 30.0, "member": True})
    found = bandit.explain(decision)
    names = bandit._observer.layout.names or ()
    by_name = dict(zip(names, decision.observation.tolist(), strict=True))
    assert set(found.predicted) == {"spent", "device"}
    assert found.predicted["spent"] == {"spent": by_name["spent"]}
    assert found.predicted["device"]["device=tv"] == by_name["device=tv"]
    lines = str(found).splitlines()
    assert f"spent was missing, and predicted: {by_name['spent']:.4g}" in lines
    assert any(line.startswith("device was missing, and predicted: ") for line in lines)


def test_digits_are_those_that_a_person_wants() -> None:
    pairs = {"a": (1234.5678, -0.00012345), "b": (2.5e17, 999.4)}
    found = Explanation("A", "B", pairs, (1.0, 2.0), None, {"A": 0.5, "B": 0.5})
    assert [line.split()[1:] for line in str(found).splitlines()[1:3]] == [
        ["+1,235", "-0.000123"],
        ["+2.5e+17", "+999"],
    ]


# -- what was drawn, and what was learned since ----------------------------------------------------

POLICIES = [
    kh.ThompsonSampling(),
    kh.Greedy(),
    kh.LinUCB(),
    kh.OFUL(),
    kh.EpsilonGreedy(epsilon=0.3),
    kh.Uniform(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("n", [0, 3, 60])
@pytest.mark.parametrize("many", [False, True])
def test_a_score_is_the_sum_of_its_parts(policy: Any, n: int, many: bool) -> None:
    """Right away, and after rewards that change what is expected, units and the rewards' zero."""
    features = kh.Features(numbers=["age"], booleans=["member"])
    bandit = kh.Bandit(kh.Learner(policy, features), arms=["A", "B"], seed=2)
    rng = np.random.default_rng(3)

    def teach(times: int, level: float) -> None:
        for _ in range(times):
            record = {"age": float(rng.normal(40.0, 9.0)), "member": bool(rng.random() < 0.5)}
            one = bandit.choose(record)
            bandit.learn(one, level + 0.1 * record["age"] + float(rng.normal()))

    teach(n, 1.0)
    record = {"age": 47.0, "member": True}
    decision = bandit.choose_many([record])[0] if many else bandit.choose(record)
    at_once = bandit.explain(decision)
    assert at_once.learned_since == 0.0
    assert "learned since" not in str(at_once)
    teach(50, 6.0)
    found = bandit.explain(decision)
    assert at_once.drawn == pytest.approx(found.drawn, abs=1e-9)
    for one in (at_once, found):
        assert one.learned_since is not None
        assert one.drawn is not None
        parts = one.expected[0] + one.optimism - one.learned_since + one.drawn
        assert parts == pytest.approx(decision.score)
    since = found.expected[0] + found.optimism - at_once.expected[0] - at_once.optimism
    assert found.learned_since == pytest.approx(since)
    assert (found.optimism > 0.0) == isinstance(policy, kh.LinUCB | kh.OFUL)
    if not isinstance(policy, kh.ThompsonSampling):
        assert found.drawn == 0.0


def test_what_was_learned_since_by_hand() -> None:
    """At 1, the mean is 3 / 2 after one reward of 3, and (3 + 5) / 3 after another of 5."""
    bandit = kh.Bandit(kh.Greedy(), arms=["A"], dim=1, seed=1)
    bandit.learn(bandit.choose([1.0]), 3.0)
    decision = bandit.choose([1.0])
    bandit.learn(decision, 5.0)
    found = bandit.explain(decision)
    assert (found.expected[0], found.learned_since, found.drawn, found.score) == pytest.approx(
        (8 / 3, 8 / 3 - 3 / 2, 0.0, 3 / 2)
    )
    assert "learned since     +1.17" in str(found)


def test_without_what_was_known_then_both_are_one_row() -> None:
    features = kh.Features(numbers=["age"])
    record, plain = {"age": 1.0}, kh.Learner(kh.ThompsonSampling(v=1.0), features)
    bandit = kh.Bandit(plain, arms=["A", "B"], seed=1)
    quick = kh.Bandit(plain, arms=["A", "B"], seed=1, probabilities=False)
    carried = kh.Decision.from_dict(bandit.choose(record).to_dict())
    other = kh.Bandit(plain, arms=["A", "B"], seed=2).choose(record)  # with another zero, maybe
    for made_by, decision in ((bandit, carried), (bandit, other), (quick, quick.choose(record))):
        found = made_by.explain(decision, record)
        assert (found.drawn, found.learned_since) == (None, None)
        assert "\ndrawn, and learned since " in str(found)


def test_a_decision_through_json_is_explained_with_what_was_seen() -> None:
    bandit = learned({"missing": "predict"})
    record = {"age": 50.0, "device": "tv"}
    decision = bandit.choose(record)
    carried = kh.Decision.from_dict(decision.to_dict())
    with pytest.raises(kh.InvalidValue, match="JSON, or was made by hand, does not say whether"):
        bandit.explain(carried)
    found, direct = bandit.explain(carried, record), bandit.explain(decision)
    assert (found.terms, found.predicted) == (direct.terms, direct.predicted)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("zero", "spent was missing, and counts as 0"),
        ("mean", "spent was missing, and its mean is taken: 0.4"),
        ("predict", "spent was missing, and predicted: 0.4"),
    ],
)
def test_the_replacement_is_called_what_it_is(missing: Any, message: str) -> None:
    features = kh.Features(numbers=["spent"], standardize=False, missing=missing)
    bandit = kh.Bandit(kh.Learner(kh.Greedy(), features), arms=["A", "B"], seed=1)
    bandit.observe([{"spent": 0.2}, {"spent": 0.6}])
    assert str(bandit.explain(bandit.choose({}))).splitlines()[-1] == message
