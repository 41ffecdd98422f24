"""What the theory promises of an instance, all bounds at once."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.errors import InvalidValue
from keyhole.theory import bounds
from keyhole.theory.constants import Instance


@dataclass(frozen=True)
class Promise:
    """A bound at one horizon, its label in the paper and what it says."""

    value: float
    label: str
    meaning: str


class Promises:
    """The bounds of an instance for a horizon, a probability of failure and a dispersion v (R).

    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, observation_dim=2, seed=1)
    >>> promises = kh.theory.Promises(kh.theory.instance(world), horizon=10_000)
    >>> promises.length < 100 < promises.nu_1        # lengths are modest, minimum times are not
    True
    """

    def __init__(
        self, instance: Instance, *, horizon: int, delta: float = 0.05, v: float | None = None
    ) -> None:
        if not isinstance(instance, Instance):
            raise InvalidValue(
                f"Promises are of an Instance, from theory.instance(world), got "
                f"{type(instance).__name__}"
            )
        self.instance = instance
        self.horizon = checks.whole("horizon", horizon, least=2)
        self.delta = checks.number("delta", delta, above=0.0, most=0.999)
        self.v = instance.r.value if v is None else checks.positive("v", v)
        if self.v < instance.r.value:
            raise InvalidValue(
                f"the theorems need v to be at least R = {instance.r.value:.4g}, got {self.v:.4g}"
            )
        names = ("p_min", "kappa", "margin", "lambda_m", "c_eta", "c_y", "r")
        self._given: dict[str, Any] = {
            "n_arms": instance.n_arms,
            "dim": instance.dim,
            "horizon": float(self.horizon),
            "delta": self.delta,
            "v": self.v,
            **{name: getattr(instance, name).value for name in names},
        }
        self.length = float(self.bound("length"))

    def bound(self, name: str, **more: Any) -> Any:
        """A function of `bounds` by name, at this instance.

        t, n and p may be given besides, and another horizon, whose L is then taken.
        """
        given = {**self._given, **more}
        if name not in bounds.__all__:
            raise InvalidValue(f"there is no bound {name!r}; there are {', '.join(bounds.__all__)}")
        wanted = inspect.signature(getattr(bounds, name)).parameters
        if "length" in wanted and "length" not in given:
            given["length"] = self.bound("length", horizon=given["horizon"])
        if unknown := sorted(set(more) - set(wanted) - set(AT)):
            raise InvalidValue(f"{name} does not depend on {', '.join(unknown)}")
        if missing := [argument for argument in wanted if argument not in given]:
            raise InvalidValue(f"{name} also needs {' and '.join(missing)}")
        with np.errstate(all="ignore"):
            value = getattr(bounds, name)(**{argument: given[argument] for argument in wanted})
        # Nothing times an infinite constant: a bound of no use, not one of no value.
        return np.where(np.isnan(value), np.inf, value)[()]

    @property
    def nu_1(self) -> float:
        """Pulls from which eigenvalues of B are known to grow."""
        return float(self.bound("nu_1"))

    def tau(self, arm: int) -> float:
        """The round from which theorem 1 holds of an arm (0, 1, ...)."""
        return float(self.bound("tau", p=self._p(arm)))

    def _p(self, arm: int) -> float:
        arm, n = checks.whole("arm", arm, least=0), self.instance.n_arms
        if arm >= n:
            raise InvalidValue(f"arm must be below {n}, the number of arms, got {arm}")
        return self.instance.p[arm].value

    def rounds_until(self, arm: int, error: float) -> float:
        """The round from which theorem 1 puts an arm's estimation error below a number.

        The theorem is about rounds up to T, and its constants grow with T: this is the smallest T,
        not below the horizon, that is itself late enough.
        """
        error, p = checks.positive("error", error), self._p(arm)
        horizon, answer = 0.0, float(self.horizon)
        while answer > horizon * (1.0 + 1e-9):
            horizon = answer
            whole = float(self.bound("theorem_1", t=1.0, p=p, horizon=horizon))
            start = float(self.bound("tau", p=p, horizon=horizon))
            answer = max(start, (whole / error) ** 2)
            if not np.isfinite(answer):
                return np.inf
        return answer

    @property
    def named(self) -> dict[str, Promise]:
        """Every bound that needs no arm and no round, at the end of the horizon."""
        at_end = {"t": float(self.horizon), "n": float(self.horizon)}
        return {
            name: Promise(float(self.bound(name, **at_end)), label, meaning)
            for name, (label, meaning) in MEANINGS.items()
        }

    def of_arm(self, arm: int) -> dict[str, Promise]:
        """Every bound of one arm (0, 1, ...) at the end of the horizon, after p_i T / 4 pulls."""
        p, t = self._p(arm), float(self.horizon)
        return {
            name: Promise(float(self.bound(name, t=t, p=p, n=p * t / 4.0)), label, meaning)
            for name, (label, meaning) in MEANINGS_OF_ARMS.items()
        }


# Where a bound is taken; one that does not depend on all of these is the same everywhere.
AT = ("t", "n", "p")

MEANINGS = {
    "truncation": ("lem:tr", "no entry of any observation is larger"),
    "length": ("eq:ybnd", "no observation is longer"),
    "confidence_radius": ("lem:subg", "radius of the ellipsoid after as many pulls as rounds"),
    "nu_1": ("lem:eig", "pulls from which B's eigenvalues are known to grow"),
    "nu_2": ("lem:term1", "pulls from which an arm is not mistaken"),
    "ell": ("lem:ni", "pulls that other arms may take from a clearly best one"),
    "h": ("eq:h", "estimation error times the root of the pulls"),
    "missed_odds": ("eq:phiinv2", "odds against a clearly best arm's sample, on average"),
    "term_1": ("lem:term1", "pulls of j from a clearly best i, both well known"),
    "term_2": ("lem:term2", "pulls of j since its sample is far off"),
    "term_3": ("lem:term3", "pulls of j since its estimate is far off"),
    "g_1": ("eq:g1", "a sample's error times the root of the rounds"),
    "c_m": ("eq:cm", "the constant of a suboptimal pull"),
    "suboptimal_probability": ("thm:reg2", "probability of a suboptimal pull in the last round"),
    "theorem_2": ("thm:reg2", "regret of Algorithm 1"),
    "g": ("thm:reg1", "errors of two samples times the root of the rounds, shared parameter"),
    "shared_suboptimal_probability": (
        "eq:probijsum",
        "probability of a suboptimal pull, shared parameter",
    ),
    "shared_theorem": ("thm:reg1", "regret of Algorithm 2, if all arms share a parameter"),
}

MEANINGS_OF_ARMS = {
    "tau": ("lem:ni", "the round from which the arm is surely pulled often enough"),
    "expected_pulls": ("lem:piineq", "pulls that are expected at least (below 0: nothing is said)"),
    "covariance_bound": ("lem:eig", "largest eigenvalue of B^-1"),
    "estimation_error": ("lem:eta0", "|mean - eta|"),
    "theorem_1": ("thm:eta2", "|mean - eta|, by rounds"),
    "sampling_error": ("lem:eta1", "|sample - eta|"),
}
