"""The constant of the regret by pairs of arms that see one context, y.

Arm k is best on a cone of y. Arms i and j tie on the face y'(eta_i - eta_j) = 0 of their cones.
Whether y is in a cone depends on its direction alone, so that lengths are integrated exactly.
With two arms all is exact; with more, directions are drawn, and errors are those of a jackknife.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyhole.core import Streams
from keyhole.errors import InvalidValue
from keyhole.theory.asymptotics.models import Model
from keyhole.theory.ranges import Floats

BATCHES, DRAWS = 16, 4096
# The least number of draws, for each dimension, in which an arm must be best.
LEAST = 20


@dataclass(frozen=True, eq=False)
class Cones:
    """Second moments of u on the cones and on the faces between them.

    Parameters
    ----------
    wins : ndarray of shape (batches, n_arms, rank, rank)
        E[u u' 1(k best)] by batches of draws.
    faces : ndarray of shape (batches, n_arms, n_arms, rank, rank)
        The density of 0 for y'(eta_i - eta_j), times E[u u' 1(i and j best) | they tie].
    """

    wins: Floats
    faces: Floats

    def terms(self, model: Model) -> tuple[Floats, float]:
        """Return the constant's parts by pairs, and the standard error of the constant."""
        full = _terms(model, self.wins.mean(axis=0), self.faces.mean(axis=0))
        if len(self.wins) == 1:
            return full, 0.0
        keep = ~np.eye(len(self.wins), dtype=bool)
        without = np.stack(
            [_terms(model, self.wins[k].mean(axis=0), self.faces[k].mean(axis=0)) for k in keep]
        )
        # The jackknife also removes the bias that the inverse of an estimated matrix has.
        terms = len(keep) * full - (len(keep) - 1) * without.mean(axis=0)
        totals = 0.5 * without.sum(axis=(1, 2))
        return terms, float(np.sqrt((len(keep) - 1) * totals.var()))


def pair_terms(spreads: Floats, faces: Floats) -> Floats:
    """Return half the variance of score differences, integrated over the faces.

    Parameters
    ----------
    spreads : ndarray of shape (n_arms, rank, rank)
        Matrices Q_k: the variance of arm k's score is u'Q_k u.
    faces : ndarray of shape (n_arms, n_arms, rank, rank)
        As in `Cones`.
    """
    each = np.einsum("kab,kjab->kj", spreads, faces)
    result: Floats = 0.5 * (each + each.T)
    return result


def _terms(model: Model, wins: Floats, faces: Floats) -> Floats:
    total = (model.noise + model.dispersion)[:, None, None]
    return pair_terms(total * np.linalg.inv(wins), faces)


def cones_of(model: Model) -> Cones:
    """Return the second moments on cones and faces, exact for two arms and drawn for more.

    Raises
    ------
    InvalidValue
        If an arm is never best, or too seldom for an estimate.
    """
    _check_possible(model)
    if model.n_arms == 2:
        return _two_arms(model)
    stream = Streams(0)["directions"]
    wins = np.empty((BATCHES, model.n_arms, model.rank, model.rank))
    faces = np.zeros((BATCHES, model.n_arms, *wins.shape[1:]))
    count = np.zeros(model.n_arms)
    for batch in range(BATCHES):
        u = stream.standard_normal((DRAWS, model.rank))
        best = (u @ model.gains.T).argmax(axis=1)
        count += np.bincount(best, minlength=model.n_arms)
        for i in range(model.n_arms):
            wins[batch, i] = _second_moment(u, best == i, model.rank)
            for j in range(i):
                faces[batch, i, j] = faces[batch, j, i] = _face(model, i, j, u)
    if (seldom := np.flatnonzero(count < LEAST * model.rank)).size:
        raise InvalidValue(
            f"arm {seldom[0] + 1} is best with a probability of about "
            f"{count[seldom[0]] / count.sum():.1g}, too seldom for an asymptote: it would begin "
            "after any horizon"
        )
    return Cones(wins, faces)


def _second_moment(u: Floats, inside: NDArray[np.bool_], rank: int) -> Floats:
    """Return E[u u' 1(inside)] for a cone: directions are drawn, and E|u|^2 = rank is known."""
    unit = u[inside] / np.linalg.norm(u[inside], axis=1, keepdims=True)
    moment: Floats = rank / len(u) * unit.T @ unit
    return moment


def _face(model: Model, i: int, j: int, u: Floats) -> Floats:
    """Return the density of a tie of arms i and j, times the second moments of u there."""
    normal = model.gains[i] - model.gains[j]
    distance = np.linalg.norm(normal)
    if model.rank == 1:  # the only tie is at u = 0
        return np.zeros((1, 1))
    normal = normal / distance
    tied = u - np.outer(u @ normal, normal)
    values = tied @ model.gains.T
    values[:, j] = values[:, i]  # equal up to rounding
    inside = values[:, i] >= values.max(axis=1)
    density = 1.0 / (distance * np.sqrt(2.0 * np.pi))
    return np.asarray(density * _second_moment(tied, inside, model.rank - 1))


def _two_arms(model: Model) -> Cones:
    """Return exact moments: y and -y have different best arms, so each has half of E[u u']."""
    identity = np.eye(model.rank)
    normal = model.gains[0] - model.gains[1]
    square = float(normal @ normal)
    tied = (identity - np.outer(normal, normal) / square) / np.sqrt(2.0 * np.pi * square)
    wins = np.stack([identity, identity]) / 2.0
    nothing = np.zeros_like(tied)
    return Cones(wins[None], np.array([[[nothing, tied], [tied, nothing]]]))


def _check_possible(model: Model) -> None:
    """Raise if an arm is never the only best one: no y has y'(eta_k - eta_j) > 0 for all j."""
    from scipy.optimize import linprog  # here, since importing it takes long

    for k in range(model.n_arms):
        lead = model.gains[k] - np.delete(model.gains, k, axis=0)
        size = np.abs(lead).max(axis=1, keepdims=True)
        # A lead of 0 is a tie everywhere; otherwise scales do not matter for a cone.
        scaled = np.divide(lead, size, out=np.zeros_like(lead), where=size > 0.0)
        found = linprog(np.zeros(model.rank), A_ub=-scaled, b_ub=-np.ones(len(lead)),
                        bounds=(None, None))  # fmt: skip
        if found.status == 2:
            raise InvalidValue(
                f"arm {k + 1} is never the only best arm: pulls of it are then no longer a share "
                "of the rounds, and its part of the regret is not derived"
            )
