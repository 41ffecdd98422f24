"""`Promises`: every bound of an instance, each with its status and the time from which it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keyhole import checks
from keyhole.errors import InvalidValue
from keyhole.theory import bounds
from keyhole.theory.instances import Instance
from keyhole.theory.statements import STATEMENTS, Word, status_of


@dataclass(frozen=True)
class Promise:
    """A bound at one horizon.

    Parameters
    ----------
    value : float or None
        The bound; None before its time.
    start : float or None
        Before its time, the first horizon that reaches it: infinite if none does, since nothing is
        promised. None after it.
    label, meaning : str
        The label in the paper, and the bounded quantity.
    status : {"proved", "repaired", "open"}
        Whether it is proved.
    gaps : tuple of str
        The gaps of the proof, as keys of `GAPS`.
    """

    value: float | None
    start: float | None
    label: str
    meaning: str
    status: Word
    gaps: tuple[str, ...]


class Promises:
    """The bounds of an instance for a horizon.

    `constants` are the numbers that the functions of `keyhole.theory.bounds` take. Those compute a
    formula at any time; `named` and `of_arm` tell whether its time has come.

    Parameters
    ----------
    instance : Instance
        The instance, from `theory.instance(world)`.
    horizon : int
        T, the number of rounds, at least 2.
    delta : float, default 0.05
        The probability with which a bound may fail.
    v : float, optional
        The dispersion of Thompson sampling, at least R. By default R.

    Raises
    ------
    InvalidValue
        If an argument is invalid.

    Examples
    --------
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
        self.constants = instance.constants(delta=delta, v=v)

    @property
    def length(self) -> float:
        """L, which no observation exceeds."""
        return float(bounds.length(self.constants, horizon=self.horizon))

    @property
    def nu_1(self) -> float:
        """The number of pulls from which eigenvalues of B are said to grow."""
        return float(bounds.nu_1(self.constants, horizon=self.horizon))

    def tau(self, arm: int) -> float:
        """Return the round from which theorem 1 is claimed of an arm (0, 1, ...), for this T."""
        return float(bounds.tau(self.constants, horizon=self.horizon, p=self._p(arm)))

    def _p(self, arm: int) -> float:
        arm, n = checks.integer("arm", arm, min_value=0), self.instance.n_arms
        if arm >= n:
            raise InvalidValue(f"arm must be below {n}, the number of arms, got {arm}")
        return self.instance.p[arm].safe

    def rounds_until(self, arm: int, error: float) -> float:
        """Return the round from which theorem 1 puts an arm's estimation error below a number.

        The theorem is about rounds up to T, and its constants grow with T: this is the smallest T,
        not below the horizon, that is itself late enough.

        Parameters
        ----------
        arm : int
            The arm (0, 1, ...).
        error : float
            The number, above 0.
        """
        error, p = checks.positive("error", error), self._p(arm)

        def late_enough(horizon: float) -> float:
            whole = float(bounds.theorem_1(self.constants, horizon=horizon, t=1.0, p=p))
            return max(self._starts("theorem_1", p, horizon), (whole / error) ** 2)

        return _first(float(self.horizon), late_enough)

    @property
    def named(self) -> dict[str, Promise]:
        """Every bound that needs no arm and no round, at the end of the horizon."""
        # The corollary needs a longest observation, which no instance has.
        return {
            name: self._promise(name, self.instance.p_min.safe, n=float(self.horizon))
            for name, one in STATEMENTS.items()
            if not one.of_arm and name != "bounded_corollary"
        }

    def of_arm(self, arm: int) -> dict[str, Promise]:
        """Return every bound of one arm (0, 1, ...) at the end of the horizon.

        The paper has p_i T / 4 pulls of the arm by then; the repaired bounds have (T - 1) / 2^N.
        """
        p = self._p(arm)
        least = float(bounds.pulls_repaired(self.constants, t=self.horizon))
        return {
            name: self._promise(name, p, n=least if one.replaces else p * self.horizon / 4.0)
            for name, one in STATEMENTS.items()
            if one.of_arm
        }

    def _promise(self, name: str, p: float, n: float) -> Promise:
        """Return a bound at the end of the horizon, or when it begins."""
        one, horizon = STATEMENTS[name], float(self.horizon)
        value = one.at(self.constants, horizon=horizon, t=horizon, n=n, p=p)
        if one.meaning.startswith("probability") and np.isfinite(value):
            value = min(value, 1.0)  # above 1 a bound on a probability says nothing
        start = _first(horizon, lambda late: self._starts(name, p, late))
        if not np.isfinite(value):  # the bound says nothing, whatever the horizon
            start = np.inf
        status = status_of(name, shared_context=self.instance.shared_context)
        in_time = start <= horizon
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
        if one.starts == "nu_1_repaired":  # pulls that every arm has from this round on
            return float(bounds.tau_repaired(self.constants))
        start = STATEMENTS[one.starts].at(self.constants, horizon=horizon, p=p)
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
