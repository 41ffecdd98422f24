"""Simulated tables of the same form as those of the package index, their stand-ins.

They have the columns that the studies read, as many rows, arms drawn alike, and entries that are
missing by clinic. Nothing in them is about a patient or a shop, and nothing about either follows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from keyhole.lab.studies import dose_records

PATIENTS, CLINICS = 6_256, 22
TRIAL_PATIENTS = 2_139
SHOWN, ITEMS, POSITIONS = 10_000, 20, 3
# The share of pairs of a clinic and a column that are never recorded.
UNRECORDED = 0.3


def warfarin() -> pd.DataFrame:
    """Return a table like that of warfarin doses; a dose's root is linear in the features."""
    rng = np.random.default_rng(1)
    n = PATIENTS
    decade = rng.choice(
        np.arange(1, 10), size=n, p=[0.01, 0.03, 0.05, 0.1, 0.2, 0.24, 0.26, 0.1, 0.01]
    )
    height = rng.normal(168.0, 10.0, n)
    frame = pd.DataFrame(
        {
            dose_records.CLINIC: rng.integers(1, CLINICS + 1, n),
            "Age": [f"{k}0 - {k}9" for k in decade],
            "Height (cm)": height,
            "Weight (kg)": 78.0 + 0.9 * (height - 168.0) + rng.normal(0.0, 16.0, n),
        }
    )
    recorded = [name for name in dose_records.RECORD.booleans if name != dose_records.INDUCER]
    for name in (*recorded, *dose_records.INDUCERS):
        frame[name] = (rng.random(n) < 0.15).astype(float)
    for name, levels in dose_records.LEVELS.items():
        # Half of the patients have the first level.
        shares = np.append(0.5, np.full(len(levels) - 1, 0.5 / (len(levels) - 1)))
        frame[name] = rng.choice(np.array(levels, dtype=object), size=n, p=shares)
    x = dose_records.encode(frame)
    effects = rng.normal(0.0, 0.35, x.shape[1])
    root = 5.6 + ((x - x.mean(axis=0)) / x.std(axis=0)) @ effects + rng.normal(0.0, 0.8, n)
    hidden = rng.random((CLINICS + 1, frame.shape[1])) < UNRECORDED
    hidden[:, 0] = False  # the clinic itself is known
    mask = hidden[frame[dose_records.CLINIC]] | (rng.random(frame.shape) < 0.02)
    mask[:, 0] = False
    frame = frame.astype(object).mask(mask)
    frame[dose_records.DOSE] = np.where(rng.random(n) < 0.04, np.nan, root.clip(1.0) ** 2)
    return frame


def actg175() -> pd.DataFrame:
    """Return a table like that of the trial: four arms at random, CD4 cells before and after."""
    rng = np.random.default_rng(2)
    n = TRIAL_PATIENTS
    normal = {"age": (35, 9), "wtkg": (75, 13), "karnof": (95, 6), "preanti": (380, 470)}
    normal |= {"cd40": (350, 119), "cd80": (987, 480)}
    frame = pd.DataFrame({name: rng.normal(*law, n) for name, law in normal.items()})
    for name in ("hemo", "homo", "drugs", "oprior", "z30", "race", "gender", "str2", "symptom"):
        frame[name] = (rng.random(n) < 0.4).astype(float)
    frame["arms"] = rng.integers(4, size=n)
    gain = np.array([-15.0, 45.0, 20.0, 25.0]) + np.outer(frame["z30"], [0.0, -10.0, 5.0, 30.0])
    change = gain[np.arange(n), frame["arms"]] - 0.3 * (frame["cd40"] - 350.0)
    frame["cd420"] = frame["cd40"] + change + rng.normal(0.0, 110.0, n)
    return frame


def open_bandit() -> dict[str, pd.DataFrame]:
    """Return two tables like those of Open Bandit, of uniform choices and of a policy that changes.

    The second policy has another distribution each day, nearer to the better items, and the same
    name as the published one. A click has the probability of its item and position.
    """
    rng = np.random.default_rng(3)
    rates = 0.02 * rng.gamma(2.0, 1.0, ITEMS)
    seen = np.array([1.0, 0.8, 0.6])
    first = pd.Timestamp("2019-11-24", tz="UTC")
    found = {}
    for policy, pull in {"random": 0.0, "bts": 1.5}.items():
        seconds = np.sort(rng.uniform(0.0, 7 * 86_400.0, SHOWN))
        day = (seconds // 86_400.0).astype(int)
        logits = pull * np.arange(1, 8)[:, None] / 7.0 * rates / rates.std()
        logits = logits + pull * rng.normal(0.0, 0.3, (7, ITEMS))
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        item = (rng.random((SHOWN, 1)) > p[day].cumsum(axis=1)).sum(axis=1).clip(max=ITEMS - 1)
        position = rng.integers(1, POSITIONS + 1, SHOWN)
        clicks = rng.random(SHOWN) < rates[item] * seen[position - 1]
        affinity = {f"user-item_affinity_{i}": np.zeros(SHOWN) for i in range(ITEMS)}
        found[policy] = pd.DataFrame(
            {
                "timestamp": (first + pd.to_timedelta(seconds, unit="s")).astype(str),
                "item_id": item,
                "position": position,
                "click": clicks.astype(int),
                "propensity_score": p[day, item],
                **affinity,
            }
        )
    return found
