"""`Posterior`: what has been learned of one parameter or of many, as sums (eq:Bic, eq:etahatc).

Precision B = prior I + sum y y', moment b = sum r y, count n and sum r^2 are the truth. They add
up, so batches equal singles, the order does not matter and posteriors merge. Covariance P = B^-1
and mean = P b are caches, moved by rank-one steps and computed anew from the sums on a schedule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyhole import checks, kernels
from keyhole.errors import InvalidValue
from keyhole.kernels import Floats, Ints, State


class Posterior:
    """Gaussian posteriors of `n_parameters` vectors of dimension `dim`, up to the noise's variance.

    Sums of squares up to 1e15 times the prior's precision are told from it; beyond that float64
    cannot hold both, and directions in which nothing was seen look a little more certain than they
    are.

    >>> import keyhole as kh
    >>> posterior = kh.Posterior(n_parameters=1, dim=2, prior_precision=1.0)
    >>> posterior.learn(0, np.array([1.0, 2.0]), reward=3.0)
    >>> posterior.mean[0].round(12).tolist()        # 3 (1, 2) / (1 + 5)
    [0.5, 1.0]
    """

    def __init__(self, *, n_parameters: int, dim: int, prior_precision: float = 1.0) -> None:
        k = checks.whole("n_parameters", n_parameters)
        d = checks.whole("dim", dim)
        prior = checks.positive("prior_precision", prior_precision)
        self.prior_precision = prior
        self.state = State(
            prior=np.full(k, prior),
            matrices=np.empty((k, d + 1, d)),
            moment=np.empty((k, d)),
            n=np.empty(k),
            squares=np.empty(k),
            mean=np.empty((k, d)),
            residual=np.empty(k),
            penalty=np.empty(k),
            trace=np.empty(k),
            bound=np.empty(k),
            staleness=np.empty(k),
        )
        kernels.forget(self.state)

    @property
    def n_parameters(self) -> int:
        """How many parameters there are."""
        return int(self.state.mean.shape[0])

    @property
    def dim(self) -> int:
        """The dimension of an observation, and of a parameter."""
        return int(self.state.mean.shape[1])

    @property
    def precision(self) -> Floats:
        """B = prior I + sum y y', (n_parameters, dim, dim), read-only like all that follow."""
        return _mirrored(self.state.precision.transpose(0, 2, 1))

    @property
    def moment(self) -> Floats:
        """b = sum r y, (n_parameters, dim)."""
        return _locked(self.state.moment)

    @property
    def count(self) -> Ints:
        """How many rewards each parameter has learned from."""
        return self.state.n.astype(np.int64)

    @property
    def squares(self) -> Floats:
        """The sum of the squared rewards of each parameter."""
        return _locked(self.state.squares)

    @property
    def covariance(self) -> Floats:
        """P = B^-1, (n_parameters, dim, dim); the posterior's covariance is v^2 P."""
        return _mirrored(self.state.covariance)

    @property
    def mean(self) -> Floats:
        """P b, (n_parameters, dim): the estimate of each parameter."""
        return _locked(self.state.mean)

    def noise_scale(self) -> NDArray[np.float64]:
        """The standard deviation of each parameter's reward given y, estimated from the sums.

        It is the square root of the residual sum of squares over its degrees of freedom, with a
        weak prior at what all parameters together tell, and that one at the mean square of the
        rewards; 1 before any reward.
        """
        return self.explorations(kernels.Rule(learned=True))[1]

    def explorations(self, rule: kernels.Rule) -> tuple[Floats, Floats]:
        """The optimism and the dispersion v of each parameter under a rule."""
        optimism, dispersion = np.empty((2, self.n_parameters))
        kernels.explorations(self.state, rule.plain(), optimism, dispersion)
        return optimism, dispersion

    def scores(self, rule: kernels.Rule, owner: Ints, y: Floats) -> tuple[Floats, Floats]:
        """Location and scale of the score of each arm under a rule, as in `predict`."""
        mean, width = self.predict(owner, y)
        optimism, dispersion = self.explorations(rule)
        return mean + optimism[owner] * width, dispersion[owner] * width

    def predict(self, owner: Ints, y: Floats) -> tuple[Floats, Floats]:
        """Mean and width (y'Py)^1/2 of y'eta: (n, n_arms) each, arm k's parameter being owner[k].

        y: (n, dim), one row for all arms, or (n, n_arms, dim), a row for each arm.
        """
        mean = np.empty((len(y), owner.size))
        width, covariance = np.empty_like(mean), self.covariance
        for k, i in enumerate(owner):
            rows = y if y.ndim == 2 else y[:, k]
            mean[:, k] = rows @ self.state.mean[i]
            width[:, k] = np.einsum("nd,nd->n", rows @ covariance[i], rows)
        return mean, np.sqrt(np.maximum(width, 0.0))

    def learn(self, parameter: int, y: Floats, reward: float) -> None:
        """Learn that `parameter` gave `reward` at observation y."""
        self.learn_many(np.array([parameter]), np.asarray(y)[None], np.array([reward]))

    def learn_many(self, parameters: Ints, y: Floats, rewards: Floats) -> None:
        """Learn many rewards: row t of y, (n, dim), belongs to parameters[t] and rewards[t].

        A parameter with fewer new rewards than dimensions takes rank-one steps; one with more
        gets its sums by a matrix product and its caches by one inverse, which is cheaper.
        """
        y, rewards = checks.floats("y", y), checks.floats("rewards", rewards)
        owner = np.array(parameters)
        n = owner.size
        if owner.shape != (n,) or rewards.shape != (n,) or y.shape != (n, self.dim):
            raise InvalidValue(
                f"learn_many needs n parameters, n rewards and y of shape (n, {self.dim}), "
                f"got shapes {owner.shape}, {rewards.shape} and {y.shape}"
            )
        if n == 0:
            return
        if owner.dtype.kind not in "iu" or owner.min() < 0 or owner.max() >= self.n_parameters:
            raise InvalidValue(
                f"parameters must be whole numbers from 0 to {self.n_parameters - 1}"
            )
        owner = owner.astype(np.int64)

        order = np.argsort(owner, kind="stable")
        first = np.flatnonzero(np.diff(owner[order], prepend=-1))
        for rows in np.split(order, first[1:]):
            i = int(owner[rows[0]])
            if rows.size < self.dim:
                kernels.absorb_many(self.state, owner[rows], y[rows], rewards[rows])
            else:
                seen, given = y[rows], rewards[rows]
                self.state.precision[i] += np.triu(seen.T @ seen)
                self.state.moment[i] += seen.T @ given
                self.state.n[i] += rows.size
                self.state.squares[i] += given @ given
                kernels.settle(self.state, i)

    def merge(self, other: Posterior, *, base: Posterior | None = None) -> None:
        """Add what `other` has learned, parameter by parameter.

        If both started from a common posterior, give it as `base`: what it had learned is
        otherwise counted twice.
        """
        start = base or Posterior(
            n_parameters=self.n_parameters, dim=self.dim, prior_precision=self.prior_precision
        )
        for each in (other, start):
            if (each.n_parameters, each.dim) != (self.n_parameters, self.dim):
                raise InvalidValue("posteriors of different sizes cannot be merged")
            if each.prior_precision != self.prior_precision:
                raise InvalidValue("posteriors of different prior_precision cannot be merged")
        gained = other.precision - start.precision
        # What was learned since is a sum of squares; rounding may put it below zero by this much.
        slack = 1e-9 * np.abs(other.precision).max()
        if (other.count < start.count).any() or np.linalg.eigvalsh(gained).min() < -slack:
            raise InvalidValue("both posteriors must have learned all that their base has")
        if (self.count < start.count).any():
            raise InvalidValue("both posteriors must have learned all that their base has")
        self.state.precision[:] += np.triu(gained)
        for name in ("moment", "n", "squares"):
            mine, theirs, known = (getattr(x.state, name) for x in (self, other, start))
            mine += theirs - known
        self._settle()

    def change_units(self, matrix: Floats) -> None:
        """Go over to observations M y in place of y: the prior is then one in the new units."""
        if np.array_equal(matrix, np.eye(self.dim)):
            return
        prior = self.prior_precision * np.eye(self.dim)
        # Below the diagonal is P, which is computed anew.
        self.state.precision[:] = np.triu(prior + matrix @ (self.precision - prior) @ matrix.T)
        self.state.moment[:] = self.state.moment @ matrix.T
        self._settle()

    def move_rewards(self, by: float) -> None:
        """Go over to rewards r + by, of observations whose first entry is always 1.

        That makes the first row of sum y y' the sum of y, and the first entry of b that of r.
        """
        if by == 0.0:
            return
        observed = self.precision[:, 0].copy()
        observed[:, 0] -= self.prior_precision
        self.state.squares[:] += by * (2.0 * self.state.moment[:, 0] + by * self.state.n)
        self.state.moment[:] += by * observed
        self._settle()

    def refresh(self) -> None:
        """Compute covariance and mean anew from the sums, now rather than when next due."""
        for i in range(self.n_parameters):
            kernels.refresh(self.state, i)

    def extend(self, n: int) -> None:
        """Add n parameters of which nothing is known."""
        fresh = Posterior(n_parameters=n, dim=self.dim, prior_precision=self.prior_precision)
        pairs = zip(self.state, fresh.state, strict=True)
        self.state = State(*(np.concatenate(pair) for pair in pairs))

    def keep(self, parameters: Sequence[int]) -> None:
        """Keep only these parameters, in this order."""
        self.state = State(*(array[list(parameters)] for array in self.state))

    def copy(self) -> Posterior:
        """An independent copy, to the bit."""
        twin = object.__new__(Posterior)
        twin.prior_precision = self.prior_precision
        twin.state = State(*(array.copy() for array in self.state))
        return twin

    def _settle(self) -> None:
        """Compute all that follows from the sums."""
        for i in range(self.n_parameters):
            kernels.settle(self.state, i)


def _mirrored(lower: Floats) -> Floats:
    """The symmetric matrices of which these are the lower triangles."""
    below = np.tril(lower, -1)
    return _locked(np.tril(lower) + below.transpose(0, 2, 1))


def _locked(array: Floats) -> Floats:
    """A view of the array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
