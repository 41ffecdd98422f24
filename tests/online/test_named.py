"""Choosing from records with names: arms with records, merging, and calls that are refused."""

import copy
import io
import json
import os
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import keyhole as kh
from tests.named import LEVELS, OPTIONS, assert_same, ids, made, recipe, records
from tests.online.test_unfinished import interrupted, is_whole
from tests.online.test_unfinished import rewards as n_rewards

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
PLAIN: dict[str, Any] = {"intercept": False, "standardize": False, "missing": "zero"}
ARMS = kh.Features(numbers=["price"], categories={"brand": "grow"})
RECORDS: dict[str, dict[str, Any]] = {
    "A": {"price": 1.0, "brand": "x"},
    "B": {"price": 2.0, "brand": "y"},
}


def play(bandit: kh.Bandit, told: list[dict[str, Any]]) -> None:
    """Each arm in turn, with rewards that depend on the round alone."""
    for t, record in enumerate(told):
        taken = bandit.choose(record).instead("AB"[t % 2])
        bandit.learn(taken, float(t % 7) + record.get("spent", 0.0))


# -- merging --------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["zero", "drop"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("based", [False, True])
def test_servers_that_grew_apart_are_merged(missing: Any, intercept: bool, based: bool) -> None:
    """To what one bandit knows that saw everything, matched by names."""
    options = {"intercept": intercept, "standardize": False, "missing": missing}
    told = records(120)
    base = made(recipe(**options))
    play(base, [{**one, "device": "tv"} for one in told[:40]])
    one, two = (kh.Bandit.load(base.to_bytes(), seed=k) for k in range(2))
    if not based:
        one, two = made(recipe(**options)), made(recipe(**options), seed=4)
    mine = [{**each, "device": ("mobile", "tv")[k % 2]} for k, each in enumerate(told[40:80])]
    theirs = [{**each, "device": ("tablet", "mobile")[k % 2]} for k, each in enumerate(told[80:])]
    play(one, mine)
    play(two, theirs)
    before = two.to_bytes()
    one.merge(two, base=base if based else None)
    assert two.to_bytes() == before
    whole = made(recipe(**options))
    if based:
        play(whole, [{**each, "device": "tv"} for each in told[:40]])
    play(whole, mine)
    play(whole, theirs)
    assert set(one._learned.grown or ()) == set(whole._learned.grown or ())
    if intercept:  # rewards may be counted from another zero
        shift = one._observer.offset - whole._observer.offset
        whole._learned.posterior.move_rewards(-shift)
        whole._observer.zero = one._observer.zero
    assert_same(one, whole)


def test_the_same_levels_in_another_order_are_merged() -> None:
    one, two = made(recipe(**PLAIN)), made(recipe(**PLAIN), seed=4)
    one.learn(one.choose({"device": "tv"}).instead("A"), 1.0)
    one.choose({"device": "mobile"})
    two.choose({"device": "mobile"})
    two.learn(two.choose({"device": "tv"}).instead("A"), 2.0)
    one.merge(two)
    names = one._observer.layout.names
    assert names is not None
    assert names[-2:] == ("device=tv", "device=mobile")
    assert one.posterior.moment[0, 3:5].tolist() == [3.0, 0.0]


def test_decisions_of_one_server_are_learned_by_another() -> None:
    one, two = made(recipe(**PLAIN, cross=())), made(recipe(**PLAIN, cross=()), seed=4)
    one.choose({"device": "tv"})
    decision = one.choose({"device": "mobile", "age": 2.0})
    two.choose({"device": "tablet"})
    two.learn(kh.Decision.from_dict(json.loads(json.dumps(decision.to_dict()))), 3.0)
    assert two._observer.layout.names == (
        *("age", "spent", "member"),
        *("device=tablet", "device=tv", "device=mobile"),
    )
    k = "AB".index(str(decision.arm))
    assert two.posterior.moment[k].tolist() == [6.0, 0.0, 0.0, 0.0, 0.0, 3.0]


# -- features of arms -----------------------------------------------------------------------------


def with_arms(sharing: str = "per-arm", arms: Any = RECORDS, **options: Any) -> kh.Bandit:
    features = kh.Features(
        numbers=["age"], arms=ARMS, cross=[("age", "arm.brand")], **{**PLAIN, **options}
    )
    return made(features, arms=arms, sharing=sharing)


@pytest.mark.parametrize("sharing", ["per-arm", "shared"])
def test_records_of_arms_are_kept(sharing: str) -> None:
    bandit = with_arms(sharing)
    assert bandit._learned.grown == (("arm.brand", "x"), ("arm.brand", "y"))
    decision = bandit.choose({"age": 3.0})
    own = RECORDS[str(decision.arm)]
    expected = [3.0, own["price"], float(own["brand"] == "x"), float(own["brand"] == "y")]
    assert decision.observation.tolist() == expected
    bandit.learn(decision, 1.0)
    again = kh.Bandit.load(bandit.to_bytes(), resume=True)
    for one in (again, pickle.loads(pickle.dumps(bandit)), copy.deepcopy(bandit)):
        assert one._learned.arm_records == RECORDS
        mine, theirs = (each.choice_probabilities({"age": 1.0}) for each in (one, bandit))
        assert mine == theirs
    first, second = again.choose({"age": 1.0}), bandit.choose({"age": 1.0})
    assert (first.arm, first.score) == (second.arm, second.score)


def test_the_rows_of_arms_are_those_given_by_hand() -> None:
    """The same choices by records at construction, by `among`, and by arrays."""
    kept, given, rows = (with_arms() for _ in range(3))
    for age in np.random.default_rng(1).standard_normal(300).tolist():
        context = [age, 1.0, 1.0, 0.0], [age, 2.0, 0.0, 1.0]
        made_by = (
            kept.choose({"age": age}),
            given.choose({"age": age}, among=RECORDS),
            rows.choose(np.array(context)),
        )
        assert len({one.arm for one in made_by}) == 1
        assert len({one.score for one in made_by}) == 1
        for bandit, decision in zip((kept, given, rows), made_by, strict=True):
            bandit.learn(decision, age if decision.arm == "A" else -age)
    assert_same(kept, given)
    assert_same(kept, rows)
    assert min(kept.counts.values()) > 50


def test_unknown_arms_come_with_a_shared_parameter() -> None:
    bandit = with_arms("shared")
    decision = bandit.choose({"age": 1.0}, among={"new": {"price": 4.0, "brand": "z"}})
    assert decision.arm == "new"
    bandit.learn(decision, 2.0)
    assert bandit.arms == ("A", "B")
    assert bandit.posterior.moment[0, :5].tolist() == [2.0, 8.0, 0.0, 0.0, 2.0]
    none = with_arms("shared", arms=())
    with pytest.raises(kh.InvalidValue, match="no arms of its own"):
        none.choose({"age": 1.0})
    none.learn(none.choose({"age": 1.0}, among=RECORDS), 1.0)
    with pytest.raises(kh.UnknownArm, match="new"):
        with_arms().choose({"age": 1.0}, among={"new": {"price": 1.0, "brand": "x"}})


def test_arms_come_and_go_with_their_records() -> None:
    bandit = with_arms()
    bandit.add_arms({"C": {"price": 5.0, "brand": "z"}})
    assert bandit.choose({"age": 1.0}, among=["C"]).observation.tolist() == [1, 5, 0, 0, 1]
    bandit.remove_arms(["A"])
    assert set(bandit._learned.arm_records) == {"B", "C"}
    assert {bandit.choose({"age": 1.0}).arm for _ in range(50)} == {"B", "C"}
    with pytest.raises(kh.InvalidValue, match=r"add_arms\(\{'D': \{'price': \.\.\., 'brand': "):
        bandit.add_arms(["D"])
    assert bandit.arms == ("B", "C")
    again = kh.Bandit.load(bandit.to_bytes())
    assert again.choose({"age": 1.0}, among=("C",)).observation.tolist() == [1, 5, 0, 0, 1]


def test_many_rounds_of_records_with_arms() -> None:
    rounds = [{"age": 1.0}, {"age": 2.0}, {}]
    for given in (rounds, pd.DataFrame(rounds)):
        bandit = with_arms()
        batch = bandit.choose_many(given)
        assert batch.observations[:, 0].tolist() == [1.0, 2.0, 0.0]
        prices = [RECORDS[str(arm)]["price"] for arm in batch.arms]
        assert batch.observations[:, 1].tolist() == prices
        bandit.learn_many(batch, [1.0, 2.0, 3.0])
    assert len(with_arms().choose_many([])) == 0
    among = with_arms().choose_many(rounds, among={"B": {"price": 9.0, "brand": "w"}})
    assert among.observations.tolist() == [[k, 9, 0, 0, 1] for k in (1, 2, 0)]


def test_records_of_numpy_values_are_saved_and_not_shared() -> None:
    record: dict[str, Any] = {"price": np.int64(3), "brand": np.str_("x")}
    bandit = with_arms(arms={"A": record, "B": pd.Series({"price": 2.0, "brand": None})})
    record["price"] = 100.0
    again = kh.Bandit.load(bandit.to_bytes())
    assert again._learned.arm_records == {"A": {"price": 3.0, "brand": "x"}, "B": {"price": 2.0}}


# -- refused --------------------------------------------------------------------------------------


def with_new(**other: Any) -> dict[str, Any]:
    return {"age": 1.0, "device": "new", **other}


def forged(bandit: kh.Bandit, **parts: Any) -> kh.Decision:
    """A decision made by hand from columns."""
    assert bandit.learner.features is not None
    return kh.Decision(**parts, recipe=bandit.learner.features.start().digest)


STRICT = {**PLAIN, "missing": None}
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "unknown field": (lambda b: b.choose(with_new(agee=1)), "agee"),
    "wrong type": (lambda b: b.choose({**with_new(), "age": "old"}), "age must be"),
    "wrong boolean": (lambda b: b.choose(with_new(member=7)), "member must be"),
    "wrong level": (lambda b: b.choose({"device": 3}), "device is a category"),
    "infinite": (lambda b: b.choose({**with_new(), "age": np.inf}), "age"),
    "None": (lambda b: b.choose(None), "a record must be a dict"),
    "NaN keys": (lambda b: b.choose({np.nan: 1.0, "device": "new"}), "field"),
    "unknown arm": (lambda b: b.choose(with_new(), among=["C"]), "no arm 'C'"),
    "text for arms": (lambda b: b.choose(with_new(), among="AB"), "list of names"),
    "number for arms": (lambda b: b.choose(with_new(), among=5), "list of names"),
    "records of arms": (lambda b: b.choose(with_new(), among={"A": {}}), "the features have none"),
    "many, unknown arm": (lambda b: b.choose_many([with_new()], among=["C"]), "no arm 'C'"),
    "many, wrong": (lambda b: b.choose_many([with_new(), {"age": "x"}]), "age in row 1"),
    "observe": (lambda b: b.observe([with_new(), {"age": "x"}]), "age in row 1"),
    "twice a column": (
        lambda b: b.observe(pd.DataFrame(np.ones((1, 2)), columns=["age", "age"])),
        "'age' twice",
    ),
    "other columns": (lambda b: b.choose(np.full(b.dim, 7.0)), "member is a column of 0 and 1"),
    "forged levels": (
        lambda b: b.learn(forged(b, arm="A", observation=[1.0], levels=[("device", "q")]), 1.0),
        "its levels make",
    ),
    "levels of no field": (
        lambda b: b.learn(forged(b, arm="A", observation=[1.0], levels=[("age", "q")]), 1.0),
        "growing category",
    ),
    "levels for no arm": (
        lambda b: b.learn(
            forged(b, arm="C", observation=np.ones(4), levels=[("device", "q")]), 1.0
        ),
        "no arm 'C'",
    ),
    "levels, many": (
        lambda b: b.learn_many(
            [
                forged(b, arm="A", observation=np.ones(4), levels=[("device", "q")]),
                forged(b, arm="A", observation=np.ones(3), levels=[("device", "r")]),
            ],
            [1.0, 2.0],
        ),
        "its levels make",
    ),
    "many of another length": (
        lambda b: b.learn_many(
            [forged(b, arm="A", observation=np.ones(2)) for _ in range(b.dim)], np.ones(b.dim)
        ),
        "numbers",
    ),
    "missing in explain": (
        lambda b: b.explain(forged(b, arm="A", observation=np.ones(3)), with_new(agee=1)),
        "agee",
    ),
    "records for add_arms": (lambda b: b.add_arms({"C": {"price": 1.0}}), "arms have records"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("options", [PLAIN, STRICT, {"missing": "predict"}], ids=str)
def test_a_refused_call_changes_nothing(name: str, options: dict[str, Any]) -> None:
    bandit = made(recipe(**options, cross=()))
    for one in records(60, missing=0.0):
        bandit.learn(bandit.choose(one), 1.0)
    call, message = REFUSED[name]
    before = bandit.to_bytes()
    with pytest.raises(kh.KeyholeError, match=message):
        call(bandit)
    assert bandit.to_bytes() == before


def test_a_missing_field_and_a_new_level_change_nothing() -> None:
    bandit = made(recipe(**STRICT, cross=()))
    bandit.choose({"age": 1.0, "spent": 1.0, "member": True, "device": "tv"})
    before = bandit.to_bytes()
    for call in (
        lambda: bandit.choose(with_new()),
        lambda: bandit.choose_many([with_new()]),
        lambda: bandit.observe([with_new()]),
    ):
        with pytest.raises(kh.InvalidValue, match=r"must be finite|missing"):
            call()
        assert bandit.to_bytes() == before


LIMIT = "keyhole.core.observers.encoder.MOST_LEVELS"  # 1,000, which take seconds


def test_a_level_beyond_the_limit_is_missing_and_warned_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LIMIT, 20)
    with pytest.raises(kh.InvalidValue, match="no column before a level"):
        made(kh.Features(categories={"c": "grow"}, **PLAIN), arms=["A"])
    features = kh.Features(categories={"c": "grow"}, intercept=True, standardize=False)
    bandit = made(features, arms=["A"])
    bandit.observe([{"c": str(k)} for k in range(20)])
    with pytest.warns(kh.KeyholeWarning, match=r"c has 20 levels, .* count as missing"):
        decision = bandit.choose({"c": "more"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bandit.learn(decision, 1.0)
        bandit.choose({"c": "still more"})
        bandit.choose_many([{"c": "7"}, {"c": "and more"}])
    assert bandit.dim == 20
    assert decision.predicted == tuple(range(20))
    assert decision.observation == pytest.approx(np.full(20, 0.05))
    assert bandit.choose({"c": "7"}).observation[7] == 1.0
    again = kh.Bandit.load(bandit.to_bytes(), seed=1)
    with pytest.warns(kh.KeyholeWarning, match="c has 20 levels"):
        assert again.choose({"c": "more"}).predicted == decision.predicted


def test_a_frame_of_too_many_levels_is_its_rows() -> None:
    features = recipe(cross=(), **PLAIN)
    told = [{"device": str(k), "age": 1.0, "spent": 1.0} for k in range(1_003)]
    rows, encoder = features.start().encode_frame(told)
    assert encoder.full == {"device"}
    single = features.start()
    for one in told:
        single = single.encode(one)[1]
    assert (single.grown, single.full, single.names) == (
        encoder.grown,
        encoder.full,
        encoder.names,
    )
    assert np.isnan(rows[1_000:, 3:]).all()
    np.testing.assert_array_equal(rows, [single.encode(one)[0] for one in told])
    assert encoder.encode(told[1_002])[1] is encoder
    with pytest.raises(kh.InvalidValue, match="device has 1,000 levels"):
        encoder.with_levels([("device", "more")])


def test_a_refused_call_with_a_level_beyond_the_limit_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LIMIT, 20)
    bandit = made(recipe(cross=(), **PLAIN))
    bandit.observe([{"device": str(k)} for k in range(20)])
    before, encoder = bandit.to_bytes(), bandit._learned.encoder
    for call in (
        lambda: bandit.choose({"device": "more"}, among=["Z"]),
        lambda: bandit.choose({"device": "more", "age": "x"}),
        lambda: bandit.observe([{"device": "more"}, {"age": "x"}]),
    ):
        with pytest.raises(kh.KeyholeError):
            call()
        assert bandit.to_bytes() == before
        assert bandit._learned.encoder is encoder


def test_crossed_columns_of_growing_categories_have_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """n levels of each make 2 n + n^2 columns: with a limit of 60, 6 of each are 48, not 63."""
    monkeypatch.setattr("keyhole.core.observers.encoder.MOST_COLUMNS", 60)
    features = kh.Features(categories={"a": "grow", "b": "grow"}, cross=[("a", "b")])
    bandit = made(features)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for k in range(12):
            bandit.learn(bandit.choose({"a": f"a{k}", "b": f"b{k}"}), 1.0)
    encoder = bandit._learned.encoder
    assert encoder is not None
    assert [len(levels) for levels in encoder.levels.values()] == [7, 6]
    assert bandit._observer.layout.dim + len(bandit._observer.layout.crosses) == 13 + 42
    messages = sorted(str(one.message) for one in found if "columns" in str(one.message))
    assert [one[:14] for one in messages] == ["a has 7 levels", "b has 6 levels"]
    assert "there are 55 of 60" in messages[0]
    assert sum(bandit.counts.values()) + sum(bandit.waiting.values()) == 12


def test_bad_records_of_arms_change_nothing() -> None:
    bandit = with_arms()
    before = bandit.to_bytes()
    wrong: list[tuple[Any, str]] = [
        ({"C": {"price": "x", "brand": "z"}}, "arm.price"),
        ({"C": {"price": 1.0, "brand": "z"}, "D": {"cost": 1.0}}, "cost"),
        ({"C": 5}, "a record must be a dict"),
        ({"A": {"price": 1.0, "brand": "z"}}, "'A' is there already"),
        ({1.5: {"price": 1.0, "brand": "z"}}, "an arm's name"),
    ]
    for records_, message in wrong:
        with pytest.raises(kh.InvalidValue, match=message):
            bandit.add_arms(records_)
        assert bandit.to_bytes() == before
    with pytest.raises(kh.InvalidValue, match="no record"):
        with_arms(arms=["A", "B"]).choose({"age": 1.0})
    with pytest.raises(kh.InvalidValue, match="arm's record"):
        bandit.choose({"age": 1.0}, among={"A": {"brand": "z", "cost": 1}})
    assert bandit.to_bytes() == before


@pytest.mark.parametrize("levels", [5, b"ab", "ab", [1], ["ab"], [("a",)], [("a", 1)]], ids=str)
def test_levels_that_are_no_pairs(levels: Any) -> None:
    with pytest.raises(kh.InvalidValue, match="levels must be pairs"):
        kh.Decision(arm="A", observation=[1.0], levels=levels)


def test_records_that_change_afterwards() -> None:
    bandit, record = made(recipe(**PLAIN)), {"age": 1.0, "device": "tv"}
    decision = bandit.choose(record)
    record["age"] = 1e9
    bandit.learn(decision, 1.0)
    assert bandit.posterior.precision.max() == 2.0


# -- shared, interrupted, forked ------------------------------------------------------------------


def test_threads_choose_new_levels_while_others_learn() -> None:
    bandit, wrong = made(recipe(missing="predict")), []

    def work(k: int) -> None:
        try:
            for t, record in enumerate(records(60, seed=k)):
                level = {"device": f"{k % 3}.{t // 10}"} if t % 10 == 0 else {}
                bandit.learn(bandit.choose({**record, **level}), float(t % 5))
        except BaseException as error:
            wrong.append(error)
            raise

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert n_rewards(bandit) == 480
    assert is_whole(bandit)
    assert len(bandit._learned.grown or ()) == 18 + 4


@pytest.mark.parametrize("options", [PLAIN, {"missing": "predict"}], ids=str)
def test_ctrl_c_at_every_line_of_a_choice_with_a_new_level(options: dict[str, Any]) -> None:
    before = made(recipe(**options))
    for one in records(45):
        before.learn(before.choose(one), 1.0)
    saved, line = before.to_bytes(), 0
    while True:
        bandit = kh.Bandit.load(saved, seed=1)
        if not interrupted(lambda b=bandit: b.choose({"device": "new", "age": 30.0}), line):  # type: ignore[misc]
            break
        assert len(bandit._learned.grown or ()) in (3, 4) or bandit._unfinished is not None
        decision = bandit.choose({"device": "new", "age": 30.0})
        bandit.learn(decision, 1.0)
        assert n_rewards(bandit) == 46, line
        assert is_whole(bandit)
        assert bandit.dim == len(bandit._observer.layout.names or ())
        line += 1
    assert line > 50


def test_forked_children_grow_apart() -> None:
    bandit = made(recipe(**PLAIN))
    bandit.choose({"device": "tv"})
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        bandit.learn(bandit.choose({"device": "mobile"}), 1.0)
        os.write(write, json.dumps(bandit._learned.grown).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert json.loads(os.read(read, 1000)) == [["device", "tv"], ["device", "mobile"]]
    assert bandit._learned.grown == (("device", "tv"),)
    os.close(read)
    os.close(write)


def test_copies_grow_apart() -> None:
    bandit = made(recipe(**PLAIN))
    bandit.choose({"device": "tv"})
    for twin in (copy.copy(bandit), copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))):
        twin.learn(twin.choose({"device": "mobile"}), 1.0)
        assert bandit._learned.grown == (("device", "tv"),)
        assert bandit.counts == {"A": 0, "B": 0}


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS, ids=ids)
def test_saved_and_loaded_it_goes_on_to_the_bit(options: dict[str, Any]) -> None:
    told = records(150, missing=0.0 if options["missing"] is None else 0.2)
    whole = made(recipe(**options))
    parts = made(recipe(**options))
    for t, one in enumerate(told):
        first, second = whole.choose(one), parts.choose(one)
        assert (first.arm, first.score) == (second.arm, second.score)
        whole.learn(first, float(t % 7))
        parts.learn(second, float(t % 7))
        if t % 17 == 0:
            file = io.BytesIO()
            parts.save(file)
            parts = kh.Bandit.load(file.getvalue(), resume=True)
    assert (whole.posterior.mean == parts.posterior.mean).all()


@pytest.mark.parametrize(
    "change",
    [
        {"levels": [["device", "tv"]]},
        {"levels": [["device", level] for level in (*LEVELS, "tv")]},
        {"levels": [["age", "x"]]},
        {"levels": 3},
        {"levels": [["device"]]},
        {"features": None},
        {"arm_records": [["A", {"price": 1.0}]]},
    ],
    ids=str,
)
def test_damaged_files_are_refused(change: dict[str, Any]) -> None:
    bandit = made(recipe(missing="predict"))
    play(bandit, records(70))
    file = io.BytesIO(bandit.to_bytes())
    with np.load(file) as arrays:
        kept = dict(arrays)
    header = {**json.loads(str(kept["header"])), **change}
    bad = io.BytesIO()
    np.savez(bad, **{**kept, "header": np.array(json.dumps(header))})
    with pytest.raises(kh.FileError):
        kh.Bandit.load(bad.getvalue())


def test_records_of_arms_are_not_ignored_beside_numbers() -> None:
    """An array has the columns of arms already; a bandit without features has none."""
    arms = kh.Features(numbers=["price"])
    learner = kh.Learner(kh.Greedy(), kh.Features(numbers=["age"], arms=arms))
    named = kh.Bandit(learner, arms={"A": {"price": 1.0}, "B": {"price": 2.0}}, seed=1)
    plain = kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=2, seed=1)
    for bandit in (named, plain):
        before = bandit.to_bytes()
        with pytest.raises(kh.InvalidValue, match="y is numbers"):
            bandit.choose(np.ones(2), among={"A": {"price": 3.0}})
        assert bandit.to_bytes() == before


# -- what a new user tries -------------------------------------------------------------------------


def test_features_of_arms_alone_with_a_shared_parameter() -> None:
    """As a plain bandit does that is given the rows of the arms."""
    options: dict[str, Any] = {"intercept": False, "standardize": False, "missing": None}
    features = kh.Features(arms=kh.Features(numbers=["price", "size"]), **options)
    arms: dict[str | int, Any] = {
        "A": {"price": 1.0, "size": 2.0},
        "B": {"price": 3.0, "size": -1.0},
    }
    named = made(features, arms=arms, sharing="shared")
    rows = np.array([[1.0, 2.0], [3.0, -1.0]])
    plain = kh.Bandit(kh.ThompsonSampling(v=1.0, sharing="shared"), arms=["A", "B"], dim=2, seed=3)
    for t in range(50):
        one, two = named.choose({}), plain.choose(rows)
        assert (one.arm, one.score, one.probability) == (two.arm, two.score, two.probability)
        named.learn(one, float(t % 3))
        plain.learn(two, float(t % 3))
    decision = named.choose({}, among={"new": {"price": 9.0, "size": 1.0}, **arms})
    assert named.explain(decision, {}, among={"new": {"price": 9.0, "size": 1.0}, **arms}).terms
    assert set(named.effects["A"].names or ()) == {"arm.price", "arm.size"}
    assert kh.Bandit.load(named.to_bytes(), seed=1).choose({}).arm in arms


def test_a_list_of_named_tuples_is_a_frame() -> None:
    frame = pd.DataFrame(records(20, missing=0.0))
    listed = list(frame.itertuples(index=False, name="Visitor"))
    one, two = made(recipe()), made(recipe())
    first, second = one.choose_many(listed), two.choose_many(frame)
    np.testing.assert_array_equal(first.observations, second.observations)
    assert kh.Features.from_frame(listed) == kh.Features.from_frame(frame)
    for odd in ((1.0, 2.0, True, "tv"), 3):
        with pytest.raises(kh.InvalidValue, match=r"a frame must be .* got list with .* in row 20"):
            one.choose_many([*listed, odd])


class Own:
    """A learner that always takes the first arm."""

    def start(self, *_: Any) -> None:
        pass

    def choose(self, *_: Any) -> int:
        return 0

    def learn(self, *_: Any) -> None:
        pass


def test_errors_give_advice_that_helps() -> None:
    bandit = made(kh.Features(numbers=["a"], categories={"c": ["x"]}))
    for record, message in (
        ({"A": 1.0}, r"got 'A'. Did you mean a\?"),
        ({"c": b"x"}, r"got b'x' \(bytes\); decode it, .decode\(\)$"),
        ({"c": 3}, r"convert it with str\(\)$"),
    ):
        with pytest.raises(kh.InvalidValue, match=message):
            bandit.choose(record)
    decision = bandit.choose({"a": 1.0})
    for one in (bandit, kh.Bandit(kh.Greedy(), arms=["A"], dim=2, seed=1)):
        with pytest.raises(kh.InvalidValue, match="learn_context needs a SensorLearner, got"):
            one.learn_context(decision, [1.0])
    own = kh.Bandit(Own(), arms=["A"], dim=2, seed=1)
    with pytest.raises(kh.InvalidValue, match="learn_context needs a SensorLearner, got"):
        own.learn_context(own.choose([1.0, 2.0]), [1.0])
    with pytest.raises(kh.FileError) as found:
        kh.Bandit.load(bandit.to_bytes(), features=kh.Features(numbers=["b"]))
    assert "\n" not in str(found.value)
    assert "Features(numbers=['b'])" in str(found.value)
