"""What counts as a number, and what is said of the rest."""

from typing import Any

import numpy as np
import pytest

from keyhole import checks
from keyhole.errors import InvalidValue


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["1.5", None], r"'1.5' \(str\) at 0"),
        ([b"2_0", 1.0], r"b'2_0' \(bytes\) at 0"),
        ([*range(20), "x", *range(6)], r"'x' \(str\) at 20"),
        ([10**400, 1], "too large for a float"),
        ([np.timedelta64(1, "s")], "timedelta64"),
        ([1.0, 1j], "complex"),
        ([[1.0, 2.0], [1.0]], "rows of equal length"),
        ([1.0, np.inf], "inf at 1"),
        (np.longdouble("1e4000"), "inf"),
        ({"a": 1.0}, "dict"),
    ],
)
def test_what_is_no_number_is_named_with_and_without_missing_entries(
    value: Any, message: str
) -> None:
    """A text that looks like a number became one where missing entries are allowed."""
    for check in (checks.floats, checks.with_missing):
        with pytest.raises(InvalidValue, match=message):
            check("y", value)


def test_masked_entries_are_missing_wherever_they_are() -> None:
    """Those inside a list were used as the numbers behind the mask, or as NaN."""
    masked = np.ma.array([1.0, 999.0], mask=[False, True])
    whole = np.ma.array([1, 999], mask=[False, True])
    values: list[Any] = [masked, whole, [1.0, np.ma.masked], [*masked], [1.0, None]]
    for value in values:
        np.testing.assert_array_equal(checks.with_missing("y", value), [1.0, np.nan])
        with pytest.raises(InvalidValue, match=r"masked|None"):
            checks.floats("y", value)
    nested: Any = [[1.0, np.ma.masked], (None, 2.0)]
    np.testing.assert_array_equal(checks.with_missing("y", nested), [[1, np.nan], [np.nan, 2]])


def test_whole_numbers() -> None:
    """Python itself refuses to print integers of more than 4,300 digits."""
    for value in (10**5000, -(10**5000), np.timedelta64(3), 2.0, True, "3", None):
        with pytest.raises(InvalidValue, match="n must be"):
            checks.integer("n", value)
    assert checks.integer("n", np.int8(3)) == 3


def test_a_fresh_array_comes_back() -> None:
    given = np.array([1.0, 2.0])
    for check in (checks.floats, checks.with_missing):
        checked = check("y", given)
        checked[0] = 5.0
        assert given[0] == 1.0
