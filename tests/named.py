"""Records with names, the recipes for them, and bandits that choose by them."""

import itertools
from typing import Any

import numpy as np

import keyhole as kh

FILLS = ("predict", "mean", "zero", "drop", None)
OPTIONS: list[dict[str, Any]] = [
    {"intercept": intercept, "standardize": standardize, "missing": missing}
    for intercept, standardize, missing in itertools.product((False, True), (False, True), FILLS)
]
LEVELS = ("mobile", "desktop", "tablet", "tv")
CROSS = (("age", "device"), ("age", "age"))


def ids(options: dict[str, Any]) -> str:
    return "-".join(map(str, options.values()))


def records(n: int, missing: float = 0.2, seed: int = 1) -> list[dict[str, Any]]:
    """Records whose levels come one after the other; fields are missing at random."""
    rng, made = np.random.default_rng(seed), []
    for t in range(n):
        one: dict[str, Any] = {
            "age": float(rng.normal(40.0, 12.0)),
            "spent": float(rng.normal(0.0, 3.0)),
            "member": bool(rng.random() < 0.4),
            "device": LEVELS[int(rng.integers(0, 1 + min(t // 15, 3)))],
        }
        made.append({name: one[name] for name in one if rng.random() >= missing})
    return made


def recipe(device: Any = "grow", cross: Any = CROSS, **options: Any) -> kh.Features:
    return kh.Features(
        numbers=["age", "spent"],
        booleans=["member"],
        categories={"device": device},
        cross=list(cross),
        **options,
    )


def made(
    features: kh.Features | kh.Transformed, arms: Any = ("A", "B"), seed: int = 3, **policy: Any
) -> kh.Bandit:
    learner = kh.Learner(kh.ThompsonSampling(v=1.0, **policy), features)
    return kh.Bandit(learner, arms=arms, seed=seed)


def order(bandit: kh.Bandit, other: kh.Bandit) -> tuple[Any, Any]:
    """Where the columns of `other` are in `bandit`: of observations, and of designs."""
    mine, theirs = bandit._observer.layout, other._observer.layout
    return theirs.places_in(mine), theirs.design_places_in(mine, intercept=other.learner.intercept)


def assert_same(bandit: kh.Bandit, other: kh.Bandit, rtol: float = 1e-9) -> None:
    """The same sums, moments, samples, units and pending rewards, whatever the order of columns."""
    seen, design = order(bandit, other)
    assert bandit.dim == other.dim
    assert bandit.counts == other.counts
    assert bandit.waiting == other.waiting
    a, b = bandit.posterior, other.posterior
    close(a.precision[:, design[:, None], design], b.precision, rtol)
    close(a.moment[:, design], b.moment, rtol)
    close(a.mean[:, design], b.mean, 1e3 * rtol)
    close(a.state.residual, b.state.residual, 1e3 * rtol)
    mine, theirs = bandit._observer, other._observer
    assert mine.zero == theirs.zero
    if mine.watches:
        square = np.ix_(seen, seen)
        for name in ("pairs", "total", "product"):
            close(getattr(mine.moments, name)[square], getattr(theirs.moments, name), rtol)
        close(mine.moments.mean[seen], theirs.moments.mean, rtol)
    if mine.missing == "predict":
        close(mine.snapshot.pairs[np.ix_(seen, seen)], theirs.snapshot.pairs, rtol)
        close(mine.snapshot.mean[seen], theirs.snapshot.mean, rtol)
    if mine.standardize:
        np.testing.assert_array_equal(mine.sample.seen[seen], theirs.sample.seen)
        np.testing.assert_array_equal(mine.sample.stride[seen], theirs.sample.stride)
        for j, place in enumerate(seen.tolist()):
            np.testing.assert_array_equal(mine.sample.kept(place), theirs.sample.kept(j))
        assert (mine.units is None) == (theirs.units is None)
        if mine.units is not None and theirs.units is not None:
            close(mine.units.scale[seen], theirs.units.scale, rtol)
            close(mine.units.middle[seen], theirs.units.middle, rtol)
    pairs = zip(bandit._learned.provisional, other._learned.provisional, strict=True)
    for here, there in pairs:
        np.testing.assert_array_equal(here.observation[seen], there.observation)
        close(here.design[design], there.design, rtol)


def close(one: Any, other: Any, rtol: float) -> None:
    np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * max(1.0, np.abs(other).max()))
