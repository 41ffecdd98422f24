"""`Model`: a normal world and a policy in the coordinates in which its regret is derived.

Observations are written as y = H u with u standard normal, so that the value of arm k is
y'eta_k = u'gain_k. One unit of u'gain_k counts in the direction of gain_k, and the rest of u tells
nothing of arm k's value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.core import Greedy, Policy, ThompsonSampling
from keyhole.errors import InvalidValue, shown
from keyhole.theory.ranges import Floats
from keyhole.theory.roots import root_of

# A value whose standard deviation is below this share of the largest is 0 up to rounding.
ROUNDING = 1e-9
# The properties of a linear world that the derivation uses.
NEEDED = ("eta", "observation_covariance", "unseen_covariance", "reward_scale", "is_normal")


@dataclass(frozen=True, eq=False)
class Model:
    """The quantities that determine the regret of a policy in a normal world.

    Parameters
    ----------
    gains : ndarray of shape (n_arms, rank)
        H'eta, so that y'eta_k = u'gain_k.
    prior : ndarray of shape (rank, rank)
        The prior precision in these coordinates: prior_precision (H'H)^-1.
    noise : ndarray of shape (n_arms,)
        R_k^2, the variance of arm k's reward given y.
    dispersion : ndarray of shape (n_arms,)
        v^2, once for each arm.
    shared_context : bool
        Whether all arms see one u.
    shared_parameter : bool
        Whether one parameter is learned for all arms.
    joint : bool
        Whether all arms are scored by one sample of it.
    """

    gains: Floats
    prior: Floats
    noise: Floats
    dispersion: Floats
    shared_context: bool
    shared_parameter: bool
    joint: bool

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return len(self.gains)

    @property
    def rank(self) -> int:
        """The rank of the covariance of y."""
        return int(self.gains.shape[1])

    @property
    def scales(self) -> Floats:
        """The standard deviation of each arm's value."""
        return np.asarray(np.linalg.norm(self.gains, axis=1))

    @property
    def common(self) -> tuple[Floats, Floats]:
        """The noise and dispersion that count along gain_k, where two arms have equal values.

        With a shared parameter an error along it moves both scores alike, and changes no choice.
        """
        if not self.shared_parameter:
            return self.noise, self.dispersion
        none = np.zeros(self.n_arms)
        return none, none if self.joint else self.dispersion


def model_of(world: Any, policy: Policy) -> Model:
    """Return the model of a world and a policy, or raise if the regret is not derived for them.

    Parameters
    ----------
    world : LinearWorld
        A normal world.
    policy : ThompsonSampling or Greedy
        The policy.

    Raises
    ------
    InvalidValue
        With the reason, if there is no such derivation.
    """
    _check_world(world)
    noise = world.reward_scale**2 + np.diag(world.unseen_covariance)
    dispersion = _dispersion(policy, noise, world.noise_scale)
    spread = root_of(world.observation_covariance)
    model = Model(
        gains=world.eta @ spread,
        prior=np.asarray(policy.prior_precision * np.linalg.inv(spread.T @ spread), np.float64),
        noise=noise,
        dispersion=dispersion,
        shared_context=bool(world.shared_context),
        shared_parameter=policy.sharing == "shared",
        joint=isinstance(policy, ThompsonSampling) and policy.draw == "joint",
    )
    _check_arms(model, policy)
    return model


def _check_world(world: Any) -> None:
    if not all(hasattr(world, name) for name in NEEDED):
        raise InvalidValue(
            "the asymptote is that of a linear world such as LinearWorld with one sensor, got "
            f"{type(world).__name__}"
        )
    if not world.is_normal:
        raise InvalidValue(
            "the asymptote needs normal contexts and sensing noise, got "
            f"{world.context_distribution} and {world.sensing_distribution}: with others the best "
            "linear prediction given that an arm is chosen is not eta, and regret can be linear"
        )
    if len(world.eta) < 2:
        raise InvalidValue("the asymptote needs at least 2 arms: with one there is no regret")


def _dispersion(policy: object, noise: Floats, noise_scale: float) -> Floats:
    """Return v^2 of each arm."""
    # A subclass may score arms in another way.
    if type(policy) is Greedy:
        v: float | str = 0.0
    elif type(policy) is ThompsonSampling:
        v = policy.resolve(noise_scale).v
    else:
        raise InvalidValue(
            "the asymptote is derived for ThompsonSampling and Greedy, whose scores are normal "
            f"about y'eta with a spread that shrinks like t^-1/2, got {shown(policy)}"
        )
    if isinstance(v, str):
        raise InvalidValue(
            "the asymptote is derived for a v that is a number or 'oracle', got 'learned': its "
            "first rounds, in which v is far from known, are not described"
        )
    if policy.sharing == "hybrid":
        raise InvalidValue(
            "the asymptote is derived for sharing='per-arm' and 'shared', got 'hybrid'"
        )
    return np.full_like(noise, v**2)


def _check_arms(model: Model, policy: Policy) -> None:
    scales = model.scales
    if (flat := np.flatnonzero(scales <= ROUNDING * scales.max(initial=0.0))).size:
        raise InvalidValue(
            f"the asymptote needs every y'eta_k to vary, but that of arm {flat[0] + 1} is always 0"
        )
    if not model.shared_parameter:
        return
    if model.shared_context:
        raise InvalidValue(
            "with a shared context and a shared parameter all arms are alike: there is no regret"
        )
    apart = np.abs(model.gains - model.gains[0]).max() > ROUNDING * scales.max()
    if apart or np.ptp(model.noise) > ROUNDING * model.noise.max():
        raise InvalidValue(
            f"{policy!r} learns one parameter for all arms, but the arms of this world differ: its "
            "regret is linear. Give equal rows of coefficients, or sharing='per-arm'"
        )
