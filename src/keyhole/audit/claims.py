"""Each claim of the paper as a simulation that measures it, and controls that must fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from keyhole.audit.findings import Finding, exponent, share
from keyhole.audit.scope import Scope
from keyhole.errors import InvalidValue
from keyhole.policies import Greedy, ThompsonSampling
from keyhole.summary import over_log_squared, rate_between
from keyhole.theory import bounds
from keyhole.worlds import LinearWorld

Floats = NDArray[np.float64]

# An exponent this close to the claimed one is called the same.
CLOSE = 0.1
# Of more arms than this only the first and the last to be pulled often enough are named.
FEW = 5
# Rounds and replications that every control has at least: with fewer a control proves nothing.
CONTROL_ROUNDS, CONTROL_REPLICATIONS = 2000, 20


def truncation(scope: Scope) -> Finding:
    """lem:tr."""
    limit, length, seen = (
        float(scope.promises.bound("truncation")),
        scope.promises.length,
        scope.traced,
    )
    within = share((seen.largest <= limit) & (seen.longest <= length))
    return Finding(
        "truncation",
        "lem:tr",
        f"all entries of all observations stay within v_T = {limit:.3g}, and their lengths within "
        f"L = {length:.3g}, with probability {1 - scope.delta:g}",
        within.at_least(1 - scope.delta),
        f"so in {within} replications; the largest entry was {seen.largest.max():.3g}, the longest "
        f"observation {seen.longest.max():.3g}",
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
    enough = runs.pulls.values >= p * runs.time.values[:, None] / 4.0  # (rep, time, arm)
    # The first checkpoint from which on it is so, or none at all.
    ever_after = np.flip(np.logical_and.accumulate(np.flip(enough, axis=1), axis=1), axis=1)
    settled = ever_after[:, -1, :]
    first = np.where(ever_after, runs.time.values[:, None], np.inf).min(axis=1)
    all_arms = np.asarray(settled.all(axis=1))
    held = share(all_arms)
    since = f"; then {_since(scope, p, first[all_arms].max(axis=0))}" if all_arms.any() else ""
    return Finding(
        name,
        "lem:ni",
        f"n_i(t) >= p_i t / 4 for every arm at the end, with probability {1 - scope.delta:g}",
        held.at_least(1 - scope.delta),
        f"so in {held} replications{since}",
    )


def _since(scope: Scope, p: Floats, first: Floats) -> str:
    """From which round on each arm was pulled often enough, beside its tau_i."""
    by_time = sorted(np.flatnonzero(p > 0), key=lambda i: first[i])
    few = sorted(by_time) if len(by_time) <= FEW else [by_time[0], by_time[-1]]
    times = ((i + 1, first[i], scope.promises.tau(int(i))) for i in few)
    return ", ".join(f"arm {i} from round {t:,.0f} on (tau_{i} = {tau:.2g})" for i, t, tau in times)


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
        "the estimation error falls like t^-1/2, and ends below its bound",
        rate if last <= promised else False,
        f"exponent {slope}; the largest error at the end is {last:.2g}, the bound {promised:.2g}"
        f"{_looseness(promised, last)}",
    )


def _looseness(promised: float, seen: float) -> str:
    return f", {promised / seen:,.1g} times as much" if seen > 0.0 else ""


def sampling(scope: Scope) -> Finding:
    """lem:eta1: a sample of an arm's parameter, after every pull of it."""
    reach = scope.traced.sampled.max(axis=1)
    within = share(reach <= 1.0)
    return Finding(
        "sampling",
        "lem:eta1",
        "a sample of eta stays within its bound, which falls like n^-1/2, with probability "
        f"{1 - scope.delta:g}",
        within.at_least(1 - scope.delta),
        f"so in {within} replications, from the first pull on; at the most |sample - eta| was "
        f"{reach.max():.2f} of the bound",
    )


def suboptimal(scope: Scope) -> Finding:
    """The step before thm:reg2: how often the chosen arm is not the best."""
    name = "shared_suboptimal_probability" if scope.shared else "suboptimal_probability"
    promised = float(scope.promises.bound(name, t=float(scope.horizon)))
    missed = 1.0 - rate_between(scope.told.optimal)
    slope = exponent(missed)
    last = float(missed.isel(time=-1).mean())
    falls = slope.at_most(-0.5 + CLOSE) if missed.any() else True
    rate = None if scope.is_early else falls
    return Finding(
        "suboptimal pulls",
        "thm:reg1" if scope.shared else "thm:reg2",
        "the probability of a suboptimal pull falls like t^-1/2, and ends below its bound",
        rate if last <= promised else False,
        f"exponent {slope}; at the end {last:.1%} of the pulls, the bound {promised:,.2g}"
        + (", which above 1 says nothing" if promised >= 1.0 else "")
        + _looseness(promised, last),
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
        "regret grows at most like (log t)^2, and ends below its bound",
        rate if worst <= promised else False,
        f"exponent in t over (log t)^2: {squared}, over (log t)^5.5: {looser}; the worst regret is "
        f"{worst:,.0f}, the bound {promised:.2g}{_looseness(promised, worst)}",
    )


CLAIMS: tuple[Callable[[Scope], Finding], ...] = (
    truncation,
    ellipsoid,
    eigenvalues,
    pulls,
    estimation,
    sampling,
    suboptimal,
    regret,
)
SHARED_CLAIMS = (ellipsoid, eigenvalues, estimation, sampling, suboptimal, regret)


def controls(scope: Scope) -> Iterator[Finding]:
    """Claims outside their assumptions: an audit that passed them would not be worth much."""
    crowd = LinearWorld.random(n_arms=20, context_dim=10, observation_dim=10, seed=scope.seed)
    crowded = replace(
        scope,
        world=crowd,
        horizon=max(scope.horizon, CONTROL_ROUNDS),
        replications=max(scope.replications, CONTROL_REPLICATIONS),
    )
    timid = ThompsonSampling(v=0.01 * crowd.noise_scale)
    for policy, name in ((Greedy(), "control: Greedy"), (timid, "control: v = R / 100")):
        found = _pulls(crowded, crowded.runs(policy), name)
        yield replace(found, expected=False, claim=f"{found.claim}; a world of 20 arms and dim 10")
    yield replace(_heavy(scope), expected=False)


def _heavy(scope: Scope) -> Finding:
    """lem:tr with heavy tails, and the constant that normal tails of the same variance have."""
    heavy = replace(scope.world, context_distribution="student-t", sensing_distribution="student-t")
    rounds = 1000
    limit = float(
        bounds.truncation(
            horizon=rounds,
            n_arms=heavy.n_arms,
            dim=heavy.dim,
            c_y=float(np.sqrt(np.diag(heavy.observation_covariance).max())),
            delta=scope.delta,
        )
    )
    seeds = range(scope.seed, scope.seed + max(scope.replications, CONTROL_REPLICATIONS))
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
    if not isinstance(scope, Scope):
        raise InvalidValue(f"audit takes a Scope, got {type(scope).__name__}")
    for claim in CLAIMS:
        yield claim(scope)
    first = np.tile(scope.world.parameters[:1], (scope.world.n_arms, 1))
    world = replace(scope.world, parameters=first, shared_context=False)
    alike = replace(scope, world=world, shared=True)
    for claim in SHARED_CLAIMS:
        found = claim(alike)
        yield replace(found, name=f"shared: {found.name}")
    if with_controls:
        yield from controls(scope)
