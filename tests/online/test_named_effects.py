"""Effects by name: least squares on a design of dummies coded by hand, with errors that cover."""

import itertools
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.named import made

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
DEVICES = ("mobile", "desktop", "tablet")
CROSSES: dict[str, list[tuple[str, str]]] = {
    "none": [],
    "square": [("age", "age")],
    "number and category": [("age", "device")],
    "boolean and category": [("member", "device")],
    "two numbers, two indicators": [("age", "spent"), ("member", "device"), ("age", "age")],
}


def table(n: int, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    age = rng.normal(40.0, 12.0, n)
    # Levels that depend on a number, so that they can be predicted from it in part.
    device = np.where(
        rng.random(n) < 1 / (1 + np.exp((age - 40.0) / 8.0)), 0, 1 + (rng.random(n) < 0.5)
    )
    return [
        {
            "age": float(age[t]),
            "spent": float(rng.normal(2.0, 3.0)),
            "member": bool(rng.random() < 0.4),
            "device": DEVICES[int(device[t])],
        }
        for t in range(n)
    ]


def by_hand(told: list[dict[str, Any]], cross: Any, intercept: bool) -> dict[str, np.ndarray]:
    """The columns of a design by name: against the first level where there is a constant."""
    fields: dict[str, dict[str, np.ndarray]] = {
        "age": {"age": np.array([one["age"] for one in told])},
        "spent": {"spent": np.array([one["spent"] for one in told])},
        "member": {"member": np.array([float(one["member"]) for one in told])},
        "device": {
            f"device={level}": np.array([float(one["device"] == level) for one in told])
            for level in DEVICES[int(intercept) :]
        },
    }
    columns = {"constant": np.ones(len(told))} if intercept else {}
    for field in fields.values():
        columns |= field
    for one, other in cross:
        for (a, x), (b, y) in itertools.product(fields[one].items(), fields[other].items()):
            columns[f"{a}:{b}"] = x * y
    return columns


@pytest.mark.parametrize("cross", CROSSES.values(), ids=CROSSES)
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("device", ["grow", list(DEVICES)], ids=["growing", "listed"])
def test_effects_are_those_of_least_squares(
    cross: Any, standardize: bool, intercept: bool, device: Any
) -> None:
    features = kh.Features(
        numbers=["age", "spent"],
        booleans=["member"],
        categories={"device": device},
        cross=cross,
        intercept=intercept,
        standardize=standardize,
        clip=None,
    )
    learner = kh.Learner(kh.ThompsonSampling(prior_precision=1e-6), features)
    bandit = kh.Bandit(learner, arms=["A"], seed=1)
    # A growing category has its levels in the order in which they came.
    told: list[dict[str, Any]] = [
        {"device": level, "age": 30.0 + k, "spent": 1.0 + k, "member": k > 1}
        for k, level in enumerate(DEVICES)
    ]
    told += table(400, seed=2)
    noise = np.random.default_rng(3).standard_normal(len(told))
    rewards = [
        0.1 * one["age"]
        + 2.0 * one["member"]
        + DEVICES.index(one["device"]) * (1 + 0.01 * one["age"])
        + noise[t]
        for t, one in enumerate(told)
    ]
    for one, reward in zip(told, rewards, strict=True):
        bandit.learn(bandit.choose(one), float(reward))
    columns = by_hand(told, cross, intercept)
    x, r = np.column_stack(list(columns.values())), np.array(rewards)
    found = bandit.effects["A"].by_name
    rank = np.linalg.matrix_rank(x / np.linalg.norm(x, axis=0))
    assert sorted(found) == sorted(columns)
    expected = np.linalg.lstsq(x, r)[0]
    inverse = np.linalg.pinv(x.T @ x, rcond=1e-13)
    errors = np.sqrt(((r - x @ expected) ** 2).sum() / (len(x) - rank) * np.diag(inverse))
    seen_alone = np.abs(np.eye(len(columns)) - inverse @ x.T @ x).max(axis=0) < 1e-4
    assert seen_alone.all() == (rank == len(columns))
    for k, name in enumerate(columns):
        estimate, error = found[name]
        if seen_alone[k]:
            assert estimate == pytest.approx(expected[k], rel=1e-3, abs=1e-4)
            assert error == pytest.approx(errors[k], rel=1e-3)
    if intercept:
        assert seen_alone.all()


def test_by_hand_with_one_level_and_with_two() -> None:
    """The only level of a category is its first: what it gives is the constant."""
    features = kh.Features(categories={"c": "grow"}, standardize=False)
    bandit = made(features, arms=["A"])
    for k in range(40):
        bandit.learn(bandit.choose({"c": "p"}), 3.0 + (-1) ** k)
    (name, (estimate, error)), *others = bandit.effects["A"].by_name.items()
    assert (name, others) == ("constant", [])
    assert estimate == pytest.approx(3.0)
    assert error == pytest.approx((40 / 39 / 40) ** 0.5)
    for k in range(40):
        bandit.learn(bandit.choose({"c": "q"}), 5.0 + (-1) ** k)
    found = bandit.effects["A"].by_name
    assert found["constant"][0] == pytest.approx(3.0)
    assert found["c=q"][0] == pytest.approx(2.0)
    assert found["c=q"][1] == pytest.approx((80 / 78 * 2 / 40) ** 0.5)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_posterior_of_crosses_is_that_of_columns_by_hand(standardize: bool) -> None:
    """Also after units were replaced: as if all was learned in the last ones."""
    features = kh.Features(
        numbers=["age", "spent"],
        booleans=["member"],
        categories={"device": list(DEVICES)},
        cross=[("age", "device"), ("age", "age"), ("spent", "age")],
        standardize=standardize,
        clip=None,
    )
    bandit = made(features, arms=["A"])
    told = table(600, seed=4)
    for t, one in enumerate(told):
        if t > 60:  # other numbers than at the beginning, which replace the units
            one["age"], one["spent"] = 500.0 + 20.0 * one["age"], one["spent"] / 50.0
    for t, one in enumerate(told):
        bandit.learn(bandit.choose(one), float(t % 11))
        if t == 60:
            before = bandit._observer.units
    units, zero = bandit._observer.units, bandit._observer.zero
    x = np.array([bandit._learned.encoder.encode(one)[0] for one in told])  # type: ignore[union-attr]
    if standardize:
        assert units is not None
        assert before is not None
        assert units.scale[0] > 3.0 * before.scale[0]
        x = (x - units.middle) / units.scale
    names = ("age", "spent", "member", *(f"device={level}" for level in DEVICES))
    of = dict(zip(names, x.T, strict=True))
    pairs = [("age", f"device={level}") for level in DEVICES] + [("age", "age"), ("spent", "age")]
    design = np.column_stack([np.ones(len(x)), x, *(of[a] * of[b] for a, b in pairs)])
    precision = np.eye(12) + design.T @ design
    rewards = np.arange(600) % 11 - (zero or 0.0)
    size = np.sqrt(np.diag(precision))
    scaled = bandit.posterior.precision[0] / size / size[:, None]
    np.testing.assert_allclose(scaled, precision / size / size[:, None], atol=1e-9)
    moment = bandit.posterior.moment[0] / size
    np.testing.assert_allclose(moment, design.T @ rewards / size, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_errors_cover(missing: float) -> None:
    """95% intervals of 6 effects in 200 runs, on numbers, a boolean and a category.

    Runs are independent: the standard error of a mean over runs is at most that of 200 intervals,
    1.5%. Missing entries are predicted.
    """
    truth = {"age": 0.1, "spent": 0.5, "member": 1.5, "device=desktop": 1.0, "device=tablet": -2.0}
    covered = []
    for seed in range(200):
        features = kh.Features(
            numbers=["age", "spent"],
            booleans=["member"],
            categories={"device": list(DEVICES)},
            clip=None,
        )
        bandit, rng = made(features, arms=["A"]), np.random.default_rng(1000 + seed)
        for one in table(560, seed=seed):
            reward = 5.0 + sum(truth[name] * one[name] for name in ("age", "spent", "member"))
            reward += truth.get(f"device={one['device']}", 0.0) + rng.standard_normal()
            seen = {name: one[name] for name in one if rng.random() >= missing}
            bandit.learn(bandit.choose(seen), float(reward))
        found = bandit.effects["A"].by_name
        intervals = {"constant": 5.0, **truth}
        covered.append(
            [
                abs(found[name][0] - value) <= 1.96 * found[name][1]
                for name, value in intervals.items()
            ]
        )
    rates = np.mean(covered, axis=0)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)
    assert rates.min() >= 0.95 - 4 * 0.0154
