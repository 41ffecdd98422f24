"""Estimates from replications, with their standard errors and 99% intervals.

Replications are independent. A number of each replication gets Student's interval. A number of all
replications together, such as the power of a mean curve, gets the jackknife's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import t as student

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], float]

# With sixteen cells at 99% each, fewer than one run in ten is wrong about a cell.
LEVEL = 0.99


class Estimate(NamedTuple):
    """A number and the half width of its 99% interval.

    Parameters
    ----------
    value : float
        The number.
    margin : float
        The half width of the interval.
    """

    value: float
    margin: float

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.value - self.margin

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.value + self.margin

    @property
    def percent(self) -> str:
        """The number as a percentage."""
        return f"{self.value:+.1%} ± {self.margin:.1%}"

    def __str__(self) -> str:
        # A margin of 0.004 printed as 0.00 would claim too much precision.
        places = 3 if self.margin < 0.095 else 2
        return f"{self.value:.{places}f} ± {self.margin:.{places}f}"


def estimate(values: xr.DataArray) -> Estimate:
    """Return the mean over replications of a number of each, with Student's interval."""
    numbers = values.values.reshape(-1)
    if numbers.size < 2:
        return Estimate(float(numbers.mean()), np.inf)
    spread = numbers.std(ddof=1) / np.sqrt(numbers.size)
    return Estimate(float(numbers.mean()), _width(numbers.size) * float(spread))


def jackknife(samples: Floats, statistic: Statistic) -> Estimate:
    """Return a statistic of all replications, with its jackknife interval.

    The interval is from leaving each replication out.

    Parameters
    ----------
    samples : array (n, ...)
        A row for each replication.
    statistic : callable
        A smooth function of such an array, of n or n - 1 rows.

    Returns
    -------
    Estimate
        Undecided (NaN or infinite) if the statistic is, or with fewer than three replications.
    """
    n = len(samples)
    value = statistic(samples)
    if n < 3:
        return Estimate(value, np.inf)
    return Estimate(value, _width(n) * standard_error(samples, statistic))


def standard_error(samples: Floats, statistic: Statistic) -> float:
    """Return the jackknife's standard error of a statistic of all replications.

    Parameters
    ----------
    samples : array (n, ...)
        A row for each replication.
    statistic : callable
        A smooth function of such an array, of n or n - 1 rows.
    """
    n = len(samples)
    without = np.array([statistic(np.delete(samples, i, axis=0)) for i in range(n)])
    variance = (n - 1) / n * np.sum((without - without.mean()) ** 2)
    return float(np.sqrt(variance))


def _width(n: int) -> float:
    """Return the half width of an interval from n replications, in standard errors."""
    return float(student.ppf(0.5 + LEVEL / 2, n - 1))
