"""fig3: Thompson sampling and Greedy with 10 to 30 arms; `shared`: one parameter for all arms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from keyhole.core import Greedy, Policy, Sharing, ThompsonSampling
from keyhole.lab import plots
from keyhole.lab.evidence import (
    WORST_OF,
    Estimate,
    Verdict,
    at_least,
    at_most,
    counted,
    estimate,
    expected_worst,
    jackknife,
    listed,
    power_of_log,
    power_of_time,
)
from keyhole.lab.studies import choices, panels
from keyhole.lab.studies.study import THOMPSON, Cell, Settings, Study, regret, sized
from keyhole.lab.worlds import RandomLinearWorld

ARMS = (10, 20, 30)
GREEDY = "Greedy"
# Halfway between t, the claim about Greedy, and t^0.8, which must be refused.
LINE, LINE_MARGIN = 1.0, 0.1
# Halfway between (log t)^2, the claim about Thompson sampling, and (log t)^3, which must be
# refused. A worst case is known less precisely than a mean.
POWER, POWER_MARGIN = 2.0, 0.5
# The same for the means of `shared`, where (log t)^2.5 must be refused.
MEAN_MARGIN = 0.25


class Contexts(NamedTuple):
    """A way of drawing contexts.

    Parameters
    ----------
    name : str
        The name in tables.
    words : str
        The description in words.
    """

    name: str
    words: str


OWN = Contexts("own", "a context for each arm")
COMMON = Contexts("shared", "one context for all arms")


def own_cells(settings: Settings) -> list[Cell]:
    """Return cells with a parameter for each arm, with own and with shared contexts."""
    policies: dict[str, Policy] = {THOMPSON: ThompsonSampling(v="oracle"), GREEDY: Greedy()}
    return [
        Cell(
            where={"contexts": kind.name, "n_arms": n},
            world=RandomLinearWorld(
                n_arms=n, context_dim=10, dim=10, shared_context=kind is COMMON
            ),
            policies=policies,
            **sized(settings, 200),
        )
        for kind in (OWN, COMMON)
        for n in ARMS
    ]


def shared_cells(settings: Settings) -> list[Cell]:
    """Return cells with one parameter for all arms."""
    kind: Sharing = "shared"
    policies: dict[str, Policy] = {
        THOMPSON: ThompsonSampling(v="oracle", sharing=kind),
        GREEDY: Greedy(sharing=kind),
    }
    return [
        Cell(
            where={"n_arms": n},
            world=RandomLinearWorld(n_arms=n, context_dim=20, dim=20, shared_parameter=True),
            policies=policies,
            **sized(settings),
        )
        for n in ARMS
    ]


def own_figure(table: xr.Dataset) -> Figure:
    """Draw a row for each kind of contexts, and a panel for each number of arms."""
    drawing, axes = panels.panels(2, len(ARMS), same_y=True)
    highest = 0.0
    for place, (one, cell) in enumerate(zip(axes, table.cell.values, strict=True)):
        chosen = table.regret.sel(cell=cell)
        kind = COMMON if table.contexts.sel(cell=cell) == COMMON.name else OWN
        n = int(table.n_arms.sel(cell=cell))
        # Only the title in the middle of a row has room for the description.
        title = f"{kind.words}\n$N = {n}$" if place % len(ARMS) == 1 else f"$N = {n}$"
        plots.curves(chosen, "", worst=None, title=title, axes=one)
        for policy in (THOMPSON, GREEDY):
            curves = chosen.sel(policy=policy).transpose("replication", "time")
            worst = expected_worst(curves.values, WORST_OF)
            highest = max(highest, float(worst[-1]))
            one.plot(table.time, worst, "--", color=plots.colour(policy), linewidth=0.9)
        one.plot([], [], "--", color="0.4", linewidth=0.9, label=f"worst of {WORST_OF}, on average")
    axes[0].set_ylim(0.0, 1.05 * highest or 1.0)
    return panels.finished(drawing, axes, ylabel="regret")


def shared_figure(table: xr.Dataset) -> Figure:
    """Draw a panel for each number of arms."""
    drawing, axes = panels.panels(1, len(ARMS), same_y=True)
    for one, cell in zip(axes, table.cell.values, strict=True):
        n = int(table.n_arms.sel(cell=cell))
        plots.curves(table.regret.sel(cell=cell), "", title=f"$N = {n}$", axes=one)
    return panels.finished(drawing, axes, ylabel="regret")


def own_verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide the claims about worst cases.

    Greedy's worst case is linear, Thompson sampling's is logarithmic, and Greedy's is the worse.
    """
    return [
        verdict
        for kind in (COMMON, OWN)
        if (table.contexts == kind.name).any()
        for verdict in _worst_cases(table.isel(cell=(table.contexts == kind.name).values), kind)
    ]


def _worst_cases(table: xr.Dataset, kind: Contexts) -> list[Verdict]:
    by_arms = {f"N = {int(table.n_arms.sel(cell=c))}": table.sel(cell=c) for c in table.cell.values}
    lines = {
        name: power_of_time(one.regret.sel(policy=GREEDY), worst_of=WORST_OF)
        for name, one in by_arms.items()
    }
    logs = {
        name: power_of_log(one.regret.sel(policy=THOMPSON), worst_of=WORST_OF)
        for name, one in by_arms.items()
    }
    ratios = {name: _log_ratio(one.regret.isel(time=-1)) for name, one in by_arms.items()}
    times = {
        name: f"{np.exp(one.value):.2f} ({np.exp(one.low):.2f} to {np.exp(one.high):.2f})"
        for name, one in ratios.items()
    }
    return [
        counted(
            f"with {kind.words}, Greedy's worst case grows like a line",
            {name: at_least(power, LINE - LINE_MARGIN) for name, power in lines.items()},
            f"Power of t: {listed(lines)}; the limit is {LINE - LINE_MARGIN:g}. {_tried(by_arms)}",
        ),
        counted(
            f"with {kind.words}, Thompson sampling's worst case grows no faster than (log t)^2",
            {name: at_most(power, POWER + POWER_MARGIN) for name, power in logs.items()},
            f"Power of log t: {listed(logs)}; the limit is {POWER + POWER_MARGIN:g}.",
        ),
        counted(
            f"with {kind.words}, Greedy's worst case is worse than Thompson sampling's",
            {name: at_least(ratio, 0.0) for name, ratio in ratios.items()},
            "Ratio of the two at the end: "
            + "; ".join(f"{name}: {ratio}" for name, ratio in times.items())
            + ".",
        ),
    ]


def _log_ratio(last: xr.DataArray) -> Estimate:
    """Return the log ratio of worst final regrets of 50 replications, Greedy's over Thompson's."""
    both = last.sel(policy=[GREEDY, THOMPSON]).transpose("replication", "policy").values

    def statistic(samples: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> float:
        greedy, thompson = (expected_worst(samples[:, [i]], WORST_OF)[0] for i in (0, 1))
        return float(np.log(greedy / thompson)) if min(greedy, thompson) > 0 else float("nan")

    return jackknife(both, statistic)


def _tried(by_arms: dict[str, xr.Dataset]) -> str:
    """Describe the number of arms that Greedy has tried by the end: its mean and its minimum."""
    said = []
    for name, one in by_arms.items():
        tried = (one.pulls.sel(policy=GREEDY).isel(time=-1) > 0).sum("arm")
        said.append(f"{name}: {float(tried.mean()):.1f}, at least {int(tried.min())}")
    return f"Arms that Greedy has tried by the end: {'; '.join(said)}."


def shared_verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide whether regret is poly-logarithmic for both policies, and Greedy's the smaller."""
    powers = {
        f"{policy}, {cell}": power_of_log(table.regret.sel(policy=policy, cell=cell))
        for policy in (THOMPSON, GREEDY)
        for cell in table.cell.values
    }
    last = table.regret.isel(time=-1)
    saved = {
        str(cell): estimate(
            (last.sel(policy=GREEDY, cell=cell) - last.sel(policy=THOMPSON, cell=cell))
            / float(last.sel(policy=THOMPSON, cell=cell).mean())
        )
        for cell in table.cell.values
    }
    highest = max(powers, key=lambda name: powers[name].high)
    return [
        counted(
            "mean regret grows no faster than (log t)^2 for both policies",
            {name: at_most(power, POWER + MEAN_MARGIN) for name, power in powers.items()},
            f"Power of log t: the highest is {powers[highest]} for {highest}; the limit is "
            f"{POWER + MEAN_MARGIN:g}.",
        ),
        counted(
            "Greedy's mean regret is no larger than Thompson sampling's",
            {name: at_most(more, 0.0) for name, more in saved.items()},
            "Greedy's less Thompson sampling's, over the latter: "
            + ", ".join(f"{more.percent} at {name}" for name, more in saved.items())
            + ".",
        ),
    ]


FIG3 = Study(
    name="fig3",
    title="Thompson sampling and Greedy",
    claim="Without exploration the worst case grows linearly, the more so the more arms there are.",
    setting="10, 20 and 30 arms with a parameter each, d_x = d_y = 10, with a context for each arm "
    "(above) and with one context for all arms (below); a new instance in each replication.",
    rule=f"Worst cases are the expected worst of {WORST_OF} replications. A line is a power of t "
    f"of at least {LINE - LINE_MARGIN:g}: halfway between 1 and 0.8, which must be refused. "
    f"Thompson sampling's power of log t must be at most {POWER + POWER_MARGIN:g}: halfway between "
    "2 and 3, which must be refused. Greedy's final worst case must exceed Thompson sampling's.",
    choices=choices.FIGURE_3,
    cells=own_cells,
    curves=regret,
    figure=own_figure,
    verdicts=own_verdicts,
    notes="Why contexts matter: an arm that Greedy has not tried predicts 0, so that Greedy tries "
    "a new arm only when all tried arms predict less. With a context for each arm, k tried arms "
    "all predict below 0 with probability 2^-k, whatever was learned: Greedy knows about log2 t "
    "arms after t rounds and all N by about 2^N rounds, and the seeming line before that is a "
    "burn-in. With one context for all arms the predictions depend on each other: some arm may "
    "predict more than 0 at nearly every context, and other arms then stay untried for good. The "
    "second is the paper's picture.",
)

SHARED = Study(
    name="shared",
    title="One parameter for all arms (Algorithm 2)",
    claim="If all arms share one parameter, every pull informs about every arm: regret is "
    "poly-logarithmic even for Greedy, which is optimal there.",
    setting="10, 20 and 30 arms with one parameter and contexts of their own, d_x = d_y = 20; a "
    "new instance in each replication.",
    rule=f"The power of log t with which mean regret grows must be at most "
    f"{POWER + MEAN_MARGIN:g}: halfway between the claim, 2, and 2.5, which must be refused. "
    "Greedy's mean final regret must not exceed Thompson sampling's.",
    choices=choices.OURS,
    cells=shared_cells,
    curves=regret,
    figure=shared_figure,
    verdicts=shared_verdicts,
)
