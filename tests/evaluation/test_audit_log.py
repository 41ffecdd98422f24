"""The audit of a log: sound ones pass, and wrong propensities show."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.evaluation import audit_log
from tests.logs import online_columns, random_columns, small


def test_deviations_by_hand() -> None:
    """Arm A: chosen once, 0.5 + 0.75 + 0.2 expected, variance 0.25 + 0.1875 + 0.16."""
    found = audit_log(small())
    assert found.counts == (1, 2)
    assert found.expected == pytest.approx((1.45, 1.55))
    z = -0.45 / np.sqrt(0.5975)
    assert found.z == pytest.approx((z, -z))
    weights = np.array([1.0, 2.0, 0.625])
    assert found.effective_size == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_sound_logs_have_standard_normal_deviations() -> None:
    """The mean square of z over 60 logs and 4 arms is 1; arms of a log are nearly independent."""
    squares = [np.square(audit_log(random_columns(300, seed=s)).z).mean() for s in range(60)]
    assert abs(np.mean(squares) - 1.0) <= 4.0 * np.std(squares) / np.sqrt(60)


@pytest.mark.parametrize(
    "policy", [kh.ThompsonSampling(v=1.0), kh.ThompsonSampling(), kh.EpsilonGreedy(0.2)], ids=repr
)
def test_a_log_of_a_bandit_is_sound(policy: kh.Policy) -> None:
    found = audit_log(online_columns(policy))
    assert found.is_sound
    assert found.difference < 1e-10
    assert str(found).endswith("no problem found")


def wrong(kind: str, columns: dict[str, Any]) -> Any:
    rng = np.random.default_rng(1)
    e = columns["probability"]
    if kind == "counted":
        return np.maximum(rng.binomial(100, e), 1) / 100.0
    return np.full(len(e), 1.0 if kind == "certain" else 1 / 3)


@pytest.mark.parametrize("kind", ["counted", "certain", "uniform"])
def test_wrong_propensities_are_refused(kind: str) -> None:
    """Counted from 100 draws, always 1, or 1 / K: seen in other libraries."""
    columns = online_columns(kh.ThompsonSampling(v=0.5))
    columns["probability"] = wrong(kind, columns)
    found = audit_log(columns)
    assert not found.is_sound
    assert any("the logged scores give" in one for one in found.problems)
    with pytest.raises(kh.InvalidValue, match=r"the log is not sound: .*check=False"):
        kh.evaluate(columns, "uniform")
    kh.evaluate(columns, "uniform", check=False)


@pytest.mark.parametrize(
    ("probability", "message"), [(1.0, "every choice"), (1 / 3, "more often"), (None, "")]
)
def test_wrong_propensities_show_without_scores(probability: float | None, message: str) -> None:
    rng = np.random.default_rng(6)
    chosen = rng.choice(3, size=2000, p=[0.6, 0.2, 0.2])
    e = np.array([0.6, 0.2, 0.2])[chosen]
    found = audit_log(
        {
            "arms": ("A", "B", "C"),
            "chosen": chosen,
            "reward": np.zeros(2000),
            "probability": e if probability is None else np.full(2000, probability),
        }
    )
    assert found.is_sound == (probability is None)
    assert message in "".join(found.problems)


def test_wrong_tables_of_probabilities_show_by_their_counts() -> None:
    """Choices that favour arm A, logged as uniform."""
    rng = np.random.default_rng(4)
    chosen = rng.choice(3, size=2000, p=[0.5, 0.25, 0.25])
    log = {
        "arms": ("A", "B", "C"),
        "chosen": chosen,
        "probability": np.full(2000, 1 / 3),
        "probabilities": np.full((2000, 3), 1 / 3),
        "reward": np.zeros(2000),
    }
    found = audit_log(log)
    assert [one.split(":")[0] for one in found.problems] == ["arm 'A'", "arm 'B'", "arm 'C'"]
    assert "more often than its propensities say" in found.problems[0]


def test_a_log_without_rewards_is_refused() -> None:
    columns = random_columns(50)
    columns["reward"][1] = np.nan
    with pytest.raises(kh.InvalidValue, match="1 rounds come before the first missing reward"):
        kh.evaluate(columns, "uniform", estimator="ips")
    with pytest.raises(kh.InvalidValue, match="2 rounds before its first missing reward, got 1"):
        kh.evaluate(columns, "uniform", estimator="ips", check=False)


def test_an_arm_that_was_never_chosen_is_no_excess() -> None:
    chosen = [0, 1] * 50
    log = {"arms": "ABC", "chosen": chosen, "probability": [0.495] * 100, "reward": [1.0, 0.0] * 50}
    assert kh.evaluation.audit_log({**log, "arms": list("ABC")}).is_sound


def test_equal_rewards_have_a_note_and_tiny_probabilities_are_refused() -> None:
    log = {"arms": ["A", "B"], "chosen": [0, 1] * 50, "probability": [0.5] * 100}
    row = kh.evaluate({**log, "reward": [0.0, 1.0] * 50}, "A").rows[0]
    assert row.high == row.low
    assert "all rewards that count are equal" in row.note
    tiny = {**log, "probability": [0.5] * 99 + [1e-200], "reward": [0.0, 1.0] * 50}
    with pytest.raises(kh.InvalidValue, match=r"probability\[99\] must be at least 1e-100"):
        kh.evaluate(tiny, "uniform")
