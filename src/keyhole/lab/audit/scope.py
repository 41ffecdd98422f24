"""`Scope`: the world, the sizes and the seed of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from keyhole import checks
from keyhole.core import Policy, ThompsonSampling
from keyhole.errors import InvalidValue
from keyhole.lab.audit.tracing import Trace, trace
from keyhole.lab.simulation import simulate
from keyhole.lab.worlds import LinearWorld
from keyhole.theory import Constants, Promises, instance, unmet

# Rates show only after this number of pulls for each dimension.
EARLY = 10


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The world, the sizes and the seed of an audit.

    The world must meet the theory's assumptions and have at least two arms. The assumptions require
    normal contexts and normal sensing noise in every direction: with others R2 is infinite, and
    there is nothing to audit.

    Parameters
    ----------
    world : LinearWorld
        The world to audit.
    horizon : int, default 4000
        The number of rounds, at least 100.
    replications : int, default 40
        The number of replications, at least 4.
    delta : float, default 0.1
        The probability of failure in the claims, above 0 and at most 0.5.
    seed : int, default 1
        The seed of the simulations.
    shared : bool, default False
        Audit Algorithm 2, with one parameter for all arms, in place of Algorithm 1.
    """

    world: LinearWorld
    horizon: int = 4000
    replications: int = 40
    delta: float = 0.1
    seed: int = 1
    shared: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.world, LinearWorld):
            raise InvalidValue(f"an audit is of a LinearWorld, got {type(self.world).__name__}")
        if reasons := unmet(self.world):
            raise InvalidValue(
                f"there is nothing to audit: the theory promises nothing of this world. "
                f"{'. '.join(reasons)}"
            )
        if self.world.n_arms < 2:
            raise InvalidValue("an audit needs two arms or more")
        checks.integer("horizon", self.horizon, min_value=100)
        checks.integer("replications", self.replications, min_value=4)
        checks.real("delta", self.delta, above=0.0, max_value=0.5)
        checks.integer("seed", self.seed, min_value=0)

    @cached_property
    def promises(self) -> Promises:
        """The bounds of this world."""
        return Promises(instance(self.world), horizon=self.horizon, delta=self.delta)

    @property
    def constants(self) -> Constants:
        """The constants of this world."""
        return self.promises.constants

    @property
    def policy(self) -> Policy:
        """Algorithm 1 with v = R, or Algorithm 2."""
        return ThompsonSampling(v="oracle", sharing="shared" if self.shared else "per-arm")

    def runs(self, policy: Policy) -> xr.Dataset:
        """Return curves of a policy at times evenly spaced on a logarithmic scale."""
        times = np.unique(np.geomspace(1, self.horizon, 80).astype(int))
        return simulate(
            self.world,
            {"audited": policy},
            horizon=self.horizon,
            replications=self.replications,
            seed=self.seed,
            checkpoints=times.tolist(),
            progress=False,
        ).sel(policy="audited")

    @cached_property
    def oracle_runs(self) -> xr.Dataset:
        """The curves of the policy in the theorems."""
        return self.runs(self.policy)

    @cached_property
    def traced(self) -> Trace:
        """The trace of the same policy, measured after every pull."""
        return trace(
            self.world,
            self.policy,
            self.promises,
            replications=self.replications,
            seed=self.seed,
        )

    @property
    def is_early(self) -> bool:
        """True if some relevant parameter has too few observations for a rate to show."""
        matters = [True] if self.shared else [one.value > 0 for one in self.promises.instance.p]
        pulls = self.oracle_runs.pulls.isel(time=-1).mean("replication").values
        seen = [pulls.sum()] if self.shared else pulls[matters]
        return bool(np.min(seen) < EARLY * self.world.dim)
