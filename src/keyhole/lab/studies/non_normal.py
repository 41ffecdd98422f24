"""`non-normal`: the cost of selection where contexts are not normal, and the cost of its cure."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.stats import norm

from keyhole.core import Floats, ThompsonSampling, WeightedThompsonSampling
from keyhole.lab import plots
from keyhole.lab.evidence import (
    LEVEL,
    Estimate,
    Outcome,
    Verdict,
    all_of,
    at_least,
    at_most,
    estimate,
    jackknife,
    rate_of_decay,
    within,
)
from keyhole.lab.studies import choices, panels
from keyhole.lab.studies.study import THOMPSON, Cell, Settings, Study, regret, sized
from keyhole.lab.summary import summarize
from keyhole.lab.worlds import LinearWorld
from keyhole.theory import Quantity, WeightedCost, selected_regression, weighted_cost

NORMAL = "normal"
DISTRIBUTIONS = (NORMAL, "rademacher", "mixture", "uniform")
OTHERS = DISTRIBUTIONS[1:]
# The cure by a constant epsilon, and by one that falls like t^-1/2.
RATES = {"weighted, 2% uniform": (0.02, 0.0), "weighted, uniform like t^-1/2": (1.0, 0.5)}
CONSTANT, FALLING = RATES
HORIZON, REPLICATIONS = 150_000, 10
# Rounds from which floors are predicted: their errors are then a tenth of the floors.
TRIALS = 300_000
# Times, as shares of the horizon, at which the cost of the cure is predicted and averaged.
TIMES = (0.55, 0.65, 0.75, 0.85, 0.95)
# A predicted rate may be wrong by this share: halfway to one that is wrong by half.
MARGIN = 0.25
# An error that falls more slowly than this power of t does not tend to 0.
STAYS = -0.15


@cache
def world_of(distribution: Any) -> LinearWorld:
    """Return the world with contexts and sensing noise of this distribution.

    Sensing and coefficients are the same for all. Of 160 random ones they are among the few in
    which selection costs most.
    """
    return LinearWorld.random(
        n_arms=5,
        context_dim=2,
        dim=2,
        seed=9,
        sensing_scale=0.5,
        context_distribution=distribution,
        sensing_distribution=distribution,
    )


def cells(settings: Settings) -> list[Cell]:
    """Return a cell for each distribution."""
    sizes = sized(settings, replications=REPLICATIONS)
    if settings.horizon is None:
        sizes["horizon"] = HORIZON // 10 if settings.quick else HORIZON
    cures = {
        name: WeightedThompsonSampling(epsilon, decay=decay, v="oracle")
        for name, (epsilon, decay) in RATES.items()
    }
    return [
        Cell(
            where={"distribution": distribution},
            world=world_of(distribution),
            policies={THOMPSON: ThompsonSampling(v="oracle"), **cures},
            **sizes,
        )
        for distribution in DISTRIBUTIONS
    ]


# -- predicted and seen ----------------------------------------------------------------------------


@cache
def floor(distribution: str) -> Quantity:
    """Return the predicted regret per round of Thompson sampling in the limit."""
    limit, *_ = selected_regression(world_of(distribution), starts=1, trials=TRIALS)
    return limit.floor


@cache
def cost_at(distribution: str, policy: str, time: int) -> WeightedCost:
    """Return the predicted cost of the cure at a round.

    Parameters
    ----------
    distribution : str
        The distribution of contexts and sensing noise.
    policy : str
        The name of the policy.
    time : int
        The number of rounds before this one.
    """
    epsilon, decay = RATES[policy]
    world = world_of(distribution)
    return weighted_cost(world, time=max(time, 1), epsilon=epsilon, decay=decay, trials=4_000)


def cost(distribution: str, policy: str, horizon: int) -> float:
    """Return the predicted regret per round of the cure over the second half of the rounds.

    Parameters
    ----------
    distribution : str
        The distribution of contexts and sensing noise.
    policy : str
        The name of the policy.
    horizon : int
        The number of rounds.
    """
    times = [int(share * horizon) for share in TIMES]
    return float(np.mean([cost_at(distribution, policy, time).total for time in times]))


def predicted(distribution: str, policy: str, horizon: int) -> float:
    """Return the predicted regret per round of a policy over the second half of the rounds.

    Parameters
    ----------
    distribution, policy, horizon
        As in `cost`.
    """
    if policy == THOMPSON:
        return floor(distribution).value
    return cost(distribution, policy, horizon)


class Halves(NamedTuple):
    """Curves of the table by distribution and policy.

    Parameters
    ----------
    table : Dataset
        The table.
    """

    table: xr.Dataset

    def slopes(self, distribution: str, policy: str) -> xr.DataArray:
        """Return the regret per round of each replication over the second half of the rounds.

        Parameters
        ----------
        distribution, policy
            As in `curves`.
        """
        return _rate(self.curves("regret", distribution, policy))

    def latent_slopes(self, distribution: str, policy: str) -> xr.DataArray:
        """Return the same for latent regret, whose differences are those of expected rewards.

        Parameters
        ----------
        distribution, policy
            As in `curves`.
        """
        return _rate(self.curves("latent_regret", distribution, policy))

    def curves(self, name: str, distribution: str, policy: str) -> xr.DataArray:
        """Return the curves of one cell and policy.

        Parameters
        ----------
        name : str
            The variable.
        distribution : str
            The distribution of contexts and sensing noise.
        policy : str
            The name of the policy.
        """
        cell = self.table["distribution"].values.tolist().index(distribution)
        return self.table[name].isel(cell=cell, drop=True).sel(policy=policy, drop=True)

    def final_errors(self, distribution: str, policy: str) -> Floats:
        """Return the root mean square error of the estimates over arms, for each replication.

        Parameters
        ----------
        distribution, policy
            As in `curves`.
        """
        errors = self.curves("error", distribution, policy).isel(time=-1)
        found: Floats = np.sqrt((errors.transpose("replication", "arm").values ** 2).mean(axis=1))
        return found


def _rate(curves: xr.DataArray) -> xr.DataArray:
    """Return the growth per round over the second half of the rounds."""
    end = float(curves.time[-1])
    middle = curves.sel(time=end / 2, method="nearest", drop=True)
    start = float(curves.time.sel(time=end / 2, method="nearest"))
    growth: xr.DataArray = (curves.isel(time=-1, drop=True) - middle) / (end - start)
    return growth


# -- figure ----------------------------------------------------------------------------------------


def figure(table: xr.Dataset) -> Figure:
    """Draw regret of each policy, and dashed its predicted slope over the second half."""
    drawing, axes = panels.panels(2, 2, same_y=True)
    halves, end = Halves(table), float(table.time[-1])
    for ax, distribution in zip(axes, DISTRIBUTIONS, strict=True):
        for colour, policy in zip(plots.COLOURS, (THOMPSON, *RATES), strict=False):
            curves = halves.curves("regret", distribution, policy)
            summary = summarize(curves)
            ax.plot(summary.time, summary["mean"], color=colour, linewidth=1.2, label=policy)
            ax.fill_between(
                summary.time, summary.low, summary.high, color=colour, alpha=0.2, linewidth=0
            )
            middle = summary["mean"].sel(time=end / 2, method="nearest")
            start = float(middle.time)
            rise = predicted(distribution, policy, int(end)) * (end - start)
            ax.plot(
                [start, end],
                [float(middle), float(middle) + rise],
                color="black",
                linestyle="--",
                linewidth=0.9,
                label="predicted slope",
            )
        plots.dressed(ax, "", distribution)
        ax.xaxis.set_major_locator(MaxNLocator(3))
    return panels.finished(drawing, axes, ylabel="regret")


# -- claims ----------------------------------------------------------------------------------------


def verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide whether floors, cures and their costs are as predicted."""
    halves, end = Halves(table), int(table.time[-1])
    return [
        _floor_verdict(halves),
        _control_verdict(halves),
        _estimates_verdict(halves, end),
        *(_cost_verdict(halves, policy, end) for policy in RATES),
        *(_cheaper_verdict(halves, distribution, end) for distribution in OTHERS),
    ]


def _floor_verdict(halves: Halves) -> Verdict:
    outcomes, said = [], []
    control = halves.slopes(NORMAL, THOMPSON)
    for distribution in OTHERS:
        seen = estimate(halves.slopes(distribution, THOMPSON) - control)
        limit = floor(distribution)
        doubt = float(norm.ppf(0.5 + LEVEL / 2)) * limit.error
        off = Estimate(
            seen.value / limit.value - 1.0,
            float(np.hypot(seen.margin, doubt * seen.value / limit.value)) / limit.value,
        )
        outcomes.append(within(off, MARGIN))
        said.append(
            f"{distribution}: {limit.value:.4f} ± {doubt:.4f} predicted, "
            f"{seen.value:.4f} ± {seen.margin:.4f} seen"
        )
    return Verdict(
        "without the cure regret grows by the predicted floor each round",
        all_of(outcomes),
        f"Regret per round, above that of the normal world: {'; '.join(said)}.",
    )


def _control_verdict(halves: Halves) -> Verdict:
    seen, limit = estimate(halves.slopes(NORMAL, THOMPSON)), floor(NORMAL)
    least = min(floor(distribution).value for distribution in OTHERS)
    return Verdict(
        "in the normal world there is no floor",
        at_most(seen, 0.5 * least),
        f"Predicted {limit.value:.4f} ± {2.58 * limit.error:.4f}; regret per round "
        f"{seen.value:.4f} ± {seen.margin:.4f}, which has a logarithm's part; the smallest floor "
        f"elsewhere is {least:.4f}.",
    )


def _estimates_verdict(halves: Halves, horizon: int) -> Verdict:
    stays = rate_of_decay(halves.curves("error", "rademacher", THOMPSON).mean("arm"))
    outcomes, said = [at_least(stays, STAYS)], []
    for distribution in DISTRIBUTIONS:
        errors = halves.final_errors(distribution, CONSTANT)
        ratio = _root_mean_square(cost_at(distribution, CONSTANT, horizon).errors)
        found = jackknife(errors / ratio, _root_mean_square)
        outcomes.append(at_most(found, 1.0 + MARGIN))
        unweighted = _root_mean_square(halves.final_errors(distribution, THOMPSON))
        said.append(
            f"{distribution}: {ratio:.3f} predicted, {ratio * found.value:.3f} ± "
            f"{ratio * found.margin:.3f} seen, {unweighted:.3f} without weights"
        )
    return Verdict(
        "weighted estimates tend to eta, and others do not",
        all_of(outcomes),
        f"Error with weights at the end: {'; '.join(said)}. Power of t of the error without "
        f"weights, rademacher: {stays}.",
    )


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))


def _cost_verdict(halves: Halves, policy: str, horizon: int) -> Verdict:
    outcomes, said = [], []
    for distribution in DISTRIBUTIONS:
        expected = cost(distribution, policy, horizon)
        seen = estimate(halves.slopes(distribution, policy))
        off = Estimate(seen.value / expected - 1.0, seen.margin / expected)
        outcomes.append(within(off, MARGIN))
        said.append(
            f"{distribution}: {expected:.4f} predicted, {seen.value:.4f} ± {seen.margin:.4f} seen"
        )
    return Verdict(
        f"the cure costs what is predicted: {policy}",
        all_of(outcomes),
        f"Regret per round: {'; '.join(said)}.",
    )


def _cheaper_verdict(halves: Halves, distribution: str, horizon: int) -> Verdict:
    """Decide whether the cheaper of floor and cure is the one that was predicted."""
    saved = estimate(halves.slopes(distribution, THOMPSON) - halves.slopes(distribution, CONSTANT))
    pays = floor(distribution).value > cost(distribution, CONSTANT, horizon)
    reward = estimate(
        halves.latent_slopes(distribution, THOMPSON) - halves.latent_slopes(distribution, CONSTANT)
    )
    outcome: Outcome = at_least(saved, 0.0) if pays else at_most(saved, 0.0)
    return Verdict(
        f"{distribution}: weights with 2% uniform choices cost {'less' if pays else 'more'} than "
        "the floor",
        outcome,
        f"Regret saved per round: {saved.value:.4f} ± {saved.margin:.4f}; reward gained per round: "
        f"{reward.value:.4f} ± {reward.margin:.4f}.",
    )


NON_NORMAL = Study(
    name="non-normal",
    title="The floor of worlds that are not normal, and its cure",
    claim="Where E[x | y] is not linear, estimates tend to the regression given that an arm is "
    "chosen, and regret grows by a constant each round that can be predicted. Weights by exact "
    "propensities remove it, at a cost that can be predicted too.",
    setting="5 arms with a context each, d_x = d_y = 2, one instance; contexts and sensing noise "
    "are normal, random signs (rademacher), a mixture of two normals, or uniform, with the same "
    "covariances. Of 160 random instances this is among the few with the largest floors. "
    "v is that of the world.",
    rule="Regret per round is that of the second half of the rounds. The floor must be within 25% "
    "of the prediction, after the regret of the normal world, a logarithm's part, is subtracted; "
    "the cost of the cure within 25%; that of the normal world at most half of the smallest floor. "
    "Errors of weighted estimates at the end must be at most 25% above the prediction, which falls "
    "like t^-1/2, and those without weights must fall at most like t^-0.15. Whether the cure is "
    "cheaper than the floor, in these rounds, must be as predicted.",
    choices=choices.OURS,
    cells=cells,
    curves=regret,
    figure=figure,
    verdicts=verdicts,
    notes="The floor is against the best linear prediction. The difference of expected rewards can "
    "be larger: neither policy is the best where E[r | y] is not linear. A constant share of "
    "uniform choices is a linear cost of its own; one that falls like t^-1/2 is not.",
)
