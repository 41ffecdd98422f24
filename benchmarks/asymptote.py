"""The predicted slope of the regret against simulation, in worlds that a rule fixes beforehand.

The slope of a policy is what its regret gains from round T / 10 to round T, over log 10. The rule
of the worlds: seeds 0, 1, 2, ... in turn, each with its own sizes and scales (see `world_of`), and
the first twenty in which every arm is best with probability at least 0.005. None is left out
afterwards. Beside these twenty with contexts of their own, ten have a shared context and five a
shared parameter, by the same rule.

    python -m benchmarks.asymptote results.json          # a quarter of an hour of one core
    python -m benchmarks.asymptote results.json --again  # the table of stored results
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

import keyhole as kh

HORIZON, RAREST = 300_000, 0.005
TIMES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
# The kinds of worlds, and how many there are of each.
KINDS = {"own contexts": 20, "shared context": 10, "shared parameter": 5}


def policies_of(kind: str) -> dict[str, kh.Policy]:
    """Return the policies that play in a kind of worlds."""
    sharing: Any = "shared" if kind == "shared parameter" else "per-arm"
    return {
        "thompson": kh.ThompsonSampling(v="oracle", sharing=sharing),
        "greedy": kh.Greedy(sharing=sharing),
    }


def world_of(seed: int, kind: str = "own contexts") -> kh.LinearWorld:
    """Return the world of a seed: 2 to 6 arms, dimension 2 to 6, noise of various scales."""
    rng = np.random.default_rng(seed)
    n_arms, dim = (int(size) for size in rng.integers(2, 7, 2))
    context_dim = int(rng.integers(2, 9))
    sensing_scale, reward_scale = 10.0 ** rng.uniform(-0.5, 0.5, 2)
    mixing = rng.standard_normal((context_dim, context_dim)) / np.sqrt(context_dim)
    correlated = bool(rng.integers(2))
    lengths = 10.0 ** rng.uniform(-0.5, 0.5, (n_arms, 1))  # so that some arms are seldom best
    world = kh.LinearWorld(
        sensing=rng.standard_normal((dim, context_dim)),
        coefficients=lengths * rng.standard_normal((n_arms, context_dim)),
        context_covariance=mixing @ mixing.T if correlated else 1.0,
        sensing_covariance=sensing_scale**2,
        reward_scale=reward_scale,
        shared_context=kind == "shared context",
    )
    if kind != "shared parameter":
        return world
    return replace(world, coefficients=np.tile(world.coefficients[0], (n_arms, 1)))


def worlds(kind: str) -> Iterator[tuple[int, kh.LinearWorld]]:
    """Yield the worlds of a kind with their seeds."""
    made = ((seed, world_of(seed, kind)) for seed in count())
    often = (pair for pair in made if pair[1].optimality[0].min() >= RAREST)
    return islice(often, KINDS[kind])


def simulated(kind: str, seed: int, world: kh.LinearWorld, replications: int) -> dict[str, Any]:
    """Return the mean regret at `TIMES`, and the slope with its standard error, by policy."""
    began = time.perf_counter()
    runs = kh.simulate(
        world,
        policies_of(kind),
        horizon=HORIZON,
        replications=replications,
        seed=1_000 + seed,
        checkpoints=TIMES,
        workers=1,
        progress=False,
    )
    gains = (runs.regret.sel(time=HORIZON) - runs.regret.sel(time=HORIZON // 10)) / np.log(10.0)
    root = np.sqrt(replications)
    return {
        "kind": kind,
        "seed": seed,
        "replications": replications,
        "seconds": round(time.perf_counter() - began, 1),
        "slope": gains.mean("replication").values.tolist(),
        "slope_error": (gains.std("replication", ddof=1) / root).values.tolist(),
        "regret": runs.regret.mean("replication").values.tolist(),
        "regret_error": (runs.regret.std("replication", ddof=1) / root).values.tolist(),
    }


def row(stored: dict[str, Any]) -> str:
    """Return a world's line of the table: for each policy c, predicted and simulated slopes."""
    kind, seed = stored["kind"], stored["seed"]
    world = world_of(seed, kind)
    cells = [f"{seed}", f"{world.n_arms}", f"{world.dim}", f"{world.optimality[0].min():.3f}"]
    for i, policy in enumerate(policies_of(kind).values()):
        found = kh.theory.asymptote(world, policy, horizon=HORIZON)
        if found.refusal:
            cells += [f"{found.constant:.3g}", *["refused"] * 5]
            continue
        ends = found.regret([HORIZON // 10, HORIZON])
        predicted = float(ends[1] - ends[0]) / np.log(10.0)
        slope, error = stored["slope"][i], stored["slope_error"][i]
        total = float(ends[1]) / stored["regret"][i][-1]
        cells += [f"{found.constant:.3g}", f"{predicted:.3g}", f"{slope:.3g} ± {error:.2g}"]
        cells += [f"{slope / found.constant:.2f}", f"{slope / predicted:.2f}", f"{total:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Simulate the worlds unless their results are stored, and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--again", action="store_true", help="do not simulate")
    parser.add_argument("--replications", type=int, default=120)
    given = parser.parse_args()
    if not given.again:
        stored = []
        for kind in KINDS:
            for seed, world in worlds(kind):
                stored.append(simulated(kind, seed, world, given.replications))
                given.results.write_text(json.dumps(stored))
    for kind in KINDS:
        print(f"\n{kind}: seed, arms, dim, p_min; for Thompson sampling and then for Greedy: c, "
              "predicted slope, simulated slope, simulated over c, simulated over predicted, "
              "predicted over simulated regret\n")  # fmt: skip
        for one in json.loads(given.results.read_text()):
            if one["kind"] == kind:
                print(row(one), flush=True)


if __name__ == "__main__":
    main()
