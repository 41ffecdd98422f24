"""Every name that the glossary gives for a letter or a word exists."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import keyhole as kh
from keyhole import core, lab
from keyhole.lab import studies

PAGE = (Path(__file__).parents[2] / "docs" / "symbols.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and "in the code" not in line
]
NAMES = [(row[-3], name) for row in ROWS for name in re.findall(r"`([^`]+)`", row[-1])]


@pytest.fixture(scope="module")
def scope() -> dict[str, Any]:
    """What the page says that names are of."""
    world = kh.LinearWorld.random(n_arms=2, context_dim=3, dim=2, seed=1)
    policy = kh.ThompsonSampling(v=1.0)
    bandit = kh.Bandit(policy, arms=["A", "B"], dim=2, seed=1)
    assert lab.studies is studies
    return {
        **{name: getattr(kh, name) for name in kh.__all__},
        "core": core,
        "lab": lab,
        "world": world,
        "policy": policy,
        "rule": policy.rule,
        "bandit": bandit,
        "decision": bandit.choose([1.0, 0.0]),
        "posterior": bandit.posterior,
        "rounds": world.sample(3, seed=1),
        "runs": kh.simulate(world, policy, horizon=5, replications=2, seed=1),
        "constants": kh.theory.instance(world, trials=2_000),
    }


def check(expression: str, scope: dict[str, Any]) -> None:
    """Evaluate a name; of `f(x=...)`, look for the argument x of f."""
    call = ast.parse(expression, mode="eval").body
    if isinstance(call, ast.Call) and any(
        isinstance(one.value, ast.Constant) and one.value.value is ... for one in call.keywords
    ):
        function = eval(ast.unparse(call.func), scope)
        arguments = inspect.signature(function).parameters
        for one in call.keywords:
            assert one.arg in arguments, f"{expression}: there are {', '.join(arguments)}"
    else:
        eval(expression, scope)


@pytest.mark.parametrize(("word", "name"), NAMES, ids=lambda text: text)
def test_what_the_glossary_names_exists(word: str, name: str, scope: dict[str, Any]) -> None:
    assert word
    check(name, scope)


def test_a_name_that_does_not_exist_is_noticed(scope: dict[str, Any]) -> None:
    with pytest.raises(AttributeError):
        check("bandit.settle", scope)
    with pytest.raises(AssertionError, match="horizon"):
        check("simulate(rounds=...)", scope)


def test_every_row_has_a_word_a_meaning_and_a_name() -> None:
    assert len(ROWS) > 60
    for row in ROWS:
        assert len(row) in (3, 4)
        assert all(row[-3:]), row
        assert "`" in row[-1], row


def test_a_word_is_explained_once() -> None:
    words = [row[-3] for row in ROWS if row[-3] != "the same"]
    assert len(words) == len(set(words))
