"""Statistics that decide claims about curves, each with its standard error over replications.

Replications are independent, so that any number computed from one replication's curve has a plain
standard error over all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from keyhole.errors import InvalidValue
from keyhole.studies.study import Verdict

# How many standard errors tell two numbers apart.
SURE = 3.0
# A rise that is at most this share of the one a doubling before is on its way to none.
LESS = 0.9
# Two curves are told apart as a line and a logarithm from here on: the start follows neither.
FROM = 0.1


class Estimate(NamedTuple):
    """A mean over replications and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:+.1%} ± {self.error:.1%}"


def estimate(values: xr.DataArray) -> Estimate:
    """The mean of a number that each replication has."""
    numbers = values.values.reshape(-1)
    spread = numbers.std(ddof=1) / np.sqrt(numbers.size) if numbers.size > 1 else np.inf
    return Estimate(float(numbers.mean()), float(spread))


class Doublings(NamedTuple):
    """How much a curve rises while the rounds double, as a share of its level at the end.

    In equal steps of log t, what comes to a constant like 1 - a / log t rises by ever less;
    (log t)^3 / (log t)^2 rises by the same each time, and sqrt(t) / (log t)^2 by ever more.
    """

    last: Estimate  # from half of the rounds to all
    before: Estimate  # from a quarter to half
    excess: Estimate  # the last rise, less LESS times the one before

    @property
    def flatten(self) -> bool:
        """Whether the curve does not rise at the end, or by clearly less than the time before."""
        return at_most(self.last) or at_most(self.excess)

    def __str__(self) -> str:
        return f"{self.last} (after {self.before} the time before)"


def doublings(curves: xr.DataArray) -> Doublings:
    """The last two doublings of curves over (replication, time)."""
    end = float(curves.time[-1])
    quarter, half, last = (
        curves.sel(time=share * end, method="nearest") for share in (0.25, 0.5, 1.0)
    )
    if len({float(point.time) for point in (quarter, half, last)}) < 3:
        raise InvalidValue(f"{len(curves.time)} checkpoints are too few to tell how curves grow")
    quarter, half, last = (point.drop_vars("time") for point in (quarter, half, last))
    level = float(last.mean()) or 1.0  # a curve of zeros is flat
    late, early = (last - half) / level, (half - quarter) / level
    return Doublings(estimate(late), estimate(early), estimate(late - LESS * early))


def at_most(found: Estimate, limit: float = 0.0) -> bool:
    """Whether a number is at most `limit`, or not told apart from it."""
    return found.mean <= limit + SURE * found.error


def surely_below(found: Estimate, limit: float) -> bool:
    """Whether a number is below `limit` beyond doubt."""
    return found.mean + SURE * found.error <= limit


def flattening(claim: str, rises: dict[str, Doublings]) -> Verdict:
    """The verdict that all of these curves flatten."""
    steepest = max(rises, key=lambda name: rises[name].last.mean)
    return counted(
        claim,
        {name: rise.flatten for name, rise in rises.items()},
        "Rise of the curve as the rounds double for the last time, which must be at most 0, or at "
        f"most {LESS:g} times the rise before, within {SURE:g} standard errors: {rises[steepest]} "
        f"for the steepest, {steepest}.",
    )


def line_over_log(curve: xr.DataArray) -> float:
    """The misfit of a straight line to a curve over that of a logarithm, both by least squares.

    Below 1 the curve is more of a line, above 1 more of a logarithm.
    """
    late = curve.sel(time=curve.time >= FROM * curve.time[-1])
    if late.sizes["time"] < 4:
        raise InvalidValue(f"{len(curve.time)} checkpoints are too few to tell a line from a curve")
    time, values = late.time.values.astype(float), late.values

    def misfit(regressor: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        design = np.column_stack([np.ones_like(regressor), regressor])
        left = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
        return float(np.sum(left**2))

    log = misfit(np.log(time))
    return misfit(time) / log if log > 0.0 else np.inf


def exponent(
    x: np.ndarray[tuple[int], np.dtype[np.float64]], last: xr.DataArray, draws: int = 1000
) -> Estimate:
    """The b of a power law c x^b through mean final regrets, (value, replication), by bootstrap."""
    rng = np.random.default_rng(0)
    values = last.values  # (value, replication)
    n = values.shape[1]
    picks = rng.integers(n, size=(draws, n))
    means = np.log(values[:, picks].mean(axis=2))  # (value, draws)
    centred = np.log(x) - np.log(x).mean()
    slopes = centred @ means / (centred @ centred)
    slope = centred @ np.log(values.mean(axis=1)) / (centred @ centred)
    return Estimate(float(slope), float(slopes.std(ddof=1)))


def counted(claim: str, results: dict[str, bool], detail: str) -> Verdict:
    """One verdict on many cells: it holds if it does in all of them."""
    failing = [name for name, holds in results.items() if not holds]
    share = f"{len(results) - len(failing)} of {len(results)}"
    few = "; ".join(failing[:4]) + (f" and {len(failing) - 4} more" if len(failing) > 4 else "")
    but = f"; not for {few}" if failing else ""
    return Verdict(claim, not failing, f"holds for {share}{but}. {detail}")
