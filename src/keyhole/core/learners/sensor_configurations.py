"""`Configuration`: a sensor and the entries that it shows, and how its rows become columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.core.kernels import Floats
from keyhole.core.observers import Sensor

if TYPE_CHECKING:
    from keyhole.core.learners.sensor_learner import SensorLearner

# The index, in place of a sensor's, of rewards whose context became known.
CONTEXT = -1


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


def centre_of(sensors: Sequence[Sensor]) -> Floats:
    """Return the average of the means of x, (context_dim,), over the sensors that know one."""
    known = [one.mean for one in sensors if one.pairs is None or one.pairs.seen[0] > 0.0]
    return np.mean(known, axis=0) if known else np.zeros(sensors[0].context_dim)


def configured(
    learner: SensorLearner, sensors: Sequence[Sensor], centre: Floats, sensor: int, seen: Any
) -> Configuration:
    """Return the configuration of a sensor that shows some entries.

    Parameters
    ----------
    learner : SensorLearner
        The recipe, whose sensors say what base rows are.
    sensors : sequence of Sensor
        The sensors as they are known now.
    centre : ndarray of shape (context_dim,)
        The context that the columns of x count from. Base rows count from that of the recipe,
        which never changes.
    sensor : int
        The index of the sensor, or `CONTEXT`.
    seen : ndarray of bool of shape (dim,)
        The entries that are not missing.
    """
    c = learner.n_columns
    first, d = int(learner.intercept), learner.context_dim
    of_x = slice(first, first + d)
    columns, unseen = np.eye(c, first + d), np.zeros((c, c))
    columns[of_x, :first] = (learner.centre - centre)[:, None]
    if sensor == CONTEXT:
        gain = np.eye(first + d, d, -first)
        constant = np.concatenate([np.ones(first), -learner.centre])
        return Configuration(sensor, seen, gain, constant, columns, unseen)
    now, view = sensors[sensor], sensors[sensor].view(seen)
    unseen[of_x, of_x] = view.covariance
    if now.doubt is None:
        gain = np.vstack([np.zeros((first, view.gain.shape[1])), view.gain])
        constant = np.concatenate([np.ones(first), view.constant - learner.centre])
        return Configuration(sensor, seen, gain, constant, columns, unseen)
    # The base row is (1, y - m), with the mean m of y in the recipe, which never changes.
    n_seen, middle = int(seen.sum()), learner.sensors[sensor].observation_mean[seen]
    gain = np.eye(1 + n_seen, n_seen, -1)
    constant = np.concatenate([[1.0], -middle])
    columns = np.zeros((c, 1 + n_seen))
    columns[:first, 0] = 1.0
    columns[of_x] = _affine(view.gain, view.constant - centre, middle)
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


def _affine(matrix: Floats, vector: Floats, middle: Floats) -> Floats:
    """Return y -> vector + matrix y as a matrix times (1, y - middle)."""
    return np.column_stack([vector + matrix @ middle, matrix])
