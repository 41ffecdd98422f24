"""Where data are read from, and what Ctrl-C does."""

import os
import signal
from pathlib import Path

import pytest

# A shell starts background jobs with SIGINT ignored, and Python then leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
