"""Suboptimal pulls and regret: thm:reg1, thm:reg2 and its corollaries (appendices D and F)."""

from __future__ import annotations

from dataclasses import replace

from numpy import log, pi, sqrt

from keyhole.theory.bounds.brackets import spread
from keyhole.theory.bounds.decorator import bound
from keyhole.theory.bounds.estimation import h, length, nu_1
from keyhole.theory.bounds.pulls import tau
from keyhole.theory.constants import Constants
from keyhole.theory.ranges import Floats


@bound(
    "eq:g1",
    "a sample's error times the root of the rounds",
    starts="tau",
    rests_on=("sampling_error", "tau"),
)
def g_1(c: Constants, *, horizon: Floats) -> Floats:
    """Return g^(1)(delta): from tau_M on |sample - eta| is at most g_1 / sqrt(t) (eq:g1).

    sqrt(8 / (p_min lambda_m)) (v sqrt(2 d_y log(2 T N / delta)) + R sqrt(...) + c_eta). The proof
    of thm:reg2 gives the same name to twice this, for two samples.
    """
    bracket = spread(c, horizon, length(c, horizon=horizon))
    return sqrt(8.0 / (c.p_min * c.lambda_m)) * bracket


@bound("eq:cm", "the constant of a suboptimal pull", starts="nu_1", rests_on=("h",))
def c_m(c: Constants, *, horizon: Floats) -> Floats:
    """Return c_M(delta, T) = 8 v sqrt(pi / lambda_m) + 4 h (eq:cm)."""
    return 8.0 * c.v * sqrt(pi / c.lambda_m) + 4.0 * h(c, horizon=horizon)


@bound(
    "thm:reg2",
    "probability of a suboptimal pull in the last round",
    starts="tau",
    rests_on=("c_m", "tau"),
    gaps=("impossible-arms",),
)
def suboptimal_probability(c: Constants, *, horizon: Floats, t: Floats) -> Floats:
    """Return 4 C N c_M / sqrt(p_min t), from tau_M on (thm:reg2).

    It bounds the probability of a suboptimal pull: the last step in the proof but one. Above 1 it
    says nothing.
    """
    return 4.0 * c.margin * c.n_arms * c_m(c, horizon=horizon) / sqrt(c.p_min * t)


@bound(
    "thm:reg2",
    "regret of Algorithm 1",
    starts="tau",
    rests_on=("g_1", "suboptimal_probability"),
    gaps=("filtration", "delta"),
    repair="4 c_M, from the step before, where 16 c_M is printed",
)
def theorem_2(c: Constants, *, horizon: Floats) -> Floats:
    """Return the regret that Algorithm 1 does not exceed, with probability 1 - delta (thm:reg2).

    2 c_eta L tau_M + 2 L g_1 (sqrt(4 log T log(1 / delta)) + 4 c_M C N log T / sqrt(p_min)).
    With the L of eq:ybnd it grows like (log T)^5.5. The 4 is from the step before; 16 is printed.
    """
    first = 2.0 * c.c_eta * tau(c, horizon=horizon, p=c.p_min)
    errors = 2.0 * g_1(c, horizon=horizon)
    chance = sqrt(4.0 * log(horizon) * log(1.0 / c.delta))
    pulls = 4.0 * c_m(c, horizon=horizon) * c.margin * c.n_arms * log(horizon) / sqrt(c.p_min)
    return length(c, horizon=horizon) * (first + errors * (chance + pulls))


@bound(
    "thm:reg2",
    "regret of Algorithm 1 where no observation is ever longer than a number",
    starts="tau",
    rests_on=("theorem_2",),
)
def bounded_corollary(c: Constants, *, horizon: Floats, largest: float) -> Floats:
    """Return theorem 2 where no observation is longer than `largest`, ever (thm:reg2).

    It grows like (log T)^2. The first corollary of thm:reg2; the second is `shared_theorem`.
    """
    return theorem_2(replace(c, longest=largest), horizon=horizon)


@bound(
    "thm:reg1",
    "errors of two samples times the root of the rounds, shared parameter",
    starts="nu_1",
    rests_on=("sampling_error",),
    repair="with the root of 2 / lambda_m that lem:eta1 brings, and without an undefined lambda",
)
def g(c: Constants, *, horizon: Floats) -> Floats:
    """Return g: with a shared parameter two samples' errors add up to at most g / sqrt(t).

    2 sqrt(2 / lambda_m) (v sqrt(2 d_y log(2 T N / delta)) + R sqrt(...) + c_eta), in the proof of
    thm:reg1. The printed g lacks the root that lem:eta1 brings, and divides by a lambda that is
    not defined.
    """
    bracket = spread(c, horizon, length(c, horizon=horizon))
    return 2.0 * sqrt(2.0 / c.lambda_m) * bracket


@bound(
    "eq:probijsum",
    "probability of a suboptimal pull, shared parameter",
    starts="nu_1",
    rests_on=("c_m",),
    repair="without the L of eq:probij",
)
def shared_suboptimal_probability(c: Constants, *, horizon: Floats, t: Floats) -> Floats:
    """Return 2 C N c_M / sqrt(t), from nu_1 on (eq:probijsum).

    It bounds the probability of a suboptimal pull with a shared parameter; the L in eq:probij
    before it is a slip. Above 1 it says nothing.
    """
    return 2.0 * c.margin * c.n_arms * c_m(c, horizon=horizon) / sqrt(t)


@bound(
    "thm:reg1",
    "regret of Algorithm 2, if all arms share a parameter",
    starts="nu_1",
    rests_on=("g", "shared_suboptimal_probability"),
    gaps=("filtration", "delta"),
)
def shared_theorem(c: Constants, *, horizon: Floats) -> Floats:
    """Return the regret that Algorithm 2 does not exceed, with probability 1 - delta (thm:reg1).

    2 c_eta L nu_1 + L g (sqrt(4 log T log(1 / delta)) + 2 c_M C N log T). It is the second
    corollary of thm:reg2 with its constants.
    """
    first = 2.0 * c.c_eta * nu_1(c, horizon=horizon)
    chance = sqrt(4.0 * log(horizon) * log(1.0 / c.delta))
    pulls = 2.0 * c_m(c, horizon=horizon) * c.margin * c.n_arms * log(horizon)
    return length(c, horizon=horizon) * (first + g(c, horizon=horizon) * (chance + pulls))
