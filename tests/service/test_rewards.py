"""What rewards come to: what counts, what never does, and what the sums have."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from keyhole.errors import InvalidValue, KeyholeWarning
from keyhole.service import Action, DecideRequest, Loop, Service, verify
from keyhole.service.http.events import event_view
from keyhole.service.store import Unit
from tests.service.clocks import Moved
from tests.service.history import check

PLAIN: dict[str, Any] = {"arms": ["A", "B"], "dim": 2}
ENDS: dict[str, Any] = {"default": 0.25, "wait": 10.0}


@pytest.fixture(name="clock")
def _clock() -> Moved:
    return Moved()


@pytest.fixture(name="service")
def _service(tmp_path: Path, clock: Moved) -> Iterator[Service]:
    service = Service(tmp_path, now=clock)
    yield service
    service.close()


def made(service: Service, **settings: Any) -> Loop:
    return service.create("home", {**PLAIN, **settings})


def decide(service: Service, event: str, arm: str = "A", **more: Any) -> None:
    request = DecideRequest(context=[1.0, 0.5], event_id=event, actions=[Action(id=arm)], **more)
    service.wait(service.decide("home", request).unit)


def changed(loop: Loop, **settings: Any) -> None:
    loop.change(loop.settings.of({**loop.settings.to_dict(), **settings}))


def holding(loop: Loop, held: list[Unit]) -> Callable[[Unit], int]:
    """Return what takes the units of a loop in place of its writer."""

    def submit(unit: Unit) -> int:
        held.append(unit)
        return loop.unit

    return submit


def end(service: Service, clock: Moved) -> None:
    service.wait(service.loop("home").unit)
    clock.time += 11.0
    service.tick()


def checked(service: Service) -> None:
    """Compare memory, log and tables; by the checker of the tests, and by `verify`."""
    check(service.path, service=service)
    verify(service.path)


# -- what was answered as not counting never counts -----------------------------------------------


def test_a_late_reward_is_in_no_later_total(service: Service, clock: Moved) -> None:
    loop = made(service, reward={**ENDS, "late": "ignore"})
    decide(service, "e1")
    assert loop.reward("e1", 1.0, "a").status == "held"
    end(service, clock)
    late = loop.reward("e1", 5.0, "b")
    assert (late.status, late.total) == ("late", 1.0)
    changed(loop, reward={**ENDS, "late": "amend"})
    for _ in range(2):  # from memory, and from the tables
        again = loop.reward("e1", 7.0, "b")
        assert (again.status, again.total) == ("duplicate", 1.0)
        service.recover()
        loop = service.loop("home")
    amended = loop.reward("e1", 2.0, "c")
    assert (amended.status, amended.total) == ("amended", 3.0)
    view = event_view(loop, "e1")
    assert (view.rewards, view.uncounted) == ({"a": 1.0, "c": 2.0}, {"b": 5.0})
    assert (view.total, view.learned) == (3.0, 3.0)
    checked(service)


def test_an_ignored_reward_is_in_no_total(service: Service) -> None:
    loop = made(service, mode="off")
    decide(service, "e1")
    changed(loop, mode="online")
    ignored = loop.reward("e1", 1e50, "a")
    assert (ignored.status, ignored.total) == ("ignored", None)
    assert loop.reward("e1", 1e50, "b").status == "ignored", "what does not count is not too large"
    assert event_view(loop, "e1").total is None
    checked(service)


def test_the_mean_is_of_rewards_that_count(service: Service, clock: Moved) -> None:
    reward = {**ENDS, "aggregate": "mean"}
    loop = made(service, reward={**reward, "late": "ignore"})
    decide(service, "e1")
    end(service, clock)
    assert loop.reward("e1", 100.0, "a").total == 0.25
    changed(loop, reward=reward)
    assert loop.reward("e1", 2.0, "b").total == 2.0
    assert loop.reward("e1", 4.0, "c").total == 3.0
    checked(service)


# -- an event keeps the mode in which it was decided ----------------------------------------------


@pytest.mark.parametrize("learn", ["at_once", "at_end", "provisional"])
def test_an_event_of_before_a_loop_was_off_is_learned(
    service: Service, clock: Moved, learn: str
) -> None:
    ends = {} if learn == "at_once" else {"default": 0.25, "wait": 10.0}
    loop = made(service, reward={**ends, "learn": learn})
    decide(service, "rewarded")
    decide(service, "unrewarded")
    decide(service, "deferred", defer=True)
    changed(loop, mode="off")
    decide(service, "off")
    loop.reward("rewarded", 2.0)
    loop.activate("deferred")
    loop.reward("deferred", 3.0)
    assert loop.reward("off", 4.0).status == "ignored"
    end(service, clock)
    names = ("rewarded", "unrewarded", "deferred", "off")
    assert [loop.journal.event(name).learned for name in names] == [
        2.0,
        ends.get("default"),
        3.0,
        None,
    ]
    checked(service)


# -- what was learned of an arm goes with it ------------------------------------------------------


def learned_counts(service: Service) -> tuple[int, int, int, int]:
    """Return how many events are learned: by the sums, by memory, by the table, by `verify`."""
    loop = service.loop("home")
    service.wait(loop.unit)
    bandit = loop.bandit
    counts = [bandit.counts[arm] + bandit.waiting[arm] for arm in bandit.arms]
    is_shared = bandit.policy.sharing != "per-arm"
    names = [name for (name,) in service.store.query("SELECT event FROM event WHERE state < 3")]
    [(table,)] = service.store.query("SELECT count(*) FROM event WHERE learned IS NOT NULL")
    return (
        counts[0] if is_shared else sum(counts),
        sum(event_view(loop, name).learned is not None for name in names),
        table,
        verify(service.path)[0].learned,
    )


@pytest.mark.parametrize("sharing", ["per-arm", "shared", "hybrid"])
@pytest.mark.parametrize("standardize", [False, True])
def test_events_of_a_removed_arm_are_not_learned(
    service: Service, sharing: str, standardize: bool
) -> None:
    """P3: the sums have as many rewards as there are learned events. A shared parameter stays."""
    policy = {"name": "ThompsonSampling", "sharing": sharing}
    loop = made(service, policy=policy, standardize=standardize)
    if sharing == "hybrid" and standardize:
        loop.observe([[float(k), float(k % 3)] for k in range(40)])  # units are known
    for k in range(4):
        decide(service, f"a{k}", "A")
        decide(service, f"b{k}", "B")
        loop.reward(f"a{k}", float(k))
        loop.reward(f"b{k}", float(k))
    assert learned_counts(service) == (8, 8, 8, 8)
    loop.remove_arms(["B"])
    n = 4 if sharing == "per-arm" else 8
    assert learned_counts(service) == (n, n, n, n)
    loop.add_arms(["B"])
    decide(service, "b4", "B")
    loop.reward("b4", 1.0)
    n += 1
    assert learned_counts(service) == (n, n, n, n)
    service.recover()
    assert learned_counts(service) == (n, n, n, n)


def test_waiting_rewards_of_a_hybrid_policy_keep_their_arm(service: Service) -> None:
    """They would be lost, and those that were learned stay in what arms share."""
    policy = {"name": "ThompsonSampling", "sharing": "hybrid"}
    loop = made(service, policy=policy, standardize=True)
    decide(service, "e1", "B")
    loop.reward("e1", 1.0)
    with pytest.raises(InvalidValue, match="while rewards of them wait"):
        loop.remove_arms(["B"])
    loop.forget("e1")
    loop.remove_arms(["B"])
    assert learned_counts(service) == (0, 0, 0, 0)


def test_an_arm_that_is_added_again_in_the_same_transaction_is_learned(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units of one transaction write their rows first, and then what else there is."""
    loop = made(service)
    decide(service, "e1", "B")
    loop.reward("e1", 1.0)
    service.wait(loop.unit)
    held: list[Unit] = []
    with monkeypatch.context() as patch:
        patch.setattr(loop, "_submit", holding(loop, held))
        loop.remove_arms(["B"])
        loop.add_arms(["B"])
        request = DecideRequest(context=[1.0, 0.5], event_id="e2", actions=[Action(id="B")])
        loop.decide("e2", request, b"digest")
        loop.reward("e2", 2.0)
    service.store.commit(held)
    assert service.store.query("SELECT event, learned FROM event ORDER BY event") == [
        ("e1", None),
        ("e2", 2.0),
    ]
    checked(service)


def test_an_event_that_is_read_while_a_removal_is_on_its_way_is_not_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhole.service.loading.CACHED_EVENTS", 1)
    monkeypatch.setattr("keyhole.service.events.SPARE", 0)
    with Service(tmp_path) as service:
        loop = made(service)
        for name in ("e1", "e2"):
            decide(service, name)
            loop.reward(name, 1.0)
            service.wait(loop.unit)
        assert list(loop.events._events) == ["e2"]
        held: list[Unit] = []
        with monkeypatch.context() as patch:
            patch.setattr(loop, "_submit", holding(loop, held))
            loop.remove_arms(["A"])
        assert [event_view(loop, name).learned for name in ("e1", "e2")] == [None, None]
        service.store.commit(held)
        checked(service)


# -- statuses and rows ----------------------------------------------------------------------------


def test_the_first_reward_after_an_end_without_any_is_counted(
    service: Service, clock: Moved
) -> None:
    loop = made(service, reward={"learn": "at_end", "wait": 10.0})
    decide(service, "e1")
    end(service, clock)
    assert loop.journal.event("e1").learned is None
    assert [loop.reward("e1", 1.0, name).status for name in "ab"] == ["counted", "amended"]
    checked(service)


def test_the_table_of_rewards_has_the_rows_that_they_came_with(service: Service) -> None:
    """Also where units are fixed by a reward, and rows of those that have waited follow it."""
    loop = made(service, intercept=True, standardize=True)
    for k in range(40):
        request = DecideRequest(context=[float(k), float(k % 3)], event_id=f"e{k}")
        service.decide("home", request)
    for k in range(40):
        loop.reward(f"e{k}", float(k))
    service.wait(loop.unit)
    kinds = [kind for _, kind, _ in service.store.rows(1)]
    assert any(pair == ("reward", "counted") for pair in pairwise(kinds))
    checked(service)


def test_rewards_that_come_to_too_much_by_another_aggregate_are_not_learned(
    tmp_path: Path,
) -> None:
    clock = Moved()
    reward = {"default": 0.0, "wait": 5.0}
    with Service(tmp_path, now=clock) as service:
        loop = service.create("home", {**PLAIN, "reward": {**reward, "aggregate": "mean"}})
        for k in range(3):
            service.decide("home", DecideRequest(context=[1.0, 1.0], event_id=f"e{k}"))
        for k in range(3):
            loop.reward("e1", 9e49, f"r{k}")
        service.create("home", {**PLAIN, "reward": reward})
        service.wait(loop.unit)
        clock.time += 6.0
        with pytest.warns(KeyholeWarning, match=r"its total 2.7e.50 is beyond 1e.50"):
            assert service.tick() == 3
        states = [event_view(loop, f"e{k}") for k in range(3)]
        assert [(one.state, one.learned) for one in states] == [
            ("ended", 0.0),
            ("ended", None),
            ("ended", 0.0),
        ]
        checked(service)


@pytest.mark.parametrize("learn", ["at_once", "provisional", "at_end"])
@pytest.mark.parametrize("named", [True, False])
def test_large_rewards_that_are_rare_are_learned_as_they_came(
    tmp_path: Path, learn: str, named: bool
) -> None:
    """Most are 0, and three are 50. A bandit takes those among the first 32 for errors."""
    reward = {"learn": learn, **({} if learn == "at_once" else {"default": 0.0, "wait": 5.0})}
    kind: dict[str, Any] = {"dim": 1, "standardize": True, "intercept": True}
    if named:
        kind = {"features": {"numbers": ["n"]}}
    clock = Moved()
    with Service(tmp_path, now=clock) as service:
        loop = service.create("home", {"arms": ["A"], **kind, "reward": reward})
        value = {5: 50.0, 9: 50.0, 20: 50.0}
        for k in range(40):
            context: Any = {"n": float(k % 7)} if named else [float(k % 7)]
            service.decide("home", DecideRequest(context=context, event_id=f"e{k}"))
            if k in value or learn == "at_once":
                loop.reward(f"e{k}", value.get(k, (k % 3) * 0.1))
        service.wait(loop.unit)
        clock.time += 10.0
        service.tick()
        posterior = loop.bandit.posterior
        offset = loop.bandit._observer.offset
        learned = [value.get(k, (k % 3) * 0.1 if learn == "at_once" else 0.0) for k in range(40)]
        wanted = sum((one - offset) ** 2 for one in learned)
        assert posterior.squares[0] == pytest.approx(wanted, rel=1e-12)
        check(service.path, service=service)
