"""Conversion of outcomes to one labelled data set."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

import numpy as np
import xarray as xr

from keyhole.core import kernels
from keyhole.lab.simulation.plan import Plan
from keyhole.lab.simulation.replication import Outcome
from keyhole.lab.simulation.sources import SOURCES
from keyhole.lab.worlds import as_text

CURVE = ("policy", "replication", "time")
# Dimensions of variables that differ from CURVE. The best observer does not depend on the policy.
AXES = {
    "pulls": (*CURVE, "arm"),
    "error": (*CURVE, "arm"),
    "best_correct": ("replication", "time"),
}
MEANING = {
    "regret": "cumulative regret against the best observer, who knows eta and sees y",
    "latent_regret": "cumulative regret against an oracle that sees x: the price of not seeing",
    "optimal": "share of the rounds so far in which the best observer's arm was chosen",
    "correct": "share of the rounds so far in which the right answer was chosen",
    "best_correct": "share of them in which the best observer would have chosen it",
    "pulls": "how often each arm was chosen so far",
    "error": "|mean - eta|, the error of each arm's parameter",
}


def as_dataset(plan: Plan, outcomes: Mapping[int, Outcome]) -> xr.Dataset:
    """Return the finished replications as a data set, in the order of their numbers.

    Parameters
    ----------
    plan : Plan
        The plan of the simulation.
    outcomes : mapping of int to Outcome
        The outcome of each finished replication, by its number.

    Returns
    -------
    Dataset
        The variables over policies, replications, checkpoints and arms.
    """
    numbers = sorted(outcomes)
    variables = {}
    for name, meaning in MEANING.items():
        if name not in outcomes[numbers[0]]:
            continue
        axes = AXES.get(name, CURVE)
        place = axes.index("replication")
        stacked = np.stack([outcomes[number][name] for number in numbers], axis=place)
        data = stacked.astype(np.int64) if name == "pulls" else stacked
        variables[name] = (axes, data, {"long_name": meaning})
    # With it, theory can be held against the result later on.
    text = as_text(plan.world)
    carried = {} if text is None else {"world_settings": text}
    return xr.Dataset(
        variables,
        coords={
            "policy": list(plan.learners),
            "replication": numbers,
            "time": plan.checkpoints,
            "arm": np.arange(plan.world.n_arms),
        },
        attrs={**plan.described, **carried, "versions": json.dumps(versions())},
    )


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and packages, the platform, the build and the sources."""
    packages = ("keyhole", "numpy", "scipy", "xarray")
    return {
        "python": platform.python_version(),
        "platform": sys.platform,
        "build": kernels.BUILD,
        "sources": SOURCES,
        **{package: version(package) for package in packages},
    }
