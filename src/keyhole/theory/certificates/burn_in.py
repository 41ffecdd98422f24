"""`BurnIn`: simulated measurements of the first rounds, and their confidence.

Of n simulated runs, the largest regret and the smallest information of each arm bound a box. A
further run is in the box with a probability that is at least as large as a Beta(n - k + 1, k)
variable, with k = N + 1 numbers, whatever their distribution (Wilks, 1941; Wald, 1943, for several
numbers). With confidence c over the simulations, it is outside with probability at most p, where
P(Binomial(n, p) <= k - 1) = 1 - c. With k = 1, 59 runs give 95% confidence in 95%.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy.special import bdtr, betaincinv

from keyhole import checks
from keyhole.core import Policy
from keyhole.errors import InvalidValue
from keyhole.theory.certificates.setting import setting_of
from keyhole.theory.quantities import Arrays

# Eigenvalues of sums of many observations are rounded down by more than they can be off.
ROUND_DOWN = 1.0 - 1e-9


@dataclass(frozen=True, kw_only=True)
class BurnIn:
    """Measured numbers of the first rounds; `kh.audit.burn_in` measures them.

    Parameters
    ----------
    rounds : int
        The number of rounds, t0.
    runs : int
        The number of independent runs.
    regret : float
        The largest regret of any run after these rounds.
    information : tuple of float
        For each arm the smallest eigenvalue of Sigma^-1/2 (B - prior I) Sigma^-1/2 after these
        rounds, the smallest of any run.
    digest : str
        The digest of the world and the policy, by which a certificate recognises them.

    Raises
    ------
    InvalidValue
        If a number cannot be such a measurement.

    Examples
    --------
    >>> first = BurnIn(rounds=100, runs=200, regret=40.0, information=(3.0, 5.0), digest="")
    >>> round(first.failure(confidence=0.95), 4)
    0.0311
    """

    rounds: int
    runs: int
    regret: float
    information: tuple[float, ...]
    digest: str

    def __post_init__(self) -> None:
        checks.integer("BurnIn.rounds", self.rounds)
        checks.integer("BurnIn.runs", self.runs)
        checks.real("BurnIn.regret", self.regret, min_value=0.0)
        if len(self.information) < 2:
            raise InvalidValue(
                "BurnIn.information must have a number for each of two arms or more, got "
                f"{len(self.information)}"
            )
        for number in self.information:
            checks.real("BurnIn.information", number, min_value=0.0)

    @classmethod
    def measured(
        cls,
        world: Arrays,
        policy: Policy,
        *,
        rounds: int,
        regret: ArrayLike,
        precision: ArrayLike,
    ) -> BurnIn:
        """Return the burn-in of independent runs.

        Parameters
        ----------
        world : LinearWorld
            The world of the runs.
        policy : Policy
            Their policy.
        rounds : int
            The number of rounds of each.
        regret : array_like of shape (runs,)
            The regret of each run at its end.
        precision : array_like of shape (runs, n_arms, dim, dim)
            B of each arm at its end.

        Raises
        ------
        InvalidValue
            If no certificate covers the world or the policy, or an array has another shape.
        """
        setting = setting_of(world, policy)
        ends = checks.floats("regret", regret)
        ends_b = checks.floats("precision", precision)
        dim = len(setting.vectors)
        if ends.ndim != 1 or not len(ends) or ends_b.shape != (len(ends), setting.n_arms, dim, dim):
            raise InvalidValue(
                f"regret and precision must have shapes (runs,) and (runs, {setting.n_arms}, "
                f"{dim}, {dim}), got {ends.shape} and {ends_b.shape}"
            )
        least = setting.information(ends_b).min(axis=0) * ROUND_DOWN
        return cls(
            rounds=rounds,
            runs=len(ends),
            regret=float(ends.max()),
            information=tuple(float(one) for one in least),
            digest=setting.digest,
        )

    def failure(self, *, confidence: float = 0.95) -> float:
        """Return the probability that a further run is worse in some number, at most.

        Parameters
        ----------
        confidence : float, default 0.95
            The confidence over the simulations.
        """
        confidence = checks.real("confidence", confidence, above=0.0, max_value=1.0 - 1e-9)
        numbers = len(self.information) + 1
        if self.runs < numbers:
            return 1.0
        return float(betaincinv(numbers, self.runs - numbers + 1, confidence))


def runs_needed(n_arms: int, *, share: float, confidence: float = 0.95) -> int:
    """Return how many runs a burn-in needs so that a further run is worse with at most `share`.

    Parameters
    ----------
    n_arms : int
        The number of arms; with the regret, one number more is measured.
    share : float
        The probability.
    confidence : float, default 0.95
        The confidence over the simulations.

    Examples
    --------
    >>> runs_needed(2, share=0.025)
    250
    """
    share = checks.real("share", share, above=0.0, max_value=0.999)
    confidence = checks.real("confidence", confidence, above=0.0, max_value=1.0 - 1e-9)
    numbers = checks.integer("n_arms", n_arms, min_value=1) + 1
    low, high = numbers, numbers + 1
    while bdtr(numbers - 1, high, share) > 1.0 - confidence:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = bdtr(numbers - 1, middle, share) <= 1.0 - confidence
        low, high = (low, middle) if enough else (middle, high)
    return high
