"""What the log proves: probabilities, the state at every version, and one's own writes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from keyhole.service import DecideRequest, NotYet, Service
from keyhole.service.packing import packed
from keyhole.service.store import Store
from tests.service.history import check, replay

PLAIN: dict[str, Any] = {"arms": ["A", "B"], "dim": 2}


def lived(folder: Path, n: int = 40) -> dict[int, bytes]:
    """Decide, reward and forget over two restarts; return the state at every version seen."""
    rng, states = np.random.default_rng(1), {}
    for life in range(3):
        with Service(folder) as service:
            loop = service.create("home", PLAIN)
            for k in range(n):
                name = f"{life}-{k}"
                y = rng.normal(size=2).tolist()
                service.decide("home", DecideRequest(context=y, event_id=name))
                states[loop.version] = loop.model()
                if k % 3:
                    loop.reward(name, float(rng.normal()))
                if k % 7 == 4:
                    loop.forget(name)
                states[loop.version] = loop.model()
    return states


def test_the_logged_probability_is_exact_at_its_version(tmp_path: Path) -> None:
    """P4: by the closed form for two arms, from sums that are added up here."""
    lived(tmp_path)
    store = Store(str(tmp_path / "keyhole.db"))
    listed = [json.loads(body) for _, _, body in store.rows(1)]
    store.close()
    decided = {row["event"]: row for row in listed if row["kind"] == "decision"}
    assert len(decided) == 120
    for row in decided.values():
        learned = {}
        for one in listed[: row["version"]]:
            if one["kind"] == "reward":
                learned[one["event"]] = one["value"]
            if one["kind"] == "forget":
                learned.pop(one["event"], None)
        precision = {arm: np.eye(2) for arm in "AB"}
        moment = {arm: np.zeros(2) for arm in "AB"}
        for event, value in learned.items():
            arm, y = decided[event]["arm"], np.array(decided[event]["y"][0])
            precision[arm] += np.outer(y, y)
            moment[arm] += value * y
        y = np.array(row["y"][0])
        mean = [y @ np.linalg.solve(precision[arm], moment[arm]) for arm in "AB"]
        width = [np.sqrt(y @ np.linalg.solve(precision[arm], y)) for arm in "AB"]
        np.testing.assert_allclose(row["mean"], mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(row["width"], width, rtol=1e-9)
        spread = np.multiply(width, row["dispersion"])
        first = norm.cdf((mean[0] - mean[1]) / np.hypot(*spread))
        wanted = first if row["arm"] == "A" else 1.0 - first
        assert row["probability"] == pytest.approx(wanted, abs=1e-9)


def test_the_state_at_a_version_follows_from_the_rows_up_to_it(tmp_path: Path) -> None:
    """P5: to the bit, at every version, over restarts."""
    states = lived(tmp_path, 15)
    store = Store(str(tmp_path / "keyhole.db"))
    [(key, run)] = store.query("SELECT draw_key, run FROM loop")
    rows = store.rows
    for version in sorted(states):
        store.rows = lambda loop, after=0, end=version: rows(loop, after, end)  # type: ignore[method-assign, assignment]
        assert packed(replay(store, 1, "home", (key, run), verifies=True)) == states[version]
    store.close()


def test_a_row_of_levels_has_those_that_are_new(tmp_path: Path) -> None:
    """Each once: with all of them in every row a log would grow by the square of their number."""
    features = {"numbers": ["x"], "categories": {"c": "grow", "d": "grow"}}
    with Service(tmp_path) as service:
        loop = service.create("home", {"arms": ["A", "B"], "features": features})
        for k in range(60):
            context = {"x": float(k), "c": f"c{k % 20}", "d": f"d{k % 7}"}
            service.decide("home", DecideRequest(context=context, event_id=f"e{k}"))
            loop.reward(f"e{k}", float(k % 3))
        service.wait(loop.unit)
        listed = [json.loads(body) for _, kind, body in service.store.rows(1) if kind == "levels"]
        levels = [tuple(pair) for row in listed for pair in row["grown"]]
        assert len(levels) == len(set(levels)) == 27
        assert tuple(levels) == loop.bandit._learned.grown
        check(service.path, service=service)


def test_a_decision_includes_ones_own_writes(tmp_path: Path) -> None:
    """P7: a version that was answered is never fallen back behind."""
    with Service(tmp_path) as service:
        loop = service.create("home", PLAIN)
        service.decide("home", DecideRequest(context=[1.0, 0.0], event_id="e1"))
        mine = loop.reward("e1", 1.0).version
        service.wait(loop.unit)
        for again in (False, True):
            if again:
                service.recover()
            request = DecideRequest(context=[1.0, 0.0], at_least=mine)
            assert service.decide("home", request).answer.version >= mine
            ahead = service.loop("home").version + 1
            before = service.loop("home").version
            request = DecideRequest(context=[1.0, 0.0], at_least=ahead, event_id=f"late{again}")
            with pytest.raises(NotYet, match=f"at most {before}, got {ahead}"):
                service.decide("home", request)
            assert service.loop("home").version == before
