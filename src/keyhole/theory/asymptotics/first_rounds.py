"""Conditions under which the first rounds allow a finite-time curve.

The curve replaces the information of each arm by its mean. That leaves out arms that are starved by
chance: rewards that are nearly exact beside the prior, or an estimate that is held close to 0 by a
large prior, decide the choices of many rounds at once. The constant does not depend on them.
"""

from __future__ import annotations

import numpy as np

from keyhole.theory.asymptotics.models import Model

# The least kappa for v = R or more, and for less. Measured in docs/how-to/asymptote.md: below,
# the regret after 10,000 rounds can be more than 10% above the prediction.
LEAST_AT_R, LEAST_BELOW_R = 0.3, 2.0
# v = R may be given as a rounded number.
ROUNDING = 1e-9


def kappa(model: Model) -> float:
    """Return the least R_k^2 E[y'y] / (prior_precision Var(y'eta_k)) of all arms.

    It is the variance of a score under the prior, for v = R_k, over that of the values.

    Parameters
    ----------
    model : Model
        The model.
    """
    prior_variance = float(np.trace(np.linalg.inv(model.prior)))
    return float((model.noise * prior_variance / model.scales**2).min())


def refusal_of(model: Model) -> str:
    """Return the reason for which there is no curve, or an empty text if there is one.

    Parameters
    ----------
    model : Model
        The model.
    """
    if model.rank == 1 and (model.shared_context or model.shared_parameter):
        return (
            "the regret before the end is not predicted for observations of one dimension with a "
            "shared context or a shared parameter: nearly all of it is from the first rounds. "
            "Simulate it"
        )
    explores = bool((model.dispersion >= (1.0 - ROUNDING) * model.noise.max()).all())
    least = LEAST_AT_R if explores else LEAST_BELOW_R
    if (found := kappa(model)) >= least:
        return ""
    return (
        f"the regret before the end is predicted for kappa >= {least:g} (v "
        f"{'>=' if explores else '<'} R), got {found:.2g}: noise is small, or prior_precision "
        "large, beside the values of arms, and chance in the first rounds costs more than is "
        "derived. Give a smaller prior_precision, or simulate it"
    )
