"""`SensorState`: sums per configuration of the sensors, and a posterior over mu built from them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.core import kernels
from keyhole.core.kernels import Floats, Rule
from keyhole.core.learners.arms import Arms
from keyhole.core.learners.sensor_sums import (
    Sums,
    em_mean,
    relative_weights,
    reward_variance,
    weighted,
)
from keyhole.core.observers import Moments, Sensor
from keyhole.core.posterior import Posterior
from keyhole.errors import InvalidValue

if TYPE_CHECKING:
    from keyhole.core.learners.sensor_learner import SensorLearner

# Weights are refreshed when an arm's rewards have grown by this factor: 31 times up to 1,000.
GROWTH = 1.25
# The configuration of rewards whose context became known. It is the first one.
CONTEXT = -1
# Configurations without rewards that are remembered for the next choice.
GLIMPSES = 64


@dataclass(frozen=True, eq=False)
class Configuration:
    """A sensor and the entries that it shows; the columns of a posterior follow from a base row.

    A known sensor's base row is its belief, which is final. That of an estimated sensor is its
    measurement, so that a better estimate of the sensor applies to all that was learned before.

    Parameters
    ----------
    sensor : int
        The index of the sensor, or `CONTEXT`.
    seen : ndarray of bool of shape (dim,)
        The entries that are not missing.
    gain : ndarray of shape (f, n_seen)
        The base row is constant + gain y.
    constant : ndarray of shape (f,)
        See `gain`.
    columns : ndarray of shape (c, f)
        The columns of the posterior are this times the base row.
    unseen : ndarray of shape (c, c)
        S = Cov(x | y), zero outside of the columns of x.
    """

    sensor: int
    seen: Any
    gain: Floats
    constant: Floats
    columns: Floats
    unseen: Floats

    def base(self, y: Floats) -> Floats:
        """Return the base row of a measurement, (dim,)."""
        row: Floats = self.constant + self.gain @ y[self.seen]
        return row

    def design(self, y: Floats) -> Floats:
        """Return the columns of the posterior at a measurement, before their units, (c,)."""
        row: Floats = self.columns @ self.base(y)
        return row


class SensorState:
    """What a `SensorLearner` has learned.

    The sums per configuration and the pairs of contexts and measurements are the state. Weights
    and the posterior are computed from them on a schedule.

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
        self.pairs: dict[int, Moments] = {
            j: sensor.pairs.copy()
            for j, sensor in enumerate(self.sensors)
            if sensor.pairs is not None
        }
        # The number of pairs from which each of those sensors was estimated last.
        self.paired = {j: float(pairs.seen[0]) for j, pairs in self.pairs.items()}
        k, c = arms.n_parameters, learner.n_columns
        self.configurations: list[Configuration] = []
        self.sums: list[Sums] = []
        self._places: dict[tuple[int, bytes], int] = {}
        self._glimpses: dict[tuple[int, bytes], Configuration] = {}
        self._unseen: Floats | None = None
        # The weight of each configuration for each parameter, NaN before its first reward.
        self.weights = np.empty((0, k))
        # A weight is this over the variance of a reward.
        self.numerators = np.full(k, np.nan)
        # Units of the posterior's columns: those of an estimated sensor's doubt follow mu'S mu.
        self.units = np.ones((k, c))
        # The number of rewards at the last refresh of each parameter, and of s^2.
        self.refreshed, self.estimated = np.zeros(k), 0.0
        self.reward_variance = 1.0 if learner.reward_scale is None else learner.reward_scale**2
        self._chooser: kernels.Chooser | None = None
        self.configuration(CONTEXT, np.ones(learner.context_dim, dtype=bool))
        # Orthonormal columns, (k, c, r), that the rows of each parameter are combinations of; None
        # if these are all columns.
        self.bases: Floats | None = None
        self.posterior = self._empty_posterior(c)
        for i in range(k):
            self._set_units(i)
        self.set_bases()

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
        place = self._places.get(key)
        if place is None:
            made, place = self.glimpsed(sensor, seen), len(self.configurations)
            configurations = [*self.configurations, made]
            sums = [*self.sums, Sums.empty(self.arms.n_parameters, len(made.constant))]
            unknown = np.full((1, self.arms.n_parameters), np.nan)
            weights = np.concatenate([self.weights, unknown])
            # All is made before anything is set, and the key comes last.
            self.configurations, self.sums, self.weights = configurations, sums, weights
            self._unseen, self._places[key] = None, place
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
        place = self._places.get(key)
        if place is not None:
            return self.configurations[place]
        made = self._glimpses.get(key)
        if made is None:
            made = self._configuration(sensor, seen.copy())
            if len(self._glimpses) >= GLIMPSES:
                self._glimpses = {}
            self._glimpses[key] = made
        return made

    def _configuration(self, sensor: int, seen: Any) -> Configuration:
        learner, c = self.learner, self.learner.n_columns
        first, d = int(learner.intercept), learner.context_dim
        of_x = slice(first, first + d)
        columns, unseen = np.eye(c, first + d), np.zeros((c, c))
        if sensor == CONTEXT:
            gain = np.eye(first + d, d, -first)
            constant = np.concatenate([np.ones(first), np.zeros(d)])
            return Configuration(sensor, seen, gain, constant, columns, unseen)
        now, view = self.sensors[sensor], self.sensors[sensor].view(seen)
        unseen[of_x, of_x] = view.covariance
        if now.doubt is None:
            gain = np.vstack([np.zeros((first, view.gain.shape[1])), view.gain])
            constant = np.concatenate([np.ones(first), view.constant])
            return Configuration(sensor, seen, gain, constant, columns, unseen)
        # The base row is (1, y - m), with the mean m of y in the recipe, which never changes.
        n_seen, middle = int(seen.sum()), learner.sensors[sensor].observation_mean[seen]
        gain = np.eye(1 + n_seen, n_seen, -1)
        constant = np.concatenate([[1.0], -middle])
        columns = np.zeros((c, 1 + n_seen))
        columns[:first, 0] = 1.0
        columns[of_x] = _affine(view.gain, view.constant, middle)
        # E[x | seen] = D E[y | seen]: the doubt about D counts at the expected measurement.
        matrix, vector = now.filling(seen)
        filled = _affine(matrix, vector - now.observation_mean, middle)
        # With a unit diagonal, measurements in units far apart do not drown each other.
        scale = np.sqrt(np.diag(now.doubt.gram))
        values, vectors = np.linalg.eigh(now.doubt.gram / np.outer(scale, scale))
        root = vectors / np.sqrt(values.clip(min=np.finfo(np.float64).eps))
        start = learner.doubt_columns[sensor]
        end = start + learner.n_corrections(sensor)
        if not now.is_centred:
            columns[start, 0] = 1.0 / np.sqrt(now.doubt.n)
        columns[end - now.dim : end] = root @ vectors.T @ (filled / scale[:, None])
        return Configuration(sensor, seen, gain, constant, columns, unseen)

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
            whole = self._configuration(j, np.ones(sensor.dim, dtype=bool)).columns
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

    # -- learning ---------------------------------------------------------------------------------

    @property
    def n(self) -> Floats:
        """The number of rewards of each parameter."""
        n: Floats = self.posterior.core.state.n
        return n

    def add(self, parameter: int, place: int, y: Floats, reward: float) -> None:
        """Learn a reward, and refresh what is due.

        Parameters
        ----------
        parameter : int
            The parameter of the arm.
        place : int
            The index of the configuration.
        y : ndarray of shape (dim,)
            The measurement, or the context.
        reward : float
            The reward.
        """
        i, one = parameter, self.configurations[place]
        row = one.base(y)
        if place == 0 and self.bases is not None:  # the first context that became known
            self.sums[place].add(i, row, reward)
            self.rebuild()
            return
        weight, numerator = self.weights[place, i], self.numerators[i]
        if np.isnan(weight):
            weight, numerator = self._first_weight(place, i)
        root = float(np.sqrt(weight))
        learned = root * self._in_basis(i, one.columns @ row)[None]
        # What may fail comes first.
        self.posterior.learn_rows(np.array([i]), learned, np.array([root * reward]))
        self.weights[place, i], self.numerators[i] = weight, numerator
        self.sums[place].add(i, row, reward)
        if self.n[i] >= GROWTH * self.refreshed[i]:
            self.refresh(i)

    def _first_weight(self, place: int, i: int) -> tuple[float, float]:
        """Return the weight of a configuration at its first reward, and the numerator of weights.

        The weight of the very first reward is 1.
        """
        variance, numerator = float(self._variance(i)[place]), float(self.numerators[i])
        if np.isnan(numerator):
            numerator = variance
        return (1.0 if variance <= 0.0 else numerator / variance), numerator

    def learn(
        self, parameter: int, sensor: int, y: Floats, reward: float, context: Floats | None
    ) -> None:
        """Learn a reward, and the context if it is known: all of it, or nothing if that raises.

        Parameters
        ----------
        parameter : int
            The parameter of the arm.
        sensor : int
            The index of the sensor.
        y : ndarray of shape (dim,)
            The measurement.
        reward : float
            The reward.
        context : ndarray of shape (context_dim,) or None
            The context.
        """
        seen = ~np.isnan(y)
        # A reward that changes no more than its own sums and posterior does so at once. A new
        # configuration without rewards, which is left if that fails, means nothing.
        is_plain = self.n[parameter] + 1.0 < GROWTH * self.refreshed[parameter]
        if context is not None:
            is_plain = is_plain and self.bases is None and sensor not in self.pairs
        state = self if is_plain else self.copy()
        if context is None:
            state.add(parameter, state.configuration(sensor, seen), y, reward)
        else:
            state.add(parameter, 0, context, reward)
            state.see_pair(sensor, context, y)
        if state is not self:
            vars(self).update(vars(state))

    def see_pair(self, sensor: int, x: Floats, y: Floats) -> None:
        """Improve an estimated sensor by a context and its measurement.

        Parameters
        ----------
        sensor : int
            The index of the sensor. One that is known stays as it is.
        x, y : ndarray of shape (context_dim,) and (dim,)
            The pair. A measurement with missing entries is left out.
        """
        if sensor not in self.pairs or np.isnan(y).any():
            return
        self.pairs[sensor].add(np.concatenate([x, y])[None])
        if float(self.pairs[sensor].seen[0]) >= GROWTH * max(self.paired[sensor], 1.0):
            self.estimate_sensor(sensor)
            self.refresh_all()

    def estimate_sensor(self, sensor: int) -> None:
        """Estimate a sensor from all of its pairs, and convert its configurations."""
        pairs = self.pairs[sensor]
        self.paired[sensor] = float(pairs.seen[0])
        self.sensors[sensor] = Sensor.of_pairs(
            pairs, self.learner.context_dim, self.learner.sensors[sensor].is_centred
        )
        self._glimpses = {}
        for place, one in enumerate(self.configurations):
            if one.sensor == sensor:
                self.configurations[place] = self._configuration(sensor, one.seen)
        self._unseen = None

    # -- weights ----------------------------------------------------------------------------------

    def refresh(self, parameter: int) -> None:
        """Compute the weights of a parameter anew, and its posterior from the sums.

        Parameters
        ----------
        parameter : int
            The parameter.
        """
        total = float(self.n.sum())
        if self.learner.reward_scale is None and total >= GROWTH * self.estimated:
            self._estimate_reward_variance()
        self._refresh(parameter)

    def refresh_all(self) -> None:
        """Do so for all parameters, whose sums or configurations have changed."""
        if self.learner.reward_scale is None and self.n.any():
            self._estimate_reward_variance()
        for i in range(self.arms.n_parameters):
            self._refresh(i, changed=True)

    def _refresh(self, i: int, *, changed: bool = False) -> None:
        n = np.array([sums.n[i] for sums in self.sums])
        self.refreshed[i] = n.sum()
        # The posterior's coordinates are those of the units and the basis that it was built in.
        variance, units = self._variance(i), self.units[i].copy()
        self._set_units(i)
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

    def _in_columns(self, i: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return B_m, b_m, n_m and sum r^2 of a parameter, in the posterior's columns and units."""
        if not self.learner.doubt_columns:  # the base rows are the columns
            each = [
                (sums.gram[i], sums.moment[i], sums.n[i], sums.squares[i]) for sums in self.sums
            ]
            gram, moment, n, squares = (np.array(part) for part in zip(*each, strict=True))
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
        """Estimate s^2 from the errors of all parameters in all configurations."""
        self.estimated = float(self.n.sum())
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

    # -- choosing ---------------------------------------------------------------------------------

    def rows(self, designs: Floats, arms: Arms) -> Floats:
        """Return the rows that a kernel chooses by: in each arm's units where those differ.

        Parameters
        ----------
        designs : ndarray of shape (1, c) or (n_arms, c)
            The columns of the posterior.
        arms : Arms
            The arms that they are of.
        """
        if not self.learner.doubt_columns:
            return designs
        which = np.zeros(1, np.int64) if arms.shared else arms.parameter_of
        rows: Floats = designs * self.units[which]
        if self.bases is None:
            return rows
        if arms.shared:
            rows = rows @ self.bases[0]
        else:
            rows = np.einsum("nc,ncr->nr", rows, self.bases[which])
        return rows

    @cached_property
    def rule(self) -> Rule:
        """The rule of the policy."""
        rule = self.learner.policy.plain_rule()
        if rule.weighted or rule.decay > 0.0:
            raise InvalidValue(
                "sensors need a policy without weights and with a constant epsilon, "
                f"got {self.learner.policy!r}"
            )
        return rule

    def chooser(self, arms: Arms) -> kernels.Chooser:
        """Return the compiled part that chooses among some arms; that for all is kept."""
        kept, core = self._chooser, self.posterior.core
        if arms is self.arms and kept is not None and kept.core is core:
            return kept
        made = kernels.Chooser(core, self.rule, arms.parameter_of, keeps=True)
        if arms is self.arms:
            self._chooser = made
        return made

    def estimates(self) -> tuple[Floats, Floats]:
        """Return mean and covariance of mu of each parameter, (k, d) and (k, d, d)."""
        first, d = int(self.learner.intercept), self.learner.context_dim
        of_x = slice(first, first + d)
        found = [self._moments(i) for i in range(self.arms.n_parameters)]
        return (
            np.array([mean[of_x] for mean, _ in found]),
            np.array([covariance[of_x, of_x] for _, covariance in found]),
        )

    # -- copies and merging -----------------------------------------------------------------------

    def copy(self) -> SensorState:
        """Return an independent copy."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        # The compiled part holds the arrays of this very posterior.
        return {**vars(self), "_chooser": None, "_glimpses": {}}

    def __deepcopy__(self, memo: dict[int, Any]) -> SensorState:
        twin = object.__new__(SensorState)
        kept = ("learner", "rule", "arms", "_unseen")  # which never change
        listed = ("configurations", "sensors", "_places")  # whose entries never do
        for name, value in self.__getstate__().items():
            if name in kept:
                vars(twin)[name] = value
            elif name == "sums":
                vars(twin)[name] = [sums.copy() for sums in value]
            else:
                vars(twin)[name] = (copy.copy if name in listed else copy.deepcopy)(value)
        return twin

    def merged(self, other: SensorState, base: SensorState | None) -> SensorState:
        """Return what both have learned, since `base` if both went on from one.

        Sums are added by the names of arms and by configuration.

        Parameters
        ----------
        other : SensorState
            The other one, of an equal learner and the same arms.
        base : SensorState or None
            The one from which both went on.

        Raises
        ------
        InvalidValue
            If arms differ, or the base has rewards that one of the two lacks.
        """
        made = self.copy()
        for each, sign in ((other, 1.0), (base, -1.0)):
            if each is None:
                continue
            if set(each.arms.names) != set(self.arms.names):
                raise InvalidValue(
                    f"arms must be the same in bandits that are merged, got {self.arms.names} "
                    f"and {each.arms.names}"
                )
            order = [each.arms.parameter(arm) for arm in self.arms.names]
            for sums, one in zip(each.sums, each.configurations, strict=True):
                place = made.configuration(one.sensor, one.seen)
                theirs = sums if self.arms.shared else sums.of(order)
                made.sums[place] = made.sums[place].plus(theirs, sign)
        for j, pairs in made.pairs.items():
            known = self.learner.sensors[j].pairs if base is None else base.pairs[j]
            pairs.merge(other.pairs[j], known)
        if any((sums.n < 0.0).any() for sums in made.sums):
            raise InvalidValue("both bandits must have learned all that their base has")
        made.rebuild()
        return made

    def rebuild(self) -> None:
        """Compute everything from the sums and the pairs, after these have changed."""
        for j in self.pairs:
            self.estimate_sensor(j)
        if self._needs_all_columns != (self.bases is None):
            self.set_bases()
        # Weights follow from the posterior, which follows from weights: two passes bring both
        # close to what they converge to.
        for _ in range(2):
            self.refresh_all()


def _affine(matrix: Floats, vector: Floats, middle: Floats) -> Floats:
    """Return y -> vector + matrix y as a matrix times (1, y - middle)."""
    return np.column_stack([vector + matrix @ middle, matrix])
