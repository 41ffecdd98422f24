"""Tables of the reference that are made of the library itself while the site is built.

A page has `{{ name }}` on a line of its own where the table of that name goes. MkDocs calls
`on_page_markdown` of this file, which `mkdocs.yml` names as a hook.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import typer

import keyhole as kh
from keyhole import errors as every_error
from keyhole.cli import app
from keyhole.core import POLICIES
from keyhole.lab.datasets import CATALOGUE, TABLES
from keyhole.lab.studies import STUDIES

# Pages about the modules of `keyhole`.
PAGES = {"audit": "audit", "datasets": "datasets", "plots": "simulation", "summary": "simulation"}
# How a default is written in help, where `\[` keeps Rich from reading it as markup.
DEFAULT = re.compile(r" ?\\?\[default: (.+)\]$")
PLACE = re.compile(r"^\{\{ (\w+) \}\}$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the tables into a page."""
    return PLACE.sub(lambda found: MAKERS[found[1]](), markdown)


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in line) + " |"
        for line in lines
    )


def first_line(thing: object) -> str:
    """Return the first sentence of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n\n")[0].split(":: ")[0]


def names() -> str:
    """Return every public name with its first line."""

    def rows() -> Iterator[tuple[str, str]]:
        for name in sorted(kh.__all__, key=str.lower):
            thing = getattr(kh, name)
            is_module = isinstance(thing, ModuleType)
            page = f"({PAGES.get(name, name)}.md)" if is_module else f"[keyhole.{name}]"
            yield f"[`{name}`]{page}", first_line(thing)

    return table(("name", ""), rows())


def policies() -> str:
    """Return every policy with its name in commands."""
    return table(
        ("policy", "in commands", ""),
        (
            (f"[`{kind.__name__}`][keyhole.{kind.__name__}]", f"`{name}`", first_line(kind))
            for name, kind in POLICIES.items()
        ),
    )


def studies() -> str:
    """Return every study with its claim."""
    return table(
        ("study", "title", "claim"),
        ((f"`{name}`", study.title, study.claim) for name, study in STUDIES.items()),
    )


def datasets() -> str:
    """Return every data set that has a name."""
    known = [(f"`{name}`", "`load`", source.title) for name, source in CATALOGUE.items()]
    packaged = [(f"`{name}`", "`table`", source.title) for name, source in TABLES.items()]
    return table(("name", "function", ""), known + packaged)


def statements() -> str:
    """Return every bound with its status."""
    return table(
        ("bound", "paper", "meaning", "status"),
        (
            (
                f"[`{name}`][keyhole.theory.bounds.{name}]",
                one.label,
                one.meaning,
                kh.theory.status_of(name).word,
            )
            for name, one in kh.theory.STATEMENTS.items()
        ),
    )


def constants() -> str:
    """Return every constant of an instance with its meaning."""
    world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
    found = kh.theory.instance(world, trials=2_000).named
    return table(
        ("constant", "paper", "meaning"),
        ((f"`{name}`", one.label, one.meaning) for name, one in found.items()),
    )


# Where a bound is taken: its arguments besides `Constants`, whose fields its own docstring has.
ARGUMENTS = {
    "horizon": "T, the number of rounds",
    "t": "a round",
    "n": "pulls of the arm",
    "p": "p_i, the probability that the arm is best",
    "largest": "a length that no observation exceeds",
}


def arguments() -> str:
    """Return every argument of a bound besides its constants, with its meaning."""
    taken: dict[str, list[str]] = {name: [] for name in ARGUMENTS}
    for name, one in kh.theory.STATEMENTS.items():
        for argument in one.takes:
            taken[argument].append(name)
    return table(
        ("argument", "meaning", "taken by"),
        (
            (
                f"`{one}`",
                ARGUMENTS[one],
                ", ".join(names) if len(names) < 9 else f"{len(names)} bounds",
            )
            for one, names in taken.items()
        ),
    )


def errors() -> str:
    """Return every exception with what it is besides."""
    kinds = [
        kind
        for kind in vars(every_error).values()
        if isinstance(kind, type) and issubclass(kind, kh.KeyholeError | kh.KeyholeWarning)
    ]

    def link(kind: type) -> str:
        home = "keyhole" if kind.__name__ in kh.__all__ else "keyhole.errors"
        return f"[`{kind.__name__}`][{home}.{kind.__name__}]"

    return table(
        ("error", "is a", "when"),
        (
            (
                link(kind),
                ", ".join(f"`{base.__name__}`" for base in kind.__bases__),
                first_line(kind),
            )
            for kind in kinds
        ),
    )


def commands() -> str:
    """Return every command with its options."""
    return "\n\n".join(_commands(typer.main.get_command(app), "keyhole"))


def _commands(command: Any, name: str) -> Iterator[str]:
    """Yield the parts of a command, or of every command of a group."""
    for one, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, f"{name} {one}")
    if hasattr(command, "commands"):
        return
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    usage = " ".join([name, *(f"[{one.name}]" for one in arguments), "[options]"])
    yield f"## {name}"
    yield f"`{usage}`"
    yield inspect.cleandoc(command.help or "").split("\f")[0]
    yield table(("option", "default", ""), (_option(param) for param in command.params))


def _option(param: Any) -> tuple[str, str, str]:
    """Return an option's row; a default may be in its help, since others depend on it."""
    spelled = [param.name] if param.param_type_name == "argument" else param.opts
    options = ", ".join(f"`{one}`" for one in (*spelled, *param.secondary_opts))
    about, said = DEFAULT.subn("", getattr(param, "help", None) or "")
    default = "" if callable(param.default) or not param.default else f"`{param.default}`"
    if said:
        default = DEFAULT.findall(param.help)[0]
    return options, default, about


MAKERS = {
    make.__name__: make
    for make in (
        names,
        policies,
        studies,
        datasets,
        constants,
        arguments,
        statements,
        errors,
        commands,
    )
}
