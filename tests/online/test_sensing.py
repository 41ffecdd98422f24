"""Bandits with sensors: names, files, copies, merging, each reward once, and late truth."""

import copy
import inspect
import io
import json
import pickle
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import keyhole as kh
from keyhole.core import Draws, SensorState, Streams
from keyhole.core.learners import AnyLearner, Chosen
from keyhole.files import read_arrays, write_arrays
from keyhole.online.own import OwnBandit
from keyhole.online.sensing import SensorBandit

ARMS = ["A", "B", "C"]


def sensors() -> dict[Any, kh.Sensor]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((12, 3))
    y = x @ rng.standard_normal((3, 2)) + rng.standard_normal((12, 2))
    hidden = rng.standard_normal((30, 3))
    return {
        "known": kh.Sensor(sensing=rng.standard_normal((4, 3)), sensing_covariance=0.5),
        "calibrated": kh.Sensor.calibrated(x, y),
        "repeated": kh.Sensor.from_repeats(
            *(hidden + 0.5 * rng.standard_normal((30, 3)) for _ in range(2))
        ),
    }


def learner(**settings: Any) -> kh.SensorLearner:
    return kh.SensorLearner(kh.ThompsonSampling(), sensors(), **settings)


def bandit(**settings: Any) -> SensorBandit:
    usual: dict[str, Any] = {"arms": ARMS, "dim": 4, "seed": 3}
    made = kh.Bandit(learner(), **{**usual, **settings})
    assert isinstance(made, SensorBandit)
    return made


def live(one: SensorBandit, n: int, seed: int = 1, late: float = 0.2) -> None:
    """Play rounds: entries missing at times, the truth known at times."""
    rng = np.random.default_rng(seed)
    named = sensors()
    for _ in range(n):
        name = str(rng.choice(list(named)))
        y = rng.standard_normal(named[name].dim)
        y[rng.random(y.size) < 0.2] = np.nan
        decision = one.choose(y, sensor=name)
        x = rng.standard_normal(3) if rng.random() < late else None
        one.learn(decision, float(rng.standard_normal()), context=x)


def everything(state: SensorState) -> list[Any]:
    """Return all numbers of a state."""
    arrays = [array for sums in state.sums for array in sums]
    arrays += [array for pairs in state.pairs.values() for array in pairs]
    arrays += [array for one in state.configurations for array in (one.columns, one.unseen)]
    arrays += [*state.posterior.state, state.weights, state.numerators, state.units]
    arrays += [state.refreshed, np.array([state.reward_variance, state.estimated])]
    return [*arrays, np.zeros(0) if state.bases is None else state.bases]


def same(first: SensorBandit, second: SensorBandit, rtol: float = 0.0) -> None:
    assert first.counts == second.counts
    for arm in ARMS:
        for mine, theirs in zip(first.coefficients[arm], second.coefficients[arm], strict=True):
            assert_allclose(mine, theirs, rtol=rtol, atol=rtol)


# -- choosing and learning ------------------------------------------------------------------------


def test_a_bandit_chooses_what_the_learner_does() -> None:
    """With the seed of a replication: the numbers of the streams "policy" and "coin"."""
    one, recipe = bandit(seed=5), learner()
    state, source = recipe.start(3, 4), Streams(5)
    rng = np.random.default_rng(2)
    for _ in range(60):
        y = rng.standard_normal((3, 2))
        draws = Draws(source["policy"].standard_normal(3), source["coin"].random(2))
        decision = one.choose(y, sensor="calibrated")
        chosen = recipe.choose(state, y, draws, sensor="calibrated")
        assert decision.arm == ARMS[chosen.arm]
        assert decision.probability == chosen.probability
        assert decision.sensor == "calibrated"
        one.learn(decision, 1.0)
        recipe.learn(state, chosen.arm, y[chosen.arm], 1.0, sensor="calibrated")


def test_probabilities_are_those_of_choices() -> None:
    one = bandit()
    live(one, 60)
    y = np.array([0.5, -0.2])
    chances = one.choice_probabilities(y, sensor="calibrated")
    assert sum(chances.values()) == pytest.approx(1.0)
    decision = one.choose(y, sensor="calibrated")
    assert decision.probability == pytest.approx(chances[str(decision.arm)], abs=1e-9)
    n, wins = 4000, 0
    for _ in range(n):
        wins += one.choose(y, sensor="calibrated").arm == "A"
    p = chances["A"]
    assert abs(wins / n - p) < 4.5 * np.sqrt(p * (1 - p) / n)
    two = one.choice_probabilities(y, sensor="calibrated", among=("C", "A"))
    assert list(two) == ["C", "A"]
    assert {one.choose(y, sensor="calibrated", among=("C", "A")).arm for _ in range(50)} <= {
        "C",
        "A",
    }


def test_a_decision_comes_back_through_json_with_its_sensor() -> None:
    one, other = bandit(), bandit()
    decision = one.choose(np.array([0.5, np.nan]), sensor="calibrated")
    carried = kh.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    assert carried == decision
    assert carried.sensor == "calibrated"
    assert pickle.loads(pickle.dumps(decision)).sensor == "calibrated"
    assert decision.instead("B").sensor == "calibrated"
    assert "sensor='calibrated'" in repr(carried)
    other.learn(carried, 2.0)
    one.learn(decision, 2.0)
    same(one, other)


def test_a_decision_through_another_sensor_of_the_same_name_is_refused() -> None:
    """By name alone, a coefficient of 1 would be learned as one of 10."""

    def probe(scale: float) -> SensorBandit:
        sensor = kh.Sensor(sensing=[[scale]], sensing_covariance=scale**2)
        return SensorBandit(kh.SensorLearner(kh.Uniform(), {"probe": sensor}), arms=ARMS, seed=1)

    one, other, same_as_one = probe(1.0), probe(10.0), probe(1.0)
    decision = one.choose([0.5])
    carried = kh.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    for each in (decision, carried, pickle.loads(pickle.dumps(decision)), decision.instead("B")):
        with pytest.raises(kh.InvalidValue, match=r"another sensor than sensors\['probe'\]"):
            other.learn(each, 1.0)
        assert not any(other.counts.values())
    same_as_one.learn(carried, 1.0)
    other.learn(kh.Decision(arm="A", observation=[0.5], id=decision.id, sensor="probe"), 1.0)
    with pytest.raises(kh.InvalidValue, match="through another sensor"):
        other.learn_context(decision, [0.4])
    features = kh.Bandit(kh.Learner(kh.Uniform(), kh.Features(numbers=["x"])), arms=ARMS)
    with pytest.raises(kh.InvalidValue, match="through another sensor"):
        one.learn(features.choose({"x": 1.0}), 1.0)
    with pytest.raises(kh.InvalidValue, match="through the sensor 'probe', which needs"):
        features.learn(decision, 1.0)


def test_a_list_of_sensors_in_another_order_is_refused() -> None:
    sensors = [kh.Sensor(sensing=[[1.0, 0.0]]), kh.Sensor(sensing=[[0.0, 1.0]])]
    one, other = (
        kh.Bandit(kh.SensorLearner(kh.Uniform(), listed), arms=ARMS, seed=1)
        for listed in (sensors, sensors[::-1])
    )
    with pytest.raises(kh.InvalidValue, match="a list of sensors has another order"):
        other.learn(one.choose([1.0], sensor=0), 1.0)


def test_a_sensor_that_improved_takes_its_own_earlier_decisions() -> None:
    one = bandit()
    early = [one.choose(np.ones(2), sensor="calibrated") for _ in range(2)]
    before = one._state.sensors[one._own.place("calibrated")]
    live(one, 60, late=1.0)
    assert one._state.sensors[one._own.place("calibrated")] != before
    one.learn(early[0], 1.0)
    kh.Bandit.load(one.to_bytes()).learn(early[1], 1.0, context=np.ones(3))


def test_each_reward_counts_once() -> None:
    one = bandit()
    decision = one.choose(np.ones(2), sensor="calibrated")
    one.learn(decision, 1.0)
    for again in (decision, kh.Decision.from_dict(decision.to_dict())):
        with pytest.raises(kh.AlreadyLearned):
            one.learn(again, 1.0)
    one.learn(decision, 1.0, again=True)
    assert sum(one.counts.values()) == 2


def test_beliefs_follow_what_was_learned_of_a_sensor() -> None:
    one = bandit()
    before = one.belief([1.0, 0.0], sensor="calibrated").mean
    rng = np.random.default_rng(3)
    for _ in range(200):
        x = rng.standard_normal(3)
        decision = one.choose(2.0 * x[:2], sensor="calibrated")
        one.learn(decision, 0.0, context=x)
    after = one.belief([2.0, 0.0], sensor="calibrated").mean
    assert_allclose(after, [1.0, 0.0, 0.0], atol=0.1)
    assert np.abs(2.0 * before - after).max() > 0.1
    known = one.belief(np.ones(4), sensor="known")
    assert_array_equal(known.mean, sensors()["known"].belief(np.ones(4)).mean)


def test_refused_calls_change_nothing() -> None:
    one = bandit()
    live(one, 20)
    decision = one.choose(np.ones(2), sensor="calibrated")
    before = copy.copy(one)
    refusals: list[tuple[Any, str]] = [
        (lambda: one.choose(np.ones(2)), "sensor must be given"),
        (lambda: one.choose(np.ones(2), sensor="other"), "there is no sensor 'other'"),
        (lambda: one.choose(np.ones(3), sensor="calibrated"), r"y must have shape \(2,\)"),
        (lambda: one.choose(["a", "b"], sensor="calibrated"), "real numbers"),
        (lambda: one.learn(decision, 1.0, context=np.ones(2)), "context must have shape"),
        (lambda: one.learn(decision, np.nan), "reward"),
        (lambda: one.learn(decision.instead("Z"), 1.0), "there is no arm 'Z'"),
        (lambda: one.learn(kh.Decision(arm="A", observation=[1, 2]), 1.0), "sensor must be given"),
        (lambda: one.learn("A", 1.0), "learn takes a Decision"),
        (
            lambda: one.merge(kh.Bandit(kh.Greedy(), arms=ARMS, dim=4)),
            "another Bandit with sensors",
        ),
        (lambda: one.merge(one), "with itself"),
        (lambda: one.merge(None), "another Bandit"),
        (lambda: one.choose_many(np.ones((2, 2))), "choose_many cannot be used"),
        (lambda: one.effects, "effects cannot be used"),
        (lambda: one.explain(decision), "explain cannot be used"),
    ]
    for refused, reason in refusals:
        with pytest.raises(kh.KeyholeError, match=reason):
            refused()
    same(one, before)
    plain = kh.Bandit(kh.Greedy(), arms=2, dim=2)
    with pytest.raises(kh.InvalidValue, match="sensor needs a SensorLearner"):
        plain.choose([1.0, 2.0], sensor="calibrated")
    with pytest.raises(kh.InvalidValue, match="context needs a SensorLearner"):
        plain.learn(plain.choose([1.0, 2.0]), 1.0, context=[1.0])
    with pytest.raises(kh.InvalidValue, match="dim must be 4"):
        bandit(dim=3)
    with pytest.raises(kh.InvalidValue, match="is for simulations"):
        kh.Bandit(kh.SensorLearner(kh.ThompsonSampling(), "oracle"), arms=2, dim=2)


# -- copies, threads and merging ------------------------------------------------------------------


def test_copies_go_on_alone() -> None:
    one = bandit()
    live(one, 40)
    for twin in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        same(one, twin)
        live(twin, 10)
        assert sum(one.counts.values()) == 40
        assert sum(twin.counts.values()) == 50


def test_threads_share_a_bandit() -> None:
    one = bandit()
    workers = [threading.Thread(target=live, args=(one, 50, seed)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(one.counts.values()) == 200
    assert sum(float(sums.n.sum()) for sums in one._state.sums) == 200


def test_merging_adds_the_sums() -> None:
    """Bandits that went on apart know together what one would that had learned everything."""
    base = bandit()
    live(base, 30, seed=1)
    whole, first, second = (copy.copy(base) for _ in range(3))
    decisions = []
    for part, seed in ((first, 2), (second, 3)):
        rng = np.random.default_rng(seed)
        for k in range(40):
            name = ["known", "calibrated", "repeated"][k % 3]
            decision = part.choose(rng.standard_normal(sensors()[name].dim), sensor=name)
            reward, x = float(rng.standard_normal()), rng.standard_normal(3) if k % 4 == 0 else None
            part.learn(decision, reward, context=x)
            decisions.append((decision, reward, x))
    for decision, reward, x in decisions:
        whole.learn(decision, reward, context=x)
    first.merge(second, base=base)
    whole._state.rebuild()
    assert first.counts == whole.counts
    for mine, theirs in zip(first._state.sums, whole._state.sums, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert_allclose(a, b, atol=1e-9)
    assert_allclose(
        first._state.pairs[1].covariance, whole._state.pairs[1].covariance, rtol=1e-9, atol=1e-12
    )
    # Weights converge from different starts.
    for _ in range(30):
        first._state.rebuild()
        whole._state.rebuild()
    same(first, whole, rtol=1e-5)
    with pytest.raises(kh.AlreadyLearned):
        first.learn(decisions[-1][0], 1.0)
    with pytest.raises(kh.InvalidValue, match="more in common"):
        first.merge(second, base=base)


def test_what_cannot_be_merged() -> None:
    one, other = bandit(), bandit(arms=["A", "B", "D"])
    live(one, 5)
    live(other, 5)
    with pytest.raises(kh.InvalidValue, match="arms must be the same"):
        one.merge(other)
    with pytest.raises(kh.InvalidValue, match="same learner"):
        one.merge(kh.Bandit(learner(em=True), arms=ARMS, dim=4))
    swapped = bandit(arms=["C", "A", "B"])
    live(swapped, 15)
    expected = {arm: one.counts[arm] + swapped.counts[arm] for arm in ARMS}
    one.merge(swapped)
    assert one.counts == expected


# -- files ----------------------------------------------------------------------------------------


def resumed(one: SensorBandit) -> SensorBandit:
    loaded = kh.Bandit.load(one.to_bytes(), resume=True)
    assert isinstance(loaded, SensorBandit)
    return loaded


@pytest.mark.parametrize("late", [0.0, 0.3])
@pytest.mark.parametrize(
    "settings", [{}, {"em": True, "intercept": True}, {"reward_scale": 0.5}], ids=str
)
def test_a_saved_bandit_goes_on_to_the_bit(
    tmp_path: Path, settings: dict[str, Any], late: float
) -> None:
    """At any time: also between two estimates of a sensor whose contexts become known."""
    one = kh.Bandit(learner(**settings), arms=ARMS, dim=4, seed=3)
    assert isinstance(one, SensorBandit)
    behind = 0
    for seed in range(8):
        live(one, 11, seed=seed, late=late)
        loaded = resumed(one)
        same(one, loaded)
        pairs, known = one._state.pairs[1], one._state.sensors[1].pairs
        assert known is not None
        behind += int(pairs.seen[0] > known.seen[0])
        for mine, theirs in zip(everything(one._state), everything(loaded._state), strict=True):
            assert_array_equal(mine, theirs)
    assert behind > 0 if late else behind == 0
    one.save(tmp_path / "bandit.npz")
    loaded = SensorBandit.load(tmp_path / "bandit.npz", resume=True)
    assert loaded.learner == one.learner
    same(one, SensorBandit.load(one.to_bytes()))
    live(one, 40, seed=17)
    live(loaded, 40, seed=17)
    same(one, loaded)
    assert isinstance(kh.Bandit.load(one.to_bytes()), SensorBandit)
    with pytest.raises(kh.InvalidValue, match="not of a bandit with sensors"):
        SensorBandit.load(kh.Bandit(kh.Greedy(), arms=2, dim=2).to_bytes())


def test_a_saved_bandit_of_estimated_sensors_alone_goes_on_to_the_bit() -> None:
    """Their posterior is in a basis of the rows, which is not in the file."""
    named = {name: one for name, one in sensors().items() if name != "known"}
    one = kh.Bandit(kh.SensorLearner(kh.ThompsonSampling(), named), arms=ARMS, seed=3)
    assert isinstance(one, SensorBandit)
    rng = np.random.default_rng(4)
    for k in range(60):
        name = ["calibrated", "repeated"][k % 2]
        y = rng.standard_normal(named[name].dim)
        one.learn(one.choose(y, sensor=name), float(y.sum() + rng.standard_normal()))
    assert one._state.bases is not None
    loaded = resumed(one)
    for mine, theirs in zip(everything(one._state), everything(loaded._state), strict=True):
        assert_array_equal(mine, theirs)


def _changed(one: SensorBandit, tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "changed.npz"
    one.save(path)
    arrays = dict(read_arrays(path))
    header = json.loads(str(arrays["header"]))
    for name, value in changes.items():
        if name in header and name != "sensors":
            header[name] = value
        else:
            arrays[name] = value(arrays[name]) if callable(value) else value
    arrays["header"] = np.array(json.dumps(header))
    write_arrays(path, arrays)
    return path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"weights": lambda w: -w}, "weights"),
        ({"weights": lambda w: w[:-1]}, "weights"),
        ({"sums": lambda s: s[:-1]}, "sums are too few"),
        ({"sums": lambda s: np.append(s, 0.0)}, "the saved sums are"),
        ({"sums": lambda s: s + 0.5}, "whole counts"),
        ({"sensors": lambda s: s[1:]}, "damaged|too few|symmetric|whole"),
        ({"pairs": lambda s: s * np.nan}, "pairs is not finite"),
        ({"pairs": lambda s: -s}, "counted in whole numbers"),
        ({"units": lambda s: -1.0 - s}, "units"),
        ({"configurations": []}, "too few|sums are|configuration"),
        ({"configurations": [[9, [True]]]}, "at most"),
        ({"matrices": lambda s: s * 0.5}, "does not follow"),
        ({"matrices": lambda s: s * 2.0}, "bounds are below"),
        ({"reward_variance": -1.0}, "reward_variance"),
        ({"reward_variance": "x"}, "reward_variance"),
        ({"arms": ["A"]}, "shape|too few|sums"),
        ({"context_dim": 2}, "damaged|too few|symmetric|whole|singular"),
        ({"policy": {"name": "Other", "settings": {}}}, "none of Keyhole's"),
        ({"random": [1, 2]}, "damaged|random streams"),
        ({"format": "other"}, "not a saved bandit"),
        ({"clip": 0.5}, "clip"),
        ({"first_rewards": [1.0]}, "first_rewards are too many"),
        ({"rewards": [["x", "A", 9, 1.0, [1.0]]]}, "at most"),
        ({"rewards": [["x", "A", 0, 1.0, [1.0]]]}, "a measurement of their sensor"),
        ({"rewards": [["x", "A", 0, 1.0, [None] * 4]]}, "is not among the sums"),
        ({"rewards": [["x", "A", 0, "1", [None] * 4]]}, "not among|reward"),
        ({"known_contexts": [1]}, "list of strings"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    one = bandit()
    live(one, 30)
    with pytest.raises(kh.FileError, match=reason):
        kh.Bandit.load(_changed(one, tmp_path, **changes))


# -- joint draws ----------------------------------------------------------------------------------


def test_a_file_has_no_sums_of_arms_without_rewards() -> None:
    """With entries that drop out, most configurations have a reward of one arm or two."""
    rng, d, k = np.random.default_rng(4), 12, 6
    one = kh.Bandit(kh.SensorLearner(kh.Uniform(), kh.Sensor(sensing=np.eye(d))), arms=k, seed=1)
    assert isinstance(one, SensorBandit)
    for _ in range(80):
        y = rng.standard_normal(d)
        y[rng.random(d) < 0.3] = np.nan
        one.learn(one.choose(y), float(rng.standard_normal()))
    whole = sum(array.size for sums in one._state.sums for array in sums)
    counted = sum(int((sums.n > 0).sum()) for sums in one._state.sums)
    saved = len(snapshot_sums(one))
    assert saved == 2 * k * len(one._state.sums) + counted * (d + d * (d + 1) // 2)
    assert saved < 0.15 * whole
    twin = SensorBandit.load(one.to_bytes())
    for mine, theirs in zip(one._state.sums, twin._state.sums, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert_array_equal(a, b)


def snapshot_sums(one: SensorBandit) -> Any:
    """Return the sums as they are in the file."""
    return read_arrays(io.BytesIO(one.to_bytes()))["sums"]


def test_joint_draws_behind_a_bandit_are_those_of_the_learner() -> None:
    policy = kh.ThompsonSampling(v=0.7, sharing="shared", draw="joint")
    one, recipe = kh.Bandit(policy, arms=4, dim=3, seed=5), kh.Learner(policy)
    state, source, rng = recipe.start(4, 3), Streams(5), np.random.default_rng(1)
    for _ in range(60):
        y = rng.standard_normal((4, 3))
        draws = Draws(source["policy"].standard_normal(4), source["coin"].random(2))
        decision, chosen = one.choose(y), recipe.choose(state, y, draws)
        assert decision.arm == chosen.arm
        assert decision.probability is chosen.probability is None
        one.learn(decision, 1.0)
        recipe.learn(state, chosen.arm, y[chosen.arm], 1.0)
    with pytest.raises(kh.InvalidValue, match="need draw='per-arm'"):
        one.choice_probabilities(y)
    with pytest.raises(kh.InvalidValue, match="choose_many needs draw='per-arm'"):
        one.choose_many(y[None])
    both = one.choose(y[:2], among=(0, 1))
    assert both.probability is not None
    assert 0.0 < both.probability < 1.0
    loaded = kh.Bandit.load(one.to_bytes(), resume=True)
    assert loaded.policy == policy
    assert loaded.choose(y).arm == one.choose(y).arm
    with_sensor = kh.Bandit(
        kh.SensorLearner(policy, kh.Sensor(sensing=np.eye(3))), arms=4, dim=3, seed=1
    )
    assert with_sensor.choose(y).probability is None
    with pytest.raises(kh.InvalidValue, match="need draw='per-arm'"):
        with_sensor.choice_probabilities(y)


def test_ctrl_c_waits_until_a_reward_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pressed in the middle: the reward is learned, remembered and counted, or nothing of it."""
    one = bandit()
    live(one, 20)
    decision = one.choose(np.ones(4), sensor="known")
    before = int(one._state.n.sum())
    original = SensorState.learn

    def pressed(*given: Any, **more: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        original(*given, **more)
        signal.raise_signal(signal.SIGINT)  # and once more, which counts as one

    monkeypatch.setattr(SensorState, "learn", pressed)
    with pytest.raises(KeyboardInterrupt):
        one.learn(decision, 1.0)
    monkeypatch.undo()
    assert int(one._state.n.sum()) == before + 1
    with pytest.raises(kh.AlreadyLearned):
        one.learn(decision, 1.0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class TooLate(BaseException):
    """What a handler of a signal raises."""


def too_late(*_: Any) -> None:
    raise TooLate


@pytest.mark.parametrize("late", [False, True])
def test_a_handler_that_raises_waits_until_a_reward_is_learned(late: bool) -> None:
    """At every line of it: the reward is learned, remembered and counted, or nothing of it."""
    former = signal.signal(signal.SIGTERM, too_late)
    try:
        one = bandit()
        live(one, 20)
        decisions = [one.choose(np.ones(4), sensor="known") for _ in range(60)]
        twin, n_whole = copy.deepcopy(one), 0
        for k, decision in enumerate(decisions):
            if late:
                one.learn(decision, 1.0)
                twin.learn(decision, 1.0)
            n_whole += interrupted(one, twin, decision, 1 + 7 * k, late=late)
            same(one, twin)
            assert one._lineage.additions == 20 + twin._lineage.additions
        assert 0 < n_whole < len(decisions)  # some signals came before anything had changed
        assert signal.getsignal(signal.SIGTERM) is too_late
    finally:
        signal.signal(signal.SIGTERM, former)


def interrupted(
    one: SensorBandit, twin: SensorBandit, decision: kh.Decision, line: int, *, late: bool
) -> bool:
    """Learn with a signal at a line of the library; the twin learns if that was all of it."""
    left = [line]

    def at_line(frame: Any, event: str, _: Any) -> Any:
        if "holding" in frame.f_code.co_filename:
            return None
        left[0] -= event == "line"
        if left[0] == 0:
            signal.raise_signal(signal.SIGTERM)
        return at_line

    def learn(bandit: Any) -> None:
        if late:
            bandit.learn_context(decision, np.ones(3))
        else:
            bandit.learn(decision, 1.0)

    sys.settrace(at_line)
    try:
        learn(one)
    except TooLate:
        pass
    finally:
        sys.settrace(None)
    try:
        learn(one)
    except kh.AlreadyLearned:
        learn(twin)
        return True
    learn(twin)
    return False


def test_a_sensor_as_an_object_is_found_after_loading_and_copying() -> None:
    mine = sensors()["calibrated"]
    one = kh.Bandit(kh.SensorLearner(kh.ThompsonSampling(), {"mine": mine}), arms=2, dim=2)
    for twin in (copy.deepcopy(one), kh.Bandit.load(one.to_bytes())):
        assert twin.choose(np.ones(2), sensor=mine).sensor == "mine"


def test_choosing_changes_nothing_that_is_saved() -> None:
    one = bandit()
    live(one, 20)
    before = len(one._state.configurations)
    y = np.array([np.nan, np.nan, np.nan, 1.0])
    assert not any(c.seen.tolist() == [False] * 3 + [True] for c in one._state.configurations)
    one.choose(y, sensor="known")
    one.choice_probabilities(y, sensor="known")
    assert len(one._state.configurations) == len(one._state.sums) == before


def test_a_reward_that_fails_may_be_learned_later(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = bandit(), bandit()
    decision = one.choose(np.ones(2), sensor="calibrated")

    def fail(*_: Any, **__: Any) -> None:
        raise np.linalg.LinAlgError("made to fail")

    for failing in ("see_pair", "refresh"):
        monkeypatch.setattr(f"keyhole.core.SensorState.{failing}", fail)
        with pytest.raises(np.linalg.LinAlgError):
            one.learn(decision, 1.0, context=np.ones(3))
        monkeypatch.undo()
        assert set(one.counts.values()) == {0}
    one.learn(decision, 1.0, context=np.ones(3))
    other.learn(decision, 1.0, context=np.ones(3))
    same(one, other)


class Cautious:
    """A learner that always chooses the first arm."""

    def start(self, *_: Any, **__: Any) -> list[float]:
        return []

    def choose(self, *_: Any, **__: Any) -> Chosen:
        return Chosen(0, 1.0)

    def learn(self, *given: Any, **_: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        state, _arm, _observation, reward = given
        state.append(reward)


def test_ctrl_c_waits_until_a_learner_of_ones_own_has_learned() -> None:
    own: AnyLearner = Cautious()
    one = kh.Bandit(own, arms=ARMS, dim=2)
    assert isinstance(one, OwnBandit)
    decision = one.choose(np.ones(2))
    with pytest.raises(KeyboardInterrupt):
        one.learn(decision, 1.0)
    assert one._state == [1.0]
    assert one.counts["A"] == 1
    with pytest.raises(kh.AlreadyLearned):
        one.learn(decision, 1.0)
    with pytest.raises(kh.InvalidValue, match="explain needs a linear-Gaussian learner"):
        one.explain(decision)


@pytest.mark.parametrize("kind", [OwnBandit, SensorBandit])
def test_no_public_method_is_that_of_a_plain_bandit(kind: type[kh.Bandit]) -> None:
    """All of `Bandit` works on a posterior of its own: each name has to be answered anew."""
    public = {name for name in vars(kh.Bandit) if not name.startswith("_")}
    assert {"choose", "explain", "save", "effects"} <= public
    inherited = {
        name
        for name in public
        if inspect.getattr_static(kind, name) is inspect.getattr_static(kh.Bandit, name)
    }
    # These have no log, and the bandit of a log is of its own kind, whichever class is asked.
    assert inherited == {"amend", "forget", "from_log", "log"}


# -- glitches -------------------------------------------------------------------------------------


def clinic(**settings: Any) -> SensorBandit:
    sensor = kh.Sensor(sensing=np.eye(2), context_covariance=1.0, sensing_covariance=0.25)
    recipe = kh.SensorLearner(kh.ThompsonSampling(), {"cuff": sensor}, **settings)
    made = kh.Bandit(recipe, arms=["A"], seed=1)
    assert isinstance(made, SensorBandit)
    return made


def treat(one: SensorBandit, n: int, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(n):
        x = rng.standard_normal(2)
        decision = one.choose(x + 0.5 * rng.standard_normal(2), sensor="cuff")
        one.learn(decision, float(x @ [1.0, -1.0] + 0.3 * rng.standard_normal()))


def test_one_glitch_ruins_no_coefficient() -> None:
    """Of 300 rewards one has a measurement of 1e6 where 1 is usual: its entry is clipped."""
    one, whole = clinic(), clinic(clip=None)
    treat(one, 150)
    treat(whole, 150)
    usual = r"y\[1\] is 1e\+06, far from its usual 0 ± 1.1.*clipped to 10 of these units"
    with pytest.warns(kh.KeyholeWarning, match=usual):
        decision = one.choose([0.2, 1e6], sensor="cuff")
    with pytest.warns(kh.KeyholeWarning, match="2 times so far"):
        one.learn(decision, 0.3)
    whole.learn(decision, 0.3)
    treat(one, 150, seed=2)
    treat(whole, 150, seed=2)
    found = one.coefficients["A"]
    # An entry at 10 standard deviations counts as 100 usual ones: it may pull by a third.
    assert np.abs(found.mean - [1.0, -1.0]).max() < 0.35
    assert abs(whole.coefficients["A"].mean[1]) < 0.01  # what a glitch does that is not clipped
    one.belief([0.0, 1e6], sensor="cuff")  # the third, of which nothing is said
    with pytest.warns(kh.KeyholeWarning, match="4 times so far"):
        belief = one.belief([0.0, 1e6], sensor="cuff")
    assert_allclose(belief.mean, [0.0, 0.8 * 10.0 * np.sqrt(1.25)])


def test_a_late_context_is_clipped() -> None:
    one = clinic()
    treat(one, 150)
    decision = one.choose([0.2, 0.1], sensor="cuff")
    with pytest.warns(kh.KeyholeWarning, match=r"context\[0\] is -1e\+09, far from its usual 0"):
        one.learn(decision, 0.3, context=[-1e9, 0.1])
    gram = one._state.sums[0].gram[0]
    assert_allclose(gram, np.outer([-10.0, 0.1], [-10.0, 0.1]))


def test_entries_that_do_not_fit_each_other_are_clipped() -> None:
    """Each is usual by itself. By hand: the difference of the two has the variance 2e-6."""
    covariance = [[1.0, 1.0 - 1e-6], [1.0 - 1e-6, 1.0]]
    sensor = kh.Sensor(sensing=np.eye(2), context_covariance=covariance, sensing_covariance=0.0)
    near = sensor.observation_range.clipped(np.array([3.0, -3.0]), 10.0)
    assert near @ np.linalg.solve(covariance, near) == pytest.approx(200.0)
    assert_allclose(near[0], -near[1])
    for row in ([3.0, 3.0], [np.nan, 3.0], [0.0, 0.01], [10.0, 10.0]):
        y = np.array(row)
        assert sensor.observation_range.clipped(y, 10.0) is y


def test_a_sensor_of_few_pairs_clips_nothing() -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((7, 1))
    for n, limited in ((7, False), (8, True)):
        rows = np.vstack([x, [[0.1]]])[:n]
        recipe = kh.SensorLearner(kh.ThompsonSampling(), kh.Sensor.calibrated(rows, rows))
        state = recipe.start(1, 1)
        assert (state.clipped(0, np.array([1e6]))[0] < 1e6) == limited
    with pytest.raises(kh.InvalidValue, match="clip must be at least 1"):
        kh.SensorLearner(kh.ThompsonSampling(), sensors(), clip=0.5)


# -- truth after the reward -----------------------------------------------------------------------


def played(one: SensorBandit, n: int, seed: int = 5) -> list[tuple[kh.Decision, float, Any]]:
    rng, rows = np.random.default_rng(seed), []
    for k in range(n):
        name = ["known", "calibrated", "repeated"][k % 3]
        y = rng.standard_normal(sensors()[name].dim)
        y[rng.random(y.size) < 0.2] = np.nan
        decision = one.choose(y, sensor=name)
        rows.append((decision, float(rng.standard_normal()), rng.standard_normal(3)))
    return rows


def same_sums(first: SensorBandit, second: SensorBandit) -> None:
    mine, theirs = (
        {key: one._state.sums[place] for key, place in one._state.places.items()}
        for one in (first, second)
    )
    assert set(mine) >= set(theirs)
    for key, sums in mine.items():
        for a, b in zip(sums, theirs.get(key, [np.zeros(())] * 4), strict=True):
            assert_allclose(a, b, atol=1e-11)
    for j, pairs in first._state.pairs.items():
        assert_allclose(pairs.covariance, second._state.pairs[j].covariance, atol=1e-11)
        assert pairs.seen[0] == second._state.pairs[j].seen[0]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("names", [("known", "calibrated", "repeated"), ("calibrated", "repeated")])
def test_truth_after_the_reward_is_truth_with_it(intercept: bool, names: tuple[str, ...]) -> None:
    """The sums are those of rewards learned with their context, and so is what follows."""
    some = {name: one for name, one in sensors().items() if name in names}
    recipe = kh.SensorLearner(kh.ThompsonSampling(), some, intercept=intercept)
    late, prompt = (kh.Bandit(recipe, arms=ARMS, seed=1) for _ in range(2))
    assert isinstance(late, SensorBandit)
    assert isinstance(prompt, SensorBandit)
    rows = [row for row in played(bandit(), 60) if row[0].sensor in names]
    for k, (decision, reward, x) in enumerate(rows):
        late.learn(decision, reward)
        prompt.learn(decision, reward, context=x if k % 2 else None)
    for decision, _, x in rows[1::2]:
        late.learn_context(kh.Decision.from_dict(decision.to_dict()), x)
    assert late.counts == prompt.counts
    same_sums(late, prompt)
    for _ in range(30):  # weights converge from different starts
        late._state.rebuild()
        prompt._state.rebuild()
    same(late, prompt, rtol=1e-5)


def test_a_context_is_learned_once_and_after_its_reward() -> None:
    one = bandit()
    live(one, 20)
    rows = played(one, 3)
    decision, reward, x = rows[1]
    refusals: list[tuple[Any, type[Exception], str]] = [
        (lambda: one.learn_context(decision, x), kh.InvalidValue, "no reward of decision"),
        (
            lambda: one.learn_context(kh.Decision(arm="A", observation=[1, 2]), x),
            kh.InvalidValue,
            "decision.id must be given",
        ),
        (lambda: one.learn_context("A", x), kh.InvalidValue, "Decision"),  # type: ignore[arg-type]
    ]
    for refused, kind, reason in refusals:
        with pytest.raises(kind, match=reason):
            refused()
    one.learn(decision, reward)
    before = everything(one._state)
    with pytest.raises(kh.InvalidValue, match="context must have shape"):
        one.learn_context(decision, x[:2])
    for mine, theirs in zip(everything(one._state), before, strict=True):
        assert_array_equal(mine, theirs)
    one.learn_context(decision, x)
    after = copy.copy(one)
    loaded = kh.Bandit.load(one.to_bytes())
    assert isinstance(loaded, SensorBandit)
    for each in (one, after, pickle.loads(pickle.dumps(one)), loaded):
        with pytest.raises(kh.AlreadyLearned, match="context of decision"):
            each.learn_context(decision, x)
    same(one, after)
    one.learn(rows[0][0], 1.0, context=x)
    with pytest.raises(kh.AlreadyLearned, match="context of decision"):
        one.learn_context(rows[0][0], x)


def test_a_context_finds_its_reward_in_copies_and_files() -> None:
    """Also that of another arm, which was taken in place of the chosen one."""
    one = bandit()
    rows = played(one, 12)
    for decision, reward, _ in rows:
        other = next(arm for arm in ARMS if arm != decision.arm)
        one.learn(decision.instead(other, decision.observation), reward)
    copies = [copy.copy(one), pickle.loads(pickle.dumps(one)), resumed(one)]
    for decision, _, x in rows:
        for each in (one, *copies):
            each.learn_context(decision, x)
    for each in copies:
        same_sums(each, one)
        same(each, one)
    assert all(float(sums.n.sum()) == 0.0 for sums in one._state.sums[1:])
    assert all(not array.any() for sums in one._state.sums[1:] for array in sums)


def test_all_rewards_of_a_decision_get_its_context_and_it_is_one_pair() -> None:
    first, second, third = bandit(), bandit(), bandit()
    decision = first.choose([0.5, 1.0], sensor="calibrated")
    x, before = [1.0, 0.0, -1.0], float(first._state.pairs[1].seen[0])
    first.learn(decision, 1.0)
    first.learn(decision, 2.0, again=True)
    first.learn_context(decision, x)
    second.learn(decision, 1.0, context=x)
    second.learn(decision, 2.0, again=True, context=x)
    third.learn(decision, 1.0)
    third.learn(decision, 2.0, again=True, context=x)
    for each in (first, second, third):
        assert float(each._state.pairs[1].seen[0]) == before + 1.0
        assert float(each._state.sums[0].n.sum()) == 2.0
        same_sums(each, second)


def test_contexts_that_came_to_either_of_two_clinics_are_merged() -> None:
    base = bandit()
    rows = played(base, 40)
    for decision, reward, _ in rows:
        base.learn(decision, reward)
    first, second, whole = (copy.copy(base) for _ in range(3))
    for k, (decision, _, x) in enumerate(rows[:30]):
        (first if k % 2 else second).learn_context(decision, x)
        whole.learn_context(decision, x)
    merged = copy.copy(first)
    merged.merge(second, base=base)
    same_sums(merged, whole)
    merged.learn_context(rows[-1][0], rows[-1][2])
    with pytest.raises(kh.AlreadyLearned):
        merged.learn_context(rows[0][0], rows[0][2])
    first.learn_context(rows[0][0], rows[0][2])  # which the second has learned, too
    with pytest.raises(kh.InvalidValue, match="learned by both of these bandits"):
        first.merge(second, base=base)


def test_a_reward_that_was_sent_to_two_clinics_is_told() -> None:
    first, second = bandit(), bandit(seed=4)
    decision = first.choose([0.5, 1.0], sensor="calibrated")
    for each in (first, second):
        each.learn(decision, 1.0)
    with pytest.warns(kh.KeyholeWarning, match="1 decisions were learned by both"):
        first.merge(second)


@pytest.mark.parametrize("intercept", [False, True])
def test_young_clinics_are_merged(intercept: bool) -> None:
    """A few rewards each, counted from different zeros, through configurations of their own."""
    recipe = learner(intercept=intercept)
    first, second, whole = (kh.Bandit(recipe, arms=ARMS, seed=1) for _ in range(3))
    rows = played(bandit(), 9)
    for k, (decision, reward, _) in enumerate(rows):
        (first if k < 3 else second).learn(decision, reward + 50.0)
        whole.learn(decision, reward + 50.0)
    first.merge(second)
    assert isinstance(first, SensorBandit)
    assert isinstance(whole, SensorBandit)
    same_sums(first, whole)
    assert np.isfinite(first.coefficients["A"].mean).all()
    first.save(io.BytesIO())


def test_an_exchange_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = bandit()
    live(one, 30, late=0.0)
    decision, reward, x = played(one, 2)[1]
    one.learn(decision, reward)
    for failing in ("_refresh", "see_pair"):
        before = everything(one._state)
        original = getattr(SensorState, failing)

        def fail(*given: Any, original: Any = original, **more: Any) -> None:
            original(*given, **more)
            raise np.linalg.LinAlgError("made to fail")

        with monkeypatch.context() as patched:
            patched.setattr(SensorState, failing, fail)
            with pytest.raises(np.linalg.LinAlgError):
                one.learn_context(decision, x)
        for mine, theirs in zip(everything(one._state), before, strict=True):
            assert_array_equal(mine, theirs)
    one.learn_context(decision, x)
