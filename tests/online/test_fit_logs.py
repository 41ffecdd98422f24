"""Bandits fitted from logs in Parquet: what counts of them, and nothing twice."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import keyhole as kh
from keyhole.online.fitting import parts
from keyhole.online.log import parquet
from tests.tabular import ARMS, assert_alike, bits, history, written

LEARNERS = {
    "per arm": kh.ThompsonSampling(),
    "shared": kh.ThompsonSampling(v=1.0, sharing="shared"),
    "hybrid": kh.ThompsonSampling(v=1.0, sharing="hybrid"),
    "constant": kh.Learner(kh.ThompsonSampling(), intercept=True),
    "drop": kh.Learner(kh.ThompsonSampling(), intercept=True, missing="drop"),
    "zero": kh.Learner(kh.LinUCB(), missing="zero"),
}


def life(learner: Any, path: Path, *, own_rows: bool = False, rounds: int = 200) -> Any:
    """Return a bandit with a log after all that can happen to a reward."""
    rng = np.random.default_rng(5)
    bandit: Any = kh.Bandit(learner, arms=ARMS, dim=3, seed=7, log=path)
    sharing = getattr(learner, "sharing", "per-arm")
    can_forget = isinstance(learner, kh.Policy) and sharing != "hybrid"
    waiting: list[Any] = []
    for t in range(rounds):
        y = rng.standard_normal((len(bandit.arms), 3) if own_rows else 3)
        if getattr(learner, "missing", None):
            y[rng.random(y.shape) < 0.15] = np.nan
        waiting.append(bandit.choose(y))
        if t % 7 == 3:  # fewer arms, and a row for each of them
            waiting.append(bandit.choose(rng.standard_normal((2, 3)), among=["C", "A"]))
        if t % 3:  # late, in another order; many never come
            decision = waiting.pop(rng.integers(len(waiting)))
            bandit.learn(decision if t % 2 else decision.id, rng.standard_normal())
            if t % 5 == 0:
                bandit.learn(decision.id, rng.standard_normal(), again=True)
            if t % 8 == 0 and can_forget:
                bandit.forget(decision.id)
        if t % 20 == 11:  # another arm was taken
            seen = rng.standard_normal(3)
            bandit.learn(bandit.choose(seen).instead("B"), 0.25)
        if t % 30 == 17:
            batch = bandit.choose_many(rng.standard_normal((4, *y.shape)))
            kept = [one for one in batch if one.arm != "D"]
            bandit.learn_many(kept, rng.standard_normal(len(kept)))
        if t == 60:
            bandit.add_arms(["D"])
        if t in (90, 150):
            bandit.remove_arms(["D"])
            waiting = [one for one in waiting if one.arm != "D"]
        if t == 120 and sharing != "hybrid":
            bandit.add_arms(["D"])
        if t == 149 and sharing == "hybrid":
            break
        if t == 110:
            bandit.log.close()
            bandit = kh.Bandit.from_log(path)
    other = kh.Bandit(learner, arms=ARMS, dim=3, seed=9)
    bandit.learn(kh.Decision.from_dict(other.choose([1.0, 0.0, 2.0]).to_dict()), 0.5)
    bandit.learn(kh.Decision(arm="A", observation=[1.0, 1.0, 0.0]), 2.0)  # without an id
    return bandit


def as_parquet(bandit: Any) -> Path:
    path = Path(bandit.log.path).with_suffix(".parquet")
    bandit.log.to_parquet(path)
    return path


@pytest.mark.parametrize("own_rows", [False, True])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_fit_of_a_log_is_its_bandit(name: str, own_rows: bool, tmp_path: Path) -> None:
    learner: Any = LEARNERS[name]
    bandit = life(learner, tmp_path / "log.jsonl", own_rows=own_rows)
    path = as_parquet(bandit)
    found = kh.fit(path, learner)
    assert found.arms == bandit.arms
    assert_alike(found, bandit)
    # The rows are all there still.
    assert list(kh.Log(path)) == list(bandit.log)
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


def test_rows_of_rewards_are_a_table_of_their_own(tmp_path: Path) -> None:
    """By hand: late, once more, for another arm, forgotten, and not come."""
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, seed=1, log=tmp_path / "log.jsonl")
    late, twice, vetoed, forgotten, _never = (bandit.choose([float(k)]) for k in range(1, 6))
    bandit.learn(twice, 2.0)
    bandit.learn(twice.id, 2.5, again=True)
    other = "A" if vetoed.arm == "B" else "B"
    bandit.learn(vetoed.instead(other), 3.0)
    bandit.learn(forgotten, 4.0)
    bandit.learn(forgotten.id, 4.5, again=True)
    bandit.forget(forgotten.id)
    bandit.learn(late, 1.0)
    bandit.learn(kh.Decision(arm="B", observation=[6.0]), 6.0)
    table: Any = pl.read_parquet(as_parquet(bandit)).filter(pl.col("learned").is_not_null())
    rows = table.select("arm", "observation", "learned").rows()
    assert sorted(rows, key=lambda row: row[2]) == [
        (late.arm, [1.0], 1.0),
        (twice.arm, [2.0], 2.0),
        (twice.arm, [2.0], 2.5),
        (other, [3.0], 3.0),
        ("B", [6.0], 6.0),
    ]


def test_a_removed_arm_begins_anew(tmp_path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=tmp_path / "log.jsonl")
    for reward in (1.0, 2.0):
        bandit.learn(kh.Decision(arm="A", observation=[1.0]), reward)
        bandit.learn(kh.Decision(arm="B", observation=[1.0]), reward)
        if reward == 1.0:
            bandit.remove_arms(["A"])
            bandit.add_arms(["A"])
    found = kh.fit(as_parquet(bandit), kh.Greedy())
    assert found.counts == bandit.counts == {"B": 2, "A": 1}
    bandit.remove_arms(["B"])
    assert kh.fit(as_parquet(bandit), kh.Greedy()).arms == ("A",)
    assert kh.fit(as_parquet(bandit), kh.Greedy(), arms="BA").counts == {"B": 0, "A": 1}


def test_logs_have_the_same_bits_on_any_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP", 40)
    monkeypatch.setattr(parts, "ROWS", 80)
    learner = kh.ThompsonSampling()
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(as_parquet(life(learner, tmp_path / name / "log.jsonl")))
    assert pq.ParquetFile(paths[0]).num_row_groups > 5
    wanted = bits(kh.fit(paths, learner, workers=1))
    assert [bits(kh.fit(paths, learner, workers=n)) for n in (2, 3)] == [wanted] * 2


def test_a_bandit_may_be_fitted_with_another_learner(tmp_path: Path) -> None:
    bandit = life(kh.ThompsonSampling(), tmp_path / "log.jsonl")
    path = as_parquet(bandit)
    learner = kh.Learner(kh.LinUCB(prior_precision=3.0, sharing="shared"), intercept=True)
    found = kh.fit(path, learner, arms=[*ARMS, "E"])
    assert found.counts["E"] == sum(bandit.counts.values())
    with pytest.raises(kh.UnknownArm, match=r"'arm' in row \d+ of .*log\.parquet .* got 'C'"):
        kh.fit(path, learner, arms=["A", "B"])
    with pytest.raises(kh.InvalidValue, match="must have 4 numbers, got 3"):
        kh.fit(path, learner, dim=4)


def test_records_are_fitted_with_their_features(tmp_path: Path) -> None:
    def made(**options: Any) -> kh.Learner:
        features = kh.Features(
            numbers=["age"],
            categories={"device": ["mobile", "desktop"]},
            standardize=False,
            **options,
        )
        return kh.Learner(kh.ThompsonSampling(), features)

    learner, rng = made(missing=None), np.random.default_rng(1)
    bandit: Any = kh.Bandit(learner, arms=ARMS, seed=1, log=tmp_path / "log.jsonl")
    for _ in range(60):
        record = {"age": rng.normal(), "device": str(rng.choice(["mobile", "desktop"]))}
        bandit.learn(bandit.choose(record), rng.normal())
    path = as_parquet(bandit)
    found = kh.fit(path, learner)
    assert_alike(found, bandit)
    assert found.choose({"age": 1.0, "device": "mobile"}).arm in ARMS
    other = kh.Features(numbers=["a"], standardize=False, missing=None)
    for wrong in (kh.Greedy(), kh.Learner(kh.Greedy(), other)):
        with pytest.raises(kh.InvalidValue, match="was written with other features"):
            kh.fit(path, wrong)
    (tmp_path / "plain").mkdir()
    with pytest.raises(kh.InvalidValue, match="was written without features"):
        kh.fit(as_parquet(life(kh.Greedy(), tmp_path / "plain" / "log.jsonl")), learner)


# -- nothing twice ---------------------------------------------------------------------------------


def two_servers(folder: Path) -> tuple[Any, Any]:
    """Return two bandits with logs; a reward of the first one's decision went to the second."""
    first, second = (
        kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, seed=k, log=folder / f"{k}.jsonl")
        for k in (1, 2)
    )
    decision = first.choose([1.0])
    second.learn(kh.Decision.from_dict(decision.to_dict()), 1.0)
    second.learn(second.choose([2.0]), 1.0)
    return first, second


def test_logs_of_several_bandits_add_up(tmp_path: Path) -> None:
    first, second = two_servers(tmp_path)
    first.learn(first.choose([3.0]), 1.0)
    found = kh.fit([as_parquet(first), as_parquet(second)], kh.Greedy())
    assert sum(found.counts.values()) == 3
    total = found.posterior.precision.sum() - 2.0
    assert total == pytest.approx(1.0 + 4.0 + 9.0)


def test_a_reward_that_two_bandits_learned_is_noticed(tmp_path: Path) -> None:
    first, second = two_servers(tmp_path)
    event = next(row.event for row in first.log if type(row).__name__ == "Decision")
    paths = [as_parquet(first), as_parquet(second)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kh.fit(paths, kh.Greedy())
    first.learn(event, 1.0)
    with pytest.warns(kh.KeyholeWarning, match="1 decisions were learned by the bandits of two"):
        kh.fit([as_parquet(first), as_parquet(second)], kh.Greedy())


def test_one_log_is_not_read_twice(tmp_path: Path) -> None:
    first, second = two_servers(tmp_path)
    shutil.copy(as_parquet(second), tmp_path / "older.parquet")
    second.learn(second.choose([2.0]), 1.0)
    with pytest.raises(kh.InvalidValue, match=r"older\.parquet and .*2\.parquet are logs of the"):
        kh.fit([tmp_path / "older.parquet", as_parquet(second), as_parquet(first)], kh.Greedy())


def test_rewards_outside_of_the_logs_are_noticed(tmp_path: Path) -> None:
    """A bandit that was loaded knows more than its log, unless the earlier log is there, too."""
    first, _ = two_servers(tmp_path)
    first.learn(first.choose([3.0]), 1.0)
    first.log.close()
    second: Any = kh.Bandit.load(first.to_bytes(), log=tmp_path / "later.jsonl")
    second.learn(second.choose([4.0]), 1.0)
    earlier, later = as_parquet(first), as_parquet(second)
    with pytest.warns(kh.KeyholeWarning, match="had learned 1 rewards of other runs"):
        kh.fit(later, kh.Greedy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_alike(kh.fit([earlier, later], kh.Greedy()), second)
    third: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=tmp_path / "merged.jsonl")
    third.merge(second)
    with pytest.warns(kh.KeyholeWarning, match="had learned 2 rewards of other runs"):
        assert sum(kh.fit(as_parquet(third), kh.Greedy()).counts.values()) == 0


def test_files_and_the_log_that_came_after_them_add_up(tmp_path: Path) -> None:
    given = history()
    (path,) = written(given, tmp_path, files=1)
    first = kh.fit(path, kh.Greedy(), arms=ARMS, columns=given.columns)
    second: Any = kh.Bandit.load(first.to_bytes(), log=tmp_path / "log.jsonl")
    for y in given.y[:30]:
        second.learn(second.choose(y), 1.0)
    log = as_parquet(second)
    with pytest.warns(kh.KeyholeWarning, match="had learned 600 rewards of other runs"):
        kh.fit(log, kh.Greedy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = kh.fit([path, log], kh.Greedy(), arms=ARMS, columns=given.columns)
    assert_alike(both, second)


def test_a_fit_is_merged_with_the_bandit_that_went_on(tmp_path: Path) -> None:
    _, bandit = two_servers(tmp_path)
    base = kh.fit(as_parquet(bandit), kh.Greedy())
    ahead = kh.Bandit.load(base.to_bytes())
    ahead.learn(ahead.choose([5.0]), 1.0)
    bandit.learn(bandit.choose([6.0]), 1.0)
    with pytest.raises(kh.InvalidValue, match="started from a common one"):
        ahead.merge(bandit)
    ahead.merge(bandit, base=base)
    assert sum(ahead.counts.values()) == 4


def test_rewards_of_the_log_are_not_learned_again(tmp_path: Path) -> None:
    _, bandit = two_servers(tmp_path)
    decision, late = bandit.choose([1.0]), bandit.choose([1.0])
    bandit.learn(decision, 1.0)
    found = kh.fit(as_parquet(bandit), kh.Greedy())
    with pytest.raises(kh.AlreadyLearned):
        found.learn(kh.Decision.from_dict(decision.to_dict()), 1.0)
    found.learn(kh.Decision.from_dict(late.to_dict()), 1.0)
    assert sum(found.counts.values()) == 4


# -- what is refused -------------------------------------------------------------------------------


def test_json_lines_are_refused(tmp_path: Path) -> None:
    first, _ = two_servers(tmp_path)
    for given in (tmp_path / "1.jsonl", first.log, [str(tmp_path / "1.jsonl")]):
        with pytest.raises(kh.InvalidValue, match=r"write it as Parquet first, Log\(.*to_parquet"):
            kh.fit(given, kh.Greedy())


def test_a_damaged_log_is_refused(tmp_path: Path) -> None:
    bandit = life(kh.ThompsonSampling(), tmp_path / "log.jsonl")
    path = as_parquet(bandit)
    content = bytearray(path.read_bytes())
    metadata = pq.ParquetFile(path).metadata
    names = [metadata.row_group(0).column(k).path_in_schema for k in range(metadata.num_columns)]
    column = metadata.row_group(0).column(names.index("observation.list.element"))
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(kh.FileError, match=r"log\.parquet is damaged after row 0"):
        kh.fit(path, kh.ThompsonSampling())
    with pytest.raises(kh.FileError, match=r"log\.parquet is damaged after row 0"):
        list(kh.Log(path))


def test_a_log_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = as_parquet(life(kh.Greedy(), tmp_path / "log.jsonl", rounds=5))
    table = pq.read_table(path)
    for key, value, match in (
        (parquet.VERSION, b"9", "of another schema: b'9'"),
        (parquet.SUMMARY, b"{}", "without a summary"),
    ):
        changed = table.replace_schema_metadata({**table.schema.metadata, key: value})
        pq.write_table(changed, tmp_path / "other.parquet")
        with pytest.raises(kh.FileError, match=match):
            kh.fit(tmp_path / "other.parquet", kh.Greedy())
