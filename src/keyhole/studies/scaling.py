"""`scaling`: how regret grows with N, dy, v and the gap, beside the theorem's exponents."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from keyhole import plots
from keyhole.policies import Policy, ThompsonSampling
from keyhole.simulation import WorldRecipe
from keyhole.studies import panels
from keyhole.studies.evidence import SURE, Estimate, exponent
from keyhole.studies.study import THOMPSON, Cell, Settings, Study, Verdict, regret, sized
from keyhole.summary import summarize
from keyhole.worlds import LinearWorld, RandomLinearWorld, World

# What is varied, what it is called, and its exponent in the bound of thm:reg2.
FACTORS = {
    "n_arms": ("arms $N$", 3.0),  # N / p^2, and the smallest p_i is at most 1 / N
    "observation_dim": ("dimension $d_y = d_x$", 4.0),
    "v": ("dispersion $v / R$", 1.0),
    "gap": ("gap", -5.0),
}
WORDS = {
    "n_arms": "the number of arms",
    "observation_dim": "the dimension",
    "v": "the dispersion v",
    "gap": "the gap",
}
SIZES = (5, 10, 20, 40)
SCALES = (0.5, 1.0, 2.0, 4.0)


def cells(settings: Settings) -> list[Cell]:
    """One factor at a time, from 5 arms and dimension 10."""
    sizes = sized(settings)
    base = LinearWorld.random(n_arms=5, context_dim=10, observation_dim=10, seed=sizes["seed"])

    def cell(factor: str, value: float, world: World | WorldRecipe, policy: Policy) -> Cell:
        where: dict[str, str | float] = {"factor": factor, "value": float(value)}
        return Cell(where=where, world=world, policies={THOMPSON: policy}, **sizes)

    told = ThompsonSampling(v="told")
    return [
        *(cell("n_arms", n, _drawn(n, 10), told) for n in SIZES),
        *(cell("observation_dim", n, _drawn(5, n), told) for n in SIZES),
        *(cell("v", c, base, ThompsonSampling(v=c * base.noise_scale)) for c in SCALES),
        *(cell("gap", c, _with_gap(base, c), told) for c in SCALES),
    ]


def _drawn(n_arms: int, dim: int) -> RandomLinearWorld:
    return RandomLinearWorld(n_arms=n_arms, context_dim=dim, observation_dim=dim)


def _with_gap(base: LinearWorld, scale: float) -> LinearWorld:
    """The same world with all gaps scaled, and the same R: what is no longer unseen is noise."""
    largest = max(SCALES)
    whole = math.hypot(base.reward_scale, largest * base.r2)
    return LinearWorld(
        sensing=base.sensing,
        parameters=scale * base.parameters,
        reward_scale=math.sqrt(whole**2 - (scale * base.r2) ** 2),
    )


def figure(table: xr.Dataset) -> Figure:
    """Final regret against each factor on log-log axes, with the fitted power."""
    drawing, axes = panels.panels(2, 2, same_x=False)
    for one, (factor, (title, bound)) in zip(axes, FACTORS.items(), strict=True):
        x, last = _final(table, factor)
        summary, fit = summarize(last.expand_dims("time")), exponent(x, last)
        means = summary["mean"].values.reshape(-1)
        low, high = summary.low.values.reshape(-1), summary.high.values.reshape(-1)
        centre = np.exp(np.log(means).mean() + fit.mean * (np.log(x) - np.log(x).mean()))
        powers = f"power {fit.mean:+.2f}, bound {bound:+g}".replace("-", "\N{MINUS SIGN}")
        plots.dressed(one, "", f"{title}: {powers}")
        one.errorbar(
            x,
            means,
            yerr=[means - low, high - means],
            fmt="o",
            markersize=3.5,
            color=plots.COLOURS[0],
            label="mean regret, 95% interval",
        )
        one.plot(x, centre, "-", color=plots.COLOURS[1], linewidth=1.2, label="fitted power")
        one.set(xscale="log", yscale="log", xticks=x, xticklabels=[f"{value:g}" for value in x])
        one.minorticks_off()
        one.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        one.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")
        one.margins(x=0.05)
        one.set_ylim(means.min() / 1.3, means.max() * 1.3)
    rounds = int(table.time[-1])
    return panels.finished(drawing, axes, ylabel=f"regret after {rounds:,} rounds", xlabel="")


def verdicts(table: xr.Dataset) -> list[Verdict]:
    """No factor matters more than the theorem allows."""
    return [
        _verdict(factor, exponent(*_final(table, factor)), bound)
        for factor, (_, bound) in FACTORS.items()
    ]


def _verdict(factor: str, fit: Estimate, bound: float) -> Verdict:
    slack = SURE * fit.error
    holds = fit.mean <= bound + slack if bound > 0 else fit.mean >= bound - slack
    moves = "grows" if bound > 0 else "falls"
    return Verdict(
        f"regret {moves} with {WORDS[factor]} no faster than the bound's power {bound:+g}",
        holds,
        f"Fitted exponent {fit.mean:+.2f} ± {fit.error:.2f}.",
    )


def _final(
    table: xr.Dataset, factor: str
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], xr.DataArray]:
    """The factor's values, and the final regrets (cell, replication)."""
    chosen = table.isel(cell=(table.factor == factor).values, policy=0, time=-1)
    return chosen.value.values, chosen.regret.transpose("cell", "replication")


SCALING = Study(
    name="scaling",
    title="What regret grows with",
    claim="The bound of the regret theorem, N d_y^4 v / (p^2 gap^5) up to logarithms, where p is "
    "the smallest p_i and so at most 1 / N, is not exceeded by any factor; the fitted powers say "
    "how far from it practice is.",
    setting="5 arms, d_x = d_y = 10 and v = R, and then one factor at a time. For v and the gap "
    "one instance, whose R stays the same; for the others a new one in each replication.",
    cells=cells,
    curves=regret,
    figure=figure,
    verdicts=verdicts,
    notes="With the dimension R grows too, and with it v, and so do the gaps: its power is of all "
    "of them together.",
)
