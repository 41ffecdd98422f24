"""The benchmark's own machinery: what it measures of Keyhole, and that its page says so."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from benchmarks import daemon, service, serving
from benchmarks.before import installs, measures, table, uses
from benchmarks.peers import limits, page, process, work
from benchmarks.peers.adapters import ADAPTERS
from benchmarks.peers.environments import PEERS, Peer
from benchmarks.replay import Replay

ROOT = Path(__file__).parents[2]


def ask(task: str, source: Path, adapter: str = "keyhole", seconds: str = "0.2") -> dict[str, Any]:
    given = (adapter, "keyhole", task, str(source), seconds)
    answer: dict[str, Any] = process.ask(Path(sys.executable), "peers.measure", *given)
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
    named = {adapter for peer in PEERS for adapter in peer.adapters}
    assert named | {"keyhole", "keyhole-logged", "keyhole-read"} == set(ADAPTERS)


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


def test_forms_of_a_round_are_at_least_the_winners() -> None:
    """One arm takes one form; many take at least one, and not more than there are arms."""
    assert limits.products_of(work.world(1, 3), 20) == 1.0
    assert 1.0 < limits.products_of(work.world(6, 3), 200) < 6.0


def test_a_measurement_that_hangs_or_fails_is_reported() -> None:
    python = Path(sys.executable)
    assert "KeyError" in process.ask(python, "peers.start", "nothing")["failed"]
    assert "longer than" in process.ask(python, "peers.start", "simulation", cap=0.01)["failed"]


def test_first_decision_of_a_process() -> None:
    answer = process.ask(Path(sys.executable), "peers.start", "decision", "keyhole-read", "keyhole")
    assert answer["seconds"] > 0
    assert 0 < answer["memory"] <= answer["peak"]


def test_rounds_are_replayed_from_the_first_again() -> None:
    observations, rewards = np.arange(10.0).reshape(5, 1, 2), np.arange(15.0).reshape(5, 3)
    world = Replay(observations, rewards)
    blocks = [world.sample(n) for n in (3, 2, 3)]
    assert np.array_equal(
        np.concatenate([b.rewards for b in blocks]), rewards[[0, 1, 2, 3, 4, 0, 1, 2]]
    )
    assert np.array_equal(blocks[1].observations, observations[3:])


@pytest.mark.parametrize("name", uses.USES)
def test_every_use_can_be_measured(name: str) -> None:
    call, count = uses.USES[name](4, 3)
    assert uses.rate(call, count, seconds=0.0) > 0


def test_measurements_have_names_of_their_own() -> None:
    every = measures.starts() + measures.rates(1.0, lambda cell: Path(measures.sized(cell)))
    assert len({one.name for one in every}) == len(every)
    assert set(measures.USES) == set(uses.USES)
    assert {field for one in every for field in one.fields} <= set(table.FIELDS)


def test_the_table_keeps_the_best_and_says_what_is_better(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert table.better({"rate": 1.0}, {"rate": 2.0}) == {"rate": 2.0}
    assert table.better({"seconds": 1.0}, {"seconds": 2.0}) == {"seconds": 1.0}
    assert table.better({"failed": "why"}, {"rate": 2.0}) == {"rate": 2.0}
    table.show(
        {
            "online/5x10": {"before": {"rate": 10.0}, "now": {"rate": 40.0}},
            "online-read/5x10": {"before": {"rate": 5.0}, "now": {"failed": "why"}},
            "first-decision/cold": {"before": {"seconds": 20.0}, "now": {"seconds": 0.5}},
        }
    )
    said = capsys.readouterr().out
    assert "4.00\n" in said
    assert "40.00\n" in said
    assert "50.0%" in said
    assert "not measured: online-read/5x10, now: why" in said


def test_the_working_tree_is_named_without_touching_the_index() -> None:
    before = installs.git("diff", "--cached", "--stat")
    tree = installs.working_tree()
    assert tree == installs.working_tree()
    assert "setup.py" in installs.git("ls-tree", "--name-only", tree)
    assert installs.git("diff", "--cached", "--stat") == before


def test_the_service_is_measured() -> None:
    """Rows of starts and estimates, and what wrk sends to both servers; wrk itself is not here."""
    [replay, first] = service.starts(500, 1)
    assert float(replay["ratio"]) > 0.0
    assert first["service"].endswith(" s")
    [error, *_] = service.estimates(2_000, 500)
    assert float(error["ratio"]) > 0.0
    given = {"event_id": "e-1", "context": service.CONTEXT}
    answers = {}
    for kind in ("echo", "OFF"):
        with serving.server(kind) as url:
            answers[kind] = httpx.post(f"{url}/v1/loops/home/decide", json=given).json()
    assert answers["echo"] == given
    assert answers["OFF"]["action"] in serving.LOOP["arms"]
    [unit, *_] = units = service.recorded(3)
    assert (len(units), len(unit.rows), len(unit.events)) == (3, 1, 1)
    assert service.bare_commits(units, 2) > 0.0
    assert service.single_commit(units) > 0.0
    assert daemon.EXAMPLE.count(b"|a ") == len(serving.LOOP["arms"])
