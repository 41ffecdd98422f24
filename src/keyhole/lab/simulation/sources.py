"""The identity of the code that makes results: Keyhole's version and a digest of its sources.

Kept results are used again only by the code that made them. The version alone does not tell two
checkouts apart.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
# No study imports these layers.
WITHOUT = ("cli", "service")


def digest(package: Path) -> str:
    """Return a digest of the sources in a package's folder that can change a result.

    They are all files of Python and Cython but those of layers that no study imports. A wheel
    has the same files as the checkout that it was built from, and so the same digest.
    """
    hashed = hashlib.sha256()
    for name, path in sorted(_sources(os.fspath(package))):
        with open(path, "rb") as file:
            text = file.read().replace(b"\r\n", b"\n")  # as a checkout on Windows may have it
        hashed.update(f"{name}\0{len(text)}\0".encode() + text)
    return hashed.hexdigest()


def _sources(package: str) -> Iterator[tuple[str, str]]:
    """Yield name and path of each source; with `Path.rglob` a first simulation waits 2 ms more."""
    for folder, folders, names in os.walk(package):
        if folder == package:
            folders[:] = [each for each in folders if each not in WITHOUT]
        for name in names:
            if name.endswith((".py", ".pxd")):
                path = os.path.join(folder, name)
                yield path[len(package) + 1 :].replace(os.sep, "/"), path


# Computed on import: what is loaded by then is what simulates, whatever is edited afterwards.
SOURCES = f"{version('keyhole')}-{digest(PACKAGE)[:12]}"
