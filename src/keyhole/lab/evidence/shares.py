"""`Share`: successes among trials, held against a claimed probability by exact binomial tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

from keyhole.lab.evidence.estimates import LEVEL, Estimate


class Share(NamedTuple):
    """A share of successes among trials.

    Parameters
    ----------
    hits : int
        The number of successes.
    size : int
        The number of trials.
    """

    hits: int
    size: int

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.hits} of {self.size} ({low:.0%} to {high:.0%})"

    @property
    def value(self) -> float:
        """The share of successes."""
        return self.hits / self.size

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's exact interval at 95%."""
        found = binomtest(self.hits, self.size).proportion_ci(method="exact")
        return float(found.low), float(found.high)

    @property
    def estimate(self) -> Estimate:
        """Clopper and Pearson's exact interval at 99%, as an estimate in its middle.

        Student's interval of 0 successes, or of successes only, would have no width.
        """
        found = binomtest(self.hits, self.size).proportion_ci(LEVEL, method="exact")
        low, high = float(found.low), float(found.high)
        return Estimate((low + high) / 2.0, (high - low) / 2.0)

    def p_against(self, level: float) -> float:
        """Return the exact p-value of this share if successes have a probability of `level`.

        It is the probability of at least as many misses. It is small if the share contradicts a
        probability of at least `level`.
        """
        return float(binom.sf(self.size - self.hits - 1, self.size, 1.0 - level))

    def p_for(self, level: float) -> float:
        """Return the exact p-value of this share if misses are twice as likely as `level` allows.

        It is the probability of at most as many misses. It is small if the share excludes twice the
        misses. This is the evidence for a probability of at least `level` that a finite number of
        trials can give: no number of them excludes a slightly lower probability. A probability of
        misses above 1/3 is not doubled but moved half the way to 1.
        """
        doubled = min(2.0 * (1.0 - level), 1.0 - 0.5 * level)
        return float(binom.cdf(self.size - self.hits, self.size, doubled))


def share(hits: NDArray[np.bool_]) -> Share:
    """Return the share of hits."""
    return Share(int(hits.sum()), hits.size)
