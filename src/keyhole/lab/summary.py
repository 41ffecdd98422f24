"""Summaries over replications: means, worst cases and bootstrap bands."""

from __future__ import annotations

import numpy as np
import xarray as xr

from keyhole import checks
from keyhole.errors import InvalidValue


def summarize(
    curves: xr.DataArray, *, level: float = 0.95, draws: int = 1000, seed: int = 0
) -> xr.Dataset:
    """Return the mean and the worst over replications, the paper's two curves, and a band.

    `standard_error` is that of the mean. `low` and `high` bound a bootstrap band for the mean:
    the middle `level` of the means of `draws` resamples of whole replications.

    Parameters
    ----------
    curves : DataArray
        One variable of the result of `simulate`, with a dimension `replication`.
    level : float, default 0.95
        The share of resampled means inside the band, above 0 and at most 1.
    draws : int, default 1000
        The number of resamples, at most a million.
    seed : int, default 0
        The seed of the resamples.

    Returns
    -------
    Dataset
        `mean`, `worst`, `standard_error`, `low` and `high`, without `replication`.

    Raises
    ------
    InvalidValue
        If the curves or settings are invalid.

    Examples
    --------
    >>> import xarray as xr
    >>> curves = xr.DataArray([[1.0, 2.0], [3.0, 6.0]], dims=("replication", "time"))
    >>> summary = summarize(curves)
    >>> summary["mean"].values.tolist(), summary["worst"].values.tolist()
    ([2.0, 4.0], [3.0, 6.0])
    """
    level = checks.real("level", level, above=0.0, min_value=0.0, max_value=1.0)
    draws = checks.integer("draws", draws, max_value=1_000_000)
    seed = checks.integer("seed", seed, min_value=0)
    _check("curves", curves, "replication")
    n = curves.sizes["replication"]
    values = curves.transpose("replication", ...)
    mean = values.mean("replication")
    rng = np.random.default_rng(seed)
    shares = rng.multinomial(n, np.full(n, 1.0 / n), size=draws) / n  # (draws, n)
    flat = shares @ values.values.reshape(n, -1)  # (draws, everything else)
    tails = np.quantile(flat, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    low, high = (mean.copy(data=tail.reshape(mean.shape)) for tail in tails)
    spread = values.std("replication", ddof=1) if n > 1 else mean * np.nan
    return xr.Dataset(
        {
            "mean": mean,
            "worst": values.max("replication"),
            "standard_error": spread / np.sqrt(n),
            "low": low,
            "high": high,
        }
    )


def over_log_squared(regret: xr.DataArray) -> xr.DataArray:
    """Return regret over (log t)^2, which flattens if regret grows like (log t)^2 (fig:1).

    The result begins at t = 2. Below t = 10 the divisor is too small for the curve to be
    informative, and plots leave these rounds out.
    """
    _check("regret", regret, "time")
    late = regret.sel(time=regret.time >= 2)
    if late.sizes["time"] == 0:
        raise InvalidValue("regret must have a time of at least 2: log 1 is 0")
    result: xr.DataArray = late / np.log(late.time) ** 2
    return result


def times_root(error: xr.DataArray) -> xr.DataArray:
    """Return errors times sqrt(t), which flatten if they shrink like 1 / sqrt(t) (fig:2)."""
    _check("error", error, "time")
    result: xr.DataArray = error * np.sqrt(error.time)
    return result


def rate_between(optimal: xr.DataArray) -> xr.DataArray:
    """Return the share of optimal choices in the rounds since the previous checkpoint."""
    _check("optimal", optimal, "time")
    counts = optimal * optimal.time
    before = counts.shift(time=1, fill_value=0.0)
    start = optimal.time.shift(time=1, fill_value=0)
    result: xr.DataArray = (counts - before) / (optimal.time - start)
    return result


def _check(name: str, curves: object, dim: str) -> None:
    """Raise InvalidValue unless this is a DataArray of real numbers with the dimension `dim`.

    It must not be empty, and the dimension `time` must have rounds as its coordinate.
    """
    if not isinstance(curves, xr.DataArray):
        raise InvalidValue(
            f"{name} must be one variable, such as runs.regret, got {type(curves).__name__}"
        )
    if dim not in curves.dims:
        held = ", ".join(map(str, curves.dims)) or "none"
        raise InvalidValue(f"{name} must have the dimension {dim!r}, but its dimensions are {held}")
    if curves.dtype.kind not in "biuf":
        raise InvalidValue(f"{name} must be real numbers, got an array of {curves.dtype}")
    if 0 in curves.shape:
        raise InvalidValue(f"{name} must not be empty, got shape {curves.shape}")
    if dim == "time" and ("time" not in curves.coords or curves.time.dtype.kind not in "iuf"):
        raise InvalidValue(f"{name} must have rounds as its coordinate 'time'")


__all__ = ["over_log_squared", "rate_between", "summarize", "times_root"]
