"""Values that nobody should give, and that somebody will: for the fuzzer of public entry points.

None is large: numbers from 100 to 10^15, which a size might honestly be, are left out.
"""

import itertools
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st


def _readonly(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _deep(depth: int) -> list[Any]:
    nested: list[Any] = [1.0]
    for _ in range(depth):
        nested = [nested]
    return nested


class Rude:
    """An object that cannot even be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


NUMBERS: dict[str, Any] = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "minus one": -1,
    "half": 0.5,
    "minus zero": -0.0,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "1e51": 1e51,
    "1e308": 1e308,
    "denormal": 5e-324,
    "1e-200": 1e-200,
    "2**63": 2**63,
    "-2**63": -(2**63),
    "10**400": 10**400,
    "-10**400": -(10**400),
    "10**5000": 10**5000,
    "-10**5000": -(10**5000),
    "True": True,
    "np.True_": np.True_,
    "complex": 1j,
    "Decimal": Decimal("0.1"),
    "Fraction": Fraction(1, 3),
    "float16": np.float16(1.0),
    "float32 inf": np.float32(np.inf),
    "longdouble": np.longdouble(1.0),
    "huge longdouble": np.longdouble("1e4000"),
    "longdouble nan": np.longdouble("nan"),
    "uint64": np.uint64(2**64 - 1),
    "timedelta64": np.timedelta64(1, "s"),
    "NaT": np.timedelta64("NaT"),
    "datetime64": np.datetime64("2020-01-01"),
    "0-d array": np.array(1.0),
    "0-d int array": np.array(1),
}

OTHERS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "empty text": lambda: "",
    "text": lambda: "A",
    "number as text": lambda: "1.5",
    "long text": lambda: "x" * 5000,
    "NUL": lambda: "\0",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"2_0",
    "0-d text": lambda: np.array("normal"),
    "texts": lambda: np.array(["shared", "per-arm"]),
    "ellipsis": lambda: ...,
    "function": lambda: len,
    "class": lambda: dict,
    "object": object,
    "rude": Rude,
    "dict": dict,
    "record": lambda: {"arm": 1, "observation": [1.0]},
    "set": lambda: {1.0, 2.0},
    "range": lambda: range(2),
    "generator": lambda: (x for x in (1.0, 2.0)),
    "endless": lambda: itertools.repeat(1.0, 50),
    "empty list": list,
    "nothing inside": lambda: [[]],
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "ints": lambda: [1, 2],
    "floats": lambda: [0.5, 0.5],
    "nested": lambda: [[1.0, 2.0], [3.0, 4.0]],
    "list of None": lambda: [None, 1.0],
    "list of nan": lambda: [np.nan, 1.0],
    "list of huge": lambda: [10**400, 1.0],
    "list of far too huge": lambda: [10**5000, 1],
    "list of texts": lambda: ["A", "B"],
    "list of one and a text": lambda: [1.0, "2.0"],
    "list of masked": lambda: [np.ma.masked, 1.0],
    "list of timedelta64": lambda: [np.timedelta64(1, "s"), np.timedelta64(2, "s")],
    "deep": lambda: _deep(100),
    "deeper": lambda: _deep(5000),
    "array": lambda: np.ones(2),
    "read-only array": lambda: _readonly(np.ones(2)),
    "strided array": lambda: np.ones(4)[::2],
    "reversed array": lambda: np.ones(2)[::-1],
    "big-endian array": lambda: np.ones(2, dtype=">f8"),
    "Fortran array": lambda: np.asfortranarray(np.ones((2, 2))),
    "longdouble array": lambda: np.ones(2, dtype=np.longdouble),
    "float16 array": lambda: np.ones(2, dtype=np.float16),
    "bool array": lambda: np.array([True, False]),
    "int array": lambda: np.array([0, 1]),
    "uint64 array": lambda: np.full(2, 2**64 - 1, dtype=np.uint64),
    "complex array": lambda: np.ones(2, dtype=complex),
    "object array": lambda: np.array([object(), 1.0], dtype=object),
    "object numbers": lambda: np.array([1.0, 10**400], dtype=object),
    "timedelta array": lambda: np.zeros(2, dtype="m8[s]"),
    "record array": lambda: np.zeros(2, dtype=[("a", "f8")]),
    "nan array": lambda: np.array([np.nan, 1.0]),
    "inf array": lambda: np.array([np.inf, 1.0]),
    "1e200 array": lambda: np.array([1e200, -1e200]),
    "1e50 array": lambda: np.array([1e50, -1e50]),
    "tiny array": lambda: np.array([1e-300, 1e-300]),
    "empty array": lambda: np.zeros(0),
    "(2, 0) array": lambda: np.zeros((2, 0)),
    "(0, 2) array": lambda: np.zeros((0, 2)),
    "(2, 2) array": lambda: np.ones((2, 2)),
    "(3, 2) array": lambda: np.ones((3, 2)),
    "(1, 1, 1, 1, 1) array": lambda: np.ones((1,) * 5),
    "masked array": lambda: np.ma.array([1.0, 2.0], mask=[False, True]),
    "unmasked array": lambda: np.ma.array([1.0, 2.0], mask=[False, False]),
    "masked": lambda: np.ma.masked,
}

# Each is made when it is needed: a generator, or an array that was changed, serves only once.
ODD: dict[str, Callable[[], Any]] = {
    **{name: (lambda value=value: value) for name, value in NUMBERS.items()},  # type: ignore[misc]
    **OTHERS,
}


def odd_values() -> st.SearchStrategy[Any]:
    """Any of them, lists of some, and small arrays of any kind and shape."""
    single = st.sampled_from(sorted(ODD)).map(lambda name: ODD[name]())
    lists = st.recursive(single, lambda inner: st.lists(inner, max_size=3), max_leaves=6)
    shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
    kinds = st.sampled_from(["f8", "f4", "i8", "u1", "?", "c16", "O", "U3", "S2", "m8[s]", ">f8"])
    arrays = st.builds(lambda shape, kind: np.ones(shape).astype(kind), shapes, kinds)
    spiked = st.builds(_spiked, shapes, st.sampled_from([np.nan, np.inf, 1e300, -1e50, 5e-324]))
    return st.one_of(single, lists, arrays, spiked)


def _spiked(shape: tuple[int, ...], value: float) -> np.ndarray:
    array = np.ones(shape)
    array.flat[:1] = value
    return array
