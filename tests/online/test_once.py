"""A decision is learned once, cannot be changed, and may be overruled."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core.kernels.recent import REMEMBERED, RecentIds
from tests.bandits import bandit_of

Y = np.array([0.5, -1.0])


def made(**options: Any) -> kh.Bandit:
    return bandit_of(kh.ThompsonSampling(v=1.0), arms=["A", "B"], dim=2, seed=1, **options)


def through_json(decision: kh.Decision) -> kh.Decision:
    return kh.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))


def test_every_decision_has_an_id_of_its_own() -> None:
    bandits = [made(), made()]
    ids = [bandit.choose(Y).id for bandit in bandits for _ in range(50)]
    batch = bandits[0].choose_many(np.ones((50, 2)))
    ids += [each.id for each in batch]
    assert len(set(ids)) == 150
    assert through_json(batch[3]).id == batch[3].id == f"{batch.id}.3"
    with pytest.raises(kh.InvalidValue, match="id must be"):
        kh.Decision(arm="A", observation=Y, id=7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "carried", [lambda d: d, through_json, lambda d: pickle.loads(pickle.dumps(d))]
)
def test_a_second_reward_for_a_decision_is_refused(carried: Any, tmp_path: Path) -> None:
    bandit = made()
    decision = bandit.choose(Y)
    bandit.learn(carried(decision), 1.0)
    before = bandit.posterior.mean
    bandit.save(tmp_path / "b.npz")
    for each in (bandit, kh.Bandit.load(tmp_path / "b.npz")):
        with pytest.raises(kh.AlreadyLearned, match="again=True"):
            each.learn(carried(decision), 1.0)
        with pytest.raises(kh.AlreadyLearned):
            each.learn_many([carried(decision)], [1.0])
        np.testing.assert_array_equal(each.posterior.mean, before)
    bandit.learn(carried(decision), 1.0, again=True)
    bandit.learn_many([carried(decision)], [1.0], again=True)
    assert bandit.counts[decision.arm] == 3


def test_without_an_id_the_object_itself_is_remembered() -> None:
    bandit, other = made(), made()
    decision = kh.Decision(arm="A", observation=Y)
    bandit.learn(decision, 1.0)
    with pytest.raises(kh.AlreadyLearned):
        bandit.learn(decision, 1.0)
    other.learn(decision, 1.0)  # another bandit may
    with pytest.raises(kh.AlreadyLearned, match="twice"):
        made().learn_many([decision, decision], [1.0, 1.0])


def test_batches_and_their_members() -> None:
    bandit = made()
    first, second = bandit.choose_many(np.ones((5, 2))), bandit.choose_many(np.ones((5, 2)))
    bandit.learn_many(first, np.ones(5))
    for again in (first, list(first), [through_json(first[2])], pickle.loads(pickle.dumps(first))):
        with pytest.raises(kh.AlreadyLearned):
            bandit.learn_many(again, np.ones(len(again)))
    bandit.learn(through_json(second[1]), 1.0)
    with pytest.raises(kh.AlreadyLearned, match="some rewards"):
        bandit.learn_many(second, np.ones(5))
    bandit.learn_many([second[0], second[2]], np.ones(2))
    assert sum(bandit.counts.values()) == 8


def test_ids_of_ones_own_with_dots_are_no_batches() -> None:
    bandit = made()
    for one in ("visit", "visit.1", "visit.2"):
        bandit.learn(kh.Decision(arm="A", observation=Y, id=one), 1.0)
    assert bandit.counts["A"] == 3


def test_the_memory_of_ids_is_bounded_and_at_least_as_long_as_it_says() -> None:
    recent = RecentIds()
    for k in range(3 * REMEMBERED):
        recent.add(str(k))
        assert str(max(0, k - REMEMBERED + 1)) in recent
    assert len(recent.listed()) <= 2 * REMEMBERED
    assert "0" not in recent


def test_decisions_cannot_be_changed() -> None:
    decision = made().choose(Y)
    for name in ("arm", "score", "probability", "observation", "id"):
        with pytest.raises(AttributeError):
            setattr(decision, name, "B")
    with pytest.raises(ValueError, match="read-only"):
        made().choose_many(np.ones((3, 2))).observations[0] = 5.0


@pytest.mark.parametrize("rows", [1, 2])
def test_a_veto_teaches_the_arm_that_was_taken(rows: int) -> None:
    """The caches of the other arm are not used for it: P stays the inverse of B."""
    bandit = made()
    for _ in range(30):
        y = np.tile(Y, (rows, 1)) * np.arange(1, rows + 1)[:, None]
        decision = bandit.choose(y if rows > 1 else y[0])
        other = "B" if decision.arm == "A" else "A"
        if rows > 1:
            with pytest.raises(kh.InvalidValue, match="instead"):
                decision.instead(other)
            taken = decision.instead(other, y["AB".index(other)])
        else:
            taken = decision.instead(other)
        assert (taken.arm, taken.id, taken.probability) == (other, decision.id, None)
        bandit.learn(taken, 1.0)
        with pytest.raises(kh.AlreadyLearned):
            bandit.learn(decision, 1.0)
        posterior = bandit.posterior
        np.testing.assert_allclose(posterior.covariance, np.linalg.inv(posterior.precision))


def test_one_decision_kept_does_not_keep_its_batch() -> None:
    decisions = kh.Bandit(kh.ThompsonSampling(), arms=100, dim=20, seed=1).choose_many(
        np.ones((1000, 100, 20))
    )
    one = decisions[3]
    assert one.observation.base is not None
    assert one._observation.base is None
    assert one._score_params.base is None
    assert one.probability == pytest.approx(0.01)
    assert len(pickle.dumps(one)) < 1_000


def test_merging_forgets_none_of_ones_own_ids() -> None:
    one, other = made(), made()
    own = [kh.Decision(arm="A", observation=Y, id=f"own {k}") for k in range(5)]
    one.learn_many(own, np.ones(5))
    for k in range(2 * REMEMBERED - 1):
        other._once.recent.add(f"other {k}")
    one.merge(other)
    for decision in own:
        with pytest.raises(kh.AlreadyLearned):
            one.learn(through_json(decision), 1.0)


@pytest.mark.parametrize("again", ["no", [1], None, np.array([1, 2])])
def test_again_is_true_or_false(again: Any) -> None:
    bandit = made()
    with pytest.raises(kh.InvalidValue, match="again must be True or False"):
        bandit.learn(bandit.choose(Y), 1.0, again=again)
    with pytest.raises(kh.InvalidValue, match="again must be True or False"):
        bandit.learn_many([bandit.choose(Y)], [1.0], again=again)


def test_members_learned_one_by_one_are_remembered_in_the_file(tmp_path: Path) -> None:
    bandit = made()
    decisions = bandit.choose_many(np.ones((3, 2)))
    bandit.learn(decisions[0], 1.0)
    bandit.save(tmp_path / "b.npz")
    with pytest.raises(kh.AlreadyLearned, match="some rewards"):
        kh.Bandit.load(tmp_path / "b.npz").learn_many(decisions, np.ones(3))


def test_instead_of_instead() -> None:
    decision = made().choose(Y)
    assert decision.instead("A").instead("B").arm == "B"


@pytest.mark.parametrize("reward", [1, True, np.float64(1.0), np.float32(1.0), np.True_])
def test_rewards_of_every_kind_are_learned_alike(reward: Any) -> None:
    plain, other = (kh.Bandit(kh.ThompsonSampling(), arms=2, dim=2, seed=1) for _ in range(2))
    for bandit, given in ((plain, 1.0), (other, reward)):
        for _ in range(3):
            decision = bandit.choose(np.ones(2))
            bandit.learn(decision, given)
        with pytest.raises(kh.AlreadyLearned):
            bandit.learn(decision, given)
    np.testing.assert_array_equal(plain.posterior.moment, other.posterior.moment)
    with pytest.raises(kh.InvalidValue, match="too large for a float"):
        other.learn(other.choose(np.ones(2)), 10**400)
