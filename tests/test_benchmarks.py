"""The benchmark's own machinery: what it measures of Keyhole, and that its page says so."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.peers import limits, page, work
from benchmarks.peers.environments import PEERS, Peer

ROOT = Path(__file__).parent.parent
MEASURE = ROOT / "benchmarks" / "peers" / "measure.py"


def ask(task: str, source: Path, adapter: str = "keyhole", seconds: str = "0.2") -> dict[str, Any]:
    command = [sys.executable, str(MEASURE), adapter, "keyhole", task, str(source), seconds]
    answer: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return answer


def test_frequencies_agree_with_exact_probabilities(tmp_path: Path) -> None:
    """And those of a precision taken for a covariance do not."""
    given, exact = work.histories()
    answer = ask("exact", work.save(tmp_path, "history", given))
    found = {"exact": {"keyhole": answer}, "exact_probabilities": exact}
    assert page.judge(found, "keyhole")["exact"]
    wrong = [np.roll(counts, 1).tolist() for counts in answer["counts"]]
    found = {"exact": {"keyhole": {"counts": wrong}}, "exact_probabilities": exact}
    assert not page.judge(found, "keyhole")["exact"]


def test_speed_and_regret_of_keyhole(tmp_path: Path) -> None:
    source = work.save(tmp_path, "stream", work.stream(3, 4, 3000))
    fast = ask("speed", source)
    assert fast["rate"] > 0
    assert fast["rounds"] > 10
    assert fast["memory"] >= 0
    made = work.stream(3, 4, 400)
    stacked = {key: value[None] for key, value in made.items()}
    regret = ask("regret", work.save(tmp_path, "replications", stacked), "keyhole-logged")
    best, mean = made["values"].max(axis=1).mean(), made["values"].mean()
    assert 0 < regret["regret"][0] < 0.7 * (best - mean)  # clearly better than any arm at random


def test_a_peer_that_cannot_be_installed_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.peers.environments.HOME", tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        Peer("nobody", "nobody", str(tmp_path / "no-such-folder")).install()


def test_every_peer_has_its_adapters() -> None:
    sys.path.insert(0, str(MEASURE.parent))
    try:
        from adapters import ADAPTERS  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    named = {adapter for peer in PEERS for adapter in peer.adapters}
    assert named | {"keyhole", "keyhole-logged"} == set(ADAPTERS)


def test_the_page_is_made_of_the_data_beside_it(tmp_path: Path) -> None:
    found = json.loads((ROOT / "docs" / "benchmarks.json").read_text())
    page.write(found, tmp_path)
    assert (tmp_path / "benchmarks.md").read_text() == (ROOT / "docs" / "benchmarks.md").read_text()
    assert (tmp_path / "figures" / "benchmarks.svg").stat().st_size > 10_000


def test_the_floor_of_a_round_by_hand() -> None:
    """Unit costs: the counts themselves, for 2 arms of dimension 3 and three forms a round."""
    unit = limits.Machine(*[1.0] * len(limits.Machine._fields))
    least = limits.floor(work.world(2, 3), unit, products=3.0)
    assert least.normals == 3 + 2 + 4
    assert least.arithmetic == 3 + 6 + 4 + 6 + (9 + 2 * 4.5) + 9
    assert least.memory == 8 * (6 + 3 * 4.5)
    assert least.total == least.normals + least.memory
