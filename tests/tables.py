"""Small tables of the catalogue's form: the columns and classes of the files, other numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from keyhole.lab.datasets import CATALOGUE, read_csv

COLUMNS = {
    "eye_movements": ["lineNo", *(f"x{i}" for i in range(1, 27)), "label"],
    "eeg-eye-state": [*(f"V{i}" for i in range(1, 15)), "Class"],
    "cardiotocography": [
        *("LB", "AC", "FM", "UC", "DL", "DS", "DP", "ASTV", "MSTV", "ALTV", "MLTV", "Width"),
        *("Min", "Max", "Nmax", "Nzeros", "Mode", "Mean", "Median", "Variance", "Tendency", "NSP"),
    ],
}


def small_table(name: str, rows: int = 60) -> pd.DataFrame:
    """A table with the columns and the classes of a data set, and features that tell them apart."""
    rng = np.random.default_rng(rows)
    classes = list(CATALOGUE[name].counts)
    places = np.arange(rows) % len(classes)
    *features, label = COLUMNS[name]
    values = (rng.standard_normal((rows, len(features))) + places[:, None]).round(4)
    return pd.DataFrame(values, columns=features).assign(**{label: np.array(classes)[places]})


def write_small_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a small file of every public data set, and let the catalogue expect these."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in COLUMNS:
        source = CATALOGUE[name]
        small_table(name).to_csv(folder / source.file, index=False)
        data = read_csv(folder / source.file, label=source.label, source=source)
        expected = replace(source, counts=data.counts, sha256=data.sha256)
        monkeypatch.setitem(CATALOGUE, name, expected)
