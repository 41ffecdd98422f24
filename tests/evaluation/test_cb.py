"""Vowpal Wabbit's text: lines by hand, rounds of several lines, round trips and errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.evaluation import Logged, write_log
from keyhole.evaluation.formats import Cb
from tests.logs import online_columns, small

ADF = """shared |user age:41
|item red
0:-1:0.25 |item blue
|item green

shared |user age:35
1:0.5:0.5 'tag|item red
| item:2

"""


def log_of(tmp_path: Path, text: str, **settings: Any) -> Logged:
    path = tmp_path / "log.vw"
    path.write_text(text)
    return Logged.of(path, format=Cb(**settings) if settings else None)


def test_lines_by_hand(tmp_path: Path) -> None:
    log = log_of(tmp_path, "1:2:0.4 | a c\n3:0.5:0.2 | b d\n4:1.2:0.5 | a b c\n2:-1:0.3 |\n")
    assert log.arms == (1, 2, 3, 4)
    assert log.chosen.tolist() == [0, 2, 3, 1]
    assert log.reward.tolist() == [-2.0, -0.5, -1.2, 1.0]
    assert log.probability.tolist() == [0.4, 0.2, 0.5, 0.3]
    assert log.probabilities is None
    assert log.observation is None
    assert log.candidates.all()
    named = log_of(tmp_path, "1:2:0.4 | a\n3:0.5:0.2 | b\n", arms=["A", "B", "C", "D"])
    assert (named.arms, named.chosen.tolist()) == (("A", "B", "C", "D"), [0, 2])
    with pytest.raises(kh.UnknownArm, match=r"line 2 of .*: action must be at most 2, .* got 3"):
        log_of(tmp_path, "1:2:0.4 | a\n3:0.5:0.2 | b\n", arms=["A", "B"])


def test_the_value_of_an_arm_by_hand(tmp_path: Path) -> None:
    log_of(tmp_path, "1:-2:0.4 | a\n2:-1:0.5 | a\n1:-3:0.8 | a\n")
    always = kh.evaluation.FixedArm(1)
    found = kh.evaluate(tmp_path / "log.vw", always, estimator="ips", min_size=0.0, check=False)
    assert found.rows[0].value == pytest.approx((2 / 0.4 + 3 / 0.8) / 3)


def test_numbers_behind_a_label_are_further_candidates(tmp_path: Path) -> None:
    log = log_of(tmp_path, "1:2:0.4 3 |\n2:1:0.5 'tag |\n3:1:0.5 1 2 tag|\n")
    expected = [[True, False, True], [True, True, True], [True, True, True]]
    assert log.candidates.tolist() == expected


def test_rounds_of_several_lines(tmp_path: Path) -> None:
    """Actions are named by their places; the number in the label does not matter."""
    log = log_of(tmp_path, ADF)
    assert log.arms == (1, 2, 3)
    assert log.chosen.tolist() == [1, 0]
    assert log.reward.tolist() == [1.0, -0.5]
    assert log.candidates.tolist() == [[True, True, True], [True, True, False]]
    assert log.observation is not None
    assert log.observation[:, 0, 0].tolist() == [41.0, 35.0]
    alone = log_of(tmp_path, "| a\n0:1:0.5 | b\n\n0:1:0.5 | a\n| b")
    assert alone.chosen.tolist() == [1, 0]


def test_rounds_end_with_their_file(tmp_path: Path) -> None:
    for name in ("1.vw", "2.vw"):
        (tmp_path / name).write_text(ADF.rstrip("\n"))
    assert Logged.of(tmp_path).chosen.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("text", [ADF * 5, "1:2:0.4 |y a:1 b:2\n2:1:0.5 |y a:0.5 b:-1e3\n" * 9])
def test_lines_across_blocks(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = log_of(tmp_path, text)
    monkeypatch.setattr("keyhole.evaluation.formats.sources.BLOCK", 50)
    parts = log_of(tmp_path, text)
    for name in ("chosen", "reward", "probability", "observation", "candidates"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name), err_msg=name)


FEATURES: list[tuple[str, str, list[list[float]] | None]] = [
    ("|y a:1 b:2", "|y a:3 b:4", [[1.0, 2.0], [3.0, 4.0]]),
    ("|y a:1 b:2", "|y b:4   a:3 ", [[1.0, 2.0], [3.0, 4.0]]),
    ("|y a:1 |z a:2", "|y a:3 |z a:4", [[1.0, 2.0], [3.0, 4.0]]),
    ("|y:2 a:1", "|y a:3", [[2.0], [3.0]]),
    ("| a b:2", "| a b:4", [[1.0, 2.0], [1.0, 4.0]]),
    ("|y a:1", "|z a:1", None),
    ("|y a:1", "|y a:1 b:1", None),
    ("|y a:1 b:1", "|y a:1", None),
    ("|y a:1 a:2", "|y a:1 a:2", None),
    ("|y a:1", "|y a:nan", None),
    ("|y a:x", "|y a:y", None),
    ("|", "|", None),
]


@pytest.mark.parametrize(("first", "second", "expected"), FEATURES)
def test_features_are_the_observation_where_they_are_vectors(
    first: str, second: str, expected: list[list[float]] | None, tmp_path: Path
) -> None:
    log = log_of(tmp_path, f"1:2:0.4 {first}\n2:1:0.5 {second}\n")
    found = None if log.observation is None else log.observation[:, 0].tolist()
    assert found == expected


WRONG = [
    ("1:2:0 | a", "line 2 of .*: probability must be above 0 and at most 1, got 0"),
    ("1:2:nan | a", "line 2 of .*: probability must be above 0 and at most 1, got nan"),
    ("1:2:1.5 | a", "line 2 of .*: probability must be above 0 and at most 1, got 1.5"),
    ("1:x:0.5 | a", "line 2 of .*: cost must be a number, got x"),
    ("1:inf:0.5 | a", "line 2 of .*: cost must be a number, got inf"),
    ("0:1:0.5 | a", "line 2 of .*: action must be from 1 to 1,000,000, got 0"),
    ("-1:1:0.5 | a", "line 2 of .*: action must be a whole number from 1, got -1"),
    ("1:1 | a", "line 2 of .*: the label must be action:cost:probability, got 1:1"),
    ("1:1:0.5 2:1:0.5 | a", "line 2 of .*: one action has a cost, got 2"),
    ("1:1:0.5 x | a", "line 2 of .*: action must be a whole number from 1, got x"),
    ("1:1:0.5 \n2 x| a", "line 2 of .*: | must stand between"),
    ("1:1:0.5| a", "line 2 of .*: a space must stand between 1:1:0.5 and |"),
    ("1:1:0.5 a", "line 2 of .*: | must stand between label and features"),
    ('{"_label_cost": 1}', "line 2 of .*: | must stand between label and features"),
]


@pytest.mark.parametrize(("line", "message"), WRONG)
def test_an_error_names_the_line_and_the_field(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(kh.FileError, match=message):
        log_of(tmp_path, f"1:2:0.4 | a\n{line}\n1:2:0.4 | a\n")


def test_errors_of_rounds_of_several_lines(tmp_path: Path) -> None:
    with pytest.raises(kh.UnknownArm, match=r"line 3 of .*: action must be at most 2, .* got 3"):
        log_of(tmp_path, ADF, arms=["A", "B"])
    (tmp_path / "log.vw").write_text("\n \n")
    with pytest.raises(kh.FileError, match="has no decisions"):
        Logged.of(tmp_path / "log.vw", format="cb")
    with pytest.raises(
        kh.FileError, match=r"line 1 of .*one action of the round must have a label"
    ):
        log_of(tmp_path, "shared | a\n| b\n| c\n\n" + ADF)
    with pytest.raises(kh.FileError, match=r"line 3 of .*: one action of a round has a label"):
        log_of(tmp_path, "shared | a\n0:1:0.5 | b\n0:1:0.5 | c\n")
    with pytest.raises(kh.FileError, match=r"line 3 of .*: shared must be the first line"):
        log_of(tmp_path, "shared | a\n0:1:0.5 | b\nshared | c\n")


def test_a_log_written_and_read_is_the_same(tmp_path: Path) -> None:
    log = Logged(**{**online_columns(kh.ThompsonSampling(v=1.0)), "arms": (1, 2, 3)})
    path = tmp_path / "log.vw"
    assert write_log(log, path, "cb") == log.n_rounds
    again = Logged.of(path)
    for name in ("chosen", "probability", "reward", "observation", "candidates"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name), err_msg=name)
    assert again.arms == log.arms
    with pytest.raises(kh.InvalidValue, match=r"reward\[0\] must be a number.*log.head\(0\)"):
        write_log(
            {"arms": [1], "chosen": [0], "probability": [1.0], "reward": [float("nan")]},
            path,
            "cb",
        )
    assert Logged.of(path).n_rounds == log.n_rounds  # the file is as it was


def test_candidates_are_written(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "arms": (1, 2, 3),
        "chosen": [0, 2],
        "probability": [0.5, 0.25],
        "reward": [1.0, 0.0],
        "candidates": [[True, True, True], [False, True, True]],
    }
    write_log(columns, tmp_path / "log.vw", "cb")
    assert (tmp_path / "log.vw").read_text() == "1:-1.0:0.5 |\n3:0.0:0.25 2 |\n"
    assert Logged.of(tmp_path / "log.vw").candidates.tolist() == columns["candidates"]
    alone = {**columns, "candidates": [[True, True, True], [False, False, True]]}
    with pytest.raises(kh.InvalidValue, match=r"candidates\[1\] must be two or more"):
        write_log(alone, tmp_path / "log.vw", "cb")
    with pytest.raises(kh.InvalidValue, match="one row for all arms in the format 'cb'"):
        write_log({**columns, "observation": np.ones((2, 3, 1))}, tmp_path / "log.vw", "cb")
    assert write_log(small(), tmp_path / "log.vw", "cb") == 3
