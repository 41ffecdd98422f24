"""What can be imported, and what cannot be missed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

import keyhole as kh
from keyhole.kernels import jit

PUBLIC = [
    "OFUL",
    "Bandit",
    "DataUnavailable",
    "Dataset",
    "DatasetWorld",
    "Decision",
    "Decisions",
    "Effects",
    "EpsilonGreedy",
    "FileError",
    "Greedy",
    "GreedyFirst",
    "InvalidValue",
    "KeyholeError",
    "LinUCB",
    "LinearWorld",
    "MissingExtra",
    "MissingWorld",
    "Policy",
    "Posterior",
    "RandomDatasetWorld",
    "RandomLinearWorld",
    "RandomMissingWorld",
    "Rounds",
    "Rule",
    "SimulationInterrupted",
    "Streams",
    "ThompsonSampling",
    "Uniform",
    "UnknownArm",
    "World",
    "audit",
    "choice_probabilities",
    "datasets",
    "plots",
    "simulate",
    "summary",
    "theory",
]


def test_the_public_names() -> None:
    assert kh.__all__ == PUBLIC
    assert all(getattr(kh, name).__doc__ for name in kh.__all__)


def test_every_error_is_a_keyhole_error_and_bad_values_are_value_errors() -> None:
    for error in (kh.InvalidValue, kh.UnknownArm, kh.FileError):
        assert issubclass(error, kh.KeyholeError)
        assert issubclass(error, ValueError)
    assert issubclass(kh.MissingExtra, kh.KeyholeError)
    assert issubclass(kh.MissingExtra, ImportError)


def test_types_are_shipped() -> None:
    assert (Path(kh.__file__).parent / "py.typed").exists()


def test_importing_compiles_nothing() -> None:
    code = (
        "import keyhole.kernels as k; "
        "assert not any(f.signatures for f in vars(k).values() if hasattr(f, 'signatures'))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_brings_in_no_laboratory() -> None:
    """Deciding online needs NumPy, SciPy and Numba, and pays for nothing else."""
    code = (
        "import sys, keyhole; "
        "heavy = {'xarray', 'pandas', 'matplotlib', 'rich', 'distributed', 'sklearn'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_extra_has_the_line_that_helps() -> None:
    code = (
        "import sys; sys.modules['xarray'] = None\n"
        "import keyhole as kh\n"
        "try: kh.simulate\n"
        "except kh.MissingExtra as error: print(error)\n"
    )
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "xarray" in shown
    assert "pip install 'keyhole[lab]'" in shown


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="simulat_"):
        kh.simulat_  # noqa: B018
    assert set(kh.__all__) <= set(dir(kh))


def test_it_works_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only installation with no home: kernels are then compiled in every process."""
    njit = numba.njit

    def nowhere(*given: Any, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*given, **options)

    monkeypatch.setattr(numba, "njit", nowhere)
    assert jit.kernel(lambda x: x + 1)(41) == 42
