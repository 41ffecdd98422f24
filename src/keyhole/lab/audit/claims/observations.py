"""Claims about observations and rewards, whatever is chosen: lem:tr and lem:subg."""

from __future__ import annotations

import numpy as np

from keyhole.lab.audit import controls
from keyhole.lab.audit.claims.claim import NOISE, SUBGAUSSIAN, Claim
from keyhole.lab.audit.measures import Measured, probability
from keyhole.lab.audit.scope import Scope


def _truncated(scope: Scope) -> Measured:
    seen = scope.traced
    return probability(np.maximum(seen.entries, seen.lengths), scope.delta)


TRUNCATION = Claim(
    name="truncation",
    label="lem:tr",
    bound="length",
    says=lambda s: (
        "all entries of all observations stay within v_T = "
        f"{s.promises.length / np.sqrt(s.world.dim):.3g}, and their lengths within "
        f"L = {s.promises.length:.3g}, with probability {1 - s.delta:g}"
    ),
    measure=_truncated,
    control=controls.HEAVY,
    needs=SUBGAUSSIAN,
)
TAILS = Claim(
    name="tails",
    label="lem:subg",
    bound="confidence_radius",
    says=lambda s: (
        "rewards are R-sub-Gaussian about y'eta: all of them stay within "
        f"R sqrt(2 log(2 T N / delta)), with probability {1 - s.delta:g}"
    ),
    measure=lambda s: probability(s.traced.tails, s.delta),
    control=controls.HEAVY_REWARDS,
    needs=NOISE,
)
PREDICTION = Claim(
    name="prediction",
    label="lem:subg",
    bound="confidence_radius",
    says=lambda s: (
        "rewards are R-sub-Gaussian about y'eta: no cubic polynomial of y predicts the "
        f"error beyond its limit, with probability {1 - s.delta:g}"
    ),
    measure=lambda s: probability(s.predictability, s.delta),
    control=controls.SIGNS,
    needs=NOISE,
)
