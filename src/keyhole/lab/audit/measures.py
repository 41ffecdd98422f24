"""Tests of claims: exact binomial ones of probabilities, and Student's of rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

from keyhole.lab.audit.paths import Floats
from keyhole.lab.evidence import Slope, exponent, share

if TYPE_CHECKING:
    from keyhole.lab.audit.scope import Scope

# The level of evidence for a claim.
SUPPORT = 0.01
# An exponent within this distance of the claimed one counts as equal: at finite times exponents
# are not yet those of the limit.
CLOSE = 0.1
# A limit that is met exactly is kept, whatever rounding makes of it.
ROUNDING = 1e-9


class Measured(NamedTuple):
    """The numbers of a finding; see `Finding`."""

    p: float
    supported: bool
    slack: float
    evidence: str
    early: str = ""


def early(reason: str, slack: float = np.nan) -> Measured:
    """Return the result where there is too little to test.

    Parameters
    ----------
    reason : str
        The reason.
    slack : float, default NaN
        limit / seen, if it is known all the same.
    """
    return Measured(1.0, False, slack, reason, reason)


def slack_of(ratios: Floats, delta: float) -> float:
    """Return limit / seen, from seen / limit in every replication.

    It is taken at the quantile 1 - delta: a limit that is lower by this factor would still be
    exceeded in a share of at most delta.

    Parameters
    ----------
    ratios : ndarray of shape (replications,)
        seen / limit.
    delta : float
        The probability with which a limit may be exceeded.
    """
    worst = float(np.quantile(ratios, 1.0 - delta, method="higher"))
    return 1.0 / worst if worst > 0.0 else np.inf


def probability(ratios: Floats, delta: float, said: str = "") -> Measured:
    """Test that seen / limit exceeds 1 with probability at most delta.

    Parameters
    ----------
    ratios : ndarray of shape (replications,)
        seen / limit.
    delta : float
        The probability that is claimed.
    said : str, default ""
        More evidence.
    """
    kept = share(ratios <= 1.0 + ROUNDING)
    return Measured(
        kept.p_against(1.0 - delta),
        kept.p_for(1.0 - delta) <= SUPPORT,
        slack_of(ratios, delta),
        f"so in {kept} replications{said}",
    )


def rate(
    curves: Floats,
    scope: Scope,
    limit: float,
    formula: Measured,
    *,
    too_early: str,
    log_power: float = 0.0,
) -> Measured:
    """Test that a mean curve changes no faster than t^limit (log t)^log_power, and its formula.

    The rate is Student's test of a fitted exponent, and the formula an exact binomial one. Both
    together are one test: its p-value is twice the smaller one.

    Parameters
    ----------
    curves : ndarray of shape (replications, times)
        The curves at the checkpoints.
    scope : Scope
        The scope of the audit.
    limit : float
        The claimed power of t.
    formula : Measured
        The test that the curve ends below the bound's formula.
    too_early : str
        The reason why the rate cannot show yet; "" if it can.
    log_power : float, default 0
        The claimed power of log t.
    """
    if too_early:
        return early(too_early, formula.slack)
    late = scope.times >= 2  # log 1 is 0
    time = scope.times[late]
    found = exponent(
        xr.DataArray(
            curves[:, late] / np.log(time) ** log_power,
            dims=("replication", "time"),
            coords={"time": time},
        )
    )
    falls = not curves[:, -1].any()  # nothing was ever seen: there is nothing that could grow
    p = 1.0 if falls else found.p_above(limit + CLOSE)
    power = f" over (log t)^{log_power:g}" if log_power else ""
    return Measured(
        min(1.0, 2.0 * min(p, formula.p)),
        formula.supported and (falls or found.p_below(limit + CLOSE) <= SUPPORT),
        formula.slack,
        f"exponent in t{power}: {_shown(found)}, to be at most {limit + CLOSE:+.2f}; "
        f"{formula.evidence}",
    )


def _shown(found: Slope) -> str:
    return str(found) if np.isfinite(found.value) else "none"
