"""Logs of bandits with sensors, and of learners of one's own: replayed to the bit."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Draws
from keyhole.errors import FileUnusable, Message
from tests.online.test_sensing import sensors

ARMS = ["A", "B", "C"]
SENSOR_LEARNERS: dict[str, dict[str, Any]] = {
    "all": {},
    "intercept": {"intercept": True},
    "em": {"em": True},
    "scale": {"reward_scale": 0.5, "clip": 2.0},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a log that does not exist yet."""
    return tmp_path / "decisions.jsonl"


# -- sensors ---------------------------------------------------------------------------------------


def sensor_bandit(path: Path | None, policy: Any = None, **settings: Any) -> Any:
    learner = kh.SensorLearner(policy or kh.ThompsonSampling(), sensors(), **settings)
    return kh.Bandit(learner, arms=ARMS, dim=4, seed=3, log=path)


def live(bandit: Any, rounds: int = 60, seed: int = 1) -> list[Any]:
    """Live through missing entries, rows for each arm, late rewards and late contexts."""
    rng, named, late = np.random.default_rng(seed), sensors(), list[Any]()
    learned, all_of_them = [], []
    for t in range(rounds):
        name = str(rng.choice(list(named)))
        dim, among = named[name].dim, None if t % 4 else ["C", "A"]
        shape: Any = (dim,) if t % 3 else (3 if among is None else 2, dim)
        y = rng.standard_normal(shape) * (30.0 if t % 11 == 10 else 1.0)
        y[rng.random(shape) < 0.2] = np.nan
        decision = bandit.choose(y, sensor=name, among=among)
        late.append(decision)
        all_of_them.append(decision)
        if t % 2 == 0:
            one = late.pop(int(rng.integers(len(late))))
            x = rng.standard_normal(3) if t % 6 == 0 else None
            given = one.id if bandit.log is not None and t % 4 else one
            bandit.learn(given, float(rng.standard_normal()), context=x)
            if x is None:
                learned.append(one)
        if t % 10 == 9 and learned:
            bandit.learn_context(learned.pop(0), 20.0 * rng.standard_normal(3))
    return all_of_them


@pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
@pytest.mark.parametrize("name", SENSOR_LEARNERS)
def test_a_bandit_with_sensors_is_replayed_to_the_bit(name: str, path: Path) -> None:
    bandit = sensor_bandit(path, **SENSOR_LEARNERS[name])
    live(bandit)
    other = sensor_bandit(None, **SENSOR_LEARNERS[name])
    live(other, 20, seed=5)
    bandit.merge(other)
    elsewhere = other.choose([0.1, 0.2, 0.3, 0.4], sensor="known")
    bandit.learn(kh.Decision.from_dict(json.loads(json.dumps(elsewhere.to_dict()))), 0.5)
    bandit.learn(bandit.choose([0.3, 0.1], sensor="calibrated").instead("B"), -0.5)
    again: Any = kh.Log(path).replay()
    assert again.log is None
    assert again.to_bytes() == bandit.without_log().to_bytes()
    y = [0.3, 0.1, 0.0, -1.0]
    assert [again.choose(y, sensor="known").score for _ in range(4)] == [
        bandit.choose(y, sensor="known").score for _ in range(4)
    ]
    packed = path.with_suffix(".parquet")
    assert bandit.log.to_parquet(packed) == len(bandit.log)
    assert list(kh.Log(packed)) == list(kh.Log(path))
    bandit.log.close()
    resumed: Any = kh.Bandit.from_log(path)
    assert resumed.counts == bandit.counts
    assert kh.Log(packed).replay().to_bytes() == bandit.without_log().to_bytes()


@pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
def test_the_log_changes_nothing_of_a_bandit_with_sensors(path: Path) -> None:
    logged, plain = sensor_bandit(path), sensor_bandit(None)
    ours, theirs = live(logged), live(plain)
    pairs = zip(ours, theirs, strict=True)
    assert all((one.arm, one.score) == (other.arm, other.score) for one, other in pairs)
    assert logged.counts == plain.counts


@pytest.mark.parametrize(
    "policy", [kh.ThompsonSampling(v=1.0), kh.LinUCB(alpha=0.5), kh.EpsilonGreedy(epsilon=0.2)]
)
@pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
def test_probabilities_of_sensors_follow_from_mean_and_width(policy: Any, path: Path) -> None:
    bandit = sensor_bandit(path, policy, intercept=True)
    live(bandit)
    found = 0
    for row in bandit.log:
        if type(row).__name__ == "Decision":
            mean, width = np.array(row.mean), np.array(row.width)
            location, scale = mean + width * row.optimism, width * row.dispersion
            chances = kh.choice_probabilities(location[None], scale[None], epsilon=row.epsilon)[0]
            own = chances[(row.arms or ARMS).index(row.arm)]
            assert own == pytest.approx(row.probability, abs=1e-12)
            found += 1
    assert found == 60


def test_rewards_and_contexts_of_events_are_told_apart(path: Path) -> None:
    bandit = sensor_bandit(path)
    first, second = (bandit.choose([0.1, 0.2, 0.3, 0.4], sensor="known") for _ in range(2))
    bandit.learn(first.id, 1.0)
    bandit.learn_context(first.id, [0.1, 0.2, 0.3])
    before = path.read_bytes()
    with pytest.raises(kh.AlreadyLearned):
        bandit.learn(first, 1.0)
    with pytest.raises(kh.AlreadyLearned):
        bandit.learn_context(first.id, [0.1, 0.2, 0.3])
    with pytest.raises(kh.InvalidValue, match="no reward of decision"):
        bandit.learn_context(second.id, [0.1, 0.2, 0.3])
    with pytest.raises(kh.UnknownEvent):
        bandit.learn("x", 1.0)
    with pytest.raises(kh.UnknownEvent):
        bandit.learn_context("x", [0.1, 0.2, 0.3])
    with pytest.raises(kh.InvalidValue, match="sensor must be given"):
        bandit.choose([0.1, 0.2])
    assert path.read_bytes() == before
    bandit.forget(first.id)
    with pytest.raises(kh.ForgottenEvent):
        bandit.learn_context(first.id, [0.1, 0.2, 0.3])
    bandit.log.close()
    with pytest.raises(kh.ForgottenEvent):
        kh.Bandit.from_log(path).learn(first.id, 1.0)


@pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
@pytest.mark.parametrize("name", ["all", "intercept", "scale"])
def test_sensors_forget_and_amend_exactly(name: str, path: Path) -> None:
    """Sums per configuration, and pairs, are those of a bandit that learned so at once."""
    bandit, twin = (sensor_bandit(one, **SENSOR_LEARNERS[name]) for one in (path, None))
    rng, named, events = np.random.default_rng(2), sensors(), []
    for t in range(60):
        sensor = list(named)[t % 3]
        y = rng.standard_normal(named[sensor].dim)
        if sensor != "calibrated":
            y[rng.random(y.size) < 0.1] = np.nan
        arm, reward, x = ARMS[t % 2], float(rng.standard_normal()), rng.standard_normal(3)
        context = x if t % 5 == 0 else None
        for one in (bandit, twin):
            decision = one.choose(y, sensor=sensor).instead(arm)
            wrong = one is bandit and t >= 20 and t % 4 == 1
            if one is bandit or t < 20 or t % 4:
                one.learn(decision, reward + 3.0 * wrong, context=context)
                if t % 5 == 1:
                    one.learn_context(decision, x)
        events.append((bandit._lineage.run, reward))
    for t in range(20, 60):
        event = f"{bandit._lineage.run}-{t + 1}"
        if t % 4 == 0:
            bandit.forget(event)
        if t % 4 == 1:
            bandit.amend(event, events[t][1])
    assert len(bandit._state.sums) >= len(twin._state.sums)
    for mine, one in zip(bandit._state.sums, bandit._state.configurations, strict=True):
        place = twin._state.configuration(one.sensor, one.seen)
        for found, expected in zip(mine, twin._state.sums[place], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    for j, pairs in bandit._state.pairs.items():
        for found, expected in zip(pairs, twin._state.pairs[j], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert bandit.counts == twin.counts
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()
    for arm in ("A", "B"):
        mine, theirs = bandit.coefficients[arm], twin.coefficients[arm]
        np.testing.assert_allclose(mine.mean, theirs.mean, atol=0.05)
    for t in range(60):
        if t < 20 or t % 4:
            bandit.forget(f"{bandit._lineage.run}-{t + 1}")
    assert sum(bandit.counts.values()) == 0
    assert not any(array.any() for sums in bandit._state.sums for array in sums)
    assert bandit.posterior.count.sum() == 0
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


def test_an_amended_reward_may_learn_its_context_later(path: Path) -> None:
    bandit, twin = sensor_bandit(path), sensor_bandit(None)
    for one in (bandit, twin):
        decision = one.choose([0.1, 0.2, 0.3, 0.4], sensor="known").instead("A")
        one.learn(decision, 5.0 if one is bandit else 1.0)
        if one is bandit:
            one.amend(decision.id, 1.0)
        one.learn_context(decision, [0.5, -0.5, 1.0])
    for mine, theirs in zip(bandit._state.sums[0], twin._state.sums[0], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    bandit.forget(decision.id.replace(twin._lineage.run, bandit._lineage.run))
    assert not bandit._state.sums[0].n.any()
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


def test_copies_of_a_bandit_with_sensors_have_no_log(path: Path) -> None:
    bandit = sensor_bandit(path)
    bandit.learn(bandit.choose([0.1, 0.2, 0.3, 0.4], sensor="known"), 1.0)
    before = path.read_bytes()
    for twin in (copy.copy(bandit), copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))):
        assert twin.log is None
        twin.learn(twin.choose([0.1, 0.2, 0.3, 0.4], sensor="known"), 1.0)
        assert sum(twin.counts.values()) == 2
    assert path.read_bytes() == before
    logged: Any = kh.Bandit.load(bandit.to_bytes(), log=path.with_name("second.jsonl"))
    logged.learn(logged.choose([0.1, 0.2], sensor="calibrated").id, 1.0)
    assert len(logged.log) == 3
    second = kh.Log(path.with_name("second.jsonl"))
    assert second.replay().to_bytes() == logged.without_log().to_bytes()


# -- learners of one's own -------------------------------------------------------------------------


class Counting:
    """Thompson sampling of the mean of each arm, by counts: a learner with a state of its own."""

    def __init__(self, prior: float = 1.0) -> None:
        self.prior = prior

    def start(self, n_arms: int, dim: int) -> Any:
        return {"n": np.full(n_arms, self.prior), "sum": np.zeros((n_arms, dim)), "asked": 0}

    def choose(self, state: Any, observation: Any, draws: Draws) -> Any:
        state["asked"] += 1
        value = np.nan_to_num(observation) * (state["sum"] / state["n"][:, None])
        scores = value.sum(axis=-1) + draws.normals / np.sqrt(state["n"])
        if draws.uniforms[0] < 0.1:
            return kh.Chosen(int(draws.uniforms[1] * len(scores)), 0.1 / len(scores))
        return kh.Chosen(int(scores.argmax()), 0.5)

    def learn(self, state: Any, arm: int, observation: Any, reward: float) -> None:
        if reward > 100.0:
            state["n"][arm] += 0.5
            raise RuntimeError("too much")
        state["n"][arm] += 1.0
        state["sum"][arm] += reward * np.nan_to_num(observation)

    def __repr__(self) -> str:
        return f"Counting({self.prior})"


def own_bandit(path: Path | None, learner: Any = None) -> Any:
    return kh.Bandit(learner or Counting(), arms=ARMS, dim=2, seed=5, log=path)


def live_own(bandit: Any, rounds: int = 60) -> list[str]:
    rng, late, events = np.random.default_rng(4), list[Any](), list[Any]()
    for t in range(rounds):
        y = rng.standard_normal((3, 2) if t % 3 == 0 else 2)
        y[..., 0][rng.random(y[..., 0].shape) < 0.1] = np.nan
        late.append(bandit.choose(y))
        events.append(late[-1].id)
        if t % 2:
            one = late.pop(int(rng.integers(len(late))))
            given = one.id if bandit.log is not None and t % 4 == 1 else one
            bandit.learn(given, float(rng.standard_normal()))
    return events


def states_equal(one: Any, other: Any) -> None:
    assert one._state["asked"] == other._state["asked"]
    for name in ("n", "sum"):
        np.testing.assert_array_equal(one._state[name], other._state[name])
    assert one.counts == other.counts
    y = [0.1, 0.2]
    assert [one.choose(y).arm for _ in range(9)] == [other.choose(y).arm for _ in range(9)]


def test_a_learner_of_ones_own_is_rebuilt_by_its_calls(path: Path) -> None:
    bandit, plain = own_bandit(path), own_bandit(None)
    live_own(bandit)
    live_own(plain)
    elsewhere = kh.Decision(arm="B", observation=[0.5, np.nan], id="elsewhere 1")
    bandit.learn(elsewhere, 1.0)
    bandit.learn(bandit.choose([0.1, 0.2]).instead("C"), 2.0)
    plain.learn(elsewhere, 1.0)
    plain.learn(plain.choose([0.1, 0.2]).instead("C"), 2.0)
    replayed = kh.Log(path).replay(learner=Counting())
    assert replayed.log is None
    packed = path.with_suffix(".parquet")
    bandit.log.to_parquet(packed)
    states_equal(kh.Log(packed).replay(learner=Counting()), kh.Log(path).replay(learner=Counting()))
    states_equal(replayed, bandit.without_log())
    bandit.log.close()
    again: Any = kh.Bandit.from_log(path, learner=Counting())
    assert again.log.status("elsewhere 1") == "learned"
    states_equal(kh.Log(packed).replay(learner=Counting()), plain)


def test_events_of_a_learner_of_ones_own_are_learned_once(path: Path) -> None:
    bandit = own_bandit(path)
    event = bandit.choose([1.0, 2.0]).id
    bandit.learn(event, 1.0)
    before = path.read_bytes()
    with pytest.raises(kh.AlreadyLearned):
        bandit.learn(event, 1.0)
    with pytest.raises(kh.UnknownEvent):
        bandit.learn("x", 1.0)
    with pytest.raises(kh.InvalidValue, match="forget needs a linear-Gaussian learner"):
        bandit.forget(event)
    with pytest.raises(kh.InvalidValue, match="amend needs a linear-Gaussian learner"):
        bandit.amend(event, 2.0)
    with pytest.raises(kh.InvalidValue, match="y must have shape"):
        bandit.choose([1.0])
    assert path.read_bytes() == before
    bandit.log.close()
    with pytest.raises(kh.AlreadyLearned):
        kh.Bandit.from_log(path, learner=Counting()).learn(event, 1.0)


def test_another_learner_than_the_one_that_wrote_the_log_is_refused(path: Path) -> None:
    bandit = own_bandit(path)
    live_own(bandit)
    bandit.log.close()
    with pytest.raises(kh.FileError, match=r"a learner of one's own, Counting\(1.0\).*learner=..."):
        kh.Log(path).replay()
    with pytest.raises(kh.FileError, match=r"row .* does not follow"):
        kh.Log(path).replay(learner=Counting(prior=50.0))
    linear = path.with_name("linear.jsonl")
    kh.Bandit(kh.Greedy(), arms=2, dim=1, log=linear)
    with pytest.raises(kh.FileError, match="this log has its learner"):
        kh.Log(linear).replay(learner=Counting())


def test_a_learner_that_raises_stops_its_bandit(path: Path) -> None:
    """Its state may be half changed, which no row tells of; the rows lead to one that is whole."""
    bandit = own_bandit(path)
    live_own(bandit)
    decision = bandit.choose([0.1, 0.2])
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="too much"):
        bandit.learn(decision, 101.0)
    with pytest.raises(FileUnusable, match=r"Counting raised .*too much.*from_log goes on"):
        bandit.choose([0.1, 0.2])
    assert path.read_bytes() == before
    bandit.log.close()
    again: Any = kh.Bandit.from_log(path, learner=Counting())
    again.learn(decision.id, 1.0)
    assert again._state["n"].sum() == 3.0 + 31.0


def test_copies_of_a_bandit_of_ones_own_have_no_log(path: Path) -> None:
    bandit = own_bandit(path)
    bandit.learn(bandit.choose([1.0, 2.0]), 1.0)
    for twin in (copy.copy(bandit), copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))):
        assert twin.log is None
        twin.learn(twin.choose([1.0, 2.0]), 1.0)
    assert sum(bandit.counts.values()) == 1


def test_a_text_with_a_public_one_is_copied_with_it() -> None:
    """A bandit that is copied or saved may have warnings still to give."""
    message = Message("age is 58", "age is unusual")
    for one in (copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert (one, one.public) == ("age is 58", "age is unusual")
