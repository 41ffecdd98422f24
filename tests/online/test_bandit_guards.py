"""Bad input gets a clear error and changes nothing: not the posterior, not the random stream."""

import pickle
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests import bandits

GOOD = [0.5, -0.5]
NAN, INF = float("nan"), float("inf")


def bandit_of(**settings: Any) -> kh.Bandit:
    bandit = bandits.bandit_of(
        kh.ThompsonSampling(v=1.0), arms=["A", "B", "C"], dim=2, seed=1, **settings
    )
    for arm in "ABC":
        bandit.learn(kh.Decision(arm=arm, observation=[1.0, 2.0]), 1.0)
    return bandit


def fingerprint(bandit: kh.Bandit) -> tuple[Any, ...]:
    """All that a bandit is, to the bit."""
    state = tuple(array.tobytes() for array in bandit.posterior.state)
    return bandit.arms, bandit.policy, state, bandit._random.tolist()


DECISION = kh.Decision(arm="A", observation=GOOD)
OTHER = kh.Bandit(kh.Greedy(), arms=["A"], dim=2)
WIDER = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A"], dim=3)

MORE, AHEAD = bandit_of(), bandit_of()
MORE.add_arms(["D"])
AHEAD.learn(DECISION, 1.0)
ASIDE = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A", "B", "C"], dim=2, seed=1)
for letter in "ABC":
    ASIDE.learn(kh.Decision(arm=letter, observation=[9.0, -2.0]), 1.0)

BAD: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "NaN": ("choose", ([NAN, 1.0],), {}, "nan at 0"),
    "NaN in an array": ("choose", (np.array([1.0, NAN]),), {}, "nan at 1"),
    "NaN in a row": ("choose", (np.array([GOOD, [1.0, NAN], GOOD]),), {}, r"nan at \(1, 1\)"),
    "infinite": ("choose", ([INF, 1.0],), {}, "inf"),
    "minus infinite": ("choose", (np.array([-INF, 1.0]),), {}, "inf"),
    "too large to square": ("choose", (np.array([1e300, 1.0]),), {}, "1e\\+300"),
    "too short": ("choose", ([1.0],), {}, r"shape \(2,\).*got \(1,\)"),
    "too many rows": ("choose", (np.ones((4, 2)),), {}, r"\(3, 2\).*got \(4, 2\)"),
    "three axes": ("choose", (np.ones((1, 3, 2)),), {}, "shape"),
    "a number": ("choose", (1.0,), {}, "shape"),
    "ragged": ("choose", ([[1.0, 2.0], [1.0]],), {}, "rows of equal length"),
    "text": ("choose", (["1", "2"],), {}, "real numbers"),
    "complex": ("choose", (np.array([1j, 0]),), {}, "real numbers"),
    "None": ("choose", ([None, 1.0],), {}, "real numbers"),
    "masked": ("choose", (np.ma.array([1.0, 2.0], mask=[False, True]),), {}, "masked"),
    "among nobody": ("choose", (GOOD,), {"among": []}, "at least one arm"),
    "among strangers": ("choose", (GOOD,), {"among": ["A", "Z"]}, "'Z'"),
    "among twice": ("choose", (GOOD,), {"among": ["A", "A"]}, "twice"),
    "among a string": ("choose", (GOOD,), {"among": "AB"}, "list of names"),
    "rows for all, among some": ("choose", (np.ones((3, 2)),), {"among": ["A", "B"]}, "shape"),
    "many: NaN": ("choose_many", ([GOOD, [NAN, 1.0]],), {}, "nan"),
    "many: one row": ("choose_many", (GOOD,), {}, "shape"),
    "many: wrong arms": ("choose_many", (np.ones((5, 2, 2)),), {}, "shape"),
    "many: a number": ("choose_many", (1.0,), {}, "shape"),
    "probabilities: NaN": ("choice_probabilities", ([NAN, 1.0],), {}, "nan"),
    "NaN reward": ("learn", (DECISION, NAN), {}, "reward"),
    "infinite reward": ("learn", (DECISION, INF), {}, "reward"),
    "reward too large": ("learn", (DECISION, 1e60), {}, "reward"),
    "text reward": ("learn", (DECISION, "1"), {}, "reward"),
    "no reward": ("learn", (DECISION, None), {}, "reward"),
    "array reward": ("learn", (DECISION, np.ones(2)), {}, "reward"),
    "unknown arm": ("learn", (kh.Decision(arm="Z", observation=GOOD), 1.0), {}, "'Z'.*'A', 'B'"),
    "wrong size": ("learn", (kh.Decision(arm="A", observation=[1.0]), 1.0), {}, r"\(1,\)"),
    "far too large a reward": ("learn", (DECISION, 10**400), {}, "reward"),
    "a time for a reward": ("learn", (DECISION, np.timedelta64(1, "s")), {}, "reward"),
    "many: nothing": ("learn_many", (None, [1.0]), {}, "Decision"),
    "merging from a number": ("merge", (bandit_of(),), {"base": 3}, "Bandit"),
    "adding bytes": ("add_arms", (b"DE",), {}, "list of names"),
    "not a decision": ("learn", ("A", 1.0), {}, "Decision"),
    "many: bad reward": ("learn_many", ([DECISION, DECISION], [1.0, NAN]), {}, "rewards"),
    "many: few rewards": ("learn_many", ([DECISION, DECISION], [1.0]), {}, "2 decisions"),
    "many: unknown arm": (
        "learn_many",
        ([DECISION, kh.Decision(arm="Z", observation=GOOD)], [1.0, 1.0]),
        {},
        "'Z'",
    ),
    "many: wrong size": (
        "learn_many",
        ([DECISION, kh.Decision(arm="A", observation=[1.0])], [1.0, 1.0]),
        {},
        "shape",
    ),
    "many: not decisions": ("learn_many", (["A"], [1.0]), {}, "Decision"),
    "adding what is there": ("add_arms", (["D", "A"],), {}, "'A'"),
    "adding twice": ("add_arms", (["D", "D"],), {}, "twice"),
    "adding a float": ("add_arms", ([1.5],), {}, "1.5"),
    "adding a yes": ("add_arms", ([True],), {}, "True"),
    "adding a string's letters": ("add_arms", ("DE",), {}, "list of names"),
    "removing a stranger": ("remove_arms", (["A", "Z"],), {}, "'Z'"),
    "removing all": ("remove_arms", (["A", "B", "C"],), {}, "at least one arm"),
    "merging another policy": ("merge", (OTHER,), {}, "learner"),
    "merging another dim": ("merge", (WIDER,), {}, "dim"),
    "merging from another base": ("merge", (bandit_of(),), {"base": OTHER}, "learner"),
    "merging from a base with more arms": ("merge", (bandit_of(),), {"base": MORE}, "base"),
    "merging from a base that has learned more": ("merge", (bandit_of(),), {"base": AHEAD}, "base"),
    "merging from a base with other data": ("merge", (bandit_of(),), {"base": ASIDE}, "base"),
    "merging with nobody": ("merge", (None,), {}, "Bandit"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("probabilities", [True, False])
def test_bad_input_is_refused_and_changes_nothing(name: str, probabilities: bool) -> None:
    method, arguments, keywords, message = BAD[name]
    bandit = bandit_of(probabilities=probabilities)
    before = fingerprint(bandit)
    with pytest.raises(kh.InvalidValue, match=message):
        getattr(bandit, method)(*arguments, **keywords)
    assert fingerprint(bandit) == before


def test_merging_a_bandit_with_itself_is_refused() -> None:
    bandit = bandit_of()
    before = fingerprint(bandit)
    with pytest.raises(kh.InvalidValue, match="itself"):
        bandit.merge(bandit)
    assert fingerprint(bandit) == before


def test_the_fingerprint_sees_changes() -> None:
    """The negative control of the test above."""
    bandit = bandit_of()
    before = fingerprint(bandit)
    decision = bandit.choose(GOOD)
    chosen = fingerprint(bandit)
    assert chosen != before
    bandit.learn(decision, 1.0)
    assert fingerprint(bandit) != chosen


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": "thompson"}, "policy"),
        ({"learner": kh.ThompsonSampling}, "not a class"),
        ({"arms": []}, "at least one arm"),
        ({"arms": 0}, "arms"),
        ({"arms": -1}, "arms"),
        ({"arms": True}, "arms"),
        ({"arms": 2.0}, "arms"),
        ({"arms": "ABC"}, "list of names"),
        ({"arms": ["A", "A"]}, "twice"),
        ({"arms": ["A", None]}, "None"),
        ({"arms": [("a",)]}, "name"),
        ({"dim": 0}, "dim"),
        ({"dim": 2.0}, "dim"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"probabilities": "no"}, "probabilities must be True or False"),
    ],
)
def test_nonsense_settings(settings: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"learner": kh.Greedy(), "arms": 2, "dim": 2, "seed": 1}
    with pytest.raises(kh.InvalidValue, match=message):
        kh.Bandit(**{**usual, **settings})


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"arm": "A"}, "keys"),
        ({"observation": [1.0]}, "keys"),
        ({"arm": "A", "probability": 1.5, "score": 1.0, "observation": [1.0]}, "probability"),
        ({"arm": "A", "probability": NAN, "score": 1.0, "observation": [1.0]}, "probability"),
        ({"arm": None, "probability": 0.5, "score": 1.0, "observation": [1.0]}, "name"),
        ({"arm": "A", "probability": 0.5, "score": "x", "observation": [1.0]}, "score"),
        ({"arm": "A", "probability": 0.5, "score": 1.0, "observation": [np.inf]}, "observation"),
        ({"arm": "A", "probability": 0.5, "score": 1.0, "observation": [[1.0]]}, "observation"),
        ("A", "dict"),
    ],
)
def test_a_damaged_record_of_a_decision(record: Any, message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        kh.Decision.from_dict(record)


def test_a_decision_without_a_law_has_no_probability() -> None:
    """Compiled code would read where there is nothing."""
    bandit = kh.Bandit(kh.ThompsonSampling(), arms=2, dim=2, seed=1, probabilities=False)
    for decision in (kh.Decision(arm=0, observation=[1.0, 2.0]), bandit.choose(np.ones(2))):
        assert decision._chance() is None
        assert decision.probability is None


def test_decisions_that_differ_in_epsilon_are_not_equal() -> None:
    one, other = (
        kh.Bandit(kh.EpsilonGreedy(epsilon), arms=1, dim=2, seed=1).choose(np.ones(2))
        for epsilon in (0.1, 0.3)
    )
    other._run, other._score = one._run, one._score
    assert one != other
    other._epsilon = 0.1
    assert one == other


def test_batches_come_through_a_pickle_with_buffers_of_its_own() -> None:
    """Such as Dask's: their arrays are read-only."""
    decisions = kh.Bandit(kh.ThompsonSampling(), arms=3, dim=2, seed=1).choose_many(np.eye(2))
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(decisions, protocol=5, buffer_callback=buffers.append)
    again = pickle.loads(text, buffers=[bytes(buffer.raw()) for buffer in buffers])
    np.testing.assert_array_equal(again.probabilities, decisions.probabilities)
    assert buffers
