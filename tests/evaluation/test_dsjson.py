"""dsjson: lines by hand, round trips, and errors that name line and field."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.evaluation import Logged, write_log
from keyhole.evaluation.formats import Dsjson
from tests.logs import online_columns, small

NAN = float("nan")
COFFEE = ["Cappucino", "Cold brew", "Latte"]


def line(**changes: Any) -> dict[str, Any]:
    """A line as Vowpal Wabbit has it; a change to None takes a field out."""
    usual = {
        "_label_cost": -1.5,
        "_label_probability": 0.5,
        "_label_Action": 2,
        "_labelIndex": 1,
        "a": [2, 1, 3],
        "p": [0.5, 0.3, 0.2],
        "c": {"User": {"age": 41, "income": 2.5}, "_multi": [{}, {}, {}]},
    }
    return {name: one for name, one in {**usual, **changes}.items() if one is not None}


def personalizer(event: str, a: list[int], p: list[float], cost: float, **more: Any) -> Any:
    """A line as Personalizer exports it."""
    actions = [
        {"_tag": name, "i": {"constant": 1, "id": name}, "j": [{"roast": "dark"}]}
        for name in COFFEE
    ]
    return {
        "_label_cost": cost,
        "_label_probability": p[0],
        "_label_Action": a[0],
        "_labelIndex": a[0] - 1,
        **more,
        "o": [{"v": -cost, "EventId": event, "ActionTaken": False}],
        "Timestamp": "2021-02-04T16:31:29.2460000Z",
        "Version": "1",
        "EventId": event,
        "a": a,
        "c": {"FromUrl": [{"weather": "Sunny"}], "_multi": actions},
        "p": p,
        "VWState": {"m": "ff07/550c"},
        "_original_label_cost": cost,
    }


def written(path: Path, *lines: Any, end: str = "\n") -> Path:
    path.write_text("\n".join(json.dumps(one) for one in lines) + end)
    return path


def test_a_line_by_hand(tmp_path: Path) -> None:
    """`p` is aligned with `a`, actions count from 1, and the reward is the negative cost."""
    log = Logged.of(written(tmp_path / "log.json", line()))
    assert log.arms == (1, 2, 3)
    assert log.chosen.tolist() == [1]
    assert log.probability.tolist() == [0.5]
    assert log.reward.tolist() == [1.5]
    assert log.probabilities is not None
    assert log.probabilities.tolist() == [[0.3, 0.5, 0.2]]
    assert log.observation is not None
    assert log.observation.tolist() == [[[41.0, 2.5]]]


def test_the_chosen_action_may_have_its_place_only(tmp_path: Path) -> None:
    given = line(_label_Action=None, _labelIndex=2, _label_probability=0.2)
    log = Logged.of(written(tmp_path / "log.json", given))
    assert (log.chosen.tolist(), log.probability.tolist()) == ([2], [0.2])
    first = line(**dict.fromkeys(("_label_Action", "_labelIndex", "_label_cost")))
    del first["_label_probability"]
    waiting = Logged.of(written(tmp_path / "log.json", first))
    assert (waiting.chosen.tolist(), waiting.n_rewarded) == ([1], 0)


def test_a_log_of_personalizer(tmp_path: Path) -> None:
    """Arms are tags; inactive events and rewards without their decision are left out, and told."""
    lines = [
        personalizer("e1", [1, 2, 3], [0.8, 0.1, 0.1], -1.0),
        personalizer("e2", [3, 1, 2], [0.1, 0.8, 0.1], -0.0),
        personalizer("e3", [2, 1, 3], [0.1, 0.8, 0.1], -1.0, _skipLearn=True),
        personalizer("e4", [2, 1, 3], [0.1, 0.8, 0.1], 0.0, _deferred=True),
        {"RewardValue": 1.0, "EnqueuedTimeUtc": "2021-02-04", "EventId": "e0"},
    ]
    first = written(tmp_path / "1.json", *lines)
    second = written(tmp_path / "2.json", personalizer("e5", [2, 1, 3], [0.1, 0.8, 0.1], 0.0))
    said = "2 events that were never activated and 1 rewards without their decision"
    with pytest.warns(kh.KeyholeWarning, match=said):
        log = Logged.of([first, second], format="personalizer")
    assert log.arms == tuple(COFFEE)
    assert log.chosen.tolist() == [0, 2, 1]
    assert log.reward.tolist() == [1.0, 0.0, 0.0]
    assert log.probabilities is not None
    assert log.probabilities.tolist() == [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.8, 0.1, 0.1]]
    assert log.observation is None  # texts are no vectors
    with pytest.warns(kh.KeyholeWarning):
        assert Logged.of(tmp_path).n_rounds == 3  # all files of the folder
    numbers = Logged.of(second, format=Dsjson(arms="numbers"))
    assert numbers.arms == (1, 2, 3)
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(second.read_bytes()))
    assert Logged.of(packed).chosen.tolist() == [1]


def test_arms_come_and_go(tmp_path: Path) -> None:
    """An arm that is not in `a` is no candidate; one with probability 0 is."""
    few = {"_multi": [{"_tag": "B"}, {"_tag": "C"}]}
    all_three = {"_multi": [{"_tag": "A"}, {"_tag": "B"}, {"_tag": "C"}]}
    path = written(
        tmp_path / "log.json",
        line(c=all_three, p=[0.7, 0.3, 0.0], _label_probability=0.7),
        line(c=few, a=[1, 2], p=[0.9, 0.1], _label_probability=0.9, _label_Action=1, _labelIndex=0),
    )
    log = Logged.of(path)
    assert log.arms == ("A", "B", "C")
    assert log.chosen.tolist() == [1, 1]
    assert log.candidates.tolist() == [[True, True, True], [False, True, True]]
    assert log.probabilities is not None
    assert log.probabilities.tolist() == [[0.3, 0.7, 0.0], [0.0, 0.9, 0.1]]
    ordered = Logged.of(path, format=Dsjson(arms=["C", "B", "A", "D"]))
    assert ordered.chosen.tolist() == [1, 1]
    assert ordered.candidates[1].tolist() == [True, True, False, False]
    with pytest.raises(kh.UnknownArm, match=r"line 1 of .*: _tag must be one of .*got 'C'"):
        Logged.of(path, format=Dsjson(arms=["A", "B"]))
    again = [0.5, 0.25, 0.25]
    found = kh.evaluate(
        Logged.of(path), {"mine": np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])}, check=False,
        estimator="ips", min_size=0.0,
    )  # fmt: skip
    by_hand = (again[1] / 0.7 * 1.5 + 0.5 / 0.9 * 1.5) / 2.0
    assert found["mine"].value == pytest.approx(by_hand)


def test_a_slot_of_several(tmp_path: Path) -> None:
    """`_outcomes` counts actions from 0; later slots have fewer candidates."""
    slots = [
        {"_label_cost": -0.0, "_a": [0, 1, 2], "_p": [0.6, 0.3, 0.1]},
        {"_label_cost": -1.0, "_a": [2, 1], "_p": [0.75, 0.25]},
    ]
    given = {"_outcomes": slots, "c": {"_multi": [{}, {}, {}]}, "EventId": "e"}
    path = written(tmp_path / "log.json", given)
    with pytest.raises(kh.FileError, match=r"line 1 of .*choices for 2 slots.*Dsjson\(slot=0\)"):
        Logged.of(path)
    log = Logged.of(path, format=Dsjson(slot=1))
    assert (log.chosen.tolist(), log.reward.tolist()) == ([2], [1.0])
    assert log.probabilities is not None
    assert log.probabilities.tolist() == [[0.0, 0.25, 0.75]]
    assert log.candidates.tolist() == [[False, True, True]]
    with pytest.raises(kh.FileError, match="no choice for slot 2"):
        Logged.of(path, format=Dsjson(slot=2))
    shared = written(
        tmp_path / "slates.json", {"_label_cost": -1, "_outcomes": [{"_a": [0], "_p": [1.0]}]}
    )
    with pytest.raises(kh.FileError, match=r"_outcomes\[0\] must have a _label_cost"):
        Logged.of(shared, format=Dsjson(slot=0))


def test_the_kept_share_of_events_may_be_in_the_probability(tmp_path: Path) -> None:
    """Converters of binary logs write p times the share that was kept; `p` itself counts."""
    thinned = written(tmp_path / "log.json", *[line(_label_probability=0.05)] * 2)
    assert Logged.of(thinned).probability.tolist() == [0.5, 0.5]
    dropped = written(tmp_path / "log.json", *[line(pdrop=0.9)] * 2)
    assert Logged.of(dropped).probability.tolist() == [0.5, 0.5]
    mixed = written(tmp_path / "log.json", line(pdrop=0.9), line())
    with pytest.raises(kh.FileError, match=r"line 2 of .*events that were kept must be 0.1"):
        Logged.of(mixed)


def test_without_p_only_the_chosen_probability_is_known(tmp_path: Path) -> None:
    path = written(tmp_path / "log.json", line(p=None), line(p=None, a=None))
    log = Logged.of(path)
    assert log.probabilities is None
    assert log.probability.tolist() == [0.5, 0.5]
    assert log.candidates.all()
    with pytest.raises(kh.FileError, match=r"line 2 of .*p must be there"):
        Logged.of(written(path, line(), line(p=None)))


def test_rounded_probabilities_add_up(tmp_path: Path) -> None:
    p = [0.333333, 0.33333, 0.33333]
    log = Logged.of(written(tmp_path / "log.json", line(p=p, _label_probability=0.333333)))
    assert log.probabilities is not None
    assert log.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    exact = Logged.of(written(tmp_path / "log.json", line(p=[0.5, 0.3, 0.2 + 1e-9])))
    assert exact.probabilities is not None
    assert exact.probabilities[0, 2] == 0.2 + 1e-9


CONTEXTS: list[tuple[list[Any], Any]] = [
    ([{"a": 1}, {"a": 2.5}], [[[1.0]], [[2.5]]]),
    ([{"x": [1, 2], "n": [{"b": 3}]}] * 2, [[[1.0, 2.0, 3.0]]] * 2),
    ([{"a": 1, "b": 2}, {"b": 4, "a": 3}], [[[1.0, 2.0]], [[3.0, 4.0]]]),
    ([{"a": 1, "_b": "text"}, {"a": 2, "_c": 1}], [[[1.0]], [[2.0]]]),
    ([{"a": 1, "b": 2}, {"b": 4, "a": 3, "_c": 1}], [[[1.0, 2.0]], [[3.0, 4.0]]]),
    ([{"a": 1}, {"a": 1, "b": 2}], None),
    ([{"a": 1}, {"a": "text"}], None),
    ([{"a": 1}, {}], None),
    ([{"a": "text"}, {"a": 1}], None),
    ([{"a": True}] * 2, None),
    ([{"x": [1, 2]}, {"x": [1]}], None),
]


@pytest.mark.parametrize(("contexts", "expected"), CONTEXTS)
def test_features_are_the_observation_where_they_are_vectors(
    contexts: list[Any], expected: Any, tmp_path: Path
) -> None:
    lines = [line(c={**one, "_multi": [{"z": {"t": "text"}}] * 3}) for one in contexts]
    log = Logged.of(written(tmp_path / "log.json", *lines))
    assert (None if log.observation is None else log.observation.tolist()) == expected
    assert Logged.of(tmp_path / "log.json", format=Dsjson(features=False)).observation is None


def test_features_of_actions_are_one_row_for_each_arm(tmp_path: Path) -> None:
    three = [{"_tag": name, "f": {"x": i, "y": -i}} for i, name in enumerate("ABC")]
    lines = [
        line(c={"_multi": three}),
        line(c={"_multi": three[:2]}, a=[2, 1], p=[0.5, 0.5]),
    ]
    log = Logged.of(written(tmp_path / "log.json", *lines))
    assert log.observation is not None
    assert log.observation[0].tolist() == [[0.0, 0.0], [1.0, -1.0], [2.0, -2.0]]
    assert log.observation[1].tolist() == [[0.0, 0.0], [1.0, -1.0], [0.0, 0.0]]
    assert not log.candidates[1, 2]
    lines[1]["c"]["_multi"] = [{"_tag": "A", "f": {"x": 1}}, {"_tag": "B", "f": {"x": 1, "y": 0}}]
    assert Logged.of(written(tmp_path / "log.json", *lines)).observation is None


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"p": [0.5, 0.3, 1.5]}, r"p\[2\] must be from 0 to 1, got 1.5"),
    ({"p": [0.5, -0.1, 0.6]}, r"p\[1\] must be from 0 to 1, got -0.1"),
    ({"p": [0.0, 0.5, 0.5]}, "p of the chosen action must be above 0 and at most 1, got 0"),
    ({"p": [0.5, 0.3, 0.1]}, "p must add up to 1, got 0.9"),
    ({"p": [0.5, 0.5]}, "p must have a probability for each of the 3 actions, got 2"),
    ({"p": ["NaN", 0.5, 0.5]}, r"Expected `float`, got `str` - at `\$.p\[0\]`"),
    ({"p": [NAN, 0.5, 0.5]}, "JSON is malformed"),
    ({"_label_probability": 0.9}, "_label_probability must be that of p, 0.5, got 0.9"),
    ({"_label_cost": None}, "_label_cost must be there"),
    ({"_label_cost": "1"}, r"got `str` - at `\$._label_cost`"),
    ({"_label_Action": 4, "_labelIndex": 3}, r"_label_Action must be in a = \[2, 1, 3\], got 4"),
    ({"_labelIndex": 2}, "_labelIndex must be _label_Action - 1 = 1, got 2"),
    ({"a": [2, 1, 1]}, "a must have every action once, got 1 twice"),
    ({"a": [0, 1, 2]}, r"Expected `int` >= 1 - at `\$.a\[0\]`"),
    ({"a": [2, 1, 10**12]}, r"Expected `int` <= 1000000 - at `\$.a\[2\]`"),
    ({"a": None, "c": None}, "a must be there, the numbers of the actions"),
    ({"a": None, "_label_Action": None, "_labelIndex": None}, "a must be there"),
    ({"pdrop": 1.0}, "pdrop must be at least 0 and below 1, got 1"),
    ({"_original_label_cost": -1.0}, "apprentice mode of Personalizer"),
    ({"_label_ca": {"action": 1.5}}, "_label_ca is an action on a scale"),
    ({"c": {"_multi": [{"_tag": "A"}] * 3}}, "every action must have a _tag of its own"),
    ({"c": {"_multi": [{"_tag": "A"}, {}, {}]}}, "every action must have a _tag, or none"),
    ({"c": {"_multi": [{"_tag": "A"}, {"_tag": "B"}, {"_tag": "C"}]}}, "_tag must not be there"),
    (
        {"c": {"_multi": [{"_tag": "A"}, {"_tag": "B"}]}},
        "a must be at most 2, the length of _multi",
    ),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
@pytest.mark.parametrize("features", [True, False])
def test_an_error_names_the_line_and_the_field(
    change: dict[str, Any], message: str, features: bool, tmp_path: Path
) -> None:
    path = written(tmp_path / "log.json", line(), line(**change), line())
    with pytest.raises(kh.FileError, match=f"line 2 of {path}.*{message}"):
        Logged.of(path, format=Dsjson(features=features))


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    whole = written(path, line(), line()).read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(
        kh.FileError, match=f"line 2 of {path} is no line of dsjson: Input data was"
    ):
        Logged.of(path)
    path.write_bytes(whole.replace(b"income", b"inc\xffme", 2))
    with pytest.raises(kh.FileError, match=f"line 1 of {path} is not UTF-8: byte 0xff"):
        Logged.of(path)
    path.write_bytes(whole + b"1:2:0.5 | a\n")
    with pytest.raises(kh.FileError, match=f"line 3 of {path} is no line of dsjson"):
        Logged.of(path)
    path.write_bytes(b"\xef\xbb\xbf\n" + whole.replace(b"\n", b"\r\n\r\n"))
    assert Logged.of(path).n_rounds == 2  # blank lines, and marks of Windows
    path.write_bytes(gzip.compress(whole)[:-9])
    with pytest.raises(kh.FileError, match="is no whole gzip file"):
        Logged.of(path)
    with pytest.raises(kh.FileError, match="no decisions, only 1 rewards without their decision"):
        Logged.of(written(path, {"EventId": "a", "RewardValue": 1.0}), format="dsjson")


def test_an_event_counts_once(tmp_path: Path) -> None:
    path = written(tmp_path / "1.json", line(EventId="a"), line(EventId="b"))
    other = written(tmp_path / "2.json", line(EventId="c"), line(EventId="a"))
    said = f"line 2 of {other}: EventId must be new, got that of line 1 of {path}"
    with pytest.raises(kh.FileError, match=said):
        Logged.of([path, other])
    assert Logged.of([path, other], format=Dsjson(repeated=True)).n_rounds == 4
    with pytest.raises(kh.InvalidValue, match=r"every file once, got .*1\.json twice"):
        Logged.of([path, path])


def test_lines_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few bytes give what one block does, and errors the same line."""
    lines = [line(EventId=str(i), _label_cost=-float(i)) for i in range(20)]
    path = written(tmp_path / "log.json", *lines, end="")
    whole = Logged.of(path)
    monkeypatch.setattr("keyhole.evaluation.formats.sources.BLOCK", 300)
    seen: list[tuple[int, int]] = []
    log = Logged.of(path, progress=lambda done, total: seen.append((done, total)))
    np.testing.assert_array_equal(log.reward, whole.reward)
    np.testing.assert_array_equal(log.observation, whole.observation)
    size = path.stat().st_size
    assert seen[-1] == (size, size)
    assert seen == sorted(seen)
    (tmp_path / "more").mkdir()
    for i in range(3):
        written(tmp_path / "more" / str(i), *(line(EventId=f"{i}-{k}") for k in range(4)))
    seen.clear()
    every = Logged.of(tmp_path / "more", format="dsjson", progress=lambda *one: seen.append(one))
    assert every.n_rounds == 12
    assert [total for _, total in seen] == [seen[-1][0]] * len(seen)
    assert seen == sorted(seen)
    lines[17]["p"] = [0.5, 0.6, 0.2]
    with pytest.raises(kh.FileError, match=r"line 18 of .*p must add up to 1, got 1.3"):
        Logged.of(written(path, *lines))
    monkeypatch.setattr("keyhole.evaluation.formats.sources.MAX_LINE", 1000)
    path.write_text(json.dumps(line()) + "\n" + " " * 5000)
    with pytest.raises(kh.FileError, match=r"line 2 of .* is longer than"):
        Logged.of(path)


def test_a_log_written_and_read_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    log = Logged(**{**online_columns(kh.ThompsonSampling(v=1.0)), "arms": ("A", "B", "C")})
    assert write_log(log, path, "dsjson") == log.n_rounds
    again = Logged.of(path)
    for name in ("chosen", "probability", "reward", "observation", "candidates"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name), err_msg=name)
    assert again.arms == log.arms
    assert log.propensity is not None
    assert again.probabilities is not None
    np.testing.assert_allclose(again.probabilities, log.propensity, atol=1e-12)
    first = json.loads(path.read_text().split("\n")[0])
    assert first["_label_cost"] == -log.reward[0]
    assert first["_labelIndex"] == log.chosen[0] == first["a"][0] - 1
    # The same means in other ways: replayed from the observations that were written.
    policy = kh.ThompsonSampling(v=0.5)
    assert kh.evaluate(again, policy).rows[0].value == pytest.approx(
        kh.evaluate(log, policy, estimator="snips").rows[0].value, abs=1e-9
    )


def test_a_log_with_missing_rewards_and_arms_is_written(tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    log = Logged(
        arms=("A", "B", "C"),
        chosen=[0, 2, 1],
        probability=[0.5, 0.25, 0.8],
        reward=[1.0, NAN, -2.0],
        probabilities=[[0.5, 0.5, 0.0], [0.75, 0.0, 0.25], [0.0, 0.8, 0.2]],
        candidates=[[True, True, True], [True, False, True], [False, True, True]],
        observation=np.arange(18.0).reshape(3, 3, 2),
    )
    write_log(log, path, "dsjson")
    again = Logged.of(path)
    for name in ("chosen", "probability", "reward", "probabilities", "candidates"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name), err_msg=name)
    assert again.observation is not None
    assert again.observation[0].tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert again.n_rewarded == 1


def test_any_names_of_arms(tmp_path: Path) -> None:
    names = ('say "A"', "a|b:c d", "zeile\nzwei", "grün", "", "{}", "1")
    n = len(names)
    log = {
        "arms": names,
        "chosen": np.arange(n),
        "probability": np.full(n, 1 / n),
        "reward": np.arange(n) / 3.0,
        "probabilities": np.full((n, n), 1 / n),
    }
    write_log(log, tmp_path / "log.json", "dsjson")
    again = Logged.of(tmp_path / "log.json")
    assert again.arms == names
    assert again.reward.tolist() == log["reward"].tolist()  # type: ignore[attr-defined]


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    log = {"arms": "AB", "chosen": [0], "probability": [0.5], "reward": [1.0]}
    with pytest.raises(kh.InvalidValue, match="probability of every arm for dsjson"):
        write_log({**log, "arms": ["A", "B"]}, tmp_path / "log.json", "dsjson")
    with pytest.raises(kh.InvalidValue, match="'keyhole' is not written: a bandit"):
        write_log(small(), tmp_path / "log.json", "keyhole")
    assert list(tmp_path.iterdir()) == []


def test_settings_are_checked() -> None:
    for wrong in ({"arms": "A"}, {"slot": -1}, {"features": 1}, {"arms": ["A", "A"]}):
        with pytest.raises(kh.InvalidValue, match=next(iter(wrong))):
            Dsjson(**wrong)


def test_two_schemas_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the other kind of line comes in a later block."""
    tagged = {"_multi": [{"_tag": "A"}, {"_tag": "B"}, {"_tag": "C"}]}
    cases = [
        (line(), line(p=None), "p must be there"),
        (line(p=None), line(), "p must (not )?be there"),
        (line(), line(c=tagged), "_tag must not be there, as in the lines before"),
        (line(c=tagged), line(), "_tag must be there, as in the lines before"),
    ]
    for size in (1 << 20, 10):
        monkeypatch.setattr("keyhole.evaluation.formats.sources.BLOCK", size)
        for first, second, message in cases:
            path = written(tmp_path / "log.json", first, second)
            with pytest.raises(kh.FileError, match=f"line [12] of {path}: {message}"):
                Logged.of(path, format=Dsjson(features=False))
    path = written(tmp_path / "log.json", line())
    with pytest.raises(kh.FileError, match=r"line 1 of .*: _outcomes must be there for slot 0"):
        Logged.of(path, format=Dsjson(slot=0))
    with pytest.raises(
        kh.UnknownArm, match=r"line 1 of .*: a must be at most 2, the number of the"
    ):
        Logged.of(path, format=Dsjson(arms=["A", "B"]))


def test_contexts_of_other_forms(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    numbers = {"_multi": [{"f": {"x": 1}}] * 3}
    beyond = {"_multi": [{"f": {"x": 1}}] * 2}  # there are three actions
    assert Logged.of(written(path, line(c=numbers), line(c=beyond))).observation is None
    assert Logged.of(written(path, line(c={"_multi": []}), line(c=None))).n_rounds == 2
    path.write_text(json.dumps(line()).replace("41", "1" + "0" * 400 + ".5"))
    with pytest.raises(
        kh.FileError, match=r"line 1 of .* is no line of dsjson: Number out of range"
    ):
        Logged.of(path)
