"""What can be imported, and what cannot be missed."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import keyhole as kh
from keyhole import errors
from keyhole.errors import install_line

PUBLIC = [
    "OFUL",
    "AlreadyLearned",
    "AnyLearner",
    "Bandit",
    "Belief",
    "Chosen",
    "DataUnavailable",
    "Dataset",
    "DatasetWorld",
    "Decision",
    "Decisions",
    "Draws",
    "Effects",
    "EpsilonGreedy",
    "Explanation",
    "Features",
    "FileError",
    "ForgottenEvent",
    "Greedy",
    "GreedyFirst",
    "InvalidValue",
    "KeyholeError",
    "KeyholeWarning",
    "Learner",
    "LinUCB",
    "LinearWorld",
    "Log",
    "MissingExtra",
    "MissingWorld",
    "Policy",
    "Posterior",
    "RandomDatasetWorld",
    "RandomLinearWorld",
    "RandomMissingWorld",
    "Rounds",
    "Rule",
    "Sensor",
    "SensorLearner",
    "SimulationInterrupted",
    "Streams",
    "ThompsonSampling",
    "Transformed",
    "Uniform",
    "UnknownArm",
    "UnknownEvent",
    "WeightedThompsonSampling",
    "World",
    "audit",
    "choice_probabilities",
    "datasets",
    "evaluate",
    "evaluation",
    "fit",
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


def test_importing_brings_in_no_laboratory() -> None:
    """Deciding online needs NumPy and SciPy, and pays for nothing else."""
    code = (
        "import sys, keyhole; keyhole.Bandit; "
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
    assert f"keyhole.simulate needs xarray, which is not installed: {install_line('lab')}" in shown


LOCAL = '{"url": "file:///sources", "dir_info": {"editable": true}}'


@pytest.mark.parametrize(
    ("direct_urls", "line"),
    [
        ([None], "pip install 'keyhole[lab]'"),  # from a package index
        ([LOCAL], "pip install '.[lab]'"),
        ([None, LOCAL], "pip install '.[lab]'"),  # and the sources tell of themselves
        ([], "pip install '.[lab]'"),  # not installed at all
    ],
)
def test_the_line_that_helps_is_one_that_works(
    direct_urls: list[str | None], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def __init__(self, direct_url: str | None) -> None:
            self.direct_url = direct_url

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return self.direct_url

    monkeypatch.setattr(metadata, "distributions", lambda **_: map(Installed, direct_urls))
    assert errors.install_line("lab") == line


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="simulat_"):
        kh.simulat_  # noqa: B018


def test_dir_has_the_public_names_and_nothing_else() -> None:
    """Also before anything was used, when nothing is imported yet."""
    code = "import keyhole as kh; print(dir(kh) == sorted([*kh.__all__, '__version__']))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\n"
    assert dir(kh) == sorted([*PUBLIC, "__version__"])
