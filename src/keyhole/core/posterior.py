"""`Posterior`: Gaussian posteriors of one or more parameters, as sums (eq:Bic, eq:etahatc).

Precision B = prior I + sum y y', moment b = sum r y, count n and sum r^2 are the state. They are
additive: a batch equals single updates, the order does not matter and posteriors can be merged.
A reward of weight w counts w times in all of them but n.
Covariance P = B^-1 and mean = P b are caches, changed by rank-one updates and recomputed from the
sums on a schedule.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole import checks
from keyhole.core import kernels
from keyhole.core.kernels import Floats, Ints, State
from keyhole.errors import InvalidValue, shown

# A direction counts as unseen if its eigenvalue of sum y y' is below this, in units in which the
# diagonal of the precision is 1.
UNSEEN = 1e-10


class Posterior:
    """Gaussian posteriors of `n_parameters` vectors of dimension `dim`, up to the noise variance.

    Sums of squares of up to 1e15 times the prior precision can be distinguished from it. Beyond
    that, float64 cannot hold both, and directions without observations look slightly more certain
    than they are.

    Parameters
    ----------
    n_parameters : int
        Number of parameters.
    dim : int
        Dimension of an observation, and of a parameter.
    prior_precision : float, default 1.0
        Precision of each coordinate before any reward.

    Examples
    --------
    >>> import keyhole as kh
    >>> posterior = kh.Posterior(n_parameters=1, dim=2, prior_precision=1.0)
    >>> posterior.learn(0, np.array([1.0, 2.0]), reward=3.0)
    >>> posterior.mean[0].round(12).tolist()        # 3 (1, 2) / (1 + 5)
    [0.5, 1.0]
    """

    _defers = True  # whether updates of large matrices are buffered

    def __init__(self, *, n_parameters: int, dim: int, prior_precision: float = 1.0) -> None:
        k = checks.integer("n_parameters", n_parameters)
        d = checks.integer("dim", dim)
        prior = checks.positive("prior_precision", prior_precision)
        _check_size(k, d)
        state = State(
            prior=np.full(k, prior),
            matrices=kernels.aligned_zeros((k, d + 1, d)),
            moment=np.empty((k, d)),
            n=np.empty(k),
            weight=np.empty(k),
            squares=np.empty(k),
            mean=np.empty((k, d)),
            residual=np.empty(k),
            penalty=np.empty(k),
            trace=np.empty(k),
            bound=np.empty(k),
            staleness=np.empty(k),
        )
        self._core = kernels.Core(state)
        self._core.forget()

    @property
    def core(self) -> kernels.Core:
        """The posterior as the kernels take it."""
        return self._core

    @property
    def state(self) -> State:
        """The arrays themselves, after pending updates of large matrices are flushed."""
        self._core.flush_all()
        state: State = self._core.state
        return state

    @property
    def prior_precision(self) -> float:
        """The precision of each coordinate before any reward."""
        return float(self._core.state.prior[0])

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return int(self._core.size)

    @property
    def dim(self) -> int:
        """The dimension of an observation, and of a parameter."""
        return int(self._core.dim)

    @property
    def precision(self) -> Floats:
        """B = prior I + sum y y', (n_parameters, dim, dim), read-only like the arrays below."""
        return _mirrored(self.state.precision.transpose(0, 2, 1))

    @property
    def moment(self) -> Floats:
        """b = sum r y, (n_parameters, dim)."""
        return _locked(self._core.state.moment)

    @property
    def count(self) -> Ints:
        """Number of rewards that each parameter has learned from."""
        counts: Ints = self._core.state.n.astype(np.int64)
        return counts

    @property
    def weight(self) -> Floats:
        """The sum of the weights of each parameter's rewards: their count, unless weighted."""
        return _locked(self._core.state.weight)

    @property
    def squares(self) -> Floats:
        """The sum of the squared rewards of each parameter."""
        return _locked(self._core.state.squares)

    @property
    def covariance(self) -> Floats:
        """P = B^-1, (n_parameters, dim, dim); the posterior's covariance is v^2 P."""
        return _mirrored(self.state.covariance)

    @property
    def mean(self) -> Floats:
        """P b, (n_parameters, dim): the estimate of each parameter."""
        return _locked(self._core.state.mean)

    def noise_scale(self) -> NDArray[np.float64]:
        """Return the standard deviation of each parameter's reward given y, as estimated.

        The estimate is the square root of the residual sum of squares over its degrees of freedom,
        with a weak prior at the estimate pooled over all parameters; the pooled estimate has a weak
        prior at the mean square of the rewards. It is 1 before any reward.

        Returns
        -------
        ndarray of shape (n_parameters,)
            The standard deviations.
        """
        return self.explorations(kernels.Rule(learned=True))[1]

    def explorations(self, rule: kernels.Rule) -> tuple[Floats, Floats]:
        """Return the optimism and the dispersion v of each parameter under a rule."""
        if not isinstance(rule, kernels.Rule):
            raise InvalidValue(f"rule must be a Rule, got {shown(rule)}")
        found: tuple[Floats, Floats] = kernels.Explorer(self._core, rule.plain()).explorations()
        return found

    def uniform_rate(self, rule: kernels.Rule, n: float | None = None) -> float:
        """Return the probability with which a rule picks an arm uniformly.

        Parameters
        ----------
        rule : Rule
            The rule.
        n : float, optional
            The number of rewards learned by then. By default those learned so far.
        """
        if rule.decay == 0.0:
            return rule.epsilon
        total = float(self._core.state.n.sum()) if n is None else n
        return float(kernels.Explorer(self._core, rule).rate_after(total))

    def scores(self, rule: kernels.Rule, parameter_of: Ints, y: Floats) -> tuple[Floats, Floats]:
        """Return location and scale of the score of each arm under a rule, (n, n_arms) each.

        Parameters
        ----------
        rule : Rule
            The rule.
        parameter_of : ndarray of int of shape (n_arms,)
            The parameter of each arm.
        y : ndarray of shape (n, dim) or (n, n_arms, dim)
            One row for all arms, or a row for each.
        """
        mean, width = self.predict(parameter_of, y)
        optimism, dispersion = self.explorations(rule)
        parameter_of = self._indices(parameter_of)
        return mean + optimism[parameter_of] * width, dispersion[parameter_of] * width

    def predict(self, parameter_of: Ints, y: Floats) -> tuple[Floats, Floats]:
        """Return mean and width (y'Py)^1/2 of y'eta, (n, n_arms) each.

        Parameters
        ----------
        parameter_of : ndarray of int of shape (n_arms,)
            The parameter of each arm.
        y : ndarray of shape (n, dim) or (n, n_arms, dim)
            One row for all arms, or a row for each.
        """
        parameter_of, y = self._indices(parameter_of), checks.floats("y", y)
        n = len(y) if y.ndim else 0
        if y.ndim < 2 or y.shape not in ((n, self.dim), (n, parameter_of.size, self.dim)):
            raise InvalidValue(
                f"y must have shape (n, {self.dim}) or (n, {parameter_of.size}, {self.dim}), "
                f"got {y.shape}"
            )
        rows = y if y.ndim == 3 else y[:, None]
        mean, width = np.empty((2, n, parameter_of.size))
        self._core.predict(parameter_of, rows, mean, width)
        return mean, width

    def least_squares(self, steps: Floats) -> tuple[Floats, Floats]:
        """Return estimates of steps @ eta without the prior, which shrinks them towards zero.

        Parameters
        ----------
        steps : ndarray of shape (m, dim)
            The linear combinations of coordinates to estimate.

        Returns
        -------
        estimate : ndarray of shape (n_parameters, m)
            Least-squares estimates; the posterior's in directions that were not seen.
        error : ndarray of shape (n_parameters, m)
            Standard errors; infinite where the rewards alone do not determine the combination.
        """
        estimate, error = np.empty((2, self.n_parameters, len(steps)))
        prior = self.prior_precision
        for i, precision in enumerate(self.precision):
            # In units of each coordinate's own size, so that large ones do not hide small ones.
            size = np.sqrt(np.diag(precision))
            data = (precision - prior * np.eye(self.dim)) / size / size[:, None]
            values, vectors = np.linalg.eigh(data)
            seen = values > UNSEEN
            gain = np.where(seen, 1.0 / np.where(seen, values, 1.0), 0.0)
            along, mean = (steps / size) @ vectors, (self.state.mean[i] / size) @ vectors
            # With D = sum y y' and b = (D + prior) mean: the estimate is mean + prior D^-1 mean,
            # and the sum of squares is less by what the prior costs and by what it moves.
            estimate[i] = steps @ self.state.mean[i] + prior * along @ (gain * mean)
            lost = self.state.penalty[i] + prior**2 * (gain * mean**2).sum()
            freedom = self.state.weight[i] - seen.sum()
            noise = max(self.state.residual[i] - lost, 0.0) / max(freedom, 1.0)
            error[i] = np.sqrt(noise * (along**2 @ gain))
            unseen = (along[:, ~seen] ** 2).sum(axis=1) > UNSEEN * (along**2).sum(axis=1)
            error[i, unseen | (freedom <= 0)] = np.inf
        return estimate, error

    def learn(self, parameter: int, y: Floats, reward: float) -> None:
        """Learn a reward of a parameter at an observation.

        Parameters
        ----------
        parameter : int
            Index of the parameter.
        y : ndarray of shape (dim,)
            The observation.
        reward : float
            The reward.
        """
        self.learn_many(
            [checks.integer("parameter", parameter, min_value=0)],
            checks.floats("y", y)[None],
            np.array([checks.real("reward", reward)]),
        )

    def learn_many(self, parameters: ArrayLike, y: Floats, rewards: Floats) -> None:
        """Learn many rewards at once.

        A parameter with fewer new rewards than dimensions is changed by rank-one updates. For one
        with more, the sums are updated first and the caches computed by one inverse, which is
        cheaper.

        Parameters
        ----------
        parameters : array_like of int of shape (n,)
            The parameter that each reward belongs to.
        y : ndarray of shape (n, dim)
            The observation of each reward.
        rewards : ndarray of shape (n,)
            The rewards.
        """
        y, rewards = checks.floats("y", y), checks.floats("rewards", rewards)
        parameter_of = self._indices(parameters)
        n = parameter_of.size
        if rewards.shape != (n,) or y.shape != (n, self.dim):
            raise InvalidValue(
                f"learn_many needs n parameters, n rewards and y of shape (n, {self.dim}), "
                f"got shapes {parameter_of.shape}, {rewards.shape} and {y.shape}"
            )
        self.learn_rows(parameter_of, y, rewards)

    def learn_rows(
        self, parameter_of: Ints, y: Floats, rewards: Floats, weights: Floats | None = None
    ) -> None:
        """Learn many rewards as `learn_many` does, from arrays that are already checked.

        Parameters
        ----------
        parameter_of : ndarray of int of shape (n,)
            The parameter that each reward belongs to.
        y : ndarray of shape (n, dim)
            The observation of each reward.
        rewards : ndarray of shape (n,)
            The rewards.
        weights : ndarray of shape (n,), optional
            The weight of each reward, above 0. By default 1.
        """
        often = np.bincount(parameter_of, minlength=self.n_parameters) >= max(self.dim, 2)
        self._core.learn(parameter_of, y, rewards, often, weights)

    def learn_in_order(self, parameter_of: Ints, y: Floats, rewards: Floats) -> None:
        """Learn rewards one after another: to the bit what one call for each comes to.

        Parameters
        ----------
        parameter_of, y, rewards
            As in `learn_rows`.
        """
        self._core.learn(parameter_of, y, rewards, np.zeros(self.n_parameters, dtype=bool))

    def add_sums(
        self, parameters: Ints, squares: Floats, moment: Floats, count: Floats, of_rewards: Floats
    ) -> None:
        """Add the sums of rewards that were added up elsewhere, each of weight 1.

        Parameters
        ----------
        parameters : ndarray of int of shape (m,)
            The parameters that they belong to, each once.
        squares : ndarray of shape (m, dim, dim)
            Sum of y y' of each; only the upper triangle is read.
        moment : ndarray of shape (m, dim)
            Sum of r y.
        count : ndarray of shape (m,)
            Number of rewards.
        of_rewards : ndarray of shape (m,)
            Sum of r^2.

        Raises
        ------
        InvalidValue
            If shapes differ, a number is not finite, or a parameter comes twice.
        """
        which, state = self._indices(parameters), self.state
        shapes = {"squares": (self.dim, self.dim), "moment": (self.dim,)}
        given = {"squares": squares, "moment": moment, "count": count, "of_rewards": of_rewards}
        for name, array in given.items():
            wanted = (len(which), *shapes.get(name, ()))
            if np.shape(array) != wanted or not np.isfinite(array).all():
                raise InvalidValue(
                    f"{name} must be finite numbers of shape {wanted}, got shape {np.shape(array)}"
                )
        if len(np.unique(which)) < len(which) or (count < 0.0).any():
            raise InvalidValue(
                "parameters must be different ones with counts of at least 0, got "
                f"{shown(which)} and {shown(count)}"
            )
        for k, i in enumerate(which.tolist()):
            state.precision[i] += np.triu(squares[k])
            state.moment[i] += moment[k]
            state.n[i] += count[k]
            state.weight[i] += count[k]
            state.squares[i] += of_rewards[k]
            self._core.recompute_caches(i)

    def rows(self, parameter_of: Ints) -> State:
        """Return a copy of the arrays of some parameters, which `put_back` restores."""
        return State(*(array[parameter_of] for array in self.state))

    def put_back(self, parameter_of: Ints, rows: State) -> None:
        """Restore the arrays of some parameters from a copy made by `rows`.

        Parameters
        ----------
        parameter_of : ndarray of int
            The parameters.
        rows : State
            The copy.
        """
        for array, before in zip(self.state, rows, strict=True):
            array[parameter_of] = before

    def exchange(self, parameter_of: Ints, old: Floats, new: Floats, rewards: Floats) -> None:
        """Replace the observations at which rewards were learned by others.

        Parameters
        ----------
        parameter_of : ndarray of int of shape (n,)
            The parameter that each reward belongs to.
        old, new : ndarray of shape (n, dim)
            The observations that were learned, and those that replace them.
        rewards : ndarray of shape (n,)
            The rewards that were learned.
        """
        for i in np.unique(parameter_of):
            rows = parameter_of == i
            change = new[rows].T @ new[rows] - old[rows].T @ old[rows]
            self.state.precision[i] += np.triu(change)
            self.state.moment[i] += rewards[rows] @ (new[rows] - old[rows])
            self._core.recompute_caches(int(i))

    def forget(self, parameter: int, y: Floats, reward: float, weight: float = 1.0) -> None:
        """Take out a reward that was learned: the sums are those without it.

        Parameters
        ----------
        parameter : int
            The parameter that it belongs to.
        y : ndarray of shape (dim,)
            The observation at which it was learned.
        reward : float
            The reward.
        weight : float, default 1.0
            The weight with which it was learned.

        Raises
        ------
        InvalidValue
            If the parameter has learned no reward.

        Examples
        --------
        >>> import keyhole as kh
        >>> posterior = kh.Posterior(n_parameters=1, dim=2)
        >>> posterior.learn(0, np.array([1.0, 2.0]), 3.0)
        >>> posterior.forget(0, np.array([1.0, 2.0]), 3.0)
        >>> posterior.precision[0].tolist(), posterior.count.tolist()
        ([[1.0, 0.0], [0.0, 1.0]], [0])
        """
        i, row, value = self._learned(parameter, y, reward)
        state, weight = self.state, checks.positive("weight", weight)
        state.n[i] -= 1.0
        if state.n[i] == 0.0:  # exactly, whatever was rounded
            state.precision[i] = self.prior_precision * np.eye(self.dim)
            state.moment[i], state.squares[i], state.weight[i] = 0.0, 0.0, 0.0
        else:
            state.weight[i] -= weight
            state.precision[i] -= weight * np.triu(np.outer(row, row))
            state.moment[i] -= weight * value * row
            state.squares[i] = max(state.squares[i] - weight * value * value, 0.0)
        self._core.recompute_caches(i)

    def amend(
        self, parameter: int, y: Floats, before: float, after: float, weight: float = 1.0
    ) -> None:
        """Replace a reward that was learned by another: b += (after - before) y.

        The precision and the number of rewards stay as they are.

        Parameters
        ----------
        parameter : int
            The parameter that it belongs to.
        y : ndarray of shape (dim,)
            The observation at which it was learned.
        before, after : float
            The reward that was learned, and the one that replaces it.
        weight : float, default 1.0
            The weight with which it was learned.

        Raises
        ------
        InvalidValue
            If the parameter has learned no reward.

        Examples
        --------
        >>> import keyhole as kh
        >>> posterior = kh.Posterior(n_parameters=1, dim=2)
        >>> posterior.learn(0, np.array([1.0, 2.0]), 3.0)
        >>> posterior.amend(0, np.array([1.0, 2.0]), 3.0, -1.0)
        >>> posterior.moment[0].tolist(), posterior.squares.tolist()
        ([-1.0, -2.0], [1.0])
        """
        i, row, old = self._learned(parameter, y, before)
        new, weight = checks.real("after", after), checks.positive("weight", weight)
        state = self.state
        state.moment[i] += weight * (new - old) * row
        squares = state.squares[i] + weight * (new * new - old * old)
        state.squares[i] = max(squares, 0.0)
        self._core.recompute_caches(i)

    def _learned(self, parameter: int, y: Floats, reward: float) -> tuple[int, Floats, float]:
        """Return the parameter, the observation and the value of a reward that was learned."""
        (i,) = self._indices([parameter]).tolist()
        row, value = checks.floats("y", y), checks.real("reward", reward)
        if row.shape != (self.dim,):
            raise InvalidValue(f"y must have shape ({self.dim},), got {row.shape}")
        if self._core.state.n[i] < 1.0:
            raise InvalidValue(f"parameter {i} has learned no reward that could be changed")
        return i, row, value

    def merge(
        self, other: Posterior, *, base: Posterior | None = None, is_sure: bool = False
    ) -> None:
        """Add the data that `other` has learned, parameter by parameter.

        Parameters
        ----------
        other : Posterior
            The posterior to add.
        base : Posterior, optional
            The posterior that both started from; without it, its data would count twice.
        is_sure : bool, default False
            Skip the check that `other` has gained on `base` in every direction: after observations
            were exchanged, this need not hold.

        Raises
        ------
        InvalidValue
            If sizes or prior precisions differ, or if `base` has data that one of the others lacks.
        """
        for each in (other, base):
            if not isinstance(each, Posterior | None) or other is None:
                raise InvalidValue(
                    f"other must be a Posterior, and base a Posterior or None, got {shown(each)}"
                )
        start = base or Posterior(
            n_parameters=self.n_parameters, dim=self.dim, prior_precision=self.prior_precision
        )
        for each in (other, start):
            if (each.n_parameters, each.dim) != (self.n_parameters, self.dim):
                raise InvalidValue(
                    f"posteriors must have the same sizes to be merged, got "
                    f"{(self.n_parameters, self.dim)} and {(each.n_parameters, each.dim)}"
                )
            if each.prior_precision != self.prior_precision:
                raise InvalidValue(
                    f"posteriors must have the same prior_precision to be merged, got "
                    f"{self.prior_precision:g} and {each.prior_precision:g}"
                )
        gained = other.precision - start.precision
        # The gain is a sum of y y', so positive semidefinite up to this much rounding.
        slack = 1e-9 * np.abs(other.precision).max(axis=(1, 2))
        grew = is_sure or (np.linalg.eigvalsh(gained)[:, 0] >= -slack).all()
        if (other.count < start.count).any() or not grew:
            raise InvalidValue("other must contain all data of base: give an earlier base")
        if (self.count < start.count).any():
            raise InvalidValue("this posterior must contain all data of base: give an earlier base")
        lowest = np.linalg.eigvalsh(self.precision + gained)[:, 0]
        squares = self.squares + other.squares - start.squares
        if is_sure and ((lowest < -slack).any() or (squares < -1e-9 * self.squares).any()):
            raise InvalidValue(
                "the merged sums are not valid: give the base that both posteriors started from"
            )
        self.state.precision[:] += np.triu(gained)
        for name in ("moment", "n", "weight", "squares"):
            mine, theirs, known = (getattr(x.state, name) for x in (self, other, start))
            mine += theirs - known
        self._recompute()

    def change_units(self, matrix: Floats) -> None:
        """Convert to observations M y in place of y; the prior is then one in the new units."""
        matrix = checks.floats("matrix", matrix)
        if matrix.shape != (self.dim, self.dim):
            raise InvalidValue(
                f"matrix must have shape ({self.dim}, {self.dim}), got {matrix.shape}"
            )
        if np.array_equal(matrix, np.eye(self.dim)):
            return
        prior = self.prior_precision * np.eye(self.dim)
        # P is below the diagonal, and is recomputed.
        self.state.precision[:] = np.triu(prior + matrix @ (self.precision - prior) @ matrix.T)
        self.state.moment[:] = self.state.moment @ matrix.T
        self._recompute()

    def move_rewards(self, by: float) -> None:
        """Convert to rewards r + by, given that the first entry of every observation is 1.

        The first row of sum y y' is then the sum of y, and the first entry of b the sum of r.
        """
        by = checks.real("by", by)
        if by == 0.0:
            return
        observed = self.precision[:, 0].copy()
        observed[:, 0] -= self.prior_precision
        self.state.squares[:] += by * (2.0 * self.state.moment[:, 0] + by * self.state.weight)
        self.state.moment[:] += by * observed
        self._recompute()

    def refresh(self) -> None:
        """Recompute covariance and mean from the sums now, rather than when next due."""
        for i in range(self.n_parameters):
            self._core.refresh(i)

    def extend(self, n: int) -> None:
        """Add n parameters without data."""
        fresh = Posterior(n_parameters=n, dim=self.dim, prior_precision=self.prior_precision)
        pairs = zip(self.state, fresh.state, strict=True)
        self._core = _core_of(State(*(np.concatenate(pair) for pair in pairs)), self._defers)

    def marginal(self, columns: Ints) -> None:
        """Keep some coordinates with their marginal posterior; the others are forgotten.

        With R the coordinates that are kept and G the others: B_RR - B_RG B_GG^-1 B_GR, and the
        moment alike. The sum of squared rewards loses what the others explain, so that the residual
        sum of squares stays.

        Parameters
        ----------
        columns : ndarray of int
            The coordinates that are kept, in their new order.
        """
        gone = np.setdiff1d(np.arange(self.dim), columns)
        fewer = Posterior(
            n_parameters=self.n_parameters,
            dim=len(columns),
            prior_precision=self.prior_precision,
        )
        precision, moment = self.precision, self.state.moment
        kept = precision[:, columns[:, None], columns]
        cross, own = precision[:, columns[:, None], gone], precision[:, gone[:, None], gone]
        solved = np.linalg.solve(
            own, np.concatenate([cross.transpose(0, 2, 1), moment[:, gone, None]], axis=2)
        )
        fewer.state.precision[:] = np.triu(kept - cross @ solved[:, :, :-1])
        fewer.state.moment[:] = moment[:, columns] - (cross @ solved[:, :, -1:])[:, :, 0]
        explained = np.einsum("kg,kg->k", moment[:, gone], solved[:, :, -1])
        fewer.state.n[:], fewer.state.weight[:] = self.state.n, self.state.weight
        fewer.state.squares[:] = np.maximum(self.state.squares - explained, 0.0)
        residual = self.state.residual.copy()
        fewer._recompute()
        fewer.state.residual[:] = residual
        self._core = _core_of(fewer.state, self._defers)

    def spread(self, dim: int, places: Ints) -> None:
        """Add coordinates at which all observations so far were 0.

        Parameters
        ----------
        dim : int
            The new number of coordinates.
        places : ndarray of int of shape (old dim,)
            The new place of each old coordinate.
        """
        wider = Posterior(
            n_parameters=self.n_parameters, dim=dim, prior_precision=self.prior_precision
        )
        at = np.ix_(np.arange(self.n_parameters), places, places)
        known, mine = wider.state, self.state
        # B and P are those of before and the prior's, side by side: no inverse is needed.
        for name, tri in (("precision", np.triu), ("covariance", np.tril)):
            full = getattr(wider, name).copy()
            full[at] = getattr(self, name)
            triangle = tri(np.ones((dim, dim), dtype=bool))
            np.copyto(getattr(known, name), full, where=triangle)
        known.moment[:, places], known.mean[:, places] = mine.moment, mine.mean
        for name in ("n", "weight", "squares", "residual", "penalty", "staleness"):
            getattr(known, name)[:] = getattr(mine, name)
        added = (dim - self.dim) / self.prior_precision
        known.trace[:] = mine.trace + added
        known.bound[:] = np.maximum(mine.bound, 1.0 / self.prior_precision)
        self._core = _core_of(known, self._defers)

    def keep(self, parameters: Sequence[int]) -> None:
        """Keep only these parameters, in this order."""
        kept = self._indices(parameters)
        if kept.size == 0 or np.unique(kept).size < kept.size:
            raise InvalidValue(
                f"parameters must be one or more different indices, got {shown(parameters)}"
            )
        self._core = _core_of(State(*(array[kept] for array in self.state)), self._defers)

    def learn_at_once(self) -> None:
        """Buffer no updates of large matrices from now on, in copies neither.

        A read flushes what is buffered, which changes last digits of what is learned later. Without
        a buffer the same rewards give the same bits, whatever is read in between.
        """
        if self._defers:
            self._defers = False
            self._core = _core_of(self.state, defers=False)

    def copy(self) -> Posterior:
        """Return an independent copy with bitwise equal arrays."""
        state = State(*(array.copy() for array in self.state))
        return Posterior.of_state(state, defers=self._defers)

    @classmethod
    def of_state(cls, state: State, *, defers: bool = True) -> Posterior:
        """Return a posterior that keeps these arrays; matrices that are not aligned are copied.

        Parameters
        ----------
        state : State
            The arrays.
        defers : bool, default True
            Buffer updates of large matrices; see `learn_at_once`.
        """
        posterior = object.__new__(cls)
        posterior._defers = defers
        posterior._core = _core_of(state, defers)
        return posterior

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Posterior:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (tuple(self.state),)

    def _indices(self, parameters: ArrayLike) -> Ints:
        """Return the indices of parameters as integers; raise if one does not exist."""
        indices = checks.floats("parameters", parameters)
        inside = (indices == indices.round()) & (indices >= 0) & (indices < self.n_parameters)
        is_whole = indices.size == 0 or np.asarray(parameters).dtype.kind in "iuO"
        if indices.ndim != 1 or not is_whole or not inside.all():
            raise InvalidValue(
                f"parameters must be whole numbers from 0 to {self.n_parameters - 1}, "
                f"got {shown(parameters)}"
            )
        return indices.astype(np.int64)

    def _recompute(self) -> None:
        """Recompute all caches from the sums."""
        for i in range(self.n_parameters):
            self._core.recompute_caches(i)


def _restored(arrays: tuple[Floats, ...]) -> Posterior:
    """Return a posterior from a pickle, whose arrays may be read-only."""
    return Posterior.of_state(State(*(np.array(array) for array in arrays)))


def _core_of(state: State, defers: bool) -> kernels.Core:
    """Return the compiled part of a state, whose matrices begin with a line of the cache.

    Parameters
    ----------
    state : State
        The arrays.
    defers : bool
        Whether updates of large matrices are buffered.
    """
    if kernels.is_aligned(state.matrices):
        return kernels.Core(state, defers)
    matrices = kernels.aligned_zeros(state.matrices.shape)
    matrices[...] = state.matrices
    return kernels.Core(state._replace(matrices=matrices), defers)


def _check_size(n_parameters: int, dim: int) -> None:
    """Raise if a posterior is larger than the memory of this machine."""
    pending = 2 * kernels.TOGETHER if dim >= kernels.LARGE else 0
    size = 8 * n_parameters * dim * (dim + 1 + pending)
    if size > _memory():
        raise InvalidValue(
            f"{n_parameters:,} parameters of dimension {dim:,} take {size / 2**30:,.0f} GiB, and "
            f"this machine has {_memory() / 2**30:,.0f}: give fewer arms or a smaller dim"
        )


def _memory() -> int:
    """Return the bytes of memory of this machine, or a terabyte if that is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**40


def _mirrored(lower: Floats) -> Floats:
    """Return the symmetric matrices that have these lower triangles."""
    below = np.tril(lower, -1)
    return _locked(np.tril(lower) + below.transpose(0, 2, 1))


def _locked(array: Floats) -> Floats:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view
