"""Console blocks of pages with `keyhole serve &`: the server runs, and each curl line is sent.

Of the answers only what is drawn or made anew may differ: the chosen arm, its score, times, keys.
"""

import json
import re
import shlex
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from typer.testing import CliRunner

from keyhole.cli import app
from tests.service.http.serving import Process

ADDRESS = "localhost:8000"
# Fields that a run of its own has.
DRAWN = {"action", "score", "at", "key", "request_id", "due", "ranking", "rewardActionId"}


class Consoles:
    """The blocks of a page, whose server runs until its end.

    Parameters
    ----------
    folder : Path
        The folder in which commands are run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.address = folder, ADDRESS
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    def here(self, text: str) -> str:
        """Return a text with the address of the server that runs."""
        return text.replace(ADDRESS, self.address)

    def run(self, text: str) -> None:
        """Run the commands of a block, and compare what they print with what is shown."""
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            lines = part.splitlines(keepends=True)
            # A quoted text may go over several lines.
            n = next(k for k in range(1, len(lines) + 1) if "".join(lines[:k]).count("'") % 2 == 0)
            self._one("".join(lines[:n]), "".join(lines[n:]))

    def _one(self, command: str, shown: str) -> None:
        words = shlex.split(self.here(command))
        if words[:2] == ["keyhole", "serve"]:
            assert words.pop() == "&"
            folder = self.folder / (words[words.index("--data") + 1] if "--data" in words else "d")
            served = self._open.enter_context(Process(folder))
            self.address = f"localhost:{urlsplit(served.url).port}"
            assert shown == "keyhole serves at http://127.0.0.1:8000\n"
        elif words[0] == "curl":
            printed = subprocess.check_output(["curl", "-s", *words[1:]], text=True)
            assert masked(printed) == masked(shown), (command, printed)
        else:
            assert words[0] == "keyhole"
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, result.output


def masked(text: str) -> list[Any]:
    """Return lines of JSON without what each run has of its own, and headers but for the date."""
    found: list[Any] = []
    for line in text.splitlines():
        if line.startswith(("{", "[")):
            found.append(_masked(json.loads(line)))
        elif line and not line.lower().startswith(("date:", "x-request-id:")):
            found.append(line)
    return found


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: None if name in DRAWN else _masked(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_masked(one) for one in value]
    return round(value, 9) if isinstance(value, float) else value
