"""Every explicit bound of the paper's appendices C to F, as a function of an instance's constants.

Arguments carry the names of `docs/symbols.md`: horizon T, n_arms N, dim d_y, r R, length L, margin
C, and t and n, over which everything is vectorised. Logarithms are natural. Where the paper slips,
the corrected form is given and the docstring says so.

The constants are enormous for any real instance: the bounds are about rates. At sizes that can be
simulated they are above what happens by many orders of magnitude, and minimum times are beyond any
horizon.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]


def truncation(*, horizon: ArrayLike, n_arms: int, dim: int, c_y: float, delta: float) -> Floats:
    """v_T(delta) = c_y sqrt(2 log(2 T N d_y / delta)), which no entry of an observation exceeds.

    With probability at least 1 - delta, for all arms and rounds at once (lem:tr).
    """
    return _floats(c_y * np.sqrt(2.0 * np.log(2.0 * _floats(horizon) * n_arms * dim / delta)))


def length(*, horizon: ArrayLike, n_arms: int, dim: int, c_y: float, delta: float) -> Floats:
    """L = sqrt(d_y) v_T(delta), which the length of no observation exceeds (eq:ybnd)."""
    largest = truncation(horizon=horizon, n_arms=n_arms, dim=dim, c_y=c_y, delta=delta)
    return _floats(np.sqrt(dim) * largest)


def confidence_radius(
    n: ArrayLike, *, dim: int, r: float, c_eta: float, length: ArrayLike, delta: float
) -> Floats:
    """R sqrt(d_y log((1 + L^2 n) / delta)) + c_eta, the radius of an arm's confidence ellipsoid.

    |mean - eta| in the norm of B stays within it for all rounds at once, with probability at least
    1 - delta for each arm (lem:subg). The paper's proof has a square on the left and none on the
    right, and writes B^-1 S for mean - eta = B^-1 (S - eta): that term is the c_eta.

    >>> confidence_radius(99, dim=1, r=1.0, c_eta=0.5, length=1.0, delta=100 / np.e).round(12)
    np.float64(1.5)
    """
    grown = np.log((1.0 + _floats(length) ** 2 * _floats(n)) / delta)
    return _floats(r * np.sqrt(dim * grown) + c_eta)


def nu_1(
    *, horizon: ArrayLike, n_arms: int, length: ArrayLike, lambda_m: float, delta: float
) -> Floats:
    """nu_(1) = 8 L^4 log(T N / delta) / lambda_m^2, pulls from which `covariance_bound` holds.

    lem:eig. The proof is for one direction and then used for all: a covering argument is
    missing, and the constant is indicative.
    """
    with np.errstate(divide="ignore"):
        logarithm = np.log(_floats(horizon) * n_arms / delta)
        return _floats(np.divide(8.0 * _floats(length) ** 4 * logarithm, lambda_m**2))


def covariance_bound(n: ArrayLike, *, lambda_m: float) -> Floats:
    """2 / (lambda_m n), which the largest eigenvalue of B^-1 does not exceed from nu_1 on.

    lem:eig. lem:eta1's proof writes the square root of it: the eigenvalue itself is meant.
    """
    with np.errstate(divide="ignore"):
        return _floats(np.divide(2.0, lambda_m * _floats(n)))


def h(
    *,
    horizon: ArrayLike,
    dim: int,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """sqrt(2 / lambda_m) (R sqrt(d_y log((1 + T L^2) / delta)) + c_eta) (eq:h)."""
    radius = confidence_radius(horizon, dim=dim, r=r, c_eta=c_eta, length=length, delta=delta)
    return _floats(_root(2.0, lambda_m) * radius)


def estimation_error(
    n: ArrayLike,
    *,
    horizon: ArrayLike,
    dim: int,
    r: float,
    c_eta: float,
    length: ArrayLike,
    lambda_m: float,
    delta: float,
) -> Floats:
    """h / sqrt(n), which |mean - eta| does not exceed after n pulls, from nu_1 on (lem:eta0)."""
    constant = h(
        horizon=horizon, dim=dim, r=r, c_eta=c_eta, length=length, lambda_m=lambda_m, delta=delta
    )
    return _floats(constant / np.sqrt(_floats(n)))


def sampling_error(
    n: ArrayLike,
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
    """What |sample - eta| does not exceed after n pulls, from nu_1 on (lem:eta1)."""
    spread = _spread(horizon, n_arms, dim, v, r, c_eta, length, delta)
    return _floats(_root(2.0, lambda_m) * spread / np.sqrt(_floats(n)))


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
    with np.errstate(divide="ignore"):
        second = np.divide(64.0 * v**2 * np.log(_floats(horizon)), kappa**2 * lambda_m)
    return _floats(np.maximum(first, second))


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
    (lem:ni). lem:term2 and lem:term3, which it adds up, use a quarter of the gap where their event
    is defined with half of it; a quarter is the smaller, so that the bound stands.
    """
    pulls = nu_2(
        horizon=horizon, n_arms=n_arms, v=v, kappa=kappa, length=length, lambda_m=lambda_m,
        delta=delta,
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        gaps = np.divide(16.0 * v**4, kappa**3)
    early = gaps + 0.5 * c_eta * np.sqrt(1.0 + _floats(length) ** 2 * pulls)
    return _floats(n_arms * (pulls * (2.0 * np.sqrt(np.pi) / v * early + 65.0) + 7.0))


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
    chance = _floats(p)
    first = nu_1(horizon=horizon, n_arms=n_arms, length=length, lambda_m=lambda_m, delta=delta)
    others = ell(
        horizon=horizon, n_arms=n_arms, v=v, kappa=kappa, c_eta=c_eta, length=length,
        lambda_m=lambda_m, delta=delta,
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        own = np.maximum(4.0 * first / chance, 128.0 * np.log(1.0 / delta) / chance**2)
    return _floats(np.maximum(4.0 * others, own))


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
    with np.errstate(divide="ignore"):
        return _floats(2.0 * constant / np.sqrt(_floats(p) * _floats(t)))


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
    """g^(1)(delta), for both of two samples: their errors add up to at most g_1 / sqrt(t).

    2 sqrt(8 / (p_min lambda_m)) (v sqrt(2 d_y log(2 T N / delta)) + R sqrt(...) + c_eta), as in
    the proof of thm:reg2; eq:g1 has the same without the 2, for one sample.
    """
    spread = _spread(horizon, n_arms, dim, v, r, c_eta, length, delta)
    return _floats(2.0 * _root(8.0, p_min * lambda_m) * spread)


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
    return _floats(8.0 * v * _root(np.pi, lambda_m) + 4.0 * constant)


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
    return _floats(4.0 * margin * n_arms * constant / np.sqrt(p_min * _floats(t)))


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

    2 c_eta L tau_M + L g_1 (sqrt(4 log T log(1 / delta)) + 16 c_M C N log T / sqrt(p_min)).
    With the L of `length` it grows like (log T)^5.5. The 16 is as printed; the step before it
    gives 4.
    """
    common: dict[str, Any] = {
        "c_eta": c_eta,
        "length": length,
        "lambda_m": lambda_m,
        "delta": delta,
    }
    last = tau(horizon=horizon, n_arms=n_arms, p=p_min, v=v, kappa=kappa, **common)
    errors = g_1(horizon=horizon, n_arms=n_arms, dim=dim, p_min=p_min, v=v, r=r, **common)
    pulls = c_m(horizon=horizon, dim=dim, v=v, r=r, **common)
    logarithm = np.log(_floats(horizon))
    chance = np.sqrt(4.0 * logarithm * np.log(1.0 / delta))
    summed = 16.0 * pulls * margin * n_arms * logarithm / np.sqrt(p_min)
    return _floats(_floats(length) * (2.0 * c_eta * last + errors * (chance + summed)))


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

    It is the second corollary of thm:reg2 with its constants.

    2 c_eta L nu_1 + L g (sqrt(4 log T log(1 / delta)) + 2 c_M C N log T), with
    g = 2 sqrt(2 / lambda_m) (v sqrt(2 d_y log(2 T N / delta)) + R sqrt(...) + c_eta): the
    printed g lacks the root that lem:eta1 brings, and divides by a lambda that is not defined.
    """
    common: dict[str, Any] = {
        "c_eta": c_eta,
        "length": length,
        "lambda_m": lambda_m,
        "delta": delta,
    }
    first = nu_1(horizon=horizon, n_arms=n_arms, length=length, lambda_m=lambda_m, delta=delta)
    spread = _spread(horizon, n_arms, dim, v, r, c_eta, length, delta)
    pulls = c_m(horizon=horizon, dim=dim, v=v, r=r, **common)
    logarithm = np.log(_floats(horizon))
    chance = np.sqrt(4.0 * logarithm * np.log(1.0 / delta))
    summed = 2.0 * pulls * margin * n_arms * logarithm
    errors = 2.0 * _root(2.0, lambda_m) * spread
    return _floats(_floats(length) * (2.0 * c_eta * first + errors * (chance + summed)))


def _spread(
    horizon: ArrayLike,
    n_arms: int,
    dim: int,
    v: float,
    r: float,
    c_eta: float,
    length: ArrayLike,
    delta: float,
) -> Floats:
    """v sqrt(2 d_y log(2 T N / delta)) + the radius after T pulls: the bracket of lem:eta1."""
    drawn = v * np.sqrt(2.0 * dim * np.log(2.0 * _floats(horizon) * n_arms / delta))
    return _floats(
        drawn + confidence_radius(horizon, dim=dim, r=r, c_eta=c_eta, length=length, delta=delta)
    )


def _root(above: float, below: float) -> float:
    """sqrt(above / below), infinite where sensing without noise leaves nothing below."""
    return float(np.sqrt(above / below)) if below > 0.0 else np.inf


def _floats(value: ArrayLike) -> Floats:
    return np.asarray(value, dtype=np.float64)
