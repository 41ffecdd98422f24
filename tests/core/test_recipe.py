"""`Features` as a recipe: frozen, equal, printed, written, proposed; and recipes that cannot be."""

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from keyhole.core import Encoder, Features, Transformed
from keyhole.errors import InvalidValue
from tests.odd import ODD

FULL = Features(
    numbers=["age", "basket"],
    booleans=["member"],
    categories={"device": ["mobile", "desktop"], "country": 32, "city": "grow"},
    cross=[("device", "basket"), ("age", "arm.price")],
    arms=Features(numbers=["price"], categories={"topic": "grow"}, cross=[("topic", "price")]),
    intercept=False,
    standardize=True,
    missing=None,
    clip=5,
)
PLAIN = Features(numbers=["age"])


@pytest.mark.parametrize("features", [FULL, PLAIN], ids=["full", "plain"])
def test_copies_are_equal(features: Features) -> None:
    for same in (
        pickle.loads(pickle.dumps(features)),
        copy.copy(features),
        copy.deepcopy(features),
        dataclasses.replace(features),
        Features.from_dict(json.loads(json.dumps(features.to_dict(), sort_keys=True))),
        eval(repr(features)),
    ):
        assert same == features
        assert hash(same) == hash(features)
        assert same.start().names == features.start().names
        assert same.start().cross_names == features.start().cross_names


def test_recipes_of_other_columns_differ() -> None:
    turned = Features(categories={"b": 2, "a": 2})
    assert turned != Features(categories={"a": 2, "b": 2})
    assert dataclasses.replace(PLAIN, intercept=False) != PLAIN
    assert Features(booleans=["age"]) != PLAIN
    assert PLAIN != "age"
    assert len({PLAIN, Features(numbers=("age",)), turned}) == 2


def test_a_recipe_cannot_be_changed() -> None:
    levels = ["a", "b"]
    categories = {"c": levels}
    features = Features(categories=categories)
    levels.append("c")
    categories["d"] = ["x"]
    assert features.start().names == ("c=a", "c=b")
    with pytest.raises(TypeError):
        features.categories["d"] = ["x"]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        features.intercept = False  # type: ignore[misc]


def test_options_are_those_of_a_learner() -> None:
    assert (PLAIN.intercept, PLAIN.standardize, PLAIN.missing, PLAIN.clip) == (
        True,
        True,
        "predict",
        10.0,
    )
    assert isinstance(FULL.clip, float)
    with pytest.raises(InvalidValue, match="missing must be one of"):
        Features(numbers=["x"], missing="guess")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="clip is in units of features"):
        Features(numbers=["x"], standardize=False, clip=3.0)
    with pytest.raises(InvalidValue, match="intercept must be True or False"):
        Features(numbers=["x"], intercept="yes")  # type: ignore[arg-type]


def test_kinds() -> None:
    assert [FULL.kind(name) for name in FULL.frame_fields] == [
        "number",
        "number",
        "boolean",
        "category",
        "hashed",
        "growing",
        "number",
        "growing",
    ]
    with pytest.raises(InvalidValue, match="Did you mean age"):
        FULL.kind("agee")
    with pytest.raises(InvalidValue, match="age must be a category, got a number"):
        FULL.start().reference("age")


def test_the_table_by_hand() -> None:
    assert str(FULL).splitlines() == [
        "field                kind      columns  levels",
        "age                  number          1",
        "basket               number          1",
        "member               boolean         1",
        "device               category        2  mobile, desktop",
        "country              hashed         32",
        "city                 growing   as seen",
        "arm.price            number          1",
        "arm.topic            growing   as seen",
        "device:basket        cross           2",
        "age:arm.price        cross           1",
        "arm.topic:arm.price  cross     as seen",
    ]


# -- proposals -------------------------------------------------------------------------------------


def shop() -> pd.DataFrame:
    n = 200
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": np.where(np.arange(n) < 20, np.nan, rng.normal(size=n)),
            "visits": rng.integers(0, 9, n),
            "member": np.arange(n) % 2 == 0,
            "device": ["mobile", "desktop", "desktop", None] * 50,
            "city": [f"c{k % 40}" for k in range(n)],
            "user": [f"u{k}" for k in range(n)],
            "when": pd.date_range("2026-01-01", periods=n),
            "shop": "north",
            "empty": [None] * n,
        }
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "records"])
def test_a_proposal_by_hand(kind: str) -> None:
    frame = shop()
    given = {
        "pandas": frame,
        "polars": pl.DataFrame(pa.Table.from_pandas(frame)),
        "pyarrow": pa.Table.from_pandas(frame),
        "records": frame.to_dict("records"),
    }[kind]
    features = Features.from_frame(given)
    assert features == Features(
        numbers=["age", "visits"],
        booleans=["member"],
        categories={"device": ["desktop", "mobile"], "city": 64},
    )
    lines = str(features).splitlines()
    assert lines[:6] == [
        "field   kind      columns  missing  levels",
        "age     number          1      10%",
        "visits  number          1       0%",
        "member  boolean         1       0%",
        "device  category        2      25%  desktop, mobile",
        "city    hashed         64       0%",
    ]
    assert lines[6].startswith("left out: user (more than half of its values are distinct), when (")
    assert "shop (its value is the same in every row), empty (no value is there)" in lines[6]
    assert len(lines) == 7
    used = frame[list(features.fields)]
    assert features.start().encode_frame(used)[0].shape == (200, 69)


def test_a_proposal_for_arms() -> None:
    frame = [{"age": k, "arm.price": k, "arm.topic": "ab"[k % 2]} for k in range(8)]
    features = Features.from_frame(frame)
    assert features == Features(
        numbers=["age"], arms=Features(numbers=["price"], categories={"topic": ["a", "b"]})
    )
    assert features.start().encode_frame(frame)[0].shape == (8, 4)


def test_a_recipe_of_arms_alone() -> None:
    frame = pd.DataFrame({"arm.price": range(8), "arm.topic": ["a", "a", "b", "a"] * 2})
    features = Features(arms=Features(numbers=["price"], categories={"topic": ["a", "b"]}))
    assert Features.from_frame(frame) == features == Features.from_dict(features.to_dict())
    assert features.fields == ()
    rows, _ = features.start().encode_frame(frame)
    arms = [{"price": 0, "topic": "a"}, {"price": 2, "topic": "b"}]
    assert features.start().encode({}, arms)[0].tolist() == rows[[0, 2]].tolist()
    assert eval(repr(features)) == features
    with pytest.raises(InvalidValue, match="a recipe needs a field"):
        Features(arms=Features())


def test_a_proposal_without_fields_gives_the_reasons() -> None:
    with pytest.raises(InvalidValue, match=r"no column to learn from: shop \(its value is the"):
        Features.from_frame(shop()[["shop", "empty"]])
    with pytest.raises(InvalidValue, match="columns of a frame must have names, got 0"):
        Features.from_frame(pd.DataFrame(np.ones((2, 2))))
    with pytest.raises(InvalidValue, match="x in row 1 must be at most"):
        Features.from_frame([{"x": 1.0}, {"x": np.inf}])


# -- recipes that cannot be ------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "a recipe needs a field"),
    ({"numbers": "age"}, "numbers must be a list of names of fields, got 'age'"),
    ({"numbers": 3}, "numbers must be a list of names of fields, got 3"),
    ({"numbers": {"a", "b"}}, "numbers must be a list of names of fields"),
    ({"numbers": [3]}, "numbers must have names of fields, not empty, got 3"),
    ({"booleans": [""]}, "booleans must have names of fields, not empty, got ''"),
    ({"numbers": ["a", "a"]}, "a field must be named once in a recipe, got 'a' twice"),
    ({"numbers": ["a"], "booleans": ["a"]}, "named once in a recipe, got 'a' twice"),
    ({"numbers": ["a"], "categories": {"a": 4}}, "named once in a recipe, got 'a' twice"),
    ({"categories": ["device"]}, "categories must be a dict from fields to their levels"),
    ({"categories": {3: 4}}, "categories must have names of fields, not empty, got 3"),
    ({"categories": {"c": "mobile"}}, r"categories\['c'\] must be a list of levels, a number"),
    ({"categories": {"c": []}}, r"categories\['c'\] must have a level"),
    ({"categories": {"c": ["a", ""]}}, r"categories\['c'\] must have levels of text, not empty"),
    ({"categories": {"c": ["a", 3]}}, r"categories\['c'\] must have levels of text.*got 3"),
    ({"categories": {"c": ["a", "b", "a"]}}, r"categories\['c'\] must have each level once"),
    ({"categories": {"c": {"a", "b"}}}, r"categories\['c'\] must be a list of levels: a set"),
    ({"categories": {"c": 1}}, r"categories\['c'\] must be a whole number of at least 2, got 1"),
    ({"categories": {"c": True}}, r"categories\['c'\] must be a whole number of at least 2"),
    ({"categories": {"c": 10_000}}, r"categories\['c'\] must be at most 4,096"),
    (
        {"categories": {"c": [f"l{k}" for k in range(10_000)]}},
        r"categories\['c'\] must have at most 1,000 levels, got 10,000; hash it.*'c': 256",
    ),
    ({"numbers": ["c=a"], "categories": {"c": ["a"]}}, "'c=a' could be a column of the category"),
    ({"numbers": ["c#0"], "categories": {"c": 4}}, "'c#0' could be a column of the category"),
    ({"numbers": ["a"], "cross": "ab"}, "cross must be a list of pairs of fields"),
    ({"numbers": ["a", "b"], "cross": ["ab"]}, "cross must be pairs of fields, got 'ab'"),
    ({"numbers": ["a"], "cross": [("a", "bb")]}, "a field of cross must be one of a, got 'bb'"),
    ({"numbers": ["a"], "cross": [("a",)]}, "cross must be pairs of fields"),
    ({"booleans": ["a"], "cross": [("a", "a")]}, "only a number can be crossed with itself"),
    ({"numbers": ["a", "b"], "cross": [("a", "b"), ("b", "a")]}, "cross must name a pair once"),
    ({"numbers": ["a"], "arms": {"numbers": ["b"]}}, "arms must be a Features"),
    ({"numbers": ["a"], "arms": FULL}, "arms must be a recipe without arms of its own"),
    (
        {"numbers": ["a"], "arms": Features(numbers=["b"], missing="mean")},
        "missing is set for the context and the arms together",
    ),
    ({"numbers": ["arm.b"], "arms": PLAIN}, "'arm.b' is the name of a field of the arms"),
    (
        {
            "numbers": ["a"],
            "arms": Features(numbers=["b", "c"], cross=[("b", "c")]),
            "cross": [("arm.c", "arm.b")],
        },
        "cross must name a pair once",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_a_recipe_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Features(**options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "values must have the keys numbers, booleans"),
        ({"categories": {"c": 4}}, "categories must be pairs of a field and its levels"),
        ({"categories": 7}, "categories must be pairs of a field and its levels"),
        ({"categories": [["c", 4], ["c", 5]]}, "named once in a recipe, got 'c' twice"),
        ({"arms": 3}, "values must have the keys"),
        ({"clip": "far"}, "clip must be a number"),
    ],
)
def test_a_file_that_was_changed(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Features.from_dict({**PLAIN.to_dict(), **change})
    assert Features.from_dict(PLAIN.to_dict()) == PLAIN


def test_the_largest_recipe_works() -> None:
    encoder = Features(categories={"c": [f"l{k}" for k in range(1000)], "h": 4096}).start()
    assert encoder.dim == 5096


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cross": [("a", "b")]}, "got 16,785,408, of which a:b makes 16,777,216"),
        ({}, "5,120 columns, crossed ones too, got 8,192, of which a makes 4,096"),
        (
            {"categories": {"a": 4096}, "arms": Features(categories={"b": 2048})},
            "got 6,144, of which a makes 4,096",
        ),
    ],
)
def test_too_many_columns_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Features(**{"categories": {"a": 4096, "b": 4096}, **options})


# -- values that nobody should give ----------------------------------------------------------------

SMALL = Features(numbers=["a"], booleans=["b"], categories={"c": ["x"], "d": 3, "e": "grow"})
WITH_ARMS = Features(numbers=["a"], arms=Features(numbers=["p"]))
ENTRIES: dict[str, Callable[[Any], Any]] = {
    "numbers": lambda odd: Features(numbers=odd),
    "a name": lambda odd: Features(booleans=[odd]),
    "categories": lambda odd: Features(categories=odd),
    "a category": lambda odd: Features(categories={"c": odd}),
    "a level": lambda odd: Features(categories={"c": [odd]}),
    "cross": lambda odd: Features(numbers=["a"], cross=odd),
    "a pair": lambda odd: Features(numbers=["a"], cross=[odd]),
    "a crossed field": lambda odd: Features(numbers=["a"], cross=[("a", odd)]),
    "arms": lambda odd: Features(numbers=["a"], arms=odd),
    "from_dict": lambda odd: Features.from_dict(odd),
    "pairs": lambda odd: Features.from_dict({**SMALL.to_dict(), "categories": odd}),
    "a pair's name": lambda odd: Features.from_dict({**SMALL.to_dict(), "categories": [[odd, 3]]}),
    "grown": lambda odd: Encoder(SMALL, odd),
    "a grown level": lambda odd: Encoder(SMALL, (("e", odd),)),
    "a grown field": lambda odd: Encoder(SMALL, ((odd, "x"),)),
    "kind": SMALL.kind,
    "reference": lambda odd: SMALL.start().reference(odd),
    "a record": lambda odd: SMALL.start().encode(odd),
    "records of arms": lambda odd: WITH_ARMS.start().encode({}, odd),
    "a record of an arm": lambda odd: WITH_ARMS.start().encode({}, [odd]),
    "a frame": lambda odd: SMALL.start().encode_frame(odd),
    "a frame to propose for": Features.from_frame,
    "a value to propose for": lambda odd: Features.from_frame([{"a": odd}, {"a": 1}]),
    "a transformer": Transformed,
}


@pytest.mark.parametrize("field", SMALL.fields)
def test_odd_values_of_fields_work_or_are_our_errors(field: str) -> None:
    """A record and a frame agree on which they are."""
    refused = 0
    for make in ODD.values():
        odd = make()
        try:
            row, encoder = SMALL.start().encode({field: odd})
        except InvalidValue:
            refused += 1
            with pytest.raises(InvalidValue, match=f"^{field} in row 0 "):
                SMALL.start().encode_frame([{field: odd}, {}])
        else:
            np.testing.assert_array_equal(encoder.encode_frame([{field: odd}, {}])[0][0], row)
    assert refused > len(ODD) / 3


@pytest.mark.parametrize("entry", ENTRIES)
def test_odd_values_work_or_are_our_errors(entry: str) -> None:
    refused = 0
    for make in ODD.values():
        try:
            ENTRIES[entry](make())
        except InvalidValue:
            refused += 1
    assert refused > len(ODD) / 3


def test_odd_names_of_fields_are_our_errors() -> None:
    for make in ODD.values():
        odd = make()
        if isinstance(odd, Hashable):
            with pytest.raises(InvalidValue, match="must be one of a, b, c, d, e"):
                SMALL.start().encode({odd: 1})
            with pytest.raises(InvalidValue, match="must be one of a, b, c, d, e"):
                SMALL.start().encode_frame([{odd: 1}])
