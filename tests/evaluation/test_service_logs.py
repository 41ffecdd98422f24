"""Evaluation of logs that the decision service exports: baselines, keyed draws, missing rewards."""

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.evaluation import audit_log
from keyhole.online.log import rows
from keyhole.online.log.replaying import Own, Replay, quietly
from keyhole.service import DecideRequest, Service, export

ARMS = ["A", "B", "C"]
NUMBERS: dict[str, Any] = {"arms": ARMS, "dim": 2}
FIELDS: dict[str, Any] = {
    "arms": ARMS,
    "features": {"numbers": ["x"], "categories": {"c": ["u", "v"]}},
}
SHADOW = {"mode": "shadow", "baseline": "B"}
SUFFIXES = ["jsonl", "parquet"]


def exported(
    folder: Path,
    settings: dict[str, Any],
    *,
    modes: tuple[str, ...] = (),
    rounds: int = 80,
    is_rewarded: Callable[[int], bool] = lambda _: True,
    suffix: str = "jsonl",
    delay: int = 2,
) -> Path:
    """Return the log of a loop: `rounds` in its first mode, and as many in each of `modes`.

    The arm A has the mean reward 1, and others 0. A reward comes `delay` rounds after its decision.
    """
    rng, clock = random.Random(1), [1e9]
    with Service(folder / "data", now=lambda: clock[0]) as service:
        loop = service.create("home", settings)
        waiting: list[tuple[str, float]] = []
        for k in range(rounds * (1 + len(modes))):
            if k and k % rounds == 0:
                changed = {**loop.settings.to_dict(), "mode": modes[k // rounds - 1]}
                loop.change(loop.settings.of(changed))
            context: Any = {"x": rng.gauss(3.0, 2.0), "c": rng.choice("uv")}
            if "dim" in settings:
                context = [rng.gauss(0.0, 1.0), 1.0]
            decided = service.decide("home", DecideRequest(context=context, event_id=f"e{k}"))
            reward = float(decided.answer.action == "A") + rng.gauss(0.0, 0.5)
            if is_rewarded(k):
                waiting.append((f"e{k}", reward))
            clock[0] += 1.0
            if len(waiting) > delay:
                loop.reward(*waiting.pop(0))
            service.tick()
        for name, reward in waiting:
            loop.reward(name, reward)
        clock[0] += 1e6
        while service.tick():
            pass
    target = folder / f"log.{suffix}"
    export(folder / "data", target)
    return target


# -- baselines -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_log_of_shadow_rounds_alone_says_why_nothing_can_be_evaluated(
    tmp_path: Path, suffix: str
) -> None:
    log = exported(
        tmp_path, NUMBERS | SHADOW, is_rewarded=lambda k: k not in (3, 50), suffix=suffix
    )
    came = [row.value for row in kh.Log(log) if isinstance(row, rows.Reward)]
    assert len(came) == 78
    with pytest.raises(
        kh.InvalidValue, match=r"all 80 rounds.*by a baseline, in mode shadow"
    ) as no:
        kh.evaluate(log, "uniform")
    mean = f"the mean of the baseline's 78 rewards is {np.mean(came):.4g}, and 2 have none"
    assert str(no.value).endswith(f"no other policy can be evaluated from them; {mean}")


def test_a_log_of_a_loop_that_was_off_says_why_nothing_can_be_evaluated(tmp_path: Path) -> None:
    log = exported(tmp_path, NUMBERS | {"mode": "off", "baseline": "B"})
    with pytest.raises(kh.InvalidValue, match=r"in mode off: .*no reward of theirs was learned"):
        kh.evaluate(log, "uniform")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rounds_of_a_baseline_are_counted_as_such_and_not_used(tmp_path: Path, suffix: str) -> None:
    """No one vetoed them, though the chosen arm was another or, at times, the same."""
    log = exported(
        tmp_path, NUMBERS | SHADOW, modes=("online", "off", "shadow", "online"), suffix=suffix
    )
    columns = kh.Log(log).columns()
    assert "vetoed" not in columns
    online = [row for row in kh.Log(log) if isinstance(row, rows.Decision) and row.served is None]
    assert [columns["arms"][arm] for arm in columns["chosen"]] == [row.arm for row in online]
    assert columns["reward"].shape == (160,)
    assert not np.isnan(columns["reward"]).any()
    found = audit_log(columns)
    assert found.is_sound
    assert found.left_out == (
        ("served by a baseline in shadow mode", 160),
        ("served by a baseline while off", 80),
    )
    assert "veto" not in str(found)
    value = kh.evaluate(log, {"A": "A"}, estimator="snips", min_size=0.0)
    assert value.n_rounds == value.n_used == 160
    assert "left out: 160 served by a baseline in shadow mode, 80 served" in str(value)


def test_parquet_keeps_the_chosen_arm_of_rounds_that_a_baseline_served(tmp_path: Path) -> None:
    log = exported(tmp_path, NUMBERS | SHADOW, modes=("online",))
    export(tmp_path / "data", tmp_path / "log.parquet")
    wanted, found = list(kh.Log(log)), list(kh.Log(tmp_path / "log.parquet"))
    assert found == wanted
    shadow = [row for row in wanted if isinstance(row, rows.Decision) and row.served is not None]
    assert {row.arm for row in shadow} == set(ARMS)  # it matters


# -- the fold --------------------------------------------------------------------------------------

WAITS: dict[str, Any] = {"default": 0.0, "wait": 5.0}
LOGS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "provisional": (FIELDS | {"reward": WAITS | {"learn": "provisional"}}, ()),
    "at the end": (FIELDS | {"reward": WAITS}, ()),
    "at once": (FIELDS, ()),
    "units": (NUMBERS | {"standardize": True, "intercept": True}, ("shadow", "online")),
    "shadow, then online": (FIELDS | SHADOW, ("online",)),
    "off, then online": (FIELDS | {"mode": "off"}, ("online",)),
    "off, then online, numbers": (NUMBERS | {"mode": "off"}, ("online",)),
    "provisional, numbers": (NUMBERS | {"reward": WAITS | {"learn": "provisional"}}, ("shadow",)),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", LOGS)
def test_a_fold_without_the_key_of_the_draws_has_every_probability(
    tmp_path: Path, name: str, suffix: str
) -> None:
    """Before each decision, the folded bandit gives the chosen arm the logged probability."""
    settings, modes = LOGS[name]
    log = kh.Log(exported(tmp_path, settings, modes=modes, suffix=suffix))
    replay, logged, folded = Replay(log.name, Own(), verify=False), [], []
    with quietly():
        for row in log:
            if isinstance(row, rows.Decision):
                assert row.arms is not None
                (chances,) = replay.bandit.chances([(row, row.arms)])
                assert row.probability is not None
                logged.append(row.probability)
                folded.append(chances[row.arms.index(row.arm)])
            replay.take(row)
    assert len(logged) >= 80
    np.testing.assert_allclose(folded, logged, rtol=1e-9)


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("name", LOGS)
def test_shares_of_a_service_log_are_exact(tmp_path: Path, name: str, delay: int) -> None:
    """There is no warning that they are approximate, and a fold gave them where it is needed."""
    settings, modes = LOGS[name]
    log = exported(tmp_path, settings, modes=modes, delay=delay)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns = kh.Log(log).columns()
        found = kh.evaluate(log, "uniform", min_size=0.0)
    # Where rewards came at once, and observations as they are, columns alone have the shares.
    is_in_order = delay == 0 and name == "off, then online, numbers"
    assert (columns["checkpoints"] is None) == is_in_order
    assert np.isfinite(found.rows[0].value)


# -- missing rewards -------------------------------------------------------------------------------


def test_a_refusal_names_missing_rewards_as_its_cause(tmp_path: Path) -> None:
    log = exported(tmp_path, NUMBERS, is_rewarded=lambda k: k < 5 or k % 4 > 0)
    found = kh.evaluate(log, ["as logged", "uniform"])
    cause = "18 of 80 rounds have no reward, the first of them round 9"
    assert (found.n_used, found.n_rounds) == (8, 80)
    assert found.missing.startswith(cause)
    assert found.missing in str(found)
    for row in found.rows:
        assert np.isnan(row.value)
        assert row.note.endswith(f"below 30: {found.missing}")
    with pytest.raises(kh.InvalidValue, match=r"0 rounds come before.*: 20 of 80 rounds have no"):
        kh.evaluate(_without_first(tmp_path), "uniform")


def _without_first(folder: Path) -> Path:
    other = folder / "other"
    other.mkdir()
    return exported(other, NUMBERS, is_rewarded=lambda k: k % 4 > 0)


@pytest.mark.parametrize("last", [False, True], ids=["all rewards", "one is missing"])
def test_a_refusal_names_arms_that_were_chosen_too_seldom(last: bool) -> None:
    reward = [0.0, 1.0] * 50 + [float("nan")] * last
    n = len(reward)
    log = {
        "arms": ["A", "B"],
        "chosen": [1, 1, *[0] * (n - 2)],
        "probability": [0.02, 0.02, *[0.98] * (n - 2)],
        "reward": reward,
    }
    row = kh.evaluate(log, "B", estimator="snips").rows[0]
    assert "chose such arms too seldom" in row.note
    assert ("; 1 of 101 rounds have no reward" in row.note) == last


def test_a_refusal_of_a_short_log_names_its_length() -> None:
    log = {"arms": ["A"], "chosen": [0] * 9, "probability": [1.0] * 9, "reward": [0.0, 1, 2] * 3}
    assert kh.evaluate(log, "A", estimator="snips").rows[0].note.endswith("the log has 9 rounds")


# -- deferred events -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_events_that_are_never_activated_count_as_vetoed(tmp_path: Path, suffix: str) -> None:
    """Their choice was not carried out; of the others every reward is used."""
    rng, clock = random.Random(1), [1e9]
    settings = NUMBERS | {"reward": {"default": 0.0, "wait": 5.0}}
    with Service(tmp_path / "data", now=lambda: clock[0]) as service:
        loop = service.create("home", settings)
        for k in range(200):
            context: Any = [rng.gauss(0.0, 1.0), 1.0]
            request = DecideRequest(context=context, event_id=f"e{k}", defer=k % 2 == 0)
            service.decide("home", request)
            if k % 10 != 0:
                loop.activate(f"e{k}")
                loop.reward(f"e{k}", rng.gauss(1.0, 0.5))
            clock[0] += 1.0
            service.tick()
        clock[0] += 1e6
        service.wait(loop.unit)
        while service.tick():
            pass
    target = tmp_path / f"log.{suffix}"
    export(tmp_path / "data", target)
    audit = audit_log(target)
    assert (audit.n_rounds, audit.n_rewarded) == (180, 180)
    assert dict(audit.left_out) == {"vetoed": 20}
    value = kh.evaluate(target, "uniform", estimator="ips")
    assert (value.n_rounds, value.n_used) == (180, 180)
