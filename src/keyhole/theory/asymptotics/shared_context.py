"""Expected regret round by round, where all arms see one context.

As in `own_contexts`, the matrices B_k follow a deterministic path. Its integrals over y have no
closed form: rounds are drawn once, and played again at every time. Once wrong choices are rare,
few draws are near a tie, and the first order of the regret, an integral over ties, takes over.
"""

from __future__ import annotations

import numpy as np

from keyhole.core import Streams
from keyhole.theory.asymptotics.cones import Cones, pair_terms
from keyhole.theory.asymptotics.information import mean_covariance
from keyhole.theory.asymptotics.models import Model
from keyhole.theory.ranges import Floats

DRAWS = 16_384
# The share of wrong choices below which the first order is used.
RARE = 0.05


def rates(model: Model, cones: Cones, times: Floats) -> Floats:
    """Return the expected regret of the round at each time.

    Parameters
    ----------
    model : Model
        A model with a shared context.
    cones : Cones
        Its cones.
    times : ndarray
        Increasing rounds, the first of them 1.
    """
    streams = Streams(0)
    u = streams["contexts"].standard_normal((DRAWS, model.rank))
    noise = streams["scores"].standard_normal((DRAWS, model.n_arms))
    values = u @ model.gains.T
    gaps = values.max(axis=1, keepdims=True) - values
    wins, faces = cones.wins.mean(axis=0), cones.faces.mean(axis=0)
    # In the first round all arms are alike.
    seen = np.broadcast_to(np.eye(model.rank) / model.n_arms, wins.shape)
    result, drawn = [float(gaps.mean())], True
    for step in np.diff(times[1:], append=times[-1]):
        mean, spreads = _scores(model, seen)
        if drawn:
            variance = np.einsum("na,kab,nb->nk", u, spreads, u, optimize=True)
            chosen = (u @ mean.T + np.sqrt(np.maximum(variance, 0.0)) * noise).argmax(axis=1)
            lost = gaps[np.arange(DRAWS), chosen]
            gained = np.stack(
                [u[chosen == k].T @ u[chosen == k] / DRAWS for k in range(model.n_arms)]
            )
            drawn = bool((lost > 0.0).mean() > RARE)
        if drawn:
            result.append(float(lost.mean()))
        else:
            gained = wins
            # The first order knows no limit; a choice at random, as in the first round, is one.
            result.append(min(0.5 * float(pair_terms(spreads, faces).sum()), result[0]))
        seen = seen + step * gained
    return np.array(result[: len(times)])


def _scores(model: Model, seen: Floats) -> tuple[Floats, Floats]:
    """Return the mean of each arm's score as a gain, and the matrix of its variance."""
    # Every pull brings |u|^2, which is the rank on average.
    pulls = np.trace(seen, axis1=1, axis2=2) / model.rank
    covariance = mean_covariance(model.prior, seen, pulls)
    estimated = covariance - covariance @ model.prior @ covariance
    shrunk = np.einsum("kij,jl,kl->ki", covariance, model.prior, model.gains)
    noise, dispersion = model.noise[:, None, None], model.dispersion[:, None, None]
    return model.gains - shrunk, noise * estimated + dispersion * covariance
