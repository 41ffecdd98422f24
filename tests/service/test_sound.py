"""What a service does leaves a log that proves it: memory, replay and every start agree.

Each case was once a folder that `verify` refused, or an answer that did not follow from the log.
"""

import json
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Posterior
from keyhole.errors import AlreadyLearned, FileError
from keyhole.service import (
    Action,
    Conflict,
    DecideRequest,
    KeyFile,
    Loop,
    Service,
    archived,
    compact,
    compacting,
    events,
    export,
    loading,
    replay,
    verify,
)
from keyhole.service.learning import LoopLearning
from keyhole.service.packing import digest

PLAIN: dict[str, Any] = {"arms": ["A", "B"], "dim": 2}
NAMED: dict[str, Any] = {"arms": ["A", "B"], "features": {"numbers": ["a", "b"]}}
GROWS: dict[str, Any] = {
    "arms": ["A", "B"],
    "features": {"numbers": ["a"], "categories": {"c": "grow"}},
}


def decide(loop: Loop, event: str, context: Any, **fields: Any) -> Any:
    """Decide, and return the answer."""
    request = DecideRequest(context=context, event_id=event, **fields)
    return loop.decide(event, request, b"0123456789abcdef").answer


def played(loop: Loop, n: int, dim: int = 2, first: int = 0) -> None:
    """Decide and reward n events."""
    rng = np.random.default_rng(first)
    for k in range(first, first + n):
        x = rng.standard_normal(dim).tolist()
        named = {"a": x[0], "b": x[-1]}
        decide(loop, f"e{k}", x if loop.settings.dim else named)
        loop.reward(f"e{k}", float(rng.standard_normal()))


def agrees(service: Service) -> None:
    """Assert that the log of the only loop verifies, and gives what memory has."""
    [name] = service.names
    loop = service.loop(name)
    service.wait(loop.unit)
    [found] = verify(service.path)
    assert found.sha256 == digest(loop.model())


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service whose log is verified once more after it was closed."""
    made = Service(tmp_path / "data")
    yield made
    made.close()
    verify(made.path)


def killed(service: Service, folder: Path) -> Service:
    """Return a service on the files as a kill would leave them."""
    service.wait(service.writer.submitted)
    shutil.copytree(service.path, folder, ignore=shutil.ignore_patterns("lock", "*-shm"))
    return Service(folder)


@pytest.mark.parametrize(
    ("settings", "contexts"),
    [
        (NAMED, [{"a": 1.0, "b": None}, {"a": None, "b": None}]),
        (NAMED, [{"a": 1.0}, {}]),
        ({**PLAIN, "missing": "predict"}, [[1.0, None], [None, None]]),
        ({**PLAIN, "missing": "mean"}, [[1.0, None], [None, None]]),
    ],
)
def test_an_entry_that_was_never_seen_beside_a_prediction(
    service: Service, settings: dict[str, Any], contexts: list[Any]
) -> None:
    loop = service.create("home", settings)
    for k, context in enumerate(contexts):
        decide(loop, f"e{k}", context)
        loop.reward(f"e{k}", 1.0)
    agrees(service)


@pytest.mark.parametrize("n", [10, 31, 40])
def test_levels_and_units_that_come_with_one_observation(service: Service, n: int) -> None:
    """Units are known after 32 observations."""
    loop = service.create("home", GROWS)
    rng = np.random.default_rng(1)
    for k in range(n):
        decide(loop, f"e{k}", {"a": float(rng.standard_normal()), "c": "u"})
        loop.reward(f"e{k}", float(rng.standard_normal()))
    loop.observe([{"a": 1.0, "c": "v"}])
    agrees(service)


@pytest.mark.parametrize("reads", [0, 1])
def test_large_matrices_are_the_same_whatever_is_read(tmp_path: Path, reads: int) -> None:
    """From 40 columns on a bandit without a log applies updates together, or when it is read."""
    for k in range(4):
        with Service(tmp_path / "data") as service:
            loop = service.create("home", {"arms": ["A", "B"], "dim": 40})
            for m in range(3):
                played(loop, 4, dim=40, first=100 * k + 10 * m)
                if reads:
                    assert loop.bandit.effects
            agrees(service)
    verify(tmp_path / "data")


def test_a_posterior_that_learns_at_once_passes_it_on() -> None:
    rng = np.random.default_rng(1)
    posterior = Posterior(n_parameters=2, dim=50)
    posterior.learn_at_once()
    for made in (posterior, posterior.copy()):
        made.extend(1)
        made.spread(60, np.arange(50))
        made.keep([0, 2])
        assert not made._defers
        twin = made.copy()
        for _ in range(5):
            y = rng.standard_normal(60)
            made.learn(0, y, 1.0)
            twin.learn(0, y, 1.0)
            assert made.precision[0].shape == (60, 60)  # a read
        np.testing.assert_array_equal(made.covariance, twin.covariance)


def test_forgetting_after_a_kill_where_contexts_were_empty(
    service: Service, tmp_path: Path
) -> None:
    """Rewards are found by keys that count observations, also those without any entry."""
    loop = service.create("home", NAMED)
    played(loop, 40)
    for k in range(2):
        decide(loop, f"empty{k}", {})
    for event, reward in (("x", 10.0), ("y", -10.0), ("z", 1.0)):
        decide(loop, event, {"a": reward})  # b is predicted: its rewards are provisional
        loop.reward(event, reward)
    with killed(service, tmp_path / "killed") as other:
        for one in (loop, other.loop("home")):
            one.forget("x")
            assert sum(one.bandit.counts.values()) == 42
        np.testing.assert_array_equal(
            loop.bandit.posterior.moment, other.loop("home").bandit.posterior.moment
        )
        agrees(other)
    agrees(service)


def test_a_snapshot_has_no_ids_and_a_replayed_bandit_remembers_its_own(service: Service) -> None:
    """The log knows every event; ids of the last ones were forgotten at other moments."""
    loop = service.create("home", PLAIN)
    played(loop, 30)
    assert loop.bandit._once.recent.listed() == []
    service.wait(loop.unit)
    bandit = replay(service.path)
    decision = bandit.choose(np.ones(2))
    bandit.learn(decision, 1.0)
    assert decision.id in bandit._once.recent.listed()
    with pytest.raises(AlreadyLearned):
        bandit.learn(decision, 1.0)


def test_ids_that_look_like_those_of_bandits(service: Service) -> None:
    loop = service.create("home", {**PLAIN, "reward": {"default": 0.0, "wait": 0.001}})
    run = loop.bandit.run
    for k, name in enumerate(["o", "txn-20261119055720123456", f"{run}-1", f"{run}-9", "x-007"]):
        decide(loop, name, [1.0, float(k)])
    for name in ("txn-20261119055720123456", f"{run}-1", "x-007"):
        loop.reward(name, 1.0)
    ended = 0
    while ended < 5:
        ended += service.tick()
    agrees(service)


def test_one_event_that_cannot_be_ended_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = LoopLearning._learn_first

    def failing(loop: LoopLearning, event: events.Event, *given: Any, **fields: Any) -> None:
        if event.name == "e3":
            raise OverflowError("as by a number that is too large")
        learn(loop, event, *given, **fields)

    monkeypatch.setattr(LoopLearning, "_learn_first", failing)
    now = [0.0]
    with Service(tmp_path, now=lambda: now[0]) as service:
        for name in ("one", "two"):
            loop = service.create(name, {**PLAIN, "reward": {"default": 0.0, "wait": 1.0}})
            for k in range(6):
                decide(loop, f"e{k}" if name == "one" else f"f{k}", [1.0, 0.0])
        service.wait(service.writer.submitted)
        now[0] = 10.0
        with pytest.raises(OverflowError):
            service.tick()
        learned = {name: sum(service.loop(name).bandit.counts.values()) for name in service.names}
        assert learned == {"one": 5, "two": 6}


@pytest.mark.parametrize("sharing", ["per-arm", "hybrid", "shared"])
@pytest.mark.parametrize(("level", "record"), [("u", "new"), ("w", "x"), ("w", "new")])
def test_a_new_action_may_bring_a_new_level(
    service: Service, sharing: str, level: str, record: str
) -> None:
    arms = {"categories": {"k": "grow"}}
    loop = service.create(
        "home",
        {
            "policy": {"name": "ThompsonSampling", "sharing": sharing},
            "arms": {"A": {"k": "x"}},
            "features": {"numbers": ["a"], "categories": {"c": "grow"}, "arms": arms},
            "add_arms": True,
        },
    )
    decide(loop, "e0", {"a": 1.0, "c": "u"})
    actions = [Action(id="A", features={"k": "x"}), Action(id="D", features={"k": record})]
    answer = decide(loop, "e1", {"a": 1.0, "c": level}, actions=actions)
    assert set(answer.probabilities) == {"A", "D"}
    loop.reward("e1", 1.0)
    agrees(service)


@pytest.mark.parametrize("sharing", ["per-arm", "shared"])
def test_actions_without_features_have_those_of_the_loop(service: Service, sharing: str) -> None:
    loop = service.create(
        "home",
        {
            "policy": {"name": "ThompsonSampling", "sharing": sharing},
            "arms": {"A": {"price": 1.0}, "B": {"price": 2.0}},
            "features": {"numbers": ["a"], "arms": {"numbers": ["price"]}},
        },
    )
    decide(loop, "e0", {"a": 1.0})
    decide(loop, "e1", {"a": 1.0}, actions=[Action(id="A"), Action(id="B")])
    seen = [loop.journal.row_of(loop.journal.event(name)) for name in ("e0", "e1")]
    assert [row.y for row in seen] == [[[1.0, 1.0], [1.0, 2.0]]] * 2  # type: ignore[union-attr]
    same = loop.settings.to_dict()
    service.create("home", same)
    with pytest.raises(Conflict, match="record of arm 'B' cannot change"):
        service.create("home", {**same, "arms": {"A": {"price": 1.0}, "B": {"price": 9.0}}})
    assert loop.settings.to_dict() == same


@pytest.mark.parametrize("name", ["LinUCB", "OFUL", "Greedy"])
def test_probabilities_of_tied_arms_add_up(service: Service, name: str) -> None:
    """Sums in another order, or without a fused multiplication, break ties that the choice had."""
    policy = {"name": name, "sharing": "hybrid"}
    loop = service.create("home", {"policy": policy, "arms": list("ABCD"), "dim": 2})
    rng = np.random.default_rng(9)
    for k in range(60):
        answer = decide(loop, f"e{k}", rng.standard_normal(2).tolist())
        # A sum of 4 numbers of at most 1, each rounded, and the exact ones of two kinds of rules.
        assert abs(sum(answer.probabilities.values()) - 1.0) < 1e-12
        assert answer.probabilities[answer.action] == answer.probability
        if answer.action == "A":
            loop.reward(f"e{k}", float(rng.standard_normal()))


def test_whole_numbers_are_those_of_the_row(service: Service) -> None:
    loop = service.create("home", PLAIN)
    for k in range(20):
        decide(loop, f"e{k}", [1, k])
        loop.reward(f"e{k}", 1)
    agrees(service)


def test_a_restored_backup_is_served_at_once_and_by_its_owner_alone(tmp_path: Path) -> None:
    with Service(tmp_path / "data") as service:
        played(service.create("home", PLAIN), 5)
    folder = tmp_path / "restored"
    folder.mkdir()
    connection = sqlite3.connect(tmp_path / "data" / "keyhole.db")
    connection.execute("VACUUM INTO ?", (str(folder / "keyhole.db"),))
    connection.close()
    (folder / "keyhole.db").chmod(0o644)
    verify(folder)
    with Service(folder) as service:
        assert service.loop("home").version == 12
        assert (folder / "keyhole.db").stat().st_mode & 0o777 == 0o600


def test_compaction_looks_for_what_stays_once(tmp_path: Path) -> None:
    """A query inside that named the row outside took a quarter of an hour for 60,000 rows."""
    with Service(tmp_path) as service:
        played(service.create("home", PLAIN), 3)
        plan = service.store.query("EXPLAIN QUERY PLAN " + compacting.DELETE, (1, 9, 0.0))
    steps = [step for *_, step in plan]
    assert any("LIST SUBQUERY" in step for step in steps)
    assert not any("CORRELATED" in step for step in steps)
    [moved] = compact(tmp_path)
    assert (moved.rows, moved.kept) == (8, 6)  # young decisions and their rewards stay


def test_an_event_that_waits_for_its_unit_is_not_read_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call may change more events than the cache has room for."""
    monkeypatch.setattr(loading, "CACHED_EVENTS", 5)
    monkeypatch.setattr(events, "SPARE", 1)
    with Service(tmp_path) as service:
        loop = service.create("home", {"arms": ["A"], "features": {"numbers": ["a"]}})
        for k in range(40):
            decide(loop, f"e{k}", {})
            loop.reward(f"e{k}", 1.0)
        service.wait(loop.unit)
        k = 0
        while loop.bandit._learned.provisional or k < 32:
            decide(loop, f"w{k}", {"a": float(k % 7)})  # at some time all rewards get their term
            k += 1
        before = loop.bandit.posterior.moment
        assert loop.reward("e0", 5.0, "second").total == 6.0
        assert (loop.bandit.posterior.moment != before).any()
        agrees(service)


def test_the_cache_has_a_bound_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_BYTES", 100_000)
    with Service(tmp_path) as service:
        loop = service.create("home", {"arms": ["A", "B"], "dim": 100})
        for k in range(200):
            decide(loop, f"e{k}", [0.1 * k + 1 / 3] * 100)
            service.wait(loop.unit)
        assert len(loop.events._events) < 60
        assert loop.events._n_bytes == sum(one.n_bytes for one in loop.events._events.values())
        for k in range(200):
            loop.reward(f"e{k}", 1.0)
            service.wait(loop.unit)  # those that wait stay
        assert loop.events._n_bytes <= 110_000
        agrees(service)


def test_a_disk_that_fails_while_units_are_joined_stops_nobody(tmp_path: Path) -> None:
    """Recovery waits for the writing thread, which must not wait for the block."""
    with Service(tmp_path) as service:
        done = threading.Event()

        def work() -> None:
            with service.writer.together():
                service.writer.fail(OSError("the disk"))
                service.recover()
                service.create("home", PLAIN)
            service.wait(service.loop("home").unit)
            done.set()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        assert done.wait(20.0)
        agrees(service)


@pytest.mark.parametrize("place", range(40, 400, 40))
def test_a_damaged_archive_is_named(tmp_path: Path, place: int) -> None:
    with Service(tmp_path) as service:
        played(service.create("home", PLAIN), 40)
    compact(tmp_path, keep=0.0)
    [(_, _, path)] = archived.Archive(str(tmp_path), "home").files()
    content = bytearray(Path(path).read_bytes())
    content[place] ^= 0xFF
    Path(path).write_bytes(content)
    with pytest.raises(FileError, match=r"archive|row"):
        verify(tmp_path)


def test_what_root_makes_belongs_to_the_owner_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, tuple[int, int]] = {}
    with Service(tmp_path) as service:
        played(service.create("home", PLAIN), 3)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(
        "os.chown", lambda path, *owner, **_: given.update({Path(path).name: owner})
    )
    KeyFile(tmp_path).add("web", ["decide"])
    compact(tmp_path)
    above = tmp_path.stat()
    wanted = {"keys.lock", "keys.json", "archive", "home", "1-8.jsonl.gz"}
    assert given == dict.fromkeys(wanted, (above.st_uid, above.st_gid))


def test_a_field_that_was_never_seen_is_provisionally_learned(
    service: Service, tmp_path: Path
) -> None:
    """Its decision is of the log, though the entry is NaN in memory and null in the row."""
    features = {"numbers": ["x"], "booleans": ["b"], "standardize": False, "intercept": False}
    reward = {"default": 0.0, "learn": "provisional", "wait": 9}
    loop = service.create("home", {"arms": ["A", "B"], "features": features, "reward": reward})
    decide(loop, "e0", {"x": 5.0})
    loop.reward("e0", 1.0)
    for k in range(1, 12):
        decide(loop, f"e{k}", {"x": 0.1 * k, "b": bool(k % 2)})
        loop.reward(f"e{k}", float(k % 3))
    agrees(service)
    service.wait(loop.unit)
    export(service.path, tmp_path / "log.jsonl")
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert kinds.count("given") == 0
    found = kh.evaluate(tmp_path / "log.jsonl", ["uniform"])
    assert found is not None


def test_totals_are_sums_to_the_last_digit(service: Service) -> None:
    """Python's `sum` of floats rounds in one way up to 3.11, and in another from 3.12 on."""
    loop = service.create("home", PLAIN)
    decide(loop, "o-1", [1.0, 2.0])
    totals = [loop.reward("o-1", 0.1, f"r{k}").total for k in range(10)]
    assert totals[-1] == 1.0  # and 0.9999999999999999 term by term
    agrees(service)


@pytest.mark.parametrize("policy", ["Greedy", "EpsilonGreedy", "LinUCB"])
def test_means_that_are_equal_as_rewards_and_not_as_compared(service: Service, policy: str) -> None:
    """Counted from 1e16 the arms differ by less than 1; as rewards both are 1e16."""
    settings = {"arms": ["A", "B"], "dim": 1, "intercept": True, "policy": {"name": policy}}
    loop = service.create("home", settings)
    for k in range(20):
        decide(loop, f"e{k}", [1.0], exclude=["AB"[k % 2]])
        loop.reward(f"e{k}", 1e16 + (2.0 if k == 14 else 0.0))
    answer = decide(loop, "last", [1.0])
    row: Any = loop.journal.row_of(loop.journal.event("last"))
    assert row.mean[0] == row.mean[1]
    assert row.centred[0] != row.centred[1]
    assert sum(answer.probabilities.values()) == pytest.approx(1.0, abs=1e-12)
    assert answer.probabilities[answer.action] == answer.probability
    agrees(service)
