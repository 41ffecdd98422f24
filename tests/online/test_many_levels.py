"""Categories of many levels: spare columns change nothing, and growing stays cheap."""

import json
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from keyhole.core.observers.encoder import FEW_LEVELS
from tests.named import OPTIONS, close, ids, made

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")

CITIES = [f"city {k}" for k in range(45)]
CROSS = [("age", "city"), ("city", "plan")]


def recipe(city: Any, plan: Any, **options: Any) -> kh.Features:
    categories = {"city": city, "plan": plan}
    return kh.Features(numbers=["age"], categories=categories, cross=CROSS, **options)


def visitors(n: int, missing: float, first: int = 0, seed: int = 1) -> list[dict[str, Any]]:
    """Visitors whose cities come one after the other, from `first` on."""
    rng, listed = np.random.default_rng(seed), []
    for t in range(n):
        one = {
            "age": float(rng.normal(40.0, 12.0)),
            "city": CITIES[first + int(rng.integers(0, 1 + min(t, len(CITIES) - 1 - first)))],
            "plan": ["free", "pro"][int(rng.integers(0, 2))],
        }
        listed.append({name: one[name] for name in one if rng.random() >= missing})
    return listed


def taught(bandit: kh.Bandit, told: list[dict[str, Any]], seed: int = 9, delay: int = 7) -> None:
    """Learn rewards of each arm in turn, `delay` visitors late and through JSON."""
    queue, noise = [], np.random.default_rng(seed).standard_normal(len(told))
    for t, record in enumerate(told):
        chosen = bandit.choose(record).instead("AB"[t % 2])
        carried = kh.Decision.from_dict(json.loads(json.dumps(chosen.to_dict())))
        city = int(record.get("city", "city 20").split()[-1])
        queue.append((carried, 5.0 + 0.1 * city * (t % 2) + float(noise[t])))
        if len(queue) > delay:
            bandit.learn(*queue.pop(0))
    for decision, reward in queue:
        bandit.learn(decision, reward)


def assert_like(bandit: kh.Bandit, other: kh.Bandit) -> None:
    """The same sums in the columns that have a name, and nothing in those that wait for one."""
    mine, theirs = bandit._observer, other._observer
    intercept = mine.intercept
    names, wanted = (x.layout.design_names(intercept=intercept) for x in (mine, theirs))
    places = [names.index(name) for name in wanted]
    spare = [j for j, name in enumerate(names) if not name]
    assert sorted([*places, *spare]) == list(range(len(names)))
    a, b = bandit.posterior, other.posterior
    close(a.precision[np.ix_(range(2), places, places)], b.precision, 1e-9)
    close(a.covariance[np.ix_(range(2), places, places)], b.covariance, 1e-7)
    close(a.moment[:, places], b.moment, 1e-9)
    close(a.mean[:, places], b.mean, 1e-6)
    close(a.state.residual, b.state.residual, 1e-6)
    np.testing.assert_array_equal(a.precision[0][spare][:, spare], np.eye(len(spare)))
    assert (a.precision[:, spare][:, :, places] == 0.0).all()
    assert (a.state.trace >= np.einsum("kdd->k", a.covariance) * (1 - 1e-9)).all()
    assert (a.state.bound >= np.linalg.eigvalsh(a.covariance)[:, -1] * (1 - 1e-9)).all()
    seen = [(mine.layout.names or ()).index(name) for name in theirs.layout.names or ()]
    if mine.watches:
        for name in ("pairs", "total", "product"):
            one, two = getattr(mine.moments, name), getattr(theirs.moments, name)
            close(one[np.ix_(seen, seen)], two, 1e-9)
    if mine.standardize:
        np.testing.assert_array_equal(mine.sample.seen[seen], theirs.sample.seen)
    here, there = bandit.effects["A"].by_name, other.effects["A"].by_name
    assert set(here) == set(there)
    probe = {"age": 30.0, "city": CITIES[2], "plan": "pro"}
    for record in (probe, {"age": 50.0, "city": CITIES[3], "plan": "free"}):
        chances = bandit.choice_probabilities(record)
        assert chances == pytest.approx(other.choice_probabilities(record), abs=1e-6)


def listed_like(bandit: kh.Bandit, options: dict[str, Any]) -> kh.Bandit:
    """A bandit that has the same levels from the beginning, none of them spare."""
    grown: dict[str, list[str]] = {"city": [], "plan": []}
    for field, level in bandit._learned.grown or ():
        grown[field].append(level)
    return made(recipe(grown["city"], grown["plan"], **options))


@pytest.mark.parametrize("options", OPTIONS[::3], ids=ids)
def test_many_grown_levels_are_listed_ones(options: dict[str, Any]) -> None:
    """With crosses, of two growing categories too, missing fields, and files in between."""
    told = visitors(260, 0.0 if options["missing"] is None else 0.15)
    grown = made(recipe("grow", "grow", **options))
    taught(grown, told[:130])
    grown = kh.Bandit.load(grown.to_bytes(), seed=1)
    taught(grown, told[130:], seed=10)
    listed = listed_like(grown, options)
    taught(listed, told[:130])
    taught(listed, told[130:], seed=10)
    assert len(grown._learned.grown or ()) > FEW_LEVELS
    assert "" in (grown._observer.layout.names or ())  # or the comparison says nothing
    assert_like(grown, listed)


def test_a_spare_column_is_taken_and_no_array_moves() -> None:
    bandit = made(recipe("grow", "grow"))
    taught(bandit, visitors(300, 0.1))
    core, moments = bandit._learned.posterior.core, bandit._observer.moments
    names = bandit._observer.layout.names or ()
    place, dim = names.index(""), bandit.dim
    before = bandit.posterior
    decision = bandit.choose({"age": 40.0, "city": "a new one", "plan": "free"})
    assert bandit.dim == dim
    assert decision.observation[place] == 1.0
    assert (bandit._observer.layout.names or ())[place] == "city=a new one"
    assert bandit._learned.posterior.core is core
    assert bandit._observer.moments is moments
    np.testing.assert_array_equal(bandit.posterior.precision, before.precision)


def test_few_of_many_levels_move_the_sums() -> None:
    """A level that takes a spare column leaves all arrays where they are."""
    bandit = made(kh.Features(numbers=["age"], categories={"city": "grow"}))
    moves, core = 0, bandit._learned.posterior.core
    for k in range(400):
        bandit.learn(bandit.choose({"age": float(k % 50), "city": f"city {k}"}), float(k % 3))
        now = bandit._learned.posterior.core
        moves, core = moves + (now is not core), now
    assert len(bandit._learned.grown or ()) == 400
    # The first few are added one by one, and then an eighth at a time: 1.125^n = 400 / few.
    assert moves <= FEW_LEVELS + np.log(400 / FEW_LEVELS) / np.log(1.125) + 2


@pytest.mark.parametrize(
    "options",
    [
        {"intercept": intercept, "standardize": True, "missing": "predict"}
        for intercept in (True, False)
    ],
    ids=ids,
)
@pytest.mark.parametrize("common", [0, 12, 150])
def test_servers_that_grew_apart_are_merged(options: dict[str, Any], common: int) -> None:
    """As one bandit that lists all levels and has learned all of it, in the same units."""
    base = made(recipe("grow", "grow", **options, clip=None))
    told = [visitors(common, 0.1), visitors(170, 0.1, 5, seed=2), visitors(180, 0.1, 10, seed=3)]
    for part, prefix in ((told[1], "eastern "), (told[2], "western ")):
        for record in part[::4]:
            record["city"] = prefix + record.get("city", "city 1")
    taught(base, told[0])
    east, west = (kh.Bandit.load(base.to_bytes(), seed=k) for k in (1, 2))
    taught(east, told[1], seed=11)
    taught(west, told[2], seed=12)
    counts = [sum(each.counts.values()) for each in (base, east, west)]
    levels = [{level for _, level in each._learned.grown or ()} for each in (east, west)]
    assert levels[0] - levels[1]
    assert levels[1] - levels[0]
    east.merge(west, base=base)
    assert sum(east.counts.values()) == common + 170 + 180
    assert counts == [common if common > 40 else counts[0], common + 170, common + 180]
    # Sums of what was seen do not depend on who saw it.
    one = made(recipe("grow", "grow", **options, clip=None))
    one._learned.know(east._learned.encoder)  # type: ignore[arg-type]
    rows = [one._learned.encoder.encode(each)[0] for part in told for each in part]  # type: ignore[union-attr]
    one._observer.see(np.array(rows))
    for name in ("pairs", "total", "product"):
        mine, other = (
            getattr(x._observer.moments._from(np.zeros(x.dim)), name) for x in (east, one)
        )
        close(mine, other, 1e-9)
    again = kh.Bandit.load(east.to_bytes(), seed=3)
    probe = {"age": 33.0, "city": CITIES[20]}
    assert again.choice_probabilities(probe) == east.choice_probabilities(probe)
