"""`population`: the sensor of records with missing entries, with the moments of all clinics pooled.

A record x is seen without noise, y = x, but for the entries that a clinic did not record: a missing
entry is a missing row of A = I. x has one mean and one covariance in all clinics.
"""

from __future__ import annotations

import numpy as np

from keyhole.core import Floats, Moments, Sensor


def population(records: Floats) -> Sensor:
    """Return the sensor y = x of a population that is known by its records.

    Each covariance is that of the records that have both entries. They are those by which
    `missing="predict"` fills a record, there of the records so far.

    Parameters
    ----------
    records : ndarray of shape (patients, dim)
        The records, with NaN where an entry is missing. No column is missing altogether.

    Raises
    ------
    InvalidValue
        If the covariances of all pairs together are not a covariance. Those of different patients
        need not be one.
    """
    n, dim = records.shape
    moments = Moments.empty(dim)
    moments.add(np.array(records))
    covariance = moments.covariance
    # One record of independent entries in front: the columns of a category add up to 1, and their
    # covariance alone is singular.
    pooled = (n * covariance + np.diag(np.diag(covariance))) / (n + 1)
    return Sensor(
        sensing=np.eye(dim),
        context_covariance=0.5 * (pooled + pooled.T),
        sensing_covariance=0.0,
        mean=moments.mean,
    )
