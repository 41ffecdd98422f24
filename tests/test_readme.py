"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
OUTPUT = re.findall(r"```text\n(.*?)```", README, re.DOTALL)


def test_every_code_block_runs_and_prints_what_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    assert len(CODE) >= 2
    for block in CODE:
        exec(block, scope)
    assert capsys.readouterr().out == "".join(OUTPUT)


def test_every_make_command_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for text in (README, (ROOT / "CONTRIBUTING.md").read_text()):
        for target in re.findall(r"(?:^    |`)make (\w+)", text, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_demo_learns() -> None:
    """It ends above random treatment, whose mean outcome is zero but for its standard error."""
    command = [sys.executable, str(ROOT / "examples" / "online.py")]
    shown = subprocess.check_output(command, text=True)
    chosen, random = (float(x) for x in re.findall(r"mean outcome .*: (-?[\d.]+)", shown))
    assert chosen > random + 0.5
    assert shown.count("\n") > 10
