"""How often an arm is pulled, and so known: lem:term1 to thm:eta2 (appendix E)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.theory.bounds.estimation import h, nu_1
from keyhole.theory.bounds.guards import guarded
from keyhole.theory.bounds.parts import Floats, floats


@guarded
def nu_2(
    *,
    horizon: ArrayLike,
    n_arms: int,
    v: float,
    kappa: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """nu_(2) = max(nu_1, 64 v^2 log T / (kappa^2 lambda_m)) (lem:term1)."""
    first = nu_1(horizon=horizon, n_arms=n_arms, length=length, lambda_m=lambda_m, delta=delta)
    second = np.divide(64.0 * v**2 * np.log(floats(horizon)), kappa**2 * lambda_m)
    return floats(np.maximum(first, second))


@guarded
def missed_odds(n: ArrayLike, *, v: float, kappa: float, c_eta: float, length: ArrayLike) -> Floats:
    """What E[(1 - p_ijt) / p_ijt] does not exceed after n pulls of arm i (eq:phiinv2).

    p_ijt is the probability that arm i's sample beats the middle of its value and arm j's, where
    arm i is clearly best. 2 sqrt(pi) / v (16 v^4 / kappa^3 + c_eta sqrt(1 + L^2 n) / 2) + 63.
    """
    seen = c_eta * np.sqrt(1.0 + floats(length) ** 2 * floats(n))
    gaps = np.divide(16.0 * v**3, kappa**3)
    return floats(2.0 * np.sqrt(np.pi) * (gaps + np.divide(0.5 * seen, v)) + 63.0)


@guarded
def term_1(
    *,
    horizon: ArrayLike,
    n_arms: int,
    v: float,
    kappa: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """How often arm j is pulled where i is clearly best and both are well known (lem:term1).

    nu_2 (2 sqrt(pi) / v (16 v^4 / kappa^3 + c_eta sqrt(1 + L^2 nu_2) / 2) + 63) + 4.
    """
    pulls = nu_2(
        horizon=horizon, n_arms=n_arms, v=v, kappa=kappa, length=length, lambda_m=lambda_m,
        delta=delta,
    )  # fmt: skip
    odds = missed_odds(pulls, v=v, kappa=kappa, c_eta=c_eta, length=length)
    return floats(pulls * odds + 4.0)


@guarded
def term_2(
    *,
    horizon: ArrayLike,
    n_arms: int,
    v: float,
    kappa: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """nu_2 + 2, how often j is pulled since its sample is far from its estimate (lem:term2).

    The proof uses a quarter of the gap where the event is defined with half of it. A quarter is
    the smaller, so that the bound stands.
    """
    pulls = nu_2(
        horizon=horizon, n_arms=n_arms, v=v, kappa=kappa, length=length, lambda_m=lambda_m,
        delta=delta,
    )  # fmt: skip
    return floats(pulls + 2.0)


@guarded
def term_3(
    *,
    horizon: ArrayLike,
    n_arms: int,
    v: float,
    kappa: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """nu_2 + 1, how often j is pulled since its estimate is far from the truth (lem:term3).

    With a quarter of the gap for half of it, as in `term_2`.
    """
    pulls = nu_2(
        horizon=horizon, n_arms=n_arms, v=v, kappa=kappa, length=length, lambda_m=lambda_m,
        delta=delta,
    )  # fmt: skip
    return floats(pulls + 1.0)


@guarded
def ell(
    *,
    horizon: ArrayLike,
    n_arms: int,
    v: float,
    kappa: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """l(delta, T, N, kappa), how often other arms may be pulled where arm i is clearly best.

    N (nu_2 (2 sqrt(pi) / v (16 v^4 / kappa^3 + c_eta sqrt(1 + L^2 nu_2) / 2) + 65) + 7)
    (lem:ni): N times the sum of `term_1`, `term_2` and `term_3`.
    """
    of: dict[str, Any] = {
        "horizon": horizon, "n_arms": n_arms, "v": v, "kappa": kappa, "length": length,
        "lambda_m": lambda_m, "delta": delta,
    }  # fmt: skip
    return floats(n_arms * (term_1(**of, c_eta=c_eta) + term_2(**of) + term_3(**of)))


@guarded
def expected_pulls(
    t: ArrayLike,
    *,
    p: ArrayLike,
    horizon: ArrayLike,
    n_arms: int,
    v: float,
    kappa: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """p_i / 2 (t - l), which arm i's pulls up to t are expected to reach (lem:piineq).

    Where it is clearly best. Below 0 it says nothing.
    """
    others = ell(
        horizon=horizon, n_arms=n_arms, v=v, kappa=kappa, c_eta=c_eta, length=length,
        lambda_m=lambda_m, delta=delta,
    )  # fmt: skip
    return floats(0.5 * floats(p) * (floats(t) - others))


@guarded
def tau(
    *,
    horizon: ArrayLike,
    n_arms: int,
    p: ArrayLike,
    v: float,
    kappa: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """tau_i, the round from which n_i(t) >= p_i t / 4 and theorem 1 hold.

    max(4 nu_1 / p_i, 4 l, 128 log(1 / delta) / p_i^2). lem:ni states 32 / p_i^2 and proves
    128 / p_i^2. Its largest value over arms of positive p_i is tau_M.
    """
    chance = floats(p)
    first = nu_1(horizon=horizon, n_arms=n_arms, length=length, lambda_m=lambda_m, delta=delta)
    others = ell(
        horizon=horizon, n_arms=n_arms, v=v, kappa=kappa, c_eta=c_eta, length=length,
        lambda_m=lambda_m, delta=delta,
    )  # fmt: skip
    own = np.maximum(4.0 * first / chance, 128.0 * np.log(1.0 / delta) / chance**2)
    return floats(np.maximum(4.0 * others, own))


@guarded
def theorem_1(
    t: ArrayLike,
    *,
    p: ArrayLike,
    horizon: ArrayLike,
    dim: int,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """2 h / sqrt(p_i t), which |mean - eta| does not exceed after t rounds, from tau_i on.

    thm:eta2. Its proof puts R outside the bracket with c_eta; lem:eta0 has it inside, as here.
    """
    constant = h(
        horizon=horizon, dim=dim, r=r, c_eta=c_eta, length=length, lambda_m=lambda_m, delta=delta
    )
    return floats(2.0 * constant / np.sqrt(floats(p) * floats(t)))
