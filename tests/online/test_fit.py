"""A bandit fitted from files: equal to one that learned row by row, on any number of workers."""

from __future__ import annotations

import copy
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import keyhole as kh
from keyhole.errors import install_line
from keyhole.online.fitting import parts
from tests.tabular import ARMS, History, assert_alike, bits, history, written

LEARNERS = {
    "per arm": kh.ThompsonSampling(),
    "prior": kh.ThompsonSampling(v=0.3, prior_precision=5.0),
    "shared": kh.LinUCB(sharing="shared"),
    "hybrid": kh.ThompsonSampling(sharing="hybrid"),
    "constant": kh.Learner(kh.ThompsonSampling(), intercept=True),
    "constant, hybrid": kh.Learner(kh.ThompsonSampling(sharing="hybrid"), intercept=True),
    "oful": kh.OFUL(r=1.0),
    "zero": kh.Learner(kh.Greedy(), missing="zero"),
}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make parts of two row groups of 50 rows, so that few rows are many parts."""
    monkeypatch.setattr(parts, "ROWS", 100)


def fit(given: Any, learner: Any = LEARNERS["per arm"], **options: Any) -> kh.Bandit:
    return kh.fit(given, learner, **{"arms": ARMS, **options})


# -- equal to learning -----------------------------------------------------------------------------


def test_two_rows_by_hand() -> None:
    """B = 1 + 1 + 4 and b = 3 + 2 * 5, of arm A; of arm B nothing."""
    table = pa.table({"arm": ["A", "A"], "reward": [3, 5], "observation": [[1.0], [2.0]]})
    bandit = kh.fit(table, kh.Greedy(), arms=["A", "B"])
    posterior = bandit.posterior
    assert posterior.precision.ravel().tolist() == [6.0, 1.0]
    assert posterior.moment.ravel().tolist() == [13.0, 0.0]
    assert posterior.squares.tolist() == [34.0, 0.0]
    assert bandit.counts == {"A": 2, "B": 0}
    assert bandit.choose([1.0]).arm == "A"


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.usefixtures("small_parts")
def test_a_fit_is_learning_row_by_row(name: str, tmp_path: Path) -> None:
    given = history()
    bandit = fit(written(given, tmp_path), LEARNERS[name], columns=given.columns)
    twin = given.learned(LEARNERS[name])
    assert_alike(bandit, twin)
    assert bandit._learned.observer.zero == twin._learned.observer.zero
    found = bandit.choice_probabilities(given.y[0])
    assert found == pytest.approx(twin.choice_probabilities(given.y[0]), abs=1e-9)


def test_missing_entries_are_left_out_or_zero() -> None:
    given = history(dim=3)
    rng = np.random.default_rng(2)
    given.y[rng.random(given.y.shape) < 0.1] = np.nan
    for missing in ("drop", "zero"):
        for intercept in (False, True):
            learner = kh.Learner(kh.ThompsonSampling(), missing=missing, intercept=intercept)
            twin = given.learned(learner)
            for table, columns in ((given.flat, given.columns), (given.listed, None)):
                bandit = fit(table, learner, columns=columns)
                assert_alike(bandit, twin)
                assert bandit._learned.n_dropped == twin._learned.n_dropped


def test_fields_of_features_are_columns() -> None:
    features = kh.Features(
        numbers=["age"],
        booleans=["member"],
        categories={"device": ["mobile", "desktop"], "city": 4},
        cross=[("age", "device")],
        standardize=False,
        missing="zero",
    )
    rng = np.random.default_rng(4)
    n = 300
    frame = pd.DataFrame(
        {
            "who": rng.choice(ARMS, n),
            "won": rng.standard_normal(n),
            "device": rng.choice(np.array(["mobile", "desktop", None]), n),
            "age": rng.integers(20, 60, n),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "member": rng.random(n) < 0.5,
            "unused": "x",
        }
    )
    learner = kh.Learner(kh.ThompsonSampling(), features)
    twin = kh.Bandit(learner, arms=ARMS)
    fields = ["age", "member", "device", "city"]
    for record, arm, reward in zip(
        frame[fields].to_dict("records"), frame.who, frame.won, strict=True
    ):
        made = twin.choose(record)
        twin.learn(made.instead(arm), reward)
    bandit = fit(frame, learner, columns={"arm": "who", "reward": "won"})
    assert_alike(bandit, twin)
    record = frame[fields].iloc[0].to_dict()
    assert bandit.choice_probabilities(record) == pytest.approx(
        twin.choice_probabilities(record), abs=1e-9
    )


def test_features_of_arms_are_columns_too(tmp_path: Path) -> None:
    """With one parameter for all, an arm may have any name: its record says all of it."""
    features = kh.Features(
        numbers=["age"],
        arms=kh.Features(numbers=["price"]),
        cross=[("age", "arm.price")],
        standardize=False,
        missing=None,
    )
    learner = kh.Learner(kh.Greedy(sharing="shared"), features)
    records = {"A": {"price": 1.5}, "B": {"price": -0.5}}
    rng = np.random.default_rng(6)
    n = 60
    arms, ages, won = rng.choice(["A", "B"], n), rng.normal(size=n), rng.normal(size=n)
    prices = [records[arm]["price"] for arm in arms]
    table = pa.table({"arm": arms, "reward": won, "age": ages, "arm.price": prices})
    twin = kh.Bandit(learner, arms=records, seed=1)
    for arm, age, reward in zip(arms, ages, won, strict=True):
        decision = twin.choose({"age": age}, among={arm: records[arm]})
        twin.learn(decision, reward)
    bandit = kh.fit(table, learner, arms=records)
    assert_alike(bandit, twin)
    pq.write_table(table, tmp_path / "rows.parquet")
    assert bits(kh.fit(tmp_path, learner, arms=records)) == bits(bandit)
    assert bandit.choose({"age": 0.3}).arm == twin.choose({"age": 0.3}).arm
    other = kh.fit(table.set_column(0, "arm", pa.array(["new"] * n)), learner, arms=records)
    assert_alike(other, twin)


def test_rewards_that_have_not_come_are_left_out() -> None:
    given = history(50)
    rewards = [None if k % 3 == 0 else r for k, r in enumerate(given.rewards.tolist())]
    kept = [k for k in range(50) if k % 3]
    twin = History([given.arms[k] for k in kept], given.y[kept], given.rewards[kept])
    # Arms and observations of such rows are not looked at.
    arms = [None if k == 0 else "Z" if k == 3 else arm for k, arm in enumerate(given.arms)]
    seen = [[1.0] if k == 6 else None if k == 9 else y for k, y in enumerate(given.y.tolist())]
    table = pa.table({"arm": arms, "reward": rewards, "observation": seen})
    assert_alike(fit(table), twin.learned(kh.ThompsonSampling()))


def test_a_fitted_bandit_goes_on() -> None:
    """It decides, learns, is saved, copied and merged as any other."""
    given = history()
    bandit = fit(given.flat, columns=given.columns, seed=5)
    again = fit(given.flat, columns=given.columns, seed=5)
    assert [bandit.choose(y).score for y in given.y[:9]] == [
        again.choose(y).score for y in given.y[:9]
    ]
    for twin in (
        kh.Bandit.load(bandit.to_bytes()),
        copy.deepcopy(bandit),
        pickle.loads(pickle.dumps(bandit)),
    ):
        assert bits(twin) == bits(bandit)
        twin.learn(twin.choose(given.y[0]), 1.0)
        assert sum(twin.counts.values()) == 601
    # Columns have names from the beginning.
    with pytest.raises(kh.InvalidValue, match="y0"):
        bandit.choose(pd.Series({"y1": 1.0, "y0": 2.0, "y2": 0.0, "y3": 0.0}))
    fixed = fit(given.flat, columns=given.columns, probabilities=False)
    assert fixed.choose(given.y[0]).probability is None


# -- the same bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["per arm", "shared", "constant, hybrid"])
@pytest.mark.usefixtures("small_parts")
def test_any_number_of_threads_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    given = history(1100)
    paths, learner = written(given, tmp_path), LEARNERS[name]
    wanted = bits(fit(paths, learner, columns=given.columns, workers=1))
    for workers in (2, 3, 8):
        assert bits(fit(paths, learner, columns=given.columns, workers=workers)) == wanted
    with ThreadPoolExecutor(3) as pool:
        assert bits(fit(paths, learner, columns=given.columns, executor=pool)) == wanted
    # A negative control: of other parts there are other roundings.
    other = written(given, tmp_path, group=30)
    assert bits(fit(other, learner, columns=given.columns, workers=1)) != wanted


@pytest.mark.usefixtures("small_parts")
def test_a_dask_cluster_gives_the_same_bits(tmp_path: Path) -> None:
    """Threads of this process, then two processes; of files and of tables."""
    from distributed import Client, LocalCluster

    given = history(1100)
    paths = written(given, tmp_path)
    sources: list[Any] = [paths, given.flat]
    wanted = [bits(fit(one, columns=given.columns, workers=1)) for one in sources]
    for processes in (False, True):
        with (
            LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=processes,
                dashboard_address=":0",
            ) as cluster,
            Client(cluster) as client,
        ):
            executor = client.get_executor()
            for one, own in zip(sources, wanted, strict=True):
                assert bits(fit(one, columns=given.columns, executor=executor)) == own
            broken = given.flat.set_column(1, "reward", pa.array([np.inf] * 1100))
            with pytest.raises(kh.InvalidValue, match=r"'reward' in row 0 of table 0 .* got inf"):
                fit(broken, columns=given.columns, executor=executor)


# -- sources ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_parts")
def test_files_may_be_named_in_many_ways(tmp_path: Path) -> None:
    given = history()
    paths = written(given, tmp_path)
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "part-9.parquet").write_bytes(b"not whole")
    (tmp_path / "notes.txt").write_text("")
    ways: list[Any] = [
        paths,
        [str(path) for path in paths],
        iter(paths),
        tmp_path,
        str(tmp_path / "part-*.parquet"),
        str(tmp_path / "**" / "part-[0-2].parquet"),
        [tmp_path / "part-0.parquet", str(tmp_path / "part-[12].parquet")],
    ]
    wanted = bits(fit(paths, columns=given.columns))
    for way in ways:
        assert bits(fit(way, columns=given.columns)) == wanted


def test_tables_of_many_kinds_hold_the_same() -> None:
    given = history(40)
    wanted = bits(fit(given.flat, columns=given.columns))
    others: list[Any] = [
        pl.from_arrow(given.flat),
        given.flat.to_pandas(),
        given.flat.to_batches()[0],
        pa.RecordBatchReader.from_batches(given.flat.schema, given.flat.to_batches()),
        pa.concat_tables([given.flat.slice(0, 7), given.flat.slice(7)]),
    ]
    for other in others:
        assert bits(fit(other, columns=given.columns)) == wanted
    assert bits(fit(given.listed)) == wanted


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.large_list(pa.float64()),
        pa.list_(pa.float64(), 2),
        pa.list_(pa.int8()),
    ],
)
def test_lists_of_any_type_are_read(kind: Any, tmp_path: Path) -> None:
    seen = pa.array([[1, 2], [3, 4], None, [5, 6]], kind)
    table = pa.table({"arm": list("ABCA"), "reward": [1, 2, None, 4], "observation": seen})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, table.slice(0, 4), tmp_path / "t.parquet"):
        posterior = fit(source).posterior
        assert posterior.precision[0].tolist() == [[27.0, 32.0], [32.0, 41.0]]
        assert posterior.moment[:2].tolist() == [[21.0, 26.0], [6.0, 8.0]]
    assert fit(table.slice(1, 2)).counts == {"A": 0, "B": 1, "C": 0}


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.float16(), pa.bool_()])
def test_numbers_of_any_type_are_read(kind: Any) -> None:
    table = pa.table(
        {"arm": ["A", "B"], "reward": pa.array([1, 0]).cast(kind), "y": pa.array([0, 1]).cast(kind)}
    )
    for names in (["y"], "y"):
        posterior = fit(table, columns={"observation": names}).posterior
        assert posterior.precision.ravel().tolist() == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    "names",
    [
        pa.array(["B", "A", "B"]).dictionary_encode(),
        pa.array(["B", "A", "B"], pa.large_string()),
        pa.DictionaryArray.from_arrays(pa.array([2, 1, 2], pa.uint8()), ["C", "A", "B"]),
    ],
)
def test_arms_of_any_type_are_read(names: Any, tmp_path: Path) -> None:
    table = pa.table({"arm": names, "reward": [1.0, 1.0, 1.0], "y": [1.0, 1.0, 1.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        assert fit(source, columns={"observation": "y"}).counts == {"A": 1, "B": 2, "C": 0}


def test_arms_may_be_numbers() -> None:
    table = pa.table({"arm": [7, 2, 7], "reward": [1.0] * 3, "observation": [1.0] * 3})
    assert kh.fit(table, kh.Greedy(), arms=[2, 7]).counts == {2: 1, 7: 2}
    assert kh.fit(table, kh.Greedy(), arms=8).counts[7] == 2
    with pytest.raises(kh.UnknownArm, match="got 7"):
        kh.fit(table, kh.Greedy(), arms=["2", "7"])


def test_a_column_of_nulls_has_no_rewards(tmp_path: Path) -> None:
    """As pandas writes an hour in which none has come."""
    given = history(40)
    nothing = {
        "arm": pa.nulls(2),
        "reward": pa.nulls(2),
        **{f"y{j}": pa.nulls(2) for j in range(4)},
    }
    pq.write_table(pa.table(nothing), tmp_path / "nothing.parquet")
    pq.write_table(given.flat, tmp_path / "rows.parquet")
    assert_alike(fit(tmp_path, columns=given.columns), given.learned(LEARNERS["per arm"]))


def test_very_many_arms() -> None:
    rng = np.random.default_rng(1)
    n, k = 5_000, 3_000
    arms, y, rewards = rng.integers(0, k, n), rng.standard_normal((n, 2)), rng.standard_normal(n)
    seen = pa.FixedSizeListArray.from_arrays(pa.array(y.reshape(-1)), 2)
    table = pa.table({"arm": arms, "reward": rewards, "observation": seen})
    found = kh.fit(table, kh.Greedy(), arms=k).posterior
    wanted = kh.Posterior(n_parameters=k, dim=2)
    wanted.learn_many(arms, y, rewards)
    assert found.count.tolist() == wanted.count.tolist()
    np.testing.assert_allclose(found.precision, wanted.precision, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-12, atol=1e-12)


# -- once ------------------------------------------------------------------------------------------


def test_rows_are_not_merged_twice(tmp_path: Path) -> None:
    given = history()
    paths = written(given, tmp_path)
    first, second = fit(paths[:2], columns=given.columns), fit(paths[1:], columns=given.columns)
    with pytest.raises(kh.InvalidValue, match="common"):
        first.merge(second)
    first.merge(second, base=fit(paths[1], columns=given.columns))
    assert_alike(first, given.learned(kh.ThompsonSampling()))
    apart = fit(paths[0], columns=given.columns)
    apart.merge(second)
    assert_alike(apart, given.learned(kh.ThompsonSampling()))


def test_rows_that_look_alike_are_merged(tmp_path: Path) -> None:
    """Files with the same sums, and other rows: an hour as good as the one before."""
    tables = [
        pa.table({"hour": [h] * 2, "arm": ["A", "A"], "reward": [0.0, 1.0], "observation": [1, 1]})
        for h in (1, 2)
    ]
    for source in (tables, [tmp_path / f"{h}.parquet" for h in (1, 2)]):
        for table, path in zip(tables, source, strict=True):
            if isinstance(path, Path):
                pq.write_table(table, path)
        first, second = (fit(one) for one in source)
        first.merge(second)
        assert first.counts["A"] == 4
        with pytest.raises(kh.InvalidValue, match="common"):
            first.merge(fit(source[0]))


def test_a_file_is_not_read_twice(tmp_path: Path) -> None:
    given = history()
    paths = written(given, tmp_path)
    with pytest.raises(kh.InvalidValue, match=r"part-0\.parquet is given twice"):
        fit([*paths, tmp_path / "." / "part-0.parquet"], columns=given.columns)
    (tmp_path / "link.parquet").symlink_to(paths[1])
    with pytest.raises(kh.InvalidValue, match="given twice"):
        fit(tmp_path, columns=given.columns)


# -- progress, interrupts, extras ------------------------------------------------------------------


@pytest.mark.usefixtures("small_parts")
def test_progress_is_reported(tmp_path: Path) -> None:
    given = history()
    seen: list[tuple[int, int]] = []
    paths = written(given, tmp_path)
    fit(paths, columns=given.columns, progress=lambda *at: seen.append(at))
    assert seen == [(n, 600) for n in range(100, 700, 100)]


@pytest.mark.usefixtures("small_parts")
def test_an_interrupt_ends_the_fit(tmp_path: Path) -> None:
    given = history(6000)
    paths = written(given, tmp_path)
    done, before = [], threading.active_count()

    def press(rows: int, _total: int) -> None:
        done.append(rows)
        if len(done) == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(paths, columns=given.columns, workers=2, progress=press)
    assert len(done) == 3
    assert threading.active_count() == before


def test_a_missing_extra_has_the_line_that_helps() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import keyhole as kh\n"
        "try: kh.fit('rows.parquet', kh.Greedy(), arms=2)\n"
        "except kh.MissingExtra as error: print(error)\n"
    )
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert shown == f"Parquet needs pyarrow: {install_line('logs')}\n"
