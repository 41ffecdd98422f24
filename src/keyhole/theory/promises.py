"""What the theory promises of an instance, all bounds at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.errors import InvalidValue, shown
from keyhole.theory import bounds
from keyhole.theory.constants import Instance
from keyhole.theory.statements import STATEMENTS, Word, status_of


@dataclass(frozen=True)
class Promise:
    """A bound at one horizon, its label in the paper, what it says, and whether it is proved.

    value is None before the bound's time, and start is then the first horizon that reaches it:
    infinite if none does, since nothing is promised. After it start is None. gaps are keys of
    `GAPS`.
    """

    value: float | None
    start: float | None
    label: str
    meaning: str
    status: Word
    gaps: tuple[str, ...]


class Promises:
    """The bounds of an instance for a horizon, a probability of failure and a dispersion v (R).

    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=2, seed=1)
    >>> promises = kh.theory.Promises(kh.theory.instance(world), horizon=10_000)
    >>> promises.length < 100 < promises.nu_1        # lengths are modest, minimum times are not
    True
    >>> found = promises.of_arm(0)["theorem_1"]
    >>> found.value, found.start > promises.tau(0), found.status
    (None, True, 'open')
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
        self.horizon = checks.integer("horizon", horizon, min_value=2)
        self.delta = checks.real("delta", delta, above=0.0, max_value=0.999)
        self.v = instance.r.value if v is None else checks.positive("v", v)
        if self.v < instance.r.value:
            why = "".join(f"; {reason}" for reason in instance.unmet)
            raise InvalidValue(
                f"the theorems need v to be at least R = {instance.r.value:.4g}, got "
                f"{self.v:.4g}{why}"
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
        # Where too few gaps were seen to tell, the value that promises nothing.
        for name, unknown in (("kappa", 0.0), ("margin", np.inf)):
            if np.isnan(self._given[name]):
                self._given[name] = unknown
        self.length = float(self.bound("length"))

    def bound(self, name: str, **more: Any) -> Any:
        """A function of `bounds` by name, at this instance.

        t, n and p may be given besides, and another horizon, whose L is then taken. The formula is
        computed whether its time has come or not: `named` and `of_arm` tell.
        """
        given = {**self._given, **more}
        if name not in bounds.__all__:
            raise InvalidValue(
                f"there is no bound {shown(name)}; there are {', '.join(bounds.__all__)}"
            )
        wanted = inspect.signature(getattr(bounds, name)).parameters
        if "length" in wanted and "length" not in given:
            given["length"] = self.bound("length", horizon=given["horizon"])
        if unknown := sorted(set(more) - set(wanted) - set(AT)):
            raise InvalidValue(f"{name} does not depend on {', '.join(unknown)}")
        if missing := [argument for argument in wanted if argument not in given]:
            raise InvalidValue(f"{name} also needs {' and '.join(missing)}")
        return getattr(bounds, name)(**{argument: given[argument] for argument in wanted})

    @property
    def nu_1(self) -> float:
        """Pulls from which eigenvalues of B are said to grow."""
        return float(self.bound("nu_1"))

    def tau(self, arm: int) -> float:
        """The round from which theorem 1 is claimed of an arm (0, 1, ...), of this horizon's T."""
        return float(self.bound("tau", p=self._p(arm)))

    def _p(self, arm: int) -> float:
        arm, n = checks.integer("arm", arm, min_value=0), self.instance.n_arms
        if arm >= n:
            raise InvalidValue(f"arm must be below {n}, the number of arms, got {arm}")
        return self.instance.p[arm].value

    def rounds_until(self, arm: int, error: float) -> float:
        """The round from which theorem 1 puts an arm's estimation error below a number.

        The theorem is about rounds up to T, and its constants grow with T: this is the smallest T,
        not below the horizon, that is itself late enough.
        """
        error, p = checks.positive("error", error), self._p(arm)

        def late_enough(horizon: float) -> float:
            whole = float(self.bound("theorem_1", t=1.0, p=p, horizon=horizon))
            return max(self._starts("theorem_1", p, horizon), (whole / error) ** 2)

        return _first(float(self.horizon), late_enough)

    @property
    def named(self) -> dict[str, Promise]:
        """Every bound that needs no arm and no round, at the end of the horizon."""
        at_end = {"t": float(self.horizon), "n": float(self.horizon)}
        p = self.instance.p_min.value
        # The corollary needs a longest observation, which no instance has.
        return {
            name: self._promise(name, p, at_end)
            for name, one in STATEMENTS.items()
            if not one.of_arm and name != "bounded_corollary"
        }

    def of_arm(self, arm: int) -> dict[str, Promise]:
        """Every bound of one arm (0, 1, ...) at the end of the horizon, after p_i T / 4 pulls."""
        p, t = self._p(arm), float(self.horizon)
        at_end = {"t": t, "p": p, "n": p * t / 4.0}
        return {
            name: self._promise(name, p, at_end) for name, one in STATEMENTS.items() if one.of_arm
        }

    def _promise(self, name: str, p: float, at: dict[str, float]) -> Promise:
        """Return a bound at the end of the horizon, or when it begins."""
        one = STATEMENTS[name]
        status = status_of(name, shared_context=self.instance.shared_context)
        value = float(self.bound(name, **at))
        start = _first(float(self.horizon), lambda horizon: self._starts(name, p, horizon))
        if not np.isfinite(value):  # the bound says nothing, whatever the horizon
            start = np.inf
        in_time = start <= self.horizon
        return Promise(
            value if in_time else None,
            None if in_time else start,
            one.label,
            one.meaning,
            status.word,
            status.gaps,
        )

    def _starts(self, name: str, p: float, horizon: float) -> float:
        """Return the round from which a bound is claimed, by the constants of a horizon."""
        one = STATEMENTS[name]
        if not one.starts:
            return 0.0
        start = float(self.bound(one.starts, p=p, horizon=horizon))
        # What begins at a number of pulls begins when p_i t / 4 reaches it.
        if one.of_arm and one.starts == "nu_1":
            return 4.0 * start / p if p > 0.0 else np.inf
        return start


def _first(horizon: float, starts: Callable[[float], float]) -> float:
    """Return the smallest horizon, from a given one on, that is not before its own start.

    Constants grow with the horizon, but slower: like powers of its logarithm.
    """
    answer = max(horizon, starts(horizon))
    while answer > horizon * (1.0 + 1e-9):
        if not np.isfinite(answer):
            return np.inf
        horizon = answer
        answer = starts(horizon)
    return answer


# Where a bound is taken; one that does not depend on all of these is the same everywhere.
AT = ("t", "n", "p")
