"""The figure of the study `evaluation`: coverage, a watched log, controls, and the shop's logs."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import norm

from keyhole.lab import plots
from keyhole.lab.evidence import Share, share
from keyhole.lab.studies.campaigns import STAND_IN
from keyhole.lab.studies.evaluation_cells import METHODS
from keyhole.lab.studies.evaluation_parts import (
    CONTROLS,
    SHOP,
    WATCHED,
    covered,
    missed,
    part,
)

# Inches: the width of a page's text.
WIDTH, HEIGHT = 7.0, 6.8
BLUE, RED = plots.COLOURS[:2]
GREY = "0.55"
NOMINAL = 0.95
# The band that MinVar is to cover.
BAND = (0.93, 0.97)
SHORT = {"fixed arm": "fixed", "best arm": "best"}
PROPENSITY_WORDS = {"1": "always 1", "1/K": "1 / K"}


def figure(table: xr.Dataset) -> Figure:
    """Draw coverage by cell, a log that is watched, the controls, and the logs of the shop."""
    drawing = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = drawing.subplot_mosaic(
        [["coverage", "coverage"], ["watched", "controls"], ["watched", "shop"]],
        height_ratios=[1.25, 0.75, 0.9],
    )
    _coverage(axes["coverage"], table)
    _watched(axes["watched"], table)
    _controls(axes["controls"], table)
    _shop(axes["shop"], table)
    return drawing


def _coverage(axes: Axes, table: xr.Dataset) -> None:
    """Draw the coverage of both estimators in every world and for every target."""
    inside = covered(table)
    policies = [str(name) for name in inside.policy.values]
    step = len(policies) + 1
    places, labels = [], []
    axes.axhspan(*BAND, color="0.9", zorder=0, label="93 to 97%")
    for group, case in enumerate(inside.case.values):
        start = group * step
        for j, policy in enumerate(policies):
            places.append(start + j)
            labels.append(SHORT.get(policy, policy))
        for name, colour, shift in zip(
            inside.estimator.values, (BLUE, RED), (-0.14, 0.14), strict=True
        ):
            found = [
                share(inside.sel(case=case, estimator=name, policy=policy).values)
                for policy in policies
            ]
            x = np.arange(len(policies)) + start + shift
            _dots(axes, x, found, colour, str(name) if group == 0 else None)
        middle = start + (len(policies) - 1) / 2
        axes.annotate(
            str(case).replace(", ", "\n"),
            (middle, 1.0),
            (0, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            fontsize="small",
            linespacing=0.9,
        )
    _dress(axes, "", "share of logs covered")
    axes.set_xticks(places, labels, rotation=90, fontsize="x-small")
    axes.set_xlim(-1.0, group * step + len(policies))
    axes.set_ylim(top=1.01)
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    title = f"coverage of nominal 95% intervals, {inside.sizes['replication']:,} logs in each cell"
    axes.set_title(title, fontsize="medium", pad=34)
    axes.legend(frameon=False, fontsize="small", loc="lower right", ncols=3)


def _dots(axes: Axes, x: NDArray[Any], found: list[Share], colour: str, label: str | None) -> None:
    """Draw shares with their exact 95% intervals."""
    value = np.array([one.value for one in found])
    low, high = np.array([one.interval for one in found]).T
    axes.errorbar(
        x,
        value,
        # An end may differ from a share of 0 or 1 by rounding.
        yerr=np.maximum([value - low, high - value], 0.0),
        fmt="o",
        color=colour,
        markersize=3,
        linewidth=1,
        label=label,
    )


def _watched(axes: Axes, table: xr.Dataset) -> None:
    """Draw one log: bounds at every look, and where the normal interval misses."""
    one = part(table, WATCHED).isel(case=0)
    policy = "uniform"
    sequence, normal = (missed(table).sel(bounds=method, watched=policy) for method in METHODS)
    number = _typical(normal)
    shown = one.sel(watched=policy).isel(replication=number)
    looks, truth = shown.look.values, shown["watched_truth"].values
    for method, colour, shade in zip(METHODS, (BLUE, RED), (0.18, 0.25), strict=True):
        low, high = (shown[f"watched_{end}"].sel(bounds=method).values for end in ("low", "high"))
        axes.fill_between(looks, low, high, color=colour, alpha=shade, linewidth=0, label=method)
        axes.plot(looks, low, color=colour, linewidth=0.8)
        axes.plot(looks, high, color=colour, linewidth=0.8)
    axes.plot(looks, truth, color="black", linewidth=1.2, label="truth")
    wrong = normal.isel(replication=number).values
    if wrong.any():
        axes.plot(looks[wrong], truth[wrong], "x", color=RED, markersize=5, label="missed")
    _dress(axes, "round", "")
    axes.set_xscale("log")
    ticks = [t for t in (50, 100, 200, 500, 1_000, 2_000) if looks[0] <= t <= looks[-1]]
    axes.set_xticks(ticks, [f"{t:,}" for t in ticks])
    axes.minorticks_off()
    axes.set_ylim(0.0, 1.0)
    shares = [float(one.any("look").mean()) for one in (normal, sequence)]
    axes.set_title("value of uniform choices in one log, watched", fontsize="medium", pad=30)
    axes.set_xlabel(
        f"round\never missed, of {one.sizes['replication']} logs: normal {shares[0]:.0%}, "
        f"sequence {shares[1]:.1%}",
        fontsize="small",
    )
    _legend_above(axes)


def _typical(missed: xr.DataArray) -> int:
    """Return the log with the median number of misses among those that are missed at some look."""
    counts = missed.sum("look").values
    order = [i for i in np.argsort(counts, kind="stable").tolist() if counts[i] > 0]
    return int(order[len(order) // 2]) if order else 0


def _controls(axes: Axes, table: xr.Dataset) -> None:
    """Draw what IPS covers, and how often the audit objects, for each kind of propensity."""
    one = part(table, CONTROLS).isel(case=0)
    names = [str(name) for name in one.propensity.values]
    for what, colour, shift, label in (
        ("covered", BLUE, -0.2, "IPS covers"),
        ("objected", RED, 0.0, "audit objects"),
        ("objected_bare", GREY, 0.2, "audit, no scores"),
    ):
        found = [share(one[what].sel(propensity=name).values == 1.0) for name in names]
        _dots(axes, np.arange(len(names)) + shift, found, colour, label)
    axes.axhline(NOMINAL, color=GREY, linestyle="--", linewidth=0.8)
    _dress(axes, "", "share of logs")
    axes.set_xticks(range(len(names)), [PROPENSITY_WORDS.get(name, name) for name in names])
    axes.set_ylim(-0.04, 1.04)
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    axes.set_title("controls: propensities as logged", fontsize="medium")
    axes.legend(frameon=False, fontsize="x-small", loc="center right")


def _shop(axes: Axes, table: xr.Dataset) -> None:
    """Draw each policy's value from the log of the other, beside the mean of its own log."""
    one = part(table, SHOP)
    reach = float(norm.ppf(0.5 + NOMINAL / 2))
    rows = [(case, policy) for case in one.case.values for policy in one.shop_policy.values]
    for place, (case, policy) in zip(range(len(rows), 0, -1), rows, strict=True):
        row = one.sel(case=case, shop_policy=policy)
        own, error = float(row.own), float(row.own_error)
        first = place == len(rows)
        axes.errorbar(
            100.0 * own,
            place + 0.15,
            xerr=100.0 * reach * error,
            fmt="o",
            color=GREY,
            markersize=3,
            label="own log" if first else None,
        )
        if np.isnan(row.other):
            axes.annotate("refused", (100.0 * own, place - 0.42), fontsize="x-small", color=BLUE)
            continue
        ends = 100.0 * np.array([[row.other - row.other_low], [row.other_high - row.other]])
        axes.errorbar(
            100.0 * float(row.other),
            place - 0.15,
            xerr=ends,
            fmt="o",
            color=BLUE,
            markersize=3,
            label="from the other log" if first else None,
        )
    _dress(axes, "clicks per 100 items shown, 95%", "")
    named = STAND_IN.name not in one.case.values
    labels = [f"{case}, {policy}" if named else str(policy) for case, policy in rows]
    axes.set_yticks(range(len(rows), 0, -1), labels, fontsize="small")
    axes.set_ylim(0.4, len(rows) + 0.6)
    title = "Open Bandit" if named else f"{STAND_IN.title} (stand-in for Open Bandit)"
    axes.set_title(title, fontsize="medium", pad=16)
    _legend_above(axes)


def _legend_above(axes: Axes) -> None:
    """Put the legend between the panel and its title, where it hides nothing."""
    axes.legend(
        frameon=False, fontsize="x-small", loc="lower center", bbox_to_anchor=(0.5, 0.98), ncols=2
    )


def _dress(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Set labels, a light grid and two spines."""
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
