"""`Sensor`: beliefs about a context x from a measurement y = A x + noise.

x ~ N(mean, Sx) and y = offset + A x + xi, xi ~ N(0, Sxi). Given y, x is normal with mean
x_hat = mean + D (y - offset - A mean), D = Sx A' Sy^-1, Sy = A Sx A' + Sxi, and covariance
S = Sx - D A Sx. A missing entry of y is a missing row of A.

A sensor that was estimated from measurements is a prior, not a truth: the best prediction of x'mu
from y has coefficients D'mu + delta, with delta ~ N(0, (mu'R mu) gram^-1). `doubt` has gram and R.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core.kernels import Floats
from keyhole.core.observers.moments import Moments
from keyhole.core.observers.ranges import Range
from keyhole.errors import InvalidValue, shown

# A covariance is singular if, with unit diagonal, its smallest eigenvalue is below this: rounding
# alone would then decide about a tenth of a thousandth of a prediction.
SINGULAR = 1e-12
# Differences of measurements below this share of their size are rounding.
ROUNDED = 1e-12


class Belief(NamedTuple):
    """Mean and covariance of a context given a measurement."""

    mean: Floats  # (context_dim,) or (n, context_dim)
    covariance: Floats  # (context_dim, context_dim)


class View(NamedTuple):
    """The belief from the seen entries of y: mean = constant + gain y, and its covariance."""

    gain: Floats  # (context_dim, n_seen)
    constant: Floats  # (context_dim,)
    covariance: Floats  # (context_dim, context_dim)


class Doubt(NamedTuple):
    """Error of the estimated coefficients D'mu: delta ~ N(0, (mu'spread mu) gram^-1).

    The constant of the prediction may be off too, by N(0, mu'spread mu / n); n is infinite if there
    is none.
    """

    gram: Floats  # (dim, dim)
    spread: Floats  # (context_dim, context_dim)
    n: float


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Sensor:
    """A sensor with a known sensing matrix and known covariances.

    `Sensor.calibrated` and `Sensor.from_repeats` estimate one from measurements.

    Parameters
    ----------
    sensing : array_like of shape (dim, context_dim)
        A: y = offset + A x + noise.
    context_covariance : array_like, default 1
        The covariance of x, positive definite. A number is that multiple of the identity.
    sensing_covariance : array_like, default 1
        The covariance of the noise, given in the same way. It may be singular, or 0, as long as
        the covariance of y is not.
    mean : array_like of shape (context_dim,), default 0
        The mean of x.
    offset : array_like of shape (dim,), default 0
        y at x = 0 without noise.

    Raises
    ------
    InvalidValue
        If a setting has the wrong shape, or a covariance is not one or is singular.

    Examples
    --------
    >>> import keyhole as kh
    >>> sensor = kh.Sensor(sensing=[[1.0, 0.0]], sensing_covariance=1.0)
    >>> sensor.belief([3.0]).mean.tolist()
    [1.5, 0.0]
    >>> sensor.belief([3.0]).covariance.tolist()
    [[0.5, 0.0], [0.0, 1.0]]
    """

    sensing: Floats
    context_covariance: Floats
    sensing_covariance: Floats
    mean: Floats
    offset: Floats
    pairs: Moments | None  # of (x, y), if it was calibrated
    doubt: Doubt | None

    def __init__(
        self,
        *,
        sensing: ArrayLike,
        context_covariance: ArrayLike = 1.0,
        sensing_covariance: ArrayLike = 1.0,
        mean: ArrayLike = 0.0,
        offset: ArrayLike = 0.0,
    ) -> None:
        lens = checks.floats("sensing", sensing)
        if lens.ndim != 2 or 0 in lens.shape:
            raise InvalidValue(f"sensing must be a matrix (dim, context_dim), got {lens.shape}")
        dim, context_dim = lens.shape
        context = _covariance("context_covariance", context_covariance, context_dim)
        noise = _covariance("sensing_covariance", sensing_covariance, dim)
        if _smallest(context) < SINGULAR:
            raise InvalidValue(
                "context_covariance is singular: some entries of x follow from the others, and "
                "have to be left out"
            )
        if _smallest(lens @ context @ lens.T + noise) < SINGULAR:
            raise InvalidValue(
                "sensing_covariance must make the covariance of y, A Sx A' + Sxi, positive "
                "definite, but that is singular: some entries of y follow from the others"
            )
        self._set(
            lens,
            context,
            noise,
            _vector("mean", mean, context_dim),
            _vector("offset", offset, dim),
            None,
            None,
        )

    def _set(
        self,
        sensing: Floats,
        context_covariance: Floats,
        sensing_covariance: Floats,
        mean: Floats,
        offset: Floats,
        pairs: Moments | None,
        doubt: Doubt | None,
    ) -> None:
        settings = locals()
        for name in ("sensing", "context_covariance", "sensing_covariance", "mean", "offset"):
            settings[name].flags.writeable = False
            object.__setattr__(self, name, settings[name])
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "doubt", doubt)

    @classmethod
    def calibrated(cls, x: ArrayLike, y: ArrayLike, *, centred: bool = False) -> Sensor:
        """Estimate a sensor from pairs of a context and its measurement.

        The estimate starts from one pair with independent entries, so that few pairs are enough:
        they are a prior, which rewards correct.

        Parameters
        ----------
        x : array_like of shape (n, context_dim)
            Contexts.
        y : array_like of shape (n, dim)
            Their measurements.
        centred : bool, default False
            Take the means of x and y as 0. Otherwise they are estimated, and the constant of a
            prediction is doubted as its coefficients are.

        Examples
        --------
        >>> import keyhole as kh
        >>> rng = np.random.default_rng(1)
        >>> x = rng.standard_normal((1000, 2))
        >>> y = 3.0 * x[:, :1] + rng.standard_normal((1000, 1))
        >>> kh.Sensor.calibrated(x, y).sensing.round(1) + 0.0
        array([[3., 0.]])
        """
        contexts, measured = checks.floats("x", x), checks.floats("y", y)
        for name, rows in (("x", contexts), ("y", measured)):
            if rows.ndim != 2 or not rows.shape[1]:
                raise InvalidValue(f"{name} must have shape (n, entries), got {rows.shape}")
        if len(contexts) != len(measured):
            raise InvalidValue(
                f"x and y must have a row for each pair, got {len(contexts)} and {len(measured)}"
            )
        moments = Moments.empty(contexts.shape[1] + measured.shape[1])
        moments.add(np.hstack([contexts, measured]))
        return cls.of_pairs(moments, contexts.shape[1], checks.flag("centred", centred))

    @classmethod
    def of_pairs(cls, pairs: Moments, context_dim: int, centred: bool) -> Sensor:
        """Return the calibrated sensor of the sums over pairs (x, y).

        Parameters
        ----------
        pairs : Moments
            The sums, of vectors with x before y.
        context_dim : int
            The length of x.
        centred : bool
            Whether means are 0.
        """
        n, mean = float(pairs.seen[0]), pairs.mean
        covariance = pairs.covariance
        if centred:
            covariance, mean = covariance + np.outer(mean, mean), np.zeros_like(mean)
        spread = np.diag(covariance).copy()
        spread[spread <= 0.0] = 1.0
        # One pair of independent entries in front of the others: never singular.
        joint = (n * covariance + np.diag(spread)) / (n + 1.0)
        x, y = slice(0, context_dim), slice(context_dim, None)
        sensing = np.linalg.solve(joint[x, x], joint[x, y]).T
        noise = joint[y, y] - sensing @ joint[x, y]
        made = object.__new__(cls)
        made._set(
            np.ascontiguousarray(sensing),
            joint[x, x].copy(),
            0.5 * (noise + noise.T),
            mean[x].copy(),
            mean[y] - sensing @ mean[x],
            pairs.copy(),
            None,
        )
        view = made.view(np.ones(made.dim, dtype=bool))
        constant = np.inf if centred else n + 1.0
        doubt = Doubt((n + 1.0) * joint[y, y], view.covariance, constant)
        object.__setattr__(made, "doubt", doubt)
        return made

    @classmethod
    def from_repeats(cls, y1: ArrayLike, y2: ArrayLike) -> Sensor:
        """Estimate a sensor y = x + noise from two measurements of each of n contexts.

        The noises of the two are independent and alike, so Cov(y1, y2) is that of x, and
        Cov(y1 - y2) / 2 that of the noise. Predicting y2 from y1 is predicting x from y1.

        Each is counted from its own mean, so that a shift between the two sessions, such as a
        drift of the instrument, changes no covariance. The mean of x is then the average of the
        two and the offset is 0. Repeats cannot tell which session is right: later measurements
        like those of one session are off by half the shift, which `intercept=True` learns.

        Parameters
        ----------
        y1, y2 : array_like of shape (n, dim)
            The first and the second measurement of each context.

        Raises
        ------
        InvalidValue
            If shapes differ, rows are few, y1 - y2 has no noise in some direction, or y1 and y2
            have nothing in common in one.

        Examples
        --------
        >>> import keyhole as kh
        >>> rng = np.random.default_rng(1)
        >>> x = 2.0 * rng.standard_normal((4000, 1))
        >>> sensor = kh.Sensor.from_repeats(*(x + rng.standard_normal((4000, 1)) for _ in range(2)))
        >>> sensor.context_covariance.round(1).tolist(), sensor.sensing_covariance.round(1).tolist()
        ([[4.1]], [[1.0]])
        """
        first, second = checks.floats("y1", y1), checks.floats("y2", y2)
        if first.ndim != 2 or not first.shape[1] or first.shape != second.shape:
            raise InvalidValue(
                f"y1 and y2 must have the same shape (n, dim), got {first.shape} and {second.shape}"
            )
        n, dim = first.shape
        if n < dim + 2:
            raise InvalidValue(f"y1 and y2 need at least {dim + 2} rows of {dim} entries, got {n}")
        means = first.mean(axis=0), second.mean(axis=0)
        # Each about its own mean: a shift between the sessions is no covariance.
        one, other = first - means[0], second - means[1]
        cross = one.T @ other / (n - 1)
        context = 0.5 * (cross + cross.T)
        noise = 0.5 * (one - other).T @ (one - other) / (n - 1)
        # Rounding alone leaves about the square of 1e-16 of the measurements.
        same = np.diag(noise) <= ROUNDED**2 * np.mean(first**2 + second**2, axis=0)
        if same.any() or _smallest(noise) < SINGULAR:
            raise InvalidValue(
                "y1 and y2 must differ by noise in every direction, but y1 - y2 "
                + _where_constant(np.flatnonzero(same).tolist())
                + ": give two measurements that were taken one after the other, not one of them "
                "twice. A sensor without noise is Sensor(sensing=..., sensing_covariance=0)"
            )
        if not (np.diag(context) > 0.0).all() or _smallest(context) < SINGULAR:
            raise InvalidValue(
                "y1 and y2 must vary together in every direction, since x is common to both, but "
                f"{_unshared(cross, context)}: the rows of y1 and y2 must belong to the same "
                "contexts, in the same order; entries that are noise alone have to be left out"
            )
        mean = 0.5 * (means[0] + means[1])
        sensor = cls(
            sensing=np.eye(dim), context_covariance=context, sensing_covariance=noise, mean=mean
        )
        view = sensor.view(np.ones(dim, dtype=bool))
        # y2 stands for x in the regression, and adds its noise to what is left of x.
        return sensor.doubted(n * (context + noise), view.covariance + noise, float(n))

    def doubted(self, gram: Floats, spread: Floats, n: float) -> Sensor:
        """Return this sensor as one whose predictions may be off.

        Parameters
        ----------
        gram, spread, n
            As in `Doubt`; both matrices are positive definite.
        """
        for name, matrix in (("gram", gram), ("spread", spread)):
            if _smallest(matrix) <= 0.0:
                raise InvalidValue(f"{name} must be positive definite")
        twin = copy.copy(self)
        for name in ("_key", "digest"):  # which are those of the sensor without doubt
            vars(twin).pop(name, None)
        object.__setattr__(twin, "doubt", Doubt(gram, spread, n))
        return twin

    @property
    def is_centred(self) -> bool:
        """True if the constant of a prediction is known exactly."""
        return self.doubt is None or not np.isfinite(self.doubt.n)

    @property
    def dim(self) -> int:
        """The length of a measurement."""
        return len(self.sensing)

    @property
    def context_dim(self) -> int:
        """The length of a context."""
        return int(self.sensing.shape[1])

    @cached_property
    def observation_covariance(self) -> Floats:
        """The covariance of y, A Sx A' + Sxi."""
        spread: Floats = self.sensing @ self.context_covariance @ self.sensing.T
        return spread + self.sensing_covariance

    @cached_property
    def observation_range(self) -> Range:
        """The usual range of a measurement."""
        return Range.of(self.observation_mean, self.observation_covariance)

    @cached_property
    def context_range(self) -> Range:
        """The usual range of a context."""
        return Range.of(self.mean, self.context_covariance)

    @property
    def n_rows(self) -> float:
        """The number of pairs or repeats that it was estimated from; infinite if it is known."""
        if self.pairs is not None:
            return float(self.pairs.seen[0])
        return np.inf if self.doubt is None else self.doubt.n

    @property
    def observation_mean(self) -> Floats:
        """The mean of y."""
        mean: Floats = self.offset + self.sensing @ self.mean
        return mean

    def view(self, seen: Any) -> View:
        """Return the belief as a function of the seen entries of y.

        Parameters
        ----------
        seen : ndarray of bool of shape (dim,)
            The entries that are not missing.
        """
        lens = self.sensing[seen]
        cross = lens @ self.context_covariance  # Cov(y, x)
        spread = self.observation_covariance[np.ix_(seen, seen)]
        gain = np.linalg.solve(spread, cross).T if seen.any() else np.zeros((self.context_dim, 0))
        # As a sum of two squares nothing cancels, and no variance is negative.
        missed = np.eye(self.context_dim) - gain @ lens
        noise = gain @ self.sensing_covariance[np.ix_(seen, seen)] @ gain.T
        left = missed @ self.context_covariance @ missed.T + noise
        if self.pairs is not None:
            # Residuals of n pairs have as many degrees of freedom less as D has columns: fewer,
            # where the first pair of `of_pairs` determines them.
            n = float(self.pairs.seen[0]) + 1.0
            first = np.diag(spread) / n if seen.any() else np.zeros(0)
            used = lens.shape[0] - np.trace(np.linalg.solve(spread, np.diag(first)))
            left = left * (n / (n - min(used, n - 1.0)))
        constant = self.mean - gain @ self.observation_mean[seen]
        return View(gain, constant, 0.5 * (left + left.T))

    def filling(self, seen: Any) -> tuple[Floats, Floats]:
        """Return F and f so that E[y | seen entries] = f + F y_seen; see `view`."""
        spread = self.observation_covariance
        mean = self.observation_mean
        if not seen.any():
            return np.zeros((self.dim, 0)), mean
        matrix = np.linalg.solve(spread[np.ix_(seen, seen)], spread[seen]).T
        return matrix, mean - matrix @ mean[seen]

    def belief(self, y: ArrayLike) -> Belief:
        """Return mean and covariance of the context given a measurement.

        Parameters
        ----------
        y : array_like of shape (dim,)
            The measurement, with NaN or None for missing entries.
        """
        row = checks.with_missing("y", y)
        if row.shape != (self.dim,):
            raise InvalidValue(f"y must have shape ({self.dim},), got {row.shape}")
        seen = ~np.isnan(row)
        view = self.view(seen)
        return Belief(view.constant + view.gain @ row[seen], view.covariance)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sensor):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the arrays that define the sensor."""
        return hashlib.sha256(b"/".join(self._key)).hexdigest()

    @cached_property
    def _key(self) -> tuple[bytes, ...]:
        parts: tuple[Any, ...]
        if self.pairs is not None:
            # All else follows from these, but for last digits on another machine.
            parts = (*self.pairs, float(self.context_dim), float(self.is_centred))
        else:
            known = (self.sensing, self.context_covariance, self.sensing_covariance)
            parts = (*known, self.mean, self.offset, *(self.doubt or ()))
        return tuple(np.asarray(part).tobytes() for part in parts)

    def __repr__(self) -> str:
        kind = "" if self.pairs is None else f", calibrated from {int(self.pairs.seen[0])} pairs"
        return f"Sensor(dim={self.dim}, context_dim={self.context_dim}{kind})"


def _covariance(name: str, value: ArrayLike, dim: int) -> Floats:
    """Return a symmetric positive semidefinite matrix, or raise naming the setting."""
    matrix = checks.floats(name, value)
    if matrix.ndim == 0:
        matrix = matrix * np.eye(dim)
    if matrix.shape != (dim, dim):
        raise InvalidValue(
            f"{name} must be a number or a ({dim}, {dim}) matrix, got {matrix.shape}"
        )
    size = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > SINGULAR * size:
        raise InvalidValue(f"{name} must be symmetric")
    matrix = 0.5 * (matrix + matrix.T)
    least = float(np.linalg.eigvalsh(matrix).min())
    if least < -SINGULAR * dim * size:
        raise InvalidValue(f"{name} must have no negative eigenvalue, but one is {least:.3g}")
    return matrix


def _smallest(matrix: Floats) -> float:
    """Return the smallest eigenvalue of a covariance in units of its diagonal; 0 if that has 0."""
    scale = np.sqrt(np.diag(matrix).clip(min=0.0))
    if not scale.all():
        return 0.0
    return float(np.linalg.eigvalsh(matrix / np.outer(scale, scale)).min())


def _where_constant(places: list[int]) -> str:
    """Say in which entries a difference does not vary; without any, it is some combination."""
    if not places:
        return "is constant in some combination of its entries"
    listed = ", ".join(map(str, places[:10])) + (", ..." if len(places) > 10 else "")
    return f"is the same in all rows of entr{'y' if len(places) == 1 else 'ies'} {listed}"


def _unshared(cross: Floats, context: Floats) -> str:
    """Say which entries of y1 and y2 do not vary together, or that it is some combination."""
    apart = np.flatnonzero(np.diag(cross) <= 0.0).tolist()
    if not apart:
        least = float(np.linalg.eigvalsh(context).min())
        return f"their covariance has the eigenvalue {least:.3g}"
    j = apart[0]
    return f"the covariance of entry {j} with itself is {cross[j, j]:.3g}"


def _vector(name: str, value: ArrayLike, dim: int) -> Floats:
    """Return a vector, or that number in every entry, or raise naming the setting."""
    vector = checks.floats(name, value)
    if vector.ndim == 0:
        vector = np.full(dim, float(vector))
    if vector.shape != (dim,):
        raise InvalidValue(f"{name} must be a number or {dim} numbers, got {shown(value)}")
    return vector
