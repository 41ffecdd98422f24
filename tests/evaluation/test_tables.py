"""Frames, Open Bandit and obp: round trips, values by hand, and errors that name column and row."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, ipc, parquet

import keyhole as kh
from keyhole.evaluation import Logged, to_arrow, to_obp, write_log
from keyhole.evaluation.formats import Frame, OpenBandit
from tests.logs import online_columns, random_columns, small

NAN = float("nan")
ALL = (
    *("arms", "chosen", "probability", "reward", "mean", "width", "optimism", "dispersion"),
    *("epsilon", "probabilities", "observation", "sharing", "prior_precision", "candidates"),
)
NAMES = Frame(
    arm="item",
    probability="p",
    reward="clicked",
    probabilities={"A": "p_A", "B": "p_B"},
    observation=["x", "y"],
)


def assert_same(one: Logged, other: Logged, names: tuple[str, ...] = ALL) -> None:
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def frame(**changes: Any) -> pd.DataFrame:
    """Three rounds with a column for each arm's probability."""
    columns = {
        "item": ["B", "A", "B"],
        "p": [0.25, 0.5, 1.0],
        "clicked": [1, 0, 1],
        "p_A": [0.75, 0.5, 0.0],
        "p_B": [0.25, 0.5, 1.0],
        "x": [1.0, 2.0, 3.0],
        "y": [0, 1, 2],
    }
    return pd.DataFrame({**columns, **changes})


LOGS = [
    {**online_columns(kh.ThompsonSampling(v=1.0, sharing="shared")), "arms": ("A", "B", "C")},
    online_columns(kh.EpsilonGreedy(0.2)),
    random_columns(50),
    {**random_columns(3, 2), "observation": np.arange(12.0).reshape(3, 2, 2)},
]


@pytest.mark.parametrize("columns", LOGS)
@pytest.mark.parametrize("name", ["log.parquet", "log.arrow"])
def test_a_table_loses_nothing(columns: Any, name: str, tmp_path: Path) -> None:
    log = Logged(**columns)
    assert write_log(log, tmp_path / name, "frame") == log.n_rounds
    assert_same(Logged.of(tmp_path / name), log)
    assert_same(Logged.of(to_arrow(log)), log)


def test_a_log_of_a_bandit_loses_nothing_as_a_table(tmp_path: Path) -> None:
    bandit = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=2, seed=1, log=tmp_path / "l")
    rng = np.random.default_rng(1)
    for _ in range(30):
        bandit.learn(bandit.choose(rng.normal(size=2)), float(rng.normal()))
    for kind in ("frame", "dsjson", "cb"):
        write_log(tmp_path / "l", tmp_path / kind, kind)
        assert_same(
            Logged.of(tmp_path / kind, format=kind),
            Logged.of(bandit.log),
            ALL if kind == "frame" else ("chosen", "probability", "reward", "observation"),
        )


def test_frames_with_names(tmp_path: Path) -> None:
    """Of pandas, polars and pyarrow, a stream, and files: all give the same."""
    given = frame()
    table = pa.Table.from_pandas(given)
    parquet.write_table(table, tmp_path / "log.parquet")
    csv.write_csv(table, tmp_path / "log.csv")
    with ipc.new_stream(str(tmp_path / "log.arrows"), table.schema) as stream:
        stream.write_table(table)
    sources = [given, pl.DataFrame(given), table, table.to_reader(max_chunksize=2)]
    sources += [str(tmp_path / f"log.{end}") for end in ("parquet", "csv", "arrows")]
    sources += [frame(item=pd.Categorical(["B", "A", "B"]))]
    for source in sources:
        log = Logged.of(source, format=NAMES)
        assert (log.arms, log.chosen.tolist()) == (("A", "B"), [1, 0, 1])
        assert log.reward.tolist() == [1.0, 0.0, 1.0]
        assert log.probabilities is not None
        assert log.probabilities.tolist() == [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]]
        assert log.observation is not None
        assert log.observation[:, 0].tolist() == [[1.0, 0.0], [2.0, 1.0], [3.0, 2.0]]
    twice = Logged.of([tmp_path / "log.parquet", tmp_path / "log.csv"], format=NAMES)
    assert twice.n_rounds == 6


def test_the_usual_names_need_no_format(tmp_path: Path) -> None:
    given = pd.DataFrame({"arm": [3, 1], "probability": [0.5, 0.5], "reward": [1.0, None]})
    given.to_csv(tmp_path / "log.csv", index=False)
    for source in (given, tmp_path / "log.csv"):
        log = Logged.of(source)
        assert (log.arms, log.chosen.tolist(), log.n_rewarded) == ((1, 3), [1, 0], 1)


def test_lists_by_arm() -> None:
    given = frame(all=[[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]], q=[[0.1, 0.2]] * 3)
    names = {"arm": "item", "probability": "p", "reward": "clicked"}
    log = Logged.of(given, format=Frame(**names, arms=["A", "B"], probabilities="all", mean="q"))
    assert log.probabilities is not None
    assert log.probabilities[0].tolist() == [0.75, 0.25]
    assert log.mean is not None
    assert log.mean[0].tolist() == [0.1, 0.2]
    with pytest.raises(kh.InvalidValue, match="arms must be given, in the order of the lists"):
        Logged.of(given, format=Frame(**names, probabilities="all"))
    turned = Logged.of(given, format=Frame(**names, arms=["B", "A"]))
    assert (turned.arms, turned.chosen.tolist()) == (("B", "A"), [0, 1, 0])
    short = frame(all=[[0.75, 0.25], [0.5], [0.0, 1.0]])
    with pytest.raises(kh.InvalidValue, match="column 'all', row 1 must be 2 entries long"):
        Logged.of(short, format=Frame(**names, arms=["A", "B"], probabilities="all"))
    with pytest.raises(kh.InvalidValue, match="column 'all' must have lists of 3 numbers"):
        Logged.of(given, format=Frame(**names, arms=["A", "B", "C"], probabilities="all"))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"p": [0.25, 0.0, 1.0]}, "column 'p', row 1 must be above 0 and at most 1, got 0"),
    ({"p": [0.25, NAN, 1.0]}, "column 'p', row 1 must be above 0 and at most 1, got nan"),
    ({"p": [0.25, 0.5, 1.5]}, "column 'p', row 2 must be above 0 and at most 1, got 1.5"),
    ({"p": ["0.25", "x", "1"]}, "column 'p', row 1 with 'x' must be numbers, got "),
    ({"item": ["B", "C", "B"]}, r"column 'item', row 1 must be one of the arms .* got 'C'"),
    ({"item": ["B", None, "B"]}, "column 'item', row 1 must be the name of an arm, got null"),
    ({"item": [1.0, 1.5, 1.0]}, "column 'item', row 1 must be a whole number, got 1.5"),
    ({"clicked": [1.0, float("inf"), 0.0]}, "column 'clicked', row 1 must be finite, got inf"),
    ({"p_A": [0.75, 1.2, 0.0]}, "column 'p_A', row 1 must be from 0 to 1, got 1.2"),
    ({"p_A": [0.75, 0.6, 0.0]}, r"probabilities\[1\] must add up to 1, got 1.1"),
    ({"x": ["a", "b", "c"]}, "column 'x', row 0 with 'a' must be numbers"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_an_error_names_the_column_and_the_row(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        Logged.of(frame(**change), format=NAMES)
    path = tmp_path / "log.parquet"
    frame(**change).to_parquet(path)
    with pytest.raises((kh.FileError, kh.InvalidValue), match=message):
        Logged.of(path, format=NAMES)


def test_columns_of_other_types(tmp_path: Path) -> None:
    names = {"arm": "item", "probability": "p", "reward": "clicked"}
    numbers = Logged.of(frame(item=[2.0, 1.0, 2.0], clicked=[None] * 3), format=Frame(**names))
    assert (numbers.arms, numbers.n_rewarded) == ((1, 2), 0)
    lists = Frame(**names, arms=["A", "B"], probabilities="all")
    for wrong, message in (
        ({"all": [[0.75, 0.25], None, [0.0, 1.0]]}, "column 'all', row 1 must be a list, got null"),
        ({"all": [1.0, 2.0, 3.0]}, "column 'all' must have lists of 2 numbers"),
        ({"all": [["a"]] * 3}, "column 'all', row 0 with 'a' must be numbers"),
        ({"item": [[1], [2], [3]]}, "column 'item' must be texts or whole numbers, got list"),
        ({"p": [{"a": 1}] * 3}, "column 'p' must be numbers, got struct"),
    ):
        with pytest.raises(kh.InvalidValue, match=message):
            Logged.of(frame(**{"all": [[0.5, 0.5]] * 3, **wrong}), format=lists)
    with pytest.raises(kh.InvalidValue, match="mean must be one of A, got 'B'"):
        Logged.of(frame(), format=Frame(**names, arms=["A", "B"], mean={"A": "x"}))
    with pytest.raises(kh.InvalidValue, match="arms must be all texts or all whole numbers"):
        to_arrow({"arms": ["A", 1], "chosen": [0], "probability": [1.0], "reward": [1.0]})
    for name, item in (("1.parquet", ["A"]), ("2.parquet", [[1]])):
        pd.DataFrame({"arm": item, "probability": [1.0], "reward": [1]}).to_parquet(tmp_path / name)
    with pytest.raises(kh.FileError, match="columns must have one type in all files"):
        Logged.of(tmp_path)


def test_a_mapping_of_columns_and_a_single_number(tmp_path: Path) -> None:
    columns = {"arm": ["B", "A"], "probability": [0.5, 0.5], "reward": [1, 0], "age": [41, 35]}
    log = Logged.of(columns, format=Frame(observation="age"))
    assert log.observation is not None
    assert log.observation[:, 0].tolist() == [[41.0], [35.0]]
    with pytest.raises(kh.InvalidValue, match=r"path must end in .parquet, .* got '.*log.csv'"):
        write_log(log, tmp_path / "log.csv", "frame")
    assert not list(tmp_path.iterdir())


def test_a_missing_column_is_told_with_the_names_to_give(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    frame().to_parquet(path)
    with pytest.raises(kh.FileError, match=r"a column 'arm', got \['item', .*Frame\(arm=\.\.\.,"):
        Logged.of(path)
    with pytest.raises(kh.InvalidValue, match="a column 'z', got 'item', 'p'"):
        Logged.of(frame(), format=Frame(**{**vars(NAMES), "observation": ["z"]}))
    with pytest.raises(kh.InvalidValue, match="probability must be the name of a column, got 3"):
        Frame(probability=3)  # type: ignore[arg-type]
    with pytest.raises(kh.InvalidValue, match="mean must be a column of lists, or a mapping"):
        Frame(mean=3)  # type: ignore[arg-type]


def test_damaged_tables(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    write_log(small(), path, "frame")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(kh.FileError, match=f"{path} is no whole Parquet or Arrow file"):
        Logged.of(path)
    write_log(small(), tmp_path / "log.arrow", "frame")
    content = (tmp_path / "log.arrow").read_bytes()
    (tmp_path / "log.arrow").write_bytes(content[:-40])
    with pytest.raises(kh.FileError, match="is no whole Parquet or Arrow file"):
        Logged.of(tmp_path / "log.arrow")
    lines = "arm,probability,reward\nA,0.5,1\nB,0.5,0\n"
    table = tmp_path / "log.csv"
    table.write_bytes(lines.encode() + b"\xe9,0.5,1\n")
    with pytest.raises(kh.FileError, match=f"line 4 of {table} is not UTF-8: byte 0xe9"):
        Logged.of(table)
    table.write_text(lines + "A,0.5,1,7\n")
    with pytest.raises(kh.FileError, match=r"cannot be read as CSV: .*Row #4: Expected 3 columns"):
        Logged.of(table)
    table.write_text("arm,probability,reward\n")
    with pytest.raises(kh.FileError, match="has no rows"):
        Logged.of(table)
    (tmp_path / "other.csv").write_text("arm,probability,click\nA,0.5,1\n")
    table.write_text(lines)
    with pytest.raises(kh.FileError, match="files must have the same columns"):
        Logged.of([table, tmp_path / "other.csv"], format="frame")
    broken = to_arrow(small()).replace_schema_metadata({b"keyhole.columns": b"{}"})
    with pytest.raises(kh.InvalidValue, match="the metadata of Keyhole are damaged"):
        Logged.of(broken)
    with pytest.raises(kh.InvalidValue, match="one or more rows, got none"):
        Logged.of(frame()[:0], format=NAMES)


# -- Open Bandit ----------------------------------------------------------------------------------


def bandit_csv(tmp_path: Path, *rows: str, affinity: bool = True) -> Path:
    names = "," + "timestamp,item_id,position,click,propensity_score,user_feature_0"
    names += ",user-item_affinity_0,user-item_affinity_1,user-item_affinity_2" if affinity else ""
    path = tmp_path / "bandit.csv"
    path.write_text("\n".join([names, *rows]) + "\n")
    return path


ROWS = (
    "0,2019-11-24 00:00:02.5+00:00,2,1,1,0.25,cef3,0.0,1.5,2.0",
    "1,2019-11-24 00:00:01.5+00:00,0,3,0,0.5,cef3,0.0,0.0,0.5",
    "2,2019-11-24 00:00:03.5+00:00,1,1,0,0.125,2d03,1.0,0.0,0.0",
)


def test_open_bandit_by_hand(tmp_path: Path) -> None:
    path = bandit_csv(tmp_path, *ROWS)
    log = Logged.of(path)
    assert log.arms == (0, 1, 2)
    assert log.chosen.tolist() == [0, 2, 1]  # in the order of time
    assert log.reward.tolist() == [0.0, 1.0, 0.0]
    assert log.probability.tolist() == [0.5, 0.25, 0.125]
    assert log.observation is not None
    assert log.observation[1, :, 0].tolist() == [0.0, 1.5, 2.0]
    first = Logged.of(path, format=OpenBandit(position=1))
    assert first.chosen.tolist() == [2, 1]
    in_memory = Logged.of(pd.read_csv(path, index_col=0), format="open-bandit")
    assert_same(in_memory, log)
    assert Logged.of(path, format=OpenBandit(n_items=5)).n_arms == 5
    path.write_text(path.read_text().replace("affinity_1", "affinity_7"))
    with pytest.raises(kh.FileError, match="a column 'user-item_affinity_1' beside"):
        Logged.of(path)
    few = [row.rsplit(",", 3)[0] for row in ROWS]
    assert Logged.of(bandit_csv(tmp_path, *few, affinity=False)).observation is None


WRONG_ROWS = [
    (5, "0", "column 'propensity_score', row 2 must be above 0 and at most 1, got 0"),
    (5, "", "column 'propensity_score', row 2 must be above 0 and at most 1, got nan"),
    (5, "2", "column 'propensity_score', row 2 must be above 0 and at most 1, got 2"),
    (4, "", "column 'click', row 2 must be a number, got nan"),
    (2, "3", "column 'item_id', row 2 must be from 0 to 2, got 3"),
    (2, "-1", "column 'item_id', row 2 must be from 0 to 2, got -1"),
    (2, "1.5", "column 'item_id', row 2 must be a whole number, got 1.5"),
    (3, "0", "column 'position', row 2 must be at least 1, got 0"),
    (7, "x", "column 'user-item_affinity_0', row 2 with 'x' must be numbers"),
    (1, "", "column 'timestamp', row 2 must be a time, got null"),
]


@pytest.mark.parametrize(("column", "value", "message"), WRONG_ROWS)
def test_an_error_names_column_and_row_of_open_bandit(
    column: int, value: str, message: str, tmp_path: Path
) -> None:
    cells = ROWS[2].split(",")
    cells[column] = value
    path = bandit_csv(tmp_path, *ROWS[:2], ",".join(cells))
    with pytest.raises((kh.FileError, kh.UnknownArm), match=f"{path}: {message}"):
        Logged.of(path)


def test_open_bandit_written_and_read_is_the_same(tmp_path: Path) -> None:
    columns = random_columns(200)
    del columns["mean"]
    columns |= {"arms": range(4), "observation": np.random.default_rng(1).random((200, 4, 1))}
    log = Logged(**columns)
    write_log(log, tmp_path / "log.csv", "open-bandit")
    again = Logged.of(tmp_path / "log.csv")
    assert_same(again, log, ("arms", "chosen", "probability", "reward", "observation"))
    one = {**columns, "probabilities": None, "candidates": np.ones((200, 4), bool)}
    one["candidates"][1, (log.chosen[1] + 1) % 4] = False
    with pytest.raises(kh.InvalidValue, match=r"candidates\[1\] must be all arms"):
        write_log(one, tmp_path / "log.csv", "open-bandit")
    with pytest.raises(kh.FileError, match="column 'position' must be 7 in some row, got none"):
        Logged.of(tmp_path / "log.csv", format=OpenBandit(position=7))


# -- obp ------------------------------------------------------------------------------------------


def feedback(**changes: Any) -> dict[str, Any]:
    usual = {
        "n_rounds": 3,
        "n_actions": 2,
        "context": np.array([[1.0], [2.0], [3.0]]),
        "action_context": np.eye(2),
        "action": np.array([1, 0, 1]),
        "position": np.array([0, 1, 0]),
        "reward": np.array([1, 0, 1]),
        "pscore": np.array([0.25, 0.5, 1.0]),
    }
    return {**usual, **changes}


def test_the_dictionary_of_obp() -> None:
    log = Logged.of(feedback())
    assert (log.arms, log.chosen.tolist()) == ((0, 1), [1, 0, 1])
    assert log.observation is not None
    assert log.observation[:, 0, 0].tolist() == [1.0, 2.0, 3.0]
    # Each round takes the probabilities of its own position.
    pi_b = np.zeros((3, 2, 2))
    pi_b[[0, 2], :, 0] = [[0.75, 0.25], [0.0, 1.0]]
    pi_b[1, :, 1] = [0.5, 0.5]
    pi_b[1, :, 0] = [0.5, 0.5]
    first = Logged.of(feedback(pi_b=pi_b[:, :, :1], position=None, context=None))
    assert first.observation is None
    full = Logged.of(feedback(pi_b=pi_b))
    assert full.probabilities is not None
    assert full.probabilities.tolist() == [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_rounds": -3}, "n_rounds must be a whole number of at least 1, got -3"),
        ({"n_actions": 0}, "n_actions must be a whole number of at least 1, got 0"),
        ({"pscore": None}, "log must have 'pscore' for obp"),
        ({"pscore": [0.25, 0.0, 1.0]}, r"pscore\[1\] must be above 0 and at most 1, got 0"),
        ({"pscore": [0.25, NAN, 1.0]}, r"pscore\[1\] must be above 0 and at most 1, got nan"),
        ({"action": [1, 2, 0]}, r"action\[1\] must be from 0 to 1, got 2"),
        ({"action": [1.0, 0.0, 0.0]}, "action must be 3 whole numbers, got float64"),
        ({"reward": [1.0]}, r"reward must have shape \(3,\), that of n_rounds"),
        ({"pi_b": np.ones((3, 2))}, r"pi_b must have shape \(3, 2, positions\)"),
        ({"position": [0, 5, 0], "pi_b": np.full((3, 2, 1), 0.5)}, r"position\[1\] must be from 0"),
    ],
)
def test_an_error_names_the_key_and_the_row(change: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        Logged.of(feedback(**change), format="obp")


def test_the_dictionary_of_obp_written_and_read_is_the_same() -> None:
    columns = {**online_columns(kh.ThompsonSampling(v=1.0))}
    log = Logged(**columns)
    again = Logged.of(to_obp(log))
    assert_same(again, log, ("arms", "chosen", "probability", "reward", "observation"))
    assert log.propensity is not None
    assert again.probabilities is not None
    np.testing.assert_array_equal(again.probabilities, log.propensity)
    with pytest.raises(kh.InvalidValue, match="obp's dictionary has no missing rewards"):
        to_obp({**columns, "reward": np.full(200, NAN)})
    with pytest.raises(kh.InvalidValue, match=r"to_obp\(log\) returns the dictionary"):
        write_log(log, "nowhere", "obp")
    with pytest.raises(kh.InvalidValue, match="log must be obp's dictionary, got 3"):
        Logged.of(3, format="obp")
