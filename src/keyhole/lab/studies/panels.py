"""Figures of several panels, legible in print, with one legend for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Inches: the width of a page's text, and a panel's height.
WIDTH, HEIGHT = 7.0, 2.3
# A curve a tenth as high as its panel is still legible; data sets may differ a hundredfold.
LEGIBLE = 10.0


def panels(
    rows: int, columns: int, *, same_x: bool = True, same_y: bool | Literal["col"] = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure of equal panels, row by row.

    Parameters
    ----------
    rows, columns : int
        The numbers of rows and columns of panels.
    same_x, same_y : bool or "col"
        Whether all panels, or those of a column, have one range. Panels for comparison do.

    Returns
    -------
    figure : Figure
        The figure.
    axes : list of Axes
        The axes of the panels.
    """
    figure = Figure(figsize=(WIDTH, HEIGHT * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=same_x, sharey=same_y)
    return figure, list(np.ravel(axes))


def comparable(levels: Sequence[float]) -> bool:
    """Return whether panels of these levels can share a range: the lowest must stay legible."""
    return max(levels) < LEGIBLE * min(levels)


def finished(figure: Figure, axes: Sequence[Axes], *, ylabel: str, xlabel: str = "round") -> Figure:
    """Set common labels, and add one legend below for the curves that the panels share.

    Parameters
    ----------
    figure : Figure
        The figure.
    axes : sequence of Axes
        The axes of its panels.
    ylabel : str
        The common label of the y axes.
    xlabel : str, default "round"
        The label of the x axes of the last row.

    Returns
    -------
    Figure
        The same figure.
    """
    figure.supylabel(ylabel, fontsize="medium")
    entries: dict[str, Artist] = {}
    for one in axes:
        place = one.get_subplotspec()
        below = place is not None and place.is_last_row()
        one.set(ylabel="", xlabel=xlabel if below else "")
        entries.update(
            {label: line for line, label in zip(*one.get_legend_handles_labels(), strict=True)}
        )
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=min(len(entries), 4),
        frameon=False,
        fontsize="small",
    )
    return figure
