"""How often the audit is wrong, and how often it notices: `python -m benchmarks.audit`.

Four parts, on one core in some minutes:

- each assumption broken in turn, in a world of its own: the claims that say so;
- 72 random worlds inside the assumptions, fixed beforehand: no test may contradict a claim, but for
  the family's error, which is at most 1% of the audits;
- the first 24 of them with every control: how often each claim's test has power;
- the first 8 of them in units of 0.01, 1 and 100: only claims that are known to be false there
  may be contradicted.

The numbers are in docs/how-to/audit.md.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Literal

import numpy as np

import keyhole as kh
from keyhole.lab.audit import FAMILY_ERROR, Finding, Scope, audit

WORLDS, HORIZONS, REPLICATIONS = 72, (300, 1000, 4000), 60
KINDS: tuple[Literal["normal", "uniform", "rademacher"], ...] = ("normal", "uniform", "rademacher")


def scopes(seed: int) -> Iterator[Scope]:
    """Yield 72 scopes: 2 to 6 arms, 1 to 6 dimensions, three horizons, noise of three kinds.

    Parameters
    ----------
    seed : int
        The seed of the worlds. The rules of the audit were fixed with the worlds of 72, and tested
        on those of 2026.
    """
    rng = np.random.default_rng(seed)
    for k in range(WORLDS):
        n_arms, context_dim, dim = (int(rng.integers(*ends)) for ends in ((2, 7), (1, 9), (1, 7)))
        world = kh.LinearWorld(
            sensing=rng.standard_normal((dim, context_dim)),
            coefficients=rng.standard_normal((n_arms, context_dim)),
            sensing_covariance=float(rng.uniform(0.2, 2.0)),
            reward_scale=float(rng.uniform(0.3, 2.0)),
            reward_distribution=KINDS[rng.integers(3)],
        )
        yield Scope(world=world, horizon=HORIZONS[k % 3], replications=REPLICATIONS, seed=1000 + k)


def valid_worlds(seed: int, *, controls: int) -> None:
    """Audit the 72 worlds, and print outcomes and contradictions as they come.

    Parameters
    ----------
    seed : int
        The seed of the worlds.
    controls : int
        The number of worlds with controls.
    """
    outcomes: Counter[str] = Counter()
    powers: dict[str, list[bool]] = {}
    slacks: dict[str, list[float]] = {}
    smallest, start = 1.0, time.perf_counter()
    for k, scope in enumerate(scopes(seed)):
        wrong = []
        for one in audit(scope, with_controls=k < controls):
            outcomes[one.outcome] += 1
            if one.outcome == "not yet":
                continue
            smallest = min(smallest, one.p / one.level)
            slacks.setdefault(one.name, []).append(one.slack)
            if one.control is not None:
                powers.setdefault(one.name, []).append(one.control.contradicted)
            if one.outcome == "contradicted":
                wrong.append(_line(one))
        spent = time.perf_counter() - start
        print(f"{k + 1:3} {scope.world!r}, T={scope.horizon}: {len(wrong)} wrong, {spent:.0f} s")
        print("".join(f"      {line}\n" for line in wrong), end="", flush=True)
    print("outcomes", dict(outcomes), f"smallest p / level {smallest:.3g}")
    print(f"{outcomes['contradicted']} contradicted; {FAMILY_ERROR:.0%} of audits may have one")
    for name, found in slacks.items():
        median = float(np.median(found))
        power = f"{sum(powers[name])} of {len(powers[name])}" if name in powers else ""
        print(f"{name:36} tested {len(found):3}  slack {median:10.3g}  power {power}")


def units(seed: int) -> None:
    """Audit the first 8 worlds in three units, and print what is contradicted.

    Parameters
    ----------
    seed : int
        The seed of the worlds.
    """
    for unit in (0.01, 1.0, 100.0):
        outcomes: Counter[str] = Counter()
        for scope in islice(scopes(seed), 8):
            world = replace(
                scope.world,
                context_covariance=unit**2 * scope.world.context_covariance,
                sensing_covariance=unit**2 * scope.world.sensing_covariance,
                reward_scale=unit * scope.world.reward_scale,
            )
            for one in audit(replace(scope, world=world), with_controls=False):
                outcomes["known to be false" if one.false else one.outcome] += 1
                if not one.as_expected:
                    print(f"      {_line(one)}")
        print(f"units of {unit:g}: {dict(outcomes)}", flush=True)


def broken_assumptions() -> None:
    """Break each assumption in turn, and print the claims that are contradicted."""
    inside = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
    angle = 2 * np.pi * np.arange(12) / 12
    around = 4 * np.column_stack([np.cos(angle), np.sin(angle)])
    cones = kh.LinearWorld(sensing=0.5 * np.eye(2), coefficients=around, shared_context=True)
    seen = np.diag([1.0, 1.0, 1.0, 0.0])
    weak = replace(inside, sensing=seen @ inside.sensing)  # no signal in the last direction
    heavy = replace(inside, context_distribution="student-t", sensing_distribution="student-t")
    signs = replace(inside, context_distribution="rademacher", sensing_distribution="rademacher")
    worlds = {
        "none": Scope(world=inside),
        "eq:cy, Student t contexts": Scope(world=heavy, outside=True),
        "eq:r1, Student t rewards": Scope(
            world=replace(inside, reward_distribution="student-t"), outside=True
        ),
        "ass:subg, random signs": Scope(world=signs, outside=True),
        "eq:vt, a direction without noise": Scope(
            world=replace(weak, sensing_covariance=seen), assumed=weak
        ),
        "eq:reward, twelve arms that share a context": Scope(world=cones, outside=True),
        "v >= R, Greedy": Scope(world=inside, policy=kh.Greedy()),
        "v >= R, v = R / 20": Scope(
            world=inside, policy=kh.ThompsonSampling(v=inside.noise_scale / 20)
        ),
    }
    for name, scope in worlds.items():
        found = list(audit(scope, with_controls=False))
        print(f"{name}: {sum(one.outcome == 'contradicted' for one in found)} contradicted")
        for one in found:
            if one.outcome == "contradicted":
                print(f"      {_line(one)}", flush=True)


def _line(one: Finding) -> str:
    return f"{one.name} ({one.label}): p = {one.p:.2g}, slack {one.slack:.3g}; {one.evidence}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How often the audit is wrong, and notices.")
    parser.add_argument("--controls", type=int, default=24, help="Worlds with controls.")
    parser.add_argument("--seed", type=int, default=2026, help="Seed of the 72 worlds.")
    given = parser.parse_args()
    broken_assumptions()
    units(given.seed)
    valid_worlds(given.seed, controls=given.controls)
