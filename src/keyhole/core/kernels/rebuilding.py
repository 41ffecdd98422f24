"""Recompilation of changed kernels at import, in a checkout.

Changes are detected by a digest of the sources, written beside the compiled files; file times
mislead after a checkout, a copy or an unpacked archive. An installed package is never rebuilt.

`setup.py` runs this file by itself, so it imports nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

KERNELS = Path(__file__).parent
COMPILED = KERNELS / "compiled"
# Suffix of extension modules for this interpreter: a checkout may serve several interpreters.
SUFFIX = EXTENSION_SUFFIXES[0]
STAMP = COMPILED / f"sources{SUFFIX}.sha256"


def sources() -> list[Path]:
    """Return the kernels that Cython compiles: those that import it."""
    return [path for path in sorted(KERNELS.glob("*.py")) if b"\nimport cython\n" in _bytes(path)]


def digest(kernels: Iterable[Path], setup: Path) -> str:
    """Return a digest of kernels, of the files that they may include and of the build script.

    Parameters
    ----------
    kernels : iterable of Path
        The kernels.
    setup : Path
        The build script.

    Returns
    -------
    str
        The SHA-256 digest in hexadecimal.
    """
    files = [*kernels, *sorted(KERNELS.glob("*.pxd")), setup]
    return hashlib.sha256(b"\0".join(p.name.encode() + _bytes(p) for p in files)).hexdigest()


def rebuild_changed() -> None:
    """Compile the kernels if this is a checkout and their sources changed since the last time.

    Raises
    ------
    ImportError
        If the compilation fails: files compiled from other sources are never used.
    """
    root = KERNELS.parents[3]
    if not _is_checkout(root):
        return
    if STAMP.exists() and STAMP.read_text() == digest(sources(), root / "setup.py"):
        return
    import subprocess  # here, since the first decision would wait 2 ms for it

    sys.stderr.write("keyhole: compiling kernels that changed\n")
    # `setup.py` locks out other compilations, and does nothing if one finished meanwhile.
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=root,
        env={**os.environ, "KEYHOLE_BUILD": "python"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ImportError(
            f"the kernels in {KERNELS} changed, and compiling them failed:\n{done.stdout}\n"
            f"Run `pip install --editable '.[dev]'` in {root}, or set KEYHOLE_BUILD=python to use "
            "the kernels uncompiled."
        )


def _is_checkout(root: Path) -> bool:
    if root / "src" / "keyhole" / "core" / "kernels" != KERNELS:
        return False  # installed into a folder of a checkout
    try:
        return '\nname = "keyhole"\n' in (root / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return False


def _bytes(path: Path) -> bytes:
    return path.read_bytes().replace(b"\r\n", b"\n")  # as a checkout on Windows may have it
