"""Claims about suboptimal pulls and regret: thm:reg2 and thm:reg1.

A claim about the constant of regret, beside those about its power, is one more `Claim` here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from keyhole.lab.audit import controls
from keyhole.lab.audit.claims.claim import EIGENVALUES, Claim, from_rounds
from keyhole.lab.audit.measures import SUPPORT, Measured, probability, rate
from keyhole.lab.audit.scope import Scope
from keyhole.lab.evidence import share
from keyhole.lab.summary import rate_between
from keyhole.theory import STATEMENTS

# Powers of log T in the bounds of thm:reg2 and thm:reg1.
POWER, SHARED_POWER = 5.5, 3.5


def _power(scope: Scope) -> float:
    return SHARED_POWER if scope.shared else POWER


def _missed(scope: Scope) -> Measured:
    name = "shared_suboptimal_probability" if scope.shared else "suboptimal_probability"
    formula = STATEMENTS[name].at(scope.constants, horizon=scope.horizon, t=scope.horizon)
    shares = xr.DataArray(
        1.0 - scope.traced.suboptimal / scope.times,
        dims=("replication", "time"),
        coords={"time": scope.times},
    )
    missed = 1.0 - rate_between(shares).values
    last = share(scope.traced.last == 0.0)
    # A probability above 1 is no claim: nothing contradicts it.
    chance = min(formula, 1.0)
    seen = float(missed[:, -1].mean())
    below = Measured(
        last.p_against(1.0 - chance),
        last.p_for(1.0 - chance) <= SUPPORT and formula < 1.0,
        formula / seen if seen > 0.0 else np.inf,
        f"{seen:.1%} of the last pulls, where the formula gives {formula:.2g}"
        + (", which above 1 says nothing" if formula >= 1.0 else ""),
    )
    return rate(missed, scope, -0.5, below, too_early=scope.early_choices(0.5))


def _lost(scope: Scope) -> Measured:
    name = "shared_theorem" if scope.shared else "theorem_2"
    formula = STATEMENTS[name].at(scope.constants, horizon=scope.horizon)
    regret = scope.traced.regret
    below = probability(regret[:, -1] / formula, scope.delta)
    said = f"regret of {regret[:, -1].mean():,.0f}, where the formula gives {formula:.2g}"
    return rate(
        regret,
        scope,
        0.0,
        below._replace(evidence=said),
        too_early=scope.early_choices(1.0),
        log_power=_power(scope),
    )


SUBOPTIMAL = Claim(
    name="suboptimal pulls",
    label="thm:reg2",
    bound="suboptimal_probability",
    says=lambda _: (
        "the probability of a suboptimal pull falls like t^-1/2, and ends below the bound's formula"
    ),
    measure=_missed,
    control=controls.EPSILON,
    needs=EIGENVALUES,
    begins=from_rounds,
    kind="rate",
)
REGRET = Claim(
    name="regret",
    label="thm:reg2",
    bound="theorem_2",
    says=lambda s: (
        f"regret grows at most like (log t)^{_power(s):g}, and ends below the bound's formula"
    ),
    measure=_lost,
    control=controls.EPSILON,
    needs=EIGENVALUES,
    begins=from_rounds,
    kind="rate",
)
SHARED_SUBOPTIMAL = replace(SUBOPTIMAL, label="thm:reg1", bound="shared_suboptimal_probability")
SHARED_REGRET = replace(REGRET, label="thm:reg1", bound="shared_theorem")
