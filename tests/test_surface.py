"""What can be imported, and what cannot be missed."""

import subprocess
import sys
from pathlib import Path

import keyhole as kh

PUBLIC = [
    "Bandit",
    "Decision",
    "Decisions",
    "EpsilonGreedy",
    "FileError",
    "Greedy",
    "InvalidValue",
    "KeyholeError",
    "LinUCB",
    "Policy",
    "Posterior",
    "ThompsonSampling",
    "Uniform",
    "UnknownArm",
    "choice_probabilities",
]


def test_the_public_names() -> None:
    assert sorted(PUBLIC) == kh.__all__
    assert all(getattr(kh, name).__doc__ for name in kh.__all__)


def test_every_error_is_a_keyhole_error_and_bad_values_are_value_errors() -> None:
    for error in (kh.InvalidValue, kh.UnknownArm, kh.FileError):
        assert issubclass(error, kh.KeyholeError)
        assert issubclass(error, ValueError)


def test_types_are_shipped() -> None:
    assert (Path(kh.__file__).parent / "py.typed").exists()


def test_importing_compiles_nothing() -> None:
    code = (
        "import keyhole.kernels as k; "
        "assert not any(f.signatures for f in vars(k).values() if hasattr(f, 'signatures'))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
