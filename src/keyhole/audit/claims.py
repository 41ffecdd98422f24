"""Each claim of the paper as a simulation that measures it, and controls that must fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import xarray as xr

from keyhole import checks
from keyhole.audit.findings import Finding, exponent, share
from keyhole.audit.tracing import Trace, trace
from keyhole.errors import InvalidValue
from keyhole.policies import Greedy, Policy, ThompsonSampling
from keyhole.simulation import simulate
from keyhole.summary import over_log_squared, rate_between
from keyhole.theory import Promises, bounds, instance
from keyhole.worlds import LinearWorld

# An exponent this close to the claimed one is called the same.
CLOSE = 0.1
# Rates show after this many pulls for each dimension.
EARLY = 10


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What is audited, and how hard: within the theory's assumptions, and with two arms or more."""

    world: LinearWorld
    horizon: int = 4000
    replications: int = 40
    delta: float = 0.1
    seed: int = 1
    shared: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.world, LinearWorld):
            raise InvalidValue(f"an audit is of a LinearWorld, got {type(self.world).__name__}")
        noise = np.linalg.eigvalsh(self.world.sensing_covariance).min()
        if not self.world.is_subgaussian or not np.isfinite(self.world.r1) or noise <= 1e-12:
            raise InvalidValue(
                "the theory assumes sub-Gaussian contexts and noise, and sensing noise in every "
                "direction: there is nothing to audit without them"
            )
        if self.world.n_arms < 2:
            raise InvalidValue("an audit needs two arms or more")
        checks.whole("horizon", self.horizon, least=100)
        checks.whole("replications", self.replications, least=4)
        checks.number("delta", self.delta, above=0.0, most=0.5)

    @cached_property
    def promises(self) -> Promises:
        """The bounds of this world."""
        return Promises(instance(self.world), horizon=self.horizon, delta=self.delta)

    @property
    def policy(self) -> Policy:
        """Algorithm 1 with v = R, or Algorithm 2."""
        return ThompsonSampling(v="told", parameters="shared" if self.shared else "per-arm")

    def runs(self, policy: Policy) -> xr.Dataset:
        """Curves of a policy at times evenly spaced on a logarithmic scale."""
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
    def told(self) -> xr.Dataset:
        """Curves of the policy that the theorems are about."""
        return self.runs(self.policy)

    @cached_property
    def traced(self) -> Trace:
        """The same policy, looked at after every pull."""
        return trace(
            self.world,
            self.policy,
            horizon=self.horizon,
            replications=self.replications,
            seed=self.seed,
            length=self.promises.length,
            delta=self.delta,
        )

    @property
    def is_early(self) -> bool:
        """Whether some parameter that matters was seen so little that no rate can show yet."""
        matters = [True] if self.shared else [one.value > 0 for one in self.promises.instance.p]
        pulls = self.told.pulls.isel(time=-1).mean("replication").values
        seen = [pulls.sum()] if self.shared else pulls[matters]
        return bool(np.min(seen) < EARLY * self.world.dim)


def truncation(scope: Scope) -> Finding:
    """lem:tr."""
    limit = float(scope.promises.bound("truncation"))
    within = share(scope.traced.largest <= limit)
    return Finding(
        "truncation",
        "lem:tr",
        f"all entries of all observations stay within v_T = {limit:.3g}, "
        f"with probability {1 - scope.delta:g}",
        within.at_least(1 - scope.delta),
        f"so in {within} replications; the largest was {scope.traced.largest.max():.3g}",
    )


def ellipsoid(scope: Scope) -> Finding:
    """lem:subg, for all parameters at once with delta shared among them."""
    reach = scope.traced.reach.max(axis=1)
    within = share(reach <= 1.0)
    return Finding(
        "ellipsoid",
        "lem:subg",
        f"the confidence ellipsoids cover in all rounds at once, with probability "
        f"{1 - scope.delta:g}",
        within.at_least(1 - scope.delta),
        f"so in {within} replications; at the most |mean - eta| was {reach.max():.2f} radii",
    )


def eigenvalues(scope: Scope) -> Finding:
    """lem:eig: from some number of pulls on, which is compared with nu_1."""
    last, needed = float(scope.traced.late.max()), scope.promises.nu_1
    settled = share(np.asarray((scope.traced.late < scope.traced.pulls).all(axis=1)))
    holds = settled.at_least(1 - scope.delta)
    return Finding(
        "eigenvalues",
        "lem:eig",
        "the largest eigenvalue of B^-1 is at most 2 / (lambda_m n) from nu_1 pulls on, with "
        f"probability {1 - scope.delta:g}",
        None if not holds and scope.is_early else holds,
        f"so at the end in {settled} replications, and from {last + 1:,.0f} pulls on in all; "
        f"nu_1 is {needed:.2g}",
    )


def pulls(scope: Scope) -> Finding:
    """lem:ni: from some round on, which is compared with tau_i."""
    return _pulls(scope, scope.told, "pulls")


def _pulls(scope: Scope, runs: xr.Dataset, name: str) -> Finding:
    p = np.array([one.value for one in scope.promises.instance.p])
    matter = np.flatnonzero(p > 0)
    enough = runs.pulls.values >= p * runs.time.values[:, None] / 4.0  # (rep, time, arm)
    # The first checkpoint from which on it is so, or none at all.
    ever_after = np.flip(np.logical_and.accumulate(np.flip(enough, axis=1), axis=1), axis=1)
    settled = ever_after[:, -1, :]
    first = np.where(ever_after, runs.time.values[:, None], np.inf).min(axis=1)
    all_arms = np.asarray(settled.all(axis=1))
    held, needed = share(all_arms), max(scope.promises.tau(int(i)) for i in matter)
    since = f" from round {first[all_arms].max():,.0f} on" if all_arms.any() else ""
    return Finding(
        name,
        "lem:ni",
        f"n_i(t) >= p_i t / 4 for every arm at the end, with probability {1 - scope.delta:g}",
        held.at_least(1 - scope.delta),
        f"so in {held} replications{since}; tau_M is {needed:.2g}",
    )


def estimation(scope: Scope) -> Finding:
    """thm:eta2: the rate, and the bound's looseness."""
    possible = [one.value > 0 for one in scope.promises.instance.p]
    arms = scope.told.error.isel(arm=[0] if scope.shared else np.flatnonzero(possible))
    error = arms.max("arm")
    slope, last = exponent(error), float(error.isel(time=-1).max())
    end = {"n": float(scope.horizon), "t": float(scope.horizon)}
    promised = float(
        scope.promises.bound("estimation_error", **end)
        if scope.shared
        else scope.promises.bound("theorem_1", p=scope.promises.instance.p_min.value, **end)
    )
    rate = None if scope.is_early else slope.at_most(-0.5 + CLOSE)
    return Finding(
        "estimation",
        "lem:eta0" if scope.shared else "thm:eta2",
        "the estimation error falls like t^-1/2, and stays below its bound",
        rate if last <= promised else False,
        f"exponent {slope}; the largest error at the end is {last:.2g}, the bound {promised:.2g}, "
        f"{promised / last:,.0f} times as much",
    )


def suboptimal(scope: Scope) -> Finding:
    """The step before thm:reg2: how often the chosen arm is not the best."""
    missed = 1.0 - rate_between(scope.told.optimal)
    slope = exponent(missed)
    last = float(missed.isel(time=-1).mean())
    return Finding(
        "suboptimal pulls",
        "thm:reg1" if scope.shared else "thm:reg2",
        "the probability of a suboptimal pull falls like t^-1/2",
        None if scope.is_early else slope.at_most(-0.5 + CLOSE),
        f"exponent {slope}; at the end {last:.1%} of the pulls",
    )


def regret(scope: Scope) -> Finding:
    """thm:reg2 or thm:reg1: the rate, and the bound's looseness."""
    return _regret(scope, scope.told, "regret")


def _regret(scope: Scope, runs: xr.Dataset, name: str) -> Finding:
    # If regret is at most (log t)^2, its exponent in t after dividing by that is at most 0.
    squared = exponent(over_log_squared(runs.regret))
    looser = exponent(
        runs.regret.sel(time=runs.time >= 2) / np.log(runs.time[runs.time >= 2]) ** 5.5
    )
    theorem = "shared_theorem" if scope.shared else "theorem_2"
    worst, promised = float(runs.regret.isel(time=-1).max()), float(scope.promises.bound(theorem))
    rate = None if scope.is_early else squared.at_most(CLOSE)
    return Finding(
        name,
        "thm:reg1" if scope.shared else "thm:reg2",
        "regret grows at most like (log t)^2, and stays below its bound",
        rate if worst <= promised else False,
        f"exponent in t over (log t)^2: {squared}, over (log t)^5.5: {looser}; the worst regret is "
        f"{worst:,.0f}, the bound {promised:.2g}, {promised / worst:.1g} times as much",
    )


CLAIMS: tuple[Callable[[Scope], Finding], ...] = (
    truncation,
    ellipsoid,
    eigenvalues,
    pulls,
    estimation,
    suboptimal,
    regret,
)


def controls(scope: Scope) -> Iterator[Finding]:
    """Claims outside their assumptions: an audit that passed them would not be worth much."""
    crowd = LinearWorld.random(n_arms=20, context_dim=10, observation_dim=10, seed=scope.seed)
    crowded = replace(scope, world=crowd)
    timid = ThompsonSampling(v=0.01 * crowd.noise_scale)
    for policy, name in ((Greedy(), "control: Greedy"), (timid, "control: v = R / 100")):
        yield replace(_pulls(crowded, crowded.runs(policy), name), expected=False)
    yield replace(_heavy(scope), expected=False)


def _heavy(scope: Scope) -> Finding:
    """lem:tr with heavy tails, and the constant that normal tails of the same variance have."""
    heavy = replace(scope.world, context_distribution="student-t", sensing_distribution="student-t")
    rounds = min(scope.horizon, 1000)
    limit = float(
        bounds.truncation(
            horizon=rounds,
            n_arms=heavy.n_arms,
            dim=heavy.dim,
            c_y=float(np.sqrt(np.diag(heavy.observation_covariance).max())),
            delta=scope.delta,
        )
    )
    seeds = range(scope.seed, scope.seed + scope.replications)
    largest = np.array([np.abs(heavy.rounds(rounds, seed).observations).max() for seed in seeds])
    within = share(largest <= limit)
    return Finding(
        "control: heavy tails",
        "lem:tr",
        f"entries of Student t contexts and noise stay within v_T = {limit:.3g} all the same",
        within.at_least(1 - scope.delta),
        f"so in {within} replications; the largest was {largest.max():.3g}",
    )


def audit(scope: Scope, *, with_controls: bool = True) -> Iterator[Finding]:
    """Every claim about a world, then the same for a shared parameter, then the controls.

    The shared parameter is the first arm's. Findings come one by one, as they are made.
    """
    for claim in CLAIMS:
        yield claim(scope)
    first = np.tile(scope.world.parameters[:1], (scope.world.n_arms, 1))
    world = replace(scope.world, parameters=first, shared_context=False)
    alike = replace(scope, world=world, shared=True)
    for claim in (ellipsoid, eigenvalues, estimation, suboptimal, regret):
        found = claim(alike)
        yield replace(found, name=f"shared: {found.name}")
    if with_controls:
        yield from controls(scope)
