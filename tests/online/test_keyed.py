"""A keyed choice of the short way is that of `choose`, to the last bit of its row."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.online import LoggedBandit, rows
from keyhole.online.log import Log

KEY = bytes(range(32))
POLICY = kh.ThompsonSampling()
CASES: dict[str, Any] = {
    "plain": kh.Learner(POLICY),
    "intercept": kh.Learner(POLICY, intercept=True),
    "units": kh.Learner(POLICY, standardize=True),
    "missing": kh.Learner(POLICY, missing="predict"),
    "shared": kh.Learner(kh.ThompsonSampling(sharing="shared")),
    "epsilon": kh.Learner(kh.EpsilonGreedy(epsilon=0.2)),
}


def begun(path: Path, learner: Any) -> LoggedBandit:
    bandit = kh.Bandit(learner, arms=["A", "B", "C"], dim=4, seed=3)
    log = Log(path)
    log.open()
    logged = LoggedBandit.writing_to(bandit, log, KEY)
    logged.begin_run("r")
    logged.write_start()
    return logged


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("own_rows", [False, True])
def test_the_row_is_that_of_choose(tmp_path: Path, case: str, own_rows: bool) -> None:
    """Two bandits see the same; one of them takes the short way whenever there is one."""
    short, usual = (begun(tmp_path / f"{k}.jsonl", CASES[case]) for k in range(2))
    rng, n_short = np.random.default_rng(8), 0
    for k in range(120):
        y = rng.standard_normal((3, 4) if own_rows else 4)
        if case == "missing" and k % 3 == 0:
            y.flat[k % y.size] = np.nan
        event = f"e-{k}"
        usual.choose(y, event=event)
        fields = short.choose_everyday(y, event)
        if fields is None:
            short.choose(y, event=event)
        else:
            n_short += 1
            short.log.append(rows.Decision, **fields)
        for bandit in (short, usual):
            bandit.learn(event, float(k % 5))
    assert n_short > 60, "units are looked at again at times, and most choices are everyday ones"
    (_, *mine), (_, *others) = (_rows(tmp_path / f"{k}.jsonl") for k in range(2))
    assert mine == others
    assert short.keyed_bytes() == usual.keyed_bytes()


def _rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a log, without their times."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "at"} for row in found]


def test_nothing_changes_if_there_is_no_short_way(tmp_path: Path) -> None:
    bandit = begun(tmp_path / "log.jsonl", CASES["plain"])
    assert bandit.choose_everyday(np.zeros(4), "e-1") is None, "no choice was made before"
    bandit.choose(np.zeros(4), event="e-1")
    before = bandit.keyed_bytes()
    assert bandit.choose_everyday(np.zeros(3), "e-2") is None
    assert bandit.choose_everyday(np.full(4, np.nan), "e-2") is None
    assert bandit.keyed_bytes() == before
