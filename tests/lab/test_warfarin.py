"""The table of warfarin doses as numbers, and the study of it."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import keyhole as kh
from keyhole.lab.studies import STUDIES, Outcome, Settings, dose_records, simulated
from keyhole.lab.studies.population import population
from keyhole.lab.studies.running import tabled
from keyhole.lab.studies.warfarin import (
    ALWAYS,
    COMPLETE_ELSE,
    MEANS,
    PREDICTED,
    SENSORS,
    late_rates,
)

ABSENT = frozenset({"warfarin"})


def patient(**given: object) -> pd.DataFrame:
    """One patient with everything recorded, but for what is given."""
    usual: dict[str, object] = dict.fromkeys(dose_records.RECORD.booleans, 0.0)
    usual |= dict.fromkeys(dose_records.INDUCERS, 0.0)
    usual |= {name: levels[0] for name, levels in dose_records.LEVELS.items()}
    usual |= {"Age": "60 - 69", "Height (cm)": 170.0, "Weight (kg)": 80.0, dose_records.DOSE: 30.0}
    return pd.DataFrame([{**usual, **given}])


def encoded(**given: object) -> dict[str, float]:
    names = dose_records.RECORD.start().names
    return dict(zip(names, dose_records.encode(patient(**given))[0].tolist(), strict=True))


def test_a_patient_by_hand() -> None:
    row = encoded()
    assert len(row) == dose_records.DIM == 24
    assert (row["Age (decade)"], row["Height (cm)"], row["Weight (kg)"]) == (6.0, 170.0, 80.0)
    ones = {name for name, value in row.items() if value == 1.0}
    assert ones == {f"{name}={levels[0]}" for name, levels in dose_records.LEVELS.items()}
    assert sum(row.values()) == 6.0 + 170.0 + 80.0 + 4.0
    assert encoded(Age="90+")["Age (decade)"] == 9.0


@pytest.mark.parametrize("unknown", [None, "Unknown"])
def test_an_unknown_level_is_missing_in_all_columns_of_its_field(unknown: object) -> None:
    row = encoded(**{"Race (OMB)": unknown, "Gender": "male"})
    missing = {name for name, value in row.items() if np.isnan(value)}
    assert missing == {f"Race (OMB)={level}" for level in dose_records.LEVELS["Race (OMB)"]}
    assert (row["Gender=female"], row["Gender=male"]) == (0.0, 1.0)


def test_one_inducer_is_enough_and_none_needs_all_recorded() -> None:
    first, second, _ = dose_records.INDUCERS
    assert encoded(**{first: 1.0, second: np.nan})["Enzyme inducer"] == 1.0
    assert np.isnan(encoded(**{second: np.nan})["Enzyme inducer"])


def test_the_population_by_hand() -> None:
    """Three records of two entries: moments of those that have both, and one record in front."""
    sensor = population(np.array([[0.0, 0.0], [2.0, 4.0], [4.0, np.nan]]))
    assert sensor.mean.tolist() == [2.0, 2.0]
    # Variances 8/3 and 4, and the covariance 2 of the first two, times 3/4.
    np.testing.assert_allclose(sensor.context_covariance, [[8 / 3, 1.5], [1.5, 4.0]])
    belief = sensor.belief([4.0, np.nan])
    np.testing.assert_allclose(belief.mean, [4.0, 2.0 + 2.0 * 1.5 / (8 / 3)])
    left = np.diag([0.0, 4.0 - 1.5**2 / (8 / 3)])
    np.testing.assert_allclose(belief.covariance, left, atol=1e-12)


def test_columns_of_a_category_that_add_up_to_one_are_a_population() -> None:
    records = np.array([[1.0, 0.0, 5.0], [0.0, 1.0, 3.0], [1.0, 0.0, 4.0], [np.nan, np.nan, 4.0]])
    assert population(records).belief(records[3]).mean[:2].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("dose", "label"), [(20.9, 0), (21.0, 1), (49.0, 1), (49.1, 2)])
def test_dose_classes(dose: float, label: int) -> None:
    _, rewards = dose_records.cohort(patient(**{dose_records.DOSE: dose}))
    assert rewards.tolist() == [np.eye(3)[label].tolist()]


def test_patients_without_a_dose_are_left_out() -> None:
    frame = pd.concat([patient(), patient(**{dose_records.DOSE: np.nan})])
    assert len(dose_records.cohort(frame)[0]) == 1


def test_the_stand_in_is_a_table_of_the_same_form() -> None:
    frame = simulated.warfarin()
    pd.testing.assert_frame_equal(frame, simulated.warfarin())
    features, rewards = dose_records.cohort(frame)
    assert features.shape[1] == dose_records.DIM
    assert 0.2 < np.isnan(features).mean() < 0.45
    assert (rewards.mean(axis=0) > 0.05).all()
    # What is missing depends on the clinic: nearly all of a column, or nearly none.
    by_clinic = frame["Height (cm)"].isna().groupby(frame[dose_records.CLINIC]).mean()
    assert ((by_clinic > 0.9) | (by_clinic < 0.1)).all()


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    cell = STUDIES["warfarin"].cells(Settings(quick=True, absent=ABSENT))[0]
    runs = kh.simulate(
        cell.world, cell.policies, horizon=600, replications=3, seed=1, checkpoints=20
    )
    return tabled([cell], [runs])


def test_always_medium_is_right_as_often_as_doses_are_medium(table: xr.Dataset) -> None:
    cell = STUDIES["warfarin"].cells(Settings(absent=ABSENT))[0]
    share = float(cell.world.rewards[:, 1].mean())  # type: ignore[union-attr]
    found = float(late_rates(table)[ALWAYS].mean())
    assert found == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 600))
    # Incomplete records are given medium too, and few of the stand-in's are complete.
    assert float(late_rates(table)[COMPLETE_ELSE].mean()) == pytest.approx(found, abs=0.06)


@pytest.mark.parametrize(
    ("gain", "outcome"),
    [(0.05, Outcome.HOLDS), (0.0, Outcome.FAILS), (0.02, Outcome.UNDECIDED)],
)
def test_what_the_study_accepts_and_refuses(
    gain: float, outcome: Outcome, table: xr.Dataset
) -> None:
    """Rates that differ by a known amount, and by less than 0.001 at random."""
    changed = table.copy(deep=True)
    noise = np.random.default_rng(1).normal(0.0, 3e-4, changed.correct.isel(policy=0).shape)
    rates = {PREDICTED: 0.6 + gain, MEANS: 0.6}
    for name, rate in rates.items():
        changed.correct.loc[{"policy": name}] = rate + (noise if name == PREDICTED else 0.0)
    decided = {v.claim: v.outcome for v in STUDIES["warfarin"].verdicts(changed)}
    claim = "prediction of missing entries gives more right doses than means"
    assert next(o for c, o in decided.items() if c.endswith(claim)) == outcome


@pytest.mark.parametrize(
    ("early", "late", "outcomes"),
    [(0.05, 0.05, ["holds", "holds"]), (0.05, 0.0, ["does not hold", "holds"])],
)
def test_pooled_sensors_are_compared_over_both_thirds(
    early: float, late: float, outcomes: list[str], table: xr.Dataset
) -> None:
    """A gain over prediction that is there at first, and stays or is gone after a third."""
    changed = table.copy(deep=True)
    time = changed.time.values
    end = time[len(time) // 3 - 1]
    gained = early * np.minimum(time, end) + late * np.maximum(time - end, 0)
    noise = np.random.default_rng(1).normal(0.0, 3e-4, changed.sizes["replication"])
    changed.correct.loc[{"policy": PREDICTED}] = 0.6
    rates = changed.correct.sel(policy=SENSORS)
    changed.correct.loc[{"policy": SENSORS}] = (
        xr.zeros_like(rates)
        + 0.6
        + xr.DataArray(gained / time, dims="time", coords={"time": time})
        + xr.DataArray(noise, dims="replication")
    ).transpose(*rates.dims)
    found = {v.claim.split(": ")[-1]: v.outcome for v in STUDIES["warfarin"].verdicts(changed)}
    claim = "pooled sensors give more right doses than predicted"
    assert [found[claim], found[f"{claim} over the first third"]] == [Outcome(o) for o in outcomes]
