"""What went wrong in other libraries, each excluded here by name."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.policies import every_policy


@pytest.mark.parametrize("prior", [0.01, 0.1, 1.0, 10.0, 100.0])
def test_a_prior_is_right_for_every_precision(prior: float) -> None:
    """Before any reward a score is N(0, v^2 |y|^2 / prior)."""
    bandit = kh.Bandit(kh.ThompsonSampling(v=2.0, prior_precision=prior), arms=1, dim=2, seed=1)
    n = 20_000
    scores = bandit.choose_many(np.tile([3.0, 4.0], (n, 1))).scores
    expected = 2.0 * 5.0 / np.sqrt(prior)
    assert abs(scores.std() / expected - 1) <= 4 / np.sqrt(2 * n)
    assert abs(scores.mean()) <= 4 * expected / np.sqrt(n)


def test_the_draw_has_the_covariance_and_not_the_precision() -> None:
    """After 99 rewards along one axis, the width there is a tenth of what it was."""
    bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=1, dim=2, seed=1)
    bandit.learn_many([kh.Decision(arm=0, observation=[1.0, 0.0]) for _ in range(99)], [0.0] * 99)
    n = 20_000
    for axis, width in ((np.array([1.0, 0.0]), 0.1), (np.array([0.0, 1.0]), 1.0)):
        scores = bandit.choose_many(np.tile(axis, (n, 1))).scores
        assert abs(scores.std() / width - 1) <= 4 / np.sqrt(2 * n)


@pytest.mark.parametrize("parameters", ["per-arm", "shared"])
def test_arms_draw_normals_of_their_own(parameters: Any) -> None:
    """Also after the arms were taught together: two alike arms win half the time each, and the
    larger of two independent standard normals has mean 1/sqrt(pi), that of two copies 0."""
    policy = kh.ThompsonSampling(v=1.0, sharing=parameters)
    bandit = kh.Bandit(policy, arms=2, dim=1, seed=1)
    bandit.learn_many([kh.Decision(arm=i, observation=[1.0]) for i in (0, 1)], [0.0, 0.0])
    n, width = 20_000, np.sqrt(bandit.posterior.covariance[0, 0, 0])
    decisions = bandit.choose_many(np.ones((n, 1)))
    assert abs(decisions.arms.count(0) / n - 0.5) <= 4 * np.sqrt(0.25 / n)
    spread = np.sqrt(1 - 1 / np.pi)
    assert abs(decisions.scores.mean() / width - 1 / np.sqrt(np.pi)) <= 4 * spread / np.sqrt(n)


def test_the_seed_is_used() -> None:
    def scores(seed: int | None) -> list[float]:
        bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=3, dim=2, seed=seed)
        return [float(bandit.choose(np.ones(2)).score or 0.0) for _ in range(5)]

    assert scores(1) == scores(1)
    assert scores(1) != scores(2)
    assert scores(None) != scores(None)


def test_the_logged_probability_of_a_random_choice_is_not_one() -> None:
    for policy in every_policy():
        decision = kh.Bandit(policy, arms=4, dim=2, seed=1).choose(np.ones(2))
        assert decision.to_dict()["probability"] == pytest.approx(0.25, abs=1e-12)


def test_a_nan_does_not_poison_an_arm() -> None:
    bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=2, dim=2, seed=1)
    decision = bandit.choose(np.ones(2))
    with pytest.raises(ValueError, match="nan"):
        bandit.learn(decision, float("nan"))
    with pytest.raises(ValueError, match="nan"):
        bandit.choose(np.array([np.nan, 1.0]))
    bandit.learn(decision, 1.0)
    assert np.isfinite(bandit.posterior.mean).all()
    assert np.isfinite(bandit.posterior.covariance).all()


def test_the_covariance_stays_positive_definite_after_many_updates() -> None:
    """15,000 updates along almost one line, where a downdated inverse turns indefinite."""
    rng = np.random.default_rng(1)
    bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=1, dim=4, seed=1)
    line = np.array([1.0, 1.0, 1.0, 1.0]) * 100
    for _ in range(15_000):
        y = line * rng.standard_normal() + 1e-3 * rng.standard_normal(4)
        bandit.learn(kh.Decision(arm=0, observation=y), 1.0)
    assert np.linalg.eigvalsh(bandit.posterior.covariance[0]).min() > 0


def test_choosing_before_any_reward_works() -> None:
    for policy in every_policy():
        assert kh.Bandit(policy, arms=["A"], dim=1).choose([1.0]).arm == "A"


def test_nothing_goes_by_position_into_the_wrong_slot() -> None:
    policy = kh.Greedy()
    with pytest.raises(TypeError):
        kh.Bandit(policy, ["A"], 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        kh.Bandit(policy, arms=["A"], dim=2).choose([1.0, 2.0], ["A"])  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        kh.Posterior(1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        kh.Decision("A", [1.0])  # type: ignore[call-arg]


def test_a_save_resumes_in_the_middle_of_the_stream(tmp_path: Path) -> None:
    straight = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=3, dim=2, seed=1)
    halved = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=3, dim=2, seed=1)
    scores = [straight.choose(np.ones(2)).score for _ in range(10)]
    first = [halved.choose(np.ones(2)).score for _ in range(5)]
    halved.save(tmp_path / "half")
    halved = kh.Bandit.load(tmp_path / "half", resume=True)
    assert first + [halved.choose(np.ones(2)).score for _ in range(5)] == scores


def test_no_flaky_test_is_skipped_and_no_exception_is_swallowed() -> None:
    root = Path(__file__).parents[2]
    for path in [*root.glob("tests/**/*.py"), *root.glob("src/**/*.py")]:
        text = path.read_text()
        for word in ("mark." + "skip", "mark." + "xfail", "except" + ":"):
            assert word not in text, f"{word} in {path.name}"
        # Where anything may come, as from an object of somebody's own, the line says so.
        assert not re.search(r"except Exception( as \w+)?:$", text, re.MULTILINE), path.name


def test_nothing_prints_and_nothing_is_configured_by_globals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two bandits side by side do not know of each other, nor of NumPy's global stream."""
    np.random.seed(0)  # noqa: NPY002
    one = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=3, dim=2, seed=1)
    alone = [one.choose(np.ones(2)).arm for _ in range(20)]
    np.random.seed(1)  # noqa: NPY002
    one, two = (kh.Bandit(kh.ThompsonSampling(v=1.0), arms=3, dim=2, seed=s) for s in (1, 2))
    beside = []
    for _ in range(20):
        two.learn(two.choose(np.ones(2)), 1.0)
        beside.append(one.choose(np.ones(2)).arm)
    assert beside == alone
    assert capsys.readouterr().out == ""
