"""The forward recursion of a certificate: from each block of rounds to the next."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from keyhole.theory.certificates.confusion import FarLoss, cones, errors, pair_losses, slopes
from keyhole.theory.certificates.deviation import Shared
from keyhole.theory.certificates.ellipsoid import Ellipsoid, spectrum
from keyhole.theory.certificates.exploration import Best, Information, best_moments
from keyhole.theory.certificates.setting import Setting
from keyhole.theory.ranges import Floats

# A block of rounds has one bound for each of them, that of its first round; an epoch of blocks has
# one ellipsoid. Shorter ones are tighter: blocks cost time, epochs a part of delta.
BLOCK_RATIO, EPOCH_RATIO = 1.03, 1.5
# Below this share of E G the pairs are the better bound, and the other is not computed.
FAR = 0.2


class Shares(NamedTuple):
    """The shares of the probability of failure."""

    information: float
    spectrum: float
    ellipsoid: float
    gap: float
    deviation: float
    monte_carlo: float = 0.0
    burn_in: float = 0.0


class Derivation(NamedTuple):
    """The bounds of each block of rounds.

    Parameters
    ----------
    starts : ndarray of int
        The first round of each block.
    stops : ndarray of int
        The round after its last.
    losses : ndarray
        r(t), the expected loss of each of its rounds, given the past.
    information, radii : ndarray of shape (blocks, n_arms)
        The bounds on lambda_min(S_i) and |mean - eta|_B.
    omega : ndarray
        The bound on lambda_max(S_i).
    leads : ndarray of shape (blocks, n_arms)
        How much each arm is explored, beside 2^-(N-1).
    """

    starts: Floats
    stops: Floats
    losses: Floats
    information: Floats
    radii: Floats
    omega: Floats
    leads: Floats


def edges(first: int, horizon: int) -> list[int]:
    """Return the first rounds of blocks, and the round after the last.

    Parameters
    ----------
    first, horizon : int
        The first and the last round.

    Examples
    --------
    >>> edges(1, 4), edges(100, 107)
    ([1, 2, 3, 4, 5], [100, 103, 107, 108])
    """
    found, at = [first], first
    while at <= horizon:
        at = min(max(at + 1, int(np.ceil(at * BLOCK_RATIO))), horizon + 1)
        found.append(at)
    return found


def derive(
    setting: Setting,
    *,
    first: int,
    horizon: int,
    start: Floats,
    shares: Shares,
    gap: float,
    shared: Shared | None,
) -> Derivation:
    """Return the bounds of every block from round `first` to the horizon.

    Parameters
    ----------
    setting : Setting
        The world and the policy.
    first, horizon : int
        The first and the last round.
    start : ndarray of shape (n_arms,)
        The information before the first round.
    shares : Shares
        How delta is split.
    gap : float
        E G, which no round's expected loss exceeds.
    shared : Shared or None
        Bounds of a shared context.
    """
    n = setting.n_arms
    times = edges(first, horizon)
    ends = _epoch_ends(times)
    information = Information(setting, horizon, shares.information, start)
    if shared is None:
        best = best_moments(setting)
    else:
        best = Best(shared.lead, np.full(n, setting.dim + 2.0), np.zeros(n))
    steep, far = slopes(setting), FarLoss(setting, best.first)
    each = n * len(ends)  # arms and epochs share what spectrum and ellipsoid may fail with
    rows = []
    end = 0
    for at, stop in pairwise(times):
        m = information.value
        if at >= end:
            end = ends.pop(0)
            omega = spectrum(end - 1, setting.dim, shares.spectrum / each)
            ellipsoid = Ellipsoid(setting, m, omega, shares.ellipsoid / each)
        radii = ellipsoid.radii(m)
        found = errors(setting, m, radii)
        pairs = float(pair_losses(setting, found, steep).sum())
        loss = min(pairs, far(m, radii) if pairs > FAR * gap else gap, gap)
        lead = (best.lead - cones(found).sum(axis=1)).clip(min=0.0)
        rows.append((at, stop, loss, m, radii, omega, lead))
        information.add(stop - at, lead, best.fourth)
    return Derivation(*(np.array(column) for column in zip(*rows, strict=True)))


def _epoch_ends(times: list[int]) -> list[int]:
    """Return the round after the last of each epoch."""
    found, begun = [], times[0]
    for at in times[1:-1]:
        if at >= EPOCH_RATIO * begun:
            found.append(at)
            begun = at
    return [*found, times[-1]]
