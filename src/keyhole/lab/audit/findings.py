"""`Finding`, the result of an audit for one claim, and the statistics behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import binom, binomtest, norm
from scipy.stats import t as student

from keyhole.theory import GAPS

# The number of standard errors that contradicts a rate.
SURE = 3.0
# The level of the exact tests of a probability.
LEVEL = 0.01
# An exponent with a larger margin than this counts as unknown.
WIDE = 0.3


@dataclass(frozen=True)
class Finding:
    """The result of testing one claim by simulation.

    Parameters
    ----------
    name : str
        The name of the test.
    label : str
        The label of the claim in the paper.
    claim : str
        The claim.
    holds : bool or None
        False if the simulation contradicts the claim. None if it cannot tell, because of too few
        pulls or too much noise.
    evidence : str
        The observed numbers.
    expected : bool, default True
        False for a negative control: a claim outside its assumptions. A working audit must
        contradict it.
    supported : bool, default False
        Whether an exact test supports the claim, beyond not contradicting it.
    begins : str, default ""
        The point from which the paper makes the claim, if it is beyond the run. The tested claim is
        then stronger than the paper's.
    status : str, default ""
        Whether the paper's bound is proved, corrected or open (`keyhole.theory.status_of`).
    gaps : tuple of str, default ()
        The open points, as keys of `keyhole.theory.GAPS`.
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
        """True if the claim is not contradicted, or if the finding is a contradicted control."""
        return self.holds is not False if self.expected else self.holds is False

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the bound is open, in sentences."""
        return tuple(GAPS[gap] for gap in self.gaps)

    @property
    def verdict(self) -> str:
        """The outcome in words.

        "holds" requires an exact test that supports the claim, within the rounds for which the
        paper makes it. Otherwise a claim that is not contradicted is "not contradicted".
        """
        if self.holds is None:
            return "cannot tell"
        if not self.holds:
            return "contradicted"
        return "holds" if self.supported and not self.begins else "not contradicted"


class Share(NamedTuple):
    """A share of successes among trials.

    Parameters
    ----------
    value : float
        The share of successes.
    size : int
        The number of trials.
    """

    value: float
    size: int

    def __str__(self) -> str:
        low, high = self.interval
        hits = round(self.value * self.size)
        return f"{hits} of {self.size} ({low:.0%} to {high:.0%})"

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval at 95%, which has a positive width even for a share of 1."""
        found = binomtest(round(self.value * self.size), self.size).proportion_ci(method="wilson")
        return float(found.low), float(found.high)

    def at_least(self, level: float) -> bool:
        """Return whether the share does not contradict a probability of at least `level`.

        The decision is by the exact binomial test of that probability, at 1%.
        """
        return bool(binom.sf(self._misses - 1, self.size, 1.0 - level) >= LEVEL)

    def supports(self, level: float) -> bool:
        """Return whether an exact binomial test, at 1%, excludes that misses are twice as likely.

        This is the evidence for a probability of at least `level` that a finite number of trials
        can give: no number of them excludes a slightly lower probability. A probability of misses
        above 1/3 is not doubled but moved half the way to 1.
        """
        doubled = min(2.0 * (1.0 - level), 1.0 - 0.5 * level)
        return bool(binom.cdf(self._misses, self.size, doubled) < LEVEL)

    @property
    def _misses(self) -> int:
        return self.size - round(self.value * self.size)


def share(hits: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Share:
    """Return the share of hits."""
    return Share(float(hits.mean()), hits.size)


class Slope(NamedTuple):
    """The exponent of a power of t, with its standard error over replications.

    Parameters
    ----------
    value : float
        The exponent.
    error : float
        Its standard error.
    """

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} ± {self.error:.2f}"

    def at_most(self, limit: float) -> bool | None:
        """Return whether the exponent is at most `limit`, or None if its error leaves that open."""
        if self.value - SURE * self.error > limit:
            return False
        if self.value + SURE * self.error <= limit:
            return True
        return True if self.value <= limit and SURE * self.error <= WIDE else None


def exponent(curves: xr.DataArray, draws: int = 400) -> Slope:
    """Return the exponent b of c t^b through the mean of curves, from T/10 to T.

    The fit is by least squares on logarithms, at times that are evenly spaced on that scale. The
    standard error is by resampling replications.

    Parameters
    ----------
    curves : DataArray
        The curves, over (replication, time).
    draws : int, default 400
        The number of resamples.

    Returns
    -------
    Slope
        The exponent and its standard error.
    """
    times = np.geomspace(float(curves.time[-1]) / 10.0, float(curves.time[-1]), 12)
    late = curves.sel(time=times, method="nearest").transpose("replication", "time")
    x = np.log(late.time.values.astype(float))
    x -= x.mean()
    values, rng = late.values, np.random.default_rng(0)
    picks = rng.integers(len(values), size=(draws, len(values)))
    # An event that was never observed counts as half an observation in all replications.
    least = 0.5 / len(values) / float(np.diff(late.time.values).max(initial=1))
    logs = np.log(np.maximum(values[picks].mean(axis=1), least))
    slopes = logs @ x / (x @ x)
    own = np.log(np.maximum(values.mean(axis=0), least)) @ x / (x @ x)
    # The spread over few replications is itself uncertain: Student's t in place of the normal.
    n = len(values)
    doubt = np.sqrt(n / (n - 1)) * student.ppf(norm.cdf(SURE), n - 1) / SURE
    return Slope(float(own), float(slopes.std(ddof=1) * doubt))
