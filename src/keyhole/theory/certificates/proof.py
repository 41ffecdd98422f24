"""The steps of a certificate in words, with their numbers at the horizon."""

from __future__ import annotations

from typing import NamedTuple

from keyhole.theory.certificates.burn_in import BurnIn
from keyhole.theory.certificates.derivation import Derivation, Shares
from keyhole.theory.certificates.exploration import exploration
from keyhole.theory.certificates.setting import Setting
from keyhole.theory.certificates.steps import Step


class Numbers(NamedTuple):
    """The numbers of the last steps."""

    expected: float
    limit: float
    excess: float
    gap: float
    before: float


def proof(
    setting: Setting,
    found: Derivation,
    shares: Shares,
    numbers: Numbers,
    burn_in: BurnIn | None,
) -> tuple[Step, ...]:
    """Return the steps of a proof.

    Parameters
    ----------
    setting : Setting
        The world and the policy.
    found : Derivation
        The bounds of each block of rounds.
    shares : Shares
        How delta is split.
    numbers : Numbers
        The numbers of the last steps.
    burn_in : BurnIn or None
        The measurements of the first rounds.
    """
    first = [] if burn_in is None else [_measured(burn_in, shares)]
    return (
        *first,
        _explored(setting, shares),
        *_estimated(found, shares),
        *_lost(found, shares, numbers, burn_in),
    )


def _measured(burn_in: BurnIn, shares: Shares) -> Step:
    return Step(
        "burn-in",
        f"The first {burn_in.rounds:,} rounds lose at most this, and leave each arm at least the "
        "information that was measured.",
        f"Regret(t0) <= max over {burn_in.runs:,} runs; S_i(t0) >= min over runs",
        r"\mathrm{Regret}(t_0) \le \max_k \mathrm{Regret}_k(t_0)",
        burn_in.regret,
        shares.burn_in,
        "Wilks' tolerance limits: extremes of independent simulated runs bound a further run, for "
        "any distribution, with the stated confidence over the simulations.",
    )


def _explored(setting: Setting, shares: Shares) -> Step:
    if setting.shared:
        return Step(
            "exploration",
            "With a shared context nothing explores by itself; the least information counts, and "
            "arms are explored where they are best once estimates are near (step information).",
            "E[u u' 1(a = i) | past] >= 0",
            r"\mathbb{E}[u u' 1(a = i) \mid \mathrm{past}] \succeq 0",
            0.0,
            shares.monte_carlo,
            "E[u u' 1(i best)] and E[largest gap] are bounded from a million observations by "
            "matrix Bernstein and Gaussian concentration, which is what may fail.",
        )
    return Step(
        "exploration",
        "Whatever was learned, every arm is pulled often enough, in all directions.",
        "E[u u' 1(a = i) | past] >= q I, q = 2^-(N-1), u = Sigma^-1/2 y",
        r"\mathbb{E}[u u' 1(a = i) \mid \mathrm{past}] \succeq 2^{-(N-1)} I",
        exploration(setting.n_arms),
        0.0,
        "Given the past, scores are independent and symmetric about 0 (normal contexts of each "
        "arm's own): reflecting them leaves only even terms, all at least 0. Ties are included.",
    )


def _estimated(found: Derivation, shares: Shares) -> tuple[Step, ...]:
    return (
        Step(
            "information",
            "Sums of u u' over an arm's pulls grow in every direction; the least of any arm at the "
            "last round.",
            "lambda_min(S_i(t)) >= (sum of log 1/c_s - log(N d K / share)) / theta, all t",
            r"\lambda_{\min}(S_i(t)) \ge \theta^{-1} \Bigl(\sum_{s<t} \log \tfrac{1}{c_s} - "
            r"\log \tfrac{N d K}{\delta_1}\Bigr)",
            float(found.information[-1].min()),
            shares.information,
            "tr exp(-theta S) / c^t is a supermartingale (Golden-Thompson), with c = 1 - "
            "q (1 - (1 + 2 theta)^(-d/2)) / d; Ville's inequality, for all t at once.",
        ),
        Step(
            "spectrum",
            "They do not grow faster than with every pull; at the last round.",
            "lambda_max(S_i(t)) <= (sqrt(t) + sqrt(d) + x)^2",
            r"\lambda_{\max}(S_i(t)) \le (\sqrt{t} + \sqrt{d} + x)^2",
            float(found.omega[-1]),
            shares.spectrum,
            "Davidson and Szarek's bound for Wishart matrices, at the end of every epoch.",
        ),
        Step(
            "ellipsoid",
            "Every estimate is near its parameter; the largest radius at the last round.",
            "|mean - eta|_B <= R sqrt(k (log det + 2 log(N E / share))) + prior |eta|_B^-1",
            r"\|\hat\eta_i - \eta_i\|_{B_i} \le R_i \sqrt{k (\log\det + 2 \log "
            r"\tfrac{N E}{\delta_3})} + \lambda \|\eta_i\|_{B_i^{-1}}",
            float(found.radii[-1].max()),
            shares.ellipsoid,
            "Self-normalised bound of Abbasi-Yadkori, Pal and Szepesvari (noise sub-Gaussian given "
            "the past and y), with Gamma = prior I + gamma Sigma fixed in each of E epochs.",
        ),
    )


def _lost(
    found: Derivation, shares: Shares, numbers: Numbers, burn_in: BurnIn | None
) -> tuple[Step, ...]:
    since = "all rounds" if burn_in is None else f"rounds after {burn_in.rounds:,}"
    return (
        Step(
            "confusion",
            "The expected loss of a round, given the past; at the last round.",
            "r(t) = min(sum of pairs E[|D_ij| 1(D_ij, D~_ij differ in sign)], E G)",
            r"r(t) = \min\Bigl(\sum_{i<j} \mathbb{E}[|D_{ij}| "
            r"1(D_{ij} \tilde D_{ij} < 0)],\ \mathbb{E} G\Bigr)",
            float(found.losses[-1]),
            0.0,
            "Given the samples, D and D~ are normal at an angle whose sine is at most the relative "
            "error; s (1 - cos phi) / sqrt(2 pi), or the same where i is best, in cells.",
        ),
        Step(
            "sum",
            f"The expected losses of {since}, each block at the bound of its first round.",
            "R = sum of r(t)",
            r"R = \sum_t r(t)",
            numbers.expected,
            0.0,
            "Information only grows, so that the bound of a block's first round holds for all.",
        ),
        Step(
            "largest gap",
            "No gap between the best and the worst arm exceeds this in any round.",
            "b = E G + s sqrt(2 log(T / share))",
            r"b = \mathbb{E} G + s \sqrt{2 \log (T / \delta_4)}",
            numbers.limit,
            shares.gap,
            "Gaussian concentration: G is a Lipschitz function of u with constant s.",
        ),
        Step(
            "deviation",
            "The realised losses exceed the sum of their expectations by at most this.",
            "(1 + e) log(1 + e) - e = b log(1 / share) / R, excess = R e",
            r"(1 + e) \log (1 + e) - e = b \log (1/\delta_5) / R",
            numbers.excess,
            shares.deviation,
            "Chernoff's bound for adapted losses between 0 and b, by convexity of exp.",
        ),
        Step(
            "regret",
            "The bound on the realised regret.",
            "Regret(T) <= R + excess" + ("" if burn_in is None else " + Regret(t0)"),
            r"\mathrm{Regret}(T) \le R (1 + e)"
            + ("" if burn_in is None else r" + \mathrm{Regret}(t_0)"),
            numbers.before + numbers.expected + numbers.excess,
            0.0,
            "The sum of the steps above.",
        ),
    )
