"""Replay of a randomised log, and the study of the trial."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import keyhole as kh
from keyhole.core import Streams
from keyhole.lab.studies import STUDIES, Outcome, Settings, trial
from keyhole.lab.studies.cd4 import noise_share
from keyhole.lab.studies.replay import (
    Log,
    ReplayCell,
    inverse_propensity,
    replay,
    weighted,
)

ABSENT = frozenset({"actg175"})
GREEDY = kh.Learner(kh.Greedy(), intercept=True)


def randomised(n: int = 800, seed: int = 1) -> Log:
    """Two arms whose better one depends on the sign of x: 0.5 for all, 1 by x."""
    rng = np.random.default_rng(seed)
    x, arms = rng.standard_normal((n, 1)), rng.integers(2, size=n)
    rewards = (arms == (x[:, 0] > 0)).astype(float) + 0.1 * rng.standard_normal(n)
    return Log("two arms", x, arms, rewards, 2)


def results(log: Log, replications: int = 3, horizon: int | None = None) -> xr.Dataset:
    size = len(log.arms) if horizon is None else horizon
    cell = ReplayCell(
        where={"data": log.name},
        world=log,
        policies={"Greedy": GREEDY, "Uniform": kh.Learner(kh.Uniform())},
        horizon=size,
        replications=replications,
        seed=4,
        checkpoints=(size // 2, size),
    )
    return cell.results(Path(), executor=None, workers=None, progress=lambda _: None)


def test_values_by_hand() -> None:
    """Weights 1, 0, 1 of rewards 1, 5, 3: the mean is 2, each that counts pulls by 1/2."""
    found = weighted(np.array([1.0, 0.0, 1.0]), np.array([1.0, 5.0, 3.0]))
    assert found.value == 2.0
    assert found.influence.tolist() == [-0.5, 0.0, 0.5]
    assert found.error == pytest.approx(np.sqrt(0.5))
    plain = inverse_propensity(np.array([2.0, 0.0]), np.array([3.0, 1.0]))
    assert plain.value == 3.0
    assert plain.influence.tolist() == [1.5, -1.5]


def test_a_difference_of_values_is_paired() -> None:
    rewards = np.array([1.0, 5.0, 3.0])
    one = weighted(np.ones(3), rewards)
    assert (one.less(one).value, one.less(one).error) == (0.0, 0.0)
    apart = weighted(np.array([1.0, 0.0, 0.0]), rewards).less(
        weighted(np.array([0.0, 1.0, 1.0]), rewards)
    )
    assert apart.value == -3.0


def test_a_patient_counts_if_the_learner_chose_what_was_given() -> None:
    """Nothing else is learned: the replay is that of a bandit on the patients that count."""
    log = randomised(200)
    order = np.random.default_rng(2).permutation(200)
    counts = replay(GREEDY, log, order, Streams(3))
    assert 60 < counts.sum() < 140
    state = GREEDY.start(2, 1)
    source = Streams(3)
    z, u = source["policy"].standard_normal((200, 2)), source["coin"].random((200, 2))
    for t in range(200):
        i = order[t]
        arm = GREEDY.choose(state, log.features[i], kh.Draws(z[t], u[t])).arm
        assert counts[t] == (arm == log.arms[i])
        if counts[t]:
            GREEDY.learn(state, arm, log.features[i], float(log.rewards[i]))


def test_a_learner_earns_what_it_would_have_earned() -> None:
    """The better arm by x is worth 1, and any arm for all is worth 1/2."""
    log = randomised()
    found = results(log)
    greedy = weighted(found.weight.sel(policy="Greedy").values, log.rewards)
    assert 0.85 < greedy.value < 1.0
    # Learning is done early: late patients are treated nearly always right.
    late = found.value.sel(policy="Greedy")
    assert (late.isel(time=1) > late.isel(time=0)).all()
    for arm in range(2):
        fixed = weighted((log.arms == arm).astype(float), log.rewards)
        assert abs(fixed.value - 0.5) < 4 * fixed.error


def test_uniform_choices_have_the_value_of_the_log_itself() -> None:
    """With many orders every patient counts equally often."""
    log = randomised(300)
    found = results(log, replications=60)
    uniform = weighted(found.weight.sel(policy="Uniform").values, log.rewards)
    itself = weighted(np.ones(300), log.rewards)
    # Weights are shares of 60 orders about 1/2, so relative errors of 0.13 each.
    assert abs(uniform.value - itself.value) < 4 * 0.13 * itself.error
    assert uniform.error == pytest.approx(itself.error, rel=0.1)
    assert float(found.weight.sel(policy="Uniform").mean()) == pytest.approx(0.5, abs=0.02)


def test_intervals_cover_over_trials() -> None:
    """200 logs: the 95% interval of a fixed arm has the truth in it as often as it says."""
    inside = []
    for seed in range(200):
        log = randomised(200, seed=100 + seed)
        fixed = weighted((log.arms == 0).astype(float), log.rewards)
        inside.append(abs(fixed.value - 0.5) < 1.96 * fixed.error)
    # 0.95 has a standard error of 0.015 over 200 logs.
    assert np.mean(inside) > 0.95 - 3 * 0.0154


def test_a_shorter_replay_leaves_patients_out() -> None:
    found = results(randomised(300), replications=2, horizon=100)
    assert found.time.values.tolist() == [50, 100]
    assert (found.learned.isel(time=-1) <= 100).all()
    counted = found.weight.sum("patient") * 2
    np.testing.assert_allclose(counted, found.learned.isel(time=-1).sum("replication"))


def test_replays_depend_on_the_seed_alone() -> None:
    assert results(randomised(100)).equals(results(randomised(100)))


# -- the study ------------------------------------------------------------------------------------


def test_the_log_is_that_of_the_table() -> None:
    cell = STUDIES["trial"].cells(Settings(absent=ABSENT))[0]
    log = cell.world
    assert isinstance(log, Log)
    assert (cell.horizon, log.n_arms, log.dim) == (2_139, 4, 15)
    np.testing.assert_allclose(log.features.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(log.features.std(axis=0), 1.0)
    # 2,139 draws from 4 arms: 535 each, with a standard deviation of 20.
    assert np.abs(np.bincount(log.arms) - 2_139 / 4).max() < 4 * 20
    assert log.describe()["propensity"] == 0.25


def made_table(gains: list[float], spread: float = 20.0) -> xr.Dataset:
    """A table of 4,000 patients whose arms raise CD4 by known numbers, with a spread of 10.

    Two counts of a patient with a noise of 10 / sqrt(2) each differ by that; their true values have
    a spread of their own.
    """
    rng = np.random.default_rng(6)
    arms = rng.integers(4, size=4_000)
    first, second = rng.normal(0.0, 10.0 / np.sqrt(2.0), (2, 4_000))
    rewards = np.array(gains)[arms] + second - first
    before = rng.normal(300.0, spread, 4_000) + first
    value = np.full((1, 3, 2, 1), gains[0]) + rng.normal(0.0, 0.1, (1, 3, 2, 1))
    weight = np.tile((arms == 0) / 1.0, (1, 2, 1))
    return xr.Dataset(
        {
            "value": (("cell", "replication", "policy", "time"), value),
            "weight": (("cell", "policy", "patient"), weight),
            "arm_given": (("cell", "patient"), arms[None]),
            "reward": (("cell", "patient"), rewards[None]),
            "before": (("cell", "patient"), before[None]),
        },
        coords={
            "policy": ["Thompson sampling", "Greedy"],
            "time": [100],
            "data": ("cell", ["actg175"]),
        },
    )


@pytest.mark.parametrize(
    ("gains", "outcomes"),
    [
        # Learners here have the value of the first arm.
        ([0.0, 50.0, 20.0, 20.0], ["holds", "holds", "does not hold", "does not hold", "holds"]),
        ([20.0, 20.0, 0.0, 0.0], ["does not hold", "cannot tell", "holds", "holds", "holds"]),
    ],
)
def test_what_the_study_accepts_and_refuses(gains: list[float], outcomes: list[str]) -> None:
    table = made_table(gains)
    found = [verdict.outcome for verdict in STUDIES["trial"].verdicts(table)]
    assert found == [Outcome(one) for one in outcomes]


@pytest.mark.parametrize(
    ("spread", "outcome"), [(14.0, "holds"), (50**0.5, "cannot tell"), (3.0, "does not hold")]
)
def test_the_share_of_noise(spread: float, outcome: str) -> None:
    """Noise has the variance 50: effects of arms do not count, and both bounds have the share."""
    table = made_table([0.0, 50.0, 20.0, 20.0], spread)
    expected = 50.0 / (50.0 + spread**2)
    for found in trial.noise(table).values():
        # A margin is 2.58 standard errors.
        assert abs(found.value - expected) < 4 / 2.58 * found.margin
    assert STUDIES["trial"].verdicts(table)[-1].outcome == Outcome(outcome)


def test_true_changes_that_differ_count_as_noise() -> None:
    """Counts without noise whose changes differ: the share is a bound, and not an estimate."""
    rng = np.random.default_rng(7)
    before = rng.normal(300.0, 1.0, 1_000)
    after = before + rng.normal(0.0, 1.0, 1_000)
    found = noise_share(before, after)
    # Half of the variance 1 of the change, over the mean 1.5 of the variances 1 and 2.
    assert abs(found.value - 1 / 3) < 4 / 2.58 * found.margin
    assert found.low > 0.2
    shifted = noise_share(before, after + 100.0)
    assert shifted.value == pytest.approx(found.value, rel=1e-9)


def test_plain_and_normalised_values_agree_for_equal_arms() -> None:
    table = made_table([0.0, 50.0, 20.0, 20.0])
    normalised, plain = trial.values(table), trial.plain_values(table)
    for name in trial.ARMS:
        error = np.hypot(normalised[name].error, plain[name].error)
        assert abs(normalised[name].value - plain[name].value) < 4 * error
