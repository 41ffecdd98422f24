"""What an audit finds of one claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import binomtest, norm
from scipy.stats import t as student

# How many standard errors contradict a claim.
SURE = 3.0
# An exponent that is not known to within this is not known.
WIDE = 0.3


@dataclass(frozen=True)
class Finding:
    """A claim held against a simulation.

    holds is None where the simulation cannot tell: too few pulls, or too much noise. expected is
    False for a negative control: a claim outside its assumptions, which must fail if the audit can
    tell right from wrong.
    """

    name: str
    label: str
    claim: str
    holds: bool | None
    evidence: str
    expected: bool = True

    @property
    def as_expected(self) -> bool:
        """Whether the theory is not contradicted, or a control has failed as it should."""
        return self.holds is not False if self.expected else self.holds is False

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if self.holds is None:
            return "cannot tell"
        return "holds" if self.holds else "fails"


class Share(NamedTuple):
    """How often something was so, of how many."""

    value: float
    size: int

    def __str__(self) -> str:
        low, high = self.interval
        hits = round(self.value * self.size)
        return f"{hits} of {self.size} ({low:.0%} to {high:.0%})"

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval at 95%, which also knows how little a share of 1 says."""
        found = binomtest(round(self.value * self.size), self.size).proportion_ci(method="wilson")
        return float(found.low), float(found.high)

    def at_least(self, level: float) -> bool:
        """Whether this does not contradict a probability of at least `level`."""
        # By the claimed probability's own error: a share of 1 would else have none.
        return bool(self.value >= level - SURE * np.sqrt(level * (1.0 - level) / self.size))


def share(hits: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Share:
    """The share of hits."""
    return Share(float(hits.mean()), hits.size)


class Slope(NamedTuple):
    """The exponent of a power of t, with its standard error over replications."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} ± {self.error:.2f}"

    def at_most(self, limit: float) -> bool | None:
        """Whether it is, or None if its error leaves that open."""
        if self.value - SURE * self.error > limit:
            return False
        return True if self.value <= limit and SURE * self.error <= WIDE else None


def exponent(curves: xr.DataArray, draws: int = 400) -> Slope:
    """The exponent b of c t^b through the mean of curves (replication, time), from T/10 to T.

    By least squares on logarithms at times that are evenly spaced there; its error by resampling
    replications.
    """
    times = np.geomspace(float(curves.time[-1]) / 10.0, float(curves.time[-1]), 12)
    late = curves.sel(time=times, method="nearest").transpose("replication", "time")
    x = np.log(late.time.values.astype(float))
    x -= x.mean()
    values, rng = late.values, np.random.default_rng(0)
    picks = rng.integers(len(values), size=(draws, len(values)))
    # A probability that was never seen counts as half a sighting in all replications.
    least = 0.5 / len(values) / float(np.diff(late.time.values).max(initial=1))
    logs = np.log(np.maximum(values[picks].mean(axis=1), least))
    slopes = logs @ x / (x @ x)
    own = np.log(np.maximum(values.mean(axis=0), least)) @ x / (x @ x)
    # A spread of few replications is known badly itself: Student's t in place of the normal.
    n = len(values)
    doubt = np.sqrt(n / (n - 1)) * student.ppf(norm.cdf(SURE), n - 1) / SURE
    return Slope(float(own), float(slopes.std(ddof=1) * doubt))
