"""`Setting`: a world and a policy in the coordinates in which observations are standard normal.

With Sigma the covariance of y, u = Sigma^-1/2 y is N(0, I). A value is y'eta = u'h with h =
Sigma^1/2 eta, and B = prior I + Sigma^1/2 S Sigma^1/2 with S the sum of u u' over an arm's pulls.
Directions in which y has no variance are left out: neither values nor scores depend on them.
Observations in units so far apart that rounding hides a direction are refused.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.core import Policy, Rule
from keyhole.errors import InvalidValue, shown
from keyhole.theory.quantities import Arrays
from keyhole.theory.ranges import Floats
from keyhole.theory.roots import root_of

# Eigenvalues of the covariance of y below this share of the largest are 0 up to rounding.
ROUNDING = 1e-12
NEEDED = ("eta", "observation_covariance", "unseen_covariance", "is_normal", "shared_context", "r1")


@dataclass(frozen=True, eq=False)
class Setting:
    """The numbers of a world and a policy that a certificate depends on.

    Parameters
    ----------
    h : ndarray of shape (n_arms, dim)
        Sigma^1/2 eta_i, so that the value of arm i is u_i'h_i.
    eta : ndarray of shape (n_arms, dim)
        eta_i in the eigenvectors of Sigma.
    scales : ndarray of shape (dim,)
        The positive eigenvalues of Sigma.
    vectors : ndarray of shape (observation dim, dim)
        Its eigenvectors.
    noise : ndarray of shape (n_arms,)
        R_i, the sub-Gaussian constant of a reward of arm i about y'eta_i.
    prior : float
        The prior precision of the policy.
    v : float
        Its dispersion; 0 is Greedy.
    shared : bool
        Whether all arms see one observation.
    digest : str
        A digest of all of these, by which a burn-in is matched.
    """

    h: Floats  # (n_arms, dim)
    eta: Floats  # (n_arms, dim)
    scales: Floats  # (dim,)
    vectors: Floats  # (observation dim, dim)
    noise: Floats  # (n_arms,)
    prior: float
    v: float
    shared: bool
    digest: str

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return len(self.h)

    @property
    def dim(self) -> int:
        """The number of directions in which observations vary."""
        return len(self.scales)

    @property
    def lengths(self) -> Floats:
        """The standard deviation of each arm's value."""
        found: Floats = np.linalg.norm(self.h, axis=1)
        return found

    @property
    def separations(self) -> Floats:
        """The standard deviation of the gap of each pair of arms, (n_arms, n_arms)."""
        found: Floats = np.hypot(self.lengths[:, None], self.lengths[None, :])
        if self.shared:
            found = np.linalg.norm(self.h[:, None] - self.h[None, :], axis=2)
        return found

    def information(self, precision: Floats) -> Floats:
        """Return lambda_min(S_i) of each arm, for precisions B of shape (..., dim, dim).

        Parameters
        ----------
        precision : ndarray
            prior I + the sum of y y' over the pulls of an arm.
        """
        half = self.vectors / np.sqrt(self.scales)
        inner = half.T @ (precision - self.prior * np.eye(len(self.vectors))) @ half
        return np.linalg.eigvalsh(inner)[..., 0].clip(min=0.0)


def setting_of(world: Arrays, policy: Policy) -> Setting:
    """Return the setting of a world and a policy, or raise if no certificate covers them.

    Parameters
    ----------
    world : LinearWorld
        The world.
    policy : Policy
        The policy.

    Raises
    ------
    InvalidValue
        If the world or the policy is outside the reach of certificates; the message says why.
    """
    if any(not hasattr(world, name) for name in NEEDED):
        raise InvalidValue(
            "a certificate is about a LinearWorld with one sensor and nothing missing, got "
            f"{type(world).__name__}: its proof needs observations that are normal with one "
            "covariance"
        )
    # Properties describe the rounds of the class that has them, and not those of a subclass.
    kind: Any = type(world)
    home: Any = next((each for each in kind.__mro__ if "eta" in vars(each)), kind)
    if kind.rounds is not home.rounds:
        raise InvalidValue(
            f"a certificate is about the rounds of {home.__name__}, and {kind.__name__} "
            "has rounds of its own"
        )
    if not world.is_normal:
        raise InvalidValue(
            "a certificate needs normal contexts and normal sensing noise: otherwise "
            "E[x'mu - y'eta | y] is not 0, and regret can grow linearly; theory.unmet(world) has "
            "the details"
        )
    if not np.isfinite(world.r1):
        raise InvalidValue(
            "a certificate needs rewards with sub-Gaussian noise (R1 is infinite): the ellipsoids "
            "of the estimates rest on it"
        )
    if len(world.eta) < 2:
        raise InvalidValue("a certificate needs two arms or more: with one there is no regret")
    v = _dispersion(policy, float(np.hypot(world.r1, world.r2)))
    return _whitened(world, v, float(policy.prior_precision))


def _dispersion(policy: Policy, noise_scale: float) -> float:
    """Return v of a policy that samples or is greedy, or raise with the reason."""
    if not isinstance(policy, Policy):
        raise InvalidValue(f"policy must be a Policy, got {shown(policy)}")
    if policy.sharing != "per-arm":
        raise InvalidValue(
            f"a certificate needs sharing='per-arm', got {policy.sharing!r}: with a shared "
            "parameter the arm that is pulled does not determine the parameter that learns"
        )
    rule = policy.resolve(noise_scale).plain_rule()
    reasons = {
        "v must be a number or 'oracle', got 'learned': the width of samples then depends on the "
        "rewards": rule.learned,
        f"{policy!r} adds optimism to the scores: they are not symmetric about 0, and an arm may "
        "never be explored": rule.optimism > 0.0 or rule.radius > 0.0,
        f"{policy!r} chooses uniformly with a fixed probability: its regret is linear": (
            rule.epsilon > 0.0
        ),
        f"{policy!r} changes between two rules by what it has seen": rule.diversity > 0.0,
    }
    for reason, refused in reasons.items():
        if refused:
            raise InvalidValue(
                f"there is no certificate of this policy: {reason}. Give ThompsonSampling(v=...) "
                "or Greedy()"
            )
    if rule != Rule(dispersion=rule.dispersion):
        raise InvalidValue(f"there is no certificate of the rule {rule}")
    return float(rule.dispersion)


def _whitened(world: Arrays, v: float, prior: float) -> Setting:
    covariance = np.asarray(world.observation_covariance, dtype=np.float64)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > ROUNDING * values.max(initial=0.0)
    if not kept.any():
        raise InvalidValue("a certificate needs observations that vary, got a covariance of 0")
    if kept.sum() < root_of(covariance).shape[1]:
        # A small direction may carry most of a value, and rounding would lose it.
        raise InvalidValue(
            "a certificate needs observations in comparable units: the variance of y in some "
            f"direction is below {ROUNDING:g} of that in another. Measure the entries of y in "
            "other units, and the certificate is that of the new ones"
        )
    scales = values[kept]
    eta = np.asarray(world.eta, dtype=np.float64) @ vectors[:, kept]
    unseen = np.diag(world.unseen_covariance).clip(min=0.0)
    digest = hashlib.sha256()
    for array in (world.eta, covariance, unseen, [world.r1, v, prior, world.shared_context]):
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    # A burn-in is measured: it depends on the whole distribution of rewards.
    digest.update(str(getattr(world, "reward_distribution", "")).encode())
    return Setting(
        h=eta * np.sqrt(scales),
        eta=eta,
        scales=scales,
        vectors=vectors[:, kept],
        noise=np.sqrt(world.r1**2 + unseen),
        prior=prior,
        v=v,
        shared=bool(world.shared_context),
        digest=digest.hexdigest(),
    )
