"""Rewards that are amended or forgotten: the sums are those of a log in which it was so at once."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh

# Values that are clipped are a part of these lives.
pytestmark = pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
SUMS = ("precision", "moment", "squares", "count")
# The refusal of a term that is too large, by whether its observation is.
REFUSED = {
    True: "the observation of arm .* must be at most 1e6 times those of its other events",
    False: "the reward times its observation of arm .* must be at most 1e12 times those",
}
FEATURES = kh.Features(
    numbers=["age", "basket"],
    categories={"city": "grow"},
    cross=[("age", "city")],
    missing="predict",
    standardize=True,
)
LEARNERS: dict[str, Any] = {
    "plain": kh.ThompsonSampling(),
    "shared": kh.ThompsonSampling(v=1.0, sharing="shared"),
    "hybrid": kh.ThompsonSampling(v=1.0, sharing="hybrid"),
    "intercept": kh.Learner(kh.ThompsonSampling(), intercept=True),
    "units": kh.Learner(kh.ThompsonSampling(), standardize=True),
    "clipped": kh.Learner(kh.ThompsonSampling(), intercept=True, standardize=True, clip=1.0),
    "predict": kh.Learner(
        kh.ThompsonSampling(), intercept=True, standardize=True, missing="predict", clip=None
    ),
    "mean": kh.Learner(kh.ThompsonSampling(), intercept=True, missing="mean"),
    "drop": kh.Learner(kh.ThompsonSampling(), standardize=True, missing="drop", clip=None),
    "hybrid units": kh.Learner(
        kh.ThompsonSampling(v=1.0, sharing="hybrid"), intercept=True, standardize=True
    ),
    "features": kh.Learner(kh.ThompsonSampling(), FEATURES),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a log that does not exist yet."""
    return tmp_path / "decisions.jsonl"


def observed(name: str, rng: Any, t: int) -> Any:
    """Return an observation, in units that change after round 40, by what the learner takes."""
    scale = 1.0 if t < 40 else 40.0
    if name == "features":
        city = f"c{int(rng.integers(1 + min(t // 12, 9)))}"
        return {
            "age": float(rng.normal(40.0, 9.0 * scale)) if rng.random() < 0.8 else None,
            "basket": float(rng.normal(0.0, 1.0)),
            "city": city if rng.random() < 0.9 else None,
        }
    y = rng.normal(0.5, scale, size=3)
    if name in ("predict", "mean", "drop"):
        y[rng.random(3) < 0.2] = np.nan
    return y


def bandit_of(name: str, path: Path | None) -> Any:
    dim = None if name == "features" else 3
    return kh.Bandit(LEARNERS[name], arms=["A", "B"], dim=dim, seed=3, log=path)


def lived(
    name: str, path: Path | None, *, learns: Any, rounds: int = 200
) -> tuple[Any, list[str], list[float]]:
    """Return a bandit, its events and rewards; `learns(t, r)` is the reward of round t, or None.

    Rewards come up to 20 rounds late. Arms are fixed beforehand, so that bandits that choose
    differently learn the same.
    """
    rng, late = np.random.default_rng(5), np.random.default_rng(6)
    bandit, waiting = bandit_of(name, path), list[Any]()
    events, rewards = [], []
    for t in range(rounds):
        decision = bandit.choose(observed(name, rng, t)).instead("AB"[rng.integers(2)])
        reward = float(rng.normal(3.0, 1.0))
        waiting.append((decision, t, reward))
        events.append(decision.id)
        rewards.append(reward)
        while waiting and (len(waiting) > 20 or t == rounds - 1):
            one, at, value = waiting.pop(int(late.integers(len(waiting))))
            given = learns(at, value)
            if given is not None:
                bandit.learn(one, given)
    return bandit, events, rewards


def assert_same_sums(found: kh.Posterior, expected: kh.Posterior, rtol: float = 1e-12) -> None:
    for name in SUMS:
        one, other = getattr(found, name), getattr(expected, name)
        size = max(float(np.abs(other).max()), 1.0)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * size, err_msg=name)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-8, atol=1e-8)


# -- amending --------------------------------------------------------------------------------------


def test_an_amended_reward_by_hand(path: Path) -> None:
    """At y = 2: B = 1 + 4, b = 2 r and sum r^2 = r^2, with r = 3 and then -1."""
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A"], dim=1, log=path)
    decision = bandit.choose([2.0])
    bandit.learn(decision, 3.0)
    bandit.amend(decision.id, -1.0)
    posterior = bandit.posterior
    assert posterior.precision.tolist() == [[[5.0]]]
    assert posterior.moment.tolist() == [[-2.0]]
    assert posterior.squares.tolist() == [1.0]
    assert posterior.mean.tolist() == [[pytest.approx(-0.4)]]
    assert bandit.counts == {"A": 1}
    bandit.amend(decision.id, 4)
    assert bandit.posterior.moment.tolist() == [[8.0]]
    assert bandit.log.status(decision.id) == "learned"
    assert kh.Log(path).columns()["reward"].tolist() == [4.0]


@pytest.mark.parametrize("name", LEARNERS)
def test_amended_rewards_count_as_if_they_had_come_at_once(name: str, path: Path) -> None:
    """Every third reward from round 120 on, when the zero of rewards is fixed."""

    def wrong(t: int, reward: float) -> float:
        return reward - 7.0 if t % 3 == 0 and t >= 120 else reward

    bandit, events, rewards = lived(name, path, learns=wrong)
    for t in range(120, 200, 3):
        bandit.amend(events[t], rewards[t])
    expected, _, _ = lived(name, None, learns=lambda _, reward: reward)
    assert_same_sums(bandit.posterior, expected.posterior, rtol=1e-12)
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()
    bandit.log.close()
    again: Any = kh.Bandit.from_log(path)
    again.amend(events[120], 5.0)
    again.amend(events[120], rewards[120])
    assert_same_sums(again.posterior, expected.posterior, rtol=1e-12)


def test_a_reward_that_waits_is_amended(path: Path) -> None:
    """The zero of rewards is then the median of the first 8 as they were amended."""
    learner = kh.Learner(kh.ThompsonSampling(), intercept=True)
    bandit: Any = kh.Bandit(learner, arms=["A"], dim=1, seed=1, log=path)
    events = [bandit.choose([float(t)]).id for t in range(9)]
    for t, event in enumerate(events[:7]):
        bandit.learn(event, float(t))
    bandit.amend(events[0], 100.0)
    assert bandit.waiting == {"A": 7}
    bandit.learn(events[7], 7.0)
    assert bandit._learned.observer.offset == 4.5  # of 1, ..., 7 and 100
    bandit.amend(events[0], 0.0)
    x = np.column_stack([np.ones(8), np.arange(8.0)])
    np.testing.assert_allclose(bandit.posterior.precision[0], np.eye(2) + x.T @ x, rtol=1e-12)
    np.testing.assert_allclose(bandit.posterior.moment[0], x.T @ (np.arange(8.0) - 4.5), atol=1e-12)
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


def test_what_cannot_be_amended_is_refused(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1, log=path)
    first, second, third = (bandit.choose([1.0]) for _ in range(3))
    bandit.learn(first, 1.0)
    bandit.learn(first, 2.0, again=True)
    bandit.learn(third, 1.0)
    bandit.forget(third.id)
    before, sums = path.read_bytes(), bandit.posterior
    with pytest.raises(kh.InvalidValue, match="has 2 rewards"):
        bandit.amend(first.id, 1.0)
    with pytest.raises(kh.InvalidValue, match=r"no reward .*: learn\(event, reward\)"):
        bandit.amend(second.id, 1.0)
    with pytest.raises(kh.ForgottenEvent):
        bandit.amend(third.id, 1.0)
    with pytest.raises(kh.UnknownEvent, match="no event 'x'"):
        bandit.amend("x", 1.0)
    for wrong in (float("nan"), float("inf"), "1", None):
        with pytest.raises(kh.InvalidValue, match="reward"):
            bandit.amend(first.id, wrong)
    with pytest.raises(kh.InvalidValue, match="an event is the id"):
        bandit.amend(first, 1.0)
    assert path.read_bytes() == before
    np.testing.assert_array_equal(bandit.posterior.moment, sums.moment)
    plain: Any = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=1)
    with pytest.raises(kh.InvalidValue, match=r"needs a log.*Bandit\(\.\.\., log=path\)"):
        plain.amend("x", 1.0)
    with pytest.raises(kh.InvalidValue, match=r"needs a log.*Bandit\(\.\.\., log=path\)"):
        plain.forget("x")


# -- forgetting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_forgotten_rewards_leave_the_sums_that_never_had_them(name: str, path: Path) -> None:
    bandit, events, _ = lived(name, path, learns=lambda _, reward: reward)
    for t in range(120, 200, 3):
        bandit.forget(events[t])
    expected, _, _ = lived(
        name, None, learns=lambda t, reward: None if t % 3 == 0 and t >= 120 else reward
    )
    assert_same_sums(bandit.posterior, expected.posterior, rtol=1e-12)
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


@pytest.mark.parametrize("rounds", [20, 60, 150])
@pytest.mark.parametrize("name", ["hybrid units", "predict", "drop", "features"])
def test_when_all_is_forgotten_nothing_is_left(name: str, rounds: int, path: Path) -> None:
    """With rewards that wait still, that are provisional, and of both; in another process."""
    bandit, events, _ = lived(name, path, learns=lambda _, reward: reward, rounds=rounds)
    bandit.log.close()
    again: Any = kh.Bandit.from_log(path)
    for event in events:
        again.forget(event)
    state = again._learned
    assert not state.waiting
    assert not state.provisional
    assert again.posterior.count.sum() == 0
    for part in (again.posterior.moment, again.posterior.squares):
        assert not part.any()
    dim = again.posterior.dim
    np.testing.assert_array_equal(
        again.posterior.precision, [np.eye(dim)] * len(state.posterior.count)
    )
    assert kh.Log(path).replay().to_bytes() == again.without_log().to_bytes()


def test_early_predictions_are_forgotten_long_after_they_were_made_anew(path: Path) -> None:
    """Predictions are final when a feature was seen 2,048 times; rewards then have their terms."""
    name, early = "features", range(40, 120)
    bandit, events, _ = lived(name, path, learns=lambda _, reward: reward, rounds=2700)
    assert not bandit._learned.provisional
    assert not bandit._terms.events
    for t in early:
        bandit.forget(events[t])
    expected, _, _ = lived(
        name, None, learns=lambda t, reward: None if t in early else reward, rounds=2700
    )
    assert_same_sums(bandit.posterior, expected.posterior, rtol=1e-12)


def test_units_that_are_replaced_keep_terms_exact(path: Path) -> None:
    """By the formula: x = (1, (y - middle) / scale) in the units of the end."""
    learner = kh.Learner(kh.ThompsonSampling(), intercept=True, standardize=True, clip=None)
    rng = np.random.default_rng(1)
    bandit: Any = kh.Bandit(learner, arms=["A"], dim=2, seed=1, log=path)
    rows, rewards, events = [], [], []
    for t in range(600):
        y, reward = rng.normal(5.0, 1.0 if t < 40 else 200.0, size=2), float(rng.normal())
        decision = bandit.choose(y)
        bandit.learn(decision, reward)
        rows.append(y)
        rewards.append(reward)
        events.append(decision.id)
    assert len(bandit._terms.steps) >= 2  # units were fixed, and replaced
    gone = [10, 35, 36, 100, 500]
    for t in gone:
        bandit.forget(events[t])
    bandit.amend(events[33], 50.0)
    rewards[33] = 50.0
    units, zero = bandit._learned.observer.units, bandit._learned.observer.offset
    kept = [t for t in range(600) if t not in gone]
    z = (np.array(rows)[kept] - units.middle) / units.scale
    x, r = np.column_stack([np.ones(len(z)), z]), np.array(rewards)[kept] - zero
    found = bandit.posterior
    np.testing.assert_allclose(found.precision[0], np.eye(3) + x.T @ x, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(found.moment[0], x.T @ r, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(found.squares[0], r @ r, rtol=1e-12)


@pytest.mark.parametrize("place", [5, 20])
def test_a_clipped_reward_is_taken_out_as_it_counted(place: int, path: Path) -> None:
    """One of 1e6 among the first 32 rewards, which waits for the zero, or is learned at once."""
    learner = kh.Learner(kh.ThompsonSampling(), intercept=True, standardize=True)
    rng = np.random.default_rng(1)
    bandit: Any = kh.Bandit(learner, arms=["A"], dim=1, seed=1, log=path)
    events = [bandit.choose(rng.normal(size=1)).id for _ in range(40)]
    rewards = rng.normal(size=40)
    for t in range(40):
        bandit.learn(events[t], 1e6 if t == place else rewards[t])
    assert bandit.posterior.squares[0] < 1e4
    bandit.forget(events[place])
    left = np.delete(rewards, place) - bandit._learned.observer.offset
    assert bandit.posterior.squares[0] == pytest.approx(left @ left, rel=1e-12)
    bandit.amend(events[30], 7.0)
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


def test_a_merge_that_replaces_units_keeps_the_terms_of_rewards_that_waited(path: Path) -> None:
    """The other's units are of its first 32 observations, and 40 times too small by now."""
    learner = kh.Learner(kh.ThompsonSampling(), intercept=True, standardize=True, clip=None)
    rng = np.random.default_rng(3)
    other: Any = kh.Bandit(learner, arms=["A"], dim=1, seed=2)
    for t in range(120):
        other.learn(other.choose(rng.normal(0.0, 1.0 if t < 32 else 40.0, 1)), rng.normal())
    twins: list[Any] = [kh.Bandit(learner, arms=["A"], dim=1, seed=1, log=path)]
    twins.append(kh.Bandit(learner, arms=["A"], dim=1, seed=1))
    for t in range(20):
        y, reward = rng.normal(0.0, 40.0, 1), float(rng.normal())
        for bandit in twins:
            decision = bandit.choose(y)
            if t != 4 or bandit.log is not None:
                bandit.learn(decision, reward)
            if t == 4 and bandit.log is not None:
                event = decision.id
    for bandit in twins:
        bandit.merge(other)
    assert twins[0]._learned.observer.units.scale[0] > 5.0 * other._learned.observer.units.scale[0]
    twins[0].forget(event)
    assert_same_sums(twins[0].posterior, twins[1].posterior, rtol=1e-12)


def test_weights_of_rewards_are_taken_out_with_them(path: Path) -> None:
    policy = kh.WeightedThompsonSampling(v=1.0)
    bandit: Any = kh.Bandit(policy, arms=["A", "B"], dim=2, seed=1, log=path)
    rng, terms = np.random.default_rng(2), []
    for _ in range(60):
        decision, reward = bandit.choose(rng.standard_normal(2)), float(rng.standard_normal())
        before = bandit.posterior.weight.sum()
        bandit.learn(decision, reward)
        weight = bandit.posterior.weight.sum() - before
        terms.append((decision, reward, weight))
    assert min(weight for _, _, weight in terms) < 0.9
    for decision, _, _ in terms[::2]:
        bandit.forget(decision.id)
    bandit.amend(terms[1][0].id, 3.0)
    terms[1] = (terms[1][0], 3.0, terms[1][2])
    expected = np.stack([np.eye(2)] * 2), np.zeros((2, 2)), np.zeros(2)
    for decision, reward, weight in terms[1::2]:
        arm, y = "AB".index(decision.arm), decision.observation
        expected[0][arm] += weight * np.outer(y, y)
        expected[1][arm] += weight * reward * y
        expected[2][arm] += weight * reward**2
    for name, value in zip(("precision", "moment", "squares"), expected, strict=True):
        np.testing.assert_allclose(getattr(bandit.posterior, name), value, rtol=1e-12, atol=1e-12)
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


@pytest.mark.parametrize("sharing", ["per-arm", "shared", "hybrid"])
def test_what_was_learned_of_a_removed_arm_is_gone_already(sharing: Any, path: Path) -> None:
    policy = kh.ThompsonSampling(v=1.0, sharing=sharing)
    bandit: Any = kh.Bandit(policy, arms=["A", "B"], dim=1, seed=1, log=path)
    first = bandit.choose([1.0]).instead("A")
    bandit.learn(first, 2.0)
    bandit.remove_arms(["A"])
    bandit.add_arms(["A"])
    second = bandit.choose([3.0]).instead("A")
    bandit.learn(second, 1.0)
    if sharing == "hybrid":
        with pytest.raises(kh.InvalidValue, match="what it taught the shared part stays"):
            bandit.forget(first.id)
        bandit.forget(second.id)
    elif sharing == "shared":
        bandit.forget(first.id)
        assert bandit.posterior.precision.tolist() == [[[10.0]]]
    else:
        bandit.amend(first.id, 5.0)
        bandit.forget(first.id)
        assert bandit.counts == {"B": 0, "A": 1}
        assert bandit.posterior.moment[1].tolist() == [3.0]
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


@pytest.mark.parametrize("name", ["hybrid", "hybrid units"])
def test_events_of_arms_that_stay_are_forgotten_after_another_was_removed(
    path: Path, name: str
) -> None:
    """What an arm leaves in the shared part follows from its own rewards alone."""
    twins: list[Any] = [
        kh.Bandit(LEARNERS[name], arms=["A", "B", "C"], dim=3, seed=3, log=log)
        for log in (path, path.with_name("other.jsonl"))
    ]
    rng, events = np.random.default_rng(5), []
    for t in range(60):
        y, arm, reward = rng.normal(0.5, 1.0, 3), "ABC"[rng.integers(3)], float(rng.normal(3.0))
        for k, bandit in enumerate(twins):
            decision = bandit.choose(y).instead(arm)
            if t != 41 or k == 0:
                bandit.learn(decision, reward if t != 42 or k == 0 else 7.0)
            if k == 0:
                events.append((decision.id, arm))
    assert {events[41][1], events[42][1]} <= {"A", "B"}
    for bandit in twins:
        bandit.remove_arms(["C"])
    twins[0].forget(events[41][0])
    twins[0].amend(events[42][0], 7.0)
    assert_same_sums(twins[0].posterior, twins[1].posterior, rtol=1e-12)
    gone = next(event for event, arm in events if arm == "C")
    with pytest.raises(kh.InvalidValue, match="arm 'C' was removed since"):
        twins[0].forget(gone)
    assert kh.Log(path).replay().to_bytes() == twins[0].without_log().to_bytes()


@pytest.mark.parametrize(
    ("size", "reward", "outcome"),
    [(1e3, 1.0, "exact"), (1e5, 1.0, "warns"), (1.8e9, 1.0, "refused"), (1.0, 1e30, "refused")],
)
def test_what_would_leave_rounding_alone_in_the_sums_cannot_be_forgotten(
    path: Path, size: float, reward: float, outcome: str
) -> None:
    """The error that stays is that of the sums: 1.1e-16 times the square of what they had."""
    rng, rows = np.random.default_rng(2), list[Any]()
    bandit: Any = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A"], dim=2, seed=1, log=path)
    for t in range(40):
        y, value = rng.normal(1.0, 1.0, 2), float(rng.normal(1.0))
        if t == 9:
            y, value = np.array([1.0, size]), reward
        decision = bandit.choose(y)
        bandit.learn(decision, value)
        if t == 9:
            odd = decision.id
        else:
            rows.append((y, value))
    before = bandit.without_log().to_bytes()
    if outcome == "refused":
        with pytest.raises(kh.InvalidValue, match=REFUSED[size > 1.0]):
            bandit.forget(odd)
        assert bandit.without_log().to_bytes() == before
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        bandit.forget(odd)
    assert [str(one.message)[:35] for one in told] == (
        ["an observation of arm 'A' is taken "] if outcome == "warns" else []
    )
    x, r = np.array([y for y, _ in rows]), np.array([value for _, value in rows])
    expected = np.linalg.solve(x.T @ x + np.eye(2), x.T @ r)
    np.testing.assert_allclose(bandit.posterior.mean[0], expected, rtol=100 * 1.1e-16 * size**2)
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


@pytest.mark.parametrize("sharing", ["per-arm", "shared", "hybrid"])
def test_rounding_is_seen_in_the_part_that_it_is_in(path: Path, sharing: Any) -> None:
    """A large number of another arm is in the shared part, and not in that of this arm."""
    policy = kh.ThompsonSampling(v=1.0, sharing=sharing)
    bandit: Any = kh.Bandit(policy, arms=["A", "B"], dim=2, seed=1, log=path)
    rng, large = np.random.default_rng(2), []
    for t in range(20):
        y = [1.0, 1.7e9] if t in (4, 5) else rng.normal(1.0, 1.0, 2)
        decision = bandit.choose(y).instead("AB"[t % 2])
        bandit.learn(decision, float(rng.normal(1.0)))
        if t in (4, 5):
            large.append(decision.id)
    if sharing == "shared":
        bandit.forget(large.pop())  # the other one is as large
    with pytest.raises(kh.InvalidValue, match=REFUSED[True]):
        bandit.forget(large.pop())
    assert np.isfinite(bandit.posterior.mean).all()
    assert kh.Log(path).replay().to_bytes() == bandit.without_log().to_bytes()


def test_rounding_is_seen_in_rewards_whose_predictions_are_young(path: Path) -> None:
    """They are in the sums, and can be told from all others by a key."""
    features = kh.Features(numbers=["a", "b"], missing="predict")
    learner = kh.Learner(kh.ThompsonSampling(v=1.0), features)
    bandit: Any = kh.Bandit(learner, arms=["A"], seed=1, log=path)
    rng = np.random.default_rng(2)
    for t in range(50):
        b = None if t % 4 == 0 else float(rng.normal())
        decision = bandit.choose({"a": float(rng.normal()), "b": b})
        bandit.learn(decision, 1e20 if t == 40 else float(rng.normal(1.0)))
        if t == 40:
            event = decision.id
    with pytest.raises(kh.InvalidValue, match=REFUSED[False]):
        bandit.forget(event)
    with pytest.raises(kh.InvalidValue, match=REFUSED[False]):
        bandit.amend(event, 1.0)


def test_rounding_is_seen_in_arms_that_are_known_by_their_features(path: Path) -> None:
    features = kh.Features(
        numbers=["a"],
        arms=kh.Features(categories={"t": ["x", "y"]}),
        cross=[("a", "arm.t")],
    )
    learner = kh.Learner(kh.ThompsonSampling(v=1.0, sharing="shared"), features)
    bandit: Any = kh.Bandit(learner, arms=[], seed=1, log=path)
    rng = np.random.default_rng(2)
    for t in range(70):
        arm = {f"arm-{t}": {"t": "xy"[t % 2]}}
        decision = bandit.choose({"a": float(rng.normal())}, among=arm)
        bandit.learn(decision, 1e20 if t == 69 else float(rng.normal(1.0)))
    with pytest.raises(kh.InvalidValue, match=REFUSED[False]):
        bandit.forget(decision.id)


def test_a_large_observation_of_a_large_reward_cannot_be_forgotten(path: Path) -> None:
    """Each of them could be, alone; their product is in the moment."""
    bandit: Any = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A"], dim=2, seed=1, log=path)
    for t in range(20):
        decision = bandit.choose([1.0, 9e5 if t == 9 else t / 10])
        bandit.learn(decision, 9e11 if t == 9 else 1.0)
        if t == 9:
            event = decision.id
    with pytest.raises(kh.InvalidValue, match=REFUSED[False]):
        bandit.forget(event)


def test_a_refusal_says_the_ratio_and_the_fix(path: Path) -> None:
    """Prior and others: 1 + 3 = 2^2, beside (4e6)^2; all of these squares are exact."""
    bandit: Any = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A"], dim=1, seed=1, log=path)
    for y in (1.0, 1.0, 1.0, 4e6):
        decision = bandit.choose([y])
        bandit.learn(decision, 0.5)
    with pytest.raises(kh.InvalidValue) as refused:
        bandit.forget(decision.id)
    assert str(refused.value) == (
        "the observation of arm 'A' must be at most 1e6 times those of its other events to be "
        "forgotten or amended, got 2e+06: export the log, fit its other rows with kh.fit, and go "
        "on with that bandit"
    )
    bandit.amend(decision.id, 1.0)  # its observation stays


def test_all_terms_of_an_event_are_taken_out_together(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A"], dim=2, seed=1, log=path)
    for y in ([1.0, 0.5], [2.0, 1.0]):
        bandit.learn(bandit.choose(y), 1.0)
    decision = bandit.choose([1.0, 1.7e9])
    bandit.learn(decision, 1.0)
    bandit.learn(decision, 1.0, again=True)
    with pytest.raises(kh.InvalidValue, match=REFUSED[True]):
        bandit.forget(decision.id)


def test_rewards_far_from_zero_are_counted_from_their_constant(path: Path) -> None:
    learner = kh.Learner(kh.ThompsonSampling(v=1.0), intercept=True)
    bandit: Any = kh.Bandit(learner, arms=["A"], dim=1, seed=1, log=path)
    rng, events = np.random.default_rng(2), []
    for _ in range(50):
        decision = bandit.choose(rng.normal(0.0, 1.0, 1))
        bandit.learn(decision, 1e13 + float(rng.normal()))
        events.append(decision.id)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bandit.forget(events[30])
    assert bandit.counts == {"A": 49}


def test_the_only_reward_can_always_be_forgotten(path: Path) -> None:
    bandit: Any = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A"], dim=2, seed=1, log=path)
    decision = bandit.choose([1.0, 1e20])
    bandit.learn(decision, 1e30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bandit.forget(decision.id)
    assert bandit.posterior.precision.tolist() == [[[1.0, 0.0], [0.0, 1.0]]]
    assert bandit.posterior.squares.tolist() == [0.0]


def test_merged_bandits_forget_their_own_events(path: Path) -> None:
    """In the units of the other one, which were fixed first."""
    learner = kh.Learner(kh.ThompsonSampling(), intercept=True, standardize=True, clip=None)
    rng = np.random.default_rng(3)
    other = kh.Bandit(learner, arms=["A"], dim=1, seed=2)
    for _ in range(60):
        other.learn(other.choose(rng.normal(2.0, 3.0, 1)), rng.normal())
    twins: list[Any] = [kh.Bandit(learner, arms=["A"], dim=1, seed=1, log=path)]
    twins.append(kh.Bandit(learner, arms=["A"], dim=1, seed=1))
    for t in range(20):
        y, reward = rng.normal(2.0, 3.0, 1), float(rng.normal())
        for bandit in twins:
            decision = bandit.choose(y)
            if t != 4 or bandit.log is not None:
                bandit.learn(decision, reward)
            if t == 4 and bandit.log is not None:
                event = decision.id
    for bandit in twins:
        bandit.merge(other)
    twins[0].forget(event)
    assert_same_sums(twins[0].posterior, twins[1].posterior, rtol=1e-12)
    assert kh.Log(path).replay().to_bytes() == twins[0].without_log().to_bytes()


def test_a_crash_before_the_terms_were_written_loses_none(path: Path) -> None:
    """A row `counted` follows from those before it, and is written by the next process."""
    learner = kh.Learner(kh.ThompsonSampling(), intercept=True)
    bandit: Any = kh.Bandit(learner, arms=["A"], dim=1, seed=1, log=path)
    events = [bandit.choose([float(t)]).id for t in range(8)]
    for t, event in enumerate(events):
        bandit.learn(event, float(t))
    bandit.log.close()
    lines = path.read_bytes().splitlines(keepends=True)
    assert [b'"counted"' in line for line in lines].count(True) == 8
    path.write_bytes(b"".join(line for line in lines if b'"counted"' not in line))
    again: Any = kh.Bandit.from_log(path)
    again.forget(events[3])
    x = np.column_stack([np.ones(7), np.delete(np.arange(8.0), 3)])
    np.testing.assert_allclose(again.posterior.precision[0], np.eye(2) + x.T @ x, rtol=1e-12)
    assert kh.Log(path).replay().to_bytes() == again.without_log().to_bytes()
