"""Every name that the glossary gives for a word exists."""

import importlib
import re
from pathlib import Path

import pytest

import keyhole as kh

PAGE = (Path(__file__).parents[2] / "docs" / "symbols.md").read_text()
ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \| (.+) \|$", PAGE.split("## Our own words")[1], re.M)
NAMES = [
    (word.strip(), name.partition("(")[0])
    for word, names in ROWS[1:]
    for name in re.findall(r"`([^`]+)`", names)
]


def found(name: str) -> object:
    """Return what a dotted name stands for; a field of a dataclass stands for itself."""
    thing: object = kh
    for part in name.split("."):
        if part in getattr(thing, "__dataclass_fields__", {}):
            return part
        if thing is kh and part not in kh.__all__:
            thing = importlib.import_module(f"keyhole.{part}")
        elif not hasattr(thing, part) and hasattr(thing, "__path__"):
            thing = importlib.import_module(f"{thing.__name__}.{part}")  # type: ignore[attr-defined]
        else:
            thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize(("word", "name"), NAMES, ids=lambda text: text)
def test_what_the_glossary_names_exists(word: str, name: str) -> None:
    assert word
    assert found(name.replace("decision.", "Decision.")) is not None


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert len(NAMES) > 20
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        found("Bandit.settle")
