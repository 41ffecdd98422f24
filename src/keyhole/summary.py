"""What many replications say together: means, worst cases, and how sure one can be of them."""

from __future__ import annotations

import numpy as np
import xarray as xr

from keyhole import checks
from keyhole.errors import InvalidValue


def summarize(
    curves: xr.DataArray, *, level: float = 0.95, draws: int = 1000, seed: int = 0
) -> xr.Dataset:
    """The mean and the worst over replications, the paper's two curves, with their uncertainty.

    `standard_error` is that of the mean. `low` and `high` bound a bootstrap band for the mean:
    the middle `level` of the means of `draws` resamples of whole replications.

    >>> import xarray as xr
    >>> curves = xr.DataArray([[1.0, 2.0], [3.0, 6.0]], dims=("replication", "time"))
    >>> summary = summarize(curves)
    >>> summary["mean"].values.tolist(), summary["worst"].values.tolist()
    ([2.0, 4.0], [3.0, 6.0])
    """
    level = checks.number("level", level, above=0.0, least=0.0, most=1.0)
    draws = checks.whole("draws", draws)
    if not isinstance(curves, xr.DataArray):
        raise InvalidValue(f"summarize takes one variable, such as runs.regret, got {type(curves)}")
    if "replication" not in curves.dims:
        raise InvalidValue(f"curves need a dimension 'replication', got {curves.dims}")
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
    """Regret over (log t)^2, which flattens if regret grows like that (fig:1); from t = 2 on.

    Below t = 10 the divisor is so small that the curve says nothing: plots leave that out.
    """
    late = regret.sel(time=regret.time >= 2)
    if late.sizes["time"] == 0:
        raise InvalidValue("regret over (log t)^2 begins at t = 2, and these curves end before")
    result: xr.DataArray = late / np.log(late.time) ** 2
    return result


def times_root(error: xr.DataArray) -> xr.DataArray:
    """Error times sqrt(t), which flattens if errors shrink like 1 / sqrt(t) (fig:2)."""
    result: xr.DataArray = error * np.sqrt(error.time)
    return result


def rate_between(optimal: xr.DataArray) -> xr.DataArray:
    """The share of optimal choices in the rounds since the checkpoint before each."""
    counts = optimal * optimal.time
    before = counts.shift(time=1, fill_value=0.0)
    start = optimal.time.shift(time=1, fill_value=0)
    result: xr.DataArray = (counts - before) / (optimal.time - start)
    return result
