"""Data set in, matplotlib figure out."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keyhole.errors import InvalidValue
from keyhole.summary import over_log_squared, summarize, times_root

# Okabe and Ito's colours, told apart with any kind of colour vision; the yellow is left out, which
# is too faint for a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# When the colours come round again, so does the next kind of line; dashes are the worst case's.
LINES: tuple[Any, ...] = ("-", ":", "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)))


def regret(runs: xr.Dataset, *, axes: Axes | None = None) -> Figure:
    """Cumulative regret of each policy: mean with a 95% band, and dashed the worst case.

    Here and below, `axes` are the caller's to draw into, with a legend of the caller's.
    """
    return curves(runs.regret, "regret", axes=axes)


def normalized_regret(runs: xr.Dataset, *, axes: Axes | None = None) -> Figure:
    """Regret over (log t)^2 of each policy, from round 10 on: mean, band and worst case."""
    shown = settled(over_log_squared(runs.regret))
    return curves(shown, "regret / (log t)$^2$", axes=axes)


def estimation_error(
    runs: xr.Dataset, *, policy: str | None = None, axes: Axes | None = None
) -> Figure:
    """sqrt(t) |mean - eta| of each arm under one policy (by default the first)."""
    chosen = _policy(runs, policy)
    ylabel = r"$\sqrt{t}\ |\hat\eta_i - \eta_i|$"
    title = str(chosen.policy.values)
    return curves(times_root(chosen.error), ylabel, by="arm", title=title, axes=axes)


def pulls(runs: xr.Dataset, *, policy: str | None = None, axes: Axes | None = None) -> Figure:
    """The share of rounds so far in which each arm was pulled, under one policy, from round 10."""
    chosen = _policy(runs, policy)
    shares = settled(chosen.pulls / chosen.time)
    title = str(chosen.policy.values)
    return curves(shares, "share of pulls", by="arm", worst="largest", title=title, axes=axes)


def curves(
    values: xr.DataArray,
    ylabel: str,
    *,
    by: str = "policy",
    worst: str | None = "worst case",
    title: str = "",
    axes: Axes | None = None,
) -> Figure:
    """Curves over (replication, time), one for each value of the dimension `by`.

    The mean over replications with a 95% band, and dashed the largest, in the legend as `worst`
    (None leaves it out).
    """
    figure, own = _figure() if axes is None else (axes.get_figure(root=True), axes)
    assert figure is not None
    _curves(own, values, by, worst)
    dressed(own, ylabel, title)
    if axes is None:
        _with_legend(figure, own)
    return figure


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    return figure, figure.subplots()


def settled(curves: xr.DataArray) -> xr.DataArray:
    """From round 10 on: before, a share or a ratio says nothing and takes all the room."""
    return curves.sel(time=curves.time >= min(10, int(curves.time[-1])))


def _policy(runs: xr.Dataset, name: str | None) -> xr.Dataset:
    known = [str(policy) for policy in np.atleast_1d(runs.policy.values)]
    if name is not None and name not in known:
        raise InvalidValue(
            f"there is no policy {name!r} in these runs; there is {', '.join(known)}"
        )
    return runs.sel(policy=name or known[0]) if "policy" in runs.dims else runs


def _curves(axes: Axes, curves: xr.DataArray, label: str, worst: str | None) -> None:
    """A line for each value of the dimension `label`, its band, and dashed the worst case."""
    summary = summarize(curves if label in curves.dims else curves.expand_dims(label))
    time = summary.time.values
    for i, value in enumerate(summary[label].values):
        one, colour = summary.sel({label: value}), COLOURS[i % len(COLOURS)]
        line = LINES[i // len(COLOURS) % len(LINES)]
        name = f"arm {value}" if label == "arm" else str(value)
        axes.plot(time, one["mean"], linestyle=line, color=colour, linewidth=1.6, label=name)
        axes.fill_between(time, one.low, one.high, color=colour, alpha=0.2, linewidth=0)
        if worst is not None:
            axes.plot(time, one.worst, "--", color=colour, linewidth=0.9)
    if worst is not None:
        axes.plot([], [], "--", color="0.4", linewidth=0.9, label=worst)
    axes.fill_between([], [], [], color="0.4", alpha=0.3, linewidth=0, label="95% band of the mean")


def dressed(axes: Axes, ylabel: str, title: str) -> None:
    """Labels, and no more ink than needed."""
    axes.set_title(title, fontsize="medium")
    axes.set(xlabel="round", ylabel=ylabel)
    axes.autoscale(axis="y")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    if axes.get_ylim()[1] >= 1000:
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")


def _with_legend(figure: Figure, axes: Axes) -> None:
    """A legend outside the data."""
    entries = len(axes.get_legend_handles_labels()[1])
    columns = -(-entries // 14)
    # Each further column of a long legend gets room of its own, not the data's.
    figure.set_size_inches(7.0 + 1.6 * (columns - 1), 3.6)
    axes.legend(
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        fontsize="small",
        ncols=columns,
    )


__all__ = ["estimation_error", "normalized_regret", "pulls", "regret"]
