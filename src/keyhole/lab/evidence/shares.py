"""`Share`: successes among trials, held against a claimed probability by exact tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

# The level of the exact tests of a probability.
LEVEL = 0.01


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


def share(hits: NDArray[np.bool_]) -> Share:
    """Return the share of hits."""
    return Share(float(hits.mean()), hits.size)
