"""Where compiled kernels are kept, and where data are read from.

Numba notices a changed kernel, but not a change in one that it calls from another file.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "keyhole" / "kernels").glob("*.py"))
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba" / DIGEST))

import pytest  # noqa: E402 - the cache's place must be known before anything is imported


@pytest.fixture
def small_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small files of every public data set, which the catalogue then expects."""
    from tests.tables import write_small_tables

    write_small_tables(tmp_path / "small", monkeypatch)
    return tmp_path / "small"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the public data files, for the tests marked `data`: `make test-data`."""
    named = os.environ.get("KEYHOLE_DATA")
    assert named, "name the folder of the public data files: make test-data KEYHOLE_DATA=folder"
    return Path(named)
