"""Versions of this repository, each installed into an environment of its own under `.before`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.peers.environments import environment, pip_install
from benchmarks.peers.process import ROOT

HOME = ROOT / ".before"


def git(*arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Return the output of git in this repository."""
    command, variables = ["git", *arguments], {**os.environ, **(env or {})}
    return subprocess.check_output(command, cwd=ROOT, env=variables, text=True).strip()


def working_tree() -> str:
    """Name the tree of all files as they are now, committed or not, but those git ignores."""
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}  # the real one stays as it is
        git("read-tree", "HEAD", env=index)
        git("add", "--all", env=index)
        return git("write-tree", env=index)


def installed(name: str, tree: str) -> Path:
    """Install a tree with what simulations need, unless that was done, and return its Python.

    Parameters
    ----------
    name : str
        The folder below `.before`. A later tree of the same name takes the place of the earlier,
        in the same environment.
    tree : str
        The tree or commit.

    """
    home = HOME / name
    python, done, source = environment(home), home / "installed", home / "source"
    if not done.exists() or done.read_text() != tree:
        done.unlink(missing_ok=True)
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        archive = home / "source.tar"
        git("archive", f"--output={archive}", tree)
        shutil.unpack_archive(archive, source, filter="data")
        archive.unlink()
        pip_install(python, f"{source}[lab]")
        done.write_text(tree)
    return python
