"""The table of warfarin doses as numbers: one row of 20 features for each patient, and the dose.

Categories become indicator columns. An entry that a clinic did not record is NaN in all columns
that are made of it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from keyhole.core import Floats

DOSE, CLINIC = "Therapeutic Dose of Warfarin", "Project Site"
# Milligrams a week: below the first is a low dose, above the second a high one.
LOW, HIGH = 21.0, 49.0
CLASSES = ("low", "medium", "high")
# Columns of numbers, and of 0 and 1, that are taken as they are.
PLAIN = (
    "Height (cm)",
    "Weight (kg)",
    "Diabetes",
    "Congestive Heart Failure and/or Cardiomyopathy",
    "Valve Replacement",
    "Aspirin",
    "Amiodarone (Cordarone)",
    "Current Smoker",
)
# Drugs that make the liver break warfarin down faster.
INDUCERS = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
# Categories with a column each; the categories left out are the reference.
CATEGORIES = {
    "Gender": ("male",),
    "Race (OMB)": ("Asian", "Black or African American"),
    "CYP2C9 consensus": ("*1/*2", "*1/*3", "*2/*2", "*2/*3", "*3/*3"),
    "VKORC1     -1639 consensus": ("A/G", "A/A"),
}
UNKNOWN = "Unknown"


def encode(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the features of each patient as numbers, NaN where the clinic did not record them."""
    columns = {"Age (decade)": frame["Age"].str.extract(r"^(\d)", expand=False).astype(float)}
    columns |= {name: frame[name].astype(float) for name in PLAIN}
    # One inducer is enough for a 1. A 0 needs all of them recorded.
    columns["Enzyme inducer"] = (
        frame[list(INDUCERS)]
        .astype(float)
        .max(axis=1)
        .where(lambda most: (most == 1.0) | frame[list(INDUCERS)].notna().all(axis=1))
    )
    for name, categories in CATEGORIES.items():
        given = frame[name].where(frame[name] != UNKNOWN)
        for category in categories:
            columns[f"{name.split()[0]} {category}"] = (
                (given == category).astype(float).where(given.notna())
            )
    return pd.DataFrame(columns)


def dose_class(dose: pd.Series) -> pd.Series:
    """Return the class of each dose: 0 below 21 mg a week, 2 above 49, and 1 between."""
    return (dose >= LOW).astype(int) + (dose > HIGH).astype(int)


def cohort(frame: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return features and 0/1 rewards of the patients whose stable dose is known.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table as published.

    Returns
    -------
    features : ndarray of shape (patients, 20)
        The features, with missing entries.
    rewards : ndarray of shape (patients, 3)
        1 for the class of the dose, 0 for the others.
    """
    known = frame[frame[DOSE].notna()]
    return encode(known).to_numpy(), np.eye(len(CLASSES))[dose_class(known[DOSE]).to_numpy()]
