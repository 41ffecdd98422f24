"""Matplotlib figures of simulation results.

Each function takes a data set and returns a figure. The colour of a policy depends on its name, not
on its position among the policies of a figure, so it stays the same from figure to figure.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from keyhole import checks
from keyhole.errors import InvalidValue, shown
from keyhole.lab.predictions import predicted
from keyhole.lab.summary import over_log_squared, summarize, times_root
from keyhole.lab.worlds import World
from keyhole.theory import Certificate, Derivation

# Axis labels, shared by all figures of these quantities.
NORMALIZED = r"regret $/\ (\log t)^2$"
ERROR = r"$\sqrt{t}\ \|\hat\eta_i - \eta_i\|$"

# Okabe and Ito's colours, distinguishable with any kind of colour vision. Their yellow is left out:
# it is too faint for a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# Once all colours are used, the next line style begins. Dashes are reserved for the worst case
# and for predictions.
LINES: tuple[Any, ...] = ("-", ":", "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)))


# The first of these words in a policy's name selects its colour; see `colour`.
WORDS = ("thompson", "linucb", "epsilon", "oful", "first", "greedy", "uniform", "random", "oracle")
PLACES = (0, 2, 4, 5, 3, 1, 6, 6, 1)


def regret(
    runs: xr.Dataset, *, asymptote: bool | World = False, axes: Axes | None = None
) -> Figure:
    """Draw the cumulative regret of each policy: mean with a 95% band, worst case dashed.

    Parameters
    ----------
    runs : Dataset
        The result of `simulate`.
    asymptote : bool or World, default False
        Whether to draw the regret that theory predicts, dashed and in place of the worst case, for
        each policy that has an asymptote: `keyhole.theory.asymptote`. Runs of one `LinearWorld`
        carry it; give it here if it is too large for that.
    axes : Axes, optional
        Axes to draw into, without a legend. By default a new figure with a legend.

    Returns
    -------
    Figure
        The figure of the axes.

    Raises
    ------
    InvalidValue
        If `runs` lacks the variable `regret`, no policy has an asymptote that was wanted, or `axes`
        is neither Axes nor None.
    """
    values = _variable(runs, "regret")
    if asymptote is False:
        return curves(values, "regret", axes=axes)
    found = predicted(runs, None if asymptote is True else asymptote)
    lines = {name: one.regret(values.time.values) for name, one in found.items()}
    return curves(values, "regret", worst=None, expected=lines, axes=axes)


def normalized_regret(runs: xr.Dataset, *, axes: Axes | None = None) -> Figure:
    """Draw regret over (log t)^2 of each policy, from round 10 on: mean, band and worst case.

    Parameters
    ----------
    runs : Dataset
        The result of `simulate`.
    axes : Axes, optional
        Axes to draw into, without a legend. By default a new figure with a legend.

    Returns
    -------
    Figure
        The figure of the axes.

    Raises
    ------
    InvalidValue
        If `runs` lacks the variable `regret`, or `axes` is neither Axes nor None.
    """
    shown = drop_burn_in(over_log_squared(_variable(runs, "regret")))
    return curves(shown, NORMALIZED, axes=axes)


def estimation_error(
    runs: xr.Dataset, *, policy: str | None = None, axes: Axes | None = None
) -> Figure:
    """Draw sqrt(t) ||mean - eta|| of each arm under one policy.

    Parameters
    ----------
    runs : Dataset
        The result of `simulate`.
    policy : str, optional
        The name of the policy. By default the first.
    axes : Axes, optional
        Axes to draw into, without a legend. By default a new figure with a legend.

    Returns
    -------
    Figure
        The figure of the axes.

    Raises
    ------
    InvalidValue
        If `runs` lacks the variable `error` or the policy, or `axes` is neither Axes nor None.
    """
    chosen, title = _policy(_variable(runs, "error"), policy)
    return curves(times_root(chosen), ERROR, by="arm", title=title, axes=axes)


def pulls(runs: xr.Dataset, *, policy: str | None = None, axes: Axes | None = None) -> Figure:
    """Draw the share of rounds so far in which each arm was pulled, from round 10 on.

    Parameters
    ----------
    runs : Dataset
        The result of `simulate`.
    policy : str, optional
        The name of the policy. By default the first.
    axes : Axes, optional
        Axes to draw into, without a legend. By default a new figure with a legend.

    Returns
    -------
    Figure
        The figure of the axes.

    Raises
    ------
    InvalidValue
        If `runs` lacks the variable `pulls` or the policy, or `axes` is neither Axes nor None.
    """
    chosen, title = _policy(_variable(runs, "pulls"), policy)
    shares = drop_burn_in(chosen / chosen.time)
    return curves(shares, "share of pulls", by="arm", worst="largest", title=title, axes=axes)


# A bar of a waterfall by its bound: proved bounds are filled with the first colour.
STATUS_COLOURS = {"open": "0.75", "repaired": COLOURS[0], "proved": COLOURS[2]}


def looseness(
    derivation: Derivation, *, seen: float | None = None, axes: Axes | None = None
) -> Figure:
    """Draw the regret bound after each step of a derivation, as a waterfall on a log axis.

    A bar goes from the bound of the row before to that of the row; the first begins at 1. Its
    colour is the status of the bound. Rows with infinite values have no bar, and say so.

    Parameters
    ----------
    derivation : Derivation
        The result of `theory.derivation`.
    seen : float, optional
        A simulated regret to compare with, drawn as a line.
    axes : Axes, optional
        Axes to draw into. By default a new figure.

    Returns
    -------
    Figure
        The figure of the axes.

    Raises
    ------
    InvalidValue
        If `derivation` is not a Derivation, or `seen` is not above 0.
    """
    if not isinstance(derivation, Derivation):
        raise InvalidValue(
            f"derivation must be that of theory.derivation, got {type(derivation).__name__}"
        )
    if seen is not None:
        checks.positive("seen", seen)
    if axes is None:
        size = (7.0, 1.2 + 0.42 * len(derivation.rows))
        axes = Figure(figsize=size, layout="constrained").subplots()
    figure, before = axes.get_figure(root=True), 1.0
    assert figure is not None
    for place, row in enumerate(derivation.rows):
        if not np.isfinite(row.value) or row.value <= 0.0:
            axes.text(1.5, place, "nothing is promised", va="center", fontsize="small")
            continue
        low, high = sorted((before, row.value))
        axes.barh(place, high - low, left=low, height=0.6, color=STATUS_COLOURS[row.status])
        axes.text(1.3 * high, place, f"{row.value:.1e}", va="center", fontsize="small")
        before = row.value
    _dress_waterfall(axes, derivation, seen)
    return figure


def _dress_waterfall(axes: Axes, derivation: Derivation, seen: float | None) -> None:
    """Set the axes, the labels and the legend of a waterfall."""
    finite = [row.value for row in derivation.rows if np.isfinite(row.value)]
    axes.set_xscale("log")
    axes.set_xlim(1.0, 1e3 * max([10.0, *finite]))
    axes.set_ylim(len(derivation.rows) - 0.4, -0.6)
    axes.set_yticks(range(len(derivation.rows)), [plain(row.name) for row in derivation.rows])
    axes.set_xlabel(f"bound on the regret up to round {derivation.horizon:,}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis="x", color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    handles: list[Any] = [
        Patch(color=STATUS_COLOURS[status], label=status)
        for status in dict.fromkeys(row.status for row in derivation.rows)
    ]
    if seen is not None:
        label = f"simulated, {seen:.3g}"
        handles.append(axes.axvline(seen, color=COLOURS[1], linewidth=1.2, label=label))
    axes.legend(handles=handles, frameon=False, fontsize="small", loc="lower right")


def certificate(
    found: Certificate,
    runs: xr.Dataset | None = None,
    *,
    lines: Mapping[str, Any] | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw a certificate over time beside the trivial bound and simulated runs, in logarithms.

    Parameters
    ----------
    found : Certificate
        The certificate, from `theory.certificate`.
    runs : Dataset, optional
        Runs of its policy in its world, from `simulate`: their mean, and up to 200 of them.
    lines : mapping of str to array_like, optional
        Other bounds by name, at `found.times`.
    axes : Axes, optional
        Axes to draw into, without a legend. By default a new figure with a legend.

    Returns
    -------
    Figure
        The figure of the axes.

    Raises
    ------
    InvalidValue
        If `found` is no certificate, `runs` lacks the variable `regret`, a line has another length,
        or `axes` is neither Axes nor None.
    """
    if not isinstance(found, Certificate):
        raise InvalidValue(f"found must be a Certificate, got {type(found).__name__}")
    regrets = None if runs is None else _policy(_variable(runs, "regret"), None)[0]
    others = {name: np.asarray(values) for name, values in (lines or {}).items()}
    for name, values in others.items():
        if values.shape != (len(found.times),):
            raise InvalidValue(
                f"the line {shown(name)} must have {len(found.times)} values, one for each of the "
                f"certificate's times, got {values.shape}"
            )
    if axes is not None and not isinstance(axes, Axes):
        raise InvalidValue(f"axes must be matplotlib Axes or None, got {type(axes).__name__}")
    figure, own = _figure() if axes is None else (axes.get_figure(root=True), axes)
    assert figure is not None
    for (name, values), grey in zip(others.items(), ("0.65", "0.45", "0.1") * 9, strict=False):
        # Above the runs, which a good prediction lies on.
        own.plot(found.times, values, ":", color=grey, linewidth=1.6, label=plain(name), zorder=4)
    own.plot(found.times, found.trivials, "--", color=COLOURS[1], linewidth=1.2, label="trivial")
    own.plot(found.times, found.values, color=COLOURS[0], linewidth=2.0, label="certificate")
    if regrets is not None:
        _draw_runs(own, regrets)
    if found.burn_in is not None:
        own.axvline(found.burn_in.rounds, color="0.8", linewidth=0.8, zorder=0)
    own.set(xscale="log", yscale="log", xlabel="round", ylabel="regret")
    own.autoscale(axis="y")
    own.set_ylim(bottom=max(0.5, _lowest(own)))
    _grid(own)
    if axes is None:
        _with_legend(figure, own)
    return figure


def overview(
    derivation: Derivation,
    found: Certificate | None,
    runs: xr.Dataset | None = None,
    *,
    lines: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw all that the theory says of regret: the waterfall, and lines over time in logarithms.

    Parameters
    ----------
    derivation : Derivation
        The regret bound after each replaced step.
    found : Certificate or None
        The certificate; without it only the waterfall is drawn.
    runs : Dataset, optional
        Simulated runs of one policy.
    lines : mapping of str to array_like, optional
        Other lines by name, at `found.times`.

    Returns
    -------
    Figure
        The figure.
    """
    seen = None
    if runs is not None and int(runs.time[-1]) == derivation.horizon:
        seen = float(runs.regret.isel(policy=0, time=-1).mean()) or None
    if found is None:
        return looseness(derivation, seen=seen)
    figure = Figure(figsize=(13.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.1))
    certificate(found, runs, lines=lines, axes=left)
    left.legend(frameon=False, fontsize="small", loc="best")
    looseness(derivation, seen=seen, axes=right)
    return figure


def _draw_runs(axes: Axes, regrets: xr.DataArray) -> None:
    """Draw the mean of runs and, faintly, up to 200 of them."""
    values = regrets.transpose("replication", "time").values
    time = regrets.time.values
    axes.plot(time, values[:200].T, color=COLOURS[2], linewidth=0.4, alpha=0.15)
    axes.plot(time, values.mean(axis=0), color=COLOURS[2], linewidth=1.6, label="simulated mean")
    axes.plot(time, values.max(axis=0), "--", color=COLOURS[2], linewidth=0.9, label="worst run")


def _lowest(axes: Axes) -> float:
    """Return half of the smallest positive number of the labelled lines."""
    shown_lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in shown_lines])
    return float(0.5 * values[values > 0.0].min(initial=np.inf))


def curves(
    values: xr.DataArray,
    ylabel: str,
    *,
    by: str = "policy",
    worst: str | None = "worst case",
    title: str = "",
    axes: Axes | None = None,
    colours: Sequence[str] | None = None,
    expected: Mapping[str, NDArray[np.float64]] | None = None,
) -> Figure:
    """Draw curves over (replication, time), one for each value of the dimension `by`.

    Each curve is the mean over replications with a 95% band. The maximum over replications is
    dashed.

    Parameters
    ----------
    values : DataArray
        The values, with the dimensions `replication` and `time`.
    ylabel : str
        The label of the y axis.
    by : str, default "policy"
        The dimension with one curve for each value.
    worst : str or None, default "worst case"
        The name of the maximum in the legend. None leaves the maximum out.
    title : str, default ""
        The title of the axes.
    axes : Axes, optional
        Axes to draw into, without a legend. By default a new figure with a legend.
    colours : sequence of str, optional
        The colours of the curves. By default they are chosen by name.
    expected : mapping of str to ndarray, optional
        Predictions of theory at these times, for some of the curves by name. They are dashed.

    Returns
    -------
    Figure
        The figure of the axes.

    Raises
    ------
    InvalidValue
        If `axes` is neither Axes nor None.
    """
    if axes is not None and not isinstance(axes, Axes):
        raise InvalidValue(f"axes must be matplotlib Axes or None, got {type(axes).__name__}")
    figure, own = _figure() if axes is None else (axes.get_figure(root=True), axes)
    assert figure is not None
    _curves(own, values, by, worst, colours, expected or {})
    dressed(own, ylabel, title)
    if axes is None:
        _with_legend(figure, own)
    return figure


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    return figure, figure.subplots()


def drop_burn_in(curves: xr.DataArray) -> xr.DataArray:
    """Return curves from round 10 on.

    Earlier ratios carry no information and would dominate the scale of the plot.
    """
    return curves.sel(time=curves.time >= min(10, int(curves.time[-1])))


def _variable(runs: xr.Dataset, name: str) -> xr.DataArray:
    """Return a variable of the result of `simulate`, or raise if it cannot be drawn."""
    if not isinstance(runs, xr.Dataset):
        raise InvalidValue(
            f"runs must be the Dataset that simulate returned, got {type(runs).__name__}"
        )
    if name not in runs:
        held = ", ".join(map(str, runs.data_vars)) or "nothing"
        raise InvalidValue(f"runs must have the variable {name!r}, but they have {held}")
    values = runs[name]
    for dim in ("replication", "time"):
        if dim not in values.dims:
            held = ", ".join(map(str, values.dims)) or "none"
            raise InvalidValue(
                f"{name} must have the dimension {dim!r}, but its dimensions are {held}: draw runs "
                "as simulate returned them"
            )
    if "time" not in values.coords or 0 in values.shape:
        raise InvalidValue(
            f"{name} must have rounds as its coordinate 'time', and must not be empty"
        )
    return values


def _policy(values: xr.DataArray, name: str | None) -> tuple[xr.DataArray, str]:
    """Return the values of one policy, and its name as text for a figure."""
    if "policy" not in values.coords:
        if name is not None:
            raise InvalidValue(f"there is no policy {shown(name)} in these runs, which name none")
        return values, ""
    known = [str(policy) for policy in np.atleast_1d(values.policy.values)]
    if name is not None and not (isinstance(name, str) and name in known):
        raise InvalidValue(
            f"there is no policy {shown(name)} in these runs; they have {', '.join(known)}"
        )
    chosen = known[0] if name is None else name
    return (values.sel(policy=chosen) if "policy" in values.dims else values), plain(chosen)


def plain(name: str) -> str:
    """Return a name as text that matplotlib shows unchanged.

    A dollar sign would begin a formula and is escaped. A leading underscore would keep a curve out
    of the legend, so a zero-width space is put before it. An empty name, which the legend would
    also leave out, is replaced.
    """
    text = (name or "(no name)").replace("$", r"\$")
    return "\N{ZERO WIDTH SPACE}" + text if text.startswith("_") else text


def colour(policy: str) -> str:
    """Return the colour of a policy.

    It is the same in every figure in which no other policy has taken it.
    """
    return COLOURS[_place(policy) % len(COLOURS)]


def _place(policy: str) -> int:
    """Return the index of a policy's colour, by a word in its name or else by a checksum."""
    name = policy.lower()
    for word, place in zip(WORDS, PLACES, strict=True):
        if word in name:
            return place
    return zlib.crc32(name.encode()) % len(COLOURS)


def _styles(label: str, values: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return a colour and a line style for each curve, all different while there are enough."""
    if label == "policy":
        wanted = [_place(str(value)) for value in values]
    elif label == "arm" and all(isinstance(value, int | np.integer) for value in values):
        wanted = [int(value) for value in values]
    else:
        wanted = list(range(len(values)))
    total, taken = len(COLOURS) * len(LINES), list[int]()
    for place in wanted:
        # The next free colour, and after the last colour the next line style.
        free = [p for p in range(place, place + total) if p % total not in taken]
        taken.append((free or [place])[0] % total)
    return [(COLOURS[p % len(COLOURS)], LINES[p // len(COLOURS)]) for p in taken]


def _curves(
    axes: Axes,
    curves: xr.DataArray,
    label: str,
    worst: str | None,
    colours: Sequence[str] | None,
    expected: Mapping[str, NDArray[np.float64]],
) -> None:
    """Draw a line with its band for each value of `label`, and the dashed line beside it."""
    summary = summarize(curves if label in curves.dims else curves.expand_dims(label))
    time, values = summary.time.values, summary[label].values
    styles = [(one, "-") for one in colours] if colours else _styles(label, list(values))
    for i, (value, (colour, line)) in enumerate(zip(values, styles, strict=True)):
        one = summary.isel({label: i})
        name = f"arm {value}" if label == "arm" else str(value)
        name = plain(name) if label == "policy" else name
        axes.plot(time, one["mean"], linestyle=line, color=colour, linewidth=1.6, label=name)
        axes.fill_between(time, one.low, one.high, color=colour, alpha=0.2, linewidth=0)
        if worst is not None:
            axes.plot(time, one.worst, "--", color=colour, linewidth=0.9)
        if str(value) in expected:
            axes.plot(time, expected[str(value)], "--", color=colour, linewidth=1.6)
    if expected:
        axes.plot([], [], "--", color="0.4", linewidth=1.6, label="predicted")
    if worst is not None:
        axes.plot([], [], "--", color="0.4", linewidth=0.9, label=worst)
    axes.fill_between([], [], [], color="0.4", alpha=0.3, linewidth=0, label="95% band of the mean")


def dressed(axes: Axes, ylabel: str, title: str) -> None:
    """Set labels, limits, grid and tick formats of axes.

    Parameters
    ----------
    axes : Axes
        The axes to change.
    ylabel : str
        The label of the y axis.
    title : str
        The title of the axes.
    """
    axes.set_title(title, fontsize="medium")
    axes.set(xlabel="round", ylabel=ylabel)
    axes.autoscale(axis="y")
    axes.set_ylim(bottom=0)
    _grid(axes)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    if axes.get_ylim()[1] >= 1000:
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.10g}")


def _grid(axes: Axes) -> None:
    """Set a light grid, two spines and narrow margins."""
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def _with_legend(figure: Figure, axes: Axes) -> None:
    """Add a legend outside the data."""
    entries = len(axes.get_legend_handles_labels()[1])
    columns = -(-entries // 14)
    # Widen the figure for each further column of a long legend, so that the data keep their space.
    figure.set_size_inches(7.0 + 1.6 * (columns - 1), 3.6)
    axes.legend(
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        fontsize="small",
        ncols=columns,
    )


__all__ = [
    "certificate",
    "estimation_error",
    "looseness",
    "normalized_regret",
    "overview",
    "pulls",
    "regret",
]
