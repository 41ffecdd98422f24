"""Claims about estimates: lem:subg to lem:eta1, and thm:eta2."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from keyhole.lab.audit import controls
from keyhole.lab.audit.claims.claim import (
    EIGENVALUES,
    ELLIPSOID,
    NOISE,
    Claim,
    from_pulls,
    from_rounds,
)
from keyhole.lab.audit.measures import Measured, early, probability, rate
from keyhole.lab.audit.paths import Floats
from keyhole.lab.audit.scope import Scope
from keyhole.theory import STATEMENTS


def _covered(scope: Scope) -> Measured:
    # Nothing is claimed if an observation is longer than L, which lem:tr leaves to chance.
    reach = np.where(scope.traced.lengths > 1.0, 0.0, scope.traced.reach.max(axis=1))
    return probability(reach, scope.delta, f"; |mean - eta| reached {reach.max():.2f} radii")


def _grown(scope: Scope) -> Measured:
    often = scope.traced.pulls >= scope.enough
    if not often.any():
        most = scope.traced.pulls.max()
        return early(f"too few pulls: {most:.0f} at most, where {scope.enough:.0f} are needed")
    where = f", for parameters with {scope.enough:.0f} pulls or more"
    return probability(scope.traced.eigenvalues.max(axis=1), scope.delta, where)


def _within(ratios: Floats, scope: Scope) -> Measured:
    """Test ratios of estimates or samples, from the pulls on from which lem:eig is tested."""
    most = scope.traced.pulls.max()
    if most < scope.enough:
        return early(f"too few pulls: {most:.0f} at most, where {scope.enough:.0f} are needed")
    return probability(ratios.max(axis=1), scope.delta, f", from {scope.enough:.0f} pulls on")


def _below_limit(scope: Scope) -> Measured:
    if scope.is_noiseless:
        return early("R is 0, and D divides by it")
    return probability(scope.traced.martingale.max(axis=1), scope.delta)


def _by_rounds(scope: Scope) -> Measured:
    p = np.array([one.value for one in scope.promises.instance.p])
    arms = [0] if scope.shared else np.flatnonzero(p > 0.0)
    name, t = "estimation_error" if scope.shared else "theorem_1", scope.horizon
    formula = [
        STATEMENTS[name].at(scope.constants, horizon=t, n=t, t=t, p=1.0 if scope.shared else p[i])
        for i in arms
    ]
    errors = scope.traced.errors[:, :, arms]
    below = probability((errors[:, -1] / formula).max(axis=1), scope.delta)
    last = errors[:, -1].max(axis=1).mean()
    said = f"an error of {last:.2g} at the end, where the formula gives {max(formula):.2g}"
    return rate(
        errors.max(axis=2), scope, -0.5, below._replace(evidence=said), too_early=scope.early
    )


SUPERMARTINGALE = Claim(
    name="supermartingale",
    label="lem:dti",
    bound="confidence_radius",
    says=lambda s: (
        "M, the product of D, stays below 1 / delta in all rounds at once, with "
        f"probability {1 - s.delta:g}: the lemma at the round that it first does not"
    ),
    measure=_below_limit,
    control=controls.TRIPLE_NOISE,
    needs=NOISE,
)
ELLIPSOIDS = Claim(
    name="ellipsoid",
    label="lem:subg",
    bound="confidence_radius",
    says=lambda s: (
        "the confidence ellipsoids cover eta in all rounds at once if no observation is "
        f"longer than L, with probability {1 - s.delta:g}"
    ),
    measure=_covered,
    control=controls.LOUD,
    needs=ELLIPSOID,
)
GROWTH = Claim(
    name="eigenvalues",
    label="lem:eig",
    bound="covariance_bound",
    says=lambda s: (
        "the largest eigenvalue of B^-1 is at most 2 / (lambda_m n) at the end, with "
        f"probability {1 - s.delta:g}"
    ),
    measure=_grown,
    control=controls.BLIND,
    needs=EIGENVALUES,
    begins=from_pulls,
    kind="within the run",
)
ESTIMATION = Claim(
    name="estimation by pulls",
    label="lem:eta0",
    bound="estimation_error",
    says=lambda s: (
        f"|mean - eta| stays within h / sqrt(n) from {s.enough:.0f} pulls on, with probability "
        f"{1 - s.delta:g}"
    ),
    measure=lambda s: _within(s.traced.estimated, s),
    control=controls.LOUDEST,
    needs=EIGENVALUES,
    begins=from_pulls,
    kind="within the run",
)
SAMPLING = Claim(
    name="sampling",
    label="lem:eta1",
    bound="sampling_error",
    says=lambda s: (
        f"a sample of eta after every pull, from {s.enough:.0f} pulls on, stays within the bound's "
        f"formula, which falls like n^-1/2, with probability {1 - s.delta:g}"
    ),
    measure=lambda s: _within(s.traced.sampled, s),
    control=controls.BOLD,
    needs=EIGENVALUES,
    begins=from_pulls,
    kind="within the run",
)
ACCURACY = Claim(
    name="estimation by rounds",
    label="thm:eta2",
    bound="theorem_1",
    says=lambda _: "the estimation error falls like t^-1/2, and ends below the bound's formula",
    measure=_by_rounds,
    control=controls.SHIFTED,
    needs=EIGENVALUES,
    begins=from_rounds,
    kind="rate",
)
# With one parameter every round is a pull of it, and lem:eta0 is about rounds.
SHARED_ACCURACY = replace(ACCURACY, label="lem:eta0", bound="estimation_error")
