"""Statistics that decide claims, each with a 99% interval over replications.

Replications are independent. A number of each replication gets Student's interval. A number of all
replications together, such as the power of a mean curve, gets the jackknife's.

The burden of proof is on the claim. It holds if the whole interval lies on its side of a limit,
does not hold if the whole interval lies on the other side, and is undecided otherwise. A limit is
the claim's own number plus a margin, which each study states with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import t as student

from keyhole.errors import InvalidValue
from keyhole.lab.studies.study import Outcome, Verdict

Floats = NDArray[np.float64]

# With sixteen cells at 99% each, fewer than one run in ten is wrong about a cell.
LEVEL = 0.99
# Growth is fitted to the last nine tenths of the rounds: the first rounds follow no power.
START = 0.1
# The number of stretches, equal in log t, over which gains of regret are taken.
STRETCHES = 4
# The number of replications of the paper's worst case.
WORST_OF = 50


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


# -- deciding -------------------------------------------------------------------------------------


def at_most(found: Estimate, limit: float) -> Outcome:
    """Decide whether a number is at most a limit.

    Parameters
    ----------
    found : Estimate
        The number with its interval.
    limit : float
        The limit.

    Returns
    -------
    Outcome
        The decision.
    """
    if found.high <= limit:
        return Outcome.HOLDS
    return Outcome.FAILS if found.low > limit else Outcome.UNDECIDED


def at_least(found: Estimate, limit: float) -> Outcome:
    """Decide whether a number is at least a limit.

    Parameters
    ----------
    found : Estimate
        The number with its interval.
    limit : float
        The limit.

    Returns
    -------
    Outcome
        The decision.
    """
    return at_most(Estimate(-found.value, found.margin), -limit)


def within(found: Estimate, limit: float) -> Outcome:
    """Decide whether the absolute value of a number is at most a limit.

    Parameters
    ----------
    found : Estimate
        The number with its interval.
    limit : float
        The limit.

    Returns
    -------
    Outcome
        The decision.
    """
    return all_of([at_most(found, limit), at_least(found, -limit)])


def all_of(outcomes: list[Outcome]) -> Outcome:
    """Decide a claim about all of several cases: one that fails is enough to refute it."""
    if Outcome.FAILS in outcomes:
        return Outcome.FAILS
    return Outcome.UNDECIDED if Outcome.UNDECIDED in outcomes else Outcome.HOLDS


def counted(claim: str, outcomes: Mapping[str, Outcome], detail: str) -> Verdict:
    """Return one verdict about many cells, with the names of the cells that do not support it.

    Parameters
    ----------
    claim : str
        The claim, about every cell.
    outcomes : mapping of str to Outcome
        The outcome for each cell, by its name.
    detail : str
        The numbers behind the verdict.

    Returns
    -------
    Verdict
        The verdict.
    """
    held = sum(outcome == Outcome.HOLDS for outcome in outcomes.values())
    said = [f"holds for {held} of {len(outcomes)}"]
    for outcome in (Outcome.FAILS, Outcome.UNDECIDED):
        names = [name for name, one in outcomes.items() if one == outcome]
        if names:
            few = "; ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
            said.append(f"{outcome} for {few}")
    return Verdict(claim, all_of(list(outcomes.values())), f"{', '.join(said)}. {detail}")


def listed(found: Mapping[str, Estimate]) -> str:
    """Return all estimates as text."""
    return "; ".join(f"{name}: {one}" for name, one in found.items())


# -- estimating -----------------------------------------------------------------------------------


def estimate(values: xr.DataArray) -> Estimate:
    """Return the mean over replications of a number of each, with Student's interval."""
    numbers = values.values.reshape(-1)
    if numbers.size < 2:
        return Estimate(float(numbers.mean()), np.inf)
    spread = numbers.std(ddof=1) / np.sqrt(numbers.size)
    return Estimate(float(numbers.mean()), _width(numbers.size) * float(spread))


def jackknife(samples: Floats, statistic: Callable[[Floats], float]) -> Estimate:
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
    without = np.array([statistic(np.delete(samples, i, axis=0)) for i in range(n)])
    variance = (n - 1) / n * np.sum((without - without.mean()) ** 2)
    return Estimate(value, _width(n) * float(np.sqrt(variance)))


def _width(n: int) -> float:
    """Return the half width of an interval from n replications, in standard errors."""
    return float(student.ppf(0.5 + LEVEL / 2, n - 1))


# -- growth of curves -----------------------------------------------------------------------------


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
            f"{len(curves.time)} checkpoints are too few to fit the growth of curves: "
            "give a longer horizon"
        )
    return chosen.values, time
