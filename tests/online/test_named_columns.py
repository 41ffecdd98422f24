"""Columns in place of records: numbers that no record becomes are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.named import made

NAN = np.nan
FEATURES = kh.Features(
    numbers=["age"],
    booleans=["member"],
    categories={"device": ["mobile", "desktop"], "city": 3, "campaign": "grow"},
    cross=[("member", "device")],
)
# age, member, device=mobile, device=desktop, city#0, city#1, city#2, campaign=spring
RECORD = {"age": 41.0, "member": True, "device": "mobile", "city": "Rome", "campaign": "spring"}
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "choose": lambda b, y: b.choose(y),
    "choose, a list": lambda b, y: b.choose(y.tolist()),
    "choose, a row for each arm": lambda b, y: b.choose(np.array([b.row, y])),
    "choose_many": lambda b, y: b.choose_many(np.array([b.row, y])),
    "observe": lambda b, y: b.observe(np.array([b.row, y])),
    "observe one": lambda b, y: b.observe(y),
    "choice_probabilities": lambda b, y: b.choice_probabilities(y),
    "learn": lambda b, y: b.learn(b.by_hand(y), 1.0),
    "learn_many": lambda b, y: b.learn_many([b.by_hand(b.row), b.by_hand(y)], [1.0, 1.0]),
}
WRONG: dict[str, tuple[dict[int, float], str]] = {
    "a boolean": ({1: 7.0}, "member is a column of 0 and 1, .* got 7.0"),
    "a level": ({3: -2.0}, "device=desktop is a column of 0 and 1, .* got -2.0"),
    "a share": ({2: 0.5, 3: 0.5}, "device=mobile is a column of 0 and 1"),
    "a hashed level": ({4: 0.5}, "city#0 is a column of 0 and 1"),
    "a grown level": ({7: 2.0}, "campaign=spring is a column of 0 and 1"),
    "two levels": ({2: 1.0, 3: 1.0}, r"of the category device .* \[1.0, 1.0\]"),
    "no level": ({2: 0.0, 3: 0.0}, r"of the category device .* \[0.0, 0.0\]"),
    "half missing": ({2: NAN, 3: 1.0}, r"of the category device .* \[nan, 1.0\]"),
    "no bucket": ({4: 0.0, 5: 0.0, 6: 0.0}, "of the category city"),
    "no grown level": ({7: 0.0}, "of the category campaign"),
}


class Columns(kh.Bandit):
    """A bandit with the columns of a record that it has seen."""

    row: Any

    def by_hand(self, y: Any) -> kh.Decision:
        return kh.Decision(
            arm="A", observation=y, recipe=FEATURES.start().digest, levels=[("campaign", "spring")]
        )


def bandit(n: int) -> Columns:
    """A bandit that has learned so many rewards: before and after units are fixed."""
    made_here = Columns(kh.Learner(kh.ThompsonSampling(), FEATURES), arms=["A", "B"], seed=1)
    rng = np.random.default_rng(1)
    made_here.row = made_here.choose(RECORD).observation
    for _ in range(n):
        made_here.learn(
            made_here.choose({**RECORD, "age": float(rng.normal(41.0))}), float(rng.normal())
        )
    return made_here


@pytest.mark.parametrize("n", [0, 60])
@pytest.mark.parametrize("call", CALLS)
def test_columns_of_no_record_are_refused(call: str, n: int) -> None:
    one = bandit(n)
    before = one.to_bytes()
    for changes, message in WRONG.values():
        y = one.row.copy()
        for column, value in changes.items():
            y[column] = value
        with pytest.raises(kh.InvalidValue, match=message):
            CALLS[call](one, y)
        assert one.to_bytes() == before


@pytest.mark.parametrize("n", [0, 60])
@pytest.mark.parametrize("call", CALLS)
def test_columns_of_a_record_are_taken(call: str, n: int) -> None:
    one = bandit(n)
    CALLS[call](one, one.row)
    for missing in ([0], [1], [2, 3], [4, 5, 6], [7], range(8)):
        y = one.row.copy()
        y[list(missing)] = NAN
        CALLS[call](one, y)


def test_columns_choose_as_their_record_does() -> None:
    rng = np.random.default_rng(2)
    records, columns = made(FEATURES), made(FEATURES)
    records.choose(RECORD), columns.choose(RECORD)
    for _ in range(80):
        record = {**RECORD, "age": float(rng.normal()), "member": bool(rng.random() < 0.5)}
        one = records.choose(record)
        two = columns.choose(FEATURES.start().encode(record)[1].encode(record)[0])
        assert (one.arm, one.score) == (two.arm, two.score)
        records.learn(one, 1.0)
        columns.learn(two, 1.0)


def test_a_simulation_of_numbers_in_place_of_categories_is_refused() -> None:
    world = kh.LinearWorld.random(n_arms=2, context_dim=3, dim=3, seed=1)
    for features in (
        kh.Features(numbers=["a", "b"], booleans=["c"]),
        kh.Features(numbers=["a"], categories={"k": ["u", "v"]}),
    ):
        learner = kh.Learner(kh.ThompsonSampling(), features)
        with pytest.raises(
            kh.InvalidValue, match=r"LinearWorld gives .* learner x .* of no record"
        ):
            kh.simulate(world, {"x": learner}, horizon=20, replications=1, seed=1)
    numbers = kh.Learner(kh.ThompsonSampling(), kh.Features(numbers=["a", "b", "c"]))
    kh.simulate(world, numbers, horizon=20, replications=1, seed=1)
