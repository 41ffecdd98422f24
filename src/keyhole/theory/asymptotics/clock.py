"""Rounds at which a curve is computed, and sums over the rounds between them."""

from __future__ import annotations

import numpy as np

from keyhole.theory.ranges import Floats

# Every round at first, then rounds that grow by this factor. With 1.02 curves change by 0.3%.
FACTOR = 1.15


def rounds_until(horizon: int) -> Floats:
    """Return the first rounds one by one, and then ever fewer, up to the horizon.

    Examples
    --------
    >>> rounds_until(15).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
    """
    times = [1]
    while times[-1] < horizon:
        times.append(min(horizon, max(times[-1] + 1, int(times[-1] * FACTOR))))
    return np.array(times, dtype=np.float64)


def summed(times: Floats, rates: Floats) -> Floats:
    """Return the sums of a rate over all rounds up to each time.

    Between two times, t times the rate is taken to be linear in log t, and the integral becomes a
    sum by the first term of Euler and Maclaurin.

    Parameters
    ----------
    times : ndarray
        Increasing rounds, the first of them 1.
    rates : ndarray
        The rate in each of these rounds.

    Examples
    --------
    >>> times = rounds_until(1000)
    >>> bool(abs(summed(times, 1 / times)[-1] - (1 / np.arange(1, 1001)).sum()) < 1e-3)
    True
    """
    scaled, steps = times * rates, np.diff(np.log(times))
    between = 0.5 * (scaled[1:] + scaled[:-1]) * steps + 0.5 * np.diff(rates)
    gains = np.where(np.diff(times) == 1.0, rates[1:], between)
    return np.concatenate([rates[:1], rates[0] + np.cumsum(gains)])
