"""Which format a file has, and where a log may come from."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keyhole as kh
from keyhole.errors import install_line
from keyhole.evaluation import Logged, formats, write_log
from keyhole.evaluation.formats import FORMATS
from tests.logs import random_columns, small


def test_a_file_is_recognised_by_its_content(tmp_path: Path) -> None:
    """Names of files do not matter."""
    log = Logged(**{name: one for name, one in random_columns(40).items() if name != "mean"})
    for kind in ("dsjson", "cb", "open-bandit", "frame"):
        path = tmp_path / kind
        write_log(log, path, kind)
        again = Logged.of(path)
        np.testing.assert_array_equal(again.reward, log.reward, err_msg=kind)
        np.testing.assert_array_equal(again.probability, log.probability, err_msg=kind)
        found = kh.evaluate(path, "uniform", min_size=0.0, check=False)
        if kind == "dsjson":
            named = kh.evaluate(path, "uniform", format=kind, min_size=0.0, check=False)
            assert found == named
            assert found.rows[0].value == pytest.approx(
                kh.evaluate(log, "uniform", min_size=0.0).rows[0].value
            )


def test_what_is_not_certain_is_told_with_what_was_tried(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("time,item,p\n1,2,3\n")
    with pytest.raises(kh.FileError) as caught:
        Logged.of(path)
    said = str(caught.value)
    assert f"the format of {path} is not certain, give format=..." in said
    for kind in dict.fromkeys(one.name for one in FORMATS.values()):
        assert f"not {kind!r}: " in said
    assert "no column 'arm'" in said
    for content in ("", "\n\n  \n"):
        path.write_text(content)
        with pytest.raises(kh.FileError, match=f"{path} is empty"):
            Logged.of(path)
    path.write_text('{"kind": "other"}\n')
    with pytest.raises(kh.FileError, match="its first lines have no field _label_cost"):
        Logged.of(path)
    with pytest.raises(kh.FileError, match="there is no such file"):
        Logged.of(tmp_path / "nowhere")
    with pytest.raises(kh.InvalidValue, match=r"format must be one of .*Did you mean dsjson"):
        Logged.of(path, format="dsjsn")
    (tmp_path / "empty").mkdir()
    with pytest.raises(kh.FileError, match="is a folder without files"):
        Logged.of(tmp_path / "empty")


def test_files_of_two_formats_are_refused(tmp_path: Path) -> None:
    write_log(small(), tmp_path / "1", "cb")
    write_log(small(), tmp_path / "2", "dsjson")
    with pytest.raises(kh.FileError, match=r"files must be of one format: .* of 'cb', .*'dsjson'"):
        Logged.of(tmp_path)


def test_sources_of_other_kinds_are_refused() -> None:
    for source in (3, [], [3], object()):
        with pytest.raises(kh.InvalidValue, match="log must be a Logged, a Log or its path"):
            Logged.of(source)
    for kind in ("dsjson", "cb", "keyhole"):
        with pytest.raises(kh.InvalidValue, match="log must be a path, or a list of paths"):
            Logged.of(3, format=kind)
    with pytest.raises(kh.InvalidValue, match="cannot be read as a table"):
        Logged.of(3, format="frame")
    with pytest.raises(kh.InvalidValue, match="format must be None for a Logged"):
        Logged.of(small(), format="cb")


def test_a_log_of_keyhole_is_one_file(tmp_path: Path) -> None:
    for name in ("1", "2"):
        bandit = kh.Bandit(kh.Greedy(), arms=2, dim=1, log=tmp_path / name, seed=1)
        bandit.learn(bandit.choose([1.0]), 1.0)
        assert bandit.log is not None
        bandit.log.close()
    assert Logged.of(tmp_path / "1").n_rounds == 1
    assert Logged.of(tmp_path / "1", format=formats.KeyholeLog()).n_rounds == 1
    with pytest.raises(kh.InvalidValue, match="one file of the format 'keyhole', got 2"):
        Logged.of(tmp_path)
    kh.Log(tmp_path / "1").to_parquet(tmp_path / "3")
    assert Logged.of(tmp_path / "3").n_rounds == 1


TOKENS = (
    b"nan",
    b"1e400",
    b"-1",
    b"null",
    b"[]",
    b"\xff",
    b"\n",
    b"\0",
    b'"',
    b",",
    b":",
    b"|",
    b"9" * 20,
)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with a byte or a word changed, put in or taken out, or cut off."""
    made = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        place, token = int(rng.integers(len(made))), TOKENS[rng.integers(len(TOKENS))]
        kind = rng.integers(4)
        if kind == 0:
            made[place] = int(rng.integers(256))
        elif kind == 1:
            made[place:place] = token
        elif kind == 2:
            made[place : place + len(token)] = token
        else:
            del made[place : place + int(rng.integers(1, 30))]
    return bytes(made[: int(rng.integers(1, len(made)))] if rng.random() < 0.1 else made)


@pytest.mark.parametrize("kind", ["dsjson", "cb", "open-bandit", "frame"])
def test_a_damaged_file_is_refused_or_read_and_nothing_else(kind: str, tmp_path: Path) -> None:
    log = Logged(**{name: one for name, one in random_columns(12).items() if name != "mean"})
    write_log(log, tmp_path / "whole", kind)
    content, rng = (tmp_path / "whole").read_bytes(), np.random.default_rng(1)
    refused = 0
    for _ in range(150):
        (tmp_path / "log").write_bytes(damaged(content, rng))
        try:
            Logged.of(tmp_path / "log", format=kind)
        except kh.KeyholeError:
            refused += 1
    assert refused > 75


MISSING = """
import sys
sys.modules["msgspec"] = sys.modules["pyarrow"] = None
import keyhole as kh
from pathlib import Path
Path("log.vw").write_text("1:-1:0.5 | a\\n2:0:0.5 | a\\n")
print(kh.evaluation.Logged.of("log.vw"))
Path("log.json").write_text('{"_label_cost": 1}')
for source in ("log.json", {"arm": [1]}):
    try:
        kh.evaluation.Logged.of(source, format="frame" if isinstance(source, dict) else None)
    except kh.MissingExtra as error:
        print(error)
"""


def test_a_missing_package_has_the_line_that_helps(tmp_path: Path) -> None:
    """Text of Vowpal Wabbit needs neither; nothing is imported before it is needed."""
    command = [sys.executable, "-c", MISSING]
    shown = subprocess.check_output(command, text=True, cwd=tmp_path).splitlines()
    line = install_line("logs")
    assert shown == [
        "Logged(2 rounds, 2 arms)",
        f"dsjson needs msgspec, which is not installed: {line}",
        f"a table needs pyarrow, which is not installed: {line}",
    ]


def test_candidates_are_checked() -> None:
    columns = random_columns(3)
    for name in ("mean", "probabilities"):
        del columns[name]
    every = np.ones((3, 4), bool)
    log = Logged(**columns, candidates=every)
    assert log.head(2).candidates.shape == (2, 4)
    lost = every.copy()
    lost[1, columns["chosen"][1]] = False
    for wrong, said in (
        (lost, r"candidates\[1, \d\] must be True, got False"),
        (every[:2], r"candidates must be True or False for each round and arm"),
        (every.astype(float), "got float64"),
    ):
        with pytest.raises(kh.InvalidValue, match=said):
            Logged(**columns, candidates=wrong)
    full = random_columns(3)
    fewer = every.copy()
    fewer[0, (full["chosen"][0] + 1) % 4] = False
    with pytest.raises(kh.InvalidValue, match=r"mean\[0, \d\] must be missing for no candidate"):
        Logged(**full, candidates=fewer)
    del full["mean"]
    with pytest.raises(kh.InvalidValue, match=r"probabilities\[0, \d\] must be 0 for no candidate"):
        Logged(**full, candidates=fewer)


def test_a_table_that_would_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(small(), tmp_path / "log", "dsjson")
    monkeypatch.setattr("keyhole.evaluation.formats.tables.MAX_BYTES", 40)
    with pytest.raises(kh.InvalidValue, match=r"3 rounds x 2 columns.*arms='numbers'"):
        Logged.of(tmp_path / "log")
