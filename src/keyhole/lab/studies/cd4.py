"""The share of noise in a CD4 count, bounded from above by two counts of each patient.

Between the two counts patients were treated for 20 weeks. The difference of two counts has the
noise of both and the true change: with independent noises of equal variance its variance is
2 s^2 + Var(change), so that half of it bounds s^2 from above. A change that all patients share,
such as the mean of an arm, does not count.
"""

from __future__ import annotations

import numpy as np

from keyhole.core import Floats, Ints, Sensor
from keyhole.lab.evidence import Estimate, jackknife


def noise_share(before: Floats, after: Floats) -> Estimate:
    """Return the share of noise in the variance of a count, with the interval over patients.

    Parameters
    ----------
    before, after : ndarray of shape (patients,)
        The two counts of each patient.
    """
    return jackknife(np.column_stack([before, after]), _share)


def _share(counts: Floats) -> float:
    """Return noise / (noise + context) of the sensor that two columns of counts calibrate."""
    # The sensor takes both counts to have one mean, and would take a common change off its context.
    first, second = np.hsplit(counts - counts.mean(axis=0), 2)
    sensor = Sensor.from_repeats(first, second)
    return float(sensor.sensing_covariance[0, 0] / sensor.observation_covariance[0, 0])


def without_means(counts: Floats, arms: Ints) -> Floats:
    """Return counts less the mean of each patient's arm.

    Parameters
    ----------
    counts : ndarray of shape (patients,)
        The counts.
    arms : ndarray of int of shape (patients,)
        The arm of each patient.
    """
    means = np.bincount(arms, counts) / np.maximum(np.bincount(arms), 1)
    left: Floats = counts - means[arms]
    return left
