"""`keyhole fit`: from files to the file of a bandit."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import keyhole as kh
from tests.cli.test_cli import fails, keyhole, terminal
from tests.tabular import ARMS, bits, history, written

COLUMNS = ["--observation", "y0", "--observation", "y1", "--observation", "y2", "--observation"]
FLAGS = [*(word for arm in ARMS for word in ("--arm", arm)), *COLUMNS, "y3"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def test_a_table_becomes_a_bandit(tmp_path: Path) -> None:
    given = history()
    written(given, tmp_path)
    result = keyhole("fit", "part-*.parquet", "--policy", "linucb:alpha=2", *FLAGS)
    assert result.exit_code == 0, result.output
    assert "LinUCB(alpha=2.0), 3 arms, dim=4, 600 rewards learned" in result.stdout
    wanted = kh.fit(tmp_path, kh.LinUCB(alpha=2), arms=ARMS, columns=given.columns)
    assert f"{wanted.counts['A']}" in result.stdout
    found = kh.Bandit.load("bandit.npz")
    assert found.policy == kh.LinUCB(alpha=2)
    assert bits(found) == bits(wanted)


def test_a_log_needs_no_arms(tmp_path: Path) -> None:
    bandit = kh.Bandit(kh.ThompsonSampling(), arms=3, dim=2, seed=1, log="log.jsonl")
    rng = np.random.default_rng(1)
    for _ in range(20):
        bandit.learn(bandit.choose(rng.standard_normal(2)), rng.standard_normal())
    kh.Log("log.jsonl").to_parquet("log.parquet")
    result = keyhole("fit", "log.parquet", "--intercept", "--out", "other.npz", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    counts = {str(name): n for name, n in bandit.counts.items()}
    assert told == {"dim": 2, "counts": counts, "out": "other.npz"}
    assert kh.Bandit.load("other.npz").learner.intercept
    again = keyhole("fit", "log.parquet", "--arm", "2", "--arm", "1", "--arm", "0", "--json")
    assert list(json.loads(again.stdout)["counts"]) == ["2", "1", "0"]
    assert not (tmp_path / "nowhere").exists()


def test_missing_numbers_and_lists(tmp_path: Path) -> None:
    given = history(30)
    given.y[3, 1] = np.nan
    pq.write_table(given.listed.rename_columns(["who", "won", "seen"]), "rows.parquet")
    words = ["fit", "rows.parquet", *FLAGS[:6], "--arm-column", "who", "--reward-column", "won"]
    words += ["--observation", "seen", "--json"]
    assert "'seen[1]' in row 3 of rows.parquet" in fails(*words)
    assert not (tmp_path / "bandit.npz").exists()
    counts = json.loads(keyhole(*words, "--fill", "drop").stdout)["counts"]
    assert sum(counts.values()) == 29
    assert sum(json.loads(keyhole(*words, "--fill", "zero").stdout)["counts"].values()) == 30


def test_mistakes_are_told_without_a_traceback(tmp_path: Path) -> None:
    written(history(), tmp_path)
    assert "cannot read none.parquet" in fails("fit", "none.parquet")
    assert "arms must be given" in fails("fit", "part-0.parquet", *FLAGS[6:])
    assert "policy must be one of" in fails("fit", ".", "--policy", "thomson", *FLAGS)
    assert "settings of greedy must be among" in fails("fit", ".", "--policy", "greedy:v=1", *FLAGS)
    assert "missing must be one of" in fails("fit", ".", "--fill", "ero", *FLAGS)
    assert "only sums can be fitted" in fails("fit", ".", "--fill", "predict", *FLAGS)
    assert "create the folder" in fails("fit", ".", *FLAGS, "--out", "no/b.npz")
    assert "no Dask scheduler at" in fails("fit", ".", *FLAGS, "--scheduler", "nowhere")


def test_progress_in_a_terminal(tmp_path: Path) -> None:
    written(history(), tmp_path)
    shown, code = terminal(["fit", ".", *FLAGS], lambda _: False)
    assert code == 0, shown
    assert "adding up rows" in shown
    assert "100%" in shown
    assert (tmp_path / "bandit.npz").exists()


def test_ctrl_c_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def pressing() -> Iterator[Any]:
        yield lambda _done, _total: signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("keyhole.cli.fit._bar", pressing)
    written(history(), tmp_path)
    assert "interrupted" in fails("fit", ".", *FLAGS, code=130)
    assert not (tmp_path / "bandit.npz").exists()
