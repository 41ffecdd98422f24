"""The compiled call of every day gives what the other path gives, to the bit."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.named import OPTIONS, ids, made, recipe

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")


def rows_of(options: dict[str, Any], n: int, n_rows: int) -> np.ndarray:
    """Rows of columns: some far out, some missing, one never seen in the first 300 rounds."""
    rng = np.random.default_rng(6)
    rows = rng.normal([40.0, 0.0], [12.0, 3.0], size=(n, n_rows, 2))
    rows[rng.random(rows.shape) < 0.01] *= 100.0
    rows[n // 2 :, :, 1] *= 40.0  # so that units are replaced
    member = (rng.random((n, n_rows, 1)) < 0.4).astype(float)
    device = np.eye(3)[rng.integers(0, 3, (n, n_rows))]
    if options["missing"] is not None:
        rows[rng.random(rows.shape) < 0.15] = np.nan
        member[:300] = np.nan
        device[rng.random((n, n_rows)) < 0.15] = np.nan
    return np.concatenate([rows, member, device], axis=2)


@pytest.mark.parametrize("options", OPTIONS, ids=ids)
@pytest.mark.parametrize("n_rows", [1, 2], ids=["one row", "a row for each arm"])
def test_compiled_and_other_choices_are_the_same(options: dict[str, Any], n_rows: int) -> None:
    """Over looks at units, units that are fixed late, clipped values and rewards that are late."""
    levels = ["mobile", "desktop", "tablet"]
    quick, slow = (made(recipe(levels, **options)) for _ in range(2))
    pending: list[tuple[kh.Decision, kh.Decision, float]] = []
    compiled = 0
    for t, y in enumerate(rows_of(options, 2000, n_rows)):
        rows = y[0] if n_rows == 1 else y
        one, other = quick.choose(rows), slow.choose(rows, among=["A", "B"])
        compiled += quick._everyday is not None
        assert (one.arm, one.score, one.predicted, one.has_missing) == (
            *(other.arm, other.score, other.predicted, other.has_missing),
        ), t
        np.testing.assert_array_equal(one.observation, other.observation)
        if t % 50 == 0:
            assert one.probability == pytest.approx(other.probability, abs=1e-12)
        pending.append((one, other, float(np.nansum(y[0]) * (one.arm == "A") + t % 5)))
        while len(pending) > t % 4:
            first, second, reward = pending.pop(0)
            quick.learn(first, reward)
            slow.learn(second, reward)
    assert quick.counts == slow.counts
    np.testing.assert_array_equal(quick.posterior.mean, slow.posterior.mean)
    np.testing.assert_array_equal(quick._observer.moments.product, slow._observer.moments.product)
    np.testing.assert_array_equal(quick._observer.sample.values, slow._observer.sample.values)
    expected = 0 if options["missing"] == "drop" else 500
    assert compiled >= expected
    assert min(quick.counts.values()) >= (0 if options["missing"] == "drop" else 100)


def test_lists_of_columns_are_taken_from_the_first_round_on() -> None:
    bandit = made(recipe(["mobile"], missing="predict"))
    for t in range(200):
        bandit.learn(bandit.choose([40.0 + t % 7, float(t % 3), float(t % 2), 1.0]), float(t % 5))
    assert bandit._everyday is not None
    with pytest.raises(kh.InvalidValue, match="a record must be a dict"):
        bandit.choose([1, 2, 3, 4])


def test_what_was_predicted_is_the_same_of_one_and_of_many() -> None:
    """An entry that was never seen is missing still, and was not predicted."""
    bandit = made(recipe(["mobile"], missing="predict", standardize=False, intercept=False))
    bandit.observe(np.array([[1.0, np.nan, 1.0, 1.0], [2.0, np.nan, 0.0, 1.0]]))
    row = np.array([1.0, np.nan, np.nan, 1.0])
    compiled, listed = bandit.choose(row), bandit.choose(row, among=["A", "B"])
    for decision in (compiled, listed, bandit.choose_many(row[None])[0]):
        assert decision.predicted == (2,)
        assert decision.has_missing
        assert np.isnan(decision.raw).tolist() == [False, True, True, False]


@pytest.mark.parametrize("options", OPTIONS, ids=ids)
def test_records_and_their_columns_are_the_same(options: dict[str, Any]) -> None:
    """A record through the encoder, and the array that the encoder makes of it."""
    levels = ["mobile", "desktop"]
    records, rows = (made(recipe(levels, **options)) for _ in range(2))
    encoder = recipe(levels, **options).start()
    rng = np.random.default_rng(4)
    for t in range(300):
        one: dict[str, Any] = {
            "age": rng.normal(40.0, 5.0),
            "spent": rng.normal(),
            "member": bool(t % 3),
            "device": levels[t % 2],
        }
        if options["missing"] is not None and t % 4 == 0:
            one["device"] = "unlisted"
        first, second = records.choose(one), rows.choose(encoder.encode(one)[0])
        assert (first.arm, first.score) == (second.arm, second.score)
        records.learn(first, float(t % 6))
        rows.learn(second, float(t % 6))
