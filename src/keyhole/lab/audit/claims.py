"""Claims of the paper as simulations that measure them, and controls that must be contradicted.

Six of the paper's fifteen lemmas and its three theorems are tested. The paper makes most claims
only from a round or a number of pulls that no run reaches. They are tested within the run anyway:
this is stronger than the paper's claim, and `Finding.begins` records it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from keyhole.core import Greedy, ThompsonSampling
from keyhole.errors import InvalidValue
from keyhole.lab.audit.findings import Finding
from keyhole.lab.audit.scope import Scope
from keyhole.lab.evidence import exponent, share
from keyhole.lab.summary import over_log_squared, rate_between
from keyhole.lab.worlds import LinearWorld
from keyhole.theory import STATEMENTS, Constants, bounds, status_of

Floats = NDArray[np.float64]

# An exponent within this distance of the claimed one counts as equal.
CLOSE = 0.1
# With more arms than this, only the first and the last to be pulled often enough are named.
FEW = 5
# Minimum rounds and replications of a control: with fewer, a control proves nothing.
CONTROL_ROUNDS, CONTROL_REPLICATIONS = 2000, 20
# Powers of log T in the bounds of thm:reg2 and thm:reg1.
POWER, SHARED_POWER = 5.5, 3.5


def _finding(scope: Scope, bound: str, begins: str = "", **said: Any) -> Finding:
    """Return a finding with the status of its bound."""
    status = status_of(bound, shared_context=scope.world.shared_context)
    return Finding(**said, begins=begins, status=status.word, gaps=status.gaps)


def _from_pulls(scope: Scope) -> str:
    """Describe the pulls from which lem:eig is claimed, if some parameter of the run has fewer."""
    needed = scope.promises.nu_1
    reached = scope.traced.pulls.min() >= needed
    return (
        "" if reached else f"at this horizon the paper claims it from nu_1 = {needed:.2g} pulls on"
    )


def _from_rounds(scope: Scope) -> str:
    """Describe the round from which the theorems are claimed, if the run ends before it."""
    name, c = "nu_1" if scope.shared else "tau", scope.constants
    needed = STATEMENTS[name].at(c, horizon=scope.horizon, p=c.p_min)
    reached = scope.horizon >= needed
    return (
        ""
        if reached
        else f"at this horizon the paper claims it from {name} = {needed:.2g} rounds on"
    )


def truncation(scope: Scope) -> Finding:
    """Test lem:tr."""
    limit = float(bounds.truncation(scope.constants, horizon=scope.horizon))
    length, seen = scope.promises.length, scope.traced
    within = share((seen.largest <= limit) & (seen.longest <= length))
    return _finding(
        scope,
        "length",
        name="truncation",
        label="lem:tr",
        claim=f"all entries of all observations stay within v_T = {limit:.3g}, and their lengths "
        f"within L = {length:.3g}, with probability {1 - scope.delta:g}",
        holds=within.at_least(1 - scope.delta),
        supported=within.supports(1 - scope.delta),
        evidence=f"so in {within} replications; the largest entry was {seen.largest.max():.3g}, "
        f"the longest observation {seen.longest.max():.3g}",
    )


def ellipsoid(scope: Scope) -> Finding:
    """Test lem:subg for all parameters at once, with delta shared among them."""
    reach = scope.traced.reach.max(axis=1)
    # Nothing is claimed if an observation is longer than L, which lem:tr leaves to chance.
    within = share((reach <= 1.0) | (scope.traced.longest > scope.promises.length))
    return _finding(
        scope,
        "confidence_radius",
        name="ellipsoid",
        label="lem:subg",
        claim="the confidence ellipsoids cover in all rounds at once if no observation is longer "
        f"than L, with probability {1 - scope.delta:g}",
        holds=within.at_least(1 - scope.delta),
        supported=within.supports(1 - scope.delta),
        evidence=f"so in {within} replications; at the most |mean - eta| was {reach.max():.2f} "
        "radii",
    )


def eigenvalues(scope: Scope) -> Finding:
    """Test lem:eig at the end of the run, and report the number of pulls from which it holds."""
    last = float(scope.traced.late.max())
    at_last = share(np.asarray((scope.traced.late < scope.traced.pulls).all(axis=1)))
    holds = at_last.at_least(1 - scope.delta)
    since = f", and from {last + 1:,.0f} pulls on in all" if at_last.value == 1.0 else ""
    return _finding(
        scope,
        "covariance_bound",
        _from_pulls(scope),
        name="eigenvalues",
        label="lem:eig",
        claim="the largest eigenvalue of B^-1 is at most 2 / (lambda_m n) at the end, with "
        f"probability {1 - scope.delta:g}",
        holds=None if not holds and scope.is_early else holds,
        supported=at_last.supports(1 - scope.delta),
        evidence=f"so in {at_last} replications{since}",
    )


def pulls(scope: Scope) -> Finding:
    """Test lem:ni, and compare the round from which it holds with tau_i."""
    return _pulls(scope, scope.oracle_runs, "pulls")


def _pulls(scope: Scope, runs: xr.Dataset, name: str) -> Finding:
    p = np.array([one.value for one in scope.promises.instance.p])
    enough = runs.pulls.values >= p * runs.time.values[:, None] / 4.0  # (rep, time, arm)
    # The first checkpoint from which the inequality holds to the end, if there is one.
    ever_after = np.flip(np.logical_and.accumulate(np.flip(enough, axis=1), axis=1), axis=1)
    at_last = ever_after[:, -1, :]
    first = np.where(ever_after, runs.time.values[:, None], np.inf).min(axis=1)
    all_arms = np.asarray(at_last.all(axis=1))
    held = share(all_arms)
    since = f"; then {_since(scope, p, first[all_arms].max(axis=0))}" if all_arms.any() else ""
    return _finding(
        scope,
        "tau",
        _from_rounds(scope),
        name=name,
        label="lem:ni",
        claim=f"n_i(t) >= p_i t / 4 for every arm at the end, with probability {1 - scope.delta:g}",
        holds=held.at_least(1 - scope.delta),
        supported=held.supports(1 - scope.delta),
        evidence=f"so in {held} replications{since}",
    )


def _since(scope: Scope, p: Floats, first: Floats) -> str:
    """Describe the round from which each arm was pulled often enough, beside its tau_i."""
    by_time = sorted(np.flatnonzero(p > 0), key=lambda i: first[i])
    few = sorted(by_time) if len(by_time) <= FEW else [by_time[0], by_time[-1]]
    times = ((i + 1, first[i], scope.promises.tau(int(i))) for i in few)
    return ", ".join(f"arm {i} from round {t:,.0f} on (tau_{i} = {tau:.2g})" for i, t, tau in times)


def estimation(scope: Scope) -> Finding:
    """Test the rate of thm:eta2, and report the looseness of its bound."""
    possible = [one.value > 0 for one in scope.promises.instance.p]
    arms = scope.oracle_runs.error.isel(arm=[0] if scope.shared else np.flatnonzero(possible))
    error = arms.max("arm")
    slope, last = exponent(error), float(error.isel(time=-1).max())
    name, t = "estimation_error" if scope.shared else "theorem_1", scope.horizon
    promised = STATEMENTS[name].at(scope.constants, horizon=t, n=t, t=t, p=scope.constants.p_min)
    rate = None if scope.is_early else slope.at_most(-0.5 + CLOSE)
    return _finding(
        scope,
        name,
        _from_rounds(scope),
        name="estimation",
        label="lem:eta0" if scope.shared else "thm:eta2",
        claim="the estimation error falls like t^-1/2, and ends below the bound's formula",
        holds=rate if last <= promised else False,
        evidence=f"exponent {slope}; the largest error at the end is {last:.2g}, the formula gives "
        f"{promised:.2g}{_looseness(promised, last)}",
    )


def _looseness(promised: float, seen: float) -> str:
    return f", {promised / seen:,.1g} times as much" if seen > 0.0 else ""


def sampling(scope: Scope) -> Finding:
    """Test lem:eta1 with a sample of an arm's parameter after every pull of that arm."""
    reach = scope.traced.sampled.max(axis=1)
    within = share(reach <= 1.0)
    return _finding(
        scope,
        "sampling_error",
        _from_pulls(scope),
        name="sampling",
        label="lem:eta1",
        claim="a sample of eta stays within the bound's formula, which falls like n^-1/2, with "
        f"probability {1 - scope.delta:g}",
        holds=within.at_least(1 - scope.delta),
        supported=within.supports(1 - scope.delta),
        evidence=f"so in {within} replications, from the first pull on; at the most |sample - eta| "
        f"was {reach.max():.2f} of the formula",
    )


def suboptimal(scope: Scope) -> Finding:
    """Test the step before thm:reg2: the probability that the chosen arm is not the best."""
    name = "shared_suboptimal_probability" if scope.shared else "suboptimal_probability"
    promised = STATEMENTS[name].at(scope.constants, horizon=scope.horizon, t=scope.horizon)
    missed = 1.0 - rate_between(scope.oracle_runs.optimal)
    slope = exponent(missed)
    last = float(missed.isel(time=-1).mean())
    falls = slope.at_most(-0.5 + CLOSE) if missed.any() else True
    rate = None if scope.is_early else falls
    return _finding(
        scope,
        name,
        _from_rounds(scope),
        name="suboptimal pulls",
        label="thm:reg1" if scope.shared else "thm:reg2",
        claim="the probability of a suboptimal pull falls like t^-1/2, and ends below the bound's "
        "formula",
        holds=rate if last <= promised else False,
        evidence=f"exponent {slope}; at the end {last:.1%} of the pulls, the formula gives "
        f"{promised:,.2g}"
        + (", which above 1 says nothing" if promised >= 1.0 else "")
        + _looseness(promised, last),
    )


def regret(scope: Scope) -> Finding:
    """Test the rate of thm:reg2 or thm:reg1, and report the looseness of its bound."""
    return _regret(scope, scope.oracle_runs, "regret")


def _regret(scope: Scope, runs: xr.Dataset, name: str) -> Finding:
    # If regret is at most (log t)^power, the exponent in t of their ratio is at most 0.
    power = SHARED_POWER if scope.shared else POWER
    late = runs.regret.sel(time=runs.time >= 2)
    own = exponent(late / np.log(late.time) ** power)
    squared = exponent(over_log_squared(runs.regret))
    theorem = "shared_theorem" if scope.shared else "theorem_2"
    worst = float(runs.regret.isel(time=-1).max())
    promised = STATEMENTS[theorem].at(scope.constants, horizon=scope.horizon)
    rate = None if scope.is_early else own.at_most(CLOSE)
    return _finding(
        scope,
        theorem,
        _from_rounds(scope),
        name=name,
        label="thm:reg1" if scope.shared else "thm:reg2",
        claim=f"regret grows at most like (log t)^{power}, and ends below the bound's formula",
        holds=rate if worst <= promised else False,
        evidence=f"exponent in t over (log t)^{power}: {own}, over (log t)^2: {squared}; the worst "
        f"regret is {worst:,.0f}, the formula gives {promised:.2g}{_looseness(promised, worst)}",
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
    """Yield findings on claims outside their assumptions, which must be contradicted."""
    crowd = LinearWorld.random(n_arms=20, context_dim=10, dim=10, seed=scope.seed)
    crowded = replace(
        scope,
        world=crowd,
        horizon=max(scope.horizon, CONTROL_ROUNDS),
        replications=max(scope.replications, CONTROL_REPLICATIONS),
    )
    timid = ThompsonSampling(v=0.01 * crowd.noise_scale)
    for policy, name in ((Greedy(), "control: Greedy"), (timid, "control: v = R / 100")):
        found = _pulls(crowded, crowded.runs(policy), name)
        where = f"{found.claim}; a world of 20 arms and dim 10"
        yield replace(found, expected=False, claim=where, begins="", status="", gaps=())
    yield replace(_heavy(scope), expected=False)


def _heavy(scope: Scope) -> Finding:
    """Test lem:tr with heavy tails and the constant of normal tails of the same variance."""
    heavy = replace(scope.world, context_distribution="student-t", sensing_distribution="student-t")
    rounds = 1000
    normal = Constants(
        n_arms=heavy.n_arms,
        dim=heavy.dim,
        c_y=float(np.sqrt(np.diag(heavy.observation_covariance).max())),
        delta=scope.delta,
    )
    limit = float(bounds.truncation(normal, horizon=rounds))
    seeds = range(scope.seed, scope.seed + max(scope.replications, CONTROL_REPLICATIONS))
    largest = np.array([np.abs(heavy.sample(rounds, seed).observations).max() for seed in seeds])
    within = share(largest <= limit)
    return Finding(
        "control: heavy tails",
        "lem:tr",
        f"entries of Student t contexts and noise stay within v_T = {limit:.3g} all the same",
        within.at_least(1 - scope.delta),
        f"so in {within} replications; the largest was {largest.max():.3g}",
    )


def audit(scope: Scope, *, with_controls: bool = True) -> Iterator[Finding]:
    """Yield the findings on every claim, as they are made.

    The claims about the world come first, then the same with a shared parameter, then the controls.
    The shared parameter is that of the first arm.

    Parameters
    ----------
    scope : Scope
        The world, the sizes and the seed of the audit.
    with_controls : bool, default True
        Include the controls.

    Yields
    ------
    Finding
        The finding on one claim.

    Raises
    ------
    InvalidValue
        If `scope` is not a Scope.
    """
    if not isinstance(scope, Scope):
        raise InvalidValue(f"audit takes a Scope, got {type(scope).__name__}")
    for claim in CLAIMS:
        yield claim(scope)
    first = np.tile(scope.world.coefficients[:1], (scope.world.n_arms, 1))
    world = replace(scope.world, coefficients=first, shared_context=False)
    alike = replace(scope, world=world, shared=True)
    for claim in SHARED_CLAIMS:
        found = claim(alike)
        yield replace(found, name=f"shared: {found.name}")
    if with_controls:
        yield from controls(scope)
