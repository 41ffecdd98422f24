"""A recipe from records to columns: values by hand, frames as rows, growth, and bad input."""

import copy
import json
import pickle
import subprocess
import sys
import zlib
from collections import OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.core import Encoder, Features
from keyhole.errors import InvalidValue

NAN = np.nan
SHOP = Features(
    numbers=["age", "basket"],
    booleans=["member"],
    categories={"device": ["mobile", "desktop"], "country": 4, "city": "grow"},
    cross=[("device", "basket")],
)
RECORDS: list[dict[str, Any]] = [
    {"age": 41, "basket": 2.5, "member": True, "device": "mobile", "country": "de", "city": "Ulm"},
    {"age": None, "basket": 0.0, "member": None, "device": "tv", "country": None, "city": None},
    {
        "age": 7,
        "basket": NAN,
        "member": False,
        "device": "desktop",
        "country": "fr",
        "city": "Bonn",
    },
    {"age": 8, "basket": 1.0, "member": True, "device": None, "country": "it", "city": "Ulm"},
]


def frames() -> dict[str, Any]:
    """The same four records in every kind of frame, with the missing values of each."""
    table = pa.Table.from_pylist(RECORDS)
    pandas = pd.DataFrame(RECORDS)
    kinds = [("age", "f8"), ("basket", "f8"), ("member", "O")]
    kinds += [("device", "O"), ("country", "O"), ("city", "O")]
    return {
        "pandas": pandas,
        "pandas, nullable": pandas.convert_dtypes(),
        "pandas, objects": pandas.astype(object),
        "pandas, categories": pandas.astype({"device": "category", "city": "category"}),
        "polars": pl.DataFrame(RECORDS),
        "polars, categories": pl.DataFrame(RECORDS).with_columns(
            pl.col("city").cast(pl.Categorical)
        ),
        "pyarrow table": table,
        "pyarrow batch": table.to_batches()[0],
        "pyarrow, two chunks": pa.concat_tables([table.slice(0, 1), table.slice(1)]),
        "pyarrow, dictionary": table.set_column(
            5, "city", table.column("city").dictionary_encode()
        ),
        "structured array": np.array([tuple(r.values()) for r in RECORDS], dtype=kinds),
        "records": RECORDS,
        "records with fields left out": [
            {k: v for k, v in record.items() if v is not None} for record in RECORDS
        ],
    }


def one_at_a_time(features: Features, records: list[Any]) -> tuple[np.ndarray, Encoder]:
    """Rows in the columns of the last encoder, each record encoded once before."""
    encoder = features.start()
    for record in records:
        _, encoder = encoder.encode(record)
    return np.array([encoder.encode(record)[0] for record in records]), encoder


# -- values by hand --------------------------------------------------------------------------------


def test_a_record_by_hand() -> None:
    features = Features(
        numbers=["age"], booleans=["member"], categories={"device": ["mobile", "desktop"]}
    )
    encoder = features.start()
    assert features.fields == ("age", "member", "device")
    assert encoder.names == ("age", "member", "device=mobile", "device=desktop")
    assert encoder.is_indicator.tolist() == [False, True, True, True]
    assert encoder.group.tolist() == [0, 1, 2, 2]
    row, same = encoder.encode({"device": "desktop", "age": 41, "member": True})
    assert row.tolist() == [41.0, 1.0, 0.0, 1.0]
    assert same is encoder
    assert encoder.dim == 4
    assert encoder.crosses.shape == (0, 2)
    assert encoder.reference("device") == "mobile"


def test_a_hashed_level_is_the_crc_of_its_bytes() -> None:
    """The CRC-32 of "123456789" is a published check value: 0xCBF43926 = 6 modulo 32."""
    encoder = Features(categories={"country": 32}).start()
    assert encoder.names == tuple(f"country#{k}" for k in range(32))
    row = encoder.encode({"country": "123456789"})[0]
    assert np.flatnonzero(row).tolist() == [0xCBF43926 % 32] == [6]
    assert encoder.reference("country") is None
    row = encoder.encode({"country": "Österreich"})[0]
    assert np.flatnonzero(row).tolist() == [zlib.crc32("Österreich".encode()) % 32]
    assert encoder.encode({"country": "\ud800"})[0].sum() == 1.0


def test_hashing_is_the_same_in_another_process() -> None:
    code = (
        "from keyhole.core import Features\n"
        "encoder = Features(categories={'c': 512}).start()\n"
        "print([int(encoder.encode({'c': f'level {k}'})[0].argmax()) for k in range(20)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    encoder = Features(categories={"c": 512}).start()
    mine = [int(encoder.encode({"c": f"level {k}"})[0].argmax()) for k in range(20)]
    assert json.loads(done) == mine
    assert len(set(mine)) > 10


def test_crosses_by_hand() -> None:
    features = Features(
        numbers=["age", "basket"],
        categories={"device": ["mobile", "desktop"]},
        cross=[("device", "basket"), ("age", "age")],
    )
    encoder = features.start()
    assert encoder.cross_names == ("device=mobile:basket", "device=desktop:basket", "age:age")
    assert encoder.crosses.tolist() == [[2, 1], [3, 1], [0, 0]]


def test_arms_by_hand() -> None:
    features = Features(
        numbers=["age"],
        arms=Features(
            numbers=["price"],
            categories={"topic": ["news", "sport"]},
            cross=[("topic", "price")],
        ),
        cross=[("age", "arm.price")],
    )
    encoder = features.start()
    assert encoder.names == ("age", "arm.price", "arm.topic=news", "arm.topic=sport")
    assert encoder.cross_names == (
        "age:arm.price",
        "arm.topic=news:arm.price",
        "arm.topic=sport:arm.price",
    )
    assert features.fields == ("age",)
    assert features.frame_fields == ("age", "arm.price", "arm.topic")
    assert encoder.reference("arm.topic") == "news"
    arms = [{"price": 2, "topic": "sport"}, {"topic": "news"}, {"price": 3.5, "topic": "?"}]
    expected = [[41.0, 2.0, 0.0, 1.0], [41.0, NAN, 1.0, 0.0], [41.0, 3.5, NAN, NAN]]
    for given_arms in (arms, tuple(arms), pd.DataFrame(arms), pl.DataFrame(arms)):
        np.testing.assert_array_equal(encoder.encode({"age": 41}, given_arms)[0], expected)


def test_features_of_arms_in_a_frame_are_one_arm_per_row() -> None:
    features = Features(
        numbers=["age"], arms=Features(numbers=["price"], categories={"topic": "grow"})
    )
    rows = [(1, 2.0, "b"), (2, 3.0, "a"), (3, None, "b")]
    frame = pd.DataFrame(rows, columns=["age", "arm.price", "arm.topic"])
    encoded, encoder = features.start().encode_frame(frame)
    assert encoder.names == ("age", "arm.price", "arm.topic=b", "arm.topic=a")
    for row, (age, price, topic) in zip(encoded, rows, strict=True):
        alone = encoder.encode({"age": age}, [{"price": price, "topic": topic}])[0]
        np.testing.assert_array_equal(row, alone[0])


# -- missing values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gap",
    [None, NAN, np.float32("nan"), Decimal("nan"), Decimal("snan"), pd.NA, pd.NaT, np.ma.masked],
    ids=repr,
)
def test_everything_that_is_missing_is_nan(gap: object) -> None:
    fields = ("age", "member", "device", "country", "city")
    encoder = SHOP.start().encode(RECORDS[0])[1]
    row, after = encoder.encode({"basket": 1.0, **dict.fromkeys(fields, gap)})
    absent = encoder.encode({"basket": 1.0})[0]
    assert np.isnan(row).tolist() == [name != "basket" for name in encoder.names]
    np.testing.assert_array_equal(row, absent)
    assert after is encoder
    frame = [{"basket": 1.0, **dict.fromkeys(fields, gap)}, {"basket": 1.0}]
    np.testing.assert_array_equal(encoder.encode_frame(frame)[0], [row, row])


def test_an_unknown_or_empty_level_is_missing_and_others_are_not() -> None:
    encoder = Features(categories={"device": ["mobile", "desktop"]}).start()
    assert np.isnan(encoder.encode({"device": "tv"})[0]).all()
    assert np.isnan(encoder.encode({"device": ""})[0]).all()
    assert encoder.encode({"device": "mobile"})[0].tolist() == [1.0, 0.0]
    for spec in (4, "grow"):
        one = Features(numbers=["x"], categories={"c": spec}).start()
        assert one.encode({"x": 1, "c": ""})[1] is one
        np.testing.assert_array_equal(
            one.encode({"x": 1, "c": ""})[0], one.encode({"x": 1, "c": None})[0]
        )


@pytest.mark.parametrize(
    "value", [3, 3.0, np.int8(3), np.float32(3), np.float64(3), Decimal(3), Fraction(3)], ids=repr
)
def test_numbers_of_every_type(value: Any) -> None:
    encoder = Features(numbers=["x"]).start()
    assert encoder.encode({"x": value})[0].tolist() == [3.0]
    assert encoder.encode_frame([{"x": value}, {"x": 1}])[0].tolist() == [[3.0], [1.0]]


@pytest.mark.parametrize("value", [True, np.True_, 1, 1.0, np.int64(1), Decimal(1)], ids=repr)
def test_booleans_of_every_type(value: Any) -> None:
    encoder = Features(booleans=["x"]).start()
    assert encoder.encode({"x": value})[0].tolist() == [1.0]
    assert encoder.encode_frame([{"x": value}, {"x": 0}])[0].tolist() == [[1.0], [0.0]]


# -- records and frames of every kind --------------------------------------------------------------


def test_a_record_of_every_kind() -> None:
    record = RECORDS[0]
    expected, encoder = SHOP.start().encode(record)
    row_type = namedtuple("row_type", list(record))  # type: ignore[misc]  # noqa: PYI024
    structured = frames()["structured array"]
    for same in (
        OrderedDict(record),
        MappingProxyType(record),
        row_type(**record),
        pd.Series(record),
        pd.DataFrame([record]).iloc[0],
        pl.DataFrame([record]).row(0, named=True),
        structured[0],
        np.array(structured[0]),
        np.ma.array(structured)[0],
    ):
        np.testing.assert_array_equal(encoder.encode(same)[0], expected)


@pytest.mark.parametrize("kind", frames())
def test_a_frame_is_its_rows(kind: str) -> None:
    expected, encoder = one_at_a_time(SHOP, RECORDS)
    rows, after = SHOP.start().encode_frame(frames()[kind])
    np.testing.assert_array_equal(rows, expected)
    assert after == encoder
    assert after.names[-2:] == ("city=Ulm", "city=Bonn")
    assert np.isnan(rows).sum() == 1 + 1 + 2 + 4 + 2 + 1 + 2


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow table"])
def test_the_order_of_columns_does_not_matter(kind: str) -> None:
    frame = frames()[kind]
    names = list(reversed(SHOP.fields))
    turned = frame.select(names) if kind != "pandas" else frame[names]
    rows, encoder = SHOP.start().encode_frame(frame)
    again, same = SHOP.start().encode_frame(turned)
    np.testing.assert_array_equal(rows, again)
    assert encoder == same


def test_masked_columns_are_missing() -> None:
    array = np.ma.array(
        np.array([(1.0, True, "a"), (2.0, False, "b")], dtype="f8,?,U1"),
        mask=[(False, True, False), (True, False, True)],
    )
    features = Features(numbers=["f0"], booleans=["f1"], categories={"f2": ["a", "b"]})
    rows = features.start().encode_frame(array)[0]
    np.testing.assert_array_equal(rows, [[1.0, NAN, 1.0, 0.0], [NAN, 0.0, NAN, NAN]])


def test_an_empty_frame_has_no_rows() -> None:
    features = Features(numbers=["x"], categories={"c": "grow"})
    empty: list[Any] = [[], pd.DataFrame({"x": [], "c": []}), pl.DataFrame({"x": [], "c": []})]
    for frame in empty:
        rows, encoder = features.start().encode_frame(frame)
        assert rows.shape == (0, 1)
        assert encoder == features.start()


# -- growth ----------------------------------------------------------------------------------------


def test_a_new_level_gets_the_last_column_and_the_old_encoder_stays() -> None:
    features = Features(
        numbers=["x"], categories={"c": "grow", "d": "grow"}, cross=[("c", "x"), ("c", "d")]
    )
    start = features.start()
    assert start.names == ("x",)
    assert start.reference("c") is None
    row, one = start.encode({"x": 2, "c": "b", "d": "u"})
    assert row.tolist() == [2.0, 1.0, 1.0]
    assert one.names == ("x", "c=b", "d=u")
    row, two = one.encode({"x": 3, "c": "a", "d": "u"})
    assert row.tolist() == [3.0, 0.0, 1.0, 1.0]
    assert two.names == ("x", "c=b", "d=u", "c=a")
    assert dict(two.levels) == {"c": ("b", "a"), "d": ("u",)}
    assert two.group.tolist() == [0, 1, 2, 1]
    assert two.cross_names == ("c=b:x", "c=b:d=u", "c=a:x", "c=a:d=u")
    assert two.cross_names[:2] == one.cross_names
    assert two.reference("c") == "b"
    assert start.names == ("x",)
    assert one.names == ("x", "c=b", "d=u")


def test_a_frame_grows_row_by_row_and_not_column_by_column() -> None:
    features = Features(categories={"c": "grow", "d": "grow"})
    frame = pd.DataFrame({"c": ["b", "b", "a"], "d": ["u", "v", "v"]})
    rows, encoder = features.start().encode_frame(frame)
    assert encoder.names == ("c=b", "d=u", "d=v", "c=a")
    assert rows.tolist() == [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]]


def test_growth_by_arms_is_in_the_order_of_arms() -> None:
    features = Features(categories={"c": "grow"}, arms=Features(categories={"t": "grow"}))
    rows, encoder = features.start().encode({"c": "k"}, [{"t": "b"}, {"t": "a"}, {"t": "b"}])
    assert encoder.names == ("c=k", "arm.t=b", "arm.t=a")
    assert rows.tolist() == [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]


def test_an_encoder_is_its_recipe_and_its_growth() -> None:
    encoder = SHOP.start().encode_frame(RECORDS)[1]
    again = Encoder(SHOP, json.loads(json.dumps(encoder.grown)))
    assert again == encoder
    assert hash(again) == hash(encoder)
    assert again.names == encoder.names
    assert again != SHOP.start()
    for copied in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder)):
        assert copied == encoder
        np.testing.assert_array_equal(copied.encode(RECORDS[0])[0], encoder.encode(RECORDS[0])[0])


@pytest.mark.parametrize(
    ("grown", "message"),
    [
        ([("town", "Ulm")], "a growing category must be one of city, got 'town'"),
        ([("city", "Ulm"), ("city", "Ulm")], "city must grow by a new level, got 'Ulm'"),
        ([("city", "")], "city must grow by a new level, got ''"),
        (["Ulm"], "grown must be pairs of a field and a level"),
        (7, "grown must be pairs of a field and a level"),
        ([("city", 7)], "grown must be pairs of a field and a level"),
    ],
)
def test_growth_that_cannot_be(grown: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Encoder(SHOP, grown)


def test_arrays_of_an_encoder_cannot_be_changed() -> None:
    encoder = SHOP.start()
    for array in (encoder.crosses, encoder.is_indicator, encoder.group):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        encoder.names = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        encoder.levels["city"] = ()  # type: ignore[index]


# -- properties ------------------------------------------------------------------------------------

LEVELS = st.sampled_from(["a", "b", "c", "d", "", None])
ANY_RECORD = st.fixed_dictionaries(
    {},
    optional={
        "x": st.one_of(st.none(), st.floats(-1e50, 1e50), st.integers(-9, 9)),
        "m": st.sampled_from([True, False, None, 0, 1]),
        "c": LEVELS,
        "h": LEVELS,
        "g": LEVELS,
        "k": LEVELS,
    },
)
ANY = Features(
    numbers=["x"],
    booleans=["m"],
    categories={"c": ["a", "b"], "h": 3, "g": "grow", "k": "grow"},
    cross=[("g", "x"), ("g", "k"), ("c", "m")],
)


@settings(deadline=None)
@given(st.lists(ANY_RECORD, max_size=8))
def test_frames_are_rows_and_growth_keeps_places(records: list[dict[str, Any]]) -> None:
    expected, encoder = one_at_a_time(ANY, records)
    rows, after = ANY.start().encode_frame(records)
    np.testing.assert_array_equal(rows, expected.reshape(rows.shape))
    assert after == encoder
    earlier = ANY.start()
    for record in records:
        _, later = earlier.encode(record)
        assert later.names[: earlier.dim] == earlier.names
        assert later.cross_names[: len(earlier.cross_names)] == earlier.cross_names
        np.testing.assert_array_equal(later.group[: earlier.dim], earlier.group)
        earlier = later
    assert len(set(after.names)) == after.dim
    assert len(set(after.cross_names)) == len(after.cross_names)
    products = {(f"{after.names[i]}:{after.names[j]}") for i, j in after.crosses}
    assert products == set(after.cross_names)


@settings(deadline=None)
@given(ANY_RECORD)
def test_one_column_of_a_category_is_one_or_all_are_missing(record: dict[str, Any]) -> None:
    row, encoder = ANY.start().encode(record)
    for name in ("c", "h", "g", "k"):
        columns = row[list(encoder.columns[name])]
        is_there = record.get(name) not in (["a", "b"] if name == "c" else [None, ""])
        if name == "c":
            is_there = not is_there
        assert columns.sum() == 1.0 if is_there else np.isnan(columns).all()


# -- bad input -------------------------------------------------------------------------------------

BAD_VALUES = [
    ("age", "41", "age must be a number, got '41'"),
    ("age", True, "age must be a number, got True"),
    ("age", np.inf, r"age must be at most 1e\+50, got inf"),
    ("age", -1e51, "age must be at least"),
    ("age", 10**400, "age must be at most .* too large for a float"),
    ("age", Decimal("Infinity"), "age must be at most"),
    ("age", [1], r"age must be a number, got \[1\]"),
    ("age", 1j, "age must be a number, got 1j"),
    ("member", 2, "member must be True, False, 0 or 1, got 2"),
    ("member", "yes", "member must be True, False, 0 or 1, got 'yes'"),
    ("device", 3, r"device is a category and must be text, got 3 \(int\)"),
    ("country", 3.0, r"country is a category and must be text, got 3.0 \(float\)"),
    ("city", True, r"city is a category and must be text, got True \(bool\)"),
    ("city", b"Ulm", "city is a category and must be text"),
    ("city", ["Ulm"], "city is a category and must be text"),
]


@pytest.mark.parametrize(("field", "value", "message"), BAD_VALUES)
def test_a_value_that_cannot_be_used_names_its_field(field: str, value: Any, message: str) -> None:
    encoder = SHOP.start().encode(RECORDS[0])[1]
    names = encoder.names
    record = {**RECORDS[0], "city": "new", field: value}
    with pytest.raises(InvalidValue, match=f"^{message}"):
        encoder.encode(record)
    in_row = message.replace(field, f"{field} in row 1", 1)
    with pytest.raises(InvalidValue, match=f"^{in_row}"):
        encoder.encode_frame([RECORDS[0], record])
    assert encoder.names == names
    assert SHOP.start().encode(RECORDS[0])[1] == encoder


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("age", np.array([1.0, np.inf]), "age in row 1 must be at most"),
        ("age", np.array([True, False]), "age in row 0 must be a number, got .*True"),
        ("age", np.array(["1", "2"]), "age in row 0 must be a number, got .*'1'"),
        ("age", np.array([1, 2], dtype="m8[s]"), "age in row 0 must be a number"),
        ("member", np.array([1, 2]), "member in row 1 must be True, False, 0 or 1"),
        ("city", np.array([1, 2]), "city in row 0 is a category and must be text"),
        ("city", np.array([NAN, 2.0]), "city in row 1 is a category and must be text"),
        ("city", np.array([b"a", b"b"]), "city in row 0 is a category and must be text"),
    ],
)
def test_a_column_that_cannot_be_used_names_its_field(
    column: str, values: Any, message: str
) -> None:
    frame = pd.DataFrame(RECORDS[::3])
    frame[column] = values
    with pytest.raises(InvalidValue, match=f"^{message}"):
        SHOP.start().encode_frame(frame)


def test_an_unknown_field_is_an_error_with_a_hint() -> None:
    with pytest.raises(
        InvalidValue, match=r"a field of the record .* got 'agee'. Did you mean age"
    ):
        SHOP.start().encode({**RECORDS[0], "agee": 41})
    with pytest.raises(InvalidValue, match=r"a field of the record must be one of .* got 3"):
        SHOP.start().encode({**RECORDS[0], 3: 41})
    with_arms = Features(numbers=["x"], arms=Features(numbers=["price"]))
    with pytest.raises(InvalidValue, match=r"a field of an arm's record .* Did you mean price"):
        with_arms.start().encode({"x": 1}, [{"prize": 1}])
    with pytest.raises(InvalidValue, match=r"arm\.price must be a number, got 'free'"):
        with_arms.start().encode({"x": 1}, [{"price": "free"}])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow table", "records"])
def test_columns_of_a_frame_must_be_the_fields(kind: str) -> None:
    records = [{**record, "agee": 1} for record in RECORDS]
    frame = {
        "pandas": pd.DataFrame(records),
        "polars": pl.DataFrame(records),
        "pyarrow table": pa.Table.from_pylist(records),
        "records": records,
    }[kind]
    with pytest.raises(InvalidValue, match=r"got 'agee'\. Did you mean age\? .*features\.fields"):
        SHOP.start().encode_frame(frame)
    if kind != "records":
        short = frames()[kind]
        short = short.drop(columns="age") if kind == "pandas" else short.drop(["age"])
        with pytest.raises(InvalidValue, match="the frame has no column 'age'; its columns are"):
            SHOP.start().encode_frame(short)


def test_a_column_twice() -> None:
    values = np.ones((2, 2))
    features = Features(numbers=["x"])
    for frame in (
        pd.DataFrame(values, columns=["x", "x"]),
        pa.Table.from_arrays([pa.array([1.0]), pa.array([1.0])], names=["x", "x"]),
    ):
        with pytest.raises(InvalidValue, match="every field must be there once, got 'x' twice"):
            features.start().encode_frame(frame)
    with pytest.raises(InvalidValue, match="every field must be there once, got 'x' twice"):
        features.start().encode(pd.Series([1.0, 2.0], index=["x", "x"]))


@pytest.mark.parametrize(
    "record", [None, 3, "age", [1.0], (1, 2), np.ones(2), pd.DataFrame(RECORDS), {1, 2}], ids=type
)
def test_what_is_no_record(record: Any) -> None:
    with pytest.raises(InvalidValue, match="a record must be a dict"):
        SHOP.start().encode(record)


@pytest.mark.parametrize(
    "frame",
    [None, "age", [1.0], {"age": [1]}, np.ones((2, 2)), pl.LazyFrame(RECORDS), pd.Series([1.0])],
    ids=type,
)
def test_what_is_no_frame(frame: Any) -> None:
    with pytest.raises(InvalidValue, match="a frame must be a pandas or polars DataFrame"):
        SHOP.start().encode_frame(frame)
    with pytest.raises(InvalidValue, match="a frame must be a pandas or polars DataFrame"):
        Features.from_frame(frame)


def test_a_structured_column_of_several_values() -> None:
    frame = np.zeros(2, dtype=[("x", "f8", (3,))])
    with pytest.raises(InvalidValue, match="must hold single values"):
        Features(numbers=["x"]).start().encode_frame(frame)


def test_arms_must_fit_the_recipe() -> None:
    plain, with_arms = (
        Features(numbers=["x"]).start(),
        Features(numbers=["x"], arms=Features(numbers=["price"])).start(),
    )
    with pytest.raises(InvalidValue, match="the recipe has no features of arms"):
        plain.encode({"x": 1}, [{"price": 1}])
    with pytest.raises(InvalidValue, match=r"give arms, a list with a record for each \(price\)"):
        with_arms.encode({"x": 1})
    with pytest.raises(InvalidValue, match="a record for each arm, got none"):
        with_arms.encode({"x": 1}, [])
    for arms in ({"price": 1}, 3, "price", pd.Series({"price": 1})):
        with pytest.raises(InvalidValue, match="arms must be a list of records"):
            with_arms.encode({"x": 1}, arms)


def test_a_thousand_levels_may_grow_and_no_more() -> None:
    features = Features(categories={"city": "grow"})
    levels = [{"city": f"c{k}"} for k in range(1000)]
    encoder = features.start().encode_frame(levels)[1]
    assert encoder.dim == 1000
    message = r"city has 1,000 levels, .* and 'one' is one more; hash it: .*'city': 256"
    with pytest.raises(InvalidValue, match=message):
        encoder.with_levels([("city", "one")])
    row, full = encoder.encode({"city": "one"})
    assert np.isnan(row).all()
    assert (full.grown, full.full) == (encoder.grown, frozenset({"city"}))
    rows, many = features.start().encode_frame([{"city": f"c{k}"} for k in range(10_000)])
    assert (many.grown, many.full) == (encoder.grown, frozenset({"city"}))
    assert np.isnan(rows).all(axis=1).sum() == 9_000
    assert encoder.encode(levels[7])[0].argmax() == 7
