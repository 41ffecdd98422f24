"""The table of warfarin doses as numbers, and the study of it."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import keyhole as kh
from keyhole.lab.studies import STUDIES, Outcome, Settings, doses, simulated
from keyhole.lab.studies.running import tabled
from keyhole.lab.studies.warfarin import (
    ALWAYS,
    COMPLETE_ELSE,
    MEANS,
    PREDICTED,
    late_rates,
)

ABSENT = frozenset({"warfarin"})


def patient(**given: object) -> pd.DataFrame:
    """One patient with everything recorded, but for what is given."""
    usual: dict[str, object] = dict.fromkeys((*doses.PLAIN, *doses.INDUCERS), 0.0)
    usual |= {"Age": "60 - 69", "Gender": "female", "Race (OMB)": "White", doses.DOSE: 30.0}
    usual |= {"CYP2C9 consensus": "*1/*1", "VKORC1     -1639 consensus": "G/G"}
    return pd.DataFrame([{**usual, **given}])


def encoded(**given: object) -> dict[str, float]:
    row = doses.encode(patient(**given)).iloc[0]
    return {str(name): float(value) for name, value in row.items()}


def test_the_reference_patient_by_hand() -> None:
    row = encoded()
    assert len(row) == 20
    assert row.pop("Age (decade)") == 6.0
    assert set(row.values()) == {0.0}
    assert encoded(Age="90+")["Age (decade)"] == 9.0


def test_a_category_is_an_indicator_and_a_missing_one_is_missing() -> None:
    row = encoded(**{"VKORC1     -1639 consensus": "A/A", "Gender": "male"})
    assert (row["VKORC1 A/G"], row["VKORC1 A/A"], row["Gender male"]) == (0.0, 1.0, 1.0)
    for unknown in (None, "Unknown"):
        row = encoded(**{"Race (OMB)": unknown})
        assert np.isnan([row["Race Asian"], row["Race Black or African American"]]).all()


def test_one_inducer_is_enough_and_none_needs_all_recorded() -> None:
    first, second, _ = doses.INDUCERS
    assert encoded(**{first: 1.0, second: np.nan})["Enzyme inducer"] == 1.0
    assert np.isnan(encoded(**{second: np.nan})["Enzyme inducer"])


@pytest.mark.parametrize(("dose", "label"), [(20.9, 0), (21.0, 1), (49.0, 1), (49.1, 2)])
def test_dose_classes(dose: float, label: int) -> None:
    _, rewards = doses.cohort(patient(**{doses.DOSE: dose}))
    assert rewards.tolist() == [np.eye(3)[label].tolist()]


def test_patients_without_a_dose_are_left_out() -> None:
    frame = pd.concat([patient(), patient(**{doses.DOSE: np.nan})])
    assert len(doses.cohort(frame)[0]) == 1


def test_the_stand_in_is_a_table_of_the_same_form() -> None:
    frame = simulated.warfarin()
    pd.testing.assert_frame_equal(frame, simulated.warfarin())
    features, rewards = doses.cohort(frame)
    assert features.shape[1] == 20
    assert 0.2 < np.isnan(features).mean() < 0.45
    assert (rewards.mean(axis=0) > 0.05).all()
    # What is missing depends on the clinic: nearly all of a column, or nearly none.
    by_clinic = frame["Height (cm)"].isna().groupby(frame[doses.CLINIC]).mean()
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
