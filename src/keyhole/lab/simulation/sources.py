"""The identity of the code that makes results: Keyhole's version and a digest of its sources.

Kept results are used again only by the code that made them. The version alone does not tell two
checkouts apart.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
# The command line starts simulations and shows what comes of them.
WITHOUT = "cli"


def digest(package: Path) -> str:
    """Return a digest of the sources in a package's folder that can change a result.

    They are all files of Python and Cython but those of the command line. A wheel has the same
    files as the checkout that it was built from, and so the same digest.
    """
    found = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    found |= {path.relative_to(package).as_posix(): path for path in package.rglob("*.pxd")}
    hashed = hashlib.sha256()
    for name, path in sorted(found.items()):
        if not name.startswith(f"{WITHOUT}/"):
            text = path.read_bytes().replace(b"\r\n", b"\n")  # as a checkout on Windows may have it
            hashed.update(f"{name}\0{len(text)}\0".encode() + text)
    return hashed.hexdigest()


# Computed on import: what is loaded by then is what simulates, whatever is edited afterwards.
SOURCES = f"{version('keyhole')}-{digest(PACKAGE)[:12]}"
