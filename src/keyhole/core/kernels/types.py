"""Arrays and small tuples that kernels take."""

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.errors import InvalidValue

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


# Vector instructions are fastest on whole cache lines; this many bytes each.
LINE = 64


def aligned_zeros(shape: tuple[int, ...]) -> Floats:
    """Return an array of zeros that is aligned to a cache line.

    NumPy's arrays need not be: a simulated round then takes a tenth longer at 5x80 and 10x200. The
    zeros are written explicitly: the system maps large arrays when they are first touched,
    megabytes at a time, and a decision that waits for that takes milliseconds.
    """
    size = math.prod(shape)
    buffer = np.empty(8 * size + LINE, np.uint8)
    start = -buffer.ctypes.data % LINE
    zeros = buffer[start : start + 8 * size].view(np.float64).reshape(shape)
    zeros[...] = 0.0
    return zeros


def is_aligned(array: Floats) -> bool:
    """Return whether kernels can use an array in place, at full speed."""
    return array.flags.carray and array.ctypes.data % LINE == 0


class State(NamedTuple):
    """State of k parameters of dimension d: the prior and the sums, then the caches.

    A reward of weight w counts w times in every sum but n: as sqrt(w) r at sqrt(w) y.

    Two symmetric matrices share one array M, (d + 1, d): the rows before the last have B in their
    upper triangle, the rows after the first have P in their lower triangle.
    """

    prior: Floats  # (k,)  the precision of each coordinate before any reward
    matrices: Floats  # (k, d + 1, d)  B = prior I + sum y y', and P = B^-1
    moment: Floats  # (k, d)  b = sum r y
    n: Floats  # (k,)  number of rewards, an integer
    weight: Floats  # (k,)  sum of the weights of rewards: n, unless a rule weighs them
    squares: Floats  # (k,)  sum r^2
    mean: Floats  # (k, d)  P b
    residual: Floats  # (k,)  sum r^2 - b' P b = sum (r - y'mean)^2 + prior |mean|^2
    penalty: Floats  # (k,)  prior |mean|^2
    trace: Floats  # (k,)  trace of P
    bound: Floats  # (k,)  at least the largest eigenvalue of P
    staleness: Floats  # (k,)  from 0 after a refresh to 1, when the next one is due

    @property
    def precision(self) -> Floats:
        """B of each parameter, (k, d, d): a view; only the upper triangle is valid."""
        return self.matrices[:, :-1]

    @property
    def covariance(self) -> Floats:
        """P of each parameter, (k, d, d): a view; only the lower triangle is valid."""
        return self.matrices[:, 1:]


class Rule(NamedTuple):
    """A policy in numbers: score_i = mean_i + width_i (optimism_i + dispersion_i z_i)."""

    optimism: float = 0.0
    dispersion: float = 0.0
    epsilon: float = 0.0  # with this probability an arm is picked uniformly instead
    learned: bool = False  # the dispersion is the noise scale learned from the state instead
    radius: float = 0.0  # this times a confidence radius is added to the optimism
    level: float = 0.0  # 2 log(1 / delta) in that radius
    diversity: float = 0.0  # greedy while each parameter's data have this much in all directions
    patience: float = 0.0  # number of first rewards with greedy choices in any case; -1: 4 k d
    joint: bool = False  # one sample of the shared parameter for all arms; not for a `Chooser`
    decay: float = 0.0  # epsilon is multiplied by (1 + number of rewards)^-decay
    weighted: bool = False  # a reward has the weight epsilon / n_arms over its propensity

    def plain(self) -> "Rule":
        """Return the rule with every number checked and converted to float."""
        if self.weighted and (self.joint or not self.epsilon > 0.0):
            raise InvalidValue(
                "a rule that weighs rewards needs propensities above 0: epsilon above 0 and "
                f"joint=False, got epsilon={self.epsilon!r} and joint={self.joint!r}"
            )
        return Rule(
            optimism=checks.real("a rule's optimism", self.optimism, min_value=0.0),
            dispersion=checks.real("a rule's dispersion", self.dispersion, min_value=0.0),
            epsilon=checks.real("a rule's epsilon", self.epsilon, min_value=0.0, max_value=1.0),
            learned=bool(self.learned),
            radius=checks.real("a rule's radius", self.radius, min_value=0.0),
            level=checks.real("a rule's level", self.level, min_value=0.0),
            diversity=checks.real("a rule's diversity", self.diversity, min_value=0.0),
            patience=checks.real("a rule's patience", self.patience, min_value=-1.0),
            joint=bool(self.joint),
            decay=checks.real("a rule's decay", self.decay, min_value=0.0, max_value=1.0),
            weighted=bool(self.weighted),
        )
