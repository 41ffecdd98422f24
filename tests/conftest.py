"""Numba notices a changed kernel, but not a change in one that it calls from another file."""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "keyhole" / "kernels").glob("*.py"))
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba" / DIGEST))

import pytest  # noqa: E402 - the cache's place must be known before anything is imported


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The public data files: a folder that is named, one beside the project, or downloaded."""
    beside = ROOT.parent / "shared" / "data"
    if named := os.environ.get("KEYHOLE_DATA"):
        return Path(named)
    if beside.is_dir():
        return beside
    from keyhole import datasets

    for name, source in datasets.CATALOGUE.items():
        if source.openml is not None:
            datasets.fetch(name)
    return datasets.cache_folder()
