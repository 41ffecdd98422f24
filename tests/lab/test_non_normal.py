"""The verdicts of the study `non-normal`, on tables of known slopes and errors."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from keyhole.lab.studies import STUDIES, Outcome, Settings, non_normal
from keyhole.lab.studies.non_normal import CONSTANT, DISTRIBUTIONS, RATES
from keyhole.lab.studies.study import THOMPSON
from keyhole.theory import Quantity

FLOORS = {"normal": 0.0, "rademacher": 0.04, "mixture": 0.01, "uniform": 0.008}
COST, ERROR = 0.03, 0.1


@pytest.fixture(autouse=True)
def predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions that take no time."""
    monkeypatch.setattr(non_normal, "floor", lambda name: Quantity(FLOORS[name], 1e-5, "", ""))
    monkeypatch.setattr(non_normal, "cost", lambda *_: COST)
    errors = SimpleNamespace(errors=np.full(2, ERROR))
    monkeypatch.setattr(non_normal, "cost_at", lambda *_: errors)


def table(*, floor: float = 1.0, cost: float = 1.0, error: float = 0.9, power: float = 0.0) -> Any:
    """Return curves with these multiples of the predictions, and a little scatter."""
    rng, time = np.random.default_rng(1), np.linspace(0, 10_000, 101)[1:]
    policies = [THOMPSON, *RATES]
    shape = (len(DISTRIBUTIONS), len(policies), 8, len(time))
    slopes = np.array([[floor * FLOORS[one], cost * COST, cost * COST] for one in DISTRIBUTIONS])
    slopes[:, 0] += 0.0005  # a logarithm's part, which all worlds have
    scatter = 1.0 + 0.01 * rng.standard_normal((*shape[:3], 1))
    regret = slopes[:, :, None, None] * scatter * time
    level = np.array([0.5, error * ERROR, error * ERROR])[:, None, None]
    errors = level * scatter * np.where(np.arange(3)[:, None, None] == 0, (time / 1e4) ** power, 1)
    dims = ("cell", "policy", "replication", "time")
    return xr.Dataset(
        {
            "regret": (dims, regret),
            "latent_regret": (dims, regret),
            "error": ((*dims, "arm"), np.repeat(errors[..., None], 2, axis=-1)),
        },
        coords={"distribution": ("cell", list(DISTRIBUTIONS)), "policy": policies, "time": time},
    )


def outcomes(**settings: float) -> list[Outcome]:
    return [verdict.outcome for verdict in STUDIES["non-normal"].verdicts(table(**settings))]


def test_predictions_that_are_right_hold() -> None:
    assert set(outcomes()) == {Outcome.HOLDS}


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"floor": 1.5}, 0),
        ({"floor": 0.5}, 0),
        ({"error": 1.6}, 2),
        ({"power": -0.5}, 2),
        ({"cost": 1.5}, 3),
        ({"cost": 0.5}, 4),
        ({"cost": 2.0}, 5),  # the cure was predicted to be cheaper than the floor
    ],
)
def test_predictions_that_are_wrong_are_refused(settings: dict[str, float], place: int) -> None:
    assert outcomes(**settings)[place] == Outcome.FAILS


def test_the_cells() -> None:
    cells = STUDIES["non-normal"].cells(Settings())
    assert [cell.where["distribution"] for cell in cells] == list(DISTRIBUTIONS)
    assert {cell.horizon for cell in cells} == {150_000}
    assert STUDIES["non-normal"].cells(Settings(quick=True))[0].horizon == 15_000
    assert CONSTANT in cells[0].policies
