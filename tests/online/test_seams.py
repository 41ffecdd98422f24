"""Where parts meet: no arms, no columns, forged sums, interrupted calls."""

import copy
import json
import sys
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.files import read_arrays, write_arrays

OPEN = kh.Learner(
    kh.ThompsonSampling(sharing="shared"),
    kh.Features(numbers=["age"], arms=kh.Features(numbers=["price"])),
)


@pytest.mark.parametrize(
    "call",
    [
        lambda bandit: bandit.choose(np.ones(2)),
        lambda bandit: bandit.choose([1.0, 2.0]),
        lambda bandit: bandit.choose(np.empty((0, 2))),
        lambda bandit: bandit.choose({"age": 1.0}),
        lambda bandit: bandit.choose_many(np.ones((3, 2))),
        lambda bandit: bandit.choice_probabilities(np.ones(2)),
    ],
)
def test_a_bandit_without_arms_of_its_own(call: Any) -> None:
    bandit = kh.Bandit(OPEN, arms=[], seed=1)
    with pytest.raises(kh.InvalidValue, match="no arms of its own"):
        call(bandit)


def test_what_a_bandit_of_unknown_arms_has_learned_can_be_read() -> None:
    bandit, rng = kh.Bandit(OPEN, arms=[], seed=1), np.random.default_rng(1)
    for t in range(120):
        offers = {f"{t}.{k}": {"price": float(rng.normal(5, 2))} for k in range(3)}
        decision = bandit.choose({"age": float(rng.normal(40, 9))}, among=offers)
        bandit.learn(decision, 2.0 * offers[str(decision.arm)]["price"])
    assert bandit.counts == {"shared": 120}
    assert bandit.effects["shared"].by_name["arm.price"][0] == pytest.approx(2.0)


def test_features_without_a_column_yet() -> None:
    """Before its first level, a category that grows has none; files and copies hold."""
    learner = kh.Learner(kh.ThompsonSampling(), kh.Features(categories={"shop": "grow"}))
    bandit = kh.Bandit(learner, arms=["A", "B"], seed=1)
    for twin in (copy.copy(bandit), kh.Bandit.load(bandit.to_bytes(), seed=1), bandit):
        assert twin.dim == 0
        assert twin.choose({"shop": None}).arm in ("A", "B")
        assert len(twin.choose_many([{"shop": None}] * 3)) == 3
        assert twin.choose({"shop": "x"}).observation.tolist() == [1.0]


def test_sums_that_no_rows_have_are_refused(tmp_path: Any) -> None:
    """They would not be correlations, and predictions would look for their factor for ever."""
    bandit = kh.Bandit(kh.Learner(kh.ThompsonSampling(), missing="predict"), arms=2, dim=3, seed=1)
    for y in np.random.default_rng(1).standard_normal((30, 3)):
        bandit.learn(bandit.choose(y), 1.0)
    path = tmp_path / "bandit.npz"
    for name in ("snapshot_product", "seen_product"):
        bandit.save(path)
        arrays = read_arrays(path)
        arrays[name][0, 1] = 1e110
        arrays[name][0, 0] = 1e-300
        write_arrays(path, arrays)
        with pytest.raises(kh.FileError, match="do not fit together"):
            kh.Bandit.load(path)


def test_numbers_that_are_none_are_predicted_by_means() -> None:
    """A safeguard within the kernels: no loop without an end."""
    bandit = kh.Bandit(kh.Learner(kh.ThompsonSampling(), missing="predict"), arms=2, dim=3, seed=1)
    for y in np.random.default_rng(1).standard_normal((30, 3)):
        bandit.choose(y)
    observer = bandit._learned.observer
    observer.snapshot.product[0, 1] = observer.snapshot.product[1, 0] = np.inf
    observer._rows = None
    filled = observer.filled(np.array([[1.0, 2.0, np.nan]]))
    assert filled[0, 2] == pytest.approx(observer.snapshot.mean[2])


def test_rewards_after_an_interrupted_call_are_learned() -> None:
    """Interrupted at each line of a call that replaces what was learned."""
    learner = kh.Learner(kh.ThompsonSampling(), intercept=True, standardize=True, missing="predict")
    rows = np.random.default_rng(2).standard_normal((127, 3))
    line, done = 0, False
    while not done:
        bandit = kh.Bandit(learner, arms=2, dim=3, seed=1)
        for y in rows:
            bandit.learn(bandit.choose(y), float(y[0]))
        elsewhere = kh.Decision(arm=0, observation=[0.1, 0.2, 0.3], id="elsewhere")
        done, count = True, 0

        def press(frame: Any, event: str, _: Any, stop: int = line) -> Any:
            nonlocal count, done
            if event == "line" and "keyhole" in frame.f_code.co_filename:
                count += 1
                if count > stop:
                    done = False
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return press

        before = sys.gettrace()
        sys.settrace(press)
        try:
            bandit.learn(elsewhere, 1.0)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        total = sum(bandit.counts.values())
        for y in rows[:5]:
            decision = bandit.choose(y)
            bandit.learn(decision, 1.0)
        assert sum(bandit.counts.values()) == total + 5, line
        line += 7  # every line would take long, and steps of 7 come to all kinds of them
    assert line > 100


def test_a_joint_draw_has_no_probabilities_to_explain() -> None:
    policy = kh.ThompsonSampling(v=1.0, sharing="shared", draw="joint")
    bandit = kh.Bandit(policy, arms=3, dim=2, seed=1)
    decision = bandit.choose(np.eye(3, 2))
    with pytest.raises(kh.InvalidValue, match=r"explain needs draw='per-arm'.* one sample"):
        bandit.explain(decision, np.eye(3, 2))
    assert json.dumps(decision.to_dict())


def test_a_decision_of_other_features_is_refused() -> None:
    """Equal in number, columns in another order are others: nothing else would tell."""
    recipes = [
        kh.Features(categories={"plan": levels}) for levels in (["free", "pro"], ["pro", "free"])
    ]
    one, two = (
        kh.Bandit(kh.Learner(kh.Greedy(), recipe), arms=["A"], seed=1) for recipe in recipes
    )
    plain = kh.Bandit(kh.Learner(kh.Greedy(), intercept=True), arms=["A"], dim=2, seed=1)
    made = one.choose({"plan": "pro"})
    carried = kh.Decision.from_dict(json.loads(json.dumps(made.to_dict())))
    many = one.choose_many([{"plan": "pro"}] * 2)
    for other in (two, plain):
        before = other.to_bytes()
        for decision in (made, carried, many[0]):
            with pytest.raises(kh.InvalidValue, match="other features"):
                other.learn(decision, 1.0)
        for decisions in (many, list(many)):
            with pytest.raises(kh.InvalidValue, match="other features"):
                other.learn_many(decisions, [1.0, 1.0])
        assert other.to_bytes() == before
    before = one.to_bytes()
    unnamed, rows = plain.choose([1.0, 0.0]), plain.choose_many(np.eye(2))
    for call in (
        lambda: one.learn(unnamed, 1.0),
        lambda: one.learn(kh.Decision.from_dict(unnamed.to_dict()), 1.0),
        lambda: one.learn_many(rows, [1.0, 1.0]),
        lambda: one.learn_many([made, unnamed], [1.0, 1.0]),
        lambda: one.explain(unnamed),
    ):
        with pytest.raises(kh.InvalidValue, match="made without features"):
            call()
        assert one.to_bytes() == before
    one.learn(carried, 1.0)
    one.learn_many(many, [1.0, 1.0])
    sensor = kh.Sensor(sensing=np.eye(2), sensing_covariance=1.0)
    seen = kh.Bandit(kh.SensorLearner(kh.Greedy(), {"s": sensor}), arms=["A"], dim=2, seed=1)
    with pytest.raises(kh.InvalidValue, match="sensor 's'"):
        plain.learn(seen.choose([1.0, 2.0], sensor="s"), 1.0)


def test_a_file_takes_no_other_columns() -> None:
    from sklearn.preprocessing import StandardScaler

    def fitted(names: list[str]) -> kh.Transformed:
        frame = __import__("pandas").DataFrame({name: [1.0, 2.0, 4.0] for name in names})
        return kh.Transformed(StandardScaler().fit(frame))

    bandit = kh.Bandit(kh.Learner(kh.Greedy(), fitted(["age", "price"])), arms=["A"], seed=1)
    saved = bandit.to_bytes()
    assert kh.Bandit.load(saved, features=fitted(["age", "price"])).dim == 2
    for other in (fitted(["price", "age"]), kh.Features(numbers=["age", "price"])):
        with pytest.raises(kh.FileError, match="not those of the saved bandit"):
            kh.Bandit.load(saved, features=other)


@pytest.mark.parametrize(
    "option", [{"intercept": False}, {"missing": None}, {"standardize": False}]
)
def test_options_beside_features_are_not_ignored(option: dict[str, Any]) -> None:
    with pytest.raises(kh.InvalidValue, match="option of the features"):
        kh.Learner(kh.Greedy(), kh.Features(numbers=["age"]), **option)
    # Those that the features have may be repeated.
    kh.Learner(kh.Greedy(), kh.Features(numbers=["age"], **option), **option)


@pytest.mark.parametrize(
    "recipe",
    [
        lambda: kh.Features(numbers=["constant", "x"]),
        lambda: kh.Features(numbers=["a:b", "a", "b"], cross=[("a", "b")]),
    ],
)
def test_two_columns_of_one_name_are_refused(recipe: Any) -> None:
    with pytest.raises(kh.InvalidValue, match="two columns would have the name"):
        kh.Bandit(kh.Learner(kh.Greedy(), recipe()), arms=["A"])


def test_arms_that_have_records_are_added_with_one() -> None:
    bandit = kh.Bandit(OPEN, arms={"A": {"price": 1.0}}, seed=1)
    before = bandit.to_bytes()
    with pytest.raises(kh.InvalidValue, match=r"add_arms\(\{'x': \{'price': \.\.\.\}\}\)"):
        bandit.add_arms(["x"])
    assert bandit.to_bytes() == before
    bandit.add_arms({"x": {"price": 2.0}})
    assert bandit.arms == ("A", "x")
    # Where every record comes with `among`, a name is all there is to add.
    features = kh.Features(numbers=["age"], arms=kh.Features(numbers=["price"]))
    named = kh.Bandit(kh.Learner(kh.ThompsonSampling(), features), arms=["A"], seed=1)
    named.add_arms(["x"])
    assert named.arms == ("A", "x")


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e10, 1e20, 1e40])
@pytest.mark.parametrize("standardize", [False, True])
def test_effects_of_features_of_any_size(size: float, standardize: bool) -> None:
    """In other units the same rewards have effects and errors in other units, and no others."""
    if size < 1.0 and not standardize:
        return  # which the prior, in the feature's own unit, takes for nothing

    def effects(unit: float) -> Any:
        features = kh.Features(numbers=["x", "z"], standardize=standardize)
        bandit = kh.Bandit(kh.Learner(kh.Greedy(), features), arms=["A"], seed=1)
        rng = np.random.default_rng(0)
        for x, z, noise in rng.standard_normal((300, 3)).tolist():
            decision = bandit.choose({"x": unit * (x + 5.0), "z": z})
            bandit.learn(decision, 1.0 + 2.0 * x + 3.0 * z + 0.1 * noise)
        return bandit.effects["A"].by_name

    found, expected = effects(size), effects(1.0)
    for name in ("constant", "z"):
        assert found[name] == pytest.approx(expected[name], rel=1e-6)
    estimate, error = found["x"]
    assert (estimate * size, error * size) == pytest.approx(expected["x"], rel=1e-6)
    assert abs(estimate * size - 2.0) < 4.0 * error * size


def test_the_missing_field_is_named() -> None:
    features = kh.Features(numbers=["age", "basket"], missing=None, standardize=False)
    bandit = kh.Bandit(kh.Learner(kh.Greedy(), features), arms=["A"], seed=1)
    with pytest.raises(kh.InvalidValue, match=r"^basket is missing; missing entries are predicted"):
        bandit.choose({"age": 1.0})
