"""What an audit finds of one claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import binom, binomtest, norm
from scipy.stats import t as student

from keyhole.theory import GAPS

# How many standard errors contradict a rate.
SURE = 3.0
# The level of the exact tests of a probability.
LEVEL = 0.01
# An exponent that is not known to within this is not known.
WIDE = 0.3


@dataclass(frozen=True)
class Finding:
    """A claim held against a simulation.

    Parameters
    ----------
    name, label, claim, evidence : str
        What was tested, its label in the paper, the claim and what was seen.
    holds : bool or None
        False if the simulation contradicts the claim, None if it cannot tell: too few pulls, or too
        much noise.
    expected : bool, default True
        False for a negative control: a claim outside its assumptions, which must be contradicted if
        the audit can tell right from wrong.
    supported : bool, default False
        Whether an exact test speaks for the claim, and not only none against it.
    begins : str, default ""
        From when on the paper makes the claim, if that is beyond the run. What is tested is then
        stronger than what the paper says.
    status : str, default ""
        Whether the paper's bound is proved, corrected or open (`keyhole.theory.status_of`).
    gaps : tuple of str, default ()
        What is open, as keys of `keyhole.theory.GAPS`.

    """

    name: str
    label: str
    claim: str
    holds: bool | None
    evidence: str
    expected: bool = True
    supported: bool = False
    begins: str = ""
    status: str = ""
    gaps: tuple[str, ...] = ()

    @property
    def as_expected(self) -> bool:
        """Whether the claim is not contradicted, or a control is, as it should be."""
        return self.holds is not False if self.expected else self.holds is False

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the bound is open, in sentences."""
        return tuple(GAPS[gap] for gap in self.gaps)

    @property
    def verdict(self) -> str:
        """The outcome in words.

        "holds" needs an exact test that speaks for the claim, in the time of which the paper makes
        it; "not contradicted" says no more than that.
        """
        if self.holds is None:
            return "cannot tell"
        if not self.holds:
            return "contradicted"
        return "holds" if self.supported and not self.begins else "not contradicted"


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
        """Whether this does not contradict a probability of at least `level`.

        By the exact binomial test of that probability, at 1%.
        """
        return bool(binom.sf(self._misses - 1, self.size, 1.0 - level) >= LEVEL)

    def supports(self, level: float) -> bool:
        """Whether an exact binomial test, at 1%, excludes that misses are twice as likely.

        That is the evidence for a probability of at least `level` that so many trials can give: no
        number of them shows that it is not a little less. Misses more likely than 1/3 are not
        doubled but moved half the way to 1.
        """
        doubled = min(2.0 * (1.0 - level), 1.0 - 0.5 * level)
        return bool(binom.cdf(self._misses, self.size, doubled) < LEVEL)

    @property
    def _misses(self) -> int:
        return self.size - round(self.value * self.size)


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
        if self.value + SURE * self.error <= limit:
            return True
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
