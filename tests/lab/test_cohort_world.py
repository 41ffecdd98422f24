"""`CohortWorld`: every row once, missing entries as they are, and an oracle with hindsight."""

from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Streams
from keyhole.lab.worlds import CohortWorld

NAN = float("nan")
ROWS = [[1.0, NAN], [2.0, 1.0], [3.0, 3.0], [4.0, 2.0]]
RIGHT = [[1, 0], [1, 0], [0, 1], [0, 1]]


def test_every_row_comes_once_before_any_comes_again() -> None:
    world = CohortWorld(ROWS, RIGHT)
    state = world.start(Streams(5))
    blocks = [world.rounds(state, n) for n in (3, 1, 4, 6, 2)]
    first = np.concatenate([block.observations[:, 0, 0] for block in blocks]).reshape(4, 4)
    np.testing.assert_array_equal(np.sort(first, axis=1), [[1.0, 2.0, 3.0, 4.0]] * 4)
    assert len(np.unique(first, axis=0)) > 1


def test_a_row_keeps_its_missing_entries_rewards_and_right_answer() -> None:
    rounds = CohortWorld(ROWS, RIGHT).sample(4, seed=1)
    assert rounds.labels is not None
    seen = zip(rounds.observations[:, 0], rounds.rewards, rounds.labels, strict=True)
    for y, rewards, label in seen:
        row = int(y[0]) - 1
        np.testing.assert_array_equal(y, ROWS[row])
        assert rewards.tolist() == RIGHT[row]
        assert RIGHT[row][label] == 1
    assert np.isnan(rounds.latent).all()


def test_the_oracle_by_hand() -> None:
    """Rewards 2 + 3 x of the first arm and -x of the second: no error is left."""
    x = np.array([0.0, 1.0, 2.0, 5.0])
    world = CohortWorld(x[:, None], np.column_stack([2 + 3 * x, -x]))
    np.testing.assert_allclose(world.eta, [[3.0], [-1.0]], atol=1e-12)
    np.testing.assert_allclose(world.values, world.rewards, atol=1e-12)
    assert world.noise_scale == pytest.approx(0.0, abs=1e-12)
    assert world.labels is None


def test_the_oracle_predicts_missing_entries_from_the_others() -> None:
    """Two columns that are the same: the one tells the other, to the prior of few rows."""
    x = np.random.default_rng(1).standard_normal(2_000)
    rows = np.column_stack([x, x])
    rows[::3, 1] = NAN
    filled = CohortWorld(rows, x[:, None]).filled
    assert np.abs(filled[:, 1] - x).max() < 0.05 * x.std()
    np.testing.assert_array_equal(filled[1::3], rows[1::3])


def test_learners_play_it() -> None:
    """Half of the entries are missing; prediction does better than chance, and not the oracle."""
    rng = np.random.default_rng(3)
    labels = rng.integers(3, size=600)
    rows = 2.0 * np.eye(3)[labels] + rng.standard_normal((600, 3))
    rows[rng.random(rows.shape) < 0.3] = NAN
    world = CohortWorld(rows, np.eye(3)[labels])
    learner = kh.Learner(kh.ThompsonSampling(), intercept=True, missing="predict")
    runs = kh.simulate(world, {"a": learner}, horizon=600, replications=4, seed=1, progress=False)
    share, best = float(runs.correct[0, :, -1].mean()), float(runs.best_correct[:, -1].mean())
    # A share of 2,400 decisions has a standard error of 0.01.
    assert 1 / 3 + 0.05 < share < best


@pytest.mark.parametrize(
    ("features", "rewards", "message"),
    [
        ([1.0, 2.0], RIGHT, "features must have shape"),
        (ROWS, RIGHT[:3], "a row for each of the 4 rows"),
        (ROWS, [1.0] * 4, "a row for each of the 4 rows"),
        (ROWS, [[NAN, 0.0]] * 4, "rewards"),
        ([[1.0, NAN]] * 4, RIGHT, "column 1 of features has missing entries only"),
    ],
)
def test_mistakes(features: Any, rewards: Any, message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        CohortWorld(features, rewards)


def test_it_tells_tables_apart() -> None:
    one, other = CohortWorld(ROWS, RIGHT, name="doses"), CohortWorld(ROWS, np.array(RIGHT)[::-1])
    assert one.describe()["sha256"] != other.describe()["sha256"]
    assert one.describe()["missing_share"] == 1 / 8
    assert repr(one) == "CohortWorld('doses', 4 rows x 2, 2 arms)"
