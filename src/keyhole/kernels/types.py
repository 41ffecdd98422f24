"""The arrays and small tuples that kernels take."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class State(NamedTuple):
    """What is known of k parameters of dimension d: first the sums, then what follows from them.

    Of a symmetric matrix the lower triangle counts; what is above the diagonal is left over.
    """

    precision: Floats  # (k, d, d)  B = prior I + sum y y'
    moment: Floats  # (k, d)  b = sum r y
    pulls: Floats  # (k,)  n, a whole number
    squares: Floats  # (k,)  sum r^2
    covariance: Floats  # (k, d, d)  P = B^-1
    mean: Floats  # (k, d)  P b
    residual: Floats  # (k,)  sum r^2 - b' P b
    trace: Floats  # (k,)  trace of P
    bound: Floats  # (k,)  at least the largest eigenvalue of P
    staleness: Floats  # (k,)  from 0 after a refresh to 1, when the next one is due


class Rule(NamedTuple):
    """A policy in numbers: score_i = mean_i + width_i (optimism + dispersion z_i)."""

    optimism: float
    dispersion: float
    epsilon: float  # with this probability an arm is picked uniformly instead
    learned: bool  # the dispersion is the noise scale learned from the state, not the number
    prior_precision: float

    @classmethod
    def plain(
        cls,
        optimism: float,
        dispersion: float,
        epsilon: float,
        learned: bool,
        prior_precision: float,
    ) -> "Rule":
        """The rule in plain floats: a kernel is compiled anew for each combination of types."""
        numbers = float(optimism), float(dispersion), float(epsilon)
        return cls(*numbers, bool(learned), float(prior_precision))
