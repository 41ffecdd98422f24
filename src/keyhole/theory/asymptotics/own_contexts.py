"""Expected regret round by round, where every arm has a context of its own.

The matrices B_k are replaced by a deterministic path: in every round arm k's gains E[y_k y_k' 1(k
chosen)], under the scores that the path itself implies. Given the path, scores of arms are
independent, and the regret of a round is an integral over one number.
"""

from __future__ import annotations

import numpy as np

from keyhole.core import expected_largest
from keyhole.theory.asymptotics.information import mean_covariance
from keyhole.theory.asymptotics.models import Model
from keyhole.theory.asymptotics.pairs import first_order
from keyhole.theory.asymptotics.scores import Spread, chosen_moments
from keyhole.theory.ranges import Floats

# The least variance of a score, in units of that of the value. In one dimension, and for a shared
# parameter, a score may have none; its density would have no number.
LEAST = 1e-18
# A rate below this share of the best value is mostly rounding: it is a difference of two numbers
# of that size. The first order is then exact to about this share.
FAINT = 1e-6


def rates(model: Model, times: Floats) -> Floats:
    """Return the expected regret of the round at each time.

    Parameters
    ----------
    model : Model
        A model without a shared context.
    times : ndarray
        Increasing rounds, the first of them 1.
    """
    scales, n = model.scales, model.n_arms
    best = expected_largest(np.zeros(n), scales)
    # In the first round all arms are alike.
    across = along = np.full(n, 1.0 / n)
    result, steps = [best], np.diff(times[1:], append=times[-1])
    for step in steps:
        spread = spread_after(model, across, along)
        pulled, first, second = chosen_moments(spread)
        rate = best - float(scales @ first)
        if rate < FAINT * best:
            rate = 0.5 * float(first_order(model, spread.flat, spread.bent).sum())
        # Scores never do worse than a choice at random, as in the first round.
        result.append(min(rate, best))
        across, along = across + step * pulled, along + step * second
    return np.array(result[: len(times)])


def spread_after(model: Model, across: Floats, along: Floats) -> Spread:
    """Return the spread of scores about values, after given pulls.

    Parameters
    ----------
    model : Model
        The model.
    across : ndarray of shape (n_arms,)
        The sum of P(k chosen): the information of arm k in every direction but that of its gain.
    along : ndarray of shape (n_arms,)
        The sum of E[Z_k^2 1(k chosen)]: its information in that direction.
    """
    if model.shared_parameter:  # every pull tells of the one parameter
        across, along = (np.full(model.n_arms, total.sum()) for total in (across, along))
    unit = model.gains / model.scales[:, None]
    outer = unit[:, :, None] * unit[:, None, :]
    identity = np.eye(model.rank)
    seen = across[:, None, None] * (identity - outer) + along[:, None, None] * outer
    covariance = mean_covariance(model.prior, seen, across)
    # The estimate is eta + B^-1 (sum of noise y - prior eta).
    estimated = covariance - covariance @ model.prior @ covariance
    shrunk = np.einsum("kij,jl,kl->ki", covariance, model.prior, model.gains)

    def split(matrices: Floats) -> tuple[Floats, Floats]:
        """Return e'M e for the unit vector e of each gain, and the rest of the trace."""
        inner = np.einsum("ki,kij,kj->k", unit, matrices, unit)
        return inner, np.maximum(np.trace(matrices, axis1=1, axis2=2) - inner, 0.0)

    (noise_along, noise_across), (draw_along, draw_across) = split(estimated), split(covariance)
    noise, dispersion = model.common
    shrunk_along = (shrunk * unit).sum(axis=1)
    return Spread(
        slope=model.scales - shrunk_along,
        flat=model.noise * noise_across
        + model.dispersion * draw_across
        + np.maximum((shrunk**2).sum(axis=1) - shrunk_along**2, 0.0)
        + LEAST * model.scales**2,
        bent=noise * noise_along + dispersion * draw_along,
    )
