"""A category that grows is one that listed its levels from the beginning, exactly."""

import json
import pickle
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.named import LEVELS, OPTIONS, assert_same, ids, made, recipe, records

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")


def reward_of(record: dict[str, Any], arm: Any, noise: float) -> float:
    level = LEVELS.index(record["device"]) if "device" in record else 1.5
    return float(5.0 + 0.1 * record.get("age", 40.0) + (level if arm == "A" else -level) + noise)


def rounds(options: dict[str, Any], n: int = 180) -> list[dict[str, Any]]:
    """The first ones without any level, if they may be missing."""
    listed = records(n, missing=0.0 if options["missing"] is None else 0.2)
    if options["missing"] is not None:
        for one in listed[:4]:
            one.pop("device", None)
    return listed


def carried(decision: kh.Decision, t: int) -> kh.Decision:
    """The decision itself, or through JSON, or through a pickle."""
    if t % 3 == 1:
        return kh.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    return pickle.loads(pickle.dumps(decision)) if t % 3 == 2 else decision


def play(
    bandit: kh.Bandit, told: list[dict[str, Any]], delay: int, saved: int = 0
) -> tuple[kh.Bandit, list[Any]]:
    """Choose by records; rewards come `delay` rounds later. Save and load every `saved` rounds."""
    noise = np.random.default_rng(9).standard_normal(len(told))
    queue, chances = [], []
    for t, record in enumerate(told):
        decision = bandit.choose(record)
        chances.append(bandit.choice_probabilities(record))
        # Each arm in turn, so that the rewards of both bandits are the same.
        taken = carried(decision.instead("AB"[t % 2]), t)
        queue.append((taken, reward_of(record, taken.arm, float(noise[t]))))
        if len(queue) > delay:
            bandit.learn(*queue.pop(0))
        if saved and t % saved == saved - 1:
            bandit = kh.Bandit.load(bandit.to_bytes(), seed=t)
    for decision, reward in queue:
        bandit.learn(decision, reward)
    return bandit, chances


@pytest.mark.parametrize("options", OPTIONS, ids=ids)
@pytest.mark.parametrize("delay", [0, 40])
def test_growing_equals_listing(options: dict[str, Any], delay: int) -> None:
    """With crosses, missing fields, rewards that wait, provisional ones, and late ones."""
    told = rounds(options)
    grown, one = play(made(recipe(**options)), told, delay, saved=50)
    levels = [level for _, level in grown._learned.grown or ()]
    assert set(levels) == set(LEVELS)
    listed, other = play(made(recipe(levels, **options)), told, delay)
    assert_same(grown, listed)
    for mine, theirs in zip(one, other, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-7)
    assert len({json.dumps(each) for each in one}) > 20  # or the comparison says nothing


@pytest.mark.parametrize("delay", [0, 12])
def test_provisional_rewards_grow(delay: int) -> None:
    """At every moment, also before the predictions of early rows are made again."""
    options = {"intercept": True, "standardize": True, "missing": "predict"}
    for n in (10, 34, 60, 127, 140, 520):
        told = rounds(options, n)
        grown, _ = play(made(recipe(**options)), told, delay)
        levels = [level for _, level in grown._learned.grown or ()]
        if levels:
            listed, _ = play(made(recipe(levels, **options)), told, delay)
            assert_same(grown, listed)
            assert len(grown._learned.provisional) > 0 or n in (10, 34, 520)


@pytest.mark.parametrize("options", OPTIONS, ids=ids)
def test_batches_and_observed_rows_grow(options: dict[str, Any]) -> None:
    """`observe`, `choose_many` and `learn_many`, with batches made before a level existed."""
    told = rounds(options)
    known = ["mobile", "desktop", "tablet", "tv"]
    bandits = []
    for device in ("grow", known):
        bandit = made(recipe(device, **options))
        whole = [one for one in told if "device" in one]
        bandit.observe(whole[:3])
        early = bandit.choose_many(whole[3:9])
        bandit.observe(whole[9:140])
        late = bandit.choose_many(whole[20:140])
        for batch in (early, late):
            taken = [one.instead("AB"[k % 2]) for k, one in enumerate(batch)]
            bandit.learn_many(taken, np.arange(len(taken)) % 5)
        bandit.learn_many([], [])
        bandits.append(bandit)
    assert bandits[0].dim == bandits[1].dim
    assert_same(bandits[0], bandits[1])


def test_a_batch_of_before_is_learned_whole() -> None:
    """The `Decisions` itself, as arrays of fewer columns."""
    bandit = made(recipe(intercept=False, standardize=False, missing="zero", cross=()))
    batch = bandit.choose_many([{"age": 1.0, "device": "tv"}, {"age": 2.0, "device": "tv"}])
    bandit.choose({"device": "mobile"})
    bandit.learn_many(pickle.loads(pickle.dumps(batch)), [1.0, 2.0])
    assert sum(bandit.counts.values()) == 2
    names = bandit._observer.layout.names
    assert names is not None
    total = bandit.posterior.precision.sum(axis=0) - 2 * np.eye(5)
    by_name = dict(zip(names, np.diag(total), strict=True))
    expected = {"age": 5.0, "spent": 0.0, "member": 0.0, "device=tv": 2.0, "device=mobile": 0.0}
    assert by_name == expected


def test_by_hand() -> None:
    """Three rewards of one arm, before and after a level: B = I + sum y y'."""
    features = kh.Features(
        numbers=["x"], categories={"c": "grow"}, intercept=False, standardize=False, missing=None
    )
    bandit = made(features, arms=["A"])
    first = bandit.choose({"x": 2.0, "c": "p"})
    bandit.learn(bandit.choose({"x": 3.0, "c": "q"}), 1.0)
    bandit.learn(first, 5.0)
    assert bandit._observer.layout.names == ("x", "c=p", "c=q")
    np.testing.assert_allclose(bandit.posterior.precision[0], [[14, 2, 3], [2, 2, 0], [3, 0, 2]])
    np.testing.assert_allclose(bandit.posterior.moment[0], [13, 5, 1])


def test_what_no_level_was_seen_of_is_missing() -> None:
    """As an unlisted level is: an error without `missing`, left out with "drop"."""
    plain = {"intercept": False, "standardize": False, "cross": ()}
    for device in ("grow", list(LEVELS)):
        strict = made(recipe(device, **plain, missing=None))
        with pytest.raises(kh.InvalidValue, match=r"missing|y\[3\]|must be"):
            strict.choose({"age": 1.0, "spent": 1.0, "member": True})
        dropping = made(recipe(device, **plain, missing="drop"))
        dropping.learn(dropping.choose({"age": 1.0, "spent": 1.0, "member": True}), 1.0)
        assert sum(dropping.counts.values()) == 0
    with pytest.raises(kh.InvalidValue, match="device is missing"):
        made(recipe(**plain, missing=None)).choose({"age": 1.0, "spent": 1.0, "member": True})
    columns = made(recipe(**plain, missing=None))
    with pytest.raises(kh.InvalidValue, match="device is missing"):
        columns.choose(np.ones(3))
    digest = recipe(**plain, missing=None).start().digest
    with pytest.raises(kh.InvalidValue, match="missing entries"):
        columns.learn(kh.Decision(arm="A", observation=np.ones(3), recipe=digest), 1.0)
    columns.choose({"age": 1.0, "spent": 1.0, "member": True, "device": "tv"})
    forged = kh.Decision(arm="A", observation=np.ones(3), levels=[], recipe=digest)
    with pytest.raises(kh.InvalidValue, match="missing entries"):
        columns.learn(forged, 1.0)
    assert np.isfinite(columns.posterior.mean).all()
