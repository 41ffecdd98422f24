"""Columns of a log: what is accepted, and errors that name row and column."""

import pickle
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.evaluation import Logged
from tests.logs import online_columns, random_columns, small

NAN = float("nan")


@pytest.mark.parametrize(
    "policy",
    [
        kh.ThompsonSampling(v=0.8),
        kh.ThompsonSampling(),
        kh.ThompsonSampling(v=0.5, sharing="shared", prior_precision=2.0),
        kh.EpsilonGreedy(0.3),
        kh.GreedyFirst(0.1, v=1.0),
        kh.OFUL(),
    ],
    ids=repr,
)
def test_scores_give_the_probability_that_the_bandit_logged(policy: kh.Policy) -> None:
    columns = online_columns(policy)
    log = Logged(**columns)
    assert log.computed is not None
    own = log.computed[np.arange(log.n_rounds), log.chosen]
    np.testing.assert_allclose(own, columns["probability"], atol=1e-11)
    np.testing.assert_allclose(log.computed.sum(axis=1), 1.0, atol=1e-11)


def test_rounds_after_the_first_missing_reward_are_not_used() -> None:
    columns = random_columns(100)
    columns["reward"][[60, 80]] = NAN
    log = Logged(**columns)
    assert log.n_rewarded == 60
    assert repr(log) == "Logged(100 rounds, 4 arms, rewards up to round 60)"
    found = kh.evaluate(log, "uniform", estimator="ips")
    alone = kh.evaluate(
        {name: one if name == "arms" else one[:60] for name, one in columns.items()},
        "uniform",
        estimator="ips",
    )
    assert (found.n_used, found.n_rounds) == (60, 100)
    assert found.rows == alone.rows


def test_an_arm_that_is_no_candidate_has_no_probability() -> None:
    log = Logged(
        arms=["A", "B", "C"],
        chosen=[0, 1],
        probability=[0.5, 1 / 3],
        reward=[0.0, 1.0],
        mean=[[1.0, 1.0, NAN], [1.0, 1.0, 1.0]],
        width=[[1.0, 1.0, NAN], [1.0, 1.0, 1.0]],
        dispersion=1.0,
        epsilon=0.3,
    )
    assert log.computed is not None
    np.testing.assert_allclose(log.computed, [[0.5, 0.5, 0.0], [1 / 3] * 3], atol=1e-12)


def test_observations_of_arms_that_were_no_candidates_do_not_matter() -> None:
    """Arm 2 is never a candidate; whatever is logged of it changes nothing."""
    columns = online_columns(kh.ThompsonSampling(v=1.0), n_arms=2)
    for name in ("mean", "width"):
        columns[name] = np.column_stack([columns[name], np.full(200, NAN)])
    for name in ("optimism", "dispersion"):
        columns[name] = np.column_stack([columns[name], np.zeros(200)])
    each = np.repeat(columns["observation"][:, None], 3, axis=1)
    each[:, 2] = NAN
    found = [
        kh.evaluate(
            {**columns, "arms": (0, 1, 2), "observation": y},
            [kh.ThompsonSampling(v=1.0, prior_precision=2.0), "uniform"],
            min_size=0.0,
        )
        for y in (each, np.nan_to_num(each, nan=7.0))
    ]
    assert found[0] == found[1]
    two = online_columns(kh.ThompsonSampling(v=1.0), n_arms=2)
    assert found[0]["uniform"].value == pytest.approx(
        kh.evaluate(two, "uniform", min_size=0.0)["uniform"].value, rel=1e-9
    )


def test_a_source_may_be_a_mapping_or_have_columns() -> None:
    columns = random_columns(20)

    class Source:
        def columns(self) -> dict[str, Any]:
            return columns

    for source in (columns, Source(), Logged(**columns)):
        np.testing.assert_array_equal(Logged.of(source).chosen, columns["chosen"])
    with pytest.raises(kh.InvalidValue, match="must be a Logged, a Log or its path, a mapping"):
        Logged.of(3)
    with pytest.raises(kh.FileError, match=r"cannot read decisions\.jsonl"):
        Logged.of("decisions.jsonl")
    with pytest.raises(kh.InvalidValue, match="Did you mean reward"):
        Logged.of({**columns, "rewards": columns["reward"]})
    with pytest.raises(kh.InvalidValue, match="must have the column 'probability'"):
        Logged.of({name: columns[name] for name in ("arms", "chosen", "reward")})


def test_columns_are_copies_that_cannot_be_changed() -> None:
    columns = random_columns(20)
    log = Logged(**columns)
    columns["reward"][:] = 5.0
    assert log.reward.max() <= 1.0
    with pytest.raises(ValueError, match="read-only"):
        log.reward[0] = 1.0
    again = pickle.loads(pickle.dumps(log))
    np.testing.assert_array_equal(again.probabilities, log.probabilities)
    assert log.head(log.n_rounds) is log


WRONG = [
    ({"probability": [0.5, 0.0, 0.8]}, r"probability\[1\] must be above 0 and at most 1, got 0"),
    ({"probability": [0.5, NAN, 0.8]}, r"probability\[1\] must be above 0 and at most 1, got nan"),
    ({"probability": [0.5, 0.2, 1.5]}, r"probability\[2\] must be above 0 and at most 1, got 1.5"),
    ({"probability": []}, "probability must have a number for each round"),
    ({"chosen": [0, 2, 1]}, r"chosen\[1\] must be from 0 to 1, got 2"),
    ({"chosen": [0.0, 1.0, 1.0]}, "chosen must be 3 indices"),
    ({"chosen": ["A", "B", "B"]}, "chosen must be 3 indices"),
    ({"reward": [1.0, 2.0]}, r"reward must have shape \(3,\), got \(2,\)"),
    ({"mean": [[0.5, 1.0], [0.0, NAN], [1.0, 1.0]]}, r"mean\[1, 1\] must be a number, got nan"),
    ({"width": [[1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]}, r"width\[1, 1\] must be at least 0"),
    ({"mean": None, "width": [[1.0, 1.0]] * 3}, "width must come with mean"),
    ({"probabilities": [[0.5, 0.5], [0.7, 0.2], [0.2, 0.8]]}, r"probabilities\[1\] must add up"),
    ({"probabilities": [[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]]}, r"must equal probability\[1\]"),
    ({"probabilities": [[0.5, 0.5], [1.2, -0.2], [0.2, 0.8]]}, r"probabilities\[1, 0\] must be"),
    (
        {"mean": [[0.5, 1.0], [NAN, 1.0], [1.0, 1.0]]},
        r"probabilities\[1, 0\] must be 0 where mean is missing, got 0.75",
    ),
    ({"dispersion": [1.0, -1.0, 1.0]}, r"dispersion\[1\] must be from 0"),
    ({"epsilon": 1.5}, "epsilon must be from 0 to 1, got 1.5"),
    ({"optimism": [1.0, 2.0]}, "optimism must be a number or have shape"),
    ({"observation": [1.0, 2.0, 3.0]}, "observation must have shape"),
    ({"observation": [[1.0], [NAN], [2.0]]}, r"observation\[1, 0\] must be a number, got nan"),
    ({"observation": [[[1.0], [NAN]]] * 3}, r"observation\[0, 1, 0\] must be a number"),
    ({"arms": ["A", "A"]}, "arms must be one or more different names"),
    ({"arms": "AB"}, "arms must be the names"),
    ({"sharing": "joint"}, "sharing must be one of"),
    ({"prior_precision": 0.0}, "prior_precision must be above 0"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_value_is_named_with_its_row(change: dict[str, Any], message: str) -> None:
    log = small()
    columns = {
        name: getattr(log, name)
        for name in ("arms", "chosen", "probability", "reward", "mean", "probabilities")
    }
    with pytest.raises(kh.InvalidValue, match=message):
        Logged(**{**columns, **change})
