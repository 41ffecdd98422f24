"""The claims of the paper that an audit tests."""

from keyhole.lab.audit.claims import estimates, observations, pulls, regret
from keyhole.lab.audit.claims.claim import Claim

# Of Algorithm 1, in the order of the appendices.
CLAIMS: tuple[Claim, ...] = (
    observations.TRUNCATION,
    observations.TAILS,
    observations.PREDICTION,
    estimates.ELLIPSOIDS,
    estimates.SUPERMARTINGALE,
    estimates.GROWTH,
    pulls.CHOICES,
    estimates.ESTIMATION,
    estimates.SAMPLING,
    pulls.ODDS,
    pulls.FIRST,
    pulls.SECOND,
    pulls.THIRD,
    pulls.ALL,
    pulls.PULLS,
    estimates.ACCURACY,
    regret.SUBOPTIMAL,
    regret.REGRET,
)
# Of Algorithm 2, with one parameter for all arms.
SHARED_CLAIMS: tuple[Claim, ...] = (
    estimates.ELLIPSOIDS,
    estimates.SUPERMARTINGALE,
    estimates.GROWTH,
    estimates.SAMPLING,
    estimates.SHARED_ACCURACY,
    regret.SHARED_SUBOPTIMAL,
    regret.SHARED_REGRET,
)

__all__ = ["CLAIMS", "SHARED_CLAIMS", "Claim"]
