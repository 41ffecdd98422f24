"""One sample of a shared parameter for all arms, in place of one for each (`draw="joint"`).

Scores are then dependent: score_i = y_i'theta with one theta ~ N(mean, v^2 P) for all arms. The
probability that one of them is the largest is an integral over as many dimensions as there are
other arms, of which only that of two arms is in closed form here.
"""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np

from keyhole.core.kernels import Floats, Rule
from keyhole.core.learners.draws import Draws
from keyhole.core.learners.protocol import Chosen
from keyhole.core.posterior import Posterior


def choose_jointly(
    posterior: Posterior, rule: Rule, rows: Floats, n_arms: int, draws: Draws
) -> tuple[Chosen, float]:
    """Choose the arm with the largest reward under one sample of the shared parameter.

    The d normals of the sample are those of `draws.generator()`: runs can be replayed.

    Parameters
    ----------
    posterior : Posterior
        The posterior of the one parameter.
    rule : Rule
        The rule of the policy, with `joint`.
    rows : ndarray of shape (1, d) or (n_arms, d)
        The observation of all arms, which are then alike, or one for each.
    n_arms : int
        The number of arms.
    draws : Draws
        Random numbers.

    Returns
    -------
    chosen : Chosen
        The arm, with its probability if there are at most two arms.
    score : float
        Its score.
    """
    v = float(posterior.explorations(rule)[1][0])
    z = draws.generator().standard_normal(posterior.dim)
    # B = L L', so that L'^-1 z has the covariance P.
    root = np.linalg.cholesky(posterior.precision[0])
    theta = posterior.mean[0] + v * np.linalg.solve(root.T, z)
    scores = np.broadcast_to(rows @ theta, n_arms)
    best = np.flatnonzero(scores == scores.max())
    # The second uniform number breaks ties, as in the kernels.
    arm = int(best[min(int(draws.uniforms[1] * best.size), best.size - 1)])
    return Chosen(arm, joint_probability(posterior, v, rows, n_arms, arm)), float(scores[arm])


def joint_probability(
    posterior: Posterior, v: float, rows: Floats, n_arms: int, arm: int
) -> float | None:
    """Return the probability that an arm is chosen, or None if it is not known.

    Parameters
    ----------
    posterior : Posterior
        The posterior of the one parameter.
    v : float
        The dispersion.
    rows : ndarray of shape (1, d) or (n_arms, d)
        As in `choose_jointly`.
    n_arms : int
        The number of arms.
    arm : int
        The index of the arm.
    """
    if len(rows) == 1:
        return 1.0 / n_arms  # all scores are equal
    if n_arms != 2:
        return None
    apart = rows[arm] - rows[1 - arm]
    gap = float(apart @ posterior.mean[0])
    scale = v * sqrt(max(float(apart @ posterior.covariance[0] @ apart), 0.0))
    if scale == 0.0:
        return 0.5 if gap == 0.0 else float(gap > 0.0)
    return 0.5 * erfc(-gap / scale / sqrt(2.0))
