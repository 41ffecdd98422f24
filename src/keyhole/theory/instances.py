"""`Instance`: the constants of a world, each with its label, its error and its safe value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keyhole import checks
from keyhole.core import Seed
from keyhole.errors import InvalidValue
from keyhole.theory.constants import Constants
from keyhole.theory.limits import lowest_probability
from keyhole.theory.quantities import Arrays, Quantity
from keyhole.theory.separation import BLOCK, separation

# Rounds from which conditional gaps are estimated.
TRIALS = 200_000
# A smallest eigenvalue of the sensing noise below this is 0 up to rounding.
TINY = 1e-12
# The constants of the repaired bounds.
OF_REPAIRED = ("eig_min", "eig_max", "tie_density")


@dataclass(frozen=True)
class Instance:
    """The constants of a world, as `instance` finds them.

    Parameters
    ----------
    n_arms, dim : int
        The number of arms, and the dimension of an observation.
    p : tuple of Quantity
        The probability of each arm to be best.
    p_min, kappa, margin, lambda_m, c_eta, c_y, r : Quantity
        See `Constants`.
    r1, r2 : Quantity
        The parts of r: of the reward's noise, and of x'mu - y'eta given y.
    eig_min, eig_max, tie_density : Quantity
        See `Constants`. The repaired bounds use them in place of the sensing noise and of the
        margin constant.
    shared_context : bool, default False
        Whether all arms see one observation. lem:eig is false then.
    unmet : tuple of str, default ()
        The assumptions of the theory that the world does not meet. If there are any, most bounds
        are infinite, and nothing is promised.

    Examples
    --------
    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=2, seed=1)
    >>> found = kh.theory.instance(world)
    >>> found.lambda_m.value, found.r.label
    (1.0, 'lem:subg')
    """

    n_arms: int
    dim: int
    p: tuple[Quantity, ...]
    p_min: Quantity
    kappa: Quantity
    margin: Quantity
    lambda_m: Quantity
    c_eta: Quantity
    c_y: Quantity
    r1: Quantity
    r2: Quantity
    r: Quantity
    eig_min: Quantity
    eig_max: Quantity
    tie_density: Quantity
    shared_context: bool = False
    unmet: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, Quantity]:
        """All of them by name, those of an arm as p_1, p_2, ..."""
        arms = {f"p_{i}": one for i, one in enumerate(self.p, start=1)}
        rest = ("p_min", "kappa", "margin", "lambda_m", "c_eta", "c_y", "r1", "r2", "r")
        both = (*rest, *OF_REPAIRED)
        return {**arms, **{name: getattr(self, name) for name in both}}

    def constants(self, *, delta: float = 0.05, v: float | None = None) -> Constants:
        """Return the numbers that bounds take: the safe value of every constant.

        Parameters
        ----------
        delta : float, default 0.05
            The probability with which a bound may fail.
        v : float, optional
            The dispersion of Thompson sampling, at least R. By default R.

        Raises
        ------
        InvalidValue
            If `delta` is not above 0 and at most 0.999, or `v` is below R.
        """
        delta = checks.real("delta", delta, above=0.0, max_value=0.999)
        v = self.r.value if v is None else checks.positive("v", v)
        if v < self.r.value:
            why = "".join(f"; {reason}" for reason in self.unmet)
            raise InvalidValue(
                f"the theorems need v to be at least R = {self.r.value:.4g}, got {v:.4g}{why}"
            )
        names = ("p_min", "kappa", "margin", "lambda_m", "c_eta", "c_y", "r", *OF_REPAIRED)
        safe = {name: getattr(self, name).safe for name in names}
        return Constants(n_arms=self.n_arms, dim=self.dim, delta=delta, v=v, **safe)


def instance(world: Arrays, *, trials: int = TRIALS, seed: Seed = 0) -> Instance:
    """Return the constants of a world.

    They are exact where there is a formula. kappa and the margin constant are estimated from
    `trials` rounds; so is p_i where the values of arms are not independent normals. Bounds use
    `Quantity.safe`: one-sided limits of kappa and p_i, and an upper bound of the margin constant.

    Parameters
    ----------
    world : LinearWorld
        The world, or an object with the same properties.
    trials : int, default 200,000
        The number of rounds for estimates, at least 2000.
    seed : int, numpy.random.SeedSequence or None, default 0
        The seed of these rounds.

    Raises
    ------
    InvalidValue
        If the world is not linear, or `trials` is too small.
    """
    if not hasattr(world, "sensing_covariance"):
        raise InvalidValue(
            f"the theory is about linear worlds such as LinearWorld, got {type(world).__name__}"
        )
    trials = checks.integer("trials", trials, min_value=BLOCK)
    n_arms, dim = world.eta.shape
    p, p_error = world.optimality
    arms = tuple(
        Quantity(
            float(p[i]),
            float(p_error[i]),
            "def:astar",
            f"probability that arm {i + 1} is best",
            safe=lowest_probability(float(p[i]), float(p_error[i])),
        )
        for i in range(n_arms)
    )
    # An arm without a win among those counted may still be best at times.
    possible = [one for one in arms if one.value > 0.0 or one.error > 0.0]
    rarest = min((one for one in arms if one.value > 0.0), key=lambda one: one.value)
    limits = np.array([one.safe if one in possible else np.nan for one in arms])
    kappa, margin = separation(world, limits, trials, seed)
    limit = np.sqrt(np.diag(world.observation_covariance).max())
    return Instance(
        n_arms=n_arms,
        dim=dim,
        p=arms,
        p_min=Quantity(
            rarest.value,
            rarest.error,
            "thm:reg2",
            "the smallest positive p_i",
            safe=min(one.safe for one in possible),
        ),
        kappa=kappa,
        margin=margin,
        lambda_m=Quantity(
            float(max(np.linalg.eigvalsh(world.sensing_covariance).min(), 0.0)),
            0.0,
            "eq:vt",
            "the smallest eigenvalue of the sensing noise's covariance",
        ),
        c_eta=Quantity(
            float(np.linalg.norm(world.eta, axis=1).max()), 0.0, "ass:para", "the longest eta_i"
        ),
        c_y=Quantity(
            float(limit) if world.is_subgaussian else np.inf,
            0.0,
            "eq:cy",
            "sub-Gaussian constant of the entries of an observation",
        ),
        r1=Quantity(world.r1, 0.0, "eq:r1", "sub-Gaussian constant of the reward's noise"),
        r2=Quantity(world.r2, 0.0, "ass:subg", "sub-Gaussian constant of x'mu - y'eta given y"),
        r=Quantity(float(np.hypot(world.r1, world.r2)), 0.0, "lem:subg", "sqrt(R1^2 + R2^2)"),
        **_of_repaired(world),
        shared_context=bool(world.shared_context),
        unmet=unmet(world),
    )


def _of_repaired(world: Arrays) -> dict[str, Quantity]:
    """Return the constants of the repaired bounds; they are unknown to bounds of other worlds."""
    covariance = world.observation_covariance
    eigenvalues = np.linalg.eigvalsh(covariance)
    smallest = float(eigenvalues[0]) if eigenvalues[0] > TINY * eigenvalues[-1] else 0.0
    own = bool(world.is_normal and not world.shared_context)
    squares = np.einsum("ij,jk,ik->i", world.eta, covariance, world.eta)
    i, j = np.triu_indices(len(squares), 1)
    with np.errstate(divide="ignore"):
        ties = float(2.0 * (1.0 / np.sqrt(2.0 * np.pi * (squares[i] + squares[j]))).sum())
    of = "eigenvalue of the covariance of an observation"
    return {
        "eig_min": Quantity(
            smallest, 0.0, "lem:eig", f"smallest {of}", safe=smallest if own else 0.0
        ),
        "eig_max": Quantity(
            float(eigenvalues[-1]),
            0.0,
            "eq:ybnd",
            f"largest {of}",
            safe=float(eigenvalues[-1]) if world.is_normal else np.inf,
        ),
        "tie_density": Quantity(
            ties,
            0.0,
            "thm:reg2",
            "densities at 0 of gaps between values, added up over ordered pairs of arms",
            safe=ties if own else np.inf,
        ),
    }


def unmet(world: Arrays) -> tuple[str, ...]:
    """List the assumptions of the theory that a world does not meet, each with its reason.

    Examples
    --------
    >>> import keyhole as kh
    >>> unmet(kh.LinearWorld(sensing=[[1.0]], coefficients=[[1.0]]))
    ()

    """
    if not hasattr(world, "sensing_covariance"):
        raise InvalidValue(
            f"the theory is about linear worlds such as LinearWorld, got {type(world).__name__}"
        )
    smallest = float(np.linalg.eigvalsh(world.sensing_covariance).min())
    reasons = {
        "R2 is infinite (ass:subg): contexts and sensing noise are not both normal, so "
        "E[x'mu - y'eta | y] is in general not 0. An arm is chosen where its y looks good; its "
        "estimate tends to the regression given that choice and not to eta, and regret can grow "
        "linearly": np.isfinite(world.r2),
        "R1 is infinite (eq:r1): the noise of rewards is not sub-Gaussian": np.isfinite(world.r1),
        "c_y is infinite (eq:cy): contexts or sensing noise are not sub-Gaussian": (
            world.is_subgaussian
        ),
        "lambda_m is 0 (eq:vt): the printed bounds need sensing noise in every direction; the "
        "repaired ones do not": smallest > TINY,
    }
    return tuple(reason for reason, met in reasons.items() if not met)
