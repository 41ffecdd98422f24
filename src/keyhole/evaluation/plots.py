"""Pictures of audits, evaluations and confidence sequences, by matplotlib."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keyhole.evaluation.audit import LIMIT, LogAudit
from keyhole.evaluation.result import Evaluation
from keyhole.evaluation.sequences import ConfidenceSequence

BLUE, RED, GREY = "#0072B2", "#D55E00", "0.5"


def audit(found: LogAudit) -> Figure:
    """Draw counts beside summed propensities, and the deviation of each arm.

    Parameters
    ----------
    found : LogAudit
        The result of `audit_log`.

    Returns
    -------
    Figure
        The figure.
    """
    figure = Figure(figsize=(7.0, 1.4 + 0.3 * len(found.arms)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    place = np.arange(len(found.arms))
    left.barh(place, found.counts, color=BLUE, alpha=0.5, label="chosen")
    left.plot(found.expected, place, "|", color="black", markersize=14, label="expected")
    left.set_yticks(place, [_plain(str(arm)) for arm in found.arms])
    left.invert_yaxis()
    left.legend(frameon=False, fontsize="small")
    finite = np.clip(found.z, -3 * LIMIT, 3 * LIMIT)
    colours = [RED if abs(z) > LIMIT else BLUE for z in found.z]
    right.scatter(finite, place, color=colours, zorder=3)
    right.axvspan(-LIMIT, LIMIT, color="0.93")
    right.axvline(0.0, color=GREY, linewidth=0.8)
    _dress(left, "rounds", "")
    _dress(right, "deviation (standard deviations)", "")
    return figure


def forest(found: Evaluation) -> Figure:
    """Draw the value of each policy with its interval, and the logged policy's mean reward.

    Parameters
    ----------
    found : Evaluation
        The result of `evaluate`.

    Returns
    -------
    Figure
        The figure.
    """
    figure = Figure(figsize=(7.0, 1.2 + 0.35 * len(found.rows)), layout="constrained")
    axes = figure.subplots()
    several = len({row.estimator for row in found.rows}) > 1
    for place, row in enumerate(found.rows):
        if row.value == row.value:
            axes.plot([row.low, row.high], [place, place], color=BLUE, linewidth=2.0)
            axes.plot(row.value, place, "o", color=BLUE)
        else:
            axes.plot(found.logged, place, "x", color=RED)
            axes.annotate("refused", (found.logged, place), (6, -3), textcoords="offset points")
    names = [f"{row.policy}, {row.estimator}" if several else row.policy for row in found.rows]
    axes.set_yticks(range(len(names)), [_plain(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvline(found.logged, color=GREY, linestyle="--", linewidth=1.0, label="as logged")
    axes.legend(frameon=False, fontsize="small")
    _dress(axes, f"mean reward, {100 * found.level:g}% intervals", "")
    return figure


def over_time(found: ConfidenceSequence, margin: float = 0.0) -> Figure:
    """Draw estimate and bounds over the rounds.

    Parameters
    ----------
    found : ConfidenceSequence
        The sequence.
    margin : float, default 0.0
        Line at which the stop rule decides, drawn for a gain.

    Returns
    -------
    Figure
        The figure.
    """
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(found.looks, found.low, found.high, color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(found.looks, found.estimate, color=BLUE, linewidth=1.4)
    title = _plain(found.policy)
    if found.quantity == "gain":
        axes.axhline(margin, color=GREY, linestyle="--", linewidth=1.0)
        at = found.decided_at(margin)
        title += f": {found.advice(margin)}"
        if at is not None:
            axes.axvline(at, color=RED, linewidth=1.0)
    spread = found.high[len(found.high) // 4 :].max() - found.low[len(found.low) // 4 :].min()
    middle = found.estimate[-1]
    # The first bounds are so wide that they would flatten all others.
    axes.set_ylim(max(found.low.min(), middle - spread), min(found.high.max(), middle + spread))
    axes.set_title(title, fontsize="medium")
    _dress(axes, "round", f"{found.quantity}, {100 * found.level:g}% at all times")
    return figure


def _dress(axes: Axes, xlabel: str, ylabel: str) -> None:
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def _plain(name: str) -> str:
    """Return a name as text: a dollar sign would begin a formula."""
    return name.replace("$", r"\$")
