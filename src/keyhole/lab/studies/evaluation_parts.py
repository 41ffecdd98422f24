"""The parts of the table of the study `evaluation`, and what its intervals contain."""

from __future__ import annotations

import xarray as xr

INTERVALS, WATCHED, CONTROLS, SHOP = "intervals", "watched", "controls", "shop"
# Worlds without a floor in which the probability of the worse arm vanishes.
HARD = ("signal, no floor", "signal, no floor, longer logs")
ROUNDS, LONGER = 500, 5_000
# Standard deviation of coefficients, floor of the logged policy, and rounds, by name.
WORLDS = {
    HARD[1]: (0.6, 0.0, LONGER),
    HARD[0]: (0.6, 0.0, ROUNDS),
    "signal, floor 2%": (0.6, 0.02, ROUNDS),
    "signal, floor 10%": (0.6, 0.1, ROUNDS),
    "no signal, no floor": (0.0, 0.0, ROUNDS),
    "no signal, floor 2%": (0.0, 0.02, ROUNDS),
    "no signal, floor 10%": (0.0, 0.1, ROUNDS),
}


def part(table: xr.Dataset, name: str) -> xr.Dataset:
    """Return the cells of a part, over `case`, with the variables and replications they have.

    Parameters
    ----------
    table : Dataset
        The table of the study.
    name : str
        The name of the part.
    """
    chosen = table.isel(cell=(table["part"] == name).values)
    kept = chosen.swap_dims(cell="case").drop_vars(["cell", "part"])
    filled = [one for one in kept.data_vars if bool(kept[one].notnull().any())]
    found = kept[filled]
    return found.dropna("replication", how="all") if "replication" in found.dims else found


def intervals(table: xr.Dataset) -> xr.Dataset:
    """Return estimates, intervals and truths, without `time`: every log is evaluated at its end."""
    # Sizes of worlds may differ, and all but one time is then missing in each.
    found: xr.Dataset = part(table, INTERVALS).max("time")
    return found


def covered(table: xr.Dataset) -> xr.DataArray:
    """Return whether each nominal 95% interval contains the truth."""
    one = intervals(table)
    inside: xr.DataArray = (one["low"] <= one["truth"]) & (one["truth"] <= one["high"])
    return inside


def missed(table: xr.Dataset) -> xr.DataArray:
    """Return whether watched bounds miss the truth, over logs and looks."""
    one = part(table, WATCHED).isel(case=0, drop=True)
    truth = one["watched_truth"]
    wrong: xr.DataArray = (one["watched_low"] > truth) | (one["watched_high"] < truth)
    return wrong
