"""What the README and the documentation show is what happens: every code block, every command."""

import io
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from keyhole.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
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
    scope: dict[str, object] = {"__name__": "page"}
    shown = blocks(page)
    assert {block.language for block in shown} <= {"python", "text", "console", "toml", "bibtex"}
    for block, after in zip(shown, [*shown, Block("", "")][1:], strict=True):
        if block.language == "python":
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(block.text, str(page), "exec"), scope)
            expected = after.text if after.language == "text" else ""
            assert printed.getvalue() == expected
        elif block.language == "console":
            for command in re.findall(r"^\$ keyhole (.*)$", block.text, re.MULTILINE):
                result = CliRunner().invoke(app, shlex.split(command))
                assert result.exit_code == 0, result.output


def test_the_pages_have_something_to_run() -> None:
    running = [page for page in PAGES if any(b.language == "python" for b in blocks(page))]
    assert len(running) >= 10
    assert sum(block.language == "python" for block in blocks(ROOT / "README.md")) >= 2


def test_the_readme_is_short() -> None:
    assert 80 <= len(README.splitlines()) <= 150


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


def test_the_documentation_builds(tmp_path: Path) -> None:
    """Strictly: every link and every name of the reference is there."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    reference = (tmp_path / "reference" / "index.html").read_text()
    for name in (
        "keyhole.Bandit.observe",
        "keyhole.theory.bounds.theorem_2",
        "keyhole.lab.plots.regret",
    ):
        assert f'id="{name}"' in reference
