"""`overview`: every line that the theory has for the regret of a world, beside simulation."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from keyhole.core import ThompsonSampling
from keyhole.errors import InvalidValue
from keyhole.lab.simulation import simulate
from keyhole.lab.worlds import LinearWorld
from keyhole.theory import (
    Certificate,
    Derivation,
    Instance,
    Row,
    asymptote,
    bounds,
    certificate,
    derivation,
)

# Simulated for the picture: enough for a mean and a worst run, in a second or two.
ROUNDS, RUNS, POINTS = 20_000, 50, 60


class Overview(NamedTuple):
    """Bounds on the regret of Thompson sampling, and its simulated regret.

    Parameters
    ----------
    derivation : Derivation
        The regret bound at the horizon after each replaced step. The last row is the certificate.
    certificate : Certificate or None
        The certificate over time; None where there is none.
    lines : dict of str to ndarray
        Other lines at the certificate's times: theorem 2 and the regret to expect.
    runs : Dataset or None
        Simulated runs, up to 20,000 rounds; None if nothing was simulated.
    """

    derivation: Derivation
    certificate: Certificate | None
    lines: dict[str, NDArray[np.float64]]
    runs: xr.Dataset | None


def overview(
    world: LinearWorld,
    instance: Instance,
    *,
    horizon: int,
    delta: float,
    v: float | None = None,
    seed: int = 1,
    simulated: bool = True,
) -> Overview:
    """Return the bounds on regret and simulated runs, for `plots.overview`.

    Parameters
    ----------
    world : LinearWorld
        The world.
    instance : Instance
        Its constants, from `theory.instance`.
    horizon : int
        The horizon of the bounds.
    delta : float
        The probability with which a bound may fail.
    v : float, optional
        The dispersion of Thompson sampling. By default R.
    seed : int, default 1
        The seed of the runs.
    simulated : bool, default True
        Simulate runs.
    """
    policy = ThompsonSampling(v="oracle" if v is None else v)
    try:
        found: Certificate | None = certificate(world, policy, horizon=horizon, delta=delta)
    except InvalidValue:  # which says why, to those who ask for a certificate
        found = None
    rows = []
    if found is not None:
        reason = "exact steps in place of lemmas, integrated numerically"
        rows = [Row("certificate", found.value, "proved", reason)]
    return Overview(
        derivation(instance, horizon, delta, v=v, rows=rows),
        found,
        {} if found is None else _lines(world, instance, policy, found, delta, v),
        _runs(world, policy, min(horizon, ROUNDS), seed) if simulated else None,
    )


def _runs(world: LinearWorld, policy: ThompsonSampling, rounds: int, seed: int) -> xr.Dataset:
    """Simulate runs for a picture whose axes are logarithmic."""
    times = np.unique(np.geomspace(1, rounds, POINTS).astype(int)).tolist()
    return simulate(
        world,
        {"Thompson sampling": policy},
        horizon=rounds,
        replications=RUNS,
        seed=seed,
        checkpoints=times,
        progress=False,
    )


def _lines(
    world: LinearWorld,
    instance: Instance,
    policy: ThompsonSampling,
    found: Certificate,
    delta: float,
    v: float | None,
) -> dict[str, NDArray[np.float64]]:
    """Return theorem 2, as printed and repaired, and the regret to expect, where finite."""
    times = np.array(found.times, dtype=np.float64)
    c = instance.constants(delta=delta, v=v)
    lines = {
        "theorem 2 (open)": bounds.theorem_2(c, horizon=np.maximum(times, 2.0)),
        "theorem 2 (repaired)": bounds.theorem_2_repaired(c, horizon=np.maximum(times, 2.0)),
    }
    with contextlib.suppress(InvalidValue):  # where none is derived, there is no line
        expected = asymptote(world, policy, horizon=int(times[-1])).regret(times)
        lines["expected (derived)"] = expected
    return {name: values for name, values in lines.items() if np.isfinite(values).all()}
