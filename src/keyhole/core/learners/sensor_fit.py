"""`SensorFit`: the posterior over mu that follows from sums per configuration of the sensors.

It has the sums, the weights of the configurations and the posterior, and computes the last two from
the first. It learns no reward by itself: `SensorState` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.core.kernels import Floats
from keyhole.core.learners.arms import Arms
from keyhole.core.learners.sensor_configurations import CONTEXT, Configuration, configured
from keyhole.core.learners.sensor_estimates import Shrunk, unshrunk
from keyhole.core.learners.sensor_sums import (
    Sums,
    Weighted,
    em_mean,
    relative_weights,
    reward_variance,
    weighted,
)
from keyhole.core.observers import REWARDS
from keyhole.core.posterior import Posterior

if TYPE_CHECKING:
    from keyhole.core.learners.sensor_learner import SensorLearner

# Weights are refreshed when an arm's rewards have grown by this factor: 31 times up to 1,000.
GROWTH = 1.25
# The prior standard deviation of an arm's constant, in root mean squares of an arm's rewards about
# their common zero: that of coefficients is in units of the noise, and too narrow for arms whose
# rewards are many times the noise apart.
WIDTH = 2.0
# A wider prior is none: beyond, rounding of the constant would show in other columns.
WIDEST = 1e4
# Configurations without rewards that are remembered for the next choice.
GLIMPSES = 64


class SensorFit:
    """Sums per configuration, and weights and a posterior that are computed from them.

    Parameters
    ----------
    learner : SensorLearner
        The recipe.
    arms : Arms
        The names of the arms.
    """

    def __init__(self, learner: SensorLearner, arms: Arms) -> None:
        self.learner, self.arms = learner, arms
        self.sensors = list(learner.sensors)
        # With a constant, columns of x count from the mean of the contexts and rewards from the
        # median of the first ones.
        self.centre = learner.centre
        self.zero = 0.0
        self.first_rewards: list[float] = []
        k, c = arms.n_parameters, learner.n_columns
        self.configurations: list[Configuration] = []
        self.sums: list[Sums] = []
        self.places: dict[tuple[int, bytes], int] = {}
        self._glimpses: dict[tuple[int, bytes], Configuration] = {}
        self._unseen: Floats | None = None
        # The weight of each configuration for each parameter, NaN before its first reward.
        self.weights = np.empty((0, k))
        # A weight is this over the variance of a reward.
        self.numerators = np.full(k, np.nan)
        # Units of the posterior's columns: those of an estimated sensor's doubt follow mu'S mu, and
        # that of the constant, alike for all parameters, how far apart rewards are.
        self.units = np.ones((k, c))
        # The number of rewards at the last refresh of each parameter, and of s^2.
        self.refreshed, self.estimated = np.zeros(k), 0.0
        self.reward_variance = 1.0 if learner.reward_scale is None else learner.reward_scale**2
        self.configuration(CONTEXT, np.ones(learner.context_dim, dtype=bool))
        # Orthonormal columns, (k, c, r), that the rows of each parameter are combinations of; None
        # if these are all columns.
        self.bases: Floats | None = None
        self.posterior = self._empty_posterior(c)
        for i in range(k):
            self._set_units(i)
        self.set_bases()

    @property
    def n(self) -> Floats:
        """The number of rewards of each parameter."""
        n: Floats = self.posterior.core.state.n
        return n

    # -- configurations ---------------------------------------------------------------------------

    def configuration(self, sensor: int, seen: Any) -> int:
        """Return the index of a configuration, which is added if it is new.

        Parameters
        ----------
        sensor : int
            The index of the sensor, or `CONTEXT`.
        seen : ndarray of bool of shape (dim,)
            The entries that are not missing.
        """
        key = (sensor, seen.tobytes())
        place = self.places.get(key)
        if place is None:
            made, place = self.glimpsed(sensor, seen), len(self.configurations)
            configurations = [*self.configurations, made]
            sums = [*self.sums, Sums.empty(self.arms.n_parameters, len(made.constant))]
            unknown = np.full((1, self.arms.n_parameters), np.nan)
            weights = np.concatenate([self.weights, unknown])
            # All is made before anything is set, and the key comes last.
            self.configurations, self.sums, self.weights = configurations, sums, weights
            self._unseen, self.places[key] = None, place
        return place

    def glimpsed(self, sensor: int, seen: Any) -> Configuration:
        """Return a configuration to choose by; one without rewards is not added.

        Parameters
        ----------
        sensor : int
            The index of the sensor, or `CONTEXT`.
        seen : ndarray of bool of shape (dim,)
            The entries that are not missing.
        """
        key = (sensor, seen.tobytes())
        place = self.places.get(key)
        if place is not None:
            return self.configurations[place]
        made = self._glimpses.get(key)
        if made is None:
            made = configured(self.learner, self.sensors, self.centre, sensor, seen.copy())
            if len(self._glimpses) >= GLIMPSES:
                self._glimpses = {}
            self._glimpses[key] = made
        return made

    @property
    def unseen(self) -> Floats:
        """S of every configuration, (M, c, c)."""
        if self._unseen is None:
            self._unseen = np.stack([one.unseen for one in self.configurations])
        return self._unseen

    # -- columns ----------------------------------------------------------------------------------

    def _empty_posterior(self, dim: int) -> Posterior:
        prior = self.learner.policy.prior_precision
        return Posterior(n_parameters=self.arms.n_parameters, dim=dim, prior_precision=prior)

    def set_bases(self) -> None:
        """Choose the columns that are needed, and begin with an empty posterior in them.

        Rows of estimated sensors have x_hat and y, which say the same: they span fewer columns
        than there are. The prior is alike in all directions, so that any orthonormal basis of that
        span is as good, and directions that no row has would only blur the count of those that
        were learned. A known sensor, or a context that became known, needs all.
        """
        if self._needs_all_columns:
            self.bases, dim = None, self.learner.n_columns
        else:
            bases = [self._basis(i) for i in range(self.arms.n_parameters)]
            self.bases, dim = np.stack(bases), bases[0].shape[1]
        self.posterior = self._empty_posterior(dim)

    @property
    def _needs_all_columns(self) -> bool:
        has_known = len(self.learner.doubt_columns) < len(self.sensors)
        return has_known or bool(self.sums[0].n.any())

    def _basis(self, i: int) -> Floats:
        """Return an orthonormal basis of the rows of all sensors, in a parameter's units."""
        spans = []
        for j, sensor in enumerate(self.sensors):
            whole = configured(
                self.learner, self.sensors, self.centre, j, np.ones(sensor.dim, dtype=bool)
            ).columns
            # Without any constant the first entry of a base row, 1, goes nowhere.
            has_constant = self.learner.intercept or not sensor.is_centred
            spans.append(whole if has_constant else whole[:, 1:])
        spanned = self.units[i][:, None] * np.hstack(spans)
        basis: Floats = np.linalg.qr(spanned)[0]
        return basis

    def _in_basis(self, i: int, columns: Floats) -> Floats:
        """Return columns, (c, ...), in a parameter's units, and in its basis."""
        scaled: Floats = self.units[i].reshape(-1, *[1] * (columns.ndim - 1)) * columns
        return scaled if self.bases is None else self.bases[i].T @ scaled

    # -- weights ----------------------------------------------------------------------------------

    def refresh(self, parameter: int) -> None:
        """Compute the weights of a parameter anew, and its posterior from the sums.

        Parameters
        ----------
        parameter : int
            The parameter.
        """
        if float(self.n.sum()) < GROWTH * self.estimated:
            self._refresh(parameter)
        elif self.learner.intercept:  # the unit of the constant is that of all parameters
            self._refresh_each(changed=False)
        else:
            self._estimate_reward_variance()
            self._refresh(parameter)

    def refresh_all(self) -> None:
        """Refresh all parameters, whose sums or configurations have changed."""
        self._refresh_each(changed=True)

    def _refresh_each(self, *, changed: bool) -> None:
        if self.n.any():
            self._estimate_reward_variance()
        unit = self._constant_unit() if self.learner.intercept else None
        for i in range(self.arms.n_parameters):
            self._refresh(i, changed=changed, constant_unit=unit)

    def _refresh(
        self, i: int, *, changed: bool = False, constant_unit: float | None = None
    ) -> None:
        n = np.array([sums.n[i] for sums in self.sums])
        self.refreshed[i] = n.sum()
        # The posterior's coordinates are those of the units and the basis that it was built in.
        variance, units = self._variance(i), self.units[i].copy()
        self._set_units(i)
        if constant_unit is not None:
            self.units[i, 0] = constant_unit
        if self.bases is not None and (changed or not np.array_equal(units, self.units[i])):
            self.bases[i] = self._basis(i)
        if not n.any():
            return
        if (variance[n > 0.0] > 0.0).all():
            weights, self.numerators[i] = relative_weights(variance.clip(min=1e-300), n)
        else:  # rewards without any noise: all count alike
            weights = np.ones(len(n))
        weights = np.where(n > 0.0, weights, np.nan)
        same = np.array_equal(weights, self.weights[:, i], equal_nan=True)
        self.weights[:, i] = weights
        if changed or not same or not np.array_equal(units, self.units[i]) or self.learner.em:
            self._rebuild(i)

    def empty(self, parameters: Iterable[int]) -> None:
        """Begin anew with those of some parameters whose rewards were all taken out."""
        for i in parameters:
            if any(sums.n[i] for sums in self.sums):
                continue
            rows, fresh = np.array([i]), self._empty_posterior(self.posterior.dim)
            self.posterior.put_back(rows, fresh.rows(rows))
            self.weights[:, i], self.numerators[i], self.refreshed[i] = np.nan, np.nan, 0.0
        self.estimated = min(self.estimated, float(np.sum([sums.n for sums in self.sums])))
        if self.estimated == 0.0:
            scale = self.learner.reward_scale
            self.reward_variance = 1.0 if scale is None else scale**2

    def _variance(self, i: int) -> Floats:
        """Return s^2 + E[mu'S_m mu] of a parameter in each configuration."""
        return self.reward_variance + self._unseen_variance(i)

    def _unseen_variance(self, i: int) -> Floats:
        """Return E[mu'S_m mu] = m'S_m m + tr(S_m Cov(mu)) in each configuration, (M,)."""
        found: Floats = np.einsum("mcd,cd->m", self.unseen, self._second_moment(i))
        return found

    def _second_moment(self, i: int) -> Floats:
        """Return E[mu mu'] of a parameter, in the columns' own units."""
        mean, covariance = self._moments(i)
        return np.outer(mean, mean) + covariance

    def _moments(self, i: int) -> tuple[Floats, Floats]:
        """Return mean and covariance of a parameter, in the columns' own units."""
        state, units = self.posterior.state, self.units[i]
        lower = np.tril(state.covariance[i])
        mean, covariance = state.mean[i], lower + np.tril(lower, -1).T
        if self.bases is not None:
            basis, prior = self.bases[i], self.posterior.prior_precision
            beside = np.eye(len(units)) - basis @ basis.T  # where nothing is ever learned
            mean, covariance = basis @ mean, basis @ covariance @ basis.T + beside / prior
        scale = float(self.posterior.noise_scale()[i]) ** 2 * np.outer(units, units)
        return mean * units, scale * covariance

    def _set_units(self, i: int) -> None:
        """Scale the columns of estimated sensors to the doubt about them.

        delta = sqrt(a) gram^-1/2 theta, where theta has the prior covariance v^2 / prior, so that
        the unit of these columns is sqrt(prior a) / v, with a = mu'R mu = mu'S mu + mu'(R - S) mu.
        """
        learner = self.learner
        if not learner.doubt_columns:
            return
        first, d = int(learner.intercept), learner.context_dim
        of_x = slice(first, first + d)
        mean, covariance = self._moments(i)
        mu = mean[of_x]
        second = np.outer(mu, mu) + covariance[of_x, of_x]
        v = float(self.posterior.noise_scale()[i])
        for j, start in learner.doubt_columns.items():
            sensor = self.sensors[j]
            if sensor.doubt is None or v <= 0.0:
                continue
            unseen = sensor.view(np.ones(sensor.dim, dtype=bool)).covariance
            # What is unseen is a part of v^2. Directions of mu that no sensor shows would count
            # with their prior variance otherwise, which may be many times that.
            share = min(float((unseen * second).sum()) / v**2, 1.0)
            share += float(mu @ (sensor.doubt.spread - unseen) @ mu) / v**2
            unit = np.sqrt(learner.policy.prior_precision * share)
            self.units[i, start : start + learner.n_corrections(j)] = unit

    def _constant_unit(self) -> float:
        """Return the unit of the constant: its prior is N(0, (WIDTH spread)^2), or that of mu.

        The spread is the root mean square of an arm's rewards about their common zero, averaged
        over the arms that have some, so that one that was left early counts as much as another.
        """
        n = np.sum([sums.n for sums in self.sums], axis=0)
        squares = np.sum([sums.squares for sums in self.sums], axis=0)
        v = float(self.posterior.noise_scale().min())
        spread = WIDTH * float(np.sqrt((squares[n > 0.0] / n[n > 0.0]).mean())) if n.any() else 0.0
        wanted = spread * float(np.sqrt(self.posterior.prior_precision))
        return float(np.clip(wanted / v, 1.0, WIDEST)) if v > 0.0 else 1.0

    def _in_columns(self, i: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return B_m, b_m, n_m and sum r^2 of a parameter, in the posterior's columns and units."""
        if not self.learner.doubt_columns:  # the base rows are the columns
            each = [
                (sums.gram[i], sums.moment[i], sums.n[i], sums.squares[i]) for sums in self.sums
            ]
            gram, moment, n, squares = (np.array(part) for part in zip(*each, strict=True))
            if self.learner.intercept:
                units = self.units[i]
                gram, moment = gram * np.outer(units, units), moment * units
            return gram, moment, n, squares
        parts = [
            sums.of([i]).times(self._in_basis(i, one.columns))
            for sums, one in zip(self.sums, self.configurations, strict=True)
        ]
        gram, moment, n, squares = (np.concatenate(part) for part in zip(*parts, strict=True))
        return gram, moment, n, squares

    def _rebuild(self, i: int) -> None:
        """Compute the posterior of a parameter from the sums and the weights."""
        gram, moment, n, squares = self._in_columns(i)
        weights = np.where(n > 0.0, self.weights[:, i], 0.0)
        total = weighted(weights, gram, moment, squares)
        state = self.posterior.state
        prior = self.posterior.prior_precision * np.eye(self.posterior.dim)
        precision = prior + total.gram
        b, r2 = total.moment, total.squares
        if self.learner.em and self.reward_variance > 0.0:
            b, r2 = self._em(i, precision, (gram, moment, n, squares), weights)
        # B is the upper triangle; P, below the diagonal, is recomputed.
        below = np.tril_indices(self.posterior.dim, -1)
        precision[below] = state.precision[i][below]
        state.precision[i] = precision
        state.moment[i], state.squares[i] = b, r2
        state.n[i] = state.weight[i] = n.sum()
        self.posterior.core.recompute_caches(i)

    def _em(
        self,
        i: int,
        precision: Floats,
        sums: tuple[Floats, Floats, Floats, Floats],
        weights: Floats,
    ) -> tuple[Floats, float]:
        """Return b and sum w r^2 of a posterior whose mean is that of EM."""
        columns = self._in_basis(i, np.eye(self.learner.n_columns))
        unseen = columns @ self.unseen @ columns.T
        # Relative weights are v^2 over a variance, and the prior's precision is one of them.
        prior = self.posterior.prior_precision / self.numerators[i] * np.eye(len(columns))
        start = np.asarray(np.linalg.solve(precision, weights @ sums[1]), dtype=np.float64)
        mean = em_mean(start, self.reward_variance, unseen, sums, prior)
        b = precision @ mean
        gram, moment, _, squares = sums
        total = weighted(weights, gram, moment, squares)
        left = total.squares - 2.0 * mean @ total.moment + mean @ total.gram @ mean
        penalty = self.posterior.prior_precision * float(mean @ mean)
        return b, float(left + penalty + b @ mean)

    def _estimate_reward_variance(self) -> None:
        """Estimate s^2, unless it is given, from the errors of all parameters."""
        self.estimated = float(self.n.sum())
        if self.learner.reward_scale is not None:
            return
        moments = [self._moments(i) for i in range(self.arms.n_parameters)]
        mean = np.array([one[0] for one in moments])
        covariance = np.array([one[1] for one in moments])
        second = mean[:, :, None] * mean[:, None, :] + covariance
        n, errors, unseen = [], [], []
        for sums, one in zip(self.sums, self.configurations, strict=True):
            if not sums.n.any():
                continue
            inside = sums.times(one.columns)
            n.append(sums.n)
            doubt = np.einsum("kcd,kcd->k", covariance, inside.gram)
            errors.append(inside.errors(mean) + doubt)
            unseen.append(np.einsum("cd,kcd->k", one.unseen, second))
        self.reward_variance = reward_variance(
            np.concatenate(n), np.concatenate(errors), np.concatenate(unseen)
        )

    def _first_weight(self, place: int, i: int) -> tuple[float, float]:
        """Return the weight of a configuration at its first reward, and the numerator of weights.

        The weight of the very first reward is 1.
        """
        # Of this configuration alone: where entries drop out at random, most rewards are a first
        # one, and there are many configurations.
        unseen = float((self.configurations[place].unseen * self._second_moment(i)).sum())
        variance, numerator = self.reward_variance + unseen, float(self.numerators[i])
        if np.isnan(numerator):
            numerator = variance
        return (1.0 if variance <= 0.0 else numerator / variance), numerator

    # -- the zero of rewards ----------------------------------------------------------------------

    def see_first_rewards(self, rewards: list[float]) -> bool:
        """Count rewards from the median of the first ones, and tell whether that moved the sums.

        Parameters
        ----------
        rewards : list of float
            Rewards to add to the first ones, as long as there are few.
        """
        first = (self.first_rewards + rewards)[:REWARDS]
        zero = float(np.median(first)) if first else 0.0
        if zero != self.zero:
            self.sums = [sums.moved(self.zero - zero) for sums in self.sums]
        moved = zero != self.zero
        self.first_rewards, self.zero = first, zero
        return moved

    @property
    def is_zero_fixed(self) -> bool:
        """True if no later reward moves the number that rewards are counted from."""
        return not self.learner.intercept or len(self.first_rewards) == REWARDS

    # -- reading ----------------------------------------------------------------------------------

    def rows(self, designs: Floats, arms: Arms) -> Floats:
        """Return the rows that a kernel chooses by: in each arm's units where those differ.

        Parameters
        ----------
        designs : ndarray of shape (1, c) or (n_arms, c)
            The columns of the posterior.
        arms : Arms
            The arms that they are of.
        """
        if not self.learner.doubt_columns:  # units are those of the constant, alike for all arms
            return designs * self.units[0] if self.learner.intercept else designs
        which = np.zeros(1, np.int64) if arms.shared else arms.parameter_of
        rows: Floats = designs * self.units[which]
        if self.bases is None:
            return rows
        if arms.shared:
            rows = rows @ self.bases[0]
        else:
            rows = np.einsum("nc,ncr->nr", rows, self.bases[which])
        return rows

    def estimates(self) -> tuple[Floats, Floats]:
        """Return mean and covariance of mu of each parameter, (k, d) and (k, d, d).

        They are those of least squares, without the prior; see `unshrunk`.
        """
        first, d = int(self.learner.intercept), self.learner.context_dim
        of_x = slice(first, first + d)
        found = [self._reported(i) for i in range(self.arms.n_parameters)]
        return (
            np.array([mean[of_x] for mean, _ in found]),
            np.array([covariance[of_x, of_x] for _, covariance in found]),
        )

    def constants(self) -> tuple[Floats, Floats]:
        """Return estimate and standard error of each parameter's constant, that at x = 0, (k,)."""
        at = np.zeros(self.learner.n_columns)
        at[0], at[1 : 1 + self.learner.context_dim] = 1.0, -self.centre
        found = [self._reported(i) for i in range(self.arms.n_parameters)]
        return (
            np.array([self.zero + at @ mean for mean, _ in found]),
            np.sqrt([at @ covariance @ at for _, covariance in found]),
        )

    def _reported(self, i: int) -> tuple[Floats, Floats]:
        """Return mean and covariance of a parameter without the prior of mu and the constant."""
        n, learner = np.array([sums.n[i] for sums in self.sums]), self.learner
        if learner.em or not n.any():  # EM has no least squares beside it
            return self._moments(i)
        units, total = self.units[i], self._weighted_in_all_columns(i, n)
        kept = np.full(learner.n_columns, self.posterior.prior_precision)
        kept[: int(learner.intercept) + learner.context_dim] = 0.0
        mean = self.posterior.state.mean[i]
        before = Shrunk(
            mean if self.bases is None else self.bases[i] @ mean,
            self.posterior.prior_precision,
            float(self.posterior.noise_scale()[i]) ** 2,
        )
        mean, covariance = unshrunk(total, float(n.sum()), kept, before)
        return mean * units, covariance * np.outer(units, units)

    def _weighted_in_all_columns(self, i: int, n: Floats) -> Weighted:
        """Return the weighted sums of a parameter in its units, but in no basis."""
        units = self.units[i][:, None]
        parts = [
            sums.of([i]).times(units * one.columns)
            for sums, one in zip(self.sums, self.configurations, strict=True)
        ]
        gram, moment, _, squares = (np.concatenate(part) for part in zip(*parts, strict=True))
        return weighted(np.where(n > 0.0, self.weights[:, i], 0.0), gram, moment, squares)
