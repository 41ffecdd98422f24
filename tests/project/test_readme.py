"""What the README and the documentation show is what happens: every code block, every command."""

import io
import json
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import typer
from benchmarks.peers import page as benchmarks
from matplotlib.figure import Figure
from typer.testing import CliRunner

import keyhole as kh
from keyhole.cli import app
from tests.service.http.consoles import Consoles

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The pictures that are drawn from the variables of their pages.
FIGURES = runpy.run_path(str(ROOT / "docs" / "figures.py"))
PICTURES: dict[str, Any] = FIGURES["PICTURES"]
TUTORIALS = [name for name in PICTURES if name.startswith("tutorials/")]


class Block(NamedTuple):
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(page.read_text())]


def relative(page: Path) -> str:
    docs = ROOT / "docs"
    return str(page.relative_to(docs if page.is_relative_to(docs) else ROOT))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_code_block_runs_and_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page's blocks run one after another, each followed by what it prints, if anything.

    There is no package index, so that studies of its tables run on their stand-ins.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    scope: dict[str, Any] = {"__name__": "page"}
    shown = blocks(page)
    assert {block.language for block in shown} <= {"python", "text", "console", "toml", "bibtex"}
    with Consoles(tmp_path) as consoles:
        for block, after in zip(shown, [*shown, Block("", "")][1:], strict=True):
            if block.language == "python":
                printed = io.StringIO()
                with redirect_stdout(printed):
                    exec(compile(consoles.here(block.text), str(page), "exec"), scope)
                expected = after.text if after.language == "text" else ""
                assert printed.getvalue() == expected
            elif block.language == "console" and "$ curl" in block.text:
                consoles.run(block.text)
            elif block.language == "console":
                for command in re.findall(r"^\$ keyhole (.*)$", block.text, re.MULTILINE):
                    result = CliRunner().invoke(app, shlex.split(command))
                    assert result.exit_code == 0, result.output
    for draw in PICTURES.get(relative(page), ()):
        assert isinstance(draw(scope), Figure)


def test_the_pages_have_something_to_run() -> None:
    running = [page for page in PAGES if any(b.language == "python" for b in blocks(page))]
    assert len(running) >= 10
    assert sum(block.language == "python" for block in blocks(ROOT / "README.md")) >= 2


def test_the_readme_is_short() -> None:
    assert 80 <= len(README.splitlines()) <= 175


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES[1:]:
        assert str(page.relative_to(ROOT / "docs")) in listed


def test_every_make_command_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in (*PAGES, ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"(?:^    |`)make ([\w-]+)", page.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_only_ci_knows_of_a_folder_beside_the_project() -> None:
    beside = "shared" + "/data"
    folders = [ROOT / name for name in ("src", "tests", "docs", "benchmarks", "examples")]
    files = [*ROOT.iterdir(), *(path for folder in folders for path in folder.rglob("*"))]
    kinds = (".py", ".md", ".j2", ".toml", ".yml", "")
    texts = [path for path in files if path.is_file() and path.suffix in kinds]
    assert len(texts) > 100
    knowing = [path for path in texts if beside in path.read_text(errors="replace")]
    assert knowing == []
    assert beside in (ROOT / ".ci" / "run").read_text()


def test_the_demo_learns() -> None:
    """It ends above random treatment, whose mean outcome is zero but for its standard error."""
    command = [sys.executable, str(ROOT / "examples" / "online.py")]
    shown = subprocess.check_output(command, text=True)
    chosen, random = (float(x) for x in re.findall(r"mean outcome .*: (-?[\d.]+)", shown))
    assert chosen > random + 0.5
    assert shown.count("\n") > 10


def test_the_readme_has_the_measured_rates() -> None:
    """The default of `Bandit`, which keeps probabilities, comes first."""
    found = json.loads((ROOT / "docs" / "benchmarks.json").read_text())
    exact = [
        name
        for name in found["exact"]
        if benchmarks.judge(found, name).get("exact") and not name.startswith("keyhole")
    ]
    rows = re.findall(r"^\| (\d+) x (\d+) \| (.*) \|$", README, re.MULTILINE)
    assert len(rows) == 5
    for arms, dim, rest in rows:
        cell = f"{arms}x{dim}"
        ours = ("keyhole-logged", "keyhole-read", "keyhole", "vowpalwabbit-squarecb")
        default, read, without, vowpal = (found["speed"][name][cell]["rate"] for name in ours)
        peer, simulated = benchmarks.fastest(found, exact, cell)[1], found["simulation"][cell]["2"]
        measured = (
            default,
            default / peer,
            default / vowpal,
            read,
            without,
            simulated,
            simulated / peer,
        )
        assert rest.split(" | ") == [f"{one:,.0f}" for one in measured]


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_of_the_page_as_it_is(name: str) -> None:
    """Otherwise `python docs/figures.py` makes them again."""
    text = (ROOT / "docs" / name).read_text()
    shown = re.findall(r"!\[[^\]]+\]\((?:\.\./)?figures/([\w-]+)\.svg\)", text)
    assert shown == [draw.__name__.replace("_", "-") for draw in PICTURES[name]]
    for picture in shown:
        file = ROOT / "docs" / "figures" / f"{picture}.svg"
        assert FIGURES["digest"](text) in file.read_text(), f"python docs/figures.py {name}"
        assert file.stat().st_size < 65_000


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_has_a_picture_for_each_step(name: str) -> None:
    steps = re.split(r"^## ", (ROOT / "docs" / name).read_text(), flags=re.MULTILINE)[1:-1]
    assert 5 <= len(steps) <= 7
    for number, step in enumerate(steps, start=1):
        assert step.startswith(f"{number}. ")
        assert "```python" in step
        assert "![" in step


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built strictly: every link and every name of the reference is there."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return folder


def public_names() -> Iterator[str]:
    """Every public name, as the reference has it."""
    for name in kh.__all__:
        if not isinstance(getattr(kh, name), ModuleType):
            yield f"keyhole.{name}"
    modules = [thing for name in kh.__all__ if isinstance(thing := getattr(kh, name), ModuleType)]
    others = [import_module(name) for name in ("keyhole.lab.studies", "keyhole.theory.bounds")]
    for module in (*modules, *others):
        for name in module.__all__:
            if not isinstance(getattr(module, name), ModuleType):
                yield f"{module.__name__}.{name}"


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    headings = set(re.findall(r'<h\d id="(keyhole[\w.]*)"', reference))
    names = list(public_names())
    assert len(names) > 90
    assert [name for name in names if name not in headings] == []
    assert "keyhole.Bandit.observe" in headings
    assert "keyhole.Bandit.settle" not in headings
    assert "{{" not in reference


def test_every_command_and_option_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "cli.html").read_text()

    def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        yield from [] if hasattr(command, "commands") else [(name, command)]
        for one, inner in getattr(command, "commands", {}).items():
            yield from commands(inner, f"{name} {one}")

    found = dict(commands(typer.main.get_command(app), "keyhole"))
    assert len(found) >= 5
    for name, command in found.items():
        assert f">{name}<" in page
        for param in command.params:
            assert all(f"<code>{option}</code>" in page for option in param.opts)


def test_a_page_fetches_nothing(site: Path) -> None:
    """Links may lead elsewhere; what a page loads by itself is in the folder."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    loading = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:https?:)?//')
    assert [page.name for page in pages if loading.search(page.read_text())] == []
    assert "//fonts." not in "".join(sheet.read_text() for sheet in site.rglob("*.css"))
