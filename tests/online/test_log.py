"""The log of a bandit: replayed to the bit, each event once, whole after a crash."""

from __future__ import annotations

import contextlib
import copy
import json
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.errors import FileMissing, FileUnusable

LEARNERS = {
    "learned v": kh.ThompsonSampling(),
    "fixed v": kh.ThompsonSampling(v=0.7, prior_precision=3.0),
    "shared": kh.ThompsonSampling(v=1.0, sharing="shared"),
    "joint": kh.ThompsonSampling(v=1.0, sharing="shared", draw="joint"),
    "hybrid": kh.ThompsonSampling(v=1.0, sharing="hybrid"),
    "greedy": kh.Greedy(),
    "linucb": kh.LinUCB(alpha=0.5),
    "oful": kh.OFUL(r=1.0),
    "epsilon": kh.EpsilonGreedy(epsilon=0.2),
    "units": kh.Learner(
        kh.ThompsonSampling(), intercept=True, standardize=True, missing="predict", clip=None
    ),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a log that does not exist yet."""
    return tmp_path / "decisions.jsonl"


def lived(learner: Any, path: Path, *, own_rows: bool, rounds: int = 120) -> Any:
    """Return a bandit after a life of all that can happen to one."""
    rng = np.random.default_rng(5)
    bandit: Any = kh.Bandit(learner, arms=["A", "B", "C"], dim=3, seed=7, log=path)
    joint = getattr(learner, "draw", "") == "joint"
    open_decisions = []
    for t in range(rounds):
        size = (len(bandit.arms), 3) if own_rows else (3,)
        y = rng.standard_normal(size)
        if getattr(learner, "missing", None):
            y[rng.random(size) < 0.2] = np.nan
        if t % 5:
            open_decisions.append(bandit.choose(y))
        else:
            open_decisions.append(bandit.choose(y[:2] if own_rows else y, among=["C", "A"]))
        if t % 3 == 0:
            decision = open_decisions.pop(rng.integers(len(open_decisions)))
            bandit.learn(decision if t % 2 else decision.id, rng.standard_normal())
        if t == 40:
            bandit.add_arms(["D"])
        if t == 90:
            bandit.remove_arms(["D"])
            open_decisions = [one for one in open_decisions if one.arm != "D"]
        if t % 30 == 29 and not joint:
            batch = bandit.choose_many(rng.standard_normal((6, *size)))
            kept = [one for one in batch if one.arm != "D"][:3]
            bandit.learn_many(kept, rng.standard_normal(len(kept)))
    bandit.observe(rng.standard_normal((4, 3)))
    other = kh.Bandit(learner, arms=bandit.arms, dim=3, seed=8)
    for _ in range(40):
        other.learn(other.choose(rng.standard_normal(3)), rng.standard_normal())
    bandit.merge(other)
    elsewhere = other.choose([1.0, 2.0, 3.0])
    bandit.learn(kh.Decision.from_dict(json.loads(json.dumps(elsewhere.to_dict()))), 0.5)
    bandit.learn(bandit.choose([1.0, 0.0, 0.0]).instead("B"), -0.5)
    return bandit


@pytest.mark.parametrize("own_rows", [False, True])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_log_is_replayed_to_the_bit(name: str, own_rows: bool, path: Path) -> None:
    bandit = lived(LEARNERS[name], path, own_rows=own_rows)
    again = kh.Log(path).replay()
    assert again.log is None
    assert again.to_bytes() == bandit.without_log().to_bytes()
    y = np.array([0.3, -0.2, 0.9])
    assert [again.choose(y).score for _ in range(5)] == [bandit.choose(y).score for _ in range(5)]


@pytest.mark.parametrize("name", LEARNERS)
def test_probabilities_follow_from_mean_and_width(name: str, path: Path) -> None:
    learner = LEARNERS[name]
    bandit = lived(learner, path, own_rows=True)
    checked = 0
    for row in bandit.log:
        if type(row).__name__ != "Decision" or getattr(learner, "draw", "") == "joint":
            continue
        mean, width = np.array(row.mean), np.array(row.width)
        location = mean + width * np.array(row.optimism)
        scale = width * np.array(row.dispersion)
        chances = kh.choice_probabilities(location[None], scale[None], epsilon=row.epsilon)[0]
        arms = row.arms or (["A", "B", "C", "D"] if len(mean) == 4 else ["A", "B", "C"])
        assert chances[arms.index(row.arm)] == pytest.approx(row.probability, abs=1e-12)
        checked += 1
    assert checked > 100 or getattr(learner, "draw", "") == "joint"


def test_a_logged_mean_is_that_of_the_posterior(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.ThompsonSampling(v=2.0), arms=["A", "B"], dim=1, log=path, seed=1)
    bandit.learn(kh.Decision(arm="A", observation=[1.0], id="by hand"), 4.0)
    bandit.choose([3.0])
    row = next(row for row in bandit.log if type(row).__name__ == "Decision")
    # B = 1 + 1 and b = 4, so that mean = 3 * 4 / 2 and width = 3 / sqrt(2).
    assert row.mean == [pytest.approx(6.0), 0.0]
    assert row.width == [pytest.approx(3.0 / np.sqrt(2.0)), 3.0]
    assert (row.optimism, row.dispersion, row.version) == ([0.0], [2.0], 3)


def test_records_and_levels_come_back(path: Path) -> None:
    features = kh.Features(
        numbers=["age"], categories={"city": "grow"}, missing="predict", standardize=True
    )
    learner = kh.Learner(kh.ThompsonSampling(), features)
    bandit: Any = kh.Bandit(learner, arms=["A", "B"], seed=3, log=path)
    rng, late = np.random.default_rng(1), []
    for t in range(90):
        record = {"age": float(rng.normal(40, 9)), "city": f"c{t // 20}" if t % 7 else None}
        late.append(bandit.choose(record).id)
        if t % 2:
            bandit.learn(late.pop(rng.integers(len(late))), rng.normal())
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()
    bandit.log.close()
    resumed: Any = kh.Bandit.from_log(path)
    for event in late[:10]:  # of rows with fewer levels than there are now
        resumed.learn(event, 1.0)
    assert kh.Log(path).replay().counts == resumed.counts


def test_the_service_of_a_restart_goes_on(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=2, seed=3, log=path)
    twin = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=2, seed=3)
    rng = np.random.default_rng(2)
    for t in range(60):
        y = rng.standard_normal(2)
        ours, theirs = bandit.choose(y), twin.choose(y)
        assert (ours.arm, ours.score) == (theirs.arm, theirs.score)
        bandit.learn(ours, t % 3)
        twin.learn(theirs, t % 3)
        if t % 20 == 19:
            bandit.log.close()
            bandit = kh.Bandit.from_log(path)
    assert bandit.counts == twin.counts
    assert len({row.event for row in bandit.log if type(row).__name__ == "Decision"}) == 60


def test_columns_are_those_of_the_rows(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A", "B"], dim=1, seed=1, log=path)
    first = bandit.choose([1.0])
    bandit.learn(first, 2.0)
    bandit.learn(first.id, 0.5, again=True)
    bandit.add_arms(["C"])
    second = bandit.choose([[1.0], [2.0]], among=["C", "A"])
    third = bandit.choose([3.0])
    bandit.learn(third.instead("A" if third.arm == "B" else "B"), 1.0)
    found = kh.Log(path).columns()
    assert found["arms"] == ["A", "B", "C"]
    # Of the third another arm than the chosen one was taken.
    assert [found["arms"][k] for k in found["chosen"]] == [first.arm, second.arm]
    assert found["probability"].tolist() == [first.probability, second.probability]
    assert np.array_equal(found["reward"], [2.5, np.nan], equal_nan=True)
    assert np.isnan(found["mean"]).tolist() == [[False, False, True], [False, True, False]]
    assert found["width"][0].tolist()[:2] == [1.0, 1.0]
    assert found["width"][1, 2] == 1.0
    assert found["observation"].shape == (2, 3, 1)
    assert (found["sharing"], found["prior_precision"]) == ("per-arm", 1.0)


@pytest.mark.parametrize("names", [["A", "B", "C"], None])
def test_parquet_holds_the_same(names: Any, path: Path) -> None:
    if names is None:
        bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=3, dim=2, seed=1, log=path)
        bandit.learn(bandit.choose([1.0, 2.0]), 1.0)
        bandit.choose([[1.0, 2.0], [0.0, 1.0]], among=[0, 2])
    else:
        bandit = lived(LEARNERS["units"], path, own_rows=True)
    other = path.with_suffix(".parquet")
    assert bandit.log.to_parquet(other) == len(bandit.log)
    packed, plain = kh.Log(other), kh.Log(path)
    assert list(packed) == list(plain)
    assert packed.counts == plain.counts
    assert packed.replay().to_bytes() == bandit.without_log().to_bytes()
    rows: Any = iter(plain)
    event = next(row.event for row in rows if type(row).__name__ == "Decision")
    assert packed.row_of(event) == plain.row_of(event)
    with pytest.raises(kh.InvalidValue, match="writes JSON lines"):
        kh.Bandit.from_log(other)
    content = other.read_bytes()
    other.write_bytes(content[: len(content) // 2])
    with pytest.raises(kh.FileError, match="no whole Parquet file"):
        list(kh.Log(other))


def test_parquet_of_others_is_refused(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1, 2]}), path)
    with pytest.raises(kh.FileError, match="is not a log"):
        list(kh.Log(path))


# -- once ------------------------------------------------------------------------------------------


def test_events_are_told_apart(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=path)
    first, second = bandit.choose([1.0]), bandit.choose([2.0])
    bandit.learn(first.id, 1.0)
    before = path.read_bytes()
    with pytest.raises(kh.AlreadyLearned, match="learned already"):
        bandit.learn(first.id, 1.0)
    with pytest.raises(kh.AlreadyLearned):
        bandit.learn(first, 1.0)
    with pytest.raises(kh.AlreadyLearned):
        bandit.learn_many([second, kh.Decision.from_dict(first.to_dict())], [1.0, 1.0])
    with pytest.raises(kh.UnknownEvent, match="no event 'x-1'"):
        bandit.learn("x-1", 1.0)
    assert path.read_bytes() == before
    assert bandit.log.counts == {"decided": 1, "learned": 1, "forgotten": 0}
    bandit.learn(first.id, 1.0, again=True)
    assert [bandit.log.status(event) for event in (first.id, second.id, "z")] == [
        "learned",
        "decided",
        "unknown",
    ]


def test_an_event_is_refused_however_long_ago_it_was(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=path)
    first = bandit.choose([1.0]).to_dict()
    bandit.learn(kh.Decision.from_dict(first), 1.0)
    for _ in range(25_000):  # without a log, 10,000 to 20,000 ids are remembered
        bandit._once.recent.add(f"{bandit._lineage.run}-x{_}")
    with pytest.raises(kh.AlreadyLearned):
        bandit.learn(kh.Decision.from_dict(first), 1.0)
    bandit.log.close()
    with pytest.raises(kh.AlreadyLearned):
        kh.Bandit.from_log(path).learn(first["id"], 1.0)


def test_refused_calls_leave_no_row(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=path)
    decision = bandit.choose([1.0])
    before = path.read_bytes()
    wrongs: list[Any] = [
        lambda: bandit.choose([1.0, 2.0]),
        lambda: bandit.choose([np.inf]),
        lambda: bandit.choose([1.0], among=["Z"]),
        lambda: bandit.learn(decision, float("nan")),
        lambda: bandit.learn(3, 1.0),
        lambda: bandit.observe([[1.0, 2.0]]),
        lambda: bandit.add_arms(["A"]),
        lambda: bandit.remove_arms(["Z"]),
        lambda: bandit.choose_many([[1.0, 2.0]]),
    ]
    for wrong in wrongs:
        with pytest.raises(kh.InvalidValue):
            wrong()
    assert path.read_bytes() == before
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


def test_forgetting_gives_the_sums_of_a_log_without_the_event(path: Path) -> None:
    """With rows on very different scales, and in any order."""
    rng = np.random.default_rng(4)
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=3, seed=1, log=path)
    kept = kh.Posterior(n_parameters=2, dim=3)
    for t in range(200):
        y, reward = rng.standard_normal(3), float(rng.standard_normal())
        decision = bandit.choose(y)
        if t % 9 == 0:
            decision = decision.instead("A" if decision.arm == "B" else "B")
        bandit.learn(decision, reward)
        if t % 4 == 0:
            bandit.learn(decision.id, reward, again=True)
            late = decision.id
        else:
            kept.learn("AB".index(decision.arm), y, reward)
        if t % 4 == 3:
            bandit.forget(late)
    found = bandit.posterior
    for name in ("precision", "moment", "squares", "count", "covariance", "mean"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(kept, name), rtol=1e-12, atol=1e-12
        )
    with pytest.raises(kh.ForgottenEvent, match="learns no reward"):
        bandit.learn(late, 1.0)
    with pytest.raises(kh.ForgottenEvent, match="already"):
        bandit.forget(late)
    with pytest.raises(kh.UnknownEvent):
        bandit.forget("x-1")
    assert bandit.log.counts == {"decided": 0, "learned": 150, "forgotten": 50}
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()
    bandit.log.close()
    with pytest.raises(kh.ForgottenEvent):
        kh.Bandit.from_log(path).learn(late, 1.0)


def test_rewards_before_and_after_a_veto_are_forgotten_where_they_were_learned(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=1, seed=1, log=path)
    decision = bandit.choose([2.0])
    other = "A" if decision.arm == "B" else "B"
    bandit.learn(decision, 1.0)
    bandit.learn(decision.instead(other), 3.0, again=True)
    assert bandit.counts == {"A": 1, "B": 1}
    bandit.forget(decision.id)
    assert bandit.counts == {"A": 0, "B": 0}
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()
    assert len(bandit.log.columns()["chosen"]) == 0


def test_events_of_others_come_in_any_order(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=path)
    ids = ["x-5", "x-15", "x-10", "x-3", "x-010", "x-500", "x-", "-1", "plain", "x-1.2"]
    for k, name in enumerate(ids):
        bandit.learn(kh.Decision(arm="A", observation=[float(k)], id=name), float(k))
    for k, name in enumerate(ids):
        assert bandit.decision(name).observation.tolist() == [float(k)]
        with pytest.raises(kh.AlreadyLearned):
            bandit.learn(name, 1.0)
    for name in ids[::2]:
        bandit.forget(name)
    assert bandit.counts["A"] == 5
    assert bandit.log.status("x-7") == "unknown"
    assert kh.Log(path).counts == {"decided": 0, "learned": 5, "forgotten": 5}


# -- files, processes, threads ---------------------------------------------------------------------


def test_one_bandit_writes_to_a_log(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=path)
    for other in (path, kh.Log(path), bandit.log):
        with pytest.raises(kh.KeyholeError, match="another bandit"):
            kh.Bandit(kh.Greedy(), arms=2, dim=1, log=other)
    bandit.log.close()
    with pytest.raises(kh.InvalidValue, match="from_log goes on"):
        kh.Bandit(kh.Greedy(), arms=2, dim=1, log=path)
    with pytest.raises(kh.InvalidValue, match="was closed"):
        bandit.choose([1.0])
    assert kh.Bandit.from_log(path).arms == (0, 1)
    with pytest.raises(FileMissing):
        kh.Bandit.from_log(path.with_name("none.jsonl"))


def test_copies_have_no_log(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=path)
    bandit.learn(bandit.choose([1.0]), 1.0)
    before = path.read_bytes()
    for twin in (copy.copy(bandit), copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))):
        assert twin.log is None
        twin.learn(twin.choose([1.0]), 1.0)
        assert sum(twin.counts.values()) == 2
    assert path.read_bytes() == before
    logged: Any = kh.Bandit.load(bandit.to_bytes(), log=path.with_name("second.jsonl"))
    logged.learn(logged.choose([1.0]), 1.0)
    assert len(logged.log) == 3


def _choose_in_child(bandit: Any, answers: Any) -> None:
    try:
        bandit.choose([1.0])
    except kh.InvalidValue as reason:
        answers.put(str(reason))


def test_a_forked_child_writes_nothing(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=path)
    before = path.read_bytes()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_choose_in_child, args=(bandit, answers))
    child.start()
    assert "of another process" in answers.get(timeout=20)
    child.join()
    assert path.read_bytes() == before
    bandit.choose([1.0])


def test_threads_share_a_log(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=3, dim=2, seed=1, log=path)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            bandit.learn(bandit.choose(rng.standard_normal(2)).id, rng.standard_normal())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bandit.log.counts["learned"] == 400
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


@pytest.mark.parametrize("rest", [b'{"kind":"dec', b'{"kind":"decision","seq":4}', b"\0" * 5000])
def test_a_torn_line_is_cut_off(rest: bytes, path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=path)
    bandit.learn(bandit.choose([1.0]), 1.0)
    bandit.log.close()
    whole = path.read_bytes()
    path.write_bytes(whole + rest)
    assert len(kh.Log(path)) == 3  # one who reads leaves it alone
    assert path.read_bytes() == whole + rest
    with pytest.warns(kh.KeyholeWarning, match=f"last {len(rest)} bytes were removed"):
        again: Any = kh.Bandit.from_log(path)
    assert again.counts == bandit.without_log().counts
    assert path.read_bytes().startswith(whole)
    assert len(again.log) == 4


def test_a_torn_batch_is_cut_off(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=path)
    whole = path.read_bytes()
    bandit.choose_many(np.ones((5, 1)))
    bandit.log.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:10])
    with pytest.warns(kh.KeyholeWarning, match="incomplete row"):
        again: Any = kh.Bandit.from_log(path)
    assert path.read_bytes().startswith(whole)
    assert len(again.log) == 2


def test_rows_that_do_not_fit_are_named(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=path)
    bandit.learn(bandit.choose([1.0]), 1.0)
    bandit.log.close()
    lines = path.read_bytes().splitlines(keepends=True)

    def refused(changed: list[bytes], match: str) -> None:
        path.write_bytes(b"".join(changed))
        with pytest.raises(kh.FileError, match=match):
            kh.Log(path).replay()

    refused([*lines[:1], b"nonsense\n", *lines[2:]], "line 2 .* is no row of a log")
    refused([lines[0], lines[2]], "line 2 .* has the number 3")
    refused([*lines, *lines[1:]], "line 4 .* has the number 2")
    refused([lines[0].replace(b'"schema":1', b'"schema":9'), *lines[1:]], "schema 9")
    refused([lines[1]], "line 1 .* has the number 2")
    refused([], "no rows")
    other = b'"arm":"A"' if b'"arm":"B"' in lines[1] else b'"arm":"B"'
    mine = b'"arm":"B"' if other == b'"arm":"A"' else b'"arm":"A"'
    refused([lines[0], lines[1].replace(mine, other), lines[2]], "row 2 .* does not follow")
    refused([lines[0], lines[1].replace(b'"probability":', b'"probability":"'), lines[2]], "line 2")


def test_a_full_disk_stops_the_bandit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=path)
    bandit.learn(bandit.choose([1.0]), 1.0)
    before = path.read_bytes()
    real = os.write

    def part(file: int, block: bytes) -> int:
        if len(block) > 30:
            return real(file, block[:30])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", part)
    with pytest.raises(FileUnusable, match="No space left"):
        bandit.choose([1.0])
    monkeypatch.undo()
    assert path.read_bytes() == before
    calls: list[Any] = [lambda: bandit.choose([1.0]), lambda: bandit.observe([1.0])]
    for call in calls:
        with pytest.raises(FileUnusable, match="from_log goes on"):
            call()
    bandit.log.close()
    again: Any = kh.Bandit.from_log(path)
    again.choose([1.0])
    assert sum(again.counts.values()) == 1


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
def test_an_interrupt_finds_log_and_bandit_alike(n: int, path: Path) -> None:
    """Ctrl-C at the n-th line of Python that a call runs."""
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=2, dim=1, seed=1, log=path)
    bandit.learn(bandit.choose([1.0]), 1.0)
    left = n

    def trace(frame: Any, event: str, _argument: Any) -> Any:
        nonlocal left
        if event == "line" and "keyhole" in frame.f_code.co_filename.split(os.sep):
            left -= 1
            if left == 0:
                signal.raise_signal(signal.SIGINT)
        return trace

    calls: list[Any] = [
        lambda: bandit.choose([1.0]),
        lambda: bandit.learn(bandit.choose([2.0]).id, 1.0),
    ]
    for call in calls:
        left = n
        sys.settrace(trace)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                call()
        finally:
            sys.settrace(None)
        assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


def _crowd(path: str) -> None:
    if os.path.exists(path):
        bandit = kh.Bandit.from_log(path)
    else:
        bandit = kh.Bandit(kh.ThompsonSampling(), arms=3, dim=2, log=path)
    rng = np.random.default_rng()
    while True:
        bandit.learn(bandit.choose(rng.standard_normal(2)), rng.standard_normal())


@pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
def test_kills_lose_nothing_that_was_written(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    before = b""
    for k in range(5):
        child = context.Process(target=_crowd, args=(str(path),))
        child.start()
        while not path.exists() or path.stat().st_size < len(before) + 20_000 * (k + 1):
            assert child.is_alive()
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        now = path.read_bytes()
        whole = before[: before.rfind(b"\n") + 1]
        assert now.startswith(whole)
        before = now
    log = kh.Log(path)
    log.replay()
    assert log.counts["learned"] > 100


def test_a_file_of_two_schemas_is_refused_by_its_row(path: Path) -> None:
    """Whatever else the rows of the other schema have."""
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=path)
    bandit.learn(bandit.choose([1.0]), 1.0)
    bandit.log.close()
    whole = path.read_bytes()
    other = b'{"kind":"start","schema":2,"seq":4,"at":1.0,"tenant":"x"}\n'
    path.write_bytes(whole + other)
    for call in (kh.Log(path).replay, kh.Log(path).columns, lambda: kh.Bandit.from_log(path)):
        with pytest.raises(kh.FileError, match=r"line 4 .* has schema 2, .* reads schema 1 only"):
            call()
    assert path.read_bytes() == whole + other
    strange = b'{"kind":"decision","seq":4,"at":1.0,"reward":3.0}\n'
    path.write_bytes(whole + strange)
    with pytest.raises(kh.FileError, match=r"line 4 .* is no row of a log: .*field"):
        list(kh.Log(path))


def test_a_parquet_file_is_whole_or_refused(path: Path) -> None:
    bandit = lived(LEARNERS["learned v"], path, own_rows=False, rounds=30)
    other = path.with_suffix(".parquet")
    bandit.log.to_parquet(other)
    content = other.read_bytes()
    for size in (0, 3, 4, 8, len(content) // 3, len(content) - 9, len(content) - 1):
        other.write_bytes(content[:size])
        with pytest.raises(kh.FileError):
            kh.Log(other).replay()
    damaged = bytearray(content)
    damaged[100:200] = bytes(100)
    other.write_bytes(bytes(damaged))
    with pytest.raises(kh.FileError):
        kh.Log(other).replay()


def test_an_event_is_refused_in_every_later_run(path: Path) -> None:
    """By its id, as an object and through JSON; of a batch too; counted once in all."""
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=1, seed=1, log=path)
    first, batch = bandit.choose([1.0]), bandit.choose_many(np.ones((3, 1)))
    bandit.learn(first, 1.0)
    bandit.learn_many([batch[1]], [1.0])
    for _ in range(3):
        bandit.log.close()
        bandit = kh.Bandit.from_log(path)
        for one in (first, batch[1]):
            for given in (one.id, one, kh.Decision.from_dict(one.to_dict()), one.instead("A")):
                with pytest.raises(kh.AlreadyLearned):
                    bandit.learn(given, 1.0)
        later = bandit.choose([2.0])
        bandit.learn(later.id, 1.0)
        with pytest.raises(kh.AlreadyLearned):
            bandit.learn(later.id, 1.0)
    assert sum(bandit.counts.values()) == 5
    assert bandit.log.counts == {"decided": 2, "learned": 5, "forgotten": 0}
