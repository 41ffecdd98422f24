"""Layouts of columns: where they are in a wider one, and which are levels of a category."""

import numpy as np
import pytest

import keyhole as kh
from keyhole.core import Encoder, Layout, Moments, widened
from keyhole.core.observers.observer import Observer
from keyhole.core.observers.units import Sample, Units

RECIPE = kh.Features(
    numbers=["x"],
    booleans=["b"],
    categories={"c": "grow", "d": ["p"]},
    cross=[("x", "c"), ("x", "x")],
)


def layout(*levels: str) -> Layout:
    return Layout.of(Encoder(RECIPE, tuple(("c", level) for level in levels)))


def test_places_by_hand() -> None:
    none, one, two = layout(), layout("u"), layout("u", "v")
    assert none.names == ("x", "b", "d=p")
    assert two.names == ("x", "b", "d=p", "c=u", "c=v")
    assert (none.unseen, one.unseen) == (("c",), ())
    assert none.places_in(two).tolist() == [0, 1, 2]
    assert one.siblings_of(two).tolist() == [0, 1, 2, 3, 3]
    assert none.siblings_of(two).tolist() == [0, 1, 2, -1, -1]
    assert two.design_names(intercept=True)[0] == "constant"
    assert two.cross_names == ("x:x", "x:c=u", "x:c=v")
    assert one.design_places_in(two, intercept=True).tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert two.design_fields(intercept=False)[-3:] == ("x:x", "x:c", "x:c")


def test_first_levels_by_hand() -> None:
    """Of every category, also of one with a single level; a boolean is none."""
    assert layout("u", "v").is_level.tolist() == [False, False, True, True, True]
    assert layout("u", "v").baseline().tolist() == [2, 3]
    assert layout().baseline().tolist() == [2]
    assert Layout.plain(3).baseline().tolist() == []
    hashed = Layout.of(kh.Features(categories={"h": 2}).start())
    assert hashed.baseline().tolist() == [0]


def test_another_order_of_levels() -> None:
    one, other = layout("u", "v"), layout("v", "u")
    assert one.places_in(other).tolist() == [0, 1, 2, 4, 3]
    assert one.siblings_of(other).tolist() == [0, 1, 2, 4, 3]
    row = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    moved = widened(row, one.places_in(other), one.siblings_of(other))
    assert moved.tolist() == [1.0, 0.0, 1.0, 0.0, 1.0]


def test_widened_rows_by_hand() -> None:
    """0 where the category was seen, missing where it was not."""
    one, two = layout("u"), layout("u", "v")
    places, siblings = one.places_in(two), one.siblings_of(two)
    seen = widened(np.array([2.0, 1.0, 1.0, 1.0]), places, siblings)
    assert seen.tolist() == [2.0, 1.0, 1.0, 1.0, 0.0]
    unseen = widened(np.array([2.0, 1.0, 1.0, np.nan]), places, siblings)
    np.testing.assert_array_equal(unseen, [2.0, 1.0, 1.0, np.nan, np.nan])


@pytest.mark.parametrize("levels", [(), ("u",)])
def test_sums_and_samples_are_those_of_the_wider_rows(levels: tuple[str, ...]) -> None:
    old, new = layout(*levels), layout("u", "v", "w")
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((200, old.dim))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    places, siblings = old.places_in(new), old.siblings_of(new)
    wide = np.array([widened(row, places, siblings) for row in rows])
    for kind in (Moments, Sample):
        narrow, expected = kind.empty(old.dim), kind.empty(new.dim)
        narrow.add(rows)
        expected.add(wide)
        for mine, theirs in zip(narrow.spread(places, siblings), expected, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_a_change_of_units_is_exact_for_crosses() -> None:
    """M design in the old units = design in the new ones, row by row."""
    rng = np.random.default_rng(2)
    at = layout("u", "v")
    for intercept in (False, True):
        made = []
        for _ in range(2):
            observer = Observer(at.dim, intercept=intercept, standardize=True, clip=None, layout=at)
            units = Units(rng.standard_normal(at.dim), rng.uniform(0.5, 3.0, at.dim))
            made.append(observer.with_units(observer._indicators(units)))
        rows = rng.standard_normal((50, at.dim))
        change = made[1].from_units_of(made[0])
        np.testing.assert_allclose(made[0].design(rows) @ change.T, made[1].design(rows))


def test_a_posterior_in_more_coordinates_is_that_of_zeros_there() -> None:
    rng = np.random.default_rng(3)
    y, rewards = rng.standard_normal((60, 3)), rng.standard_normal(60)
    narrow, wide = (kh.Posterior(n_parameters=2, dim=d, prior_precision=0.5) for d in (3, 5))
    parameters = rng.integers(0, 2, 60)
    places = np.array([4, 0, 2])
    spread = np.zeros((60, 5))
    spread[:, places] = y
    narrow.learn_many(parameters, y, rewards)
    wide.learn_many(parameters, spread, rewards)
    narrow.spread(5, places)
    for name, array in narrow.state._asdict().items():
        if name not in ("matrices", "bound", "staleness"):
            np.testing.assert_allclose(array, getattr(wide.state, name), atol=1e-12, err_msg=name)
    np.testing.assert_allclose(narrow.precision, wide.precision, atol=1e-12)
    np.testing.assert_allclose(narrow.covariance, wide.covariance, atol=1e-12)
