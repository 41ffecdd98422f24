"""The table of warfarin doses: the recipe of a patient's record, and the class of the dose.

A field that a clinic did not record is missing in all columns that are made of it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from keyhole.core import Features, Floats

DOSE, CLINIC = "Therapeutic Dose of Warfarin", "Project Site"
# Milligrams a week: below the first is a low dose, above the second a high one.
LOW, HIGH = 21.0, 49.0
CLASSES = ("low", "medium", "high")
# Drugs that make the liver break warfarin down faster.
INDUCERS = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
# Two fields are computed: the decade of "60 - 69" is 6, and any of the inducers counts.
DECADE, INDUCER = "Age (decade)", "Enzyme inducer"
# Levels that are not listed are missing: an unknown race, and CYP2C9 genotypes of a few patients.
LEVELS = {
    "Gender": ("female", "male"),
    "Race (OMB)": ("White", "Asian", "Black or African American"),
    "CYP2C9 consensus": ("*1/*1", "*1/*2", "*1/*3", "*2/*2", "*2/*3", "*3/*3"),
    "VKORC1     -1639 consensus": ("G/G", "A/G", "A/A"),
}

RECORD = Features(
    numbers=[DECADE, "Height (cm)", "Weight (kg)"],
    booleans=[
        "Diabetes",
        "Congestive Heart Failure and/or Cardiomyopathy",
        "Valve Replacement",
        "Aspirin",
        "Amiodarone (Cordarone)",
        "Current Smoker",
        INDUCER,
    ],
    categories=LEVELS,
)
DIM = RECORD.start().dim


def computed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the two computed fields."""
    decade = frame["Age"].str.extract(r"^(\d)", expand=False).astype(float)
    taken = frame[list(INDUCERS)].astype(float)
    # One inducer is enough for a 1. A 0 needs all of them recorded.
    inducer = taken.max(axis=1).where(taken.eq(1.0).any(axis=1) | taken.notna().all(axis=1))
    return frame.assign(**{DECADE: decade, INDUCER: inducer})


def encode(frame: pd.DataFrame) -> Floats:
    """Return the records as numbers, (patients, columns), NaN where a field is missing."""
    return RECORD.start().encode_frame(computed(frame)[list(RECORD.fields)])[0]


def dose_class(dose: pd.Series) -> pd.Series:
    """Return the class of each dose: 0 below 21 mg a week, 2 above 49, and 1 between."""
    return (dose >= LOW).astype(int) + (dose > HIGH).astype(int)


def cohort(frame: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return records and 0/1 rewards of the patients whose stable dose is known.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table as published.

    Returns
    -------
    records : ndarray of shape (patients, columns)
        The records as numbers, with missing entries.
    rewards : ndarray of shape (patients, 3)
        1 for the class of the dose, 0 for the others.
    """
    known = frame[frame[DOSE].notna()]
    return encode(known), np.eye(len(CLASSES))[dose_class(known[DOSE]).to_numpy()]
