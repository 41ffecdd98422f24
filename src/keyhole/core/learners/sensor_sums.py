"""Sums of rewards per configuration of a sensor, and what follows from them: weights and EM.

A configuration m is a sensor with the entries that it shows. Of an arm's rewards in it the sums
are n, B_m = sum u u', b_m = sum r u and sum r^2, where u holds the columns of a posterior at the
belief x_hat. With S_m = Cov(x | y) a reward has the variance s^2 + mu'S_m mu about x_hat'mu, so
that B = prior + sum_m w_m B_m with weights w_m proportional to 1 / (s^2 + mu'S_m mu). Everything
here is a function of these sums: no history is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole.core.kernels import Floats

# Rewards of mean square error, as if seen without any unseen context, before the reward's own
# variance is estimated: it is then never 0.
PRIOR_REWARDS = 2.0
# Halvings of an interval of 12 decades: the variance is then known to 1e-9 of itself.
HALVINGS = 45
SPAN = 1e-12
# EM converges linearly. Between two refreshes it goes on from where it stopped.
EM_STEPS = 100
EM_TOLERANCE = 1e-9


class Sums(NamedTuple):
    """Sums over the rewards of each of k parameters in one configuration."""

    gram: Floats  # (k, f, f)  sum u u'
    moment: Floats  # (k, f)  sum r u
    n: Floats  # (k,)  number of rewards
    squares: Floats  # (k,)  sum r^2

    @classmethod
    def empty(cls, n_parameters: int, size: int) -> Sums:
        """Return the sums of no rewards.

        Parameters
        ----------
        n_parameters : int
            The number of parameters.
        size : int
            The length of u.
        """
        k = n_parameters
        return cls(np.zeros((k, size, size)), np.zeros((k, size)), np.zeros(k), np.zeros(k))

    def add(self, parameter: int, row: Floats, reward: float) -> None:
        """Add a reward.

        Parameters
        ----------
        parameter : int
            The parameter that it belongs to.
        row : ndarray of shape (f,)
            u.
        reward : float
            The reward.
        """
        self.gram[parameter] += np.outer(row, row)
        self.moment[parameter] += reward * row
        self.n[parameter] += 1.0
        self.squares[parameter] += reward * reward

    def remove(self, parameter: int, row: Floats, reward: float) -> None:
        """Remove a reward that was added.

        Parameters
        ----------
        parameter, row, reward
            As in `add`.
        """
        self.gram[parameter] -= np.outer(row, row)
        self.moment[parameter] -= reward * row
        self.n[parameter] -= 1.0
        self.squares[parameter] = max(self.squares[parameter] - reward * reward, 0.0)
        if self.n[parameter] == 0.0:  # of nothing the sums are 0, and not what rounding left
            for array in self:
                array[parameter] = 0.0

    def amend(self, parameter: int, row: Floats, before: float, after: float) -> None:
        """Replace a reward that was added by another.

        Parameters
        ----------
        parameter : int
            The parameter that it belongs to.
        row : ndarray of shape (f,)
            u.
        before, after : float
            The reward that was added, and the one that replaces it.
        """
        self.moment[parameter] += (after - before) * row
        squares = self.squares[parameter] + after * after - before * before
        self.squares[parameter] = max(squares, 0.0)

    def copy(self) -> Sums:
        """Return an independent copy."""
        return Sums(*(array.copy() for array in self))

    def times(self, matrix: Floats) -> Sums:
        """Return the sums over matrix u in place of u."""
        return Sums(matrix @ self.gram @ matrix.T, self.moment @ matrix.T, self.n, self.squares)

    def moved(self, shift: float) -> Sums:
        """Return the sums over r + shift in place of r, where the first entry of u is 1."""
        total = self.moment[:, 0]  # sum r
        squares = self.squares + shift * (2.0 * total + shift * self.n)
        moment = self.moment + shift * self.gram[:, 0]
        return Sums(self.gram, moment, self.n, squares.clip(min=0.0))

    def of(self, parameters: list[int]) -> Sums:
        """Return a copy of the sums of these parameters, in this order."""
        return Sums(*(array[parameters] for array in self))

    def plus(self, other: Sums, sign: float = 1.0) -> Sums:
        """Return the sums of the rewards of both, or the difference.

        Parameters
        ----------
        other : Sums
            The other sums.
        sign : float, default 1.0
            1 adds the other sums, -1 subtracts them.
        """
        pairs = zip(self, other, strict=True)
        gram, moment, n, squares = (mine + sign * theirs for mine, theirs in pairs)
        # What rounding leaves of differences is no negative square, and nothing where n is 0.
        some = n != 0.0
        return Sums(
            gram * some[:, None, None], moment * some[:, None], n, squares.clip(min=0.0) * some
        )

    def errors(self, mean: Floats) -> Floats:
        """Return sum (r - u'mean)^2 of each parameter, (k,), for means of shape (k, f)."""
        fitted = np.einsum("kf,kfg,kg->k", mean, self.gram, mean)
        left: Floats = self.squares - 2.0 * np.einsum("kf,kf->k", mean, self.moment) + fitted
        return left.clip(min=0.0)


class Weighted(NamedTuple):
    """The sums of one parameter over all configurations, each times its weight."""

    gram: Floats  # (c, c)
    moment: Floats  # (c,)
    squares: float


def weighted(weights: Floats, gram: Floats, moment: Floats, squares: Floats) -> Weighted:
    """Return sums over configurations, (M, ...), each times its weight, (M,).

    Parameters
    ----------
    weights : ndarray of shape (M,)
        The weights.
    gram, moment, squares : ndarray of shape (M, c, c), (M, c) and (M,)
        B_m, b_m and sum r^2.
    """
    return Weighted(np.tensordot(weights, gram, axes=1), weights @ moment, float(weights @ squares))


def relative_weights(variance: Floats, n: Floats) -> tuple[Floats, float]:
    """Return weights proportional to 1 / variance with mean 1 over rewards, and their numerator.

    Parameters
    ----------
    variance : ndarray of shape (M,)
        s^2 + mu'S_m mu.
    n : ndarray of shape (M,)
        The number of rewards in each configuration, not all of them 0.
    """
    seen = n > 0.0
    if (variance[seen] == variance[seen][0]).all():
        # One configuration, or all alike: exactly 1, so that nothing is rounded.
        numerator = float(variance[seen][0])
        return np.where(seen, 1.0, numerator / variance), numerator
    numerator = float(n[seen].sum() / (n[seen] / variance[seen]).sum())
    return numerator / variance, numerator


def reward_variance(n: Floats, errors: Floats, unseen: Floats) -> float:
    """Return s^2, the variance of a reward given x, by maximum likelihood.

    Errors of the rewards in a group have the variance s^2 + unseen. Groups in which little is
    unseen tell most of s^2, and count accordingly.

    Parameters
    ----------
    n : ndarray of shape (g,)
        The number of rewards of each group, at least one of them above 0.
    errors : ndarray of shape (g,)
        The expected sum of squared errors of each group.
    unseen : ndarray of shape (g,)
        mu'S mu of each group.
    """
    used = n > 0.0
    n, errors, unseen = n[used], errors[used], unseen[used]
    typical = float(errors.sum() / n.sum())
    if typical <= 0.0:
        return 0.0
    n = np.append(n, PRIOR_REWARDS)
    errors, unseen = np.append(errors, PRIOR_REWARDS * typical), np.append(unseen, 0.0)
    low, high = SPAN * typical, float((errors / n).max())
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        variance = middle + unseen
        # Twice the derivative of the log likelihood.
        if ((errors / variance - n) / variance).sum() > 0.0:
            low = middle
        else:
            high = middle
    return high


def em_step(
    mean: Floats,
    reward_variance: float,
    unseen: Floats,
    sums: tuple[Floats, Floats, Floats, Floats],
    prior: Floats,
) -> Floats:
    """Return the next mean of EM, whose hidden variables are the contexts.

    With g = S mu / s_m^2 and s_m^2 = s^2 + mu'S mu, a reward moves the belief to
    E[x] = x_hat + g (r - x_hat'mu) and Cov(x) = S - s_m^2 g g'. Sums over all rewards follow from
    the sums of a configuration; the next mean solves (prior + sum E[x x'] / s^2) mu = sum E[x] r
    / s^2.

    Parameters
    ----------
    mean : ndarray of shape (c,)
        The present mean.
    reward_variance : float
        s^2.
    unseen : ndarray of shape (M, c, c)
        S_m, zero in columns that are known exactly.
    sums : tuple of ndarray
        B_m, b_m, n_m and sum r^2, of shapes (M, c, c), (M, c), (M,) and (M,).
    prior : ndarray of shape (c, c)
        The precision before any reward.
    """
    gram, moment, n, squares = sums
    spread = unseen @ mean  # (M, c)
    variance = reward_variance + spread @ mean  # (M,)
    g = spread / variance[:, None]
    along = gram @ mean  # B_m mu
    fitted = moment @ mean
    rewarded = moment + g * (squares - fitted)[:, None]
    errors = squares - 2.0 * fitted + along @ mean
    cross = g[:, :, None] * (moment - along)[:, None, :]
    outer = g[:, :, None] * g[:, None, :]
    second = (
        n[:, None, None] * (unseen - variance[:, None, None] * outer)
        + gram
        + cross
        + cross.transpose(0, 2, 1)
        + errors[:, None, None] * outer
    )
    left = prior + second.sum(axis=0) / reward_variance
    found: Floats = np.linalg.solve(left, rewarded.sum(axis=0) / reward_variance)
    return found


def em_mean(
    mean: Floats,
    reward_variance: float,
    unseen: Floats,
    sums: tuple[Floats, Floats, Floats, Floats],
    prior: Floats,
) -> Floats:
    """Return the mean that EM converges to.

    Parameters
    ----------
    mean, reward_variance, unseen, sums, prior
        As in `em_step`.
    """
    for _ in range(EM_STEPS):
        before, mean = mean, em_step(mean, reward_variance, unseen, sums, prior)
        if np.abs(mean - before).max() <= EM_TOLERANCE * np.abs(mean).max():
            break
    return mean
