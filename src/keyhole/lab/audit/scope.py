"""`Scope`: the world, the sizes and the seed of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keyhole import checks
from keyhole.core import Policy, ThompsonSampling
from keyhole.errors import InvalidValue
from keyhole.lab.audit.choices import Choices, choices
from keyhole.lab.audit.paths import Floats, Ints
from keyhole.lab.audit.predictions import predictability
from keyhole.lab.audit.tracing import Trace, trace
from keyhole.lab.audit.validity import Assumption, assumptions, normal_twin
from keyhole.lab.simulation import simulate
from keyhole.lab.worlds import LinearWorld
from keyhole.theory import Constants, Promises, instance

# Rates show only after this number of pulls for each dimension.
EARLY = 10
# And only where observations are known to have this multiple of the prior's precision. With k
# times the prior the noise of an estimate is sqrt(k) / (1 + k): the exponent of that in k, from 10
# to 100, is -0.46, and from 1 to 10 it is -0.24.
OUTWEIGHED = 10
# A variance below this share of the largest, and noise below this share of rewards, is rounding.
TINY = 1e-12
# The number of checkpoints, evenly spaced on a logarithmic scale.
CHECKPOINTS = 80


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The world, the sizes and the seed of an audit.

    A claim is refused if the world does not meet an assumption that it needs (`validity`). To hold
    claims against a world outside of the assumptions on purpose, give `outside=True`: the constants
    are then those of the world with normal distributions of the same covariances. Or give them by a
    world of your own, `assumed`.

    Parameters
    ----------
    world : LinearWorld
        The world to simulate, with at least two arms.
    horizon : int, default 4000
        The number of rounds, at least 100.
    replications : int, default 100
        The number of replications, at least 4.
    delta : float, default 0.1
        The probability of failure in the claims, above 0 and at most 0.5.
    seed : int, default 1
        The seed of the simulations.
    shared : bool, default False
        Audit Algorithm 2, with one parameter for all arms, in place of Algorithm 1.
    outside : bool, default False
        Test all claims, with the constants of the world's normal twin.
    assumed : LinearWorld, optional
        The world whose constants and eta the claims take, in place of `world`.
    policy : Policy, optional
        The policy to audit. By default Thompson sampling with v = R.

    Raises
    ------
    InvalidValue
        If an argument is invalid, or the world has one arm.
    """

    world: LinearWorld
    horizon: int = 4000
    replications: int = 100
    delta: float = 0.1
    seed: int = 1
    shared: bool = False
    outside: bool = False
    assumed: LinearWorld | None = None
    policy: Policy | None = None

    def __post_init__(self) -> None:
        for name in ("world",) if self.assumed is None else ("world", "assumed"):
            if not isinstance(getattr(self, name), LinearWorld):
                kind = type(getattr(self, name)).__name__
                raise InvalidValue(f"{name}: an audit is of a LinearWorld, got {kind}")
        if self.world.n_arms < 2:
            raise InvalidValue("an audit needs two arms or more, got a world of one")
        if self.stated.eta.shape != self.world.eta.shape:
            raise InvalidValue(
                f"assumed must have {self.world.n_arms} arms and dim {self.world.dim} as the world "
                f"has, got {self.stated.n_arms} and {self.stated.dim}"
            )
        if self.policy is not None and not isinstance(self.policy, Policy):
            raise InvalidValue(f"policy must be a Policy, got {type(self.policy).__name__}")
        checks.integer("horizon", self.horizon, min_value=100)
        checks.integer("replications", self.replications, min_value=4)
        checks.real("delta", self.delta, above=0.0, max_value=0.5)
        checks.integer("seed", self.seed, min_value=0)
        checks.flag("shared", self.shared)
        checks.flag("outside", self.outside)

    @cached_property
    def stated(self) -> LinearWorld:
        """The world whose constants and eta the claims take."""
        if self.assumed is not None:
            return self.assumed
        return normal_twin(self.world) if self.outside else self.world

    @property
    def is_inside(self) -> bool:
        """True if claims are about the world that is simulated."""
        return not self.outside and self.assumed is None

    @cached_property
    def validity(self) -> tuple[Assumption, ...]:
        """The assumptions of the theory, each with whether the simulated world meets it."""
        return assumptions(self.world)

    @cached_property
    def promises(self) -> Promises:
        """The bounds of the stated world."""
        return Promises(instance(self.stated), horizon=self.horizon, delta=self.delta)

    @property
    def constants(self) -> Constants:
        """The constants of the stated world."""
        return self.promises.constants

    @property
    def parameters(self) -> int:
        """The number of parameters that are learned."""
        return 1 if self.shared else self.world.n_arms

    @property
    def learner(self) -> Policy:
        """The policy that is simulated: Algorithm 1 with v = R, Algorithm 2, or `policy`."""
        if self.policy is not None:
            return self.policy
        return ThompsonSampling(
            v=self.stated.noise_scale, sharing="shared" if self.shared else "per-arm"
        )

    @property
    def v(self) -> float:
        """The dispersion of samples: the policy's, or R if it has none that is a number."""
        v = getattr(self.learner, "v", None)
        return float(v) if isinstance(v, float) else self.stated.noise_scale

    @cached_property
    def times(self) -> Ints:
        """The checkpoints."""
        times: Ints = np.unique(np.geomspace(1, self.horizon, CHECKPOINTS).astype(np.intp))
        return times

    @cached_property
    def arms(self) -> Ints:
        """The arm of every round in every replication, (replications, horizon)."""
        runs = simulate(
            self.world,
            {"audited": self.learner},
            horizon=self.horizon,
            replications=self.replications,
            seed=self.seed,
            checkpoints=range(1, self.horizon + 1),
            progress=False,
        )
        pulls = runs.pulls.sel(policy="audited").values  # (replication, time, arm)
        arms: Ints = np.diff(pulls, axis=1, prepend=0.0).argmax(axis=2)
        return arms

    @cached_property
    def traced(self) -> Trace:
        """Measurements of estimates and regret."""
        return trace(self)

    @cached_property
    def choices(self) -> Choices:
        """Sums over rounds in which one arm is clearly best."""
        return choices(self)

    @cached_property
    def predictability(self) -> Floats:
        """Sum of errors times a function of y over its limit (ass:subg), per replication."""
        return predictability(self)

    @property
    def enough(self) -> float:
        """The pulls from which lem:eig is tested, far below nu_1.

        For n independent standard normal vectors the smallest eigenvalue of their sum of squares is
        below n / 2 with probability at most delta / N from
        n = ((sqrt(d) + sqrt(2 log(N / delta))) / (1 - sqrt(1 / 2)))^2 on (Davidson and Szarek).
        """
        root = np.sqrt(2.0 * np.log(self.parameters / self.delta))
        return float((np.sqrt(self.world.dim) + root) / (1.0 - np.sqrt(0.5))) ** 2

    @cached_property
    def rounding(self) -> float:
        """The size of errors of rounding in rewards: 1e-12 of the standard deviation of y'eta."""
        return TINY * float(self.stated.value_scales.max())

    @property
    def is_noiseless(self) -> bool:
        """True if R is 0 up to rounding: limits that are multiples of R then say nothing."""
        return self.constants.r <= self.rounding

    @property
    def outweighing(self) -> float:
        """The pulls after which observations have ten times the precision of the prior.

        n pulls have a precision of n times the smallest eigenvalue of the covariance of y, of those
        directions in which y varies.
        """
        values = np.linalg.eigvalsh(self.world.observation_covariance)
        smallest = values[values > TINY * values.max()].min(initial=np.inf)
        return float(OUTWEIGHED * self.learner.prior_precision / smallest)

    @cached_property
    def early(self) -> str:
        """The reason why rates of estimates cannot show yet; "" if they can.

        Rates are fitted from T / 10 on. By then each parameter of an arm that can be best needs ten
        pulls for each dimension, on average, and enough to outweigh the prior.
        """
        return self._early(EARLY)

    def early_choices(self, noise_over_lead: float) -> str:
        """Return the reason why rates of choices cannot show yet; "" if they can.

        The lead of one arm over another has a standard deviation of sqrt(2) s, and the difference
        of their scores a noise of sqrt(2 (R^2 + v^2) d / n). Noise over lead is small enough from
        n = 2 d (R / s / noise_over_lead)^2 pulls on.

        Of two arms the wrong one is chosen with probability arctan(noise / lead) / pi. The exponent
        of that over the next factor of ten in n is -0.47 where noise / lead is 1/2, and -0.41 where
        it is 1.

        Parameters
        ----------
        noise_over_lead : float
            The noise over the lead, of the pair of arms that is the hardest to tell apart, from
            which on a rate shows.
        """
        two = np.sort(self.stated.value_scales)[:2]
        lead = noise_over_lead**2 * max(float((two**2).mean()), 1e-300)
        return self._early(max(EARLY, 2.0 * self.stated.noise_scale**2 / lead))

    def _early(self, per_dimension: float) -> str:
        """Return the reason why a parameter has too few pulls by T / 10, if one has."""
        start = self.horizon // 10
        if self.shared:
            fewest = float(start)
        else:
            p = np.array([one.value for one in self.promises.instance.p])
            arms = np.flatnonzero(p > 0.0)
            fewest = min(float((self.arms[:, :start] == i).sum(axis=1).mean()) for i in arms)
        needed = per_dimension * self.world.dim
        if fewest >= max(needed, self.outweighing):
            return ""
        said = f"too few pulls: {fewest:,.0f} by round {start:,}, where "
        if needed >= self.outweighing:
            return f"{said}a rate needs {needed:,.0f}"
        return f"{said}data outweigh the prior {OUTWEIGHED} times from {self.outweighing:,.0f} on"
