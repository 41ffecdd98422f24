"""Columns of a log: probabilities at other contexts, and rounds that are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.evaluation import FixedArm, Logged, audit_log
from keyhole.evaluation.adaptive import variances
from keyhole.evaluation.targets import Tracks
from keyhole.online.log import rows
from keyhole.online.log.checkpoints import _asked, _planned
from keyhole.online.log.replaying import Own
from keyhole.online.log.rounds import KEPT, LoggedRounds
from tests.online.test_sensing import sensors

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
GROWING = kh.Features(numbers=["age"], categories={"city": "grow"})
OF_ARMS = kh.Features(numbers=["age"], arms=kh.Features(numbers=["price"]), cross=[])
LEARNERS: dict[str, Any] = {
    "plain, late": kh.ThompsonSampling(),
    "shared, late": kh.ThompsonSampling(v=1.0, sharing="shared"),
    "hybrid": kh.ThompsonSampling(v=1.0, sharing="hybrid"),
    "intercept": kh.Learner(kh.ThompsonSampling(v=1.0), intercept=True),
    "units": kh.Learner(kh.ThompsonSampling(), intercept=True, standardize=True, missing="predict"),
    "epsilon": kh.Learner(kh.EpsilonGreedy(epsilon=0.2), standardize=True, missing="mean"),
    "growing": kh.Learner(kh.ThompsonSampling(), GROWING),
    "arms": kh.Learner(kh.ThompsonSampling(), OF_ARMS),
    "sensors": kh.SensorLearner(kh.ThompsonSampling(), sensors(), intercept=True),
}
PRICES = {"A": {"price": 1.0}, "B": {"price": 2.0}, "C": {"price": 3.0}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a log that does not exist yet."""
    return tmp_path / "decisions.jsonl"


def bandit_of(name: str, path: Path) -> Any:
    dim = {"growing": None, "arms": None, "sensors": 4}.get(name, 2)
    arms = PRICES if name == "arms" else ["A", "B", "C"]
    return kh.Bandit(LEARNERS[name], arms=arms, dim=dim, seed=4, log=path)


def context_of(name: str, rng: Any, t: int) -> dict[str, Any]:
    """Return the arguments of a choice."""
    if name == "growing":
        city = f"c{int(rng.integers(1 + min(t // 9, 7)))}" if rng.random() < 0.9 else None
        return {"y": {"age": float(rng.normal(40.0, 9.0 if t < 60 else 300.0)), "city": city}}
    if name == "arms":
        return {"y": {"age": float(rng.normal(40.0, 9.0)) if rng.random() < 0.8 else None}}
    if name == "sensors":
        sensor = str(rng.choice(["known", "calibrated", "repeated"]))
        dim = {"known": 4, "calibrated": 2, "repeated": 3}[sensor]
        return {"y": rng.standard_normal(dim), "sensor": sensor}
    y = rng.normal(0.5, 1.0 if t < 60 else 20.0, size=(3, 2) if t % 5 == 0 else 2)
    if name in ("units", "epsilon"):
        y[rng.random(y.shape) < 0.2] = np.nan
    return {"y": y}


def lived(name: str, path: Path, rounds: int = 160) -> list[dict[str, Any]]:
    """Live through late rewards, subsets of the arms, arms that come and go; return the contexts.

    A reward comes up to six rounds late; all come in the end.
    """
    rng, bandit = np.random.default_rng(2), bandit_of(name, path)
    late, contexts = list[Any](), list[dict[str, Any]]()
    changes = name not in ("sensors", "arms", "hybrid")
    for t in range(rounds):
        if t == 50 and changes:
            bandit.add_arms(["D"])
        if t == 120 and changes:
            bandit.remove_arms(["D"])
            late = [one for one in late if one.arm != "D"]
        context = context_of(name, rng, t)
        if t % 7 == 0 and (t % 5 or name in ("growing", "sensors")):
            context["among"] = ["C", "A"]
        elif t % 5 == 0 and np.ndim(context["y"]) == 2 and len(bandit.arms) == 4:
            context["y"] = np.vstack([context["y"], rng.standard_normal(2)])
        contexts.append(context)
        late.append(bandit.choose(**context))
        while len(late) > rng.integers(6) or (late and t == rounds - 1):
            bandit.learn(late.pop(0), float(rng.normal(2.0, 1.0)))
    bandit.log.close()
    return contexts


@pytest.mark.parametrize("name", LEARNERS)
def test_probabilities_at_other_contexts_are_those_of_the_bandit_then(
    name: str, path: Path
) -> None:
    """A bandit is replayed from the rows before a checkpoint, and asked."""
    contexts = lived(name, path)
    log = kh.Log(path)
    columns = log.columns()
    known = columns["checkpoints"]
    made = [row for row in log if isinstance(row, rows.Decision)]
    assert len(columns["chosen"]) == 160
    log.to_parquet(path.with_suffix(".parquet"))
    packed = kh.Log(path.with_suffix(".parquet")).columns()
    for part in ("chosen", "probability", "reward", "mean", "width", "epsilon"):
        np.testing.assert_array_equal(packed[part], columns[part])
    assert packed["checkpoints"]["starts"].tolist() == known["starts"].tolist()
    lines = path.read_bytes().splitlines(keepends=True)
    checked = 0
    for c in (2, len(known["starts"]) // 2, len(known["starts"]) - 1):
        start = int(known["starts"][c])
        before = path.with_name(f"{c}.jsonl")
        before.write_bytes(b"".join(lines[: made[start].seq - 1]))
        bandit: Any = kh.Log(before).replay()
        for t, found in zip(known["contexts"][c], known["probabilities"][c], strict=True):
            # All arms of that round, and not those that came later.
            among = contexts[t].get("among") or (made[t].arms or _arms(log, made[t].seq))
            asked = {**contexts[t], "among": among}
            if name == "arms" and among != ["C", "A"]:
                asked["among"] = PRICES
            expected = bandit.choice_probabilities(**asked)
            table = [expected.get(arm, 0.0) for arm in columns["arms"]]
            np.testing.assert_allclose(found, table, atol=1e-12)
            checked += 1
    assert checked > 50
    assert audit_log(columns).is_sound
    _check_shares(columns)


def _arms(log: kh.Log, seq: int) -> list[Any]:
    arms: list[Any] = []
    for row in log:
        if row.seq >= seq:
            return arms
        if isinstance(row, rows.Start):
            arms = list(row.arms)
        elif isinstance(row, rows.Arms):
            arms = row.applied_to(arms)
    return arms


def _check_shares(columns: dict[str, Any]) -> None:
    """v_t of uniform choices is the mean of sum_a (1/k)^2 / e_t(a | x_s)."""
    log = Logged.of(columns)
    tracks = Tracks(log)
    found = variances(tracks.propensities("uniform"), tracks.logged, tracks.checkpoints)
    known = columns["checkpoints"]
    for c in (1, len(known["starts"]) - 1):
        e, contexts = known["probabilities"][c], known["contexts"][c]
        k = log.candidates[contexts].sum(axis=1)
        terms = np.where(log.candidates[contexts], 1.0 / np.where(e > 0, e, np.nan), 0.0)
        moment = terms.sum(axis=1) / k**2
        expected = np.inf if np.isnan(moment).any() else moment.mean()
        assert found[known["starts"][c]] == pytest.approx(expected, rel=1e-12)
    without = Tracks(Logged.of({**columns, "checkpoints": None, "observation": None}))
    other = variances(without.propensities("uniform"), without.logged, without.checkpoints)
    assert not np.allclose(other, found, rtol=0.01)


def test_a_mean_is_that_of_its_own_time(path: Path) -> None:
    """The 32nd observation fixes units, and with them the zero of rewards, after its choice."""
    learner = kh.Learner(kh.ThompsonSampling(), intercept=True, standardize=True)
    bandit: Any = kh.Bandit(learner, arms=["A", "B"], dim=1, seed=1, log=path)
    rng = np.random.default_rng(1)
    for t in range(33):
        decision = bandit.choose(rng.standard_normal(1))
        if t < 20:
            bandit.learn(decision, 100.0 + t)
    columns = kh.Log(path).columns()
    assert bandit._learned.observer.offset > 100.0
    assert columns["mean"][:32].tolist() == [[0.0, 0.0]] * 32
    assert (columns["mean"][32] > 50.0).all()
    assert columns["probability"][:32].tolist() == [0.5] * 32


def test_rewards_in_order_need_no_fold(path: Path) -> None:
    """The columns alone then give the same posterior, which the fold confirms."""
    rng = np.random.default_rng(1)
    bandit: Any = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A", "B"], dim=2, seed=1, log=path)
    for _ in range(80):
        bandit.learn(bandit.choose(rng.standard_normal(2)), float(rng.standard_normal()))
    columns = kh.Log(path).columns()
    assert columns["checkpoints"] is None
    tracks = Tracks(Logged.of(columns))
    rounds = LoggedRounds(kh.Log(path), "log")
    plan = _planned(rounds, rounds.of(KEPT))
    assert [start for start, _ in plan] == tracks.checkpoints.starts.tolist()
    assert tracks.logged.at is not None
    asked = _asked(kh.Log(path), Own(), rounds, rounds.of(KEPT), plan)
    np.testing.assert_allclose(np.concatenate(asked), tracks.logged.at, atol=1e-9)


def test_a_bandit_that_had_learned_before_its_log_is_folded(path: Path) -> None:
    rng = np.random.default_rng(1)
    before = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A", "B"], dim=1, seed=1)
    for _ in range(30):
        before.learn(before.choose(rng.standard_normal(1)), float(rng.standard_normal()))
    bandit: Any = kh.Bandit.load(before.to_bytes(), log=path, seed=2)
    for _ in range(10):
        bandit.learn(bandit.choose(rng.standard_normal(1)), float(rng.standard_normal()))
    known = kh.Log(path).columns()["checkpoints"]
    row = next(row for row in kh.Log(path) if isinstance(row, rows.Decision))
    y = np.array(row.y, dtype=np.float64)[0]
    # After one round, at the context of that round.
    bandit = kh.Bandit.load(before.to_bytes())
    reward = next(row for row in kh.Log(path) if isinstance(row, rows.Reward)).value
    bandit.learn(kh.Decision(arm=row.arm, observation=y), reward)
    chances = bandit.choice_probabilities(y)
    assert known["probabilities"][0][0].tolist() == pytest.approx([chances["A"], chances["B"]])


def test_features_of_ones_own_are_asked_for(path: Path) -> None:
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(1)
    features = kh.Transformed(StandardScaler().fit(rng.normal(3.0, 2.0, size=(50, 2))))
    learner = kh.Learner(kh.ThompsonSampling(v=1.0), features)
    bandit: Any = kh.Bandit(learner, arms=["A", "B"], seed=1, log=path)
    for _ in range(40):
        bandit.learn(bandit.choose(rng.normal(3.0, 2.0, size=2)), float(rng.standard_normal()))
    known = kh.Log(path).columns(features=features)["checkpoints"]
    assert known is not None
    with pytest.warns(kh.KeyholeWarning, match=r"shares of MinVar are approximate.*features"):
        assert kh.Log(path).columns()["checkpoints"] is None


def test_a_joint_sample_of_two_arms_has_its_probabilities(path: Path) -> None:
    policy = kh.ThompsonSampling(v=1.0, sharing="shared", draw="joint")
    bandit: Any = kh.Bandit(policy, arms=["A", "B"], dim=2, seed=1, log=path)
    rng = np.random.default_rng(1)
    for _ in range(300):
        bandit.learn(bandit.choose(rng.standard_normal((2, 2))), float(rng.standard_normal()))
    columns = kh.Log(path).columns()
    np.testing.assert_allclose(columns["probabilities"].sum(axis=1), 1.0)
    assert audit_log(columns).is_sound
    kh.evaluate(path, "uniform", estimator="ips")
    three: Any = kh.Bandit(policy, arms=3, dim=1, seed=1, log=path.with_name("three.jsonl"))
    three.choose([[1.0], [2.0], [3.0]])
    with pytest.raises(kh.InvalidValue, match="has no probability"):
        kh.Log(path.with_name("three.jsonl")).columns()


def test_a_log_of_sensors_is_evaluated(path: Path) -> None:
    lived("sensors", path)
    found = kh.evaluate(path, ["uniform", FixedArm("A"), kh.Greedy()], min_size=0.0)
    assert np.isfinite([row.value for row in found.rows]).all()
    assert audit_log(kh.Log(path)).is_sound


# -- rounds that are left out ----------------------------------------------------------------------


def vetoing(path: Path, veto: Any, rounds: int = 400) -> Any:
    """Play two arms with uniform probabilities; `veto(arm, u)` tells which choices are vetoed."""
    bandit: Any = kh.Bandit(kh.EpsilonGreedy(epsilon=1.0), arms=["A", "B"], dim=1, seed=9, log=path)
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        decision = bandit.choose([1.0])
        if veto(decision.arm, rng.random()):
            decision = decision.instead("B" if decision.arm == "A" else "A")
        bandit.learn(decision, float(decision.arm == "A"))
    return bandit


def test_vetoed_rounds_are_counted_and_not_used(path: Path) -> None:
    """Arm A has the reward 1, B 0. With the rewards of vetoed rounds all would be wrong."""
    bandit = vetoing(path, lambda _, u: u < 0.1)
    columns = kh.Log(path).columns()
    n = columns["vetoed"]["chosen"].size
    assert 20 < n < 60
    assert columns["chosen"].size == 400 - n
    found = audit_log(columns)
    assert found.left_out == (("vetoed", n),)
    assert found.is_sound
    assert f"left out: {n} vetoed; estimates hold if vetoes depend on the context alone" in str(
        found
    )
    value = kh.evaluate(path, {"A": FixedArm("A")}, estimator="snips")
    assert value["A"].value == 1.0
    assert f"left out: {n} vetoed" in str(value)
    assert sum(bandit.counts.values()) == 400


def test_vetoes_that_depend_on_the_chosen_arm_are_refused(path: Path) -> None:
    """30 vetoes, all of arm A, 15 expected: the counts of the other rounds do not show it."""
    left = iter(range(400))
    vetoing(path, lambda arm, u: arm == "A" and u < 0.2 and next(left) < 30)
    found = audit_log(kh.Log(path))
    assert np.abs(found.z).max() < 5.0
    assert found.vetoed == pytest.approx((15.0, -15.0))
    assert len(found.problems) == 2
    assert found.problems[0].startswith("vetoes: 30 of 30 vetoed choices were of arm 'A', and 15.0")
    with pytest.raises(kh.InvalidValue, match=r"not sound: vetoes.*among=\[\.\.\.\]"):
        kh.evaluate(path, "uniform")
    kh.evaluate(path, "uniform", check=False)


def test_sound_vetoes_are_hardly_ever_refused() -> None:
    """Of 2,000 logs with vetoes at random, rare arms among them, at most a few are refused."""
    rng, refused = np.random.default_rng(3), 0
    for _ in range(2000):
        n = int(rng.integers(1, 60))
        p = rng.dirichlet([0.2, 1.0, 1.0], n).clip(1e-4)
        p /= p.sum(axis=1, keepdims=True)
        chosen = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(max=2)
        vetoed = {
            "arms": ["A", "B", "C"],
            "chosen": chosen,
            "probability": p[np.arange(n), chosen],
            "probabilities": p,
            "reward": np.full(n, np.nan),
        }
        log = Logged(arms=["A", "B", "C"], chosen=[0, 1], probability=[0.5, 0.5], reward=[0, 1],
                     vetoed=vetoed)  # fmt: skip
        refused += any("vetoes" in problem for problem in audit_log(log).problems)
    assert refused <= 4  # six tests of 1e-4 each give 1.2 at most


def test_the_same_arm_from_another_row_is_no_veto(path: Path) -> None:
    """A decision that came back with rounded numbers is one of its arm all the same."""
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=1, seed=1, log=path)
    decision = bandit.choose([0.123456789])
    rounded = {**decision.to_dict(), "observation": [0.1235]}
    bandit.learn(kh.Decision.from_dict(rounded), 2.0)
    columns = kh.Log(path).columns()
    assert columns["reward"].tolist() == [2.0]
    assert "vetoed" not in columns


def test_forgotten_rounds_neither_count_nor_end_the_log(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.EpsilonGreedy(epsilon=1.0), arms=["A", "B"], dim=1, seed=3, log=path)
    decisions = [bandit.choose([1.0]) for _ in range(100)]
    for t, decision in enumerate(decisions):
        if t != 60:  # which never has a reward
            bandit.learn(decision, 100.0 if t in (3, 50) else float(decision.arm == "A"))
    for t in (3, 50, 60):
        bandit.forget(decisions[t].id)
    bandit.learn(kh.Decision(arm="A", observation=[1.0], id="elsewhere"), 50.0)
    columns = kh.Log(path).columns()
    assert columns["chosen"].size == 97
    assert not np.isnan(columns["reward"]).any()
    assert columns["reward"].max() == 1.0
    found = audit_log(columns)
    assert found.left_out == (("forgotten", 3), ("made elsewhere", 1))
    assert found.n_rewarded == 97
    assert "left out: 3 forgotten, 1 made elsewhere" in str(found)


def test_an_amended_reward_is_the_one_that_counts(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=1, seed=3, log=path)
    events = [bandit.choose([1.0]).id for _ in range(3)]
    for event in events:
        bandit.learn(event, 1.0)
    bandit.amend(events[1], 7.0)
    bandit.learn(events[2], 0.5, again=True)
    assert kh.Log(path).columns()["reward"].tolist() == [1.0, 7.0, 1.5]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"checkpoints": 3}, "checkpoints must be a mapping"),
    ({"checkpoints": {"starts": [1]}}, "with the keys starts, contexts, probabilities"),
    (
        {"checkpoints": {"starts": [2], "contexts": [[0]], "probabilities": [[[0.5, 0.5]]]}},
        "from 1 to 1",
    ),
    (
        {"checkpoints": {"starts": [1], "contexts": [[1]], "probabilities": [[[0.5, 0.5]]]}},
        r"contexts\[0\] must be rounds from 0 to 0",
    ),
    (
        {"checkpoints": {"starts": [1], "contexts": [[0]], "probabilities": [[[0.5]]]}},
        r"probabilities\[0\] must have shape \(1, 2\)",
    ),
    (
        {"checkpoints": {"starts": [1], "contexts": [[0]], "probabilities": [[[0.5, 0.6]]]}},
        "add up to 1",
    ),
    ({"left_out": {"forgotten": -1}}, r"left_out\['forgotten'\] must be"),
    ({"left_out": 3}, "left_out must be a mapping"),
    ({"vetoed": 3}, "log must be a Logged"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_columns_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        Logged(arms=["A", "B"], chosen=[0, 1], probability=[0.5, 0.5], reward=[0.0, 1.0], **wrong)


def test_targets_that_need_a_replay_are_refused_where_rewards_came_late(path: Path) -> None:
    """A replay would give them rewards that the logged policy did not have yet."""
    rng, waiting = np.random.default_rng(0), []
    bandit: Any = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=1, seed=1, log=path)
    for _ in range(120):
        waiting.append(bandit.choose([1.0]))
        if len(waiting) > 30:
            bandit.learn(waiting.pop(0), float(rng.standard_normal()))
    for decision in waiting:
        bandit.learn(decision, float(rng.standard_normal()))
    for target in (kh.ThompsonSampling(), kh.ThompsonSampling(v=1.0, prior_precision=2.0)):
        with pytest.raises(kh.InvalidValue, match="rewards came late"):
            kh.evaluate(path, target)
    assert kh.evaluate(path, "as logged").rows[0].effective_size == pytest.approx(120)
