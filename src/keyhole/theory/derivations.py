"""`derivation`: where theorem 2 loses, as rows that each replace one step of the proof.

A row keeps the replacements of the rows before it. The first is the theorem as printed; the last of
ours is `theorem_2_repaired`. Further rows, such as a certificate by numerical integration, are
given by the caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm

from keyhole import checks
from keyhole.errors import InvalidValue
from keyhole.theory import bounds
from keyhole.theory.constants import Constants
from keyhole.theory.instances import Instance, instance
from keyhole.theory.quantities import Arrays
from keyhole.theory.statements import Word, status_of

# The steps that fail with probability delta each in the proof of thm:reg2.
STEPS = 6


@dataclass(frozen=True)
class Row:
    """A step of a derivation: a regret bound after one more replacement.

    Parameters
    ----------
    name : str
        The replaced step.
    value : float
        The regret bound with this and all earlier replacements.
    status : {"proved", "repaired", "open"}
        Whether the bound is proved.
    reason : str
        The replacement, and the reason if the bound is still open.
    """

    name: str
    value: float
    status: Word
    reason: str

    def __post_init__(self) -> None:
        if self.status not in ("proved", "repaired", "open"):
            raise InvalidValue(
                f"Row.status must be 'proved', 'repaired' or 'open', got {self.status!r}"
            )
        value = checks.real("Row.value", self.value, min_value=0.0, max_value=np.inf)
        object.__setattr__(self, "value", value)


@dataclass(frozen=True)
class Derivation:
    """Regret bounds of an instance, from the printed theorem to the best that is proved.

    Parameters
    ----------
    rows : tuple of Row
        The steps, in order.
    horizon : int
        T, the number of rounds.
    delta : float
        The probability with which a bound may fail.

    Examples
    --------
    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=2, seed=1)
    >>> found = kh.theory.derivation(world, horizon=10_000)
    >>> [row.name for row in found.rows][:2], found.rows[-1].status
    (['theorem 2 as printed', 'slips corrected'], 'repaired')
    >>> found.value < 1e-6 * found.rows[0].value
    True
    """

    rows: tuple[Row, ...]
    horizon: int
    delta: float

    @property
    def value(self) -> float:
        """The value of the last row."""
        return self.rows[-1].value

    @property
    def factors(self) -> tuple[float, ...]:
        """Each row's value over that of the row before; 1 for the first."""
        values = [row.value for row in self.rows]
        with np.errstate(all="ignore"):
            found = np.divide(values[1:], values[:-1])
        return (1.0, *(float(one) for one in found))

    def explain(self) -> str:
        """Return the rows as a table of plain text."""
        width = max(len(row.name) for row in self.rows)
        lines = [
            f"{row.name:{width}}  {row.value:8.1e}  {factor:8.1e}  {row.status}"
            for row, factor in zip(self.rows, self.factors, strict=True)
        ]
        head = f"{'regret at most':{width}}  {'value':>8}  {'factor':>8}  status"
        return "\n".join([head, *lines])

    def to_json(self) -> str:
        """Return the derivation as JSON; infinite values are the text "inf"."""

        def plain(number: float) -> float | str:
            return number if np.isfinite(number) else str(number)

        rows = [
            {**asdict(row), "value": plain(row.value), "factor": plain(factor)}
            for row, factor in zip(self.rows, self.factors, strict=True)
        ]
        whole = {"horizon": self.horizon, "delta": self.delta, "rows": rows}
        return json.dumps(whole, indent=2, allow_nan=False)

    def to_latex(self) -> str:
        """Return the rows as a LaTeX tabular, which needs no package."""
        lines = [
            f"{_escaped(row.name)} & {_power(row.value)} & {_power(factor)} & {row.status} \\\\"
            for row, factor in zip(self.rows, self.factors, strict=True)
        ]
        return "\n".join(
            [
                r"\begin{tabular}{lrrl}",
                rf"regret up to $T={_power(self.horizon)[1:-1]}$ & bound & factor & status \\",
                r"\hline",
                *lines,
                r"\end{tabular}",
            ]
        )


def _escaped(text: str) -> str:
    special = {one: rf"\{one}" for one in "&%$#_{}"}
    special |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(one, one) for one in text)


def _power(number: float) -> str:
    """Return a number as LaTeX, with a power of ten if it is large or small."""
    if not np.isfinite(number):
        return r"$\infty$" if number > 0.0 else "--"
    if 0.01 <= number < 1000.0 or number == 0.0:
        return f"${number:.3g}$"
    digits, power = f"{number:.1e}".split("e")
    return rf"${digits}\cdot10^{{{int(power)}}}$"


def derivation(
    world: Instance | Arrays,
    horizon: int,
    delta: float = 0.05,
    *,
    v: float | None = None,
    rows: Sequence[Row] = (),
) -> Derivation:
    """Return the regret bound of theorem 2, step by step from the printed to the repaired one.

    Parameters
    ----------
    world : Instance or LinearWorld
        The constants of a world, or the world.
    horizon : int
        T, the number of rounds, at least 2.
    delta : float, default 0.05
        The probability with which a bound may fail.
    v : float, optional
        The dispersion of Thompson sampling, at least R. By default R.
    rows : sequence of Row, default ()
        Rows to add at the end, such as that of a certificate.

    Returns
    -------
    Derivation
        The rows, with `explain()`, `to_json()` and `to_latex()`.

    Raises
    ------
    InvalidValue
        If an argument is invalid.
    """
    found = world if isinstance(world, Instance) else instance(world)
    horizon = checks.integer("horizon", horizon, min_value=2)
    for row in rows:
        if not isinstance(row, Row):
            raise InvalidValue(f"rows must be of theory.Row, got {type(row).__name__}")
    c = found.constants(delta=delta, v=v)
    steps = _rows(c, float(horizon), shared_context=found.shared_context)
    return Derivation((*steps, *rows), horizon, c.delta)


@dataclass(frozen=True)
class Ingredients:
    """The numbers of theorem 2's formula; a row replaces some of them."""

    longest: float  # L
    eigenvalue: float  # lambda_m, or what stands for it
    pulls: float  # nu_1
    odds: Callable[[float], float]  # after n pulls
    given_best: float  # 1, or 1 / P(A^kappa), by which pulls given a clearly best arm are more
    failing: float  # the share of delta that a step may fail with
    counting: float  # 32 or 128 in tau
    several: float  # 16 or 4 times c_M
    radius: float  # R sqrt(...) + c_eta

    def regret(self, c: Constants, horizon: float) -> float:
        """Return 2 c_eta L tau + 2 L g_1 (sqrt(4 log T log(1 / delta)) + k c_M C N log T).

        Parameters
        ----------
        c : Constants
            The constants of the instance.
        horizon : float
            T, the number of rounds.
        """
        logs, sure = np.log(horizon), np.log(1.0 / self.failing)
        clear = 64.0 * c.v**2 * logs / (c.kappa**2 * self.eigenvalue)
        pulls = max(self.pulls, clear)  # nu_2
        ell = c.n_arms * (pulls * (self.odds(pulls) + 2.0) + 7.0)
        tau = max(
            4.0 * self.pulls / c.p_min,
            4.0 * ell * self.given_best,
            self.counting * sure / c.p_min**2,
        )
        h = np.sqrt(2.0 / self.eigenvalue) * self.radius
        drawn = c.v * np.sqrt(2.0 * c.dim * np.log(2.0 * horizon * c.n_arms / self.failing))
        spread = np.sqrt(8.0 / (c.p_min * self.eigenvalue)) * (drawn + self.radius)
        c_m = 8.0 * c.v * np.sqrt(np.pi / self.eigenvalue) + 4.0 * h
        misses = self.several * c_m * c.margin * c.n_arms * logs / np.sqrt(c.p_min)
        late = 2.0 * spread * (np.sqrt(4.0 * logs * sure) + misses)
        return float(self.longest * (2.0 * c.c_eta * tau + late))


def _rows(c: Constants, horizon: float, *, shared_context: bool) -> list[Row]:
    """Return the rows of this library, each with the replacements of those before."""
    if not np.isfinite([c.r, c.v, c.c_eta]).all():
        return [Row("theorem 2 as printed", np.inf, "open", "R is infinite: nothing is promised")]
    each = replace(c, delta=c.delta / (STEPS * c.n_arms))
    still = "open: eq:cdfhat ignores that arms are chosen by past rewards"
    with np.errstate(all="ignore"):
        s = float(np.divide(c.kappa, 2.0 * c.v))
        printed = Ingredients(
            longest=float(bounds.length(c, horizon=horizon)),
            eigenvalue=c.lambda_m,
            pulls=float(bounds.nu_1(c, horizon=horizon)),
            odds=lambda n: float(bounds.missed_odds(c, horizon=horizon, n=n)),
            given_best=1.0,
            failing=c.delta,
            counting=32.0,
            several=16.0,
            radius=float(bounds.confidence_radius(c, horizon=horizon, n=horizon)),
        )
        corrected = replace(
            printed,
            longest=float(bounds.length(each, horizon=horizon)),
            pulls=float(bounds.nu_1(each, horizon=horizon)),
            odds=lambda _: corrected_odds(s),
            given_best=2.0 / c.p_min if c.p_min else np.inf,
            failing=each.delta / horizon,
            counting=128.0,
            several=4.0,
            radius=float(bounds.confidence_radius(each, horizon=horizon, n=horizon)),
        )
        chernoff = replace(corrected, pulls=float(bounds.nu_1_repaired(c)))
        exact = replace(chernoff, odds=lambda _: exact_odds(s))
        normal = replace(
            exact,
            longest=float(bounds.length_repaired(c, horizon=horizon)),
            eigenvalue=c.eig_min,
            radius=float(bounds.confidence_radius_repaired(c, horizon=horizon, n=horizon)),
        )
    why = {
        "theorem 2 as printed": (printed, "its proof is open"),
        "slips corrected": (
            corrected,
            "1 / P(A^kappa) in lem:term1 to lem:piineq, one tail in lem:nineq, the odds without "
            "eq:term2, 128 / p_i^2, 4 c_M, delta divided; " + still + ", and so is lem:eig",
        ),
        "matrix Chernoff": (chernoff, "lem:eig repaired; " + still),
        "exact odds": (exact, "the odds as an integral in place of bounds on it; " + still),
        "eigenvalues of Sigma_y": (
            normal,
            "Sigma_y in place of the sensing noise, lengths of normal vectors; " + still,
        ),
    }
    # Unknown constants are 0 or infinite, and their bounds infinite or not a number.
    with np.errstate(all="ignore"):
        rows = [
            Row(name, _known(one.regret(c, horizon)), "open", reason)
            for name, (one, reason) in why.items()
        ]
    natural = float(bounds.theorem_2_repaired(c, horizon=horizon))
    status = status_of("theorem_2_repaired", shared_context=shared_context)
    reason = (
        "every arm is chosen with probability 2^-(N - 1) at least, whatever was learned: lem:inq "
        "to lem:ni are not needed, nor is eq:cdfhat"
    )
    largest = 2.0 * c.c_eta * float(bounds.length_repaired(c, horizon=horizon))
    if np.isfinite(natural) and natural >= largest * horizon * (1.0 - 1e-12):
        reason += "; up to this horizon it is the largest gap, 2 c_eta L, in every round"
    return [*rows, Row("natural exploration", natural, status.word, reason)]


def _known(value: float) -> float:
    return value if not np.isnan(value) else np.inf


def corrected_odds(s: float) -> float:
    """Return a bound on E[(1 - p) / p] by the argument of eq:phiinv2, with its slips corrected.

    P(Z > z) >= exp(-z^2 / 2) / (2 sqrt(2 pi) z) for z >= 1 gives 2 sqrt(2 pi e) - 1 + 2 sqrt(2 pi)
    exp(-s^2 / 2 - s) (2 / s + 2 / s^2 + 2 / s^3). The limit of the integral is kept, so that
    eq:term2 is not needed.

    Parameters
    ----------
    s : float
        kappa / (2 v), below which no gap over the width of a sample is.
    """
    if s == 0.0:
        return np.inf
    root = 2.0 * np.sqrt(2.0 * np.pi)
    tail = np.exp(-0.5 * s**2 - s) * (2.0 / s + 2.0 / s**2 + 2.0 / s**3)
    return float(root * (np.exp(0.5) + tail) - 1.0)


def exact_odds(s: float) -> float:
    """Return the largest E[1 / Q(X - s)] - 1 with P(X > x) <= exp(-x^2 / 2) for x > 0.

    Q is the upper tail of a standard normal variable. 1 / Q increases, so that the largest
    expectation has X >= 0 and that tail: 1 / Q(-s) plus the integral of its derivative times the
    tail.

    Parameters
    ----------
    s : float
        kappa / (2 v).
    """
    if s == 0.0:
        return np.inf

    def integrand(x: float) -> float:
        # phi(x - s) / Q(x - s)^2 exp(-x^2 / 2), in logarithms: each part alone overflows.
        at = x - s
        logs = -0.5 * at**2 - 0.5 * np.log(2.0 * np.pi) - 2.0 * log_ndtr(-at) - 0.5 * x**2
        return float(np.exp(logs))

    # The integrand falls like x exp(-s x): beyond 60 / s nothing is left.
    pieces = np.concatenate([[0.0, 1.0], np.geomspace(2.0, max(60.0 / s, 20.0), 12)])
    whole = sum(quad(integrand, a, b, limit=200)[0] for a, b in pairwise(pieces))
    return float(1.0 / norm.sf(-s) + whole - 1.0)
