"""Targets: exact probabilities of every policy, from scores or by replay."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.evaluation import FixedArm, Logged, OnFeatures, WithFloor
from keyhole.evaluation.adaptive import variances
from keyhole.evaluation.targets import Propensities, Tracks, named_targets
from tests.logs import online_columns, random_columns


@pytest.fixture(scope="module")
def log() -> Logged:
    return Logged(**online_columns(kh.ThompsonSampling(v=1.0)))


def propensity(log: Logged, target: Any) -> Any:
    return Tracks(log).propensities(target).rows


def test_every_rule_is_what_choice_probabilities_says(log: Logged) -> None:
    assert log.mean is not None
    assert log.width is not None
    mean, width = log.mean, log.width
    expected = kh.choice_probabilities
    pairs = [
        (kh.ThompsonSampling(v=0.3), expected(mean, 0.3 * width)),
        (kh.Greedy(), expected(mean, 0.0 * width)),
        (kh.LinUCB(2.0), expected(mean + 2.0 * width, 0.0 * width)),
        (kh.EpsilonGreedy(0.2), expected(mean, 0.0 * width, epsilon=0.2)),
        (kh.Uniform(), np.full((200, 3), 1 / 3)),
        ("uniform", np.full((200, 3), 1 / 3)),
        (FixedArm(1), np.tile([0.0, 1.0, 0.0], (200, 1))),
        (WithFloor(kh.ThompsonSampling(v=0.3), 0.1), expected(mean, 0.3 * width, epsilon=0.1)),
    ]
    for target, rows in pairs:
        np.testing.assert_allclose(propensity(log, target), rows, atol=1e-12)


def test_the_logged_policy_is_as_logged(log: Logged) -> None:
    np.testing.assert_array_equal(
        propensity(log, kh.ThompsonSampling(v=1.0)), propensity(log, "as logged")
    )


@pytest.mark.parametrize(
    "policy",
    [
        kh.ThompsonSampling(),
        kh.OFUL(),
        kh.GreedyFirst(0.2),
        kh.ThompsonSampling(v=1.0, prior_precision=4.0),
        kh.ThompsonSampling(v=1.0, sharing="shared"),
    ],
    ids=repr,
)
def test_a_replayed_posterior_is_that_of_a_bandit(log: Logged, policy: kh.Policy) -> None:
    """A bandit that learns the logged rewards would choose with these probabilities."""
    assert log.observation is not None
    bandit = kh.Bandit(policy, arms=3, dim=2, seed=1)
    rows = propensity(log, policy)
    for t in range(60):
        y = log.observation[t, 0]
        found = bandit.choice_probabilities(y)
        np.testing.assert_allclose(rows[t], [found[arm] for arm in log.arms], atol=1e-9)
        bandit.learn(kh.Decision(arm=int(log.chosen[t]), observation=y), float(log.reward[t]))


def test_a_subset_of_features_is_a_log_with_these_features_alone(log: Logged) -> None:
    assert log.observation is not None
    columns = online_columns(kh.ThompsonSampling(v=1.0))
    fewer = Logged(**{**columns, "observation": columns["observation"][:, :1]})
    policy = kh.ThompsonSampling(v=1.0, prior_precision=2.0)
    np.testing.assert_allclose(
        propensity(log, OnFeatures(policy, [0])), propensity(fewer, policy), atol=1e-12
    )
    all_of_them = propensity(log, OnFeatures(kh.ThompsonSampling(v=1.0), [0, 1]))
    np.testing.assert_allclose(all_of_them, propensity(log, "as logged"), atol=1e-8)


def test_observations_of_each_arm_replay_like_one_for_all(log: Logged) -> None:
    columns = online_columns(kh.ThompsonSampling(v=1.0))
    repeated = np.repeat(columns["observation"][:, None], 3, axis=1)
    each = Logged(**{**columns, "observation": repeated})
    policy = kh.ThompsonSampling(v=1.0, prior_precision=3.0)
    np.testing.assert_allclose(propensity(each, policy), propensity(log, policy), atol=1e-12)


def test_a_floor_as_logged_is_the_log_s_own() -> None:
    columns = online_columns(kh.EpsilonGreedy(0.25))
    log = Logged(**columns)
    np.testing.assert_allclose(
        propensity(log, WithFloor(kh.Greedy())), propensity(log, "as logged"), atol=1e-12
    )


def test_variances_are_those_of_the_posteriors_at_checkpoints(log: Logged) -> None:
    """v_t of "always arm 0" is the mean of 1 / e_t(0 | x_s) over earlier contexts."""
    assert log.observation is not None
    tracks = Tracks(log)
    found = variances(tracks.propensities(FixedArm(0)), tracks.logged, tracks.checkpoints)
    assert found[0] == 3.0
    starts = tracks.checkpoints.starts
    for c in (3, len(starts) - 1):
        t = int(starts[c])
        posterior = kh.Posterior(n_parameters=3, dim=2)
        y = np.array(log.observation[:, 0])
        posterior.learn_many(log.chosen[:t], y[:t], np.array(log.reward[:t]))
        mean, width = posterior.predict(np.arange(3), y[:t])
        e = kh.choice_probabilities(mean, width)[:, 0]
        assert found[t] == pytest.approx((1.0 / e).mean(), rel=1e-6)


@pytest.mark.parametrize("observed", [True, False])
def test_a_share_never_depends_on_its_own_round_or_later_ones(observed: bool) -> None:
    columns = online_columns(kh.ThompsonSampling(v=1.0))
    if not observed:
        del columns["observation"]
    changed = dict(columns)
    for name in ("reward", "mean", "observation") if observed else ("reward", "mean"):
        changed[name] = columns[name].copy()
        changed[name][150:] *= -2.0
    found = []
    for given in (columns, changed):
        tracks = Tracks(Logged(**given))
        last = int(tracks.checkpoints.starts[tracks.checkpoints.starts <= 150][-1])
        v = variances(tracks.propensities("uniform"), tracks.logged, tracks.checkpoints)
        # The rounds of a block have the share that was fixed at its start.
        found.append(v)
    np.testing.assert_allclose(found[0][: last + 1], found[1][: last + 1], rtol=1e-12)
    assert (found[0] != found[1]).any()


def test_variances_without_observations_are_of_the_block_before() -> None:
    log = Logged(**random_columns(10))
    tracks = Tracks(log)
    assert log.propensity is not None
    found = variances(tracks.propensities("A"), tracks.logged, tracks.checkpoints)
    edges = [0, *tracks.checkpoints.starts.tolist(), 10]
    assert found[0] == 4.0
    for before, low, high in zip(edges, edges[1:], edges[2:], strict=False):
        expected = (1.0 / log.propensity[before:low, 0]).mean()
        np.testing.assert_allclose(found[low:high], expected, rtol=1e-12)


def test_a_target_that_learns_has_equal_shares(log: Logged) -> None:
    tracks = Tracks(log)
    v = variances(tracks.propensities(kh.Greedy()), tracks.logged, tracks.checkpoints)
    np.testing.assert_array_equal(v, 1.0)


def test_an_arm_that_the_log_never_chooses_has_an_infinite_variance() -> None:
    logged = Propensities(np.array([[1.0, 0.0]] * 4), None, moves=True)
    tracks = Tracks(Logged(**random_columns(4, 2)))
    target = Propensities(np.array([[0.5, 0.5]] * 4), None, moves=False)
    assert np.isinf(variances(target, logged, tracks.checkpoints)[1:]).all()
    assert np.isfinite(variances(tracks.propensities("A"), logged, tracks.checkpoints)).all()
    tiny = Propensities(np.array([[1.0, 1e-320]] * 4), None, moves=True)
    assert np.isinf(variances(target, tiny, tracks.checkpoints)[1:]).all()


WRONG: list[tuple[Any, str]] = [
    ("D", "the log has no arm 'D'"),
    (FixedArm(7), "the log has no arm 7"),
    (3.0, "a target must be a Policy"),
    (np.ones((200, 2)), "must have a probability for each round and arm"),
    (np.full((200, 3), 0.5), r"target\[0\] must add up to 1, got 1.5"),
    (np.tile([1.5, -0.5, 0.0], (200, 1)), r"target\[0, 0\] must be from 0 to 1, got 1.5"),
    (kh.ThompsonSampling(v="oracle"), "outside of a simulation"),
    (kh.ThompsonSampling(v=1.0, sharing="shared", draw="joint"), "not known in closed form"),
    (kh.Greedy(sharing="hybrid"), "sharing must be that of the log"),
    (OnFeatures(kh.Greedy(), (2,)), "columns must be from 0 to 1, got 2"),
]


@pytest.mark.parametrize(("target", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_target_is_refused(log: Logged, target: Any, message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        kh.evaluate(log, {"target": target})


def test_what_a_target_needs_of_the_log_is_named() -> None:
    columns = online_columns(kh.ThompsonSampling(v=1.0))
    del columns["observation"]
    with pytest.raises(kh.InvalidValue, match="must have the column 'observation'"):
        kh.evaluate(columns, kh.ThompsonSampling())
    with pytest.raises(kh.InvalidValue, match="columns 'mean' and 'width'"):
        kh.evaluate(random_columns(), kh.Greedy())
    named = {**random_columns(), "arms": ("uniform", "B", "C", "D")}
    with pytest.raises(kh.InvalidValue, match="also an arm"):
        kh.evaluate(named, "uniform")
    absent = random_columns(20)
    absent["probabilities"][5] = [0.5, 0.5, 0.0, 0.0]
    absent["chosen"][5], absent["probability"][5] = 0, 0.5
    del absent["mean"]
    with pytest.raises(kh.UnknownArm, match="'D' was no candidate in row 5"):
        kh.evaluate(absent, "D", estimator="ips")
    rows = np.full((20, 4), 0.25)
    with pytest.raises(kh.UnknownArm, match=r"target\[5, 2\] must be 0, got 0.25"):
        kh.evaluate(absent, rows, estimator="ips")


def test_targets_have_names() -> None:
    listed = named_targets([kh.Greedy(), "A", FixedArm("B"), OnFeatures(kh.Greedy(), [0, 2])])
    assert list(listed) == ["Greedy()", "A", "always B", "Greedy() on columns 0, 2"]
    assert list(named_targets(WithFloor(kh.Greedy(), 0.1))) == ["Greedy() with floor 0.1"]
    assert list(named_targets(np.ones((2, 2)))) == ["probabilities"]
    for wrong in ([], [kh.Greedy(), kh.Greedy()], 3):
        with pytest.raises(kh.InvalidValue, match="policies must be"):
            named_targets(wrong)
    with pytest.raises(kh.InvalidValue, match="epsilon must be"):
        WithFloor(kh.Greedy(), 1.5)
    with pytest.raises(kh.InvalidValue, match="policy must be a Policy"):
        WithFloor("uniform")  # type: ignore[arg-type]
    with pytest.raises(kh.InvalidValue, match="policy must be a Policy"):
        OnFeatures("uniform", (0,))  # type: ignore[arg-type]
    with pytest.raises(kh.InvalidValue, match="columns must be one or more"):
        OnFeatures(kh.Greedy(), ())
