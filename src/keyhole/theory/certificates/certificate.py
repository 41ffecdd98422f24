"""`certificate`: a bound on regret that holds with a stated probability, with its proof."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.core import Policy
from keyhole.errors import InvalidValue, shown
from keyhole.theory.certificates import deviation
from keyhole.theory.certificates.burn_in import BurnIn, runs_needed
from keyhole.theory.certificates.derivation import Derivation, Shares, derive, edges
from keyhole.theory.certificates.proof import Numbers, proof
from keyhole.theory.certificates.setting import Setting, setting_of
from keyhole.theory.certificates.steps import Step, as_latex, as_text, escaped, number
from keyhole.theory.quantities import Arrays
from keyhole.theory.ranges import Floats

# How delta is split among the steps. The ellipsoids and the deviation are the ones that matter.
SPLIT = {"information": 0.2, "spectrum": 0.05, "ellipsoid": 0.45, "gap": 0.05, "deviation": 0.25}
# Of a shared context this share goes to Monte Carlo limits first.
MONTE_CARLO = 0.05
# A burn-in may take at most this share of delta.
BURN_IN = 0.8
# Sums of rounded numbers are rounded up by more than they can be off.
ROUND_UP = 1.0 + 1e-9


@dataclass(frozen=True)
class Certificate:
    """A bound on the regret of a policy in a world, with its proof.

    With probability at least 1 - delta the regret after `horizon` rounds is at most `value`. With a
    burn-in that is so with the stated confidence over the simulations. The curve holds at each
    time with that probability, not at all times at once.

    Parameters
    ----------
    horizon : int
        T, the number of rounds.
    delta : float
        The probability with which the bound may fail.
    value : float
        The bound on the regret at the horizon.
    trivial : float
        The regret that no policy exceeds with probability 1 - delta, not even one that always
        chooses the worst arm: T E[largest gap] plus its deviation.
    n_arms, dim : int
        The number of arms, and of directions in which observations vary.
    v : float
        The dispersion of the policy; 0 is Greedy.
    steps : tuple of Step
        The proof.
    times, values, trivials : tuple
        Rounds, and both bounds after each of them.
    burn_in : BurnIn or None
        The measurements of the first rounds.
    confidence : float
        The confidence over the simulations of the burn-in; 1 without one.

    Examples
    --------
    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
    >>> found = kh.theory.certificate(world, kh.ThompsonSampling(v="oracle"), horizon=10_000)
    >>> found.value < 0.2 * found.trivial
    True
    >>> print(found)
    regret <= 4,428 after 10,000 rounds, with probability 0.95 (0.16 of the trivial bound 28,522)
    """

    horizon: int
    delta: float
    value: float
    trivial: float
    n_arms: int
    dim: int
    v: float
    steps: tuple[Step, ...]
    times: tuple[int, ...]
    values: tuple[float, ...]
    trivials: tuple[float, ...]
    burn_in: BurnIn | None = None
    confidence: float = 1.0

    @property
    def ratio(self) -> float:
        """The bound over the trivial one; 1 if it says nothing more."""
        return self.value / self.trivial

    @property
    def is_vacuous(self) -> bool:
        """True if the bound is no better than the trivial one."""
        return self.value >= self.trivial

    def explain(self) -> str:
        """Return the proof as a table: each step's value, its share of delta and its reason."""
        return f"{self}\n\n{as_text(self.steps)}"

    def to_latex(self) -> str:
        """Return the proof as a LaTeX table, which needs the packages amsmath and booktabs."""
        return f"% {escaped(str(self))}\n{as_latex(self.steps)}"

    def to_json(self) -> dict[str, Any]:
        """Return everything as a dict of plain values, ready for `json.dumps`."""
        return {**asdict(self), "ratio": self.ratio, "is_vacuous": self.is_vacuous}

    def __str__(self) -> str:
        sure = f", {self.confidence:.0%} confidence" if self.burn_in is not None else ""
        compared = (
            "no better than the trivial bound"
            if self.is_vacuous
            else f"{self.ratio:.2g} of the trivial bound {number(self.trivial)}"
        )
        return (
            f"regret <= {number(self.value)} after {self.horizon:,} rounds, with probability "
            f"{1.0 - self.delta:g}{sure} ({compared})"
        )


def certificate(
    world: Arrays,
    policy: Policy,
    horizon: int,
    delta: float = 0.05,
    *,
    burn_in: BurnIn | None = None,
    confidence: float = 0.95,
) -> Certificate:
    """Bound the regret of Thompson sampling or Greedy with a stated probability.

    The world has normal contexts and one sensor. With own contexts nothing is simulated: every arm
    is explored by itself, with probability 2^-(N-1) or more in every round. With many arms, or a
    shared context, a burn-in takes the place of the first rounds.

    Parameters
    ----------
    world : LinearWorld
        The world, or an object with the same properties.
    policy : Policy
        `ThompsonSampling(v=...)` with any number or "oracle", or `Greedy()`, with sharing "per-arm"
        and any prior precision.
    horizon : int
        T, the number of rounds, at least 2.
    delta : float, default 0.05
        The probability with which the bound may fail.
    burn_in : BurnIn, optional
        Measurements of the first rounds of this policy in this world, from `kh.audit.burn_in`.
    confidence : float, default 0.95
        The confidence over the simulations of a burn-in.

    Returns
    -------
    Certificate
        The bound, the trivial bound, the curve, and the proof in steps.

    Raises
    ------
    InvalidValue
        If the world or the policy is outside the reach of the proof, or the burn-in is of another
        world or policy, too long, or of too few runs.
    """
    setting = setting_of(world, policy)
    horizon = checks.integer("horizon", horizon, min_value=2)
    delta = checks.real("delta", delta, above=0.0, max_value=0.999)
    failure = 0.0
    if burn_in is not None:
        failure = _checked(burn_in, setting, horizon, delta, confidence)
    elif setting.shared:
        raise InvalidValue(
            "with a shared context an arm need not be explored, and there is no certificate "
            "without a burn-in: give burn_in=kh.audit.burn_in(world, policy, rounds=...)"
        )
    shares = _split(delta - failure, setting.shared)._replace(burn_in=failure)
    shared = deviation.shared_bounds(setting, shares.monte_carlo) if setting.shared else None
    gap = deviation.mean_gap(setting) if shared is None else shared.gap
    start = np.zeros(setting.n_arms) if burn_in is None else np.array(burn_in.information)
    first = 1 if burn_in is None else burn_in.rounds + 1
    found = derive(
        setting,
        first=first,
        horizon=horizon,
        start=start,
        shares=shares,
        gap=gap,
        shared=shared,
    )
    return _certified(setting, found, shares, gap, horizon, delta, burn_in, confidence)


def _certified(
    setting: Setting,
    found: Derivation,
    shares: Shares,
    gap: float,
    horizon: int,
    delta: float,
    burn_in: BurnIn | None,
    confidence: float,
) -> Certificate:
    before = 0.0 if burn_in is None else float(burn_in.regret)
    expected = np.cumsum((found.stops - found.starts) * found.losses)
    limit = deviation.largest_gap(setting, gap, horizon, shares.gap)
    beyond = deviation.excess(expected, limit, shares.deviation)
    times = found.stops.astype(int) - 1
    bounds = before + expected + beyond
    if burn_in is not None:  # regret never falls, so that of t0 bounds all before
        measured = np.array(edges(1, burn_in.rounds)[1:]) - 1
        times = np.append(measured, times)
        bounds = np.append(np.full(len(measured), before), bounds)
    trivials = deviation.trivial(setting, gap, times, delta - shares.monte_carlo)
    values: Floats = np.minimum(bounds, trivials) * ROUND_UP
    numbers = Numbers(
        expected=float(expected[-1]), limit=limit, excess=float(beyond[-1]), gap=gap, before=before
    )
    return Certificate(
        horizon=horizon,
        delta=delta,
        value=float(values[-1]),
        trivial=float(trivials[-1] * ROUND_UP),
        n_arms=setting.n_arms,
        dim=setting.dim,
        v=setting.v,
        steps=proof(setting, found, shares, numbers, burn_in),
        times=tuple(int(t) for t in times),
        values=tuple(float(one) for one in values),
        trivials=tuple(float(one) for one in trivials * ROUND_UP),
        burn_in=burn_in,
        confidence=1.0 if burn_in is None else confidence,
    )


def _split(delta: float, shared: bool) -> Shares:
    """Return how delta is split; a shared context has Monte Carlo limits besides."""
    drawn = MONTE_CARLO * delta if shared else 0.0
    return Shares(
        **{name: share * (delta - drawn) for name, share in SPLIT.items()}, monte_carlo=drawn
    )


def _checked(
    burn_in: BurnIn, setting: Setting, horizon: int, delta: float, confidence: float
) -> float:
    """Return the probability with which a burn-in may fail, or raise if it cannot be used."""
    if not isinstance(burn_in, BurnIn):
        raise InvalidValue(f"burn_in must be a BurnIn, got {shown(burn_in)}")
    if burn_in.digest != setting.digest:
        raise InvalidValue(
            "burn_in was measured in another world or with another policy: measure it again with "
            "kh.audit.burn_in(world, policy, rounds=...)"
        )
    if burn_in.rounds >= horizon:
        raise InvalidValue(
            f"burn_in must have fewer rounds than the horizon {horizon:,}, got {burn_in.rounds:,}"
        )
    failure = burn_in.failure(confidence=confidence)
    if failure > BURN_IN * delta:
        needed = runs_needed(setting.n_arms, share=0.5 * delta, confidence=confidence)
        raise InvalidValue(
            f"burn_in fails with probability {failure:.3g}, which leaves too little of delta = "
            f"{delta:g}: measure it with {needed:,} runs, got {burn_in.runs:,}"
        )
    return failure
