"""Public entry points with values that make no sense: a KeyholeError, or it works; no third.

An error leaves everything as it was, the arguments included. `make fuzz` tries far more.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import keyhole as kh
from tests import entries
from tests.odd import ODD, odd_values

LONG = "KEYHOLE_FUZZ" in os.environ
# The same examples each time, unless many are wanted.
PROFILE = settings(
    max_examples=1000 if LONG else 15,
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

ENTRIES = entries.everything()

every_entry = pytest.mark.parametrize("make", ENTRIES.values(), ids=ENTRIES)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd paths are paths: what is written under such a name does not stay in the sources."""
    monkeypatch.chdir(tmp_path)


def spoil(make: Callable[[], entries.Call], odd: dict[str, Any]) -> None:
    """Call an entry with some arguments replaced."""
    call = make()
    before = entries.snapshot(call.watched)
    arguments = {**call.arguments, **odd}
    arrays = {k: v.copy() for k, v in arguments.items() if isinstance(v, np.ndarray)}
    try:
        call.function(**arguments)
        refused = ""
    except kh.KeyholeError as error:
        refused = str(error)
    for name, array in arrays.items():
        np.testing.assert_array_equal(arguments[name], array, err_msg=f"{name} was changed")
    if refused:
        after = entries.snapshot(call.watched)
        assert after.keys() == before.keys()
        for name, array in after.items():
            np.testing.assert_array_equal(array, before[name], err_msg=f"{name} was changed")


@every_entry
def test_what_is_right_works(make: Callable[[], entries.Call]) -> None:
    """The negative control: nothing of what follows fails for another reason."""
    call = make()
    with contextlib.suppress(kh.FileError):  # `save` into a place where nothing can be
        call.function(**call.arguments)


@every_entry
def test_one_odd_value(make: Callable[[], entries.Call]) -> None:
    """Each odd value in place of each argument."""
    for name in make().arguments:
        for kind, value in ODD.items():
            try:
                spoil(make, {name: value()})
            except BaseException as error:
                error.add_note(f"{name} was: {kind}")
                raise


@every_entry
@PROFILE
@given(data=st.data())
def test_odd_values_together(make: Callable[[], entries.Call], data: st.DataObject) -> None:
    """Several arguments at a time, with lists and arrays of anything."""
    names = sorted(make().arguments)
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    spoil(make, {name: data.draw(odd_values(), label=name) for name in chosen})
