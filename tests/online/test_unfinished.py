"""Ctrl-C between any two lines: a call is done as a whole or not at all; a retry counts once."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.bandits import bandit_of

OPTIONS: list[dict[str, Any]] = [
    {},
    {"intercept": True},
    {"intercept": True, "standardize": True, "missing": "predict", "clip": None},
]


class Interrupter:
    """Raise KeyboardInterrupt at the n-th line that runs in the library, as a signal would."""

    def __init__(self, n: int) -> None:
        self.left, self.hit = n, False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if "keyhole" not in frame.f_code.co_filename:
            return None
        if event == "line" and not self.hit:
            self.left -= 1
            if self.left < 0:
                self.hit = True
                raise KeyboardInterrupt
        return self


def interrupted(call: Callable[[], None], line: int) -> bool:
    """Run a call and interrupt it at its n-th line; whether it had so many."""
    interrupter = Interrupter(line)
    before = sys.gettrace()
    sys.settrace(interrupter)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return interrupter.hit


def made(options: dict[str, Any], rounds: int = 40) -> kh.Bandit:
    bandit = bandit_of(kh.ThompsonSampling(v=1.0), arms=["A", "B"], dim=2, seed=1, **options)
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        bandit.learn(bandit.choose(rng.standard_normal(2)), float(rng.standard_normal()))
    return bandit


def rewards(bandit: kh.Bandit) -> int:
    return sum(bandit.counts.values()) + sum(bandit.waiting.values())


def is_whole(bandit: kh.Bandit) -> bool:
    posterior = bandit.posterior
    return np.allclose(posterior.covariance, np.linalg.inv(posterior.precision))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("rounds", [3, 40])
@pytest.mark.parametrize("carried", [False, True])
def test_learning_one_reward(options: dict[str, Any], rounds: int, carried: bool) -> None:
    """Of a decision as it was made, which is one compiled call, or carried through JSON."""
    line = 0
    while True:
        bandit = made(options, rounds)
        decision = bandit.choose([1.0, 2.0])
        again = kh.Decision.from_dict(decision.to_dict())
        if carried:
            decision, again = again, decision
        if not interrupted(lambda b=bandit, d=decision: b.learn(d, 1.0), line):  # type: ignore[misc]
            break
        with contextlib.suppress(kh.AlreadyLearned):
            bandit.learn(again, 1.0)
        assert rewards(bandit) == rounds + 1, line
        assert is_whole(bandit)
        line += 1
    # Once units are fixed, a reward is one compiled call with options, too.
    assert line > (15 if carried or (options and rounds < 32) else 2)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("rounds", [3, 40])
def test_learning_many(options: dict[str, Any], rounds: int) -> None:
    line = 0
    while True:
        bandit = made(options, rounds)
        decisions = bandit.choose_many(np.random.default_rng(2).standard_normal((12, 2)))
        call = lambda b=bandit, d=decisions: b.learn_many(d, np.ones(12))  # noqa: E731
        if not interrupted(call, line):
            break
        assert rewards(bandit) in (rounds, rounds + 12), line
        assert is_whole(bandit)
        with contextlib.suppress(kh.AlreadyLearned):
            bandit.learn_many(list(decisions), np.ones(12))
        assert rewards(bandit) == rounds + 12, line
        line += 3
    assert line > 15


@pytest.mark.parametrize("options", OPTIONS)
def test_merging(options: dict[str, Any], tmp_path: Path) -> None:
    base = made(options)
    base.save(tmp_path / "base.npz")
    other = kh.Bandit.load(tmp_path / "base.npz", seed=1)
    for _ in range(5):
        other.learn(other.choose([1.0, 0.5]), 1.0)
    line = 0
    while True:
        bandit = kh.Bandit.load(tmp_path / "base.npz", seed=2)
        if not interrupted(lambda b=bandit: b.merge(other, base=base), line):  # type: ignore[misc]
            break
        with contextlib.suppress(kh.InvalidValue):  # it was merged
            bandit.merge(other, base=base)
        assert rewards(bandit) == 45, line
        line += 7
    assert line > 50


def seen(bandit: kh.Bandit) -> float:
    return float(bandit._observer.moments.seen.max())


def test_a_decision_of_elsewhere_is_seen_once() -> None:
    """Interrupted while it is learned, and learned again: one observation and one reward."""
    line = 0
    while True:
        bandit = made(OPTIONS[2], 40)
        decision = kh.Decision(arm="A", observation=[1.0, 2.0], id="elsewhere")
        if not interrupted(lambda b=bandit, d=decision: b.learn(d, 1.0), line):  # type: ignore[misc]
            break
        with contextlib.suppress(kh.AlreadyLearned):
            bandit.learn(kh.Decision.from_dict(decision.to_dict()), 1.0)
        assert rewards(bandit) == 41, line
        assert seen(bandit) == 41, line
        assert bandit._lineage.additions == 2 * 41, line
        assert is_whole(bandit)
        line += 1
    assert line > 30


@pytest.mark.parametrize("call", ["choose", "observe"])
def test_a_look_that_is_due_is_not_lost(call: str) -> None:
    """Units that were far off are replaced when the 128th row is seen, interrupted or not."""
    line = 0
    while True:
        bandit = made(OPTIONS[2], 0)
        rng = np.random.default_rng(3)
        rows = rng.standard_normal((127, 2)) * np.where(np.arange(127) < 40, 1.0, 20.0)[:, None]
        for row in rows:
            bandit.learn(bandit.choose(row), float(rng.standard_normal()))
        units, n = bandit._observer.units, seen(bandit)
        last = np.array([1.0, 2.0])
        act = bandit.choose if call == "choose" else bandit.observe
        if not interrupted(lambda a=act, y=last: a(y), line):  # type: ignore[misc]
            break
        assert sum(bandit.counts.values()) == 127  # which finishes what is left
        changed = bandit._observer.units is not units
        assert changed == (seen(bandit) > n), line
        assert bandit._lineage.additions == 127 + seen(bandit), line
        line += 1
    assert bandit._observer.units is not units
    assert line > 20
