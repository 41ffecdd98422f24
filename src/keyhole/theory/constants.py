"""The constants of an instance, each with its definition, its label in the paper and its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.core import Seed, Streams
from keyhole.errors import InvalidValue

Floats = NDArray[np.float64]

# Rounds from which conditional gaps are estimated, and how many are drawn at a time.
TRIALS, BLOCK = 200_000, 2_000
# A median or a ratio of fewer gaps than this is mostly noise.
LEAST_GAPS = 200
# A smallest eigenvalue of the sensing noise below this is 0 up to rounding.
TINY = 1e-12


class Arrays(Protocol):
    """What the theory needs of a world: `LinearWorld` has it, and any object of yours may."""

    @property
    def eta(self) -> Floats: ...  # noqa: D102
    @property
    def sensing_covariance(self) -> Floats: ...  # noqa: D102
    @property
    def observation_covariance(self) -> Floats: ...  # noqa: D102
    @property
    def optimality(self) -> tuple[Floats, Floats]: ...  # noqa: D102
    @property
    def shared_context(self) -> bool: ...  # noqa: D102
    @property
    def is_subgaussian(self) -> bool: ...  # noqa: D102
    @property
    def r1(self) -> float: ...  # noqa: D102
    @property
    def r2(self) -> float: ...  # noqa: D102

    def start(self, source: Streams) -> Any:  # noqa: D102
        ...

    def rounds(self, state: Any, n: int) -> Any:  # noqa: D102
        ...


@dataclass(frozen=True)
class Constant:
    """A number with its standard error, its label in the paper and what it is.

    An error of 0 means exact.
    """

    value: float
    error: float
    label: str
    meaning: str

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Instance:
    """All constants that the bounds are made of.

    shared_context says whether all arms see one observation: lem:eig is false then. unmet lists the
    assumptions of the theory that the world does not meet; if there are any, most bounds are
    infinite, and nothing is promised.

    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=2, seed=1)
    >>> constants = kh.theory.instance(world)
    >>> constants.lambda_m.value, constants.r.label
    (1.0, 'lem:subg')
    """

    n_arms: int
    dim: int
    p: tuple[Constant, ...]
    p_min: Constant
    kappa: Constant
    margin: Constant
    lambda_m: Constant
    c_eta: Constant
    c_y: Constant
    r1: Constant
    r2: Constant
    r: Constant
    shared_context: bool = False
    unmet: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, Constant]:
        """All of them by name, those of an arm as p_1, p_2, ..."""
        arms = {f"p_{i}": one for i, one in enumerate(self.p, start=1)}
        rest = ("p_min", "kappa", "margin", "lambda_m", "c_eta", "c_y", "r1", "r2", "r")
        return {**arms, **{name: getattr(self, name) for name in rest}}


def instance(world: Arrays, *, trials: int = TRIALS, seed: Seed = 0) -> Instance:
    """The constants of a world.

    Exact where there is a formula. kappa and the margin constant are estimated from `trials`
    rounds; so is p_i where the values of arms are not independent normals.
    """
    if not hasattr(world, "sensing_covariance"):
        raise InvalidValue(
            f"the theory is about linear worlds such as LinearWorld, got {type(world).__name__}"
        )
    trials = checks.integer("trials", trials, min_value=BLOCK)
    n_arms, dim = world.eta.shape
    p, p_error = world.optimality
    arms = tuple(
        Constant(
            float(p[i]), float(p_error[i]), "def:astar", f"probability that arm {i + 1} is best"
        )
        for i in range(n_arms)
    )
    possible = np.flatnonzero(p > 0.0)
    rarest = possible[np.argmin(p[possible])]
    kappa, margin = _gaps(world, n_arms, trials, seed)
    limit = np.sqrt(np.diag(world.observation_covariance).max())
    return Instance(
        n_arms=n_arms,
        dim=dim,
        p=arms,
        p_min=Constant(
            arms[rarest].value, arms[rarest].error, "thm:reg2", "the smallest positive p_i"
        ),
        kappa=kappa,
        margin=margin,
        lambda_m=Constant(
            float(max(np.linalg.eigvalsh(world.sensing_covariance).min(), 0.0)),
            0.0,
            "eq:vt",
            "the smallest eigenvalue of the sensing noise's covariance",
        ),
        c_eta=Constant(
            float(np.linalg.norm(world.eta, axis=1).max()), 0.0, "ass:para", "the longest eta_i"
        ),
        c_y=Constant(
            float(limit) if world.is_subgaussian else np.inf,
            0.0,
            "eq:cy",
            "sub-Gaussian constant of the entries of an observation",
        ),
        r1=Constant(world.r1, 0.0, "eq:r1", "sub-Gaussian constant of the reward's noise"),
        r2=Constant(world.r2, 0.0, "ass:subg", "sub-Gaussian constant of x'mu - y'eta given y"),
        r=Constant(float(np.hypot(world.r1, world.r2)), 0.0, "lem:subg", "sqrt(R1^2 + R2^2)"),
        shared_context=bool(world.shared_context),
        unmet=unmet(world),
    )


def unmet(world: Arrays) -> tuple[str, ...]:
    """List the assumptions of the theory that a world does not meet, each with its reason.

    Examples
    --------
    >>> import keyhole as kh
    >>> unmet(kh.LinearWorld(sensing=[[1.0]], coefficients=[[1.0]]))
    ()

    """
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
        "lambda_m is 0 (eq:vt): there must be sensing noise in every direction": smallest > TINY,
    }
    return tuple(reason for reason, met in reasons.items() if not met)


def _gaps(world: Arrays, n_arms: int, trials: int, seed: Seed) -> tuple[Constant, Constant]:
    """kappa and the margin constant, from gaps over the length of all observations together."""
    state = world.start(Streams(seed))
    pieces = [_normalised(world.rounds(state, BLOCK), n_arms) for _ in range(trials // BLOCK)]
    best = np.concatenate([piece[0] for piece in pieces])
    gaps = np.concatenate([piece[1] for piece in pieces])  # (trials, n_arms), inf for the best
    medians, ratios, seldom = [], [], []
    for i in range(n_arms if n_arms > 1 else 0):
        own = gaps[best == i]
        if len(own) < 2 * LEAST_GAPS:
            seldom.append(str(i + 1))
            continue
        medians.append(_median(own.min(axis=1)))
        ratios += [_steepest(own[:, j]) for j in range(n_arms) if j != i]
    without = f"; without arms {', '.join(seldom)}, best too seldom to tell" if seldom else ""
    kappa = min(medians) if medians else (np.inf if n_arms == 1 else np.nan, 0.0)
    # With one arm nothing can be confused; with none seen often enough nothing can be said.
    margin = max(ratios) if ratios else (0.0 if n_arms == 1 else np.nan, 0.0)
    return (
        Constant(
            *kappa, "eq:kappa", f"half of the time the best arm leads by this, normalised{without}"
        ),
        Constant(
            *margin,
            "ass:mar",
            f"P(0 < normalised gap <= u | arm i is best) <= C u{without}",
        ),
    )


def _normalised(rounds: Any, n_arms: int) -> tuple[NDArray[np.int64], Floats]:
    """The best arm of each round, and how far it leads every other, over |y(t)|."""
    y = np.broadcast_to(rounds.observations, (len(rounds), n_arms, rounds.observations.shape[2]))
    best = rounds.values.argmax(axis=1)
    size = np.sqrt((y**2).sum(axis=(1, 2)))
    lead = rounds.values.max(axis=1, keepdims=True) - rounds.values
    with np.errstate(invalid="ignore", divide="ignore"):
        lead /= size[:, None]
    lead[np.arange(len(best)), best] = np.inf
    return best, lead


def _median(values: Floats) -> tuple[float, float]:
    """The median, and half the distance of the order statistics one standard error off it."""
    ordered, n = np.sort(values), len(values)
    step = 0.5 * np.sqrt(n)
    low, high = (int(np.clip(n / 2 + sign * step, 0, n - 1)) for sign in (-1, 1))
    return float(np.median(ordered)), float(0.5 * (ordered[high] - ordered[low]))


def _steepest(gaps: Floats) -> tuple[float, float]:
    """The largest ratio of a share of gaps to the largest of them, and its standard error.

    One half of the gaps says where the ratio is largest and the other how large it is there: the
    largest of many noisy ratios would be too high.
    """
    half = len(gaps) // 2
    ordered = np.sort(gaps[:half][gaps[:half] > 0.0])
    if len(ordered) < LEAST_GAPS:
        return 0.0, 0.0
    shares = np.arange(LEAST_GAPS, len(ordered) + 1) / half
    limit = ordered[LEAST_GAPS - 1 + int((shares / ordered[LEAST_GAPS - 1 :]).argmax())]
    share = float(((gaps[half:] > 0.0) & (gaps[half:] <= limit)).mean())
    error = np.sqrt(share * (1.0 - share) / (len(gaps) - half))
    return float(share / limit), float(error / limit)
