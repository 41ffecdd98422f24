"""What a fit refuses: each error names the file, the row and the column, and how to go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import keyhole as kh
from keyhole.errors import FileMissing
from tests.tabular import ARMS, history, written

GOOD: dict[str, list[Any]] = {
    "arm": ["A", "B", "A"],
    "reward": [1.0, 2.0, 3.0],
    "observation": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
}
FLAT = {"arm": GOOD["arm"], "reward": GOOD["reward"], "x": [1.0, 2.0, 3.0], "z": [1, 2, 3]}


def fit(given: Any, learner: Any = None, **options: Any) -> kh.Bandit:
    return kh.fit(given, learner or kh.Greedy(), **{"arms": ["A", "B"], **options})


def changed(name: str, values: Any) -> pa.Table:
    return pa.table({**GOOD, name: values})


# -- rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "match"),
    [
        ("reward", [1.0, np.nan, 3.0], "'reward' in row 1 of {} must be a finite number.*got nan"),
        ("reward", [1.0, 2.0, -np.inf], "'reward' in row 2 of {} .* got -inf"),
        ("reward", [1.0, 2e50, 3.0], r"'reward' in row 1 of {} .* at most 1e\+50, got 2e\+50"),
        ("observation", [[1.0, 0.0], [0.0, np.nan], [1.0, 1.0]],
         r"'observation\[1\]' in row 1 of {} .* got nan; .* missing='zero'"),
        ("observation", [[1.0, 0.0], [None, 1.0], [1.0, 1.0]], r"'observation\[0\]' in row 1 of"),
        ("observation", [[1.0, 0.0], [0.0, 1.0], [np.inf, 1.0]], r"'observation\[0\]' in row 2"),
        ("observation", [[1.0, 0.0], [0.0, 1.0, 2.0], [1.0, 1.0]],
         "'observation' in row 1 of {} must be a list of 2 numbers, got 3 of them"),
        ("observation", [[1.0, 0.0], [0.0, 1.0], None], "in row 2 of {} .* got null"),
        ("observation", [[1.0, 0.0], [], [1.0, 1.0]], "in row 1 of {} .* got 0 of them"),
        ("arm", ["A", "B", "C"], "'arm' in row 2 of {} must be one of the arms 'A', 'B', got 'C'"),
        ("arm", ["A", None, "B"], "'arm' in row 1 of {} must be the name of an arm, got null"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_named(
    name: str, values: Any, match: str, tmp_path: Path
) -> None:
    table = changed(name, values)
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=2)
    for source, called in ((table, "table 0"), (path, r".*rows\.parquet")):
        for learner in (kh.Greedy(), kh.Greedy(sharing="hybrid")):
            with pytest.raises(kh.InvalidValue, match=match.format(called)):
                fit(source, learner)
    assert issubclass(kh.UnknownArm, kh.InvalidValue)


def test_the_first_wrong_row_is_named_on_any_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhole.online.fitting.parts.ROWS", 50)
    given = history(900)
    given.rewards[[333, 420, 850]] = np.inf
    paths = written(given, tmp_path)
    for workers in (1, 3):
        with pytest.raises(kh.InvalidValue, match=r"'reward' in row 33 of .*part-1\.parquet"):
            kh.fit(paths, kh.Greedy(), arms=ARMS, columns=given.columns, workers=workers)


def test_sums_beyond_the_limit_of_one_number_are_fine() -> None:
    """Each number is at most 1e50, and the sum of their squares is more than 1e100."""
    large = pa.table({"arm": ["A"] * 2, "reward": [9e49] * 2, "observation": [[1e50]] * 2})
    assert fit(large).posterior.squares[0] == pytest.approx(2 * 8.1e99)


def test_columns_by_name_are_told_in_errors() -> None:
    table = pa.table({**FLAT, "x": [1.0, 2.0, None]})
    with pytest.raises(kh.InvalidValue, match=r"'x' in row 2 of table 0 .* got nan"):
        fit(table, columns={"observation": ["z", "x"]})
    learner = kh.Learner(kh.Greedy(), intercept=True)
    with pytest.raises(kh.InvalidValue, match=r"'x' in row 2 of table 0 .* got nan; a learner"):
        fit(table, learner, columns={"observation": ["z", "x"]})


def test_records_that_cannot_be_used_are_named() -> None:
    features = kh.Features(
        numbers=["age"], categories={"city": ["Oslo"]}, standardize=False, missing=None
    )
    learner = kh.Learner(kh.Greedy(), features)
    base = {"arm": ["A"] * 9, "reward": [None, *[1.0] * 8], "city": ["Oslo"] * 9}
    wrong = pa.table({**base, "age": [1.0] * 6 + [np.inf] + [2.0] * 2})
    with pytest.raises(kh.InvalidValue, match=r"^row 6 of table 0: age must be .*inf"):
        fit(wrong, learner)
    unseen = pa.table({**base, "age": [1.0] * 9, "city": ["Oslo"] * 7 + ["Rome", "Oslo"]})
    with pytest.raises(kh.InvalidValue, match=r"'city=Oslo' in row 7 of table 0 .* got nan"):
        fit(unseen, learner)


# -- columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "match"),
    [
        ("reward", ["1", "2", "3"], "column 'reward' of .* must have numbers, got string"),
        ("arm", [1.0, 2.0, 3.0], "column 'arm' of .* must have names of arms.*got double"),
        ("arm", [True, False, True], "column 'arm' of .* got bool"),
        ("observation", ["a", "b", "c"], "'observation' of .* lists of numbers.*got string"),
        ("observation", [["a"], ["b"], ["c"]], "'observation' of .* got list"),
    ],
)
def test_a_column_of_another_type_is_named(
    name: str, values: Any, match: str, tmp_path: Path
) -> None:
    table = changed(name, values)
    pq.write_table(table, tmp_path / "rows.parquet")
    for source in (table, tmp_path / "rows.parquet"):
        with pytest.raises(kh.InvalidValue, match=match):
            fit(source)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(kh.InvalidValue, match="no column 'reward'; its columns are arm, observ"):
        fit(pa.table(GOOD).drop_columns(["reward"]))
    with pytest.raises(kh.InvalidValue, match="table 0 has no column 'y'; its columns are arm, "):
        fit(pa.table(GOOD), columns={"observation": ["y"]})
    twice = pa.Table.from_arrays([pa.array([1.0])] * 2, names=["reward", "reward"])
    with pytest.raises(kh.InvalidValue, match="more than one column 'reward'"):
        fit(twice.append_column("arm", pa.array(["A"])).append_column("observation", twice[0]))


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (["arm"], "columns must be a dict"),
        ({"arms": "x"}, "a key of columns must be one of .* Did you mean arm"),
        ({"arm": 3}, r"columns\['arm'\] must be the name of a column, got 3"),
        ({"observation": []}, r"columns\['observation'\] must be a column of lists"),
        ({"observation": [1]}, r"columns\['observation'\] must be"),
        ({"observation": 1}, r"columns\['observation'\] must be"),
        ({"observation": ["x", "x"]}, "different ones, got 'x' twice"),
        ({"observation": ["reward"]}, "different ones, got 'reward' twice"),
    ],
)
def test_columns_that_cannot_be_are_refused(columns: Any, match: str) -> None:
    with pytest.raises(kh.InvalidValue, match=match):
        fit(pa.table(GOOD), columns=columns)


def test_two_schemas_are_refused(tmp_path: Path) -> None:
    longer = changed("observation", [[1.0, 2.0, 3.0]] * 3)
    pq.write_table(pa.table(GOOD), tmp_path / "a.parquet")
    pq.write_table(longer, tmp_path / "b.parquet")
    pq.write_table(pa.table(FLAT), tmp_path / "c.parquet")
    with pytest.raises(kh.InvalidValue, match=r"b\.parquet must have 2 numbers, got 3"):
        fit([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    with pytest.raises(kh.InvalidValue, match=r"c\.parquet has no column 'observation'"):
        fit([tmp_path / "a.parquet", tmp_path / "c.parquet"])
    with pytest.raises(kh.InvalidValue, match="table 0 must have 5 numbers, got 2"):
        fit(pa.table(GOOD), dim=5)


# -- files -----------------------------------------------------------------------------------------


def test_files_that_are_not_whole_are_named(tmp_path: Path) -> None:
    given = history()
    paths = written(given, tmp_path)
    whole = paths[1].read_bytes()

    def refused(match: str, error: type[Exception] = kh.FileError) -> None:
        with pytest.raises(error, match=match):
            kh.fit(paths, kh.Greedy(), arms=ARMS, columns=given.columns)

    paths[1].write_bytes(whole[: len(whole) // 2])
    refused(r"part-1\.parquet is no whole Parquet file")
    paths[1].write_bytes(b"PAR1")
    refused(r"part-1\.parquet is no whole Parquet file")
    paths[1].write_bytes(b"")
    refused(r"part-1\.parquet is no Parquet file", kh.InvalidValue)
    paths[1].write_bytes(b"arm,reward\nA,1\n")
    refused(r"part-1\.parquet is no Parquet file: it begins with b'arm,'", kh.InvalidValue)
    offset = pq.ParquetFile(paths[0]).metadata.row_group(2).column(0).data_page_offset
    paths[1].write_bytes(whole[:offset] + b"\xff" * 40 + whole[offset + 40 :])
    refused(r"part-1\.parquet is damaged after row 100")
    paths[1].unlink()
    refused(r"cannot read .*part-1\.parquet: no such file", FileMissing)


def test_a_file_that_changes_meanwhile_is_named(tmp_path: Path) -> None:
    given = history()
    paths = written(given, tmp_path, files=1)

    def rewrite(*_: object) -> None:
        pq.write_table(given.flat.slice(0, 10), paths[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.online.fitting.parts.ROWS", 50)
        patch.setattr("keyhole.online.fitting.fitting.AHEAD", 1)
        with pytest.raises(kh.FileError, match=r"part-0\.parquet has changed while it was read"):
            kh.fit(
                paths, kh.Greedy(), arms=ARMS, columns=given.columns, workers=1, progress=rewrite
            )


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    for path, match in (
        (tmp_path, "no file .*parquet in the folder"),
        (tmp_path / "*.parquet", r"there is no file .*\*\.parquet"),
        (tmp_path / "a.parquet", "cannot read .*a.parquet: no such file"),
    ):
        with pytest.raises(FileMissing, match=match):
            fit(path)
    for given in ([], 3, None, [3], b"rows.parquet"):
        with pytest.raises(kh.InvalidValue, match="files must be"):
            fit(given)


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "match"),
    [
        (kh.Learner(kh.Greedy(), standardize=True), "standardize=True: units follow"),
        (kh.Learner(kh.Greedy(), missing="predict"), "missing='predict': predictions follow"),
        (kh.Learner(kh.Greedy(), missing="mean"), "missing='mean'"),
        (kh.WeightedThompsonSampling(), "weighs rewards"),
        (kh.Learner(kh.Greedy(), kh.Features(numbers=["a"])), "standardize=True"),
        (
            kh.Learner(
                kh.Greedy(),
                kh.Features(categories={"a": "grow"}, standardize=False, missing="zero"),
            ),
            "categories that grow",
        ),
    ],
)
def test_learners_whose_rows_have_an_order_are_refused(learner: Any, match: str) -> None:
    with pytest.raises(kh.InvalidValue, match=f"only sums can be fitted from files.*{match}"):
        fit(pa.table(GOOD), learner)


def test_settings_that_cannot_be_are_refused() -> None:
    table = pa.table(GOOD)
    sensors = kh.SensorLearner(kh.ThompsonSampling(), kh.Sensor(sensing=[[1.0]]))
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"learner": sensors}, "a learner needs a policy"),
        ({"learner": kh.Greedy}, "an object, not a class"),
        ({"arms": None}, "arms must be given"),
        ({"arms": []}, "at least one arm"),
        ({"dim": 0}, "dim must be"),
        ({"workers": 0}, "workers must be"),
        ({"executor": 3}, "executor must be a concurrent.futures.Executor"),
        ({"progress": True}, "progress must be a function of two numbers"),
        ({"probabilities": 1}, "probabilities must be True or False"),
    ]
    for options, match in wrongs:
        with pytest.raises(kh.InvalidValue, match=match):
            fit(table, **options)


def test_dim_is_that_of_the_features() -> None:
    features = kh.Features(numbers=["x", "z"], standardize=False, missing=None)
    with pytest.raises(kh.InvalidValue, match="dim must be 2, the number of columns"):
        fit(pa.table(FLAT), kh.Learner(kh.Greedy(), features), dim=3)


def test_a_constant_needs_eight_rewards() -> None:
    with pytest.raises(kh.InvalidValue, match="the first 8: the files must have as many, got 3"):
        fit(pa.table(GOOD), kh.Learner(kh.Greedy(), intercept=True))


def test_a_table_without_rewards_needs_dim() -> None:
    empty = changed("reward", pa.array([None] * 3, pa.float64()))
    with pytest.raises(kh.InvalidValue, match=r"dim must be given.*no row of these files"):
        fit(empty)
    bandit = fit(empty, dim=2)
    assert bandit.counts == {"A": 0, "B": 0}
    assert (
        bandit.posterior.precision.tolist()
        == kh.Posterior(n_parameters=2, dim=2).precision.tolist()
    )
    assert fit(pa.table(GOOD).slice(0, 0), dim=2).counts == {"A": 0, "B": 0}
