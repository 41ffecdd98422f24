"""Ids of decisions that the caller gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.errors import AlreadyLearned, InvalidValue


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "decisions.jsonl"


@pytest.mark.parametrize(
    "learner",
    [
        kh.ThompsonSampling(),
        kh.Learner(kh.ThompsonSampling(), intercept=True, standardize=True, missing="predict"),
    ],
)
def test_a_log_with_given_ids_is_replayed_to_the_bit(path: Path, learner: Any) -> None:
    bandit: Any = kh.Bandit(learner, arms=["A", "B"], dim=2, seed=3, log=path)
    rng = np.random.default_rng(1)
    for k in range(120):
        decision = bandit.choose(rng.standard_normal(2), event=f"order-{k * k}")
        assert decision.id == f"order-{k * k}"
        if k % 3:
            bandit.learn(f"order-{k * k}", rng.standard_normal())
    bandit.log.close()
    again = kh.Log(path).replay()
    assert again.to_bytes() == bandit.to_bytes()


def test_observations_of_given_ids_count_once(path: Path) -> None:
    learner = kh.Learner(kh.Greedy(), intercept=True, standardize=True, missing="predict")
    rng = np.random.default_rng(2)
    ys = rng.standard_normal((80, 2))
    given: Any = kh.Bandit(learner, arms=["A"], dim=2, seed=3, log=path)
    usual = kh.Bandit(learner, arms=["A"], dim=2, seed=3)
    for k, y in enumerate(ys):
        given.choose(y, event=f"o{k}")
        given.learn(f"o{k}", 1.0 + y[0])
        usual.learn(usual.choose(y), 1.0 + y[0])
    for a, b in zip(given.effects["A"].estimate, usual.effects["A"].estimate, strict=True):
        assert a == pytest.approx(b, rel=1e-12)
    assert (
        given._learned.observer.moments.seen.tolist()
        == usual._learned.observer.moments.seen.tolist()
    )


def test_an_id_is_given_once(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=path)
    bandit.choose([1.0], event="o-1")
    for again in ("o-1", "", "x" * 201, 5):
        with pytest.raises(InvalidValue, match="event must be"):
            bandit.choose([1.0], event=again)
    assert len(bandit.log) == 2
    bandit.learn("o-1", 1.0)
    with pytest.raises(AlreadyLearned):
        bandit.learn("o-1", 1.0)
