"""kappa (eq:kappa) and the margin constant (ass:mar): how far the best arm leads the others.

Both are estimates. The safe value of kappa is a limit from order statistics. That of the margin
constant is a formula, since no sample shows how often gaps are smaller than its smallest one: there
is one for normal worlds. Elsewhere the estimate says "at least", and the safe value is infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.core import Seed, Streams
from keyhole.theory.limits import MISS, largest_margin, lowest_median
from keyhole.theory.quantities import Arrays, Quantity
from keyhole.theory.ranges import Floats

# How many rounds are drawn at a time.
BLOCK = 2_000
# A median or a ratio of fewer gaps than this is mostly noise.
LEAST_GAPS = 200


def separation(world: Arrays, p: Floats, trials: int, seed: Seed) -> tuple[Quantity, Quantity]:
    """Estimate kappa and the margin constant, from gaps over the length of all observations.

    Parameters
    ----------
    world : Arrays
        The world.
    p : ndarray of shape (n_arms,)
        Lower limits for the probability of each arm to be best; NaN for one that never is.
    trials : int
        The number of rounds.
    seed : int, numpy.random.SeedSequence or None
        Their seed.

    Returns
    -------
    tuple of Quantity
        kappa and the margin constant. NaN if no arm was best often enough.
    """
    n_arms = len(p)
    state = world.start(Streams(seed))
    pieces = [_normalised(world.rounds(state, BLOCK), n_arms) for _ in range(trials // BLOCK)]
    best = np.concatenate([piece[0] for piece in pieces])
    gaps = np.concatenate([piece[1] for piece in pieces])  # (trials, n_arms), inf for the best
    medians, ratios, seldom, lowest = [], [], [], [np.inf]
    for i in range(n_arms if n_arms > 1 else 0):
        own = gaps[best == i]
        if not np.isnan(p[i]):
            lowest.append(lowest_median(own.min(axis=1), miss=MISS / n_arms))
        if len(own) < 2 * LEAST_GAPS:
            seldom.append(str(i + 1))
            continue
        medians.append(_median(own.min(axis=1)))
        ratios += [_steepest(own[:, j]) for j in range(n_arms) if j != i]
    without = f"; without arms {', '.join(seldom)}, best too seldom to tell" if seldom else ""
    kappa = min(medians) if medians else (np.inf if n_arms == 1 else np.nan, 0.0)
    # With one arm nothing can be confused; with none seen often enough nothing can be said.
    margin = max(ratios) if ratios else (0.0 if n_arms == 1 else np.nan, 0.0)
    of_normal = largest_margin(
        world.eta, world.observation_covariance, p, shared_context=world.shared_context
    )
    at_least = "" if world.is_normal else "; at least, since gaps may be smaller than any seen"
    return (
        Quantity(
            *kappa,
            "eq:kappa",
            f"half of the time the best arm leads by this, normalised{without}",
            safe=min(lowest),
        ),
        Quantity(
            *margin,
            "ass:mar",
            f"P(0 < normalised gap <= u | arm i is best) <= C u{without}{at_least}",
            safe=of_normal if world.is_normal else np.inf,
        ),
    )


def _normalised(rounds: Any, n_arms: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the best arm of each round, and its lead over every other, over |y(t)|."""
    y = np.broadcast_to(rounds.observations, (len(rounds), n_arms, rounds.observations.shape[2]))
    best = rounds.values.argmax(axis=1)
    size = np.sqrt((y**2).sum(axis=(1, 2)))
    lead = rounds.values.max(axis=1, keepdims=True) - rounds.values
    with np.errstate(invalid="ignore", divide="ignore"):
        lead /= size[:, None]
    lead[np.arange(len(best)), best] = np.inf
    return best, lead


def _median(values: Floats) -> tuple[float, float]:
    """Return the median, and half the distance of the order statistics one SE off it."""
    ordered, n = np.sort(values), len(values)
    step = 0.5 * np.sqrt(n)
    low, high = (int(np.clip(n / 2 + sign * step, 0, n - 1)) for sign in (-1, 1))
    return float(np.median(ordered)), float(0.5 * (ordered[high] - ordered[low]))


def _steepest(gaps: Floats) -> tuple[float, float]:
    """Return the largest ratio of a share of gaps to the largest of them, and its error.

    One half of the gaps says where the ratio is largest and the other how large it is there: the
    largest of many noisy ratios would be too high.
    """
    half = len(gaps) // 2
    ordered = np.sort(gaps[:half][gaps[:half] > 0.0])
    if len(ordered) < LEAST_GAPS:
        return 0.0, 0.0
    shares = np.arange(LEAST_GAPS, len(ordered) + 1) / half
    limit = ordered[LEAST_GAPS - 1 + int((shares / ordered[LEAST_GAPS - 1 :]).argmax())]
    share = float(((gaps[half:] > 0.0) & (gaps[half:] <= limit)).mean())
    error = np.sqrt(share * (1.0 - share) / (len(gaps) - half))
    return float(share / limit), float(error / limit)
