"""Growth of curves: powers of t and of log t, with their intervals over replications."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import t as student

from keyhole.errors import InvalidValue
from keyhole.lab.evidence.estimates import Estimate, jackknife, standard_error

Floats = NDArray[np.float64]

# Growth is fitted to the last nine tenths of the rounds: the first rounds follow no power.
START = 0.1
# The number of stretches, equal in log t, over which gains of regret are taken.
STRETCHES = 4
# The number of stretches between the points of an exponent.
EXPONENT_STRETCHES = 11
# The number of replications of the paper's worst case.
WORST_OF = 50


class Slope(NamedTuple):
    """The exponent of a power of t, with its standard error over replications.

    Parameters
    ----------
    value : float
        The exponent.
    error : float
        Its standard error, by the jackknife.
    size : int
        The number of replications.
    """

    value: float
    error: float
    size: int

    def __str__(self) -> str:
        return f"{self.value:+.2f} ± {self.error:.2f}"

    def p_above(self, limit: float) -> float:
        """Return the p-value of this exponent if it is `limit`, against larger ones.

        It is Student's. Without a spread there is no test: it is 1.
        """
        if not self.error > 0.0:
            return 1.0
        return float(student.sf((self.value - limit) / self.error, self.size - 1))

    def p_below(self, limit: float) -> float:
        """Return the p-value of this exponent if it is `limit`, against smaller ones."""
        return self._replace(value=-self.value).p_above(-limit)


def power_of_log(curves: xr.DataArray, *, worst_of: int = 0) -> Estimate:
    """Return the b with which a cumulative curve grows like (log t)^b plus a constant.

    It is fitted to the gain per unit of log t, which grows like (log t)^(b - 1). The regret of the
    first rounds, which is large for large dimensions, therefore does not count.

    Parameters
    ----------
    curves : DataArray (replication, time)
        Cumulative curves.
    worst_of : int, default 0
        Fit the expected worst of this number of replications in place of the mean; 0 fits the mean.

    Returns
    -------
    Estimate
        The power b.
    """
    return _power(curves, np.log, worst_of)


def power_of_time(curves: xr.DataArray, *, worst_of: int = 0) -> Estimate:
    """Return the b with which a cumulative curve grows like t^b plus a constant.

    Parameters
    ----------
    curves : DataArray (replication, time)
        Cumulative curves.
    worst_of : int, default 0
        Fit the expected worst of this number of replications in place of the mean; 0 fits the mean.

    Returns
    -------
    Estimate
        The power b.
    """
    return _power(curves, lambda t: t, worst_of)


def _power(curves: xr.DataArray, clock: Callable[[Floats], Floats], worst_of: int) -> Estimate:
    values, time = _late(curves, STRETCHES)
    ticks = clock(time)
    steps, middles = np.diff(ticks), (ticks[1:] + ticks[:-1]) / 2

    def statistic(samples: Floats) -> float:
        curve = expected_worst(samples, worst_of) if worst_of else samples.mean(axis=0)
        return 1.0 + slope(np.log(middles), np.diff(curve) / steps)

    return jackknife(values, statistic)


def rate_of_decay(curves: xr.DataArray) -> Estimate:
    """Return the b with which a mean level over (replication, time) changes like t^b."""
    values, time = _late(curves, 2 * STRETCHES)
    return jackknife(values, lambda samples: slope(np.log(time), samples.mean(axis=0)))


def exponent(curves: xr.DataArray) -> Slope:
    """Return the exponent b of c t^b through the mean of curves, from T/10 to T.

    The fit is by least squares on logarithms, at times that are evenly spaced on that scale. An
    event that was never observed counts as half an observation in all replications.

    Parameters
    ----------
    curves : DataArray (replication, time)
        The curves.

    Returns
    -------
    Slope
        The exponent and its standard error.
    """
    values, time = _late(curves, EXPONENT_STRETCHES)
    least = 0.5 / len(values) / float(np.diff(time).max())

    def statistic(samples: Floats) -> float:
        return slope(np.log(time), np.maximum(samples.mean(axis=0), least))

    return Slope(statistic(values), standard_error(values, statistic), len(values))


def slope(x: Floats, y: Floats) -> float:
    """Return the least squares slope of log y on x, or NaN if some y is not above 0.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        The points.
    """
    if not (y > 0.0).all():
        return float("nan")
    centred = x - x.mean()
    return float(centred @ np.log(y) / (centred @ centred))


def expected_worst(samples: Floats, size: int) -> Floats:
    """Return the expected worst curve of `size` replications, from n of them.

    The worst of a set is its curve with the largest end. Over all sets of `size` out of n, the
    curve of rank r is the worst of C(n - r, size - 1) out of C(n, size). With n = size it is the
    worst curve itself. With more replications it is the mean over many such experiments, which has
    an interval; a single largest curve has none.

    Parameters
    ----------
    samples : array (n, time)
        A curve for each replication.
    size : int
        The number of replications of one experiment; n is used if it is smaller.

    Returns
    -------
    array (time,)
        The mean of the worst curves.
    """
    n = len(samples)
    size = min(size, n)
    ranks = np.arange(1.0, n - size + 2)
    logs = _log_choose(n - ranks, size - 1) - _log_choose(n, size)
    order = np.argsort(-samples[:, -1], kind="stable")[: len(ranks)]
    worst: Floats = np.exp(logs) @ samples[order]
    return worst


def _log_choose(n: Floats | int, k: int) -> Floats:
    result: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return result


def _late(curves: xr.DataArray, stretches: int) -> tuple[Floats, Floats]:
    """Return values (replication, time) at the ends of late stretches equal in log t, and t."""
    end = float(curves.time[-1])
    ends = end * START ** (1.0 - np.arange(stretches + 1) / stretches)
    chosen = curves.sel(time=ends, method="nearest").transpose("replication", "time")
    time = chosen.time.values.astype(float)
    if len(np.unique(time)) < len(time):
        raise InvalidValue(
            f"{len(curves.time)} checkpoints are too few to fit the growth of curves"
        )
    return chosen.values, time
