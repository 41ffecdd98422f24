"""`Asymptote`: the asymptotic regret of a policy in a world, derived and not proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import Policy
from keyhole.errors import InvalidValue, shown
from keyhole.theory.asymptotics import own_contexts, pairs, shared_context
from keyhole.theory.asymptotics.clock import rounds_until, summed
from keyhole.theory.asymptotics.cones import cones_of
from keyhole.theory.asymptotics.first_rounds import refusal_of
from keyhole.theory.asymptotics.models import model_of
from keyhole.theory.ranges import Floats


@dataclass(frozen=True, eq=False)
class Asymptote:
    """The expected regret of a policy: E Regret(T) = c log T + O(1), and its course until then.

    It is derived, not proved, and measured in twenty worlds. The course is refused where chance in
    the first rounds costs much: where kappa, the least R_k^2 E[y'y] / (prior_precision
    Var(y'eta_k)) of all arms, is below 0.3 for v >= R or below 2 for a smaller v, and in one
    dimension with a shared context or parameter. The constant is given there too.

    Parameters
    ----------
    constant : float
        c, the slope of the regret over log T in the end.
    error : float
        Its standard error; 0 means exact up to rounding.
    terms : ndarray of shape (n_arms, n_arms)
        The parts of c: entry (i, j) is that of the pair of arms i and j.
    times : ndarray
        The rounds at which the regret was computed, up to the horizon.
    rates : ndarray
        The expected regret of each of these rounds alone; NaN if it is refused.
    refusal : str
        The reason for which there is no curve; empty if there is one.

    Examples
    --------
    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
    >>> found = kh.theory.asymptote(world, kh.ThompsonSampling(v="oracle"), horizon=10_000)
    >>> round(found.constant, 1), found.regret([100, 10_000]).round().tolist()
    (15.1, [46.0, 116.0])
    """

    constant: float
    error: float
    terms: Floats
    times: Floats
    rates: Floats
    refusal: str = ""

    @property
    def horizon(self) -> int:
        """The last round."""
        return int(self.times[-1])

    def regret(self, t: ArrayLike) -> Floats:
        """Return the expected regret of the first t rounds.

        Parameters
        ----------
        t : array_like
            Numbers of rounds, from 1 to the horizon.

        Raises
        ------
        InvalidValue
            If a number of rounds is out of this range, or the curve is refused.
        """
        return self._at(t, summed(self.times, self.rates))

    def slope(self, t: ArrayLike) -> Floats:
        """Return the slope of the regret over log t at round t, which tends to the constant.

        Parameters
        ----------
        t : array_like
            Numbers of rounds, from 1 to the horizon.

        Raises
        ------
        InvalidValue
            If a number of rounds is out of this range, or the curve is refused.
        """
        return self._at(t, self.times * self.rates)

    def _at(self, t: ArrayLike, curve: Floats) -> Floats:
        if self.refusal:
            raise InvalidValue(self.refusal)
        rounds = checks.floats("t", t)
        if rounds.size and (rounds.min() < 1.0 or rounds.max() > self.horizon):
            raise InvalidValue(
                f"t must be from 1 to the horizon {self.horizon:,}, got {shown(t)}: give "
                "asymptote(horizon=...)"
            )
        return np.asarray(np.interp(np.log(rounds), np.log(self.times), curve))


def asymptote(world: Any, policy: Policy, *, horizon: int = 1_000_000) -> Asymptote:
    """Return the constant of a policy's regret in a world, and the course of the regret.

    Contexts of their own need no random numbers. A shared context with more than two arms does,
    and has an error; the numbers are the same in every call.

    Parameters
    ----------
    world : LinearWorld
        A normal world, with own or shared contexts.
    policy : ThompsonSampling or Greedy
        The policy, with a parameter for each arm or, where all arms have the same, a shared one.
        v must be a number or "oracle".
    horizon : int, default 1,000,000
        The last round of the curve.

    Returns
    -------
    Asymptote
        The constant, and the curve or the reason for which there is none.

    Raises
    ------
    InvalidValue
        If it is not derived for this world or policy; the message has the reason.
    """
    if not isinstance(policy, Policy):
        raise InvalidValue(f"policy must be a Policy, got {shown(policy)}")
    times = rounds_until(checks.integer("horizon", horizon))
    model = model_of(world, policy)
    refusal = refusal_of(model)
    rates = np.full_like(times, np.nan)
    if model.shared_context:
        cones = cones_of(model)
        terms, error = cones.terms(model)
        if not refusal:
            rates = shared_context.rates(model, cones, times)
    else:
        terms, error = pairs.terms(model), 0.0
        if not refusal:
            rates = own_contexts.rates(model, times)
    for array in (terms, times, rates):
        array.flags.writeable = False
    return Asymptote(0.5 * float(terms.sum()), error, terms, times, rates, refusal)
