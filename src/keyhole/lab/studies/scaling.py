"""`scaling`: the growth of regret with N, dy, v and the gap, beside the theorem's exponents."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from scipy.stats import t as student

from keyhole.core import Floats, Policy, ThompsonSampling
from keyhole.lab import plots
from keyhole.lab.evidence import (
    LEVEL,
    Estimate,
    Verdict,
    all_of,
    at_least,
    at_most,
    jackknife,
    slope,
)
from keyhole.lab.simulation import WorldRecipe
from keyhole.lab.studies import choices, panels
from keyhole.lab.studies.study import THOMPSON, Cell, Settings, Study, regret, sized
from keyhole.lab.summary import summarize
from keyhole.lab.worlds import LinearWorld, RandomLinearWorld, World

# Each factor with its label and its exponent in the bound of thm:reg2.
FACTORS = {
    "n_arms": ("number of arms $N$", 3.0),  # N / p^2, and the smallest p_i is at most 1 / N
    "dim": ("dimension $d_y = d_x$", 4.0),
    "v": ("dispersion $v / R$", 1.0),
    "gap": (r"gap, as a multiple $\kappa / \kappa_0$", -5.0),
}
WORDS = {
    "n_arms": "the number of arms",
    "dim": "the dimension",
    "v": "the dispersion v",
    "gap": "the gap",
}
# The bound's powers are up to logarithms. This margin is a factor of 1.07 over a doubling.
MARGIN = 0.1
SIZES = (5, 10, 20, 40)
SCALES = (0.5, 1.0, 2.0, 4.0)


def cells(settings: Settings) -> list[Cell]:
    """Return cells that vary one factor at a time, from 5 arms and dimension 10."""
    sizes = sized(settings)
    base = LinearWorld.random(n_arms=5, context_dim=10, dim=10, seed=sizes["seed"])

    def cell(factor: str, value: float, world: World | WorldRecipe, policy: Policy) -> Cell:
        where: dict[str, str | float] = {"factor": factor, "value": float(value)}
        return Cell(where=where, world=world, policies={THOMPSON: policy}, **sizes)

    oracle = ThompsonSampling(v="oracle")
    return [
        *(cell("n_arms", n, _drawn(n, 10), oracle) for n in SIZES),
        *(cell("dim", n, _drawn(5, n), oracle) for n in SIZES),
        *(cell("v", c, base, ThompsonSampling(v=c * base.noise_scale)) for c in SCALES),
        *(cell("gap", c, _with_gap(base, c), oracle) for c in SCALES),
    ]


def _drawn(n_arms: int, dim: int) -> RandomLinearWorld:
    return RandomLinearWorld(n_arms=n_arms, context_dim=dim, dim=dim)


def _with_gap(base: LinearWorld, scale: float) -> LinearWorld:
    """Return the world with all gaps scaled, and with the same R.

    The reward's noise makes up for the change of the unseen variance.
    """
    largest = max(SCALES)
    whole = math.hypot(base.reward_scale, largest * base.r2)
    return LinearWorld(
        sensing=base.sensing,
        coefficients=scale * base.coefficients,
        reward_scale=math.sqrt(whole**2 - (scale * base.r2) ** 2),
    )


def figure(table: xr.Dataset) -> Figure:
    """Draw final regret against each factor on log-log axes, with the powers between neighbours."""
    drawing, axes = panels.panels(2, 2, same_x=False, same_y=True)
    levels = table["regret"].isel(policy=0, time=-1).mean("replication")
    for one, (factor, (_, bound)) in zip(axes, FACTORS.items(), strict=True):
        x, last = _final(table, factor)
        summary = summarize(last.expand_dims("time"))
        means = summary["mean"].values.reshape(-1)
        low, high = summary.low.values.reshape(-1), summary.high.values.reshape(-1)
        found = powers(x, last)
        said = f"power {_signed(found.fitted.value)} fitted, {_signed(bound, 0)} in the bound"
        one.set(xscale="linear", yscale="linear")  # `dressed` starts at 0, and panels share axes
        plots.dressed(one, "", said)
        one.errorbar(
            x,
            means,
            yerr=[means - low, high - means],
            fmt="o-",
            markersize=3.5,
            linewidth=0.8,
            color=plots.COLOURS[0],
            label="mean regret, 95% interval; small: the power between neighbours",
        )
        for left, power in enumerate(found.local):
            one.annotate(
                _signed(power.value),
                (np.sqrt(x[left] * x[left + 1]), np.sqrt(means[left] * means[left + 1])),
                textcoords="offset points",
                xytext=(0, 4),
                ha="right" if bound > 0 else "left",  # above the curve
                fontsize="x-small",
                color="0.35",
            )
        one.set(xscale="log", yscale="log", xticks=x, xticklabels=[f"{value:g}" for value in x])
        one.minorticks_off()
        one.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        one.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")
        one.margins(x=0.08)
        one.set_ylim(float(levels.min()) / 1.4, float(levels.max()) * 1.4)
    rounds = int(table.time[-1])
    finished = panels.finished(drawing, axes, ylabel=f"regret after {rounds:,} rounds")
    for one, (label, _) in zip(axes, FACTORS.values(), strict=True):
        one.set_xlabel(label)
    return finished


def _signed(power: float, places: int = 2) -> str:
    return f"{power:+.{places}f}".replace("-", "\N{MINUS SIGN}")


class Powers(NamedTuple):
    """The power of one factor: fitted through all its values, and between neighbours.

    Parameters
    ----------
    fitted : Estimate
        The power through all values.
    local : list of Estimate
        The powers between neighbouring values.
    """

    fitted: Estimate
    local: list[Estimate]


def powers(x: Floats, last: xr.DataArray) -> Powers:
    """Fit c x^b to mean final regrets.

    The interval of the fitted power has the larger of two widths: that over replications, and that
    of the residuals, which are large if no single power fits.

    Parameters
    ----------
    x : ndarray
        The values of the factor.
    last : DataArray (cell, replication)
        The final regrets, with a cell for each value.

    Returns
    -------
    Powers
        The fitted power and the powers between neighbours.
    """
    values, places = last.transpose("replication", "cell").values, np.log(x)
    over_replications = _fit(places, values)
    local = [_fit(places[i : i + 2], values[:, i : i + 2]) for i in range(len(x) - 1)]
    lack = _lack_of_fit(places, values.mean(axis=0), over_replications.value)
    fitted = Estimate(over_replications.value, max(over_replications.margin, lack))
    return Powers(fitted, local)


def _fit(places: Floats, values: Floats) -> Estimate:
    """Return the power through all of these values, with its interval over replications."""
    return jackknife(values, lambda samples: slope(places, samples.mean(axis=0)))


def _lack_of_fit(places: Floats, means: Floats, power: float) -> float:
    """Return the half width of the interval of a slope, from the residuals of its line."""
    centred, heights = places - places.mean(), np.log(means)
    left = heights - heights.mean() - power * centred
    free = len(places) - 2
    spread = np.sqrt(left @ left / free / (centred @ centred))
    return float(student.ppf(0.5 + LEVEL / 2, free) * spread)


def verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide whether every factor's power stays within the theorem's, anywhere in the range."""
    return [
        _verdict(factor, *_final(table, factor), bound) for factor, (_, bound) in FACTORS.items()
    ]


def _verdict(factor: str, x: Floats, last: xr.DataArray, bound: float) -> Verdict:
    found = powers(x, last)
    if bound > 0:
        moves, outcomes = "grows", [at_most(one, bound + MARGIN) for one in found.local]
    else:
        moves, outcomes = "falls", [at_least(one, bound - MARGIN) for one in found.local]
    between = ", ".join(f"{one} from {x[i]:g} to {x[i + 1]:g}" for i, one in enumerate(found.local))
    return Verdict(
        f"regret {moves} with {WORDS[factor]} no faster than the bound's power {bound:+g}",
        all_of(outcomes),
        f"Powers between neighbours: {between}. One power for all: {found.fitted}, lack of fit "
        "included.",
    )


def _final(table: xr.Dataset, factor: str) -> tuple[Floats, xr.DataArray]:
    """Return the factor's values, and the final regrets (cell, replication)."""
    chosen = table.isel(cell=(table.factor == factor).values, policy=0, time=-1)
    return chosen.value.values, chosen.regret.transpose("cell", "replication")


SCALING = Study(
    name="scaling",
    title="The growth of regret with each factor",
    claim="The bound of the regret theorem, N d_y^4 v / (p^2 gap^5) up to logarithms, where p is "
    "the smallest p_i and so at most 1 / N, is not exceeded by the power of any factor; the powers "
    "show how far the simulation is from it.",
    setting="5 arms, d_x = d_y = 10 and v = R, and then one factor at a time. For v and the gap "
    "one instance, whose R stays the same; for the others a new one in each replication.",
    rule=f"Each power between neighbouring values may exceed the bound's by a margin of {MARGIN:g} "
    f"at most: the bound is up to logarithms. A single power through all values is shown "
    "with its lack of fit.",
    choices=choices.OURS,
    cells=cells,
    curves=regret,
    figure=figure,
    verdicts=verdicts,
    notes="R, v and the gaps grow with the dimension, so that its power is that of all of them "
    "together. A power above the bound's does not contradict the theorem, since it leaves out the "
    "constants and the first rounds: with a larger v exploration lasts longer, and 10,000 rounds "
    "have fewer rounds after it.",
)
