"""Suboptimal pulls and regret: thm:reg1, thm:reg2 and its corollaries (appendices D and F)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.theory.bounds.estimation import h, nu_1
from keyhole.theory.bounds.guards import guarded
from keyhole.theory.bounds.parts import Floats, floats, root, spread
from keyhole.theory.bounds.pulls import tau


@guarded
def g_1(
    *,
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    p_min: float,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """g^(1)(delta): from tau_M on |sample - eta| is at most g_1 / sqrt(t) (eq:g1).

    sqrt(8 / (p_min lambda_m)) (v sqrt(2 d_y log(2 T N / delta)) + R sqrt(...) + c_eta). The proof
    of thm:reg2 gives the same name to twice this, for two samples.
    """
    bracket = spread(horizon, n_arms, dim, v, r, c_eta, length, delta)
    return floats(root(8.0, p_min * lambda_m) * bracket)


@guarded
def c_m(
    *,
    horizon: ArrayLike,
    dim: int,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """c_M(delta, T) = 8 v sqrt(pi / lambda_m) + 4 h (eq:cm)."""
    constant = h(
        horizon=horizon, dim=dim, r=r, c_eta=c_eta, length=length, lambda_m=lambda_m, delta=delta
    )
    return floats(8.0 * v * root(np.pi, lambda_m) + 4.0 * constant)


@guarded
def suboptimal_probability(
    t: ArrayLike,
    *,
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    p_min: float,
    margin: float,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """4 C N c_M / sqrt(p_min t), which bounds the probability of a suboptimal pull, from tau_M on.

    The last step in the proof of thm:reg2 but one. Above 1 it says nothing.
    """
    constant = c_m(
        horizon=horizon, dim=dim, v=v, r=r, c_eta=c_eta, length=length, lambda_m=lambda_m,
        delta=delta,
    )  # fmt: skip
    return floats(4.0 * margin * n_arms * constant / np.sqrt(p_min * floats(t)))


@guarded
def theorem_2(
    *,
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    p_min: float,
    kappa: float,
    margin: float,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """The regret that Algorithm 1 does not exceed with probability 1 - delta (thm:reg2).

    2 c_eta L tau_M + 2 L g_1 (sqrt(4 log T log(1 / delta)) + 4 c_M C N log T / sqrt(p_min)).
    With the L of `length` it grows like (log T)^5.5. The 4 is from the step before; 16 is
    printed.
    """
    of: dict[str, Any] = {"c_eta": c_eta, "length": length, "lambda_m": lambda_m, "delta": delta}
    last = tau(horizon=horizon, n_arms=n_arms, p=p_min, v=v, kappa=kappa, **of)
    errors = 2.0 * g_1(horizon=horizon, n_arms=n_arms, dim=dim, p_min=p_min, v=v, r=r, **of)
    pulls = c_m(horizon=horizon, dim=dim, v=v, r=r, **of)
    logarithm = np.log(floats(horizon))
    chance = np.sqrt(4.0 * logarithm * np.log(1.0 / delta))
    summed = 4.0 * pulls * margin * n_arms * logarithm / np.sqrt(p_min)
    return floats(floats(length) * (2.0 * c_eta * last + errors * (chance + summed)))


@guarded
def bounded_corollary(
    *,
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    p_min: float,
    kappa: float,
    margin: float,
    v: float,
    r: float,
    c_eta: float,
    largest: float,
    lambda_m: float,
    delta: float,
) -> Floats:
    """Theorem 2 where no observation is longer than `largest`, ever: it then grows like (log T)^2.

    The first corollary of thm:reg2. The second is `shared_theorem`.
    """
    return theorem_2(
        horizon=horizon, n_arms=n_arms, dim=dim, p_min=p_min, kappa=kappa, margin=margin, v=v, r=r,
        c_eta=c_eta, length=largest, lambda_m=lambda_m, delta=delta,
    )  # fmt: skip


@guarded
def g(
    *,
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """The shared parameter's g: the errors of two samples add up to at most g / sqrt(t).

    2 sqrt(2 / lambda_m) (v sqrt(2 d_y log(2 T N / delta)) + R sqrt(...) + c_eta), in the proof of
    thm:reg1. The printed g lacks the root that lem:eta1 brings, and divides by a lambda that is
    not defined.
    """
    bracket = spread(horizon, n_arms, dim, v, r, c_eta, length, delta)
    return floats(2.0 * root(2.0, lambda_m) * bracket)


@guarded
def shared_suboptimal_probability(
    t: ArrayLike,
    *,
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    margin: float,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """2 C N c_M / sqrt(t), which bounds the probability of a suboptimal pull, from nu_1 on.

    eq:probijsum, for a shared parameter; the L in eq:probij before it is a slip. Above 1 it says
    nothing.
    """
    constant = c_m(
        horizon=horizon, dim=dim, v=v, r=r, c_eta=c_eta, length=length, lambda_m=lambda_m,
        delta=delta,
    )  # fmt: skip
    return floats(2.0 * margin * n_arms * constant / np.sqrt(floats(t)))


@guarded
def shared_theorem(
    *,
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    margin: float,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """The regret that Algorithm 2 does not exceed with probability 1 - delta (thm:reg1).

    2 c_eta L nu_1 + L g (sqrt(4 log T log(1 / delta)) + 2 c_M C N log T). It is the second
    corollary of thm:reg2 with its constants.
    """
    of: dict[str, Any] = {"c_eta": c_eta, "length": length, "lambda_m": lambda_m, "delta": delta}
    first = nu_1(horizon=horizon, n_arms=n_arms, length=length, lambda_m=lambda_m, delta=delta)
    errors = g(horizon=horizon, n_arms=n_arms, dim=dim, v=v, r=r, **of)
    pulls = c_m(horizon=horizon, dim=dim, v=v, r=r, **of)
    logarithm = np.log(floats(horizon))
    chance = np.sqrt(4.0 * logarithm * np.log(1.0 / delta))
    summed = 2.0 * pulls * margin * n_arms * logarithm
    return floats(floats(length) * (2.0 * c_eta * first + errors * (chance + summed)))
