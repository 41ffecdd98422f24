"""Statistics that decide claims, each with a 99% interval over replications.

Replications are independent. A number that one replication has gets Student's interval; a number
that only all of them have together, such as the power of a mean curve, gets the jackknife's.

The burden of proof is on the claim. It holds where the whole interval lies on its side of a limit,
does not hold where the whole interval lies on the other side, and is undecided in between. A limit
is the claim's own number plus a margin, which each study states with its reason.
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

# Sixteen cells at 99% each are wrong about one of them in fewer than one run of ten.
LEVEL = 0.99
# Growth is fitted to the last nine tenths of the rounds: what was learned first follows no power.
START = 0.1
# Gains of regret are taken over this many stretches, which are equal in log t.
STRETCHES = 4
# The paper's worst case is the worst of this many replications.
WORST_OF = 50


class Estimate(NamedTuple):
    """A number and the half width of its 99% interval."""

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
        # A margin of 0.004 printed as 0.00 would claim what nobody knows.
        places = 3 if self.margin < 0.095 else 2
        return f"{self.value:.{places}f} ± {self.margin:.{places}f}"


# -- deciding -------------------------------------------------------------------------------------


def at_most(found: Estimate, limit: float) -> Outcome:
    """Decide whether a number is at most a limit."""
    if found.high <= limit:
        return Outcome.HOLDS
    return Outcome.FAILS if found.low > limit else Outcome.UNDECIDED


def at_least(found: Estimate, limit: float) -> Outcome:
    """Decide whether a number is at least a limit."""
    return at_most(Estimate(-found.value, found.margin), -limit)


def within(found: Estimate, limit: float) -> Outcome:
    """Decide whether a number is at most a limit in size, whatever its sign."""
    return all_of([at_most(found, limit), at_least(found, -limit)])


def all_of(outcomes: list[Outcome]) -> Outcome:
    """Decide a claim about all of several things: one that fails is enough to refute it."""
    if Outcome.FAILS in outcomes:
        return Outcome.FAILS
    return Outcome.UNDECIDED if Outcome.UNDECIDED in outcomes else Outcome.HOLDS


def counted(claim: str, outcomes: Mapping[str, Outcome], detail: str) -> Verdict:
    """Return one verdict about many cells, which names the cells that do not bear it out.

    Parameters
    ----------
    claim : str
        The claim, about every cell.
    outcomes : mapping of str to Outcome
        What was decided for each cell, by its name.
    detail : str
        The numbers behind it.
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
    """Return the mean of a number that each replication has, with Student's interval."""
    numbers = values.values.reshape(-1)
    if numbers.size < 2:
        return Estimate(float(numbers.mean()), np.inf)
    spread = numbers.std(ddof=1) / np.sqrt(numbers.size)
    return Estimate(float(numbers.mean()), _width(numbers.size) * float(spread))


def jackknife(samples: Floats, statistic: Callable[[Floats], float]) -> Estimate:
    """Return a statistic of all replications, with an interval from leaving each of them out.

    Parameters
    ----------
    samples : array (n, ...)
        A row for each replication.
    statistic : callable
        A smooth function of such an array, of n or n - 1 rows.

    Returns
    -------
    Estimate
        Undecided (NaN or infinite) where the statistic is, or with fewer than three replications.
    """
    n = len(samples)
    value = statistic(samples)
    if n < 3:
        return Estimate(value, np.inf)
    without = np.array([statistic(np.delete(samples, i, axis=0)) for i in range(n)])
    variance = (n - 1) / n * np.sum((without - without.mean()) ** 2)
    return Estimate(value, _width(n) * float(np.sqrt(variance)))


def _width(n: int) -> float:
    """The half width of an interval in standard errors, of n replications."""
    return float(student.ppf(0.5 + LEVEL / 2, n - 1))


# -- how curves grow ------------------------------------------------------------------------------


def power_of_log(curves: xr.DataArray, *, worst_of: int = 0) -> Estimate:
    """Return the b with which a cumulative curve grows like (log t)^b plus a constant.

    It is fitted to what is gained per unit of log t, which grows like (log t)^(b - 1). So the
    regret of the first rounds, which is large where dimensions are, does not count.

    Parameters
    ----------
    curves : DataArray (replication, time)
        Cumulative curves.
    worst_of : int, default 0
        Fit the expected worst of that many replications in place of the mean.
    """
    return _power(curves, np.log, worst_of)


def power_of_time(curves: xr.DataArray, *, worst_of: int = 0) -> Estimate:
    """Return the b with which a cumulative curve grows like t^b plus a constant.

    Parameters are those of `power_of_log`.
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
    """Return the least squares slope of log y on x, or NaN where some y is not above 0."""
    if not (y > 0.0).all():
        return float("nan")
    centred = x - x.mean()
    return float(centred @ np.log(y) / (centred @ centred))


def expected_worst(samples: Floats, size: int) -> Floats:
    """Return the expected worst curve of `size` replications, from n of them.

    The worst of a set is its curve with the largest end. Over all sets of `size` out of n, the
    curve of rank r is the worst of C(n - r, size - 1) out of C(n, size). With n = size it is the
    worst curve itself; with more replications it is their mean over many such experiments, which
    has an interval where a single largest curve has none.

    Parameters
    ----------
    samples : array (n, time)
        A curve for each replication.
    size : int
        The number of replications of one experiment; n where there are fewer.

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
    """Values (replication, time) at the ends of late stretches that are equal in log t, and t."""
    end = float(curves.time[-1])
    ends = end * START ** (1.0 - np.arange(stretches + 1) / stretches)
    chosen = curves.sel(time=ends, method="nearest").transpose("replication", "time")
    time = chosen.time.values.astype(float)
    if len(np.unique(time)) < len(time):
        raise InvalidValue(f"{len(curves.time)} checkpoints are too few to tell how curves grow")
    return chosen.values, time
