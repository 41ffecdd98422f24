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
    """Return an option's row."""
    spelled = [param.name] if param.param_type_name == "argument" else param.opts
    default = (
        "" if param.default in (None, (), [], False) or callable(param.default) else param.default
    )
    shown = ", ".join(f"`{one}`" for one in (*spelled, *param.secondary_opts))
    return shown, f"`{default}`" if default != "" else "", getattr(param, "help", None) or ""


MAKERS = {
    make.__name__: make
    for make in (names, policies, studies, datasets, statements, errors, commands)
}
