"""Rewards that are taken out of a log again, and files that are not written over."""

from pathlib import Path
from typing import Any

import pytest

import keyhole as kh
from keyhole.errors import ForgottenEvent, InvalidValue, KeyholeWarning


@pytest.fixture
def bandit(tmp_path: Path) -> Any:
    return kh.Bandit(
        kh.ThompsonSampling(v=1.0), arms=["A", "B"], dim=1, seed=1, log=tmp_path / "log.jsonl"
    )


def test_a_forgotten_event_learns_nothing_even_again(bandit: Any) -> None:
    decision = bandit.choose([1.0])
    bandit.learn(decision.id, 5.0)
    bandit.forget(decision.id)
    rows = len(bandit.log)
    with pytest.raises(ForgottenEvent):
        bandit.learn(decision.id, 9.0, again=True)
    with pytest.raises(ForgottenEvent):
        bandit.learn_many([decision], [9.0], again=True)
    assert sum(bandit.counts.values()) == 0
    assert len(bandit.log) == rows


def test_a_log_is_not_replaced_by_its_own_parquet(bandit: Any, tmp_path: Path) -> None:
    bandit.choose([1.0])
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "log.jsonl")
    for name in ("log.jsonl", "link.jsonl"):
        with pytest.raises(InvalidValue, match="another file than the log"):
            bandit.log.to_parquet(tmp_path / name)
    bandit.choose([1.0])
    assert len(list(kh.Log(tmp_path / "log.jsonl"))) == 3


@pytest.mark.parametrize("how", ["amend", "forget"])
def test_a_slip_that_leaves_its_rounding_is_told(bandit: Any, how: str) -> None:
    for _ in range(5):
        bandit.learn(bandit.choose([1.0]).instead("A"), 1.0)
    decision = bandit.choose([1.0]).instead("A")
    bandit.learn(decision, 1.76e9)
    with pytest.warns(KeyholeWarning, match="rounding stays in the sums"):
        bandit.amend(decision.id, 0.2) if how == "amend" else bandit.forget(decision.id)
    decision = bandit.choose([1.0]).instead("A")
    bandit.learn(decision, 30.0)
    bandit.forget(decision.id)  # without a warning, which would be an error here
